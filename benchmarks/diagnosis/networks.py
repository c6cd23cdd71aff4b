"""The networks of the diagnosis benchmark, written as people write theirs, and the faults that are put into them."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from leadline import models

WIDTH = {"conv": 8, "mlp": 32}


class Norm(nn.Module):
    """Layer norm over everything but the batch, for maps and vectors alike."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(1, width)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.norm(x)
        return out


class Unit(nn.Module):
    """A branch of `length` layers, each with norm and activation in front, and a skip around it or none."""

    def __init__(self, layer: Callable[[], nn.Module], *, width: int, norm: str, activation: str, **how: Any) -> None:
        super().__init__()
        parts: list[nn.Module] = []
        for _ in range(how["length"]):
            parts += [part for part in (_norm(norm, width, layer), _activation(activation)) if part is not None]
            parts.append(layer())
        self.branch = nn.Sequential(*parts)
        self.skip = how["skip"]

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.branch(x)
        if self.skip:
            out += x
        return out


def _norm(name: str, width: int, layer: Callable[[], nn.Module]) -> nn.Module | None:
    if name == "none":
        return None
    if name == "layer":
        return Norm(width)
    return nn.BatchNorm2d(width) if isinstance(layer(), nn.Conv2d) else nn.BatchNorm1d(width)


def _activation(name: str) -> nn.Module | None:
    return {"relu": lambda: nn.ReLU(), "tanh": nn.Tanh, "identity": lambda: None}[name]()  # type: ignore[no-any-return]


class Net(nn.Module):
    """Stem, units in a row, norm and activation, mean over the map, and a linear head."""

    def __init__(self, stem: nn.Module, units: list[nn.Module], head: nn.Module) -> None:
        super().__init__()
        self.stem, self.units, self.head = stem, nn.ModuleList(units), head

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for unit in self.units:
            x = unit(x)
        out: Tensor = self.head(x)
        return out


def conv(depth: int, **options: Any) -> Net:
    """3x3 convolutions of 8 channels on 8x8 images, pooled to 4x4 before the first of them."""
    width = WIDTH["conv"]
    stem = nn.Sequential(nn.Conv2d(1, width, 3, padding=1), nn.AvgPool2d(2))
    head = nn.Sequential(nn.Flatten(), nn.Linear(width * 16, 10))
    return _net(depth, stem, lambda: nn.Conv2d(width, width, 3, padding=1), head, width=width, **options)


def mlp(depth: int, **options: Any) -> Net:
    """Fully connected, 32 wide."""
    width = WIDTH["mlp"]
    stem = nn.Sequential(nn.Flatten(), nn.Linear(64, width))
    return _net(depth, stem, lambda: nn.Linear(width, width), nn.Linear(width, 10), width=width, **options)


def _net(
    depth: int,
    stem: nn.Module,
    layer: Callable[[], nn.Module],
    head: nn.Module,
    *,
    width: int,
    skip: bool,
    norm: str,
    init: str = "he",
    activation: str = "relu",
    length: int = 2,
) -> Net:
    how = {"width": width, "norm": norm, "activation": activation, "length": length, "skip": skip}
    net = Net(stem, [Unit(layer, **how) for _ in range(depth // length)], head)
    start(net, init)
    return net


@torch.no_grad()
def start(net: Net, init: str) -> None:
    """He's start, or one that is ten times too small or three times too large, or He's with branches near zero."""
    gain = {"tiny": 0.1, "huge": 3.0}.get(init, 1.0)
    for name, module in net.named_modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            nn.init.kaiming_normal_(module.weight, nonlinearity="linear" if name.startswith("head") else "relu")
            assert module.bias is not None
            nn.init.zeros_(module.bias)
            if name.startswith("units"):
                module.weight.mul_(0.01 if init == "near-zero" else gain)


class Detached(nn.Module):
    """Cuts the gradient, as a stray .detach() does."""

    def forward(self, x: Tensor) -> Tensor:
        return x.detach()


class Half(nn.Module):
    """Passes through single precision's smaller brother at a scale that does not fit it."""

    def forward(self, x: Tensor) -> Tensor:
        return ((x * 1e5).half() / 1e5).to(x.dtype)


class Narrow(nn.Module):
    """Keeps one direction of all channels."""

    def forward(self, x: Tensor) -> Tensor:
        return x.mean(1, keepdim=True).expand_as(x)


def broken(net: nn.Module, fault: str) -> nn.Module:
    """The network with the fault put into it; `labels` lies in the data and changes nothing here."""
    if fault in ("none", "labels"):
        return net
    assert isinstance(net, Net)
    middle = len(net.units) // 2
    if fault == "detached":
        net.head = nn.Sequential(Detached(), net.head)
    elif fault == "frozen":
        for parameter in [*net.stem.parameters(), *net.units.parameters(), *list(net.head.parameters())[:1]]:
            parameter.requires_grad_(False)
    elif fault == "fp16":
        net.units.insert(middle, Half())
    elif fault == "narrow":
        net.units.insert(middle, Narrow())
    elif fault == "transition":
        layer = nn.Conv2d(8, 8, 1) if isinstance(net.stem[0], nn.Conv2d) else nn.Linear(32, 32)  # type: ignore[index]
        nn.init.normal_(layer.weight, std=1e-4)
        net.units.insert(middle, layer)
    elif fault == "dead":
        first = net.stem[0] if isinstance(net.stem[0], nn.Conv2d) else net.stem[1]  # type: ignore[index]
        nn.init.constant_(first.bias, -30.0)  # type: ignore[arg-type]
        net.units.insert(0, nn.ReLU())
    else:
        raise ValueError(f"no fault {fault!r}")
    return net


def staged(family: str, depth: int, *, norm: str, init: str | None = None, activation: str = "relu") -> nn.Module:
    """A network of the papers in three stages, 8, 16 and 32 channels wide."""
    options = {"norm": norm, "activation": activation, "widths": (8, 16, 32), "in_channels": 1}
    return models.create(f"{family}-{depth}", **options, **({"init": init} if init else {}))


NETS: dict[str, Callable[..., nn.Module]] = {"conv": conv, "mlp": mlp, "staged": staged}
