"""Condition of the 54 hidden representations of ResNet-110, forward pass included, beside one training step."""

import torch
from harness import Row, interleave, ratio_row, run
from torch import Tensor, nn
from torch.nn import functional

from leadline import models
from leadline.linalg.conditioning import Condition, hidden_condition

BATCH = 128


def sweep(model: nn.Module, x: Tensor) -> list[Condition]:
    """The n x N condition of every block's output, read while the forward pass goes by."""
    found: list[Condition] = []
    blocks = list(model.get_submodule("blocks").children())
    handles = [
        block.register_forward_hook(lambda _m, _i, output: found.append(hidden_condition(output))) for block in blocks
    ]
    model.eval()
    with torch.no_grad():
        model(x)
    for handle in handles:
        handle.remove()
    model.train()
    return found


def step(model: nn.Module, optimizer: torch.optim.Optimizer, x: Tensor, y: Tensor) -> None:
    optimizer.zero_grad(set_to_none=True)
    functional.cross_entropy(model(x), y).backward()
    optimizer.step()


def measure(rounds: int) -> list[Row]:
    torch.manual_seed(0)
    x, y = torch.randn(BATCH, 3, 32, 32), torch.randint(10, (BATCH,))
    rows = []
    for layout, name in ((torch.channels_last, "channels_last"), (torch.contiguous_format, "contiguous")):
        model = models.create("resnet-110").to(memory_format=layout)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        data = x.contiguous(memory_format=layout)
        sides = {
            "sweep": lambda model=model, data=data: sweep(model, data),
            "training step": lambda model=model, data=data, optimizer=optimizer: step(model, optimizer, data, y),
        }
        times = interleave(sides, rounds=rounds)
        found = sweep(model, data)
        rows.append(
            ratio_row(
                f"hidden kappa, {len(found)} boundaries of ResNet-110, N = {BATCH}, {name}",
                top=times["sweep"],
                bottom=times["training step"],
                bar=0.6,
                at_most=True,
                note=f"sweep {times['sweep'].median:.2f} s, step {times['training step'].median:.2f} s; random images",
            )
        )
    return rows


if __name__ == "__main__":
    run(measure, description=__doc__, rounds=5)
