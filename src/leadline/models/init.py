"""Initialisers: how weights start, by name; biases start at zero, norms at one."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from leadline.core.errors import unknown
from leadline.models.layers import Transition

NEAR_ZERO = 0.01


def _he_fan_in(weight: Tensor) -> None:
    """N(0, 2 / fan_in) (He et al. 2015, initialisation)."""
    nn.init.kaiming_normal_(weight, mode="fan_in")


def _he_fan_out(weight: Tensor) -> None:
    """N(0, 2 / fan_out)."""
    nn.init.kaiming_normal_(weight, mode="fan_out")


FILLS: dict[str, Callable[[Tensor], object]] = {
    "he-fan-in": _he_fan_in,
    "he-fan-out": _he_fan_out,
    "xavier": nn.init.xavier_normal_,
    "orthogonal": nn.init.orthogonal_,
    "near-zero": nn.init.xavier_normal_,
}
INITIALISERS = (*FILLS, "pytorch")


@torch.no_grad()
def initialise(module: nn.Module, name: str) -> None:
    """Fill every convolution and linear layer inside; `pytorch` leaves the framework's own start.

    `near-zero` is Xavier with every branch times 0.01 (Li et al., section 4.1): the branch's weights, and the last
    norm of a branch that ends in one, since a norm undoes the scale of what is before it.
    """
    if name not in INITIALISERS:
        raise unknown("init", name, INITIALISERS)
    if name == "pytorch":
        return
    for layer in module.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear) and not (isinstance(layer, Transition) or layer.weight.is_meta):
            FILLS[name](layer.weight)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
    if name == "near-zero":
        _shrink_branches(module)


def _shrink_branches(module: nn.Module) -> None:
    for path, branch in module.named_modules():
        if path.split(".")[-1] != "branch":
            continue
        *_, last = branch.modules()
        for layer in branch.modules():
            if isinstance(layer, nn.Conv2d | nn.Linear) or (layer is last and isinstance(layer, nn.BatchNorm2d)):
                layer.weight.mul_(NEAR_ZERO)
