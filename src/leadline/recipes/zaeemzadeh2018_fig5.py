"""Fig. 5: test error against the number of parameters, of ResNets and of Procrustes ResNets.

Reference: Zaeemzadeh, Rahnavard, Shah, Norm-Preservation: Why Residual Networks Can Become Extremely Deep?, section
4.3. CIFAR-10, 300 epochs; among the networks ResNet-164 and ResNet-1001, ProcResNet-166, -274 and -1003.
Run: leadline reproduce zaeemzadeh2018_fig5 --scale laptop (about ten minutes on one core, shared with Fig. 3).
Expect: the curve of ProcResNet lies below that of ResNet; ProcResNet-274, 2,827,850 parameters, is as good as
ResNet-1001, which has 3.7 times as many.
Differs: the paper prints no coordinates but those of Table 2; 20 and 83 layers stand for its smaller networks. The
least error over all epochs is taken. Laptop: depths 20, 83 and 164, half the width, 3,000 images of 16 x 16 pixels,
1,000 to test, batches of 64 in bfloat16, eight epochs. Smoke: digits, depths 20 and 29. Counts are of full width.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.analysis.claims import Claim
from leadline.analysis.stats import mean_of
from leadline.analysis.verdict import Verdict, at_most, judge, undecided
from leadline.core.config import Scale
from leadline.core.study import Study, Unit
from leadline.core.table import Table
from leadline.recipes import Made
from leadline.recipes._zaeemzadeh2018 import (
    NAMES,
    SIZES,
    at_every_depth,
    best_error,
    counting,
    trained,
    training,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NETS = ("resnet", "procresnet")
SMALL, LARGE = ("procresnet", 272), ("resnet", 1001)
"""The two that are compared, by the depth of the ResNet they belong to: ProcResNet-274 and ResNet-1001."""
COUNT_OF_SMALL = 2_827_850
ERRORS = {("resnet", 164): 5.46, ("resnet", 1001): 4.62, ("procresnet", 164): 4.75, ("procresnet", 1001): 3.72}
MILLIONS = {SMALL: 2.82, LARGE: 10.32}
PUBLISHED = Table.from_rows(
    [
        {"net": net, "depth": depth, "quantity": quantity, "value": value, "source": source}
        for found, quantity, source in ((ERRORS, "error", "Table 2"), (MILLIONS, "counted", "section 4.3"))
        for (net, depth), value in found.items()
    ]
)
SHALLOW = (20, 83)
SHALLOW_SEEDS = 3


def runs(scale: Scale) -> Iterator[Unit]:
    yield counting((SMALL, LARGE), 10)
    size = SIZES[scale]
    for net in NETS:
        deep = dict(size.tabled) | ({SMALL[1]: 1} if scale == "paper" and net == SMALL[0] else {})
        shallow = dict.fromkeys(SHALLOW, SHALLOW_SEEDS)
        for depth, count in ((shallow | deep) if scale == "paper" else size.watched).items():
            for seed in range(count):
                yield training(net, depth, seed, scale, whole=True)


def table(made: Sequence[Made]) -> Table:
    """Rows of trainings have an error and the parameters trained; `counted` are those at full width, in millions."""
    rows: list[dict[str, Any]] = []
    for one in made:
        if isinstance(one.unit, Study):
            values = one.readings("parameters")["value"].tolist()
            for (net, depth), count in zip((SMALL, LARGE), values, strict=True):
                rows.append({"net": net, "depth": depth, "seed": 0, "counted": count / 1e6})
    for one, key in trained(made):
        parameters = float(one.run.record["parameters"])
        rows.append(key | {"error": best_error(one), "parameters": parameters, "diverged": int(one.diverged)})
    numbers = {"error": np.nan, "parameters": np.nan, "diverged": 0, "counted": np.nan}
    names = ["net", "depth", "seed", "error", "parameters", "diverged", "counted"]
    return Table.from_rows([numbers | row for row in rows], names)


def trainings(table: Table) -> Table:
    return table.select(np.isfinite(table["parameters"])) if table.height else table


def figure(table: Table) -> "Figure":
    from leadline.figures import series
    from leadline.figures.style import styled

    rows = trainings(table)
    shown = Table({**rows, "millions": rows["parameters"] / 1e6})
    with styled():
        drawn, (panel,) = series.panels(1, width=5.2, height=3.4)
        series.draw(panel, shown, x="millions", y="error", by="net", names={net: NAMES[net] for net in NETS})
        for net, below in (("resnet", False), ("procresnet", True)):
            for depth in sorted(set(shown.where(net=net)["depth"].tolist())):
                of = shown.where(net=net, depth=depth)
                place = (float(of["millions"][0]), mean_of(of, "error"))
                if np.isfinite(place[1]):
                    panel.annotate(
                        str(depth + 2 * (net == "procresnet")),
                        place,
                        (0, -11 if below else 7),
                        textcoords="offset points",
                        ha="center",
                        fontsize="small",
                        color="#444444",
                    )
        panel.set(xscale="log", xlabel="parameters, millions", ylabel="test error, %")
        low, high = shown["millions"].min() / 1.1, shown["millions"].max() * 1.1
        marks = [first * 10.0**k for k in range(-4, 3) for first in (1, 2, 3, 4, 5, 7)]
        ticks = [mark for mark in marks if low <= mark <= high]
        panel.set_xticks(ticks, labels=[f"{tick:g}" for tick in ticks])
        panel.set_xlim(low, high)
        panel.minorticks_off()
        panel.margins(y=0.15)
        panel.legend()
    return drawn


def more_efficient(table: Table) -> Verdict:
    return at_every_depth(trainings(table), "error", "procresnet", "resnet", of="least test error in percent")


def factor(table: Table) -> Verdict:
    found = {key: mean_of(table, "counted", net=key[0], depth=key[1]) for key in (SMALL, LARGE)}
    times = found[LARGE] / found[SMALL]
    note = f"{1e6 * found[LARGE]:,.0f} and {1e6 * found[SMALL]:,.0f} parameters"
    return judge(3.5 <= times < 4.5, times, note=note)


def counted(table: Table) -> Verdict:
    found = 1e6 * mean_of(table, "counted", net=SMALL[0], depth=SMALL[1])
    return at_most(abs(found - COUNT_OF_SMALL), 0.5, note=f"{found:,.0f} parameters")


def outperforms(table: Table) -> Verdict:
    small, large = (mean_of(trainings(table), "error", net=net, depth=depth) for net, depth in (SMALL, LARGE))
    if not np.isfinite(small + large):
        return undecided("one of the two was not trained")
    return judge(small < large, small - large, note=f"{small:.2f}% and {large:.2f}%")


CLAIMS = (
    Claim(
        where="section 4.3, Fig. 5",
        text="ProcResNet has the smaller error for about the same number of parameters",
        test=more_efficient,
        since="laptop",
    ),
    Claim(
        where="section 4.3",
        text="ProcResNet-274 has the printed number of parameters",
        published="2.82M",
        test=counted,
    ),
    Claim(
        where="section 4.3",
        text="ResNet-1001 has about four times the parameters of ProcResNet-274",
        published="about 4x",
        test=factor,
    ),
    Claim(
        where="section 4.3",
        text="ProcResNet-274 slightly outperforms ResNet-1001",
        test=outperforms,
        since="paper",
    ),
)
