"""Ours: standard networks and the three kinds of ResNEst of Chen et al., all of them at the same learning rates.

Reference: Chen, Lee, Garudadri, Rao, ResNEsts and DenseNEsts, appendix B.3: ResNEsts are trained at 0.01 because 0.1
and 0.05 let their gradients explode, the networks they are compared with at 0.1. Their tables therefore mix what a
ResNEst is with a rate ten times lower.
Run: leadline reproduce chen2021_equal_rates --scale paper (weeks of a GPU; about ten core-minutes at laptop scale,
where it shares runs with chen2021_table1).
Expect: ResNEsts diverge at 0.1 and 0.05 and nothing else does; at 0.01 all four are much closer to each other than in
the tables.
Differs: this comparison is not in the paper. CIFAR-10, ResNet-20 and ResNet-110, all four endings at 0.1 and 0.01 and
ResNEst at 0.05; all else as in chen2021_table1. Laptop: ResNet-20 with three starts and ResNet-56 in the place of
ResNet-110 with one, 300 steps on images averaged over 2x2 pixels. Smoke: ResNet-8 on digits, 16 steps.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from leadline.analysis.claims import Claim, Test, below
from leadline.analysis.stats import mean_of, seeds
from leadline.analysis.verdict import Verdict, judge, undecided
from leadline.core.config import Scale
from leadline.core.study import Unit
from leadline.core.table import Table
from leadline.recipes import Made
from leadline.recipes._chen2021 import COLOURS, ENDINGS, LOWER, RATE, SIZES, called, training
from leadline.recipes._chen2021 import table as shared_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COMPARED = ("ResNet-20", "ResNet-110")
BETWEEN = 0.05
"""The other rate at which the paper saw ResNEsts explode."""
RATES = (LOWER, BETWEEN, RATE)
PUBLISHED = Table(net=[], ending=[], rate=[], quantity=[], value=[], source=[])
"""The paper does not compare at equal rates."""


def runs(scale: Scale) -> Iterator[Unit]:
    sizes = SIZES[scale].nets
    for net in (net for net in COMPARED if net in sizes):
        for ending in ENDINGS:
            for rate in (RATE, BETWEEN, LOWER) if ending == "ResNEst" else (RATE, LOWER):
                for seed in range(sizes[net][1]):
                    yield training(scale, net, ending, seed, rate=rate)


def table(made: Sequence[Made]) -> Table:
    """A row a training: its test accuracy in percent, no number where it diverged."""
    return shared_table(made)


def figure(table: Table) -> "Figure":
    from leadline.figures import series
    from leadline.figures.style import styled

    nets = [net for net in COMPARED if table.where(net=net).height]
    with styled():
        drawn, panels = series.panels(max(1, len(nets)), height=3.4, width=3.5 if len(nets) > 1 else 4.8)
        for panel, net in zip(panels, nets, strict=False):
            rows = table.where(net=net)
            panel.set(xscale="log", xlim=(LOWER / 1.4, RATE * 1.4), xlabel="learning rate")
            panel.set_title(called(rows), fontsize="medium")
            panel.set_xticks(RATES, labels=[f"{rate:g}" for rate in RATES])
            panel.minorticks_off()
            for ending, colour in COLOURS.items():
                own = rows.where(ending=ending)
                series.draw(panel, own, x="rate", y="test_accuracy", by="ending", names={ending: ending}, color=colour)
                lost = own.where(outcome="diverged")["rate"]
                if len(lost):
                    low = panel.get_xaxis_transform()
                    panel.plot(lost, [0.04] * len(lost), "x", color=colour, transform=low, markersize=8)
        if diverged(table):
            panels[0].plot([], [], "x", color="0.4", label="diverged")
        panels[0].set_ylabel("test accuracy, %")
        handles, labels = panels[0].get_legend_handles_labels()
        drawn.legend(handles, labels, loc="outside lower center", ncols=3)
    return drawn


def explodes(rate: float) -> Test:
    """That training a ResNEst at this rate diverges; measured is the share of the runs that did."""

    def test(table: Table) -> Verdict:
        rows = table.where(ending="ResNEst", rate=rate)
        if not rows.height:
            return undecided(f"no ResNEst has been trained at {rate:g}")
        share = diverged(rows) / rows.height
        note = f"{diverged(rows)} of {rows.height} diverged; test accuracy {mean_of(rows, 'test_accuracy'):.3g}% else"
        return judge(share > 0, share, seeds=seeds(rows), note=note)

    return test


def others_do_not(table: Table) -> Verdict:
    rows = table.select((table["ending"] != "ResNEst") & (table["rate"] == RATE))
    share = diverged(rows) / rows.height if rows.height else float("nan")
    return judge(share == 0, share, seeds=seeds(rows), note=f"{diverged(rows)} of {rows.height} diverged")


def diverged(rows: Table) -> int:
    return int((rows["outcome"] == "diverged").sum())


def less_accurate(one: str, other: str, rate: float) -> Test:
    """By accuracies of the first architecture, of which there are most starts."""

    def test(table: Table) -> Verdict:
        both = [_accuracies(table, ending, rate) for ending in (one, other)]
        return below(*both, note=f"{COMPARED[0]} at {rate:g}, test accuracy in percent")

    return test


def gap_is_rate(table: Table) -> Verdict:
    """How much nearer a ResNEst at the lower rate is to an A-ResNEst at the same rate than to one at the higher."""
    mixed, equal = (
        [other - one for one, other in zip(_accuracies(table, "ResNEst", LOWER), others, strict=False)]
        for others in (_accuracies(table, "A-ResNEst", RATE), _accuracies(table, "A-ResNEst", LOWER))
    )
    return below(equal, mixed, note=f"{COMPARED[0]}, points of accuracy, equal rates first")


def _accuracies(table: Table, ending: str, rate: float) -> list[float]:
    found: list[float] = table.where(net=COMPARED[0], ending=ending, rate=rate).sort("seed")["test_accuracy"].tolist()
    return found


CLAIMS = (
    *(
        Claim(
            where="appendix B.3",
            text=f"training ResNEsts at the rate {rate:g} leads to explosion",
            test=explodes(rate),
            published="divergence",
            since="paper",
        )
        for rate in (RATE, BETWEEN)
    ),
    Claim(
        where="appendix B.3",
        text=f"standard networks, BN-ResNEsts and A-ResNEsts do not diverge at {RATE:g}",
        test=others_do_not,
        published="no divergence",
        since="laptop",
    ),
    *(
        Claim(
            where="ours, beside Table 1",
            text=f"at the same rate of {LOWER:g} a ResNEst is less accurate than {other}",
            test=less_accurate("ResNEst", other, LOWER),
            since="laptop",
        )
        for other in ("Standard", "BN-ResNEst", "A-ResNEst")
    ),
    Claim(
        where="ours, beside Table 1",
        text="a part of the gap between A-ResNEst and ResNEst is the rate: at equal rates it is smaller",
        test=gap_is_rate,
        since="laptop",
    ),
)
