"""Table 2: test accuracy on CIFAR-100 and parameters of four architectures, standard and as three kinds of ResNEst.

Reference: Chen, Lee, Garudadri, Rao, ResNEsts and DenseNEsts, appendix B. Wide and ordinary pre-activation networks,
200 epochs of Nesterov momentum 0.9, weight decay 5e-4, batches of 128, rate 0.1 (ResNEst 0.01) divided by five at
epochs 60, 120 and 160, crops and flips, seven starts.
Run: leadline reproduce chen2021_table2 --scale paper (weeks of a GPU; at laptop scale the runs are those of
chen2021_table1).
Expect: all 16 numbers of parameters are the printed ones at every scale; ResNEsts three to five points below the
others, BN-ResNEsts level with standard networks.
Differs: PyTorch's own initialisation, and crops padded by reflection. Laptop and smoke, where only parameters are
decided: trainings are those of chen2021_table1, on CIFAR-10 and on digits, with ten classes; parameters are counted for
a hundred.
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

CLASSES = 100
# accuracy in percent and parameters in millions: Standard, ResNEst, BN-ResNEst, A-ResNEst
PRINTED = {
    "WRN-16-8": (("79.14", "11"), ("75.43", "11"), ("78.99", "11"), ("78.74", "8.9")),
    "WRN-40-4": (("79.08", "9.0"), ("75.16", "9.0"), ("78.97", "9.0"), ("78.62", "8.7")),
    "ResNet-110": (("74.08", "1.7"), ("69.08", "1.7"), ("73.95", "1.7"), ("72.53", "1.9")),
    "ResNet-20": (("68.56", "0.28"), ("64.73", "0.28"), ("68.47", "0.28"), ("68.16", "0.27")),
}
PUBLISHED = scores.published(PRINTED, "Table 2", "cifar100")


def runs(scale: Scale) -> Iterator[Unit]:
    yield shared.counting(CLASSES)
    yield from shared.trainings(scale, CLASSES)


def table(made: Sequence[Made]) -> Table:
    return shared.table(made)


def figure(table: Table) -> "Figure":
    return scores.figure(table, PRINTED, "Table 2")


CLAIMS = (
    *scores.counts("Table 2", PRINTED),
    scores.fewer(3, "all but ResNet-110"),
    *scores.accuracies("Table 2", PRINTED),
)
