"""He initialisation: weights of convolutions and linear layers anew from N(0, 2 / fan_in), biases zero.

Changes: every convolution and linear layer, the last one included; norms, embeddings and everything else stay. fan_in
counts the inputs of one output: channels per group times kernel positions (over the stride, where it is transposed).
Helps: nets of ReLUs that start too small or too large: E|x_{l+1}|^2 = E|x_l|^2 at any depth (He et al. 2015, the start
of Oyedotun et al. and of Zaeemzadeh et al., section 4). What was learnt so far is lost.
Costs: nothing at run time.
Undone: all weights and biases get the values they had.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd
from torch.nn.utils import parametrize

from leadline.remedies._gain import fan_in
from leadline.remedies._treatment import Treatment


def apply(at: Treatment, *, seed: int = 0) -> str:
    """The weights are drawn from `seed`; global random states are not touched."""
    generator = torch.Generator().manual_seed(seed)
    layers = {name: module for name, module in at.model.named_modules() if isinstance(module, nn.Linear | _ConvNd)}
    others = {id(p) for m in at.model.modules() if m not in layers.values() for p in m.parameters(recurse=False)}
    done: set[int] = set()
    for name, layer in layers.items():
        if parametrize.is_parametrized(layer, "weight") or "weight" not in layer._parameters:
            at.leave(name, "its weight is computed from other parameters")
        elif id(layer.weight) in others:
            at.leave(name, "it shares its weight with something that is no such layer")
        elif id(layer.weight) not in done:
            done.add(id(layer.weight))
            at.write(name, layer.weight, _drawn(layer, generator), words="weights from N(0, 2 / fan_in)")
            if layer.bias is not None:
                at.write(name, layer.bias, torch.zeros_like(layer.bias), words="biases zero")
    return "it has no convolution or linear layer with a weight of its own"


def _drawn(layer: nn.Linear | _ConvNd, generator: torch.Generator) -> Tensor:
    drawn = torch.randn(layer.weight.shape, generator=generator, dtype=torch.float64)
    return drawn * math.sqrt(2 / fan_in(layer))
