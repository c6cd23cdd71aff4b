"""The exact Hessian of a 2-shortcut net with ReLUs in mid position, depth 16 and width 10, beside autograd."""

import torch
from harness import Row, Timing, interleave, ratio_row, run
from torch import Tensor
from torch.func import grad, jvp, vmap

from leadline.linalg.hessian import dense_hessian
from leadline.linalg.relu_chain import ReluChain

DEPTH, WIDTH, SAMPLES, COLUMNS = 16, 10, 60_000, 4
NET = ReluChain(unit=2, relu=("mid",))


def units(weights: Tensor) -> Tensor:
    return torch.eye(weights.numel(), dtype=weights.dtype)[:COLUMNS].reshape(COLUMNS, *weights.shape)


def forward_columns(weights: Tensor, x: Tensor, y: Tensor) -> None:
    """vmap(jvp(grad))."""
    slope = grad(lambda w: NET.loss(w, x, y))
    vmap(lambda unit: jvp(slope, (weights,), (unit,))[1])(units(weights))


def reverse_columns(weights: Tensor, x: Tensor, y: Tensor) -> None:
    """One backward pass with its graph kept, another through it for every column (its set-up is charged in full)."""
    leaf = weights.detach().requires_grad_()
    (slope,) = torch.autograd.grad(NET.loss(leaf, x, y), leaf, create_graph=True)
    for unit in units(weights):
        torch.autograd.grad(slope, leaf, unit, retain_graph=True)


def best(times: dict[str, Timing]) -> Timing:
    return min((timing for name, timing in times.items() if name != "ours"), key=lambda timing: timing.median)


def measure(rounds: int) -> list[Row]:
    rows = []
    for dtype in (torch.float32, torch.float64):
        torch.manual_seed(0)
        x, y = torch.randn(2, SAMPLES, WIDTH, dtype=dtype).unbind()
        weights = 0.1 * torch.randn(DEPTH, WIDTH, WIDTH, dtype=dtype)
        sides = {
            "ours": lambda w=weights, x=x, y=y: NET.hessian(w, x, y),
            "vmap(jvp(grad))": lambda w=weights, x=x, y=y: forward_columns(w, x, y),
            "reverse over reverse": lambda w=weights, x=x, y=y: reverse_columns(w, x, y),
        }
        times = interleave(sides, rounds=rounds, warm_up=1)
        few = x[:300].double(), y[:300].double()
        exact = dense_hessian(lambda w, few=few: NET.loss(w, *few), weights.double())
        error = float((NET.hessian(weights, x[:300], y[:300]) - exact).abs().max() / exact.abs().max())
        name = str(dtype).removeprefix("torch.")
        rows.append(
            ratio_row(
                f"exact Hessian, mid-ReLU, depth {DEPTH}, {SAMPLES:,} white samples, {name}",
                top=best(times),
                bottom=times["ours"],
                bar=20,
                at_most=False,
                scale=weights.numel() / COLUMNS,
                note=f"ours {times['ours'].median:.1f} s, error {error:.0e}; autograd from {COLUMNS} columns",
            )
        )
    return rows


if __name__ == "__main__":
    run(measure, description=__doc__, rounds=3)
