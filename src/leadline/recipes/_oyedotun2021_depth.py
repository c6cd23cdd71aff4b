"""Figs 7 to 13 of Oyedotun et al.: condition numbers of weights and hidden representations along the depth.

A condition number counts as infinite where a singular value is not told from zero in the precision of the data.
Layers are numbered from the first convolution on; weights of skips are in no layer.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leadline.core.table import Table
from leadline.recipes import Made
from leadline.recipes._oyedotun2021 import COLOURS, COMPARED, NAMES, is_start, keys

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MODES = {"batch": "over the batch", "channel": "over the channels"}
"""Of hidden representations: n x N with a column a sample (Definition 2), and channels x everything else."""
WEIGHTS = "largest mode"
COLUMNS = ("net", "data", "depth", "seed", "outcome", "when", "mode", "layer", "kappa", "kept")
Numbered = Callable[[Mapping[str, Sequence[str]]], list[int]]
"""The layer of each place that a profile is counted along, from the names of a run's places."""
START, END = "start", "end"
Run = tuple[str, int, int]
"""Data, depth and seed."""


def weights(made: Sequence[Made]) -> Table:
    """A row for each run and layer: the largest kappa over the modes of the layer's HOSVD."""
    return _table(made, {WEIGHTS: ("kappa", "kappa_kept")}, weight_layers)


def hidden(made: Sequence[Made]) -> Table:
    """A row for each run, mode and boundary between blocks."""
    return _table(made, {mode: (f"kappa/{mode}", f"kappa_kept/{mode}") for mode in MODES}, boundary_layers)


def _table(made: Sequence[Made], modes: Mapping[str, tuple[str, str]], numbered: Numbered) -> Table:
    rows: list[dict[str, Any]] = []
    for one in made:
        key = keys(one) | {"outcome": one.outcome.get("outcome", ""), "when": START if is_start(one) else END}
        layers = numbered(one.run.record["places"])
        for mode, names in modes.items():
            found = [one.profile(name) for name in names]
            if not len(found[0]):
                rows.append(key | {"mode": mode, "layer": 1, "kappa": math.nan, "kept": math.nan})
                continue
            for layer, kappa, kept in zip(layers, *(values.tolist() for values in found), strict=True):
                # kappa over the directions that are not lost is the same number where none is lost
                shown = kappa if kappa == kept or math.isnan(kappa) else math.inf
                if layer:
                    rows.append(key | {"mode": mode, "layer": layer, "kappa": _short(shown), "kept": _short(kept)})
    return Table.from_rows(rows, COLUMNS)


def _short(value: float) -> float:
    """Five digits, which is more than any drawing shows."""
    return float(f"{value:.5g}")


def weight_layers(places: Mapping[str, Sequence[str]]) -> list[int]:
    """The number of the layer of each weight, 0 for weights of skips.

    >>> weight_layers({"layer": ["stem.conv", "b1.branch.conv1", "b1.skip.conv", "b2.branch.conv1"]})
    [1, 2, 0, 3]
    """
    on_path = ["skip" not in name.split(".") for name in places["layer"]]
    return [number if kept else 0 for number, kept in zip(np.cumsum(on_path).tolist(), on_path, strict=True)]


def boundary_layers(places: Mapping[str, Sequence[str]]) -> list[int]:
    """The number of the last layer before each boundary.

    >>> boundary_layers({"layer": ["stem.conv", "b1.conv1", "b1.conv2", "fc"], "boundary": ["b1:in.0", "b1:out"]})
    [1, 3]
    """
    path = [name for name in places["layer"] if "skip" not in name.split(".")]
    return [_layers_before(place, path) for place in places["boundary"]]


def _layers_before(place: str, path: Sequence[str]) -> int:
    module, _, side = place.rpartition(":")
    inside = [number for number, name in enumerate(path) if name.startswith(f"{module}.")]
    return inside[0] if side.startswith("in") else inside[-1] + 1


def figure(table: Table, title: str) -> "Figure":
    """A column for each data set, a row for each mode; the networks as they were initialised are dotted."""
    from leadline.figures import along_depth
    from leadline.figures.style import styled

    modes = list(dict.fromkeys(table["mode"].tolist()))
    columns = places(table)
    if len(columns) == 1 and len(modes) > 1:
        grid = [[(mode, columns[0]) for mode in modes]]
    else:
        grid = [[(mode, place) for place in columns] for mode in modes]
    colours = {net: COLOURS[net] for net in COMPARED}
    with styled():
        drawn, pairs = along_depth.pairs(len(grid), len(grid[0]))
        for line, cells in zip(pairs, grid, strict=True):
            for pair, (mode, (data, depth)) in zip(line, cells, strict=True):
                rows = table.where(mode=mode, data=data, depth=depth)
                start, end = (rows.where(when=when) for when in (START, END))
                along_depth.draw(pair, end, x="layer", y="kappa", by="net", colours=colours, faint=start)
                what = f", {MODES[mode]}" if mode in MODES else ""
                pair.strip.set_title(f"{NAMES[data]}, {depth} layers{what}", fontsize="medium")
            line[0].panel.set_ylabel("condition number")
        for pair in pairs[-1]:
            pair.panel.set_xlabel("layer")
        along_depth.legend(drawn, colours, notes=_lost(table), faint="at the start")
        drawn.suptitle(title, x=0.01, ha="left", fontsize="medium")
    return drawn


def places(table: Table) -> list[tuple[str, int]]:
    """Data and depth of the comparisons in a table, in its order."""
    return list(dict.fromkeys(zip(table["data"].tolist(), table["depth"].tolist(), strict=True)))


def _lost(table: Table) -> dict[str, str]:
    """What is said of networks whose training diverged, so that they have no numbers at its end."""
    diverged = table.where(when=END, outcome="diverged")
    return dict.fromkeys(set(diverged["net"].tolist()), "diverged")


def along(table: Table, net: str, mode: str, *, when: str = END) -> dict[Run, Table]:
    """The rows of a network, run by run, of runs that came to their end."""
    rows = table.where(net=net, mode=mode, when=when)
    rows = rows.select(~np.isnan(rows["kappa"].astype(float)))
    runs = dict.fromkeys(zip(rows["data"].tolist(), rows["depth"].tolist(), rows["seed"].tolist(), strict=True))
    return {run: rows.where(**dict(zip(("data", "depth", "seed"), run, strict=True))).sort("layer") for run in runs}


def beside(one: Table, other: Table) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The kappas of two runs at the layers of the first, the other's at the layer that is nearest."""
    far = np.abs(other["layer"][None, :] - one["layer"][:, None])
    return one["kappa"].astype(float), other["kappa"].astype(float)[far.argmin(axis=1)]
