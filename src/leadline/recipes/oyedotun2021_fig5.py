"""Fig. 5: weights of layers 1 and 108 of networks of 110 layers while they train, on CIFAR-100.

Reference: Oyedotun, Al Ismaeil, Aouada, Training Very Deep Neural Networks: Rethinking the Role of Skip Connections,
section 6.2. Weights of an early and a late layer; those of the plain network's first layer lie between -180,000 and
620,000, and those of layer 108 progressively collapse to zero; those of ResNet and ResNeXt stay small and consistent.
Run: leadline reproduce oyedotun2021_fig5 --scale paper (days on a GPU; about five minutes at laptop scale).
Expect: weights of the order of one everywhere but in the first layers of plain networks, if a large update was made
there.
Differs: weights are read every 60 steps at laptop scale. Plain networks are trained with batch norm and without, as the
paper leaves that open. Captions and text disagree on 101 and 110 layers; ours have 110. Laptop: CIFAR-10 stands in for
CIFAR-100, trained as in oyedotun2021_table2; smoke: 20 layers on digits, 13 steps.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from leadline.analysis.claims import Claim
from leadline.core.config import Scale
from leadline.core.study import Unit
from leadline.core.table import Table
from leadline.recipes import Made
from leadline.recipes import _oyedotun2021_ranges as ranges
from leadline.recipes._oyedotun2021 import SKIPPING, trainings
from leadline.recipes._oyedotun2021_depth_claims import KINDS
from leadline.recipes._oyedotun2021_ranges import EARLY, LATE, collapses, reaches, within

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NUMBERS = {
    ("PlainNet", EARLY): (-180_000, 620_000),
    ("ResNet", EARLY): (-1.8, 2.6),
    ("ResNeXt", EARLY): (-0.55, 0.65),
    ("ResNet", LATE): (-0.18, 0.30),
    ("ResNeXt", LATE): (-0.18, 0.30),
}
PUBLISHED = ranges.published(NUMBERS, "section 6.2")
ALLOWED = 10.0
"""The factor to what is printed within which weights are of the same order."""


def runs(scale: Scale) -> Iterator[Unit]:
    yield from trainings(scale, "cifar100")


def table(made: Sequence[Made]) -> Table:
    return ranges.table(made, "weight_range")


def figure(table: Table) -> "Figure":
    return ranges.figure(table, NUMBERS, "Fig. 5", "weights")


CLAIMS = (
    *(
        Claim(
            where="section 6.2, Fig. 5",
            text=f"weights in layer 1 of the plain network {kind} reach 62,000",
            test=reaches(net, EARLY, 620_000 / ALLOWED),
            published="-180,000 to 620,000",
            since="laptop",
        )
        for net, kind in KINDS.items()
    ),
    *(
        Claim(
            where="section 6.2, Fig. 5",
            text=f"weights in layer 108 of the plain network {kind} collapse to a tenth",
            test=collapses(net, LATE, 10),
            published="progressively collapse to zero",
            since="laptop",
        )
        for net, kind in KINDS.items()
    ),
    *(
        Claim(
            where="section 6.2, Fig. 5",
            text=f"weights in layer 1 of {net} stay reasonable, below {ALLOWED * NUMBERS[net, EARLY][1]:g}",
            test=within([net], EARLY, ALLOWED * NUMBERS[net, EARLY][1]),
            published=f"{NUMBERS[net, EARLY][0]:g} to {NUMBERS[net, EARLY][1]:g}",
            since="laptop",
        )
        for net in SKIPPING
    ),
    *(
        Claim(
            where="section 6.2, Fig. 5",
            text=f"weights in layer 108 of {net} stay reasonable, below {ALLOWED * NUMBERS[net, LATE][1]:g}",
            test=within([net], LATE, ALLOWED * NUMBERS[net, LATE][1]),
            published=f"{NUMBERS[net, LATE][0]:g} to {NUMBERS[net, LATE][1]:g}",
            since="laptop",
        )
        for net in SKIPPING
    ),
)
