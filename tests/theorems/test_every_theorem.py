"""Laws that every theorem keeps: a card, an honest verdict, and a check that can fail."""

import math
import re

import pytest

from leadline.core import plugins
from leadline.theorems import PACKAGE, Case, decide, select, statements, verify
from leadline.theorems._draw import Draw

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
    statement = STATEMENTS[name]
    result = verify(name, statement, seeds=1)
    assert result.verdict.outcome == ("fails" if name in FAILS else "holds"), (result.case, result.verdict)
    shown = result.to_json()
    assert shown["paper"] == name.partition("_")[0] and shown["place"] and shown["statement"] and shown["case"]
    assert (shown["worst_error"] > shown["tolerance"]) == (name in FAILS)


@pytest.mark.parametrize("name", STATEMENTS)
def test_check_can_fail(name: str) -> None:
    statement = STATEMENTS[name]
    if statement.broken is None:
        assert name in FAILS, "a statement that holds shows what would make its check fail"
        return
    cases = [item for item in statement.broken(Draw(1)) if isinstance(item, Case)]
    assert decide(cases, seeds=1).outcome == "fails"


@pytest.mark.parametrize("name", sorted(FAILS))
def test_what_fails_says_why_and_the_tolerance_is_rounding(name: str) -> None:
    statement = STATEMENTS[name]
    assert statement.note
    assert all(c.tolerance < 1e-4 for c in statement.check(Draw(2)) if isinstance(c, Case))


def test_the_same_seeds_give_the_same_numbers() -> None:
    ((name, statement),) = select(["oyedotun2021_lemma1"])
    once, again = (verify(name, statement, seeds=2) for _ in range(2))
    assert once.verdict == again.verdict and once.notes == again.notes
    assert verify("another name", statement, seeds=2).notes != once.notes


@pytest.mark.parametrize(
    ("errors", "outcome"),
    [
        ([0.0, 1e-16], "holds"),
        ([0.0, 1.0], "fails"),
        ([0.0, math.nan], "undecided"),
        ([math.inf, 0.0], "undecided"),
        ([math.nan, 1.0], "fails"),
    ],
)
def test_a_number_that_is_not_finite_never_fails(errors: list[float], outcome: str) -> None:
    cases = [Case(f"case {i}", error, 1e-15) for i, error in enumerate(errors)]
    assert decide(cases, seeds=1).outcome == outcome
