"""Fig. 2: training loss and accuracy of plain and residual networks while they train, on CIFAR-100.

Reference: Oyedotun, Al Ismaeil, Aouada, Training Very Deep Neural Networks: Rethinking the Role of Skip Connections,
section 6.2. Loss, on a log axis, and accuracy on the training data of CIFAR-100 while the networks train.
Run: leadline reproduce oyedotun2021_fig2 --scale paper (days on a GPU; about five minutes at laptop scale).
Expect: plain networks stay at chance, and with batch norm have losses far above it once a large update has been made;
ResNet and ResNeXt train.
Differs: plain networks are trained with batch norm and without, as the paper leaves that open. Captions and text
disagree on 101 and 110 layers; ours have 110. The losses are means over parts of the training, the accuracies those of
some training batches in evaluation mode. Laptop: CIFAR-10 stands in for CIFAR-100, trained as in oyedotun2021_table2;
smoke: 20 layers on digits, 13 steps.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from leadline.core.config import Scale
from leadline.core.study import Unit
from leadline.core.table import Table
from leadline.recipes import Made
from leadline.recipes import _oyedotun2021_curves as curves
from leadline.recipes._oyedotun2021 import trainings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PUBLISHED = Table(net=[], data=[], quantity=[], value=[], source=[])
"""The figure has no numbers beside its axes; where the curves end is in oyedotun2021_table3."""


def runs(scale: Scale) -> Iterator[Unit]:
    yield from trainings(scale, "cifar100")


def table(made: Sequence[Made]) -> Table:
    return curves.training(made)


def figure(table: Table) -> "Figure":
    return curves.figure(table, "Fig. 2", "training")


CLAIMS = tuple(curves.claims("section 6.2, Fig. 2", "training"))
