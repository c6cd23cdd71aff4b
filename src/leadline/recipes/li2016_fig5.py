"""Fig. 5: largest and tenth-percentile curvature at equal losses, for linear networks of 16 layers.

Reference: Li, Jiao, Han, Weissman, Demystifying ResNet, section 5.2 and appendix B. Whitened MNIST of ten dimensions,
one-hot targets, full-batch gradient descent, |lambda|_max and |lambda|_(0.1) of the exact Hessian, ten starts, linear
interpolation over the loss.
Run: leadline reproduce li2016_fig5 --scale paper (a few minutes on two cores).
Expect: the two curves of the 2-shortcut net are the closest to one another at every loss, by far so at large losses;
near the optimum those of orthogonal starts come to about the same condition number.
Differs: the paper says neither the learning rate nor the losses. Ours is a tenth of the rate that ends lowest after
1000 epochs (of 10^-4 to 10, four per decade), for ten times as long, so that no step jumps over much of the loss;
losses are taken above the optimum, from 4.5 down to 0.001 at log scale. Hessians are computed on both sides of each
of these losses only, which gives the same interpolation. The laptop scale has three starts and fewer losses, the
smoke scale the digits that come with the package, six layers and 100 epochs.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from leadline.analysis.claims import Claim, Test
from leadline.analysis.stats import seeds
from leadline.analysis.verdict import Verdict, at_most, judge, undecided
from leadline.core.config import Scale
from leadline.core.study import Unit
from leadline.core.table import Table
from leadline.recipes import Made
from leadline.recipes._li2016_linear import COMPARED, NAMES
from leadline.recipes._li2016_spectra import at_levels_of, at_losses, spectra

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PUBLISHED = Table(net=[], level=[], quantity=[], value=[], source=[])
"""The figure has no numbers beside its axes, and the text gives none."""
ABOUT_THE_SAME = 2.0
"""Condition numbers that differ by at most this factor have `roughly evolved to the same value`."""


def runs(scale: Scale) -> Iterator[Unit]:
    yield from spectra(scale)


def table(made: Sequence[Made]) -> Table:
    return at_losses(made)


def figure(table: Table) -> "Figure":
    from leadline.figures import series
    from leadline.figures.style import COLOURS, styled

    crossed = table.where(start=False)
    with styled():
        drawn, (left, right) = series.panels(2, width=3.7, height=3.4)
        for net, colour in zip(COMPARED, COLOURS, strict=False):
            for value, line in (("largest", "-"), ("percentile10", "--")):
                style = {"color": colour, "linestyle": line, "marker": ""}
                label = {net: NAMES[net] if value == "largest" else ""}
                series.draw(left, crossed, x="level", y=value, by="net", names=label, log=True, **style)
            label = {net: NAMES[net]}
            series.draw(right, crossed, x="level", y="ratio", by="net", names=label, log=True, color=colour, marker="")
        left.set(title=r"$|\lambda|_{\max}$ (solid) and $|\lambda|_{(0.1)}$ (dashed)", ylabel="curvature")
        right.set(title=r"their ratio", ylabel=r"$|\lambda|_{\max} \,/\, |\lambda|_{(0.1)}$")
        for panel in (left, right):
            panel.set(xlabel="loss above the optimum", xscale="log")
            panel.invert_xaxis()
        right.legend()
    return drawn


def ratios(table: Table, net: str) -> dict[float, float]:
    """How many times the condition number of the 2-shortcut net another one has, by the losses both come through."""
    one, other = at_levels_of(table, "ratio", "2-shortcut"), at_levels_of(table, "ratio", net)
    return {level: other[level] / value for level, value in one.items() if level in other}


def smaller(net: str) -> Test:
    def test(table: Table) -> Verdict:
        found = ratios(table, net)
        if not found:
            return undecided(f"there is no loss that {NAMES[net]} and the 2-shortcut nets both come through")
        least = min(found, key=lambda level: found[level])
        larger = sum(ratio > 1 for ratio in found.values())
        note = f"larger at {larger} of {len(found)} losses, least {found[least]:.3g} times at {least:.2g}"
        return judge(found[least] > 1, found[least], seeds=seeds(table), note=note)

    return test


def more_at_large_losses(table: Table) -> Verdict:
    found = ratios(table, "orthogonal")
    if len(found) < 2:
        return undecided("fewer than two losses that both come through")
    first, last = max(found), min(found)
    note = f"orthogonal has {found[first]:.3g} times as much at {first:.2g}, {found[last]:.3g} times at {last:.2g}"
    return judge(found[first] > found[last], found[first] / found[last], seeds=seeds(table), note=note)


def same_at_the_end(table: Table) -> Verdict:
    found = ratios(table, "orthogonal")
    if not found:
        return undecided("there is no loss that both come through")
    last = min(found)
    factor = max(found[last], 1 / found[last])
    return at_most(factor, ABOUT_THE_SAME, seeds=seeds(table), note=f"orthogonal over 2-shortcut at {last:.2g}")


CLAIMS = (
    Claim(
        where="section 5.2",
        text="the condition number of 2-shortcut nets is smaller than with Xavier at every loss",
        test=smaller("xavier"),
        since="laptop",
    ),
    Claim(
        where="section 5.2",
        text="the condition number of 2-shortcut nets is smaller than with orthogonal starts at every loss",
        test=smaller("orthogonal"),
        since="laptop",
    ),
    Claim(
        where="section 5.2",
        text="it is smaller especially where the loss is large",
        test=more_at_large_losses,
        since="laptop",
    ),
    Claim(
        where="section 5.2",
        text="near the minimum orthogonal and 2-shortcut nets have roughly the same condition number",
        published="the same",
        test=same_at_the_end,
        since="laptop",
    ),
)
