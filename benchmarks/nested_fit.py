"""All 55 least-squares prefixes after one Gram matrix, beside one Cholesky solve for every prefix."""

from collections.abc import Iterator

import torch
from harness import Row, interleave, ratio_row, run

from leadline.linalg.nested_fit import Batch, FeatureGram, factorise, feature_gram, prefix_objectives

SAMPLES, CLASSES, BLOCKS, WIDTH = 50_000, 10, 54, 55
FIRST = 36  # with the constant and 54 blocks of 55 features D = 3007


def batches(size: int = 2_000) -> Iterator[Batch]:
    """Rectified random mixtures of a common signal: features that correlate as those of a net do."""
    draw = torch.Generator().manual_seed(0)
    mixes = [torch.randn(64, width, generator=draw) / 8 for width in (FIRST, *[WIDTH] * BLOCKS)]
    for _ in range(SAMPLES // size):
        signal = torch.randn(size, 64, generator=draw)
        noise = [torch.randn(size, mix.shape[1], generator=draw) / 4 for mix in mixes]
        features = [torch.relu(signal @ mix + part) for mix, part in zip(mixes, noise, strict=True)]
        yield features, torch.randint(CLASSES, (size,), generator=draw)


def separate(moments: FeatureGram) -> torch.Tensor:
    found = []
    for end in moments.ends:
        root = torch.linalg.cholesky(moments.gram[:end, :end])
        head = torch.cholesky_solve(moments.cross[:end], root)
        found.append((moments.target - (head * moments.cross[:end]).sum()) / 2)
    return torch.stack(found)


def measure(rounds: int) -> list[Row]:
    moments = feature_gram(batches(), classes=CLASSES)
    sides = {
        "ours": lambda: prefix_objectives(moments, factorise(moments)),
        "separate Cholesky solves": lambda: separate(moments),
    }
    times = interleave(sides, rounds=rounds)
    error = float((sides["ours"]() / sides["separate Cholesky solves"]() - 1).abs().max())
    what = f"{len(moments.ends)} least-squares prefixes, N = {SAMPLES:,}, D = {len(moments.gram)}, after the Gram"
    note = f"ours {times['ours'].median:.2f} s"
    return [
        ratio_row(what, top=times["separate Cholesky solves"], bottom=times["ours"], bar=7, at_most=False, note=note),
        Row(what=what, against="separate Cholesky solves, difference", value=error, bar=1e-12, at_most=True),
    ]


if __name__ == "__main__":
    run(measure, description=__doc__, rounds=5)
