"""Fig. 13: condition numbers of hidden representations along linear networks of 164 layers, on MNIST.

Reference: Oyedotun, Al Ismaeil, Aouada, Training Very Deep Neural Networks: Rethinking the Role of Skip Connections,
section 6.4. kappa = sigma_max / sigma_min of a batch of hidden representations after training; no activations.
Run: leadline reproduce oyedotun2021_fig13 --scale paper (days on a GPU; about five minutes at laptop scale).
Expect: what the paper draws is infinite for the plain network in the first layer, high in the others, and finite for
ResNet and ResNeXt. Over the channels the first layer is infinite for all of them, without any fault of depth: nine
pixels of one channel give it a rank of nine for sixteen channels.
Differs: the paper says neither over which mode kappa is taken nor what counts as infinite. Ours are two modes, over the
batch (a column a sample, Definition 2) and over the channels, at boundaries between blocks, on one batch of 64 samples
in training mode; infinite is a singular value not told from zero in single precision. Plain networks are trained with
batch norm and without. Dotted: the same networks at the start. Laptop: 6,400 images averaged over 2x2 pixels, 361
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
from leadline.recipes._oyedotun2021_depth_claims import of_hidden

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TASKS = ("mnist-linear",)
PUBLISHED = Table(net=[], data=[], quantity=[], value=[], source=[])
"""The figure has no numbers beside its axes; what the text says of early layers is in the claims."""


def runs(scale: Scale) -> Iterator[Unit]:
    yield from trainings(scale, *TASKS)
    yield from starts(scale, *TASKS)


def table(made: Sequence[Made]) -> Table:
    return depth.hidden(made)


def figure(table: Table) -> "Figure":
    return depth.figure(table, "Fig. 13: hidden representations, linear networks")


CLAIMS = of_hidden("section 6.4, Fig. 13", until=1)
