"""Table 4: train and test accuracy on ImageNet of networks of 101 layers, plain and with skip connections.

Reference: Oyedotun, Al Ismaeil, Aouada, Training Very Deep Neural Networks: Rethinking the Role of Skip Connections,
sections 6.1 and 6.2. ReLU networks of 101 layers at He initialisation, batches of 128, weight decay 1e-4, learning rate
between 0.0001 and 0.1, up to 200 epochs, crops and flips; top-1 accuracy.
Run: leadline reproduce oyedotun2021_table4 --scale paper (days on a GPU; about four minutes at laptop scale).
Expect: plain networks far below ResNet and ResNeXt, with batch norm and without. Section 6.1 says that only ResNet and
ResNeXt were trained on ImageNet, while the table has a plain network at 15.37%, far above chance; ours is held against
what ResNet learned.
Differs: the paper leaves open blocks, widths, shortcuts, cardinality, norm and schedule; ours are those of
oyedotun2021_table2, with the stages of the usual ResNet-101 and 32 paths of width 4 in ResNeXt; 200 epochs at the same
rates as on small images. Laptop: CIFAR-10 stands in for ImageNet, 3,200 images averaged over 2x2 pixels, 361 steps of
64, networks for small images; oyedotun2021_table3 has the same runs there. Smoke: 20 layers on digits, 13 steps.
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

NUMBERS = {"PlainNet": (15.37, 14.94), "ResNet": (88.56, 77.32), "ResNeXt": (89.74, 78.48)}
PUBLISHED = shared.published(NUMBERS, "Table 4")


def runs(scale: Scale) -> Iterator[Unit]:
    yield from trainings(scale, "imagenet")


def table(made: Sequence[Made]) -> Table:
    return shared.scores(made)


def figure(table: Table) -> "Figure":
    return shared.figure(table, NUMBERS, "Table 4")


CLAIMS = shared.claims("Table 4", NUMBERS, at_chance=False)
