"""The exact Hessian spectrum of a linear 2-shortcut net of depth 16 and width 10, beside autograd on the samples."""

import torch
from harness import Row, Timing, interleave, ratio_row, run
from torch import Tensor
from torch.func import grad, jvp, vmap

from leadline.linalg.hessian import dense_hessian, spectrum
from leadline.linalg.linear_chain import Moments, hessian

DEPTH, WIDTH, SAMPLES, COLUMNS = 16, 10, 60_000, 4
WHITE = f"{SAMPLES:,} white samples, which have MNIST's size and cost"


def loss(weights: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """(1/2m) sum |y - net(x)|^2 on samples in rows."""
    for first, second in weights.reshape(-1, 2, WIDTH, WIDTH).unbind():
        x = x + x @ first.T @ second.T
    return (y - x).square().sum() / (2 * len(x))


def columns(weights: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """COLUMNS columns of the Hessian by vmap(jvp(grad))."""
    slope = grad(lambda w: loss(w, x, y))
    units = torch.eye(weights.numel(), dtype=weights.dtype)[:COLUMNS].reshape(COLUMNS, *weights.shape)
    return vmap(lambda unit: jvp(slope, (weights,), (unit,))[1])(units)


def measure(rounds: int) -> list[Row]:
    torch.manual_seed(0)
    x, y = torch.randn(2, SAMPLES, WIDTH, dtype=torch.float64).unbind()
    weights = 0.1 * torch.randn(DEPTH, WIDTH, WIDTH, dtype=torch.float64)
    moments = Moments.of(x, y)
    sides = {
        "assembly and eigenvalues": lambda: spectrum(hessian(weights, moments, shortcut=2)),
        "assembly": lambda: hessian(weights, moments, shortcut=2),
        "vmap(jvp(grad))": lambda: columns(weights, x, y),
    }
    times = interleave(sides, rounds=rounds)
    share = weights.numel() / COLUMNS
    ours = times["assembly and eigenvalues"]
    few = dense_hessian(lambda w: loss(w, x[:500], y[:500]), weights)
    error = float((hessian(weights, Moments.of(x[:500], y[:500]), shortcut=2) - few).abs().max() / few.abs().max())
    what = f"exact Hessian spectrum, linear, depth {DEPTH}, width {WIDTH}"
    return [
        ratio_row(
            what,
            top=times["vmap(jvp(grad))"],
            bottom=ours,
            bar=1000,
            at_most=False,
            scale=share,
            note=f"extrapolated from {COLUMNS} of {weights.numel()} columns; {WHITE}; float64",
        ),
        seconds(what, ours, bar=0.26, note=f"assembly alone {1e3 * times['assembly'].median:.1f} ms"),
        Row(what="the same Hessian", against="autograd on 500 samples, error", value=error, bar=1e-12, at_most=True),
    ]


def seconds(what: str, timing: Timing, *, bar: float, note: str) -> Row:
    low, high = timing.quartiles
    return Row(what=what, against="seconds", value=timing.median, low=low, high=high, bar=bar, at_most=True, note=note)


if __name__ == "__main__":
    run(measure, description=__doc__)
