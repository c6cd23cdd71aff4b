"""Laws that every theorem keeps: a card, an honest verdict, and a check that can fail."""

import math
import re
from collections.abc import Iterator
from dataclasses import replace

import pytest

from leadline.core import plugins
from leadline.theorems import PACKAGE, Aside, Case, decide, select, statements, verify
from leadline.theorems._draw import Draw
from leadline.theorems._rounding import excess, largest, strictly

FILES = plugins.names(PACKAGE)
STATEMENTS = {name: statement for file in FILES for name, statement in statements(file)}
AUTHORS = {
    "oyedotun2021": "Oyedotun et al.",
    "li2016": "Li et al.",
    "zaeemzadeh2018": "Zaeemzadeh et al.",
    "chen2021": "Chen et al.",
}

# what each paper states and the corrected forms beside it; a statement that changes sides has to be looked at
FAILS = {
    "chen2021_bottleneck.sufficient",
    "chen2021_corollary1.any",
    "chen2021_corollary2.b_printed",
    "chen2021_eq13.printed",
    "oyedotun2021_lemma2.singular_values",
    "oyedotun2021_lemma3.singular_values",
    "oyedotun2021_proposition3.printed",
    "oyedotun2021_theorem1.printed",
    "oyedotun2021_theorem2.printed",
    "oyedotun2021_theorem2.remark2",
    "oyedotun2021_theorem3.printed",
    "oyedotun2021_theorem3.remark3",
    "zaeemzadeh2018_algorithm1.printed",
    "zaeemzadeh2018_eq8.printed",
    "zaeemzadeh2018_eq9.printed",
    "zaeemzadeh2018_theorem1.constant",
    "zaeemzadeh2018_theorem2.printed",
}

LOOSEST = 1e-4  # a tolerance that comes from rounding; all but a few are below 1e-8

WANTED = {
    "oyedotun2021": "lemma1 lemma2 lemma3 proposition1 proposition2 proposition3 theorem1 theorem2 theorem3",
    "li2016": "lemma1 lemma2 lemma3 lemma4 theorem1 theorem2",
    "zaeemzadeh2018": "algorithm1 corollary1 eq9 lemma1 theorem1 theorem2 theorem3",
    "chen2021": "bottleneck corollary1 corollary2 eq13 proposition1 proposition2 proposition3 proposition4 remark2 "
    "theorem1 theorem2",
}


def test_every_statement_of_the_papers_has_a_file() -> None:
    assert {f"{paper}_{what}" for paper, places in WANTED.items() for what in places.split()} <= set(FILES)


@pytest.mark.parametrize("file", FILES)
def test_card_names_paper_place_sides_and_needs(file: str) -> None:
    card = plugins.card(PACKAGE, file)
    head = card.splitlines()[0]
    paper, _, place = file.partition("_")
    kind, number = re.fullmatch(r"([a-z]+)(\d*)", place).groups()  # type: ignore[union-attr]
    said = {"eq": f"eq. ({number})", "bottleneck": "section 3.2"}.get(kind, f"{kind.capitalize()} {number}")
    assert head.startswith(f"{AUTHORS[paper]}, {said}: "), head
    assert re.search(r"^Sides: ", card, re.M) and re.search(r"^Needs: ", card, re.M)


@pytest.mark.parametrize("name", STATEMENTS)
def test_verdict(name: str) -> None:
    statement, seen = STATEMENTS[name], []

    def watched(draw: Draw) -> Iterator[Case | Aside]:
        for item in statement.check(draw):
            seen.append(item)
            yield item

    result = verify(name, replace(statement, check=watched), seeds=1)
    assert result.verdict.outcome == ("fails" if name in FAILS else "holds"), (result.case, result.verdict)
    shown = result.to_json()
    assert shown["paper"] == name.partition("_")[0] and shown["place"] and shown["statement"] and shown["case"]
    assert (shown["worst_error"] > shown["tolerance"]) == (name in FAILS)
    assert all(item.tolerance < LOOSEST for item in seen if isinstance(item, Case))
    assert statement.note or name not in FAILS, "a statement that fails says why"


@pytest.mark.parametrize("name", STATEMENTS)
def test_check_can_fail(name: str) -> None:
    statement = STATEMENTS[name]
    if statement.broken is None:
        assert name in FAILS, "a statement that holds shows what would make its check fail"
        return
    cases = [item for item in statement.broken(Draw(1)) if isinstance(item, Case)]
    assert decide(cases, seeds=1).outcome == "fails"


def test_the_same_seeds_give_the_same_numbers() -> None:
    ((name, statement),) = select(["oyedotun2021_lemma1"])
    once, again = (verify(name, statement, seeds=2) for _ in range(2))
    assert once.verdict == again.verdict and once.notes == again.notes
    assert verify("another name", statement, seeds=2).notes != once.notes


@pytest.mark.parametrize(
    ("pairs", "outcome"),
    [
        ([(0.0, 1e-15), (1e-16, 1e-15)], "holds"),
        ([(0.0, 0.0)], "holds"),
        ([(0.0, 1e-15), (1.0, 1e-15)], "fails"),
        ([(0.0, 1e-15), (math.nan, 1e-15)], "undecided"),
        ([(math.inf, 1e-15), (0.0, 1e-15)], "undecided"),
        ([(1.0, math.inf)], "undecided"),
        ([(1.0, math.nan)], "undecided"),
        ([(math.nan, 1e-15), (1.0, 1e-15)], "fails"),
    ],
)
def test_a_number_that_is_not_finite_never_fails(pairs: list[tuple[float, float]], outcome: str) -> None:
    cases = [Case(f"case {i}", *pair) for i, pair in enumerate(pairs)]
    for order in (cases, cases[::-1]):
        assert decide(order, seeds=1).outcome == outcome


def test_errors_keep_what_is_not_a_number() -> None:
    for nan_first in ([math.nan, 1.0], [1.0, math.nan]):
        assert math.isnan(largest(nan_first)) and math.isnan(excess(*nan_first)) and math.isnan(strictly(*nan_first))
    assert (largest([0.5, 2.0]), excess(3.0, 1.0), excess(1.0, 3.0)) == (2.0, 2.0, 0.0)
    assert (strictly(1.0, 2.0), strictly(2.0, 2.0), strictly(3.0, 2.0)) == (0.0, 1.0, 1.0)
