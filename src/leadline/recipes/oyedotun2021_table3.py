"""Table 3: train and test accuracy on CIFAR-100 of networks of 101 layers, plain and with skip connections.

Reference: Oyedotun, Al Ismaeil, Aouada, Training Very Deep Neural Networks: Rethinking the Role of Skip Connections,
sections 6.1 and 6.2. ReLU networks of 101 layers at He initialisation, batches of 128, weight decay 1e-4, learning rate
between 0.0001 and 0.1, up to 200 epochs, crops and flips.
Run: leadline reproduce oyedotun2021_table3 --scale paper (days on a GPU; about four minutes at laptop scale).
Expect: plain networks far below ResNet and ResNeXt, with batch norm and without. At 3.72% the published plain network
is above twice chance, so that it is held against what ResNet learned.
Differs: the paper leaves open blocks, widths, shortcuts, cardinality, norm and schedule; ours are those of
oyedotun2021_table2, in bottleneck blocks, as 101 is 9 x 11 + 2. Laptop: CIFAR-10 stands in for CIFAR-100, 3,200 images
averaged over 2x2 pixels, 361 steps of 64; oyedotun2021_table4 has the same runs there. Smoke: 20 layers on digits, 13
steps.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from leadline.core.config import Scale
from leadline.core.study import Unit
from leadline.core.table import Table
from leadline.recipes import Made
from leadline.recipes import _oyedotun2021_scores as shared
from leadline.recipes._oyedotun2021 import trainings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NUMBERS = {"PlainNet": (3.72, 3.68), "ResNet": (99.84, 72.27), "ResNeXt": (99.99, 72.43)}
PUBLISHED = shared.published(NUMBERS, "Table 3")


def runs(scale: Scale) -> Iterator[Unit]:
    yield from trainings(scale, "cifar100-101")


def table(made: Sequence[Made]) -> Table:
    return shared.scores(made)


def figure(table: Table) -> "Figure":
    return shared.figure(table, NUMBERS, "Table 3")


CLAIMS = shared.claims("Table 3", NUMBERS, at_chance=False)
