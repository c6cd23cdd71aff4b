"""HOSVD condition numbers of all weights of ResNet-110, beside loops over layers and modes."""

import tensorly
import torch
from harness import Row, interleave, ratio_row, run
from tensorly.tenalg import svd_interface
from torch import Tensor

from leadline import models
from leadline.linalg.conditioning import hosvd_conditions

tensorly.set_backend("pytorch")


def modes(weight: Tensor) -> list[Tensor]:
    """The unfoldings that are not of size one; a matrix needs one of its two."""
    count = 1 if weight.ndim == 2 else weight.ndim
    return [tensorly.unfold(weight, mode) for mode in range(count) if weight.shape[mode] > 1]


def tensorly_loop(weights: list[Tensor]) -> None:
    for weight in weights:
        for unfolded in modes(weight):
            svd_interface(unfolded)


def svdvals_loop(weights: list[Tensor]) -> None:
    for weight in weights:
        for unfolded in modes(weight):
            torch.linalg.svdvals(unfolded)


def error(weights: list[Tensor]) -> float:
    """The largest relative difference of any kappa from float64 singular values."""
    worst = 0.0
    for weight, found in zip(weights, hosvd_conditions(weights), strict=True):
        for mode, condition in enumerate(found):
            sigma = torch.linalg.svdvals(tensorly.unfold(weight.double(), mode))
            worst = max(worst, abs(condition.kappa / float(sigma[0] / sigma[-1]) - 1))
    return worst


def measure(rounds: int) -> list[Row]:
    torch.manual_seed(0)
    weights = [p.detach() for p in models.create("resnet-110").parameters() if p.ndim > 1]
    sides = {
        "ours": lambda: hosvd_conditions(weights),
        "tensorly loop": lambda: tensorly_loop(weights),
        "svdvals loop": lambda: svdvals_loop(weights),
    }
    times = interleave(sides, rounds=rounds)
    what = f"HOSVD kappa, {len(weights)} weights of ResNet-110"
    note = f"ours {1e3 * times['ours'].median:.0f} ms in float64, the loops in float32"
    rows = [
        ratio_row(what, top=times[other], bottom=times["ours"], bar=bar, at_most=False, note=note)
        for other, bar in (("tensorly loop", 5.0), ("svdvals loop", 2.3))
    ]
    exact = Row(what=what, against="svdvals in float64, error", value=error(weights), bar=1e-12, at_most=True)
    return [*rows, exact]


if __name__ == "__main__":
    run(measure, description=__doc__, rounds=15)
