"""Fig. 2: average Frobenius norm of the weights of ResNets of growing depth in the course of training.

Reference: Li, Jiao, Han, Weissman, Demystifying ResNet, section 4.1. Pre-activation networks on CIFAR-10, 200 epochs,
rate 0.1, divided by ten at epochs 81 and 122.
Run: leadline reproduce li2016_fig2 --scale paper (days on a GPU; about four core-minutes at laptop scale, where it
shares its runs with li2016_fig9).
Expect: the curves come to be in order of depth, the deepest network having the smallest norm. They do not begin so:
in a deeper network fewer of the layers are the stem, the last one and those that widen, which start out smaller.
Differs: the paper does not print the depths. Ours are 20, 56 and 110, three starts; batches of 128, Nesterov momentum
0.9, weight decay 1e-4 and the base network are those of the program it names. The average is over all convolutions and
the last layer. Laptop, where a training is too short to forget its start and nothing is decided: 3,200 images averaged
over 2x2 pixels, four epochs of batches of 64 in bfloat16, two starts, the rate falling at the same shares of the
training. Smoke: 8 and 20 layers of widths 4, 8, 16 on digits, two epochs.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from leadline.analysis.claims import Claim
from leadline.analysis.stats import mean_of
from leadline.core.config import Scale
from leadline.core.study import Unit
from leadline.core.table import Table
from leadline.recipes import Made
from leadline.recipes import _li2016_norms as norms
from leadline.recipes._li2016_resnets import keys, per_epoch, training, trainings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DEPTHS = (20, 56, 110)
SEEDS = 3
EPOCHS = 200
PUBLISHED = Table(depth=[], quantity=[], value=[], source=[])
"""The figure has no numbers beside its axes, and the text gives none."""
MARKS = ("o", "^")
"""At the first and the second fall of the rate, as in the paper."""


def runs(scale: Scale) -> Iterator[Unit]:
    if scale == "paper":
        shapes = [(depth, seed) for depth in DEPTHS for seed in range(SEEDS)]
        yield from (training(scale, depth, 2, seed, epochs=EPOCHS) for depth, seed in shapes)
    else:
        yield from trainings(scale, (2,))


def table(made: Sequence[Made]) -> Table:
    """A row for each depth, start and epoch at which norms are read; `drops` says how often the rate has fallen."""
    rows = []
    for one in made:
        steps, values = one.curve("average")
        milestones = one.config.schedule.milestones
        for epoch, norm in zip((steps / per_epoch(one)).tolist(), values.tolist(), strict=True):
            fallen = sum(epoch >= milestone for milestone in milestones)
            rows.append(keys(one) | {"epoch": float(epoch), "norm": norm, "drops": fallen})
    return Table.from_rows(rows, ["depth", "shortcut", "seed", "epoch", "norm", "drops"])


def figure(table: Table) -> "Figure":
    from leadline.figures import series
    from leadline.figures.style import COLOURS, styled

    depths = sorted(set(table["depth"].tolist()))
    with styled():
        drawn, (panel,) = series.panels(1, width=4.6, height=3.4)
        labels = {depth: f"{depth} layers" for depth in depths}
        series.draw(panel, table, x="epoch", y="norm", by="depth", names=labels, marker="")
        for depth, colour in zip(depths, COLOURS, strict=False):
            for epoch, mark in zip(falls(table), MARKS, strict=False):
                norm = mean_of(table, "norm", depth=depth, epoch=epoch)
                panel.plot(epoch, norm, mark, color=colour, markersize=6)
        panel.set(title="pre-activation ResNets", xlabel="epoch", ylabel="average Frobenius norm")
        panel.legend()
    return drawn


def falls(table: Table) -> list[float]:
    """The first epochs read after the rate has fallen."""
    drops = {row["epoch"]: row["drops"] for row in table.sort("epoch").rows()}
    return [after for before, after in pairwise(drops) if drops[after] > drops[before]]


CLAIMS = (
    Claim(
        where="section 4.1, Fig. 2",
        text="when training ends the average norm is the smaller the deeper the residual network",
        test=norms.at_the_end,
        since="paper",
    ),
    Claim(
        where="section 4.1, Fig. 2",
        text="it is the smaller during all of the training",
        test=norms.throughout,
        since="paper",
    ),
)
