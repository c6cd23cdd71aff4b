"""The runs behind Figs 5 and 6 of Li et al.: the Hessian's spectrum at chosen losses on the way down, and its table."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from leadline.analysis.curves import at_levels, log_levels
from leadline.analysis.stats import mean_of
from leadline.core.config import Scale
from leadline.core.study import Study
from leadline.core.table import Table
from leadline.recipes import Made
from leadline.recipes._li2016_linear import (
    COMPARED,
    EPOCHS,
    SECONDS_OF_LONE_LAYER,
    SECONDS_OF_NET_LAYER,
    SECONDS_OF_SPECTRUM,
    scanned,
    study,
)

# Figs 5 and 6 go ten times more slowly than the best rate does, for ten times as long: a step of that takes the
# 2-shortcut net through most of the loss, and there would be nothing between two points to look at
SLOWER = 10
DEPTH: Mapping[Scale, int] = {"smoke": 6, "laptop": 16, "paper": 16}
RUNS: Mapping[Scale, int] = {"smoke": 2, "laptop": 3, "paper": 10}
LEVELS: Mapping[Scale, int] = {"smoke": 6, "laptop": 14, "paper": 25}
LEAST, MOST = 1e-3, 4.5


def spectra(scale: Scale) -> Iterator[Study]:
    """The runs of Figs 5 and 6, left: eigenvalues at losses from `LEAST` to `MOST` above the optimum."""
    depth, epochs, tried = DEPTH[scale], EPOCHS[scale], scanned(scale)
    levels = tuple(float(f"{level:.6g}") for level in log_levels(LEAST, MOST, LEVELS[scale]))
    seconds = 2 * len(levels) * SECONDS_OF_SPECTRUM * depth**3
    seconds += depth * epochs * (SECONDS_OF_NET_LAYER * len(tried) + SECONDS_OF_LONE_LAYER * SLOWER)
    shape = {"depth": depth, "epochs": epochs, "rates": tried, "slower": SLOWER, "levels": levels}
    for net in COMPARED:
        for seed in range(RUNS[scale]):
            yield study("spectra", scale, seconds=seconds, net=net, seed=seed, **shape)


def at_losses(made: Sequence[Made]) -> Table:
    """A row for each run and level it crosses: the eigenvalues there, and the start as a row of its own level."""
    rows = [row for one in made for row in _at_losses(one)]
    return Table.from_rows(rows, ["net", "seed", "level", "start", *MEASURED, "ratio"])


MEASURED = ("largest", "percentile10", "index")


def _at_losses(one: Made) -> Iterator[dict[str, Any]]:
    run = {"net": one.args["net"], "seed": one.seed}
    _, losses = one.curve("loss")
    excess = losses - one.last("optimum")
    levels = np.array(one.args["levels"])
    curves = {name: one.curve(name)[1] for name in MEASURED}
    found = {name: at_levels(excess, values, levels) for name, values in curves.items()}
    for level, *values in zip(levels.tolist(), *(found[name].tolist() for name in MEASURED), strict=True):
        if values[0] == values[0]:
            yield run | {"level": level, "start": False} | _row(values)
    yield run | {"level": float(excess[0]), "start": True} | _row([float(curves[name][0]) for name in MEASURED])


def _row(values: Sequence[float]) -> dict[str, float]:
    row = dict(zip(MEASURED, values, strict=True))
    return row | {"ratio": row["largest"] / row["percentile10"] if row["percentile10"] else float("inf")}


def at_levels_of(table: Table, value: str, net: str) -> dict[float, float]:
    """The mean over runs by level, in falling order; levels that only some of the runs cross are left out."""
    rows = table.where(net=net, start=False)
    runs = len(set(rows["seed"].tolist()))
    counted = {level: int((rows["level"] == level).sum()) for level in set(rows["level"].tolist())}
    levels = sorted((level for level, count in counted.items() if count == runs), reverse=True)
    return {level: mean_of(rows, value, level=level) for level in levels}
