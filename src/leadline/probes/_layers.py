"""The parameterised layers of a model in one order: every weight that is a linear map, shared ones once."""

from collections.abc import Iterator
from contextlib import nullcontext
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.nn.utils import parametrize

from leadline.models.dirac import DiracConv2d
from leadline.taps.preserve import preserved

NOT_MAPS = (nn.Embedding, nn.EmbeddingBag, nn.LayerNorm, parametrize.ParametrizationList)
NONE = "the model has no weights of two or more dimensions"


class Layer(NamedTuple):
    """The trained `parameter` and the `weight` that is applied, made from it where the layer is parametrised.

    `why` tells why the weight has no singular values to speak of; empty if it has.
    """

    name: str
    module: nn.Module
    parameter: nn.Parameter
    weight: Tensor
    why: str


def layers(model: nn.Module) -> list[Layer]:
    """What readings along the layers are counted along: weights of two or more dimensions, as they were registered.

    Convolutions, linear maps, attention projections and recurrent weights; neither embeddings nor norms. A layer goes
    by its module's path, with the parameter's name where that is not `weight`. Of the parameters behind a parametrised
    weight the largest stands for it; a Dirac convolution applies W + diag(a).

    >>> [layer.name for layer in layers(nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.RNN(3, 3)))]
    ['0', '2.weight_ih_l0', '2.weight_hh_l0']
    """
    computed = any(parametrize.is_parametrized(module) for module in model.modules())
    seen: set[int] = set()
    found = []
    with torch.no_grad(), preserved(model) if computed else nullcontext():
        for path, module in model.named_modules():
            for attribute, parameter in [] if isinstance(module, NOT_MAPS) else _weights(module):
                if id(parameter) not in seen and not is_lazy(parameter) and parameter.ndim >= 2:
                    seen.add(id(parameter))
                    name = path if path and attribute == "weight" else f"{path}.{attribute}".strip(".")
                    weight = _applied(module, attribute).detach()
                    found.append(Layer(name, module, parameter, weight, _unusable(weight)))
    return found


def aside(model: nn.Module) -> list[str]:
    """Parameters with two axes or more that are read as no layer, as their names do not say that they are weights.

    >>> model = nn.Linear(2, 3)
    >>> model.position = nn.Parameter(torch.zeros(1, 4, 3))
    >>> aside(model)
    ['position']
    """
    known = {id(layer.parameter) for layer in layers(model)}
    found = {}
    for path, module in model.named_modules():
        for name, parameter in [] if isinstance(module, NOT_MAPS) else module.named_parameters(recurse=False):
            if id(parameter) not in known and not is_lazy(parameter) and sum(size > 1 for size in parameter.shape) > 1:
                found[id(parameter)] = f"{path}.{name}".strip(".")
    return list(found.values())


def _weights(module: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
    for attribute, parameter in module.named_parameters(recurse=False):
        if "weight" in attribute:
            yield attribute, parameter
    if parametrize.is_parametrized(module) and isinstance(module.parametrizations, nn.ModuleDict):
        for attribute, steps in module.parametrizations.items():
            yield attribute, max(steps.parameters(), key=lambda parameter: parameter.numel())


def _applied(module: nn.Module, attribute: str) -> Tensor:
    if isinstance(module, DiracConv2d) and attribute == "weight":
        return module.kernel
    weight: Tensor = getattr(module, attribute)
    return weight


def _unusable(weight: Tensor) -> str:
    if weight.is_meta:
        return "the weight is on the meta device"
    if not weight.is_floating_point():
        return f"the weight is {str(weight.dtype).removeprefix('torch.')}, not real floating point"
    return "" if weight.numel() else f"the weight is empty: {tuple(weight.shape)}"
