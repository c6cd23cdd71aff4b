"""How far a residual block may change the gradient's norm by its weights, beside how far it does.

    (1 - delta_l) ||dE/dx_{l+1}|| <= ||dE/dx_l|| <= (1 + delta_l) ||dE/dx_{l+1}||,    delta_l = c_rho^2 ||W2|| ||W1||

for x_{l+1} = x_l + W2 rho(W1 rho(x_l)), spectral norms and c_rho = sup |rho'|. Here delta_l is the product over all
operations of the branch, whatever they are: also norms (largest scale over smallest deviation), pooling, several
branches in a row. Readings, one number per block: `delta`, `deviation` = | ||dE/dx_l|| / ||dE/dx_{l+1}|| - 1 |, which
is at most delta, and `ratio` = ||dE/dx_{l+1}|| / ||dE/dx_l||. For the L blocks with identity skips `theorem1/rate` =
log(2L) / L and `theorem2/rate` = 1 / L, the rates at which the deviation may shrink with depth, and `theorem1/c`,
`theorem2/c`: the largest deviation over the rate, which is to stay put while L grows.

Reference: Zaeemzadeh, Rahnavard, Shah, Corollary 1; Theorem 1 (non-linear blocks), Theorem 2 (linear ones).
Only blocks with identity skips are covered; attention has no finite norm, and its blocks say so. An activation after
the sum leaves the upper side alone.
Normal: deviation 0.02 to 0.9 in ResNet-110 at initialisation, the early blocks highest; 0.2 to 0.8 in a trained
ResNet-20; smaller the deeper the network (the paper's Fig. 3). delta is 4 to 30 there, far above: with batch norm the
worst directions of all layers do not line up. Below 1 for weights that are kept small.
Cost: one forward and backward pass of `samples` samples, in the mode the model is in and without autocast, and the
norms of all weights on branches: two training steps at batch 128 for ResNet-110.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge

from leadline.core.errors import LeadlineError, UsageError
from leadline.core.when import Every, When
from leadline.probes import Axis, Moment, Reading
from leadline.probes._gains import SLOPES, gain
from leadline.probes._passes import batch_size, failure, is_empty, listen, mode, no_chain, require_graph, samples
from leadline.probes._readings import Found, Noted, missing, profile, scalar
from leadline.taps.dataflow import Flow, Value, ancestry, operation, order, value_of
from leadline.taps.inputs import Inputs
from leadline.taps.reductions import FROBENIUS
from leadline.taps.skips import SUMS, VIEWS
from leadline.taps.tape import Tap

if TYPE_CHECKING:
    from leadline.taps.anatomy import Anatomy


@dataclass(frozen=True, kw_only=True)
class NormBound:
    when: When = Every(500)
    samples: int = 128
    axis: ClassVar[Axis] = "block"

    def taps(self, anatomy: "Anatomy") -> Sequence[Tap]:  # noqa: ARG002
        return ()

    def read(self, at: Moment) -> Iterator[Reading]:
        blocks = at.anatomy.blocks
        if not blocks:
            yield missing("delta", no_chain(at))
            return
        inputs = samples(at.inputs, self.samples)
        try:
            if is_empty(inputs):
                raise UsageError("the batch has no samples")
            require_graph(at, inputs)
        except LeadlineError as error:
            yield missing("delta", str(error))
            return
        found = _Pass(at, inputs)
        remark = f"{batch_size(inputs)} samples, {mode(at.model)} mode"
        pairs = [found.norms(place) for place in range(len(blocks))]
        deviations = [pair if isinstance(pair, str) else abs(pair[0] / pair[1] - 1) for pair in pairs]
        deltas = [found.delta(place) for place in range(len(blocks))]
        yield profile("delta", deltas, remark=remark)
        yield profile("deviation", deviations, remark=remark)
        yield profile("ratio", [pair if isinstance(pair, str) else pair[1] / pair[0] for pair in pairs], remark=remark)
        yield from _rates([one for one, block in zip(deviations, blocks, strict=True) if block.kind == "identity"])


def _rates(deviations: Sequence[float | str]) -> Iterator[Reading]:
    """Theorems 1 and 2 for as many blocks as have an identity skip."""
    count, known = len(deviations), [one for one in deviations if not isinstance(one, str)]
    if not count:
        yield missing("theorem1/rate", "no block has an identity skip")
        return
    for name, rate in (("theorem1", math.log(2 * count) / count), ("theorem2", 1 / count)):
        yield scalar(f"{name}/rate", rate)
        yield scalar(f"{name}/c", max(known) / rate if known else "no block with an identity skip was measured")


class _Pass:
    """One forward and backward pass: where the boundaries lie in the graph, and the gradients that reached them."""

    def __init__(self, at: Moment, inputs: Inputs) -> None:
        self.at, self.inputs = at, inputs
        self.places = [place for block in at.anatomy.blocks for place in (block.input, block.output)]
        self.taps = [Tap(place, FROBENIUS, of="gradient") for place in self.places]
        self.met: dict[int, Value | None] = {}
        self.trouble = ""
        self.edges, self.heard = listen(
            at, inputs, self.places, self._meet, gradients=True, also=self.taps, then=self._backward
        )
        ends = [edge for edge in self.edges if isinstance(edge, tuple)]
        self.everything = ancestry(max(ends, key=order)) if ends else {}

    def _meet(self, place: int, tensor: Tensor) -> Value | None:
        self.met[place] = value_of(tensor)
        return self.met[place]

    def _backward(self, output: Any) -> None:
        """Back to the first boundary, which no parameter's hook takes part in; the graph is kept."""
        first = self.met.get(0)
        if self.at.loss_fn is None or first is None:
            self.trouble = "there is no loss function" if self.at.loss_fn is None else "the first boundary is not known"
            return
        try:
            loss = self.at.loss_fn(output, self.inputs.targets)
            torch.autograd.grad(loss, [GradientEdge(*first)], retain_graph=True, allow_unused=True)
        except Exception as error:  # somebody's loss function
            self.trouble = failure(error)

    def norms(self, block: int) -> tuple[float, float] | str:
        """||dE/dx|| at the input and at the output of a block, or why there is no ratio."""
        taps = self.taps[2 * block : 2 * block + 2]
        if why := self.trouble or next((self.heard.why(tap) for tap in taps if tap not in self.heard), ""):
            return why
        before, after = (float(self.heard[tap]) for tap in taps)
        if not (math.isfinite(before) and math.isfinite(after)):
            return "the gradient is not finite"
        return (before, after) if before and after else "the gradient is zero"

    def delta(self, block: int) -> Found:
        """delta_l by the operations between the block's input and output."""
        start, end = self.edges[2 * block : 2 * block + 2]
        if not isinstance(start, tuple) or not isinstance(end, tuple):
            return next((edge for edge in (start, end) if isinstance(edge, str)), "autograd does not follow it")
        try:
            return self._delta(Flow(self.everything, [start]), start, end)
        except (LeadlineError, RuntimeError, AttributeError) as error:
            return str(error).splitlines()[0]

    def _delta(self, flow: Flow, start: Value, end: Value) -> Found:
        total, after = end, list[str]()
        while operation(total) in SLOPES and len(flow.inside(total)) == 1:
            after.append(operation(total))
            (total,) = flow.inside(total)
        if not _has_identity(flow, start, total):
            return "it is not its input plus something, which Corollary 1 is about"
        bound = gain(flow, start, total) - 1
        if any(SLOPES[name] > 1 for name in after):
            return f"{', '.join(after)} after the sum is not what Corollary 1 is about"
        return Noted(bound, f"{', '.join(after)} after the sum: only the upper side holds") if after else bound


def _has_identity(flow: Flow, start: Value, end: Value) -> bool:
    """Whether sums and views alone lead from the start to the end."""
    stack, seen = [end], {end}
    while stack:
        value = stack.pop()
        if value == start:
            return True
        for parent in flow.inside(value) if operation(value) in SUMS | VIEWS else ():
            if parent not in seen:
                seen.add(parent)
                stack.append(parent)
    return False
