"""Table 2: parameters and test errors of ResNets with and without Procrustes transitions, also with ErasedReLU.

Reference: Zaeemzadeh, Rahnavard, Shah, Norm-Preservation: Why Residual Networks Can Become Extremely Deep?, section
4.3. CIFAR-10 and CIFAR-100, 164 and 1001 layers, 300 epochs; the rows without Procrustes are quoted from other papers.
Run: leadline reproduce zaeemzadeh2018_table2 --scale paper (weeks on one GPU; about 15 minutes at laptop scale).
Expect: ProcResNet has the smaller error in every pair, for less than 1% more parameters. Counts are exact: 1,703,258 of
ResNet-164, which no variant brings to the printed 1.71M, and 1,715,018 of ProcResNet-166.
Differs: both sides are trained alike here; the least error over all epochs is taken, as the release does; five seeds
at 164 layers, one at 1001. Laptop: CIFAR-10 alone, half the width, 3,000 images of 16 x 16 pixels, 1,000 to test,
batches of 64 in bfloat16, eight epochs, depths 83 and 164. Smoke: digits, depth 20. Counts are those of full width.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.analysis.claims import Claim, Test, ordered
from leadline.analysis.stats import mean_of, seeds
from leadline.analysis.verdict import Verdict, at_most, judge, undecided
from leadline.core.config import Scale
from leadline.core.study import Study, Unit
from leadline.core.table import Table
from leadline.recipes import Made
from leadline.recipes._zaeemzadeh2018 import (
    NAMES,
    at_every_depth,
    best_error,
    counting,
    depths,
    tabled,
    trained,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAIRS = (("procresnet", "resnet"), ("procresnet-erased", "resnet-erased"))
NETS = tuple(net for pair in PAIRS for net in pair[::-1])
COUNTED = tuple((net, depth) for depth in (164, 1001) for net in NETS)
CLASSES = {"cifar10": 10, "cifar100": 100}

# millions of parameters, error on CIFAR-10, on CIFAR-100
NUMBERS: Mapping[tuple[str, int], tuple[float, float, float]] = {
    ("resnet", 164): (1.71, 5.46, 24.33),
    ("resnet", 1001): (10.32, 4.62, 22.71),
    ("resnet-erased", 164): (1.70, 4.65, 22.41),
    ("resnet-erased", 1001): (10.32, 4.10, 20.63),
    ("procresnet", 164): (1.72, 4.75, 22.61),
    ("procresnet", 1001): (10.33, 3.72, 19.99),
    ("procresnet-erased", 164): (1.72, 4.53, 21.91),
    ("procresnet-erased", 1001): (10.33, 3.42, 18.12),
}
EXACT = {
    ("resnet", 164, "cifar10"): 1_703_258,
    ("resnet", 1001, "cifar10"): 10_327_706,
    ("procresnet", 164, "cifar10"): 1_715_018,
    ("procresnet", 1001, "cifar10"): 10_339_466,
    ("resnet", 164, "cifar100"): 1_726_388,
    ("resnet", 1001, "cifar100"): 10_350_836,
    ("procresnet", 164, "cifar100"): 1_738_148,
    ("procresnet", 1001, "cifar100"): 10_362_596,
}
"""What the layers of section 4 and of the release come to; ErasedReLU changes no parameter."""
LAST_DIGIT = 0.01
ROUNDING = 1e-9
NOT_COUNTED = undecided("not all networks were counted")

PUBLISHED = Table.from_rows(
    [
        {"net": net, "depth": depth, "data": data, "quantity": quantity, "value": value, "source": "Table 2"}
        for (net, depth), (millions, *errors) in NUMBERS.items()
        for data, quantity, value in (
            ("cifar10", "millions", millions),
            ("cifar10", "error", errors[0]),
            ("cifar100", "error", errors[1]),
        )
    ]
)


def runs(scale: Scale) -> Iterator[Unit]:
    for classes in CLASSES.values():
        yield counting(COUNTED, classes)
    for data in CLASSES if scale == "paper" else [""]:
        yield from tabled(scale, NETS, data=data)


def table(made: Sequence[Made]) -> Table:
    """Rows of trainings have an error, those of counts have parameters."""
    rows = [row for one in made if isinstance(one.unit, Study) for row in _counted(one)]
    for one, key in trained(made):
        rows.append(key | {"data": one.config.data.name, "error": best_error(one), "diverged": int(one.diverged)})
    names = ["net", "depth", "data", "seed", "error", "diverged", "parameters", "millions"]
    numbers = {"error": np.nan, "diverged": 0, "parameters": np.nan, "millions": np.nan}
    return Table.from_rows([numbers | row for row in rows], names)


def _counted(one: Made) -> Iterator[dict[str, Any]]:
    data = next(name for name, classes in CLASSES.items() if classes == one.args["classes"])
    for (net, depth), count in zip(COUNTED, one.readings("parameters")["value"].tolist(), strict=True):
        yield {
            "net": net,
            "depth": depth,
            "data": data,
            "seed": 0,
            "parameters": count,
            "millions": count / 1e6,
        }


def errors(table: Table) -> Table:
    """The rows of trainings, on the data set there is most of: the one that every scale has."""
    rows = table.select(np.isnan(table["parameters"])) if table.height else table
    data = rows["data"].tolist() if rows.height else []
    return rows.where(data="cifar10" if "cifar10" in data else data[0]) if data else rows


def figure(table: Table) -> "Figure":
    from leadline.figures import dots
    from leadline.figures.style import COLOURS, styled

    trainings = table.select(np.isnan(table["parameters"]))
    there = [*dict.fromkeys(zip(trainings["data"].tolist(), trainings["depth"].tolist(), strict=True))]
    tones = dict(zip(NETS, (COLOURS[0], COLOURS[2], COLOURS[5], COLOURS[4]), strict=True))
    named = {net: NAMES[net] for net in NETS}
    with styled():
        drawn, panels = dots.panels(max(1, len(there)), rows=len(NETS), width=2.9)
        for panel, (data, depth) in zip(panels, there, strict=False):
            rows = trainings.where(data=data, depth=depth)
            rows = Table({**rows, "name": np.array([named[net] for net in rows["net"].tolist()], dtype=object)})
            place = {"cifar10": 1, "cifar100": 2}.get(data)
            marked = {named[n]: NUMBERS[n, d][place] for n, d in NUMBERS if d == depth} if place else {}
            dots.draw(
                panel,
                rows,
                y="name",
                x="error",
                colours={named[net]: tone for net, tone in tones.items()},
                marked=marked,
                missing="diverged",
            )
            panel.set(xlabel="test error, %", title=f"{data}, {depth} layers")
        handles = max((panel.get_legend_handles_labels() for panel in panels), key=lambda found: len(found[0]))
        drawn.legend(*handles, loc="outside lower center", ncols=2)
    return drawn


def counts(table: Table) -> dict[tuple[str, int, str], float]:
    """Parameters by net, depth and data."""
    rows = table.select(np.isfinite(table["parameters"]))
    return {(row["net"], row["depth"], row["data"]): row["parameters"] for row in rows.rows()}


def exact(table: Table) -> Verdict:
    found = counts(table)
    if not set(EXACT) <= set(found):
        return NOT_COUNTED
    wrong = {key: found[key] for key in EXACT if found[key] != EXACT[key]}
    said = "; ".join(f"{net} {depth}, {data}: {count:,.0f}" for (net, depth, data), count in wrong.items())
    return at_most(len(wrong), 0, note=said or f"{len(EXACT)} counts, the networks built without content")


def as_printed(table: Table) -> Verdict:
    found = counts(table)
    keys = {key: (*key, "cifar10") for key in NUMBERS}
    if not set(keys.values()) <= set(found):
        return NOT_COUNTED
    off = {key: abs(found[whole] / 1e6 - NUMBERS[key][0]) for key, whole in keys.items()}
    wrong = [key for key in off if off[key] > LAST_DIGIT / 2 + ROUNDING]
    note = "; ".join(f"{NAMES[net]} {depth}: {found[keys[net, depth]] / 1e6:.4f}M" for net, depth in wrong)
    return judge(not wrong, max(off.values()), note=f"largest difference in millions; {note or 'none is off'}")


def slight(table: Table) -> Verdict:
    found = counts(table)
    if not set(EXACT) <= set(found):
        return NOT_COUNTED
    more = {
        depth: found["procresnet", depth, "cifar10"] / found["resnet", depth, "cifar10"] - 1 for depth in (164, 1001)
    }
    note = ", ".join(f"{100 * value:.2f}% more at {depth}" for depth, value in more.items())
    return judge(max(more.values()) < 0.01, 100 * max(more.values()), note=note)


def better(first: str, second: str) -> Test:
    return lambda table: at_every_depth(errors(table), "error", first, second, of="least test error in percent")


def deeper(net: str) -> Test:
    def test(table: Table) -> Verdict:
        rows = errors(table)
        means = {depth: mean_of(rows, "error", net=net, depth=depth) for depth in depths(rows, net)}
        if len(means) < 2:
            return undecided("one depth alone")
        note = ", ".join(f"{value:.2f}% at {depth}" for depth, value in means.items())
        return ordered(list(means.values()), seeds=seeds(rows), note=note)

    return test


def reached(table: Table) -> Verdict:
    rows = errors(table)
    off = {key: mean_of(rows, "error", net=key[0], depth=key[1]) - NUMBERS[key][1] for key in NUMBERS}
    known = {key: value for key, value in off.items() if np.isfinite(value)}
    if not known:
        return undecided("none of these networks was trained")
    note = "; ".join(f"{NAMES[net]} {depth} {value:+.2f}" for (net, depth), value in known.items())
    return at_most(max(known.values()), 0.5, seeds=seeds(rows), note=note)


CLAIMS = (
    Claim(
        where="Table 2, section 4",
        text="the numbers of parameters are those of the layers described, CIFAR-10 and CIFAR-100",
        test=exact,
    ),
    Claim(
        where="Table 2",
        text="the printed numbers of parameters are these, rounded",
        published="1.71M, 10.32M; 1.72M, 10.33M",
        test=as_printed,
    ),
    Claim(
        where="section 4.3",
        text="the new transitions add less than 1% of the parameters",
        published="under 1%",
        test=slight,
    ),
    Claim(
        where="Table 2",
        text="ProcResNet has a smaller error than ResNet",
        published="4.75 < 5.46, 3.72 < 4.62",
        test=better("procresnet", "resnet"),
        since="laptop",
    ),
    Claim(
        where="Table 2",
        text="ProcResNet has a smaller error than ResNet with ErasedReLU",
        published="4.53 < 4.65, 3.42 < 4.10",
        test=better("procresnet-erased", "resnet-erased"),
        since="laptop",
    ),
    Claim(
        where="Table 2",
        text="ErasedReLU lowers the error of ProcResNet",
        published="4.53 < 4.75, 3.42 < 3.72",
        test=better("procresnet-erased", "procresnet"),
        since="laptop",
    ),
    Claim(
        where="Table 2",
        text="the error of ProcResNet falls with depth",
        published="4.75 > 3.72",
        test=deeper("procresnet"),
        since="paper",
    ),
    Claim(
        where="Table 2",
        text="the published errors on CIFAR-10 are reached within half a point",
        test=reached,
        since="paper",
    ),
)
