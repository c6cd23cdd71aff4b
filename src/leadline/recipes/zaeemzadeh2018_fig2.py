"""Fig. 2: gradient norm ratio of a convolution with its ReLU, by channels in and out, projected and not.

Reference: Zaeemzadeh, Rahnavard, Shah, Norm-Preservation: Why Residual Networks Can Become Extremely Deep?, section 3.
Three convolutions on CIFAR-10, the middle one 3x3 with c channels in and d out; ||dE/dx_{l+1}|| / ||dE/dx_l|| in the
10th epoch, mean of ten runs.
Run: leadline reproduce zaeemzadeh2018_fig2 --scale laptop (about four minutes on one core).
Expect: with the projection ratios are near one, and farther from it where c is very small and much smaller than d.
Differs: the channels on the axes are not printed; ours are powers of two. Ratios are means over the batches of the
epoch. The first two convolutions are taken to sqrt(2 d / min(c, d)) every second step by Algorithm 1 with ten
iterations of eq. (9) from a scaled start, cropped; nothing exact exists of 3x3 kernels with c = d. No norms, no biases,
the last convolution gives the scores. Laptop: 1,280 images of 16 x 16 pixels, batches of 64, frequencies on a grid of
8 x 8, two runs. Smoke: digits, three epochs, one run. A dash is a net that diverged or whose ReLUs all died.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.analysis.claims import Claim, below
from leadline.analysis.stats import mean_of, seeds
from leadline.analysis.verdict import Verdict, at_most, judge, undecided
from leadline.core.config import Scale
from leadline.core.study import Study, Unit
from leadline.core.table import Table
from leadline.recipes import Made
from leadline.recipes._zaeemzadeh2018 import EVERY, distance

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PUBLISHED = Table(projected=[], c=[], d=[], quantity=[], value=[], source=[])
"""The figure shows colours, and the text gives no number."""
SMALL, FAR_LESS = 8, 4
"""What "very small c and c << d" is taken to mean: c at most this, d at least so many times c."""
REACH = 4.0
"""The factor from one at which colours end: beyond it only the numbers tell how far."""
TICKS = (0.25, 0.5, 1, 2, 4)
WIDE, NEAR = 16, 1.25
"""What "more practical settings" and "toward 1" are taken to mean: channels from here on, a factor."""


@dataclass(frozen=True, kw_only=True)
class Size:
    channels: tuple[int, ...]
    data: dict[str, Any]
    batch: int
    epochs: int
    seeds: int
    seconds: float


SIZES: dict[Scale, Size] = {
    "smoke": Size(
        channels=(2, 4, 16),
        data={"data": "digits", "train": 256, "pool": 1, "grid": 5},
        batch=32,
        epochs=3,
        seeds=1,
        seconds=0.5,
    ),
    "laptop": Size(
        channels=(4, 8, 16, 32, 64),
        data={"data": "cifar10", "train": 1280, "pool": 2, "grid": 8},
        batch=64,
        epochs=10,
        seeds=2,
        seconds=20.0,
    ),
    "paper": Size(
        channels=(4, 8, 16, 32, 64, 128, 256),
        data={"data": "cifar10", "train": 50_000, "pool": 1, "grid": 32},
        batch=128,
        epochs=10,
        seeds=10,
        seconds=40_000.0,
    ),
}


def runs(scale: Scale) -> Iterator[Unit]:
    size = SIZES[scale]
    for c in size.channels:
        for projected in (True, False):
            for seed in range(size.seeds):
                yield Study.of(
                    "leadline.recipes._conv_relu_nets:ratios",
                    seconds=size.seconds * (c / max(size.channels) + 0.1),
                    **size.data,
                    c=c,
                    outputs=size.channels,
                    projected=projected,
                    epochs=size.epochs,
                    batch=size.batch,
                    rate=0.1,
                    every=EVERY,
                    seed=seed,
                )


def table(made: Sequence[Made]) -> Table:
    rows = []
    for one in made:
        readings = one.run.readings
        for place, d in enumerate(one.args["outputs"]):
            numbers = {
                name: float(readings.where(step=place, name=reading)["value"][0])
                for name, reading in (("ratio", "ratio/end"), ("first", "ratio/start"), ("loss", "loss/end"))
            }
            rows.append({"projected": int(one.args["projected"]), "c": one.args["c"], "d": d, "seed": one.seed})
            rows[-1] |= numbers
    return Table.from_rows(rows, ["projected", "c", "d", "seed", "ratio", "first", "loss"])


def figure(table: Table) -> "Figure":
    from leadline.figures import heatmap
    from leadline.figures.style import styled

    known = table["ratio"][np.isfinite(table["ratio"]) & (table["ratio"] > 0)]
    farthest = float(np.exp(np.abs(np.log(known)).max(initial=0.0)))
    reach = min(max(2.0, farthest), REACH)
    with styled():
        drawn, panels = heatmap.panels(2, cells=len(set(table["c"].tolist())))
        for panel, projected, title in zip(panels, (1, 0), ("(a) projected", "(b) not projected"), strict=True):
            rows = table.where(projected=projected)
            shown = heatmap.draw(panel, rows, x="d", y="c", value="ratio", reach=reach)
            panel.set(title=title, xlabel="channels out, d")
        panels[0].set_ylabel("channels in, c")
        ticks = [tick for tick in TICKS if 1 / reach <= tick <= reach]
        beyond = "both" if farthest > reach else "neither"
        bar = drawn.colorbar(shown, ax=panels, shrink=0.8, label="gradient norm ratio", extend=beyond)
        bar.set_ticks(ticks, labels=[f"{tick:g}" for tick in ticks])
        bar.ax.minorticks_off()
    return drawn


def pairs(table: Table, projected: int) -> dict[tuple[int, int], float]:
    """|log10 of the mean ratio| of every pair (c, d)."""
    rows = table.where(projected=projected)
    keys = sorted(set(zip(rows["c"].tolist(), rows["d"].tolist(), strict=True)))
    return {(c, d): distance(np.array([mean_of(rows, "ratio", c=c, d=d)])) for c, d in keys}


def nearer(table: Table) -> Verdict:
    found = []
    for projected in (1, 0):
        rows = table.where(projected=projected)
        found.append([distance(rows.where(seed=seed)["ratio"]) for seed in sorted(set(rows["seed"].tolist()))])
    return below(*found, note="mean |log10 ratio| over all pairs, projected and not")


def only_small_fail(table: Table) -> Verdict:
    with_it, without = pairs(table, 1), pairs(table, 0)
    common = [pair for pair in with_it if np.isfinite(with_it[pair] + without.get(pair, np.nan))]
    if not common:
        return undecided("no pair of channels has both")
    worse = [pair for pair in common if with_it[pair] > without[pair]]
    other = [(c, d) for c, d in worse if not (c <= SMALL and d >= FAR_LESS * c)]
    said = ", ".join(f"({c}, {d}): {10 ** with_it[c, d]:.3g} and {10 ** without[c, d]:.3g}" for c, d in worse)
    note = f"{len(worse)} of {len(common)} pairs (c, d) are farther from 1 projected than not"
    return at_most(len(other), 0, seeds=seeds(table), note=f"{note}; factors {said}" if worse else note)


def wide_are_near(table: Table) -> Verdict:
    found = {pair: value for pair, value in pairs(table, 1).items() if min(pair) >= WIDE and np.isfinite(value)}
    if not found:
        return undecided(f"no pair of {WIDE} channels or more")
    worst = max(found, key=found.__getitem__)
    factor = 10 ** found[worst]
    return judge(factor <= NEAR, factor, seeds=seeds(table), note=f"factor from 1 of the farthest, (c, d) = {worst}")


CLAIMS = (
    Claim(
        where="section 3, Fig. 2",
        text="the projection moves the gradient norm ratios of Conv-ReLU layers toward 1",
        test=nearer,
        since="laptop",
    ),
    Claim(
        where="section 3, Fig. 2",
        text="it fails only for very small c, much smaller than d",
        published="c very small, c << d",
        test=only_small_fail,
        since="laptop",
    ),
    Claim(
        where="section 3",
        text="where the number of channels is large it performs as expected: ratios within a factor 1.25 of 1",
        test=wide_are_near,
        since="laptop",
    ),
)
