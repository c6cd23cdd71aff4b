"""The least loss any linear heads on the network's features could have, and how far above it the network is.

    A = min over H_0 ... H_L of (1/N) sum_n loss(sum_i H_i v_i(x_n), y_n),    excess = R - A >= 0

v_i is what the last layer of block i's branch weighs, averaged over pixels or tokens, v_0 what the layer that makes x_0
weighs; every head has a bias. Readings: `risk` R, the network's own loss on the same samples; `reached`, the loss of
the best heads, A itself for squared error and at least A for cross-entropy, where L-BFGS finds them with a small ridge;
`excess` = R - reached; `bound` <= R, which for cross-entropy is what the certificate leaves for heads whose scores are
no larger than the network's. One number per block: `risk/prefix`, the least loss found from v_0 ... v_i, and `gain`,
how much v_i lowered it.

Reference: Chen, Lee, Garudadri, Rao, Proposition 2, eqs. (4)-(7), Corollaries 1, 2; Theorem 1 for excess = 0.
The bound goes for networks whose output is affine in the features, eq. (2): from the last block on where a skip has a
layer of its own or an activation follows the sum. Whether it is, is tried on the samples; if not, the note says so.
Normal: excess falls towards 0 in training (0.03 after 120 steps of a pre-activation ResNet-20 on the embedded digits,
2.3 before); where it stays above 0.1 the network does not use features it has: too narrow, coupled, or not trained
yet. `gain` near 0 in late blocks is the paper's diminishing feature reuse.
Cost: one forward pass, in evaluation mode and with its graph, of about `samples` training samples (of the batch where
no training split is at hand), one Gram matrix and Cholesky factor for all prefixes, and `passes` sweeps over the
features for cross-entropy: five training steps at batch 128 for ResNet-110.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

from torch import Tensor

from leadline.core.errors import LeadlineError
from leadline.core.when import Every, When
from leadline.linalg.nested_fit import feature_gram, least_squares_prefixes
from leadline.linalg.nested_softmax import softmax_prefixes
from leadline.probes import Axis, Moment, Reading
from leadline.probes._features import Feature, Features, features, too_many
from leadline.probes._losses import Task, task
from leadline.probes._readings import Noted, missing, profile, scalar
from leadline.taps.tape import Tap

if TYPE_CHECKING:
    from leadline.taps.anatomy import Anatomy

AFFINE = 1e-3
"""Up to this share of the output's deviation may be left by the best affine map of the features."""


@dataclass(frozen=True, kw_only=True)
class RiskLowerBound:
    when: When = Every(500)
    samples: int = 1024
    ridge: float = 1e-4
    passes: int = 60
    axis: ClassVar[Axis] = "block"

    def taps(self, anatomy: "Anatomy") -> Sequence[Tap]:  # noqa: ARG002
        return ()

    def read(self, at: Moment) -> Iterator[Reading]:
        try:
            found = features(at, self.samples)
            wanted = task(found.loss, found.output.values(), found.targets)
        except LeadlineError as error:
            yield missing("bound", str(error))
            return
        yield from self._bound(found, wanted, {gap.after for gap in at.anatomy.gaps})
        yield from self._prefixes(found, wanted)

    def _bound(self, found: Features, wanted: Task, gaps: set[int]) -> Iterator[Reading]:
        chosen, start = found.affine(gaps)
        remark = "; ".join(filter(None, (f"{wanted.kind}, {found.count} samples, eval mode", start)))
        if reason := too_many(sum(one.shape[1] for one in chosen), found.count):
            yield missing("bound", f"{reason}; {remark}")
        else:
            left = _not_affine(chosen, wanted)
            broken = f"no bound for this network, whose output is not affine in the features ({left:.1e} of it is left)"
            remark = f"{broken}; {remark}" if left > AFFINE else remark
            lows, risks, unfinished = self._risks(chosen, wanted)
            low, reached, remark = lows[-1], risks[-1], "; ".join(filter(None, (unfinished, remark)))
            yield scalar("bound", Noted(low, remark))
            yield scalar("reached", Noted(reached, remark))
            yield scalar("excess", Noted(found.loss - reached, remark))
        yield scalar("risk", Noted(found.loss, f"{wanted.kind}, {found.count} samples, eval mode"))

    def _prefixes(self, found: Features, wanted: Task) -> Iterator[Reading]:
        kept, answers, width = [found.first], list[str](), found.first.shape[1]
        for block in found.blocks:
            reason = block if isinstance(block, str) else too_many(width + block.v.shape[1], found.count)
            answers.append(reason)
            if isinstance(block, Feature) and not reason:
                kept.append(block.v)
                width += block.v.shape[1]
        _, risks, unfinished = self._risks(kept, wanted)
        after, gains = iter(risks[1:]), iter([before - risk for before, risk in pairwise(risks)])
        remark = "; ".join(filter(None, (unfinished, f"{wanted.kind}, {found.count} samples, eval mode")))
        yield profile("risk/prefix", [answer or next(after) for answer in answers], remark=remark)
        yield profile("gain", [answer or next(gains) for answer in answers], remark=remark)

    def _risks(self, chosen: list[Tensor], wanted: Task) -> tuple[list[float], list[float], str]:
        """For every prefix a lower bound on the loss of such a network and the loss reached; whether fits are open."""
        moments = feature_gram([(chosen, wanted.targets)], classes=wanted.classes)
        if wanted.kind == "squared error":
            risks = [wanted.factor * risk for risk in least_squares_prefixes(moments).risk]
            return risks, risks, ""
        centred = wanted.scores - wanted.scores.mean(1, keepdim=True)
        square = float(centred.square().sum(1).mean())
        fits = softmax_prefixes(lambda: [(chosen, wanted.targets)], moments, ridge=self.ridge, passes=self.passes)
        lows = [max(0.0, min(risk, fits.risk_bound(prefix, square))) for prefix, risk in enumerate(fits.risk)]
        left = len(fits.converged) - sum(fits.converged)
        return lows, list(fits.risk), f"{left} fits not converged in {fits.passes} passes" if left else ""


def _not_affine(chosen: list[Tensor], wanted: Task) -> float:
    """How much of the network's output, root mean square over its deviation, no affine map of the features gives."""
    left = least_squares_prefixes(feature_gram([(chosen, wanted.scores)])).risk[-1]
    own = float((wanted.scores - wanted.scores.mean(0)).square().sum(1).mean()) / 2
    return (max(0.0, left) / own) ** 0.5 if own else 0.0
