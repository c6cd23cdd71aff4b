"""Fig. 4: activations in layers 1 and 108 of networks of 110 layers while they train, on CIFAR-100.

Reference: Oyedotun, Al Ismaeil, Aouada, Training Very Deep Neural Networks: Rethinking the Role of Skip Connections,
section 6.2. Units' activations in an early and a late layer; those of the plain network's first layer go up to 10^6,
those of ResNet and ResNeXt stay below 6.5.
Run: leadline reproduce oyedotun2021_fig4 --scale paper (days on a GPU; about five minutes at laptop scale).
Expect: activations of the order of ten everywhere but in plain networks once a large update was made.
Differs: activations are outputs of the convolutions before any norm, which would hide their scale, of 64 samples, read
every 60 steps at laptop scale. Plain networks are trained with batch norm and without, as the paper leaves that open.
Captions and text disagree on 101 and 110 layers; ours have 110. Laptop: CIFAR-10 stands in for CIFAR-100, trained as in
oyedotun2021_table2; smoke: 20 layers on digits, 13 steps.
"""

from collections.abc import Iterator, Sequence
from math import nan
from typing import TYPE_CHECKING

from leadline.analysis.claims import Claim
from leadline.core.config import Scale
from leadline.core.study import Unit
from leadline.core.table import Table
from leadline.recipes import Made
from leadline.recipes import _oyedotun2021_ranges as ranges
from leadline.recipes._oyedotun2021 import COMPARED, SKIPPING, trainings
from leadline.recipes._oyedotun2021_depth_claims import KINDS
from leadline.recipes._oyedotun2021_ranges import EARLY, LATE, reaches, within

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NUMBERS = {("PlainNet", EARLY): (nan, 1e6), ("ResNet", EARLY): (nan, 6.5), ("ResNeXt", EARLY): (nan, 6.5)}
PUBLISHED = ranges.published(NUMBERS, "section 6.2")
REASONABLE = 100.0
"""What `reasonable` values are taken to be; for others the claims allow a factor of ten to what is printed."""


def runs(scale: Scale) -> Iterator[Unit]:
    yield from trainings(scale, "cifar100")


def table(made: Sequence[Made]) -> Table:
    return ranges.table(made, "output_range")


def figure(table: Table) -> "Figure":
    return ranges.figure(table, NUMBERS, "Fig. 4", "outputs")


CLAIMS = (
    *(
        Claim(
            where="section 6.2, Fig. 4",
            text=f"activations in layer 1 of the plain network {kind} reach 10^5",
            test=reaches(net, EARLY, 1e5),
            published="up to about 10^6",
            since="laptop",
        )
        for net, kind in KINDS.items()
    ),
    *(
        Claim(
            where="section 6.2, Fig. 4",
            text=f"activations in layer 1 of {net} stay below 65",
            test=within([net], EARLY, 65),
            published="below 6.5",
            since="laptop",
        )
        for net in SKIPPING
    ),
    Claim(
        where="section 6.2, Fig. 4",
        text="in layer 108 all networks have reasonable activations, below 100",
        test=within(COMPARED, LATE, REASONABLE),
        published="reasonable",
        since="laptop",
    ),
)
