"""Fig. 8: final losses at the best learning rate, and that rate, for networks with ReLUs in mid positions.

Reference: Li, Jiao, Han, Weissman, Demystifying ResNet, section 5.3.1 and appendix B. Whitened MNIST of ten
dimensions, one-hot targets, 1000 epochs of full-batch gradient descent at learning rates at log scale; plain nets have
ReLUs in the places in which 2-shortcut nets have them.
Run: leadline reproduce li2016_fig8 --scale laptop (about four minutes on one core; paper scale takes a core-day).
Expect: 2-shortcut nets end lowest from about eight layers on and do not get worse with depth; Xavier and orthogonal
starts do, until at 64 layers no rate does better than another.
Differs: the paper prints neither the depths nor the rates nor how many starts. Ours are depths 4, 8, 16, 32 and 64,
21 rates from 10^-4 to 10 and ten starts. Trainings are in float32. A rate at which any start diverges is not taken.
The laptop scale takes the first 1000 of the 60,000 images, nine rates from 10^-3 to 10 and three starts; the smoke
scale 300 of the digits that come with the package, two starts, 60 epochs, five rates and depths 4 and 8.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from leadline.analysis.claims import Claim, Test, below
from leadline.analysis.stats import mean_of, seeds
from leadline.analysis.verdict import Verdict, at_most, judge, undecided
from leadline.core.config import Scale
from leadline.core.study import Unit
from leadline.core.table import Table
from leadline.recipes import Made
from leadline.recipes._li2016_best import BASICALLY_THE_SAME, COLUMNS, at_best, deepest, draw_best
from leadline.recipes._li2016_linear import COMPARED, NAMES, names
from leadline.recipes._li2016_relu import by_shape, final_losses, trainings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PUBLISHED = Table(net=[], depth=[], quantity=[], value=[], source=[])
"""The figure has no numbers beside its axes, and the text gives none."""


def runs(scale: Scale) -> Iterator[Unit]:
    yield from trainings(scale)


def table(made: Sequence[Made]) -> Table:
    """A row for each net, depth and start at the net's best rate."""
    rows = []
    for (net, depth), ones in by_shape(made).items():
        best = at_best(final_losses(ones), ones[0].args["rates"])
        shape = {"net": net, "depth": depth, "samples": ones[0].args["samples"]}
        rows += [shape | row | {"seed": one.seed} for one, row in zip(ones, best, strict=True)]
    return Table.from_rows(rows, ["net", "depth", "samples", *COLUMNS])


def figure(table: Table) -> "Figure":
    labels = {net: f"{name.partition(',')[0]}, ReLU" for net, name in names(COMPARED).items()}
    return draw_best(table, y="loss", ylabel="final loss", nets=labels)


def lower(net: str) -> Test:
    def test(table: Table) -> Verdict:
        last = deepest(table)
        ends = [last.where(net=which)["loss"].tolist() for which in ("2-shortcut", net)]
        return below(*ends, note=where(last))

    return test


def not_worse(table: Table) -> Verdict:
    """The mean final loss of the deepest 2-shortcut nets over that of the shallowest."""
    depths = sorted(set(table["depth"].tolist()))
    means = {depth: mean_of(table, "loss", net="2-shortcut", depth=depth) for depth in depths}
    note = ", ".join(f"{loss:.3g} at {depth}" for depth, loss in means.items())
    return at_most(means[depths[-1]] / means[depths[0]], 1.0, seeds=seeds(table), note=note)


def worse(net: str) -> Test:
    """That the deepest nets end higher than the best of the others do."""

    def test(table: Table) -> Verdict:
        depths = sorted(set(table["depth"].tolist()))
        means = {depth: mean_of(table, "loss", net=net, depth=depth) for depth in depths}
        note = ", ".join(f"{loss:.3g} at {depth}" for depth, loss in means.items())
        factor = means[depths[-1]] / min(means.values())
        return judge(factor > 1, factor, seeds=seeds(table), note=note)

    return test


def same_at_every_rate(net: str) -> Test:
    def test(table: Table) -> Verdict:
        last = deepest(table).where(net=net)
        if not last.height:
            return undecided(f"there are no {NAMES[net]} nets")
        note = f"largest over least mean of the rates that do not diverge, {where(last)}"
        return at_most(float(last["spread"][0]), BASICALLY_THE_SAME, seeds=seeds(table), note=note)

    return test


def where(table: Table) -> str:
    return f"depth {table['depth'][0]}, {table['samples'][0]:,} samples" if table.height else ""


CLAIMS = (
    Claim(
        where="section 5.3.1, Fig. 8 left",
        text="the deepest 2-shortcut nets end lower than Xavier-ReLU",
        test=lower("xavier"),
        since="laptop",
    ),
    Claim(
        where="section 5.3.1, Fig. 8 left",
        text="the deepest 2-shortcut nets end lower than orthogonal-ReLU",
        test=lower("orthogonal"),
        since="laptop",
    ),
    Claim(
        where="section 5.3.1",
        text="2-shortcut nets find good minima at any depth: the deepest end no higher than the shallowest",
        test=not_worse,
        since="laptop",
    ),
    Claim(
        where="section 5.3.1",
        text="with Xavier starts the deepest nets end higher than shallower ones",
        test=worse("xavier"),
        since="laptop",
    ),
    Claim(
        where="section 5.3.1",
        text="with orthogonal starts the deepest nets end higher than shallower ones",
        test=worse("orthogonal"),
        since="laptop",
    ),
    Claim(
        where="caption of Fig. 8",
        text="at depth 64 Xavier-ReLU ends at basically the same loss at every rate",
        published="the same",
        test=same_at_every_rate("xavier"),
        since="laptop",
    ),
    Claim(
        where="caption of Fig. 8",
        text="at depth 64 orthogonal-ReLU ends at basically the same loss at every rate",
        published="the same",
        test=same_at_every_rate("orthogonal"),
        since="laptop",
    ),
)
