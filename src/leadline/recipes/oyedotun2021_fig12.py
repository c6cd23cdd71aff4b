"""Fig. 12: condition numbers of the weights along linear networks of 164 layers, on MNIST.

Reference: Oyedotun, Al Ismaeil, Aouada, Training Very Deep Neural Networks: Rethinking the Role of Skip Connections,
section 6.4. kappa = sigma_max / sigma_min of every layer's weights after training, by HOSVD; no activations.
Run: leadline reproduce oyedotun2021_fig12 --scale paper (days on a GPU; about five minutes at laptop scale).
Expect: what the paper says is high in the plain network as compared to ResNet and ResNeXt. Without batch norm a linear
network of this depth at He initialisation has outputs of 2^80 and cannot be trained at any ordinary rate.
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

TASKS = ("mnist-linear",)
PUBLISHED = Table(net=[], data=[], quantity=[], value=[], source=[])
"""The figure has no numbers beside its axes."""


def runs(scale: Scale) -> Iterator[Unit]:
    yield from trainings(scale, *TASKS)
    yield from starts(scale, *TASKS)


def table(made: Sequence[Made]) -> Table:
    return depth.weights(made)


def figure(table: Table) -> "Figure":
    return depth.figure(table, "Fig. 12: weights, linear networks")


CLAIMS = of_weights("section 6.4, Fig. 12")
