"""Fig. 4: condition number of the Hessian at the start, for linear networks of growing depth.

Reference: Li, Jiao, Han, Weissman, Demystifying ResNet, section 5.1 and appendix B. Whitened MNIST of ten dimensions,
one-hot targets, |lambda|_max / |lambda|_(0.1) of the exact Hessian, ten starts.
Run: leadline reproduce li2016_fig4 --scale paper (about a minute on two cores).
Expect: 2-shortcut nets stay near 1.4 at every depth; orthogonal starts grow roughly in proportion to depth; Xavier
grows by orders of magnitude with every doubling, until a tenth of the spectrum is not told from zero in float64 and
the number is drawn as infinite.
Differs: the depths on the paper's axis are not printed; ours are 2, 4, 8, 16, 32 and 40; ours draws means and
deviations of the logarithms. The Hessian is assembled from
second moments of the data, which is exact for linear nets. The laptop scale has five starts and depths up to 32, the
smoke scale the digits that come with the package, two starts and depths up to 8.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from leadline.analysis.claims import Claim, Test, constant, ordered
from leadline.analysis.stats import seeds, summarise
from leadline.analysis.verdict import Verdict, judge
from leadline.core.config import Scale
from leadline.core.study import Unit
from leadline.core.table import Table
from leadline.recipes import Made
from leadline.recipes._li2016_linear import COMPARED, SECONDS_OF_SPECTRUM, names, study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DEPTHS: dict[Scale, tuple[int, ...]] = {
    "smoke": (2, 4, 8),
    "laptop": (2, 4, 8, 16, 32),
    "paper": (2, 4, 8, 16, 32, 40),
}
SEEDS: dict[Scale, int] = {"smoke": 2, "laptop": 5, "paper": 10}
PUBLISHED = Table(net=[], depth=[], quantity=[], value=[], source=[])
"""The figure has no numbers beside its axes, and the text gives none."""


def runs(scale: Scale) -> Iterator[Unit]:
    depths = DEPTHS[scale]
    cost = SECONDS_OF_SPECTRUM * sum(depth**3 for depth in depths)
    for net in COMPARED:
        for seed in range(SEEDS[scale]):
            yield study("initial", scale, seconds=cost, net=net, depths=depths, seed=seed)


def table(made: Sequence[Made]) -> Table:
    rows = [
        {"net": one.args["net"], "depth": depth, "seed": one.seed}
        | {name: found.where(step=depth, name=name)["value"][0] for name in ("ratio", "largest", "percentile10")}
        for one in made
        for found in [one.run.readings]
        for depth in one.args["depths"]
    ]
    return Table.from_rows(rows, ["net", "depth", "seed", "ratio", "largest", "percentile10"])


def figure(table: Table) -> "Figure":
    from leadline.figures import series
    from leadline.figures.style import styled

    with styled():
        drawn, (panel,) = series.panels(1, width=4.6, height=3.4)
        series.draw(panel, table, x="depth", y="ratio", by="net", names=names(COMPARED), log=True)
        panel.set(xlabel="depth", ylabel=r"$|\lambda|_{\max} \,/\, |\lambda|_{(0.1)}$")
        panel.set_xscale("log", base=2)
        panel.set_xticks(sorted(set(table["depth"].tolist())), labels=map(str, sorted(set(table["depth"].tolist()))))
        panel.set_title("Hessian at the start, linear networks")
        panel.legend()
    return drawn


def means(table: Table, net: str) -> dict[int, float]:
    """The mean condition number of a net by depth, where no start has an infinite one."""
    found = summarise(table.where(net=net), "ratio", by=["depth"])
    return {row["depth"]: row["mean"] for row in found.rows() if not row["lost"]}


def stays(table: Table) -> Verdict:
    known = means(table, "2-shortcut")
    note = ", ".join(f"{value:.4g} at {depth}" for depth, value in known.items())
    return constant(list(known.values()), within=1.1, seeds=seeds(table), note=note)


def explodes(net: str) -> Test:
    def test(table: Table) -> Verdict:
        known = means(table, net)
        beyond = sorted(set(table["depth"].tolist()) - set(known))
        note = ", ".join(f"{value:.3g} at {depth}" for depth, value in known.items())
        infinite = f"; infinite in float64 at {', '.join(map(str, beyond))}" if beyond else ""
        return ordered(list(known.values())[::-1], seeds=seeds(table), note=note + infinite)

    return test


def slower(table: Table) -> Verdict:
    one, other = means(table, "orthogonal"), means(table, "xavier")
    common = sorted(set(one) & set(other))
    if len(common) < 2:
        return judge(False, float("nan"), note="fewer than two depths where both are finite")
    growth = [known[common[-1]] / known[common[0]] for known in (one, other)]
    note = f"from depth {common[0]} to {common[-1]} orthogonal times {growth[0]:.3g}, Xavier times {growth[1]:.3g}"
    return judge(growth[0] < growth[1], growth[1] / growth[0], seeds=seeds(table), note=note)


CLAIMS = (
    Claim(where="section 5.1", text="2-shortcut linear networks have constant condition numbers", test=stays),
    Claim(where="section 5.1", text="with Xavier the condition number grows without end", test=explodes("xavier")),
    Claim(where="section 5.1", text="with orthogonal starts it grows without end too", test=explodes("orthogonal")),
    Claim(where="section 5.1", text="it grows more slowly with orthogonal starts than with Xavier", test=slower),
)
