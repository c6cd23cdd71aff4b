"""Tables 1 and 2 of Chen et al.: the printed numbers, what is claimed of them, and a picture of ours beside them."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from leadline.analysis.claims import Claim, Test, below
from leadline.analysis.stats import mean_of, seeds
from leadline.analysis.verdict import Verdict, at_most, judge, undecided
from leadline.core.table import Table
from leadline.recipes._chen2021 import COLOURS, ENDINGS, NETS, called

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Printed = Mapping[str, tuple[tuple[str, str], ...]]
"""By architecture, for every ending, the accuracy in percent and the parameters in millions, digit by digit."""
NAMES = {"cifar10": "CIFAR-10", "cifar100": "CIFAR-100"}
COMPETITIVE = 2.0
"""Points of accuracy that a competitive network may be behind; the printed ones are at most 1.6 behind."""


def entries(printed: Printed) -> dict[tuple[str, str], tuple[str, str]]:
    """The entries by architecture and ending."""
    return {(net, ending): entry for net, row in printed.items() for ending, entry in zip(ENDINGS, row, strict=True)}


def published(printed: Printed, source: str, data: str) -> Table:
    """The entries as rows; ours stand beside them where model and data are those of the paper."""
    rows = [
        {"model": ENDINGS[ending] + NETS[net], "data": data, "quantity": quantity}
        | {"value": float(text), "source": source}
        for (net, ending), entry in entries(printed).items()
        for quantity, text in zip(("test_accuracy", "millions"), entry, strict=True)
    ]
    return Table.from_rows(rows)


def figure(table: Table, printed: Printed, title: str) -> "Figure":
    """Test accuracy of every ending, a panel an architecture; open diamonds are the published ones."""
    from leadline.figures import dots
    from leadline.figures.style import styled

    runs = table.select(table["outcome"] != "counted")
    nets = [net for net in NETS if net in runs["net"].tolist()]
    with styled():
        drawn, panels = dots.panels(max(1, len(nets)), rows=len(ENDINGS) + 1, width=2.0)
        for panel, net in zip(panels, nets, strict=False):
            rows = runs.where(net=net)
            marked = {ending: float(entries(printed)[net, ending][0]) for ending in ENDINGS}
            dots.draw(panel, rows, y="ending", x="test_accuracy", colours=COLOURS, marked=marked, missing="diverged")
            panel.set_title(called(rows), fontsize="medium")
            panel.set(xlim=(0, 102), xlabel="test accuracy, %")
        drawn.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
        data = " and ".join(NAMES.get(name, name) for name in dict.fromkeys(runs["data"].tolist()))
        drawn.suptitle(f"{title}; ours on {data}", x=0.01, ha="left", fontsize="medium")
    return drawn


def counts(place: str, printed: Printed) -> tuple[Claim, ...]:
    """That every network has as many parameters as are printed; exact, and the same at every scale."""
    return tuple(
        Claim(
            where=place,
            text=f"{net}, {ending}: {millions} million parameters",
            test=counted(net, ending, millions),
            published=f"{millions}M",
        )
        for (net, ending), (_, millions) in entries(printed).items()
    )


def counted(net: str, ending: str, millions: str) -> Test:
    def test(table: Table) -> Verdict:
        count = parameters(table, net, ending)
        return judge(as_printed(count, millions), count, note=f"{count:,.0f}" if count == count else "not counted")

    return test


def as_printed(count: float, millions: str) -> bool:
    """Whether a number rounds to the printed one in millions.

    >>> as_printed(8_977_226, "9.0"), as_printed(272_282, "0.28")
    (True, False)
    """
    return f"{count / 1e6:.{len(millions.partition('.')[2])}f}" == millions


def parameters(table: Table, net: str, ending: str) -> float:
    return mean_of(table, "parameters", net=net, ending=ending)


def fewer(most: int, published: str) -> Claim:
    """That A-ResNEsts have fewer parameters than standard networks in so many of the four architectures."""

    def test(table: Table) -> Verdict:
        gaps = {net: parameters(table, net, "Standard") - parameters(table, net, "A-ResNEst") for net in NETS}
        if any(gap != gap for gap in gaps.values()):
            return undecided("parameters were not counted")
        note = ", ".join(f"{net} {-gap:+,.0f}" for net, gap in gaps.items())
        return judge(sum(gap > 0 for gap in gaps.values()) == most, sum(gap > 0 for gap in gaps.values()), note=note)

    return Claim(
        where="appendix B.5",
        text="A-ResNEsts have fewer parameters than standard networks in most cases",
        test=test,
        published=published,
    )


def accuracies(place: str, printed: Printed, *, bn_higher: Sequence[str] = ()) -> tuple[Claim, ...]:
    """What is said of accuracies; gaps of a point or two after 200 epochs say nothing at a smaller scale."""
    of = {key: f"{accuracy}%" for key, (accuracy, _) in entries(printed).items()}
    order = (
        *(("ResNEst", other, net) for net in NETS for other in ("Standard", "A-ResNEst")),
        *(("Standard", "BN-ResNEst", net) for net in bn_higher),
    )
    return (
        *(
            Claim(
                where=f"{place}; appendix B.6" if one == "Standard" else f"{place}; appendix B.5",
                text=f"{net}: {one} is less accurate than {other}",
                test=less_accurate(net, one, other),
                published=f"{of[net, one]} against {of[net, other]}",
                since="paper",
            )
            for one, other, net in order
        ),
        Claim(
            where="appendix B.5",
            text=f"A-ResNEsts are competitive: at most {COMPETITIVE:g} points behind standard networks",
            test=competitive,
            since="paper",
        ),
        Claim(
            where=place,
            text="the accuracy of every network is within one point of the printed one",
            test=within_a_point(printed),
            published=place,
            since="paper",
        ),
    )


def less_accurate(net: str, one: str, other: str) -> Test:
    def test(table: Table) -> Verdict:
        rows = [table.where(net=net, ending=each) for each in (one, other)]
        values = [part.select(part["outcome"] != "counted")["test_accuracy"].tolist() for part in rows]
        return below(*values, note="test accuracy in percent")

    return test


def competitive(table: Table) -> Verdict:
    """The most that the mean accuracy of an A-ResNEst is below that of the standard network."""
    gaps = {net: _accuracy(table, net, "Standard") - _accuracy(table, net, "A-ResNEst") for net in NETS}
    known = {net: gap for net, gap in gaps.items() if gap == gap}
    note = ", ".join(f"{net} {gap:.2g}" for net, gap in known.items())
    return at_most(max(known.values(), default=float("nan")), COMPETITIVE, seeds=seeds(table), note=note)


def within_a_point(printed: Printed) -> Test:
    def test(table: Table) -> Verdict:
        gaps = {key: abs(_accuracy(table, *key) - float(accuracy)) for key, (accuracy, _) in entries(printed).items()}
        known = {key: gap for key, gap in gaps.items() if gap == gap}
        worst = max(known, key=lambda key: known[key], default=None)
        if worst is None:
            return undecided("no accuracy is known")
        return at_most(known[worst], 1.0, seeds=seeds(table), note=f"furthest off: {' '.join(worst)}")

    return test


def _accuracy(table: Table, net: str, ending: str) -> float:
    return mean_of(table, "test_accuracy", net=net, ending=ending)
