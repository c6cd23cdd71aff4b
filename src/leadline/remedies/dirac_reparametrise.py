"""Dirac kernels: the skip inside the convolution, W -> beta W / |W| + diag(alpha) delta (Zagoruyko and Komodakis 2017).

Changes: the convolutions of blocks without skips that keep channels and size (stride 1, an odd kernel larger than
1x1, "same" padding). delta is the kernel that passes every channel on: with alpha = 1, beta = 0.1 per output channel
such a layer starts as x plus a small branch, whatever W is. `form="additive"` is W + diag(a) delta with a = 1
(Oyedotun et al., eq. (28)): right afterwards the layer computes conv(x) + x.
Helps: plain nets that have to stay plain. It mimics a skip at the start only: nothing keeps a at 1 in training
(Oyedotun et al., section 6.5 (c)), and the skip has length one, whose conditioning grows with depth (Li et al.,
Theorem 2). The additive form doubles the signal at every layer and overflows in deep nets without norms.
Costs: two numbers per channel (one if additive), the sum of two kernels in each pass. State dicts have other names,
`weight` being computed; `torch.nn.utils.parametrize.remove_parametrizations` folds it for good.
Undone: by taking the parametrisation away; W is what it was.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import parametrize

from leadline.core.errors import unknown
from leadline.models.dirac import PARAMETRISATIONS, DiracConv2d
from leadline.remedies._treatment import Treatment

Conv = nn.Conv1d | nn.Conv2d | nn.Conv3d


class Dirac(nn.Module):
    """W + diag(alpha) delta, or with `beta` beta W / |W| + diag(alpha) delta, for kernels W of (d, c / groups, ...)."""

    def __init__(self, weight: Tensor, *, groups: int, normalised: bool) -> None:
        super().__init__()
        new: dict[str, Any] = {"dtype": weight.dtype, "device": weight.device}
        self.alpha = nn.Parameter(torch.ones(len(weight), **new))
        self.beta = nn.Parameter(torch.full((len(weight),), 0.1, **new)) if normalised else None
        delta = nn.init.dirac_(torch.zeros(weight.shape, **new), groups)
        self.register_buffer("delta", delta, persistent=False)

    def forward(self, weight: Tensor) -> Tensor:
        each = (-1, *[1] * (weight.ndim - 1))
        if self.beta is not None:
            weight = self.beta.view(each) * functional.normalize(weight.flatten(1)).view_as(weight)
        kernel: Tensor = weight + self.alpha.view(each) * self.get_buffer("delta")
        return kernel


def apply(at: Treatment, *, form: str = "normalised") -> str:
    """`form` is "additive" or "normalised"."""
    if form not in PARAMETRISATIONS:
        raise unknown("form", form, PARAMETRISATIONS)
    words = "W + diag(1) delta" if form == "additive" else "0.1 W / |W| + diag(1) delta"
    plain = [block for block in at.anatomy.blocks if block.kind == "plain"]
    for name in dict.fromkeys(name for block in plain for name in block.modules):
        for inner, conv in at.model.get_submodule(name).named_modules(prefix=name):
            if inner not in at.changed and keeps_all(conv):
                _reparametrise(at, conv, normalised=form == "normalised")
                at.say(inner, f"kernel {words}")
    return (
        "its blocks without skips have no convolution that keeps channels and size"
        if plain
        else "every block has a skip"
    )


def keeps_all(conv: nn.Module) -> bool:
    """An ordinary convolution whose delta kernel is the identity on its maps, and not only a pixel by itself."""
    if not isinstance(conv, Conv) or isinstance(conv, DiracConv2d) or parametrize.is_parametrized(conv, "weight"):
        return False
    odd = all(k % 2 == 1 for k in conv.kernel_size) and max(conv.kernel_size) > 1
    same = tuple(d * (k - 1) // 2 for k, d in zip(conv.kernel_size, conv.dilation, strict=True))
    return odd and conv.in_channels == conv.out_channels and set(conv.stride) == {1} and conv.padding in (same, "same")


def _reparametrise(at: Treatment, conv: Conv, *, normalised: bool) -> None:
    at.surgery.reshape(conv)
    dirac = Dirac(conv.weight, groups=conv.groups, normalised=normalised).train(conv.training)
    parametrize.register_parametrization(conv, "weight", dirac)
    at.parameters += dirac.parameters()
