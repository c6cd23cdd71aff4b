"""What Oyedotun et al. say of condition numbers along the depth, as tests on the tables of Figs 7 to 13.

Over several data sets and seeds a claim is judged by the run that supports it least.
"""

from collections.abc import Callable, Sequence

import numpy as np

from leadline.analysis.claims import Claim, Test
from leadline.analysis.slopes import slope
from leadline.analysis.stats import seeds
from leadline.analysis.verdict import Verdict, judge, undecided
from leadline.core.table import Table
from leadline.recipes._oyedotun2021 import NAMES, PLAIN, SKIPPING
from leadline.recipes._oyedotun2021_depth import END, MODES, START, WEIGHTS, along, beside

KINDS = dict(zip(PLAIN, ("with batch norm", "without batch norm"), strict=True))
CAP = 1e7
"""Larger condition numbers, infinite ones among them, are taken for this one where slopes are fitted."""
TWICE = 2.0
"""Over the whole depth, what is more than this factor grows, and what is at most this factor stays."""
MUCH = 10.0
"""A number this many times smaller is `much smaller`."""
MOST = 0.5
"""What holds in more than this part of the layers holds generally."""


def of_weights(where: str) -> tuple[Claim, ...]:
    """Of Figs 7, 8, 10 and 12."""
    return (
        *(
            Claim(
                where=where,
                text=f"condition numbers of the weights of the plain network {kind} grow with depth",
                test=grows(net),
                since="laptop",
            )
            for net, kind in KINDS.items()
        ),
        *(
            Claim(
                where=where,
                text=f"condition numbers of the weights of {net} remain small as depth increases",
                test=stays(net),
                since="laptop",
            )
            for net in SKIPPING
        ),
        *(
            Claim(
                where=where,
                text=f"the plain network {kind} has higher condition numbers than {other} in most layers",
                test=exceeds(net, other, WEIGHTS, factor=1.0),
                since="laptop",
            )
            for net, kind in KINDS.items()
            for other in SKIPPING
        ),
        Claim(
            where="Corollary 1",
            text="no weight is singular as it is initialised",
            test=regular_at_start,
        ),
    )


def of_hidden(where: str, *, until: int) -> tuple[Claim, ...]:
    """Of Figs 9, 11 and 13; plain networks are said to have infinite condition numbers up to layer `until`."""
    said = f"from layer 1 to {until}" if until > 1 else "in the first layer"
    return (
        *(
            Claim(
                where=where,
                text=f"{MODES[mode]}, the plain network {kind} has infinite condition numbers {said}",
                test=infinite(net, mode, until=until),
                published=f"infinite {said}",
                since="laptop",
            )
            for mode in MODES
            for net, kind in KINDS.items()
        ),
        *(
            Claim(
                where=where,
                text=f"{MODES[mode]}, {net} has finite condition numbers in all layers",
                test=finite(net, mode),
                published="no infinite one",
                since="laptop",
            )
            for mode in MODES
            for net in SKIPPING
        ),
        *(
            Claim(
                where="section 6.2, Fig. 9",
                text=f"early layers of {net} have high condition numbers that fall rapidly",
                test=falls(net),
                since="laptop",
            )
            for net in SKIPPING
        ),
        *(
            Claim(
                where="section 5",
                text=f"{other} works at condition numbers ten times below those of the plain network {kind}",
                test=exceeds(net, other, "batch", factor=MUCH),
                published="much smaller",
                since="laptop",
            )
            for net, kind in KINDS.items()
            for other in SKIPPING
        ),
    )


def grows(net: str) -> Test:
    """That the fitted line rises by more than a factor of two over the depth, and not by chance."""

    def test(table: Table) -> Verdict:
        found = [_rise(run) for run in along(table, net, WEIGHTS).values()]
        return _worst(table, net, found, lambda rise: rise > TWICE, words=_times, lowest=True)

    return test


def stays(net: str) -> Test:
    def test(table: Table) -> Verdict:
        found = [_rise(run) for run in along(table, net, WEIGHTS).values()]
        return _worst(table, net, found, lambda rise: rise <= TWICE, words=_times, lowest=False)

    return test


def _rise(run: Table) -> tuple[str, float]:
    """By what factor the line through log kappa rises over the depth; 1 where it could as well be level."""
    fitted = slope(run["layer"], np.log10(np.minimum(run["kappa"].astype(float), CAP)))
    level = 0.0 in fitted
    return _place(run), 1.0 if level else float(10 ** (fitted.value * float(np.ptp(run["layer"]))))


def _times(value: float) -> str:
    return f"times {value:.3g} over the depth" if value != 1 else "level within 95% confidence"


def infinite(net: str, mode: str, *, until: int) -> Test:
    """By the part of the boundaries up to that layer."""

    def test(table: Table) -> Verdict:
        found = [_infinite_up_to(run, until) for run in along(table, net, mode).values()]
        return _worst(table, net, found, lambda part: part == 1, words=_percent("infinite"), lowest=True)

    return test


def _infinite_up_to(run: Table, until: int) -> tuple[str, float]:
    early = run["kappa"].astype(float)[run["layer"] <= until]
    return _place(run), float(np.isinf(early).mean()) if len(early) else float("nan")


def finite(net: str, mode: str) -> Test:
    def test(table: Table) -> Verdict:
        found = [
            (_place(run), float(np.isinf(run["kappa"].astype(float)).mean()))
            for run in along(table, net, mode).values()
        ]
        return _worst(table, net, found, lambda part: part == 0, words=_percent("infinite"), lowest=False)

    return test


def falls(net: str) -> Test:
    """That the median of the first tenth of the layers is at least twice that of the second half."""

    def test(table: Table) -> Verdict:
        found = []
        for run in along(table, net, "batch").values():
            kappa, part = run["kappa"].astype(float), run["layer"] / run["layer"].max()
            early, late = (float(np.median(kappa[where])) for where in (part <= 0.1, part > 0.5))
            found.append(
                (f"{_place(run)}: {early:.3g} in the first tenth, {late:.3g} in the second half", early / late)
            )
        return _worst(table, net, found, lambda ratio: ratio >= TWICE, words="times {:.3g}".format, lowest=True)

    return test


def exceeds(plain: str, other: str, mode: str, *, factor: float) -> Test:
    """By the part of the layers in which the plain network's number is `factor` times the other's, or infinite."""

    def test(table: Table) -> Verdict:
        found = []
        ones, others = along(table, plain, mode), along(table, other, mode)
        for one, two in ((ones[run], others[run]) for run in ones if run in others):
            kappa, against = beside(one, two)
            with np.errstate(invalid="ignore"):
                found.append((_place(one), float(((kappa > factor * against) & np.isfinite(against)).mean())))
        return _worst(table, plain, found, lambda part: part > MOST, words=_percent("higher"), lowest=True)

    return test


def regular_at_start(table: Table) -> Verdict:
    rows = table.where(when=START)
    if not rows.height:
        return undecided("no network was read at its start")
    lost = float(np.isinf(rows["kappa"].astype(float)).sum())
    return judge(lost == 0, lost, seeds=seeds(rows), note=f"singular ones among {rows.height} weights")


def _worst(
    table: Table,
    net: str,
    found: Sequence[tuple[str, float]],
    true: Callable[[float], bool],
    *,
    words: Callable[[float], str],
    lowest: bool,
) -> Verdict:
    """The verdict on the number that supports the claim least."""
    runs = table.where(net=net, when=END)
    lost = " and ".join(dict.fromkeys(NAMES[name] for name in runs.where(outcome="diverged")["data"].tolist()))
    if not found:
        return undecided(f"{net} diverged: {lost}" if lost else f"{net} and its match have no readings at the end")
    measured = (min if lowest else max)(value for _, value in found)
    note = "; ".join(f"{place}: {words(value)}" for place, value in found) + f"; diverged: {lost}" * bool(lost)
    return judge(true(measured), measured, seeds=seeds(runs), note=note)


def _percent(word: str) -> Callable[[float], str]:
    return lambda part: f"{word} in {100 * part:.3g}% of these layers"


def _place(run: Table) -> str:
    return f"{NAMES[run['data'][0]]} {run['depth'][0]}"
