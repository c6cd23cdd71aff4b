"""An upper bound on the spectral norm of a stretch of a network's Jacobian, from the operations autograd recorded.

Compositions multiply, sums add, concatenations add in squares. A layer contributes the norm of its matrix or kernel
(with zero padding at most that on the infinite plane), an activation the supremum of its slope, a norm its largest
scale over the smallest deviation it met; a value that is multiplied by another that also depends on the input has no
bound, and says so.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from leadline.core.errors import LeadlineError
from leadline.linalg.conv_spectrum import GRID, supremum
from leadline.linalg.gram import root_eigenvalues, small_grams
from leadline.linalg.polyphase import layout
from leadline.taps.dataflow import Flow, Value, operation
from leadline.taps.skips import VIEWS

OPERATIONS = 3e8
"""A kernel whose frequencies need more is bounded by its unfoldings instead: above 128 channels of 3 x 3."""

SLOPES = dict.fromkeys(("relu", "threshold", "hardtanh", "tanh", "softplus", "hardshrink", "neg"), 1.0) | {
    "sigmoid": 0.25,
    "hardsigmoid": 1 / 6,
    "silu": 1.1,
    "mish": 1.09,
    "gelu": 1.13,
    "hardswish": 1.5,
}
"""The suprema of |rho'|."""

PARTS = VIEWS | {"slice", "select", "split", "splitwithsizes", "unbind", "roll", "flip", "constantpadnd", "mean"}

Gains = Sequence[float | None]
"""For every argument of an operation the bound on what leads to it; None where it does not depend on the start."""


class Unbounded(LeadlineError):
    """There is an operation on the way whose slope is not bounded, or not known to be."""


def gain(flow: Flow, start: Value, end: Value) -> float:
    """At least ||d end / d start||_2; the flow is that from `start`."""
    values = flow.between(start, end)[1:]
    if strange := dict.fromkeys(name for value in values if (name := operation(value)) not in RULES):
        raise Unbounded(f"no bound is known for {', '.join(strange)}")
    gains = {start: 1.0}
    for value in values:
        parents = [None if node is None else (node, number) for node, number in value[0].next_functions]
        gains[value] = RULES[operation(value)](value[0], [gains.get(p) if p else None for p in parents])
    return gains[end]


def _only(gains: Gains, place: int = 0) -> float:
    """The bound on the only argument that depends on the start, which has to be number `place`."""
    given = gains[place] if place < len(gains) else None
    if given is None or sum(one is not None for one in gains) != 1:
        raise Unbounded("two values that both depend on the block's input are multiplied")
    return given


def _activation(slope: float) -> Callable[[Any, Gains], float]:
    return lambda _, gains: slope * _only(gains)


def _add(node: Any, gains: Gains) -> float:
    first, second = (one or 0.0 for one in (*gains, None)[:2])
    return _spread(node, gains) * (first + abs(float(getattr(node, "_saved_alpha", 1))) * second)


def _multiply(node: Any, gains: Gains) -> float:
    place = 0 if gains[0] is not None else 1
    other = node._saved_other if place == 0 else node._saved_self
    return _spread(node, gains) * _only(gains, place) * _largest(other)


def _divide(node: Any, gains: Gains) -> float:
    return _spread(node, gains) * _only(gains) / float(torch.as_tensor(node._saved_other).abs().min())


def _spread(node: Any, gains: Gains) -> float:
    """sqrt of how often broadcasting repeats an argument's entries, at most."""
    whole = math.prod(node._input_metadata[0].shape)
    sizes = [
        math.prod(parent._input_metadata[number].shape)
        for (parent, number), one in zip(node.next_functions, gains, strict=True)
        if one is not None
    ]
    return math.sqrt(max(whole / max(1, size) for size in sizes))


def _convolve(node: Any, gains: Gains) -> float:
    return _only(gains) * kernel_norm(
        node._saved_weight, stride=node._saved_stride, dilation=node._saved_dilation, groups=node._saved_groups
    )


def _linear(node: Any, gains: Gains) -> float:
    """addmm (bias, left, right) or mm (left, right)."""
    added = hasattr(node, "_saved_mat1")
    left = 1 if added else 0
    if gains[left] is not None:
        return _only(gains, left) * matrix_norm(node._saved_mat2)
    return _only(gains, left + 1) * matrix_norm(node._saved_mat1 if added else node._saved_self)


def _batch_norm(node: Any, gains: Gains) -> float:
    if node._saved_training:
        scale = float(node._saved_result2.detach().max())
    else:
        scale = float((node._saved_running_var + node._saved_eps).rsqrt().max())
    return _only(gains) * scale * _largest(node._saved_weight)


def _norm(node: Any, gains: Gains) -> float:
    return _only(gains) * float(node._saved_result2.detach().max()) * _largest(node._saved_weight)


def _elu(node: Any, gains: Gains) -> float:
    outer = abs(float(node._saved_scale))
    return _only(gains) * outer * max(1.0, abs(float(node._saved_alpha) * float(node._saved_input_scale)))


def _max_pool(node: Any, gains: Gains) -> float:
    """An entry is the largest of at most this many windows."""
    sizes = node._saved_kernel_size
    windows = (-(-size // stride) for size, stride in zip(sizes, node._saved_stride or sizes, strict=True))
    return _only(gains) * math.sqrt(math.prod(windows))


def _average_pool(node: Any, gains: Gains) -> float:
    if node._saved_divisor_override or (any(node._saved_padding) and not node._saved_count_include_pad):
        raise Unbounded("no bound is known for average pooling that does not divide by its window")
    return _only(gains)


RULES: dict[str, Callable[[Any, Gains], float]] = {
    **dict.fromkeys(PARTS, lambda _, gains: _only(gains)),
    **{name: _activation(slope) for name, slope in SLOPES.items()},
    **dict.fromkeys(("add", "sub"), _add),
    **dict.fromkeys(("cat", "stack"), lambda _, gains: math.sqrt(sum((one or 0.0) ** 2 for one in gains))),
    **dict.fromkeys(("layernorm", "groupnorm"), _norm),
    **dict.fromkeys(("avgpool1d", "avgpool2d", "avgpool3d"), _average_pool),
    **dict.fromkeys(("maxpool2dwithindices", "maxpool3dwithindices"), _max_pool),
    "mul": _multiply,
    "div": _divide,
    "convolution": _convolve,
    "linear": _linear,
    "batchnorm": _batch_norm,
    "leakyrelu": lambda node, gains: _only(gains) * max(1.0, abs(float(node._saved_negative_slope))),
    "elu": _elu,
    "dropout": lambda node, gains: _only(gains) / (1 - float(node._saved_p)),
}


def _largest(scale: Tensor | float | None) -> float:
    return 1.0 if scale is None else float(torch.as_tensor(scale).detach().abs().max())


def matrix_norm(matrix: Tensor) -> float:
    """sigma_max, from the Gram matrix on the shorter side in float64."""
    return float(root_eigenvalues(small_grams(matrix.detach()[None]))[0, -1])


def kernel_norm(kernel: Tensor, *, stride: Sequence[int], dilation: Sequence[int], groups: int) -> float:
    """At least the norm of a convolution, or of the transposed one, on maps of any size padded with zeros.

    sup |P(u)| over its frequencies; of a large kernel with k taps sqrt(k) times the smaller norm of its unfoldings,
    d x c k and d k x c, since P(u) is one of them times a matrix of norm sqrt(k).
    """
    kernel = kernel.detach()
    form = layout(tuple(kernel.shape), stride=tuple(stride), dilation=tuple(dilation), groups=groups)
    frequencies = math.prod(GRID * (taps - 1) or 1 for taps in form.axes) / 2
    if groups * min(form.matrix) ** 3 * frequencies <= OPERATIONS:
        return supremum(kernel, form)
    sides = (kernel.flatten(1), kernel.transpose(0, 1).flatten(1))
    return math.sqrt(math.prod(kernel.shape[2:])) * min(map(matrix_norm, sides[: 1 + (groups == 1)]))
