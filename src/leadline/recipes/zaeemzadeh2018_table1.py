"""Table 1: generalisation gap while plain, residual and Procrustes residual networks train, mean and largest.

Reference: Zaeemzadeh, Rahnavard, Shah, Norm-Preservation: Why Residual Networks Can Become Extremely Deep?, section
4.2. CIFAR-10, depths 20, 83 and 164, 100 epochs at rate 0.1, test error less training error in percent, ten runs.
Run: leadline reproduce zaeemzadeh2018_table1 --scale laptop (about ten minutes on one core, shared with Fig. 3).
Expect: the gap of ProcResNet is smaller than that of ResNet and its maximum is closer to its mean; the plain network
of 164 layers does not train and has no entry.
Differs: errors are compared once an epoch, on the first batches of either split, with batch norm on the training split
as it is while training; the gap with running statistics on both sides is in the table as well. Laptop: half the width,
3,000 images of 16 x 16 pixels, batches of 64 in bfloat16, six epochs, three seeds but for one at depth 164. Smoke: the
digits that come with the package, depths 20 and 29.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from leadline.analysis.claims import Claim, Test
from leadline.core.config import Scale
from leadline.core.study import Unit
from leadline.core.table import Table
from leadline.recipes import Made
from leadline.recipes._zaeemzadeh2018 import COMPARED, NAMES, at_every_depth, epochs_of, trained, watched

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NUMBERS = {
    ("plain", 20): (6.7, 20.0),
    ("plain", 83): (7.5, 30.1),
    ("resnet", 20): (5.5, 23.1),
    ("resnet", 83): (5.1, 12.5),
    ("resnet", 164): (5.2, 18.7),
    ("procresnet", 20): (2.3, 8.3),
    ("procresnet", 83): (2.0, 7.7),
    ("procresnet", 164): (3.3, 8.7),
}
PUBLISHED = Table.from_rows(
    [
        {"net": net, "depth": depth, "quantity": quantity, "value": value, "source": "Table 1"}
        for (net, depth), pair in NUMBERS.items()
        for quantity, value in zip(("mean", "largest"), pair, strict=True)
    ]
)


def runs(scale: Scale) -> Iterator[Unit]:
    yield from watched(scale)


def table(made: Sequence[Made]) -> Table:
    rows = []
    for one, key in trained(made):
        row = key | {"diverged": int(one.diverged)}
        for name, suffix in (("gap/training", ""), ("gap", "_evaluated")):
            gaps = np.array([gap for epoch, gap in epochs_of(one, name).items() if epoch])
            whole = len(gaps) > 0 and not one.diverged and bool(np.isfinite(gaps).all())
            mean, largest = (float(gaps.mean()), float(gaps.max())) if whole else (float("nan"), float("nan"))
            row |= {f"mean{suffix}": mean, f"largest{suffix}": largest, f"beyond{suffix}": largest - mean}
        rows.append(row)
    return Table.from_rows(rows)


def figure(table: Table) -> "Figure":
    from leadline.figures import dots
    from leadline.figures.style import COLOURS, styled

    depths = sorted(set(table["depth"].tolist()))
    labels = {(net, depth): f"{NAMES[net]} {depth + 2 * (net == 'procresnet')}" for depth in depths for net in COMPARED}
    pairs = zip(table["net"].tolist(), table["depth"].tolist(), strict=True)
    named = Table({**table, "name": np.array([labels[pair] for pair in pairs], dtype=object)})
    colours = dict(zip(COMPARED, (COLOURS[1], COLOURS[0], COLOURS[2]), strict=True))
    with styled():
        drawn, panels = dots.panels(2, rows=len(labels), width=3.2)
        for k, (panel, quantity) in enumerate(zip(panels, ("mean", "largest"), strict=True)):
            marked = {labels[key]: pair[k] for key, pair in NUMBERS.items() if key in labels}
            looks = {name: colours[net] for (net, _), name in labels.items()}
            dots.draw(panel, named, y="name", x=quantity, colours=looks, marked=marked, missing="diverged")
            panel.axvline(0, color="#555555", linewidth=0.7)
            panel.set(xlabel=f"{quantity} generalisation gap, %")
        drawn.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return drawn


def smaller(value: str, first: str, second: str, of: str) -> Test:
    return lambda table: at_every_depth(table, value, first, second, of=of)


CLAIMS = (
    Claim(
        where="section 4.2, Table 1",
        text="the generalisation gap of ProcResNet is smaller than that of ResNet",
        published="2.3 < 5.5, 2.0 < 5.1, 3.3 < 5.2",
        test=smaller("mean", "procresnet", "resnet", "mean gap in percent by depth"),
        since="laptop",
    ),
    Claim(
        where="section 4.2, Table 1",
        text="the gap of ProcResNet fluctuates far less: its maximum is closer to its mean",
        published="6.0 < 17.6, 5.7 < 7.4, 5.4 < 13.5",
        test=smaller("beyond", "procresnet", "resnet", "largest less mean gap in percent by depth"),
        since="laptop",
    ),
    Claim(
        where="section 4.2, Table 1",
        text="plain networks generalise less well than ResNets of their depth",
        published="6.7 > 5.5, 7.5 > 5.1",
        test=smaller("mean", "resnet", "plain", "mean gap in percent by depth"),
        since="laptop",
    ),
)
