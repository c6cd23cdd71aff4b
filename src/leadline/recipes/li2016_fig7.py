"""Fig. 7: final losses at the best learning rate, and that rate, for linear networks of growing depth.

Reference: Li, Jiao, Han, Weissman, Demystifying ResNet, section 5.3.1 and appendix B. Whitened MNIST of ten
dimensions, one-hot targets, 1000 epochs of full-batch gradient descent at learning rates at log scale; the average
final loss of several starts, above the optimum, at the rate where it is least.
Run: leadline reproduce li2016_fig7 --scale paper (a few minutes on two cores).
Expect: 2-shortcut nets end close to the optimum at every depth and take the highest rates; orthogonal starts and
1-shortcut nets end a little above, at rates that fall with depth; Xavier gets worse with depth until no rate does
better than another.
Differs: the paper prints neither the depths nor the rates nor how many starts. Ours are depths 6, 12, 24, 48, 96
(whole units of one, two and three layers), 21 rates from 10^-4 to 10 and ten starts. Training is on second moments of
the data, which is exact for linear nets, all starts and rates of a net in one batch. A rate at which any start
diverges is not taken. The laptop scale has three starts, the smoke scale the digits that come with the package, two
starts, 100 epochs, eleven rates and depths up to 12.
"""

from collections.abc import Iterator, Sequence
from math import inf, nan
from typing import TYPE_CHECKING

import numpy as np

from leadline.analysis.claims import Claim, Test, below
from leadline.analysis.stats import mean_of, seeds
from leadline.analysis.verdict import Verdict, at_most, judge, undecided
from leadline.core.config import Scale
from leadline.core.study import Unit
from leadline.core.table import Table
from leadline.recipes import Made
from leadline.recipes._li2016_best import BASICALLY_THE_SAME, COLUMNS, at_best, deepest, draw_best
from leadline.recipes._li2016_linear import EPOCHS, NAMES, SECONDS_OF_NET_LAYER, names, scanned, study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DEPTHS: dict[Scale, tuple[int, ...]] = {"smoke": (6, 12), "laptop": (6, 12, 24, 48, 96), "paper": (6, 12, 24, 48, 96)}
SEEDS: dict[Scale, int] = {"smoke": 2, "laptop": 3, "paper": 10}
PUBLISHED = Table(net=[], depth=[], quantity=[], value=[], source=[])
"""The figure has no numbers beside its axes, and the text gives none."""
CLOSE = 0.01
"""An end at most this part of the optimum above it is `close to optimal`."""
SIMILAR = 10.0
"""Ends whose distances from the optimum differ by at most this factor are `similar`."""


def runs(scale: Scale) -> Iterator[Unit]:
    tried, seeds, epochs = scanned(scale), SEEDS[scale], EPOCHS[scale]
    for net in NAMES:
        for depth in DEPTHS[scale]:
            cost = SECONDS_OF_NET_LAYER * depth * epochs * len(tried) * seeds
            shape = {"net": net, "depth": depth, "seeds": seeds, "rates": tried, "epochs": epochs}
            yield study("final_losses", scale, seconds=cost + 0.1, **shape)


def table(made: Sequence[Made]) -> Table:
    """A row for each net, depth and start at the net's best rate."""
    rows = []
    for one in made:
        shape = {"net": one.args["net"], "depth": one.args["depth"]}
        ends = np.array([one.profile("loss", step=seed) for seed in range(one.args["seeds"])])
        optimum = one.last("optimum")
        rows += [shape | {"optimum": optimum} | row for row in at_best(ends, one.args["rates"], optimum=optimum)]
    return Table.from_rows(rows, ["net", "depth", "optimum", *COLUMNS])


def figure(table: Table) -> "Figure":
    return draw_best(table, y="excess", ylabel="final loss above the optimum", nets=names([*NAMES]))


def close(table: Table) -> Verdict:
    rows = table.where(net="2-shortcut")
    shares = {depth: mean_of(rows, "excess", depth=depth) / rows["optimum"][0] for depth in sorted({*rows["depth"]})}
    note = ", ".join(f"{share:.2g} of the optimum above it at {depth}" for depth, share in shares.items())
    return at_most(max(shares.values(), default=nan), CLOSE, seeds=seeds(table), note=note)


def lower(net: str) -> Test:
    def test(table: Table) -> Verdict:
        last = deepest(table)
        ends = [last.where(net=which)["excess"].tolist() for which in ("2-shortcut", net)]
        return below(*ends, note=depth_of(last))

    return test


def higher_rates(table: Table) -> Verdict:
    last = deepest(table)
    rates = {net: mean_of(last, "rate", net=net) for net in NAMES}
    others = [rate for net, rate in rates.items() if net not in ("2-shortcut", "3-shortcut")]
    note = ", ".join(f"{NAMES[net]} {rate:.3g}" for net, rate in rates.items()) + f"; {depth_of(last)}"
    ratio = rates["2-shortcut"] / max(others)
    return judge(ratio > 1, ratio, seeds=seeds(table), note=note)


def like_orthogonal(table: Table) -> Verdict:
    """The largest factor between the distances from the optimum over the depths."""
    factors = {}
    for depth in sorted(set(table["depth"].tolist())):
        one, other = (mean_of(table, "excess", net=net, depth=depth) for net in ("1-shortcut", "orthogonal"))
        factors[depth] = max(one / other, other / one) if one and other else inf
    note = ", ".join(f"{factor:.2g} times at {depth}" for depth, factor in factors.items())
    return at_most(max(factors.values(), default=nan), SIMILAR, seeds=seeds(table), note=note)


def xavier_same(table: Table) -> Verdict:
    last = deepest(table).where(net="xavier")
    if not last.height:
        return undecided("there are no Xavier nets")
    return at_most(float(last["spread"][0]), BASICALLY_THE_SAME, seeds=seeds(table), note=depth_of(last))


def depth_of(table: Table) -> str:
    return f"depth {table['depth'][0]}"


CLAIMS = (
    Claim(
        where="section 5.3.1",
        text="final losses of 2-shortcut linear nets stay close to optimal as they become deeper",
        test=close,
        since="laptop",
    ),
    Claim(
        where="section 5.3.1, Fig. 7 left",
        text="the deepest 2-shortcut nets end lower than Xavier",
        test=lower("xavier"),
    ),
    Claim(
        where="section 5.3.1, Fig. 7 left",
        text="the deepest 2-shortcut nets end lower than orthogonal starts",
        test=lower("orthogonal"),
    ),
    Claim(
        where="abstract",
        text="shortcut 2 is better than deeper shortcuts: the deepest 2-shortcut nets end lower than 3-shortcut nets",
        test=lower("3-shortcut"),
    ),
    Claim(
        where="section 5.3.1, Fig. 7 right",
        text="2-shortcut nets take higher learning rates than Xavier, orthogonal and 1-shortcut nets",
        test=higher_rates,
    ),
    Claim(
        where="section 5",
        text="1-shortcut nets learn like linear nets with orthogonal starts",
        published="similar",
        test=like_orthogonal,
    ),
    Claim(
        where="caption of Fig. 7",
        text="at depth 96 Xavier ends at basically the same loss at every rate",
        published="the same",
        test=xavier_same,
        since="laptop",
    ),
)
