"""Fig. 9: test error of residual networks on CIFAR-10 by depth, with skips over one, two, three and four layers.

Reference: Li, Jiao, Han, Weissman, Demystifying ResNet, section 5.3.2. Pre-activation networks whose skips are made
shorter or longer while the number of parameters stays, CIFAR-10, ten starts.
Run: leadline reproduce li2016_fig9 --scale paper (many weeks of one GPU; about six core-minutes at laptop scale).
Expect: beyond 400 layers only shortcut 2 goes on gaining from depth; the others become worse.
Differs: the paper does not print the depths. Ours are 20, 56, 110, 218 and 434; 164 epochs at rate 0.1, divided by ten
at 81 and 122, batches of 128, Nesterov momentum 0.9, weight decay 1e-4. Where a shortcut does not divide the layers of
a stage, the number of its blocks is rounded, and that of the parameters is not quite the same. Laptop, where nothing
is decided: depths 20, 56 and 110, 3,200 images averaged over 2x2 pixels, four epochs of batches of 64 in bfloat16, one
or two starts. Smoke: 8 and 20 layers of widths 4, 8, 16 on digits, two epochs.
"""

from collections.abc import Iterator, Sequence
from math import nan
from typing import TYPE_CHECKING

from leadline.analysis.claims import Claim, Test, below
from leadline.analysis.verdict import Verdict
from leadline.core.config import Scale
from leadline.core.study import Unit
from leadline.core.table import Table
from leadline.recipes import Made
from leadline.recipes._li2016_resnets import keys, per_epoch, trainings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHORTCUTS = (1, 2, 3, 4)
OTHERS = (1, 3, 4)
PUBLISHED = Table(depth=[], shortcut=[], quantity=[], value=[], source=[])
"""The figure has no numbers beside its axes, and the text gives none."""


def runs(scale: Scale) -> Iterator[Unit]:
    yield from trainings(scale, SHORTCUTS)


def table(made: Sequence[Made]) -> Table:
    """A row a run: its test error in percent and mean loss over the last epoch, no numbers where it diverged."""
    rows = []
    for one in made:
        losses = one.readings("train/loss")["value"]
        ended = not one.diverged
        rows.append(
            keys(one)
            | {
                "outcome": one.outcome.get("outcome", ""),
                "test_error": 100 * (1 - one.last("test/accuracy")) if ended else nan,
                "train_loss": float(losses[-per_epoch(one) :].mean()) if ended and len(losses) else nan,
            }
        )
    return Table.from_rows(rows)


def figure(table: Table) -> "Figure":
    from leadline.figures import series
    from leadline.figures.style import styled

    depths = sorted(set(table["depth"].tolist()))
    labels = {shortcut: f"shortcut {shortcut}" for shortcut in SHORTCUTS}
    with styled():
        drawn, (left, right) = series.panels(2, width=3.7, height=3.2)
        series.draw(left, table, x="depth", y="test_error", by="shortcut", names=labels)
        series.draw(right, table, x="depth", y="train_loss", by="shortcut", names=labels, log=True)
        left.set(title="test error, %")
        right.set(title="training loss, last epoch")
        right.yaxis.set_minor_formatter("{x:g}")
        right.yaxis.set_major_formatter("{x:g}")
        for panel in (left, right):
            panel.set_xscale("log", base=2)
            panel.set_xticks(depths, labels=map(str, depths))
            panel.xaxis.minorticks_off()
            panel.set(xlabel="depth")
        handles, labelled = left.get_legend_handles_labels()
        drawn.legend(handles, labelled, loc="outside lower center", ncols=len(labels))
    return drawn


def two_deepest(table: Table, shortcut: int) -> tuple[list[float], list[float], str]:
    """Test errors at the deepest and at the next depth, none where there is no such depth, and which these are."""
    rows = table.where(shortcut=shortcut)
    depths = sorted(set(rows["depth"].tolist()))[:-3:-1]
    deepest, before = [rows.where(depth=depth)["test_error"].tolist() for depth in depths] + [[]] * (2 - len(depths))
    return deepest, before, f"{' against '.join(map(str, depths))} layers, test error in percent"


def gains(table: Table) -> Verdict:
    deepest, before, note = two_deepest(table, 2)
    return below(deepest, before, note=note)


def degrades(shortcut: int) -> Test:
    def test(table: Table) -> Verdict:
        deepest, before, note = two_deepest(table, shortcut)
        return below(before, deepest, note=f"the lesser depth first; {note}")

    return test


def better_than(shortcut: int) -> Test:
    def test(table: Table) -> Verdict:
        (ours, _, note), (theirs, _, _) = (two_deepest(table, each) for each in (2, shortcut))
        return below(ours, theirs, note=f"at the deepest of {note}")

    return test


CLAIMS = (
    Claim(
        where="section 5.3.2, Fig. 9",
        text="with shortcut 2 networks gain from depth even beyond 400 layers",
        test=gains,
        since="paper",
    ),
    *(
        Claim(
            where="section 5.3.2, Fig. 9",
            text=f"with shortcut {shortcut} they become worse as they become deeper than that",
            test=degrades(shortcut),
            since="paper",
        )
        for shortcut in OTHERS
    ),
    *(
        Claim(
            where="section 5.3.2, Fig. 9",
            text=f"the deepest networks with shortcut 2 have a lower error than those with shortcut {shortcut}",
            test=better_than(shortcut),
            since="paper",
        )
        for shortcut in OTHERS
    ),
)
