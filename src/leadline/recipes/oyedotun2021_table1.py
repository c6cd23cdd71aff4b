"""Table 1: train and test accuracy on MNIST of networks of 110 layers, plain and with skip connections.

Reference: Oyedotun, Al Ismaeil, Aouada, Training Very Deep Neural Networks: Rethinking the Role of Skip Connections,
sections 6.1 and 6.2. ReLU networks of 110 layers at He initialisation, batches of 128, weight decay 1e-4, learning rate
between 0.0001 and 0.1, up to 200 epochs. A search over hyperparameters found no plain network that trains.
Run: leadline reproduce oyedotun2021_table1 --scale paper (days on a GPU; about nine minutes at laptop scale).
Expect: plain networks at chance with batch norm and without, ResNet and ResNeXt far above it. The search over rates may
find one at which a plain network with batch norm learns.
Differs: the paper leaves open blocks, widths, shortcuts, cardinality, norm and schedule; ours are those of
oyedotun2021_table2. Plain networks are trained at rates of 0.1, as compared, and at 0.01, 0.001 and 0.0001, as a
search. Laptop: 6,400 images averaged over 2x2 pixels, 361 steps of 64 in bfloat16, residual networks from 0.02, no
search at 0.0001. Smoke: 20 layers on digits, 13 steps.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from leadline.core.config import Scale
from leadline.core.study import Unit
from leadline.core.table import Table
from leadline.recipes import Made
from leadline.recipes import _oyedotun2021_scores as shared
from leadline.recipes._oyedotun2021 import search, trainings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NUMBERS = {"PlainNet": (11.20, 11.35), "ResNet": (99.99, 99.57), "ResNeXt": (99.99, 99.71)}
PUBLISHED = shared.published(NUMBERS, "Table 1", role=shared.COMPARING)


def runs(scale: Scale) -> Iterator[Unit]:
    yield from trainings(scale, "mnist")
    yield from search(scale, "mnist")


def table(made: Sequence[Made]) -> Table:
    return shared.scores(made)


def figure(table: Table) -> "Figure":
    return shared.figure(table, NUMBERS, "Table 1")


CLAIMS = shared.claims("Table 1", NUMBERS)
