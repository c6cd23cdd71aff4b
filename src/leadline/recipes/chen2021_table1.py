"""Table 1: test accuracy on CIFAR-10 and parameters of four architectures, standard and as three kinds of ResNEst.

Reference: Chen, Lee, Garudadri, Rao, ResNEsts and DenseNEsts, appendix B. Wide and ordinary pre-activation networks,
200 epochs of Nesterov momentum 0.9, weight decay 5e-4, batches of 128, rate 0.1 (ResNEst 0.01) divided by five at
epochs 60, 120 and 160, crops and flips, seven starts.
Run: leadline reproduce chen2021_table1 --scale paper (weeks of a GPU; about eight core-minutes at laptop scale).
Expect: all 16 numbers of parameters are the printed ones at every scale; ResNEsts a point or two below the others,
BN-ResNEsts level with standard networks.
Differs: PyTorch's own initialisation, and crops padded by reflection. Laptop, where only parameters are decided:
WRN-16-2, WRN-40-1, ResNet-56 and ResNet-20 for the four, 3,200 images averaged over 2x2 pixels, six epochs of batches
of 64 in bfloat16 with the rate falling at the same shares, one start (ResNet-20 three). Smoke: WRN-10-1 and ResNet-8 of
widths 4, 8, 16 on digits, two epochs.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from leadline.core.config import Scale
from leadline.core.study import Unit
from leadline.core.table import Table
from leadline.recipes import Made
from leadline.recipes import _chen2021 as shared
from leadline.recipes import _chen2021_scores as scores

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CLASSES = 10
# accuracy in percent and parameters in millions: Standard, ResNEst, BN-ResNEst, A-ResNEst
PRINTED = {
    "WRN-16-8": (("95.56", "11"), ("94.39", "11"), ("95.48", "11"), ("95.29", "8.7")),
    "WRN-40-4": (("95.45", "9.0"), ("94.58", "9.0"), ("95.61", "9.0"), ("95.48", "8.4")),
    "ResNet-110": (("94.46", "1.7"), ("92.77", "1.7"), ("94.52", "1.7"), ("93.97", "1.7")),
    "ResNet-20": (("92.60", "0.27"), ("91.02", "0.27"), ("92.56", "0.27"), ("92.47", "0.24")),
}
PUBLISHED = scores.published(PRINTED, "Table 1", "cifar10")


def runs(scale: Scale) -> Iterator[Unit]:
    yield shared.counting(CLASSES)
    yield from shared.trainings(scale, CLASSES)


def table(made: Sequence[Made]) -> Table:
    return shared.table(made)


def figure(table: Table) -> "Figure":
    return scores.figure(table, PRINTED, "Table 1")


CLAIMS = (
    *scores.counts("Table 1", PRINTED),
    scores.fewer(4, "all four"),
    *scores.accuracies("Table 1", PRINTED, bn_higher=("WRN-40-4", "ResNet-110")),
)
