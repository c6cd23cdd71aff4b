"""Sixty steps on the embedded digits: what a remedy is worth."""

from collections.abc import Callable

import pytest
import torch
from foreign import declare_vision_operators
from torch import Tensor, nn
from torch.nn import functional as F

from leadline.data.datasets import digits
from leadline.data.place import Place

declare_vision_operators()  # transformers looks for torchvision


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> tuple[Tensor, Tensor]:
    train = digits.load(Place(tmp_path_factory.getbasetemp(), download=False)).train
    inputs = train.inputs.float()
    return (inputs - inputs.mean()) / inputs.std(), train.targets


@pytest.fixture(scope="session")
def learns(data: tuple[Tensor, Tensor]) -> Callable[..., float]:
    """The mean loss over the last 10 of 60 steps of momentum SGD, on the same batches for everybody."""

    def train(model: nn.Module, optimizer: torch.optim.Optimizer | None = None, *, lr: float = 0.1) -> float:
        optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
        generator, losses = torch.Generator().manual_seed(0), []
        for _ in range(60):
            rows = torch.randint(0, len(data[1]), (32,), generator=generator)
            loss = F.cross_entropy(model(data[0][rows]), data[1][rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return sum(losses[-10:]) / 10

    return train
