"""Section 6.3: train and test accuracy on MNIST of networks of 200 layers, plain and with skip connections.

Reference: Oyedotun, Al Ismaeil, Aouada, Training Very Deep Neural Networks: Rethinking the Role of Skip Connections,
section 6.3, in the text. The networks whose condition numbers are in Figs 10 and 11.
Run: leadline reproduce oyedotun2021_section63 --scale paper (days on a GPU; about eight minutes at laptop scale).
Expect: plain networks at chance with batch norm and without, ResNet and ResNeXt over 99%.
Differs: the paper leaves open blocks, widths, shortcuts, cardinality, norm and schedule; ours are those of
oyedotun2021_table2. Laptop: 6,400 images averaged over 2x2 pixels, 361 steps of 64 in bfloat16, residual networks from
0.02. Smoke: 20 layers on digits, 13 steps.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from leadline.analysis.claims import Claim, Test
from leadline.analysis.stats import mean_of, seeds
from leadline.analysis.verdict import Verdict, judge
from leadline.core.config import Scale
from leadline.core.study import Unit
from leadline.core.table import Table
from leadline.recipes import Made
from leadline.recipes import _oyedotun2021_scores as shared
from leadline.recipes._oyedotun2021 import SKIPPING, trainings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEAST = 99.0
"""What ResNet and ResNeXt are said to reach `over`, in percent."""
NUMBERS = {"PlainNet": (11.23, 8.92), "ResNet": (LEAST, LEAST), "ResNeXt": (LEAST, LEAST)}
PUBLISHED = shared.published({"PlainNet": NUMBERS["PlainNet"]}, "section 6.3")


def runs(scale: Scale) -> Iterator[Unit]:
    yield from trainings(scale, "mnist-200")


def table(made: Sequence[Made]) -> Table:
    return shared.scores(made)


def figure(table: Table) -> "Figure":
    return shared.figure(table, NUMBERS, "Section 6.3")


def over(net: str) -> Test:
    def test(table: Table) -> Verdict:
        ends = {side: mean_of(table, f"{side}_accuracy", net=net) for side in ("train", "test")}
        note = ", ".join(f"{value:.4g}% {side}" for side, value in ends.items())
        return judge(min(ends.values()) > LEAST, min(ends.values()), seeds=seeds(table.where(net=net)), note=note)

    return test


CLAIMS = (
    *shared.effects("section 6.3", NUMBERS),
    *(
        Claim(
            where="section 6.3",
            text=f"{net} reaches over 99% on training and test data",
            test=over(net),
            published="over 99%",
            since="paper",
        )
        for net in SKIPPING
    ),
)
