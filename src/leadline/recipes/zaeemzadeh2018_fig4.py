"""Fig. 4: losses and errors, in training and testing, of plain, residual and Procrustes residual networks.

Reference: Zaeemzadeh, Rahnavard, Shah, Norm-Preservation: Why Residual Networks Can Become Extremely Deep?, section
4.2. CIFAR-10, depths 20, 83 and 164, the first 100 epochs at rate 0.1.
Run: leadline reproduce zaeemzadeh2018_fig4 --scale laptop (about ten minutes on one core, shared with Fig. 3).
Expect: losses of ResNet and ProcResNet fall as they become deeper, those of plain networks do not; test errors jump
from epoch to epoch in plain networks, less so in ResNet, least in ProcResNet, there independently of depth.
Differs: how much a curve jumps is taken as the mean of |e_t - (e_{t-1} + e_{t+1}) / 2|, free of its trend. The training
error is that of the first batches, with batch norm as in training. Laptop: half the width, 3,000 images of 16 x 16
pixels, batches of 64 in bfloat16, six epochs, three seeds but for one at depth 164. Smoke: digits, depths 20 and 29.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from leadline.analysis.claims import Claim, Test, constant, ordered
from leadline.analysis.stats import mean_of, seeds, spread
from leadline.analysis.verdict import Verdict, judge, undecided
from leadline.core.config import Scale
from leadline.core.study import Unit
from leadline.core.table import Table
from leadline.recipes import Made
from leadline.recipes._zaeemzadeh2018 import (
    COMPARED,
    NAMES,
    at_every_depth,
    depths,
    epochs_of,
    trained,
    training_losses,
    watched,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PUBLISHED = Table(net=[], depth=[], quantity=[], value=[], source=[])
"""The figure has no numbers beside its axes."""
COLUMNS = ("net", "depth", "seed", "epoch", "train_loss", "test_loss", "train_error", "test_error", "diverged")
WIDE = 30.0
"""The largest over the smallest loss from which on an axis has one label a decade."""
SAME = 1.5
"""What "does not change" with depth is taken to mean: by this factor at most."""


def runs(scale: Scale) -> Iterator[Unit]:
    yield from watched(scale, seeds=3)


def table(made: Sequence[Made]) -> Table:
    rows = []
    for one, key in trained(made):
        columns = {
            "train_loss": training_losses(one),
            "test_loss": epochs_of(one, "test/loss"),
            "train_error": epochs_of(one, "error/training"),
            "test_error": {e: 100 * (1 - right) for e, right in epochs_of(one, "test/accuracy").items()},
        }
        for epoch in sorted(set().union(*columns.values())):
            numbers = {name: values.get(epoch, float("nan")) for name, values in columns.items()}
            rows.append(key | {"epoch": epoch} | numbers | {"diverged": int(one.diverged)})
    return Table.from_rows(rows, COLUMNS)


def figure(table: Table) -> "Figure":
    from matplotlib.ticker import LogLocator, NullLocator

    from leadline.figures import twin
    from leadline.figures.style import blank, styled

    every = sorted(set(table["depth"].tolist()))
    losses = np.concatenate([table["train_loss"], table["test_loss"]])
    losses = losses[np.isfinite(losses) & (losses > 0)]
    limits = (0.8 * losses.min(), 1.25 * np.quantile(losses, 0.98)) if len(losses) else (0.1, 10.0)
    with styled():
        drawn = blank(width=8.4, height=0.8 + 2.0 * len(every))
        panels = drawn.subplots(len(every), len(COMPARED), sharex=True, squeeze=False)
        for line, depth in zip(panels, every, strict=True):
            for panel, net in zip(line, COMPARED, strict=True):
                rows = table.where(net=net, depth=depth, seed=0)
                right = twin.draw(
                    panel,
                    rows.select(rows["epoch"] > 0),
                    x="epoch",
                    left={"test_loss": "test loss", "train_loss": "training loss"},
                    right={"test_error": "test error", "train_error": "training error"},
                )
                panel.set(yscale="log", ylim=limits, title=f"{NAMES[net]} {depth + 2 * (net == 'procresnet')}")
                panel.yaxis.set_major_locator(LogLocator(subs=(1,) if limits[1] > WIDE * limits[0] else (1, 2, 3, 5)))
                panel.yaxis.set_major_formatter("{x:g}")
                panel.yaxis.set_minor_locator(NullLocator())
                right.set_ylim(0, 102)
                twin.label(panel, right, left="loss" * (net == COMPARED[0]), right="error, %" * (net == COMPARED[-1]))
        for panel in panels[-1]:
            panel.set_xlabel("epoch")
            panel.xaxis.get_major_locator().set_params(integer=True)
        drawn.legend(*twin.legend(panels[0, 0]), loc="outside lower center", ncols=4)
    return drawn


def jumps(errors: ArrayLike) -> float:
    """The mean of |e_t - (e_{t-1} + e_{t+1}) / 2|.

    >>> jumps([9.0, 6.0, 3.0, 4.0])
    1.0
    """
    e = np.asarray(errors, dtype=np.float64)
    return float(np.abs(e[1:-1] - (e[:-2] + e[2:]) / 2).mean()) if len(e) > 2 else float("nan")


def roughness(table: Table) -> Table:
    """How much the test error jumps from epoch to epoch, a row a run."""
    rows = []
    for net in COMPARED:
        for depth in depths(table, net):
            for seed in sorted(set(table.where(net=net, depth=depth)["seed"].tolist())):
                errors = table.where(net=net, depth=depth, seed=seed).sort("epoch")["test_error"]
                rows.append({"net": net, "depth": depth, "seed": seed, "jumps": jumps(errors[np.isfinite(errors)])})
    return Table.from_rows(rows, ["net", "depth", "seed", "jumps"])


def last_losses(table: Table, net: str) -> dict[int, float]:
    """The mean training loss of the last epoch by depth; a run that diverged has none."""
    rows = table.where(net=net, diverged=0)
    return {depth: mean_of(rows, "train_loss", depth=depth, epoch=rows["epoch"].max()) for depth in depths(rows, net)}


def falls_with_depth(net: str) -> Test:
    def test(table: Table) -> Verdict:
        found = last_losses(table, net)
        note = "training loss of the last epoch " + ", ".join(f"{value:.3g} at {d}" for d, value in found.items())
        if len(found) < 2:
            return undecided(note + ": fewer than two depths")
        return ordered(list(found.values()), seeds=seeds(table.where(net=net)), note=note)

    return test


def plain_does_not(table: Table) -> Verdict:
    found = last_losses(table, "plain")
    lost = sorted(set(table.where(net="plain", diverged=1)["depth"].tolist()))
    note = ", ".join(f"{value:.3g} at {depth}" for depth, value in found.items())
    note = f"training loss of the last epoch {note}" + f"; diverged at {lost}" * bool(lost)
    if len(found) < 2:
        return undecided(note)
    values = list(found.values())
    return judge(values[-1] > values[0], values[-1] / values[0], seeds=seeds(table.where(net="plain")), note=note)


def smoother(first: str, second: str) -> Test:
    return lambda table: at_every_depth(roughness(table), "jumps", first, second, of="jumps of the test error, %")


def rougher_with_depth(table: Table) -> Verdict:
    found = _jumps_by_depth(table, "resnet")
    return ordered(list(found.values())[::-1], seeds=seeds(table), note=_said(found))


def same_at_every_depth(table: Table) -> Verdict:
    found = _jumps_by_depth(table, "procresnet")
    if len(found) < 2:
        return undecided(f"{_said(found)}: fewer than two depths")
    return constant(list(found.values()), within=SAME, seeds=seeds(table), note=_said(found))


def _jumps_by_depth(table: Table, net: str) -> dict[int, float]:
    rough = roughness(table)
    return {depth: spread(rough.where(net=net, depth=depth)["jumps"]).mean for depth in depths(rough, net)}


def _said(found: dict[int, float]) -> str:
    return "jumps of the test error, %: " + ", ".join(f"{value:.3g} at {depth}" for depth, value in found.items())


CLAIMS = (
    Claim(
        where="section 4.2",
        text="the training loss of ResNet falls as layers are added",
        test=falls_with_depth("resnet"),
        since="laptop",
    ),
    Claim(
        where="section 4.2",
        text="the training loss of ProcResNet falls as layers are added",
        test=falls_with_depth("procresnet"),
        since="laptop",
    ),
    Claim(
        where="section 4.2",
        text="that of plain networks does not: the deepest that trains ends above the shallowest",
        test=plain_does_not,
        since="laptop",
    ),
    Claim(
        where="section 4.2",
        text="the test error fluctuates less in ResNet than in plain networks",
        test=smoother("resnet", "plain"),
        since="laptop",
    ),
    Claim(
        where="section 4.2",
        text="fluctuations are more apparent in deeper ResNets",
        test=rougher_with_depth,
        since="laptop",
    ),
    Claim(
        where="section 4.2",
        text="the amplitude of the fluctuations is smaller in ProcResNet than in ResNet",
        test=smoother("procresnet", "resnet"),
        since="laptop",
    ),
    Claim(
        where="section 4.2",
        text="in ProcResNet it does not change as depth increases",
        test=same_at_every_depth,
        since="laptop",
    ),
)
