"""The graph autograd recorded, as a flow of values from a source to the model's latest output."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

from torch import Tensor
from torch.autograd.graph import get_gradient_edge

Value = tuple[Any, int]
"""An autograd node and which of its outputs: the identity of a tensor together with its in-place version."""


def value_of(tensor: Tensor) -> Value | None:
    """The value a tensor holds now; None if autograd does not follow it."""
    if not tensor.requires_grad or (tensor.is_leaf and tensor.is_inference()):
        return None
    edge = get_gradient_edge(tensor)
    return edge.node, edge.output_nr


def order(value: Value) -> int:
    """The later an operation was recorded, the larger; a leaf, which none made, is before all of them."""
    return -1 if hasattr(value[0], "variable") else int(value[0]._sequence_nr())


_SPOKEN = {"addmm": "linear", "mm": "linear", "bmm": "matmul", "reshapealias": "reshape", "unsafeview": "view"}


def operation(value: Value) -> str:
    """What computed the value: `ConvolutionBackward0` is `convolution`, on every device `batchnorm`."""
    name = str(value[0].name()).rsplit("::", 1)[-1]
    if name.startswith("BackwardHookFunction"):  # of somebody's full backward hook: it passes values on
        return "alias"
    name = name.split("Backward")[0].lower()
    for prefix in ("native", "cudnn", "miopen", "mkldnn", "adaptive"):
        name = name.removeprefix(prefix)
    return "attention" if name.startswith("scaleddotproduct") else _SPOKEN.get(name, name)


def ancestry(end: Value) -> dict[Value, tuple[Value, ...]]:
    """Every value `end` was computed from with its direct parents, oldest first (parents before children)."""
    parents: dict[Value, tuple[Value, ...]] = {}
    found: dict[Value, tuple[Value, ...]] = {}
    stack = [end]
    while stack:
        value = stack[-1]
        if value in parents:
            stack.pop()
        elif value not in found:
            found[value] = tuple((node, number) for node, number in value[0].next_functions if node is not None)
            stack.extend(parent for parent in found[value] if parent not in parents)
        else:
            parents[value] = found[value]
            stack.pop()
    return parents


class Flow:
    """The values that descend from the sources and lead to the end, in topological order.

    A value is a *cut* when every path from the sources to the end passes through it: no edge of the graph jumps over
    its place in the order. Cuts are the candidates for boundaries between blocks; a skip hides what lies beneath it.
    """

    def __init__(self, parents: dict[Value, tuple[Value, ...]], sources: Iterable[Value]) -> None:
        self.everything = parents
        self.position: dict[Value, int] = {}
        starts = set(sources)
        for value, direct in parents.items():
            if value in starts or any(parent in self.position for parent in direct):
                self.position[value] = len(self.position)
        self.values = list(self.position)
        self._starts = [self.position[value] for value in starts if value in self.position]

    def __len__(self) -> int:
        return len(self.values)

    def inside(self, value: Value) -> list[Value]:
        """The direct parents of `value` that belong to the flow, with repetitions."""
        return [parent for parent in self.everything[value] if parent in self.position]

    @cached_property
    def cuts(self) -> list[Value]:
        return cuts(self.values, self.everything, far=max(self._starts, default=0))

    def between(self, start: Value, end: Value) -> list[Value]:
        """The values on some path from `start` to `end`, in order, both included; empty if there is none."""
        first = self.position[start]
        seen, stack = {end}, [end]
        while stack:
            for parent in self.inside(stack.pop()):
                if parent not in seen and self.position[parent] > first:
                    seen.add(parent)
                    stack.append(parent)
        reached: dict[Value, None] = {start: None}
        for value in sorted(seen, key=self.position.__getitem__):
            if any(parent in reached for parent in self.inside(value)):
                reached[value] = None
        return list(reached) if end in reached else []


def cuts(values: Sequence[Value], parents: dict[Value, tuple[Value, ...]], *, far: int = 0) -> list[Value]:
    """Those of topologically ordered `values` that no edge among them jumps over; `far`: where the last source is."""
    position = {value: index for index, value in enumerate(values)}
    reach = [0] * len(values)  # the farthest child of each value
    for index, value in enumerate(values):
        for parent in parents[value]:
            if parent in position:
                reach[position[parent]] = max(reach[position[parent]], index)
    found = []
    for index, value in enumerate(values):
        if far <= index:
            found.append(value)
        far = max(far, reach[index])
    return found
