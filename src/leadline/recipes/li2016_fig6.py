"""Fig. 6: share of negative curvature at equal losses, and along one run of a 2-shortcut linear network.

Reference: Li, Jiao, Han, Weissman, Demystifying ResNet, section 5.2 and appendix B. Whitened MNIST of ten dimensions,
one-hot targets, full-batch gradient descent, depth 16; index = share of negative eigenvalues of the exact Hessian,
ten starts and linear interpolation over the loss on the left, a single run on the right.
Run: leadline reproduce li2016_fig6 --scale paper (a few minutes on two cores; shares its runs with li2016_fig5).
Expect: the index of a 2-shortcut net begins at one half, falls at once and stays below that of the others; the
gradient is largest while the index falls.
Differs: rates and losses as in li2016_fig5, of which the paper says nothing. Eigenvalues that are not told from zero
in float64 count as neither sign. The right half shows the first 300 epochs (laptop 150) at a tenth of the best rate.
The laptop scale has three starts and fewer losses, the smoke scale the digits that come with the package, six layers
and 100 epochs.
"""

from collections.abc import Iterator, Sequence
from math import nan
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from leadline.analysis.claims import Claim, Test
from leadline.analysis.stats import mean_of, seeds
from leadline.analysis.verdict import Verdict, at_most, judge, undecided
from leadline.core.config import Scale
from leadline.core.study import Unit
from leadline.core.table import Table
from leadline.recipes import Made
from leadline.recipes._li2016_linear import COMPARED, EPOCHS, NAMES, SECONDS_OF_SPECTRUM, names, scanned, study
from leadline.recipes._li2016_spectra import DEPTH, SLOWER, at_levels_of, at_losses, spectra

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PUBLISHED = Table(net=[], level=[], quantity=[], value=[], source=[])
"""The figure has no numbers beside its axes, and the text gives none."""
LAST: dict[Scale, int] = {"smoke": 60, "laptop": 150, "paper": 300}
COLUMNS = ("part", "net", "seed", "level", "start", "epoch", "loss", "gradient", "index")
Numbers = NDArray[np.float64]


def runs(scale: Scale) -> Iterator[Unit]:
    yield from spectra(scale)
    depth, last = DEPTH[scale], LAST[scale]
    shape = {"depth": depth, "rates": scanned(scale), "epochs": EPOCHS[scale], "slower": SLOWER, "last": last}
    cost = last * SECONDS_OF_SPECTRUM * depth**3 + 1.0
    yield study("dynamics", scale, seconds=cost, net="2-shortcut", seed=0, **shape)


def table(made: Sequence[Made]) -> Table:
    """Part `losses`: a row for each run and level; part `dynamics`: a row for each epoch of the single run."""
    along = [one for one in made if "levels" in one.args]
    rows = [{"part": "losses", "epoch": -1} | row for row in at_losses(along).rows()]
    for one in made:
        if one not in along:
            epochs, losses = one.curve("loss")
            points = zip(epochs, losses, one.curve("gradient")[1], one.curve("index")[1], strict=True)
            run = {"part": "dynamics", "net": one.args["net"], "seed": one.seed, "level": nan, "start": False}
            rows += [
                run | dict(zip(("epoch", "loss", "gradient", "index"), map(float, p), strict=True)) for p in points
            ]
    return Table.from_rows([{"loss": nan, "gradient": nan} | row for row in rows], COLUMNS)


def figure(table: Table) -> "Figure":
    from leadline.figures import series
    from leadline.figures.style import COLOURS, styled

    with styled():
        drawn, (left, right) = series.panels(2, width=3.7, height=3.4)
        crossed = table.where(part="losses", start=False)
        series.draw(left, crossed, x="level", y="index", by="net", names=names(COMPARED), marker="")
        left.set(title="index at equal losses", xlabel="loss above the optimum", ylabel="index", xscale="log")
        left.invert_xaxis()
        if crossed.height:
            left.legend()
        run = table.where(part="dynamics")
        if run.height:
            right.plot(run["epoch"], run["index"], color=COLOURS[2])
            other = right.twinx()
            other.spines["right"].set_visible(True)
            other.grid(visible=False)
            other.plot(run["epoch"], run["gradient"], color=COLOURS[3], linestyle="--")
            other.set(ylim=(0, None))
            other.set_ylabel("norm of the gradient (dashed)", color=COLOURS[3])
            right.set(title="one run, 2-shortcut", xlabel="epoch")
            right.set_ylabel("index (solid)", color=COLOURS[2])
    return drawn


def smaller(net: str) -> Test:
    """The index of the 2-shortcut nets against another net's, by the losses that both come through."""

    def test(table: Table) -> Verdict:
        found = table.where(part="losses")
        one, other = at_levels_of(found, "index", "2-shortcut"), at_levels_of(found, "index", net)
        gaps = {level: other[level] - value for level, value in one.items() if level in other}
        if not gaps:
            return undecided(f"there is no loss that {NAMES[net]} and the 2-shortcut nets both come through")
        worst = min(gaps, key=lambda level: gaps[level])
        smaller = sum(gap >= 0 for gap in gaps.values())
        note = f"not larger at {smaller} of {len(gaps)} losses; at {worst:.2g} {one[worst]:.3g} and {other[worst]:.3g}"
        return judge(gaps[worst] >= 0, gaps[worst], seeds=seeds(found), note=note)

    return test


def drops(table: Table) -> Verdict:
    """The index once half of the loss above the optimum is gone, over that at the start."""
    found = table.where(part="losses", net="2-shortcut")
    begun = found.where(start=True)
    known = at_levels_of(found, "index", "2-shortcut")
    if not begun.height or not known:
        return undecided("no 2-shortcut run comes through these losses")
    half = float(begun["level"].mean()) / 2
    level = min(known, key=lambda level: abs(level - half))
    first = mean_of(begun, "index")
    note = f"{first:.3g} at the start, {known[level]:.3g} at {level:.2g} above the optimum"
    return at_most(known[level] / first, 0.5, seeds=seeds(found), note=note)


def together(table: Table) -> Verdict:
    """Whether the epoch of the largest gradient is among those in which the index makes the middle 80% of its fall."""
    run = table.where(part="dynamics")
    if not run.height:
        return undecided("the single run is missing")
    first, last = fall(run["index"].astype(float))
    largest = int(run["gradient"].astype(float).argmax())
    note = f"the gradient is largest at epoch {largest}, the index falls from epoch {first} to {last}"
    return judge(first <= largest <= last, float(largest), note=note)


def fall(values: Numbers, *, ends: float = 0.1) -> tuple[int, int]:
    """From the last place that has at most `ends` of the fall behind it to the first that has at most that before it.

    >>> fall(np.array([0.5, 0.5, 0.4, 0.1, 0.0, 0.0]))
    (1, 4)
    """
    low = values[: int(values.argmin()) + 1]
    done = (low[0] - low) / (low[0] - low[-1]) if low[0] > low[-1] else np.zeros(len(low))
    end = int(np.flatnonzero(done >= 1 - ends)[0]) if done[-1] else 0
    return int(np.flatnonzero(done[: end + 1] <= ends)[-1]), end


CLAIMS = (
    Claim(
        where="section 5.2",
        text="the index of a 2-shortcut net is smaller than with Xavier at every loss",
        test=smaller("xavier"),
        since="laptop",
    ),
    Claim(
        where="section 5.2",
        text="the index of a 2-shortcut net is smaller than with orthogonal starts at every loss",
        test=smaller("orthogonal"),
        since="laptop",
    ),
    Claim(
        where="section 5.2",
        text="the index of a 2-shortcut net drops dramatically at the beginning",
        test=drops,
        since="laptop",
    ),
    Claim(
        where="section 5.2, Fig. 6 right",
        text="the gradient reaches its maximum while the index drops",
        test=together,
    ),
)
