"""How much of every block's feature the features before it predict linearly.

    predictable_i = 1 - |V_i - [1 V_0 ... V_{i-1}] B|_F^2 / |V_i - mean V_i|_F^2,    B the least-squares solution

V_i (samples x K_i) is v_i, what the last layer of block i's branch weighs, averaged over pixels or tokens; v_0 is what
the layer that makes x_0 weighs, or x_0 itself. One number per block.

Reference: Chen, Lee, Garudadri, Rao, section 2.4, eq. (7): a feature that earlier ones predict linearly cannot improve
what is predicted from them.
Normal: 0.2 to 0.95, median 0.8 at initialisation and 0.9 after training (pre-activation ResNet-20 on 768 of the
embedded digits). At 1 a block adds nothing that a linear head did not have before; rising along depth is the paper's
diminishing feature reuse. With hardly more samples than earlier features the number nears 1 by itself: compare at the
same number of samples, a few times the number of features.
Cost: one forward pass, in evaluation mode and with its graph, of about `samples` training samples (of the batch where
no training split is at hand), and one Gram matrix of all features in float64: four training steps at batch 128 for
ResNet-110.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch

from leadline.core.errors import LeadlineError
from leadline.core.when import Every, When
from leadline.linalg.nested_fit import factorise, feature_gram
from leadline.probes import Axis, Moment, Reading
from leadline.probes._features import Feature, Features, features, too_many
from leadline.probes._readings import Found, missing, profile
from leadline.taps.tape import Tap

if TYPE_CHECKING:
    from leadline.taps.anatomy import Anatomy


@dataclass(frozen=True, kw_only=True)
class FeaturePredictability:
    when: When = Every(500)
    samples: int = 1024
    axis: ClassVar[Axis] = "block"

    def taps(self, anatomy: "Anatomy") -> Sequence[Tap]:  # noqa: ARG002
        return ()

    def read(self, at: Moment) -> Iterator[Reading]:
        try:
            found = features(at, self.samples)
            yield profile("predictable", predictable(found), remark=f"{found.count} samples, eval mode")
        except LeadlineError as error:
            yield missing("predictable", str(error))


def predictable(found: Features) -> list[Found]:
    """For every block, or why there is no number."""
    kept, answers, width = [found.first], list[Found](), found.first.shape[1]
    for block in found.blocks:
        reason = too_many(width, found.count) if isinstance(block, Feature) else block
        answers.append(reason)
        if isinstance(block, Feature) and not reason:
            kept.append(block.v)
            width += block.v.shape[1]
    shares = factorise(feature_gram([(kept, torch.zeros(found.count, 1))])).unpredictable[1:]
    known = iter(shares)
    return [answer or 1 - next(known) for answer in answers]
