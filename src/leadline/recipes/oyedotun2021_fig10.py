"""Fig. 10: condition numbers of the weights along networks of 200 layers, on MNIST.

Reference: Oyedotun, Al Ismaeil, Aouada, Training Very Deep Neural Networks: Rethinking the Role of Skip Connections,
section 6.3. kappa = sigma_max / sigma_min of every layer's weights after training, by HOSVD.
Run: leadline reproduce oyedotun2021_fig10 --scale paper (days on a GPU; about eight minutes at laptop scale).
Expect: what the paper says is generally higher in the plain network than in ResNet and ResNeXt. Weights are regular at
the start, by whatever architecture, so that any difference is one of training.
Differs: the paper does not say which mode of the HOSVD it prints; ours is the largest over the modes. Those of ResNeXt
are larger at the start already, as its bottlenecks have square and nearly square matrices. Plain networks are trained
with batch norm and without. Dotted: the same networks at the start. Laptop: 6,400 images averaged over 2x2 pixels, 361
steps; smoke: 20 layers on digits, 13 steps.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from leadline.core.config import Scale
from leadline.core.study import Unit
from leadline.core.table import Table
from leadline.recipes import Made
from leadline.recipes import _oyedotun2021_depth as depth
from leadline.recipes._oyedotun2021 import starts, trainings
from leadline.recipes._oyedotun2021_depth_claims import of_weights

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TASKS = ("mnist-200",)
PUBLISHED = Table(net=[], data=[], quantity=[], value=[], source=[])
"""The figure has no numbers beside its axes."""


def runs(scale: Scale) -> Iterator[Unit]:
    yield from trainings(scale, *TASKS)
    yield from starts(scale, *TASKS)


def table(made: Sequence[Made]) -> Table:
    return depth.weights(made)


def figure(table: Table) -> "Figure":
    return depth.figure(table, "Fig. 10: weights")


CLAIMS = of_weights("section 6.3, Fig. 10")
