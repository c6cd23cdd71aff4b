"""The released projection at the stem: a conjugate leaves one of nine taps and moves the gradient norm ratio.

Reference: Zaeemzadeh, Rahnavard, Shah, Norm-Preservation: Why Residual Networks Can Become Extremely Deep?, sections 3
and 4.1, and the program released with it; not a figure of the paper. The text lays the outlier of ProcResNet in Fig. 3,
its stem, to the few channels of the images.
Run: leadline reproduce zaeemzadeh2018_stem_fault --scale laptop (about three minutes on one core).
Expect: with the exact projection the stem's gradient norm ratio begins at 1.06. The released one, which recombines R -
iI for R + iI and so reverses the kernel before it is cropped, takes it to between 4 and 6 at its first call and to
between 1.4 and 2 from the second on, and leaves one tap of nine; 1x1 kernels do not notice. In training the ratio
comes below one with all three, the exact one included: the leap is one of the first steps.
Differs: ours alone. ProcResNet of 22 layers, CIFAR-10, rate 0.1, projections drawn after a step with probability 1/2
as in the release, the same steps for all three. Laptop: images of 16 x 16 pixels, batches of 64, 100 steps, three
seeds. Smoke: digits, a quarter of the width, 12 steps. Paper: 85 layers, whole images, batches of 128, ten epochs.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.analysis.claims import Claim
from leadline.analysis.stats import mean_of, seeds
from leadline.analysis.verdict import Verdict, at_least, at_most, judge, undecided
from leadline.core.config import Scale
from leadline.core.study import Study, Unit
from leadline.core.table import Table
from leadline.recipes import Made

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METHODS = {
    "exact": "exact projection",
    "printed": "Algorithm 1, cropped",
    "released": "as released (conjugate)",
}
LOOKS: dict[str, dict[str, Any]] = {
    "exact": {"linewidth": 3.2, "alpha": 0.45},
    "printed": {"linewidth": 1.3, "linestyle": "--"},
    "released": {"linewidth": 1.3},
}
PUBLISHED = Table(method=[], quantity=[], value=[], source=[])
"""The paper does not speak of it."""
CLOSE = 1.25
"""What "close to one" is taken to mean."""
ONE_TAP = 0.9
"""The share of the squared norm that one tap has when it is called the only one."""
SIZES: dict[Scale, dict[str, Any]] = {
    "smoke": {
        "model": "procresnet-22",
        "widths": (4, 8, 16),
        "data": "digits",
        "train": 256,
        "pool": 1,
        "batch": 32,
        "steps": 12,
        "seconds": 1.0,
    },
    "laptop": {
        "model": "procresnet-22",
        "widths": (16, 32, 64),
        "data": "cifar10",
        "train": 3200,
        "pool": 2,
        "batch": 64,
        "steps": 100,
        "seconds": 16.0,
    },
    "paper": {
        "model": "procresnet-85",
        "widths": (16, 32, 64),
        "data": "cifar10",
        "train": 50_000,
        "pool": 1,
        "batch": 128,
        "steps": 3900,
        "seconds": 12_000.0,
    },
}
SEEDS: dict[Scale, int] = {"smoke": 1, "laptop": 3, "paper": 3}


def runs(scale: Scale) -> Iterator[Unit]:
    for method in METHODS:
        for seed in range(SEEDS[scale]):
            yield Study.of("leadline.recipes._stem_fault:stem", method=method, seed=seed, **SIZES[scale])


def table(made: Sequence[Made]) -> Table:
    """A row a call (`at` is then "call") or step: the stem's ratio, how many blocks are farther from one, the taps."""
    rows = []
    for one in made:
        key = {"method": one.args["method"], "seed": one.seed}
        readings = one.run.readings
        for at, prefix in (("call", "calls/"), ("step", "")):
            ratios = readings.where(name=f"{prefix}ratio")
            norms = readings.where(name=f"{prefix}taps")
            for step in sorted(set(ratios["step"].tolist())):
                found = ratios.where(step=step)["value"]
                far = np.abs(np.log10(np.where(found > 0, found, np.nan)))
                squares = norms.where(step=step)["value"] ** 2
                rows.append(
                    key
                    | {
                        "at": at,
                        "number": step,
                        "stem": float(f"{found[0]:.5g}"),
                        "farther": int((far[1:] > far[0]).sum()),
                        "share": float(f"{squares.max() / squares.sum():.5g}"),
                    }
                )
    return Table.from_rows(rows, ["method", "seed", "at", "number", "stem", "farther", "share"])


def figure(table: Table) -> "Figure":
    from leadline.figures import series
    from leadline.figures.style import styled

    with styled():
        drawn, (left, middle, right) = series.panels(3, width=2.9, height=3.1)
        calls, steps = table.where(at="call"), table.where(at="step")
        for method, look in LOOKS.items():
            name = {method: METHODS[method]}
            series.draw(left, calls, x="number", y="stem", by="method", names=name, log=True, **look)
            series.draw(middle, steps, x="number", y="stem", by="method", names=name, log=True, **look)
            series.draw(right, steps, x="number", y="share", by="method", names=name, **look)
        left.set(title="before training", xlabel="calls of the projection", ylabel="gradient norm ratio of the stem")
        middle.set(title="while training", xlabel="step")
        right.set(title="share of the largest tap", xlabel="step", ylim=(0, 1.05))
        for panel in (left, middle):
            panel.axhline(1.0, color="#555555", linewidth=0.7, zorder=1)
            panel.set_yticks([0.5, 1, 2, 5, 10, 20], labels=["0.5", "1", "2", "5", "10", "20"])
            panel.set_ylim(min(0.8, 0.9 * float(np.nanmin(table["stem"]))), 1.2 * float(np.nanmax(table["stem"])))
            panel.minorticks_off()
        handles, labels = left.get_legend_handles_labels()
        drawn.legend(handles, labels, loc="outside lower center", ncols=3)
    return drawn


def after_calls(table: Table, method: str, call: int) -> float:
    """The stem's ratio after so many projections of an untrained network, mean over seeds."""
    return mean_of(table.where(at="call"), "stem", method=method, number=call)


def late(table: Table, method: str) -> Table:
    """The second half of the training."""
    rows = table.where(at="step", method=method)
    return rows.select(rows["number"] >= rows["number"].max(initial=0) / 2)


def leaps(table: Table) -> Verdict:
    before, first, second = (after_calls(table, "released", call) for call in (0, 1, 2))
    note = f"{before:.3g} before, {first:.3g} after the first call, {second:.3g} after the second"
    return judge(before < second < first, first / before, seeds=seeds(table), note=note)


def right_stays(table: Table) -> Verdict:
    ratios = late(table, "exact")["stem"]
    middle = float(np.median(ratios)) if len(ratios) else float("nan")
    note = f"median {middle:.3g} over the second half of the training"
    return at_most(max(middle, 1 / middle), CLOSE, seeds=seeds(table), note=note)


def one_tap(table: Table) -> Verdict:
    shares = {method: mean_of(late(table, method), "share") for method in METHODS}
    note = "largest tap's share of the squared norm: " + ", ".join(f"{m} {value:.3g}" for m, value in shares.items())
    return at_least(shares["released"], ONE_TAP, seeds=seeds(table), note=note)


def crop_is_not_it(table: Table) -> Verdict:
    exact, printed = (float(np.median(late(table, method)["stem"])) for method in ("exact", "printed"))
    note = f"median ratio of the stem: exact {exact:.3g}, printed {printed:.3g}"
    return at_most(max(exact / printed, printed / exact), 1.1, seeds=seeds(table), note=note)


def outlier(table: Table, method: str) -> Verdict:
    """Is the stem farther from one than every block behind it, at most steps?"""
    rows = late(table, method)
    if not rows.height:
        return undecided("no training")
    share = float((rows["farther"] == 0).mean())
    note = (
        f"share of the steps of the second half at which no block is farther from one; the stem's median ratio is "
        f"{np.median(rows['stem']):.3g}, {rows['farther'].mean():.2g} blocks are farther in the mean"
    )
    return judge(share > 0.5, share, seeds=seeds(rows), note=note)


CLAIMS = (
    Claim(
        where="ours",
        text="the released projection moves the stem's ratio far from one at its first call, and part of the way back",
        test=leaps,
    ),
    Claim(
        where="ours",
        text="with the exact projection it stays within a factor 1.25 of one",
        test=right_stays,
        since="laptop",
    ),
    Claim(
        where="ours",
        text="the released projection leaves one of the nine taps",
        test=one_tap,
        since="laptop",
    ),
    Claim(
        where="ours",
        text="the crop of Algorithm 1 is not the cause: without the conjugate its stem is like the exact one",
        test=crop_is_not_it,
        since="laptop",
    ),
    Claim(
        where="section 4.1",
        text="the stem preserves norms least of all blocks, having few channels in: so with the exact projection too",
        test=lambda table: outlier(table, "exact"),
        since="laptop",
    ),
    Claim(
        where="section 4.1, as the release has it",
        text="the stem preserves norms least of all blocks with the released projection",
        test=lambda table: outlier(table, "released"),
        since="laptop",
    ),
)
