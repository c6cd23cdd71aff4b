"""Table 2: train and test accuracy on CIFAR-10 of networks of 110 layers, plain and with skip connections.

Reference: Oyedotun, Al Ismaeil, Aouada, Training Very Deep Neural Networks: Rethinking the Role of Skip Connections,
sections 6.1 and 6.2. ReLU networks of 110 layers at He initialisation, batches of 128, weight decay 1e-4, learning rate
between 0.0001 and 0.1, up to 200 epochs.
Run: leadline reproduce oyedotun2021_table2 --scale paper (days on a GPU; about five minutes at laptop scale).
Expect: plain networks at chance with batch norm and without, ResNet and ResNeXt far above it.
Differs: the paper leaves open blocks, widths, shortcuts, cardinality, norm and schedule. Ours: basic blocks 16-32-64
with 1x1 projections, ResNeXt of 8 paths in bottlenecks, batch norm except where its lack is said, rate 0.1 divided by
ten at epochs 60, 120 and 160, three seeds. ResNet without norm is a control of ours. Laptop: 3,200 images averaged over
2x2 pixels, 361 steps of 64 in bfloat16, residual networks from 0.02. Smoke: 20 layers on digits, 13 steps.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from leadline.core.config import Scale
from leadline.core.study import Unit
from leadline.core.table import Table
from leadline.recipes import Made
from leadline.recipes import _oyedotun2021_scores as shared
from leadline.recipes._oyedotun2021 import NETS, trainings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NUMBERS = {"PlainNet": (10.26, 10.05), "ResNet": (99.98, 93.29), "ResNeXt": (99.98, 93.65)}
PUBLISHED = shared.published(NUMBERS, "Table 2")


def runs(scale: Scale) -> Iterator[Unit]:
    yield from trainings(scale, "cifar10", nets=tuple(NETS))


def table(made: Sequence[Made]) -> Table:
    return shared.scores(made)


def figure(table: Table) -> "Figure":
    return shared.figure(table, NUMBERS, "Table 2")


CLAIMS = (*shared.claims("Table 2", NUMBERS), shared.SKIPS_ALONE)
