"""Fig. 6: gradients in layers 1 and 108 of networks of 110 layers while they train, on CIFAR-100.

Reference: Oyedotun, Al Ismaeil, Aouada, Training Very Deep Neural Networks: Rethinking the Role of Skip Connections,
section 6.2. Gradients in an early and a late layer; most in the plain network's first layer lie between -5 and 5, in
that of ResNet between -0.07 and 0.07, of ResNeXt between -0.8 and 0.8; in layer 108 all between -0.01 and 0.01.
Run: leadline reproduce oyedotun2021_fig6 --scale paper (days on a GPU; about five minutes at laptop scale).
Expect: with batch norm gradients that explode towards the first layers of plain networks, without it gradients that
vanish there; small ones with skips.
Differs: gradients are those by the weights, of the batch trained on, read every 60 steps at laptop scale; `most` is all
but a hundredth at either end. Plain networks are trained with batch norm and without, as the paper leaves that open.
Captions and text disagree on 101 and 110 layers; ours have 110. Laptop: CIFAR-10 stands in for CIFAR-100, trained as in
oyedotun2021_table2; smoke: 20 layers on digits, 13 steps.
"""

from collections.abc import Iterator, Sequence
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

NUMBERS = {
    ("PlainNet", EARLY): (-5.0, 5.0),
    ("ResNet", EARLY): (-0.07, 0.07),
    ("ResNeXt", EARLY): (-0.8, 0.8),
    ("PlainNet", LATE): (-0.01, 0.01),
    ("ResNet", LATE): (-0.01, 0.01),
    ("ResNeXt", LATE): (-0.01, 0.01),
}
PUBLISHED = ranges.published(NUMBERS, "section 6.2", ends=("p01", "p99"))
ALLOWED = 10.0
"""The factor to what is printed within which gradients are of the same order."""


def runs(scale: Scale) -> Iterator[Unit]:
    yield from trainings(scale, "cifar100")


def table(made: Sequence[Made]) -> Table:
    return ranges.table(made, "gradient_range")


def figure(table: Table) -> "Figure":
    return ranges.figure(table, NUMBERS, "Fig. 6", "gradients")


CLAIMS = (
    *(
        Claim(
            where="section 6.2, Fig. 6",
            text=f"gradients in layer 1 of the plain network {kind} are considerably large: more than a few reach 0.5",
            test=reaches(net, EARLY, 5 / ALLOWED, inner=True),
            published="-5 to 5",
            since="laptop",
        )
        for net, kind in KINDS.items()
    ),
    *(
        Claim(
            where="section 6.2, Fig. 6",
            text=f"most gradients in layer 1 of {net} are below {ALLOWED * NUMBERS[net, EARLY][1]:g}",
            test=within([net], EARLY, ALLOWED * NUMBERS[net, EARLY][1], inner=True),
            published=f"{NUMBERS[net, EARLY][0]:g} to {NUMBERS[net, EARLY][1]:g}",
            since="laptop",
        )
        for net in SKIPPING
    ),
    Claim(
        where="section 6.2, Fig. 6",
        text="in layer 108 most gradients of all networks are below 0.1",
        test=within(COMPARED, LATE, 0.01 * ALLOWED, inner=True),
        published="-0.01 to 0.01",
        since="laptop",
    ),
)
