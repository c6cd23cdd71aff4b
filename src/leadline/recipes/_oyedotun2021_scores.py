"""Tables 1 to 4 of Oyedotun et al.: accuracies after training, their claims, and a picture beside the published."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from leadline.analysis.claims import Claim, Test, below
from leadline.analysis.stats import mean_of, seeds
from leadline.analysis.verdict import Verdict, judge
from leadline.core.table import Table
from leadline.recipes import Made
from leadline.recipes._oyedotun2021 import CLASSES, COLOURS, NAMES, NETS, PLAIN, RATE, keys, net_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LITTLE = 0.2
"""The part of what the ResNet learned, above chance, that is `not trained`."""
LITTLE_SAID = f"above chance at most {LITTLE:g} of what ResNet learned"

Published = Mapping[str, tuple[float, float]]
"""Train and test accuracy in percent by the paper's names of networks."""


COMPARING, SEARCHING = "compared", "search of rates"


def is_searching(one: Made) -> bool:
    """Whether this is a plain network at another rate than that of the comparison."""
    return net_of(one) in PLAIN and one.config.optimizer.lr != RATE


def scores(made: Sequence[Made]) -> Table:
    """A row a run: its accuracies in percent at the end, without numbers where it diverged."""
    rows = []
    for one in made:
        read = one.run.readings.where(probe="generalisation_gap", name="error/train")["value"]
        ended = not one.diverged
        rows.append(
            keys(one)
            | {
                "rate": one.config.optimizer.lr,
                "role": SEARCHING if is_searching(one) else COMPARING,
                "outcome": one.outcome.get("outcome", ""),
                "train_accuracy": 100 - float(read[-1]) if ended and len(read) else math.nan,
                "test_accuracy": 100 * one.last("test/accuracy") if ended else math.nan,
            }
        )
    return Table.from_rows(rows)


def published(numbers: Published, source: str, **more: Any) -> Table:
    """The paper's rows; those of its PlainNet stand beside both of ours, as it does not say which it had.

    `more` are further columns of the table that its rows have to agree with.
    """
    rows = [
        {"net": net, **more, "quantity": quantity, "value": value, "source": source}
        for net in NETS
        for pair in [numbers.get(net.removesuffix(", no norm"))]
        if pair and not (net.endswith("no norm") and net not in PLAIN)
        for quantity, value in zip(("train_accuracy", "test_accuracy"), pair, strict=True)
    ]
    return Table.from_rows(rows)


def figure(table: Table, numbers: Published, title: str) -> "Figure":
    """Train and test accuracy of every network; open diamonds are the published ones."""
    from leadline.figures import dots
    from leadline.figures.style import styled

    with styled():
        drawn, panels = dots.panels(2, rows=len(NETS))
        for panel, quantity, k in zip(panels, ("train_accuracy", "test_accuracy"), (0, 1), strict=True):
            marked = {net: pair[k] for net in NETS for pair in [numbers.get(net.removesuffix(", no norm"))] if pair}
            marked = {net: value for net, value in marked.items() if net != "ResNet, no norm"}
            dots.draw(panel, table, y="net", x=quantity, colours=COLOURS, marked=marked, missing="diverged")
            panel.set(xlim=(-3, 103), xlabel=f"{quantity.replace('_', ' ')}, %")
        drawn.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
        data = " and ".join(NAMES[name] for name in dict.fromkeys(table["data"].tolist()))
        depths = " and ".join(str(depth) for depth in sorted(set(table["depth"].tolist())))
        drawn.suptitle(f"{title}: {data}, {depths} layers", x=0.01, ha="left", fontsize="medium")
    return drawn


def effects(place: str, numbers: Published, *, at_chance: bool = True) -> tuple[Claim, ...]:
    """That skips make the difference; not everywhere are the published plain networks `at_chance`."""
    tests = {net: f"{pair[1]:.2f}%" for net, pair in numbers.items()}
    plain = f"{numbers['PlainNet'][0]:.2f}% train, {tests['PlainNet']} test"
    return (
        *(
            Claim(
                where=f"{place}; section 6.2",
                text=f"the plain network {kind} is not trained: {'at most twice chance' if at_chance else LITTLE_SAID}",
                test=untrained(net) if at_chance else learns_little(net),
                published=plain,
                since="laptop",
            )
            for net, kind in zip(PLAIN, ("with batch norm", "without batch norm"), strict=True)
        ),
        Claim(
            where=place,
            text="ResNet generalises where the plain network of the same depth and norm does not",
            test=better("PlainNet", "ResNet"),
            published=f"{tests['PlainNet']} against {tests['ResNet']}",
            since="laptop",
        ),
        Claim(
            where=place,
            text="ResNeXt does as well",
            test=better("PlainNet", "ResNeXt"),
            published=f"{tests['PlainNet']} against {tests['ResNeXt']}",
            since="laptop",
        ),
    )


def claims(place: str, numbers: Published, *, at_chance: bool = True) -> tuple[Claim, ...]:
    """What the paper says of every one of its tables."""
    tests = {net: f"{pair[1]:.2f}%" for net, pair in numbers.items()}
    return (
        *effects(place, numbers, at_chance=at_chance),
        Claim(
            where=place,
            text="ResNeXt is better than ResNet on test data",
            test=better("ResNet", "ResNeXt"),
            published=f"{tests['ResNet']} against {tests['ResNeXt']}",
            since="paper",
        ),
        Claim(
            where=place,
            text="ResNet reaches the published test accuracy within one point",
            test=reaches("ResNet", numbers),
            published=tests["ResNet"],
            since="paper",
        ),
    )


SKIPS_ALONE = Claim(
    where="sections 4 and 7, as a control",
    text="skip connections are what makes the difference without batch norm as well",
    test=lambda table: better("PlainNet, no norm", "ResNet, no norm")(table),
    published="not said whether there was batch norm",
    since="laptop",
)


def untrained(net: str) -> Test:
    def test(table: Table) -> Verdict:
        rows = table.where(net=net)
        return _poor(rows, chance_of(rows))

    return test


def _poor(rows: Table, chance: float) -> Verdict:
    """The claim holds if even the best run stays below twice chance; a run that diverged has learned nothing."""
    known = [value for value in rows["train_accuracy"].tolist() if math.isfinite(value)]
    lost = rows.height - len(known)
    note = f"best of {rows.height} runs, chance is {chance:g}%" + f"; {lost} diverged" * bool(lost)
    return judge(max(known, default=math.nan) <= 2 * chance, max(known, default=math.nan), seeds=seeds(rows), note=note)


def learns_little(net: str) -> Test:
    """By train accuracies above chance, the plain network's best run over the mean ResNet."""

    def test(table: Table) -> Verdict:
        rows = table.where(net=net)
        best = max((value for value in rows["train_accuracy"].tolist() if math.isfinite(value)), default=math.nan)
        chance, residual = chance_of(table), mean_of(table, "train_accuracy", net="ResNet")
        part = (best - chance) / (residual - chance) if residual > chance else math.nan
        note = f"{net} {best:.4g}%, ResNet {residual:.4g}%, chance {chance:g}%"
        return judge(part <= LITTLE, part, seeds=seeds(rows), note=note)

    return test


def chance_of(rows: Table) -> float:
    """The accuracy of guessing, in percent."""
    return 100 / max((CLASSES.get(name, 10) for name in rows["data"].tolist()), default=10)


def better(one: str, other: str) -> Test:
    """That `other` has the higher test accuracy, by more than chance would have it."""

    def test(table: Table) -> Verdict:
        compared = table.where(role=COMPARING)
        rows = [compared.where(net=net) for net in (one, other)]
        lost = [f"{net} diverged" for net, part in zip((one, other), rows, strict=True) if _diverged(part)]
        values = [part["test_accuracy"] for part in rows]
        return below(values[0].tolist(), values[1].tolist(), note="; ".join(lost) or "test accuracy in percent")

    return test


def _diverged(rows: Table) -> bool:
    return "diverged" in rows["outcome"].tolist()


def reaches(net: str, numbers: Published) -> Test:
    def test(table: Table) -> Verdict:
        ours = mean_of(table, "test_accuracy", net=net)
        return judge(abs(ours - numbers[net][1]) <= 1, ours, seeds=seeds(table.where(net=net)), note="in percent")

    return test
