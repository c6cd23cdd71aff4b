"""Parameters of Tables 1 and 2 of Chen et al. digit by digit, and what is said of accuracies on tables made by hand."""

from math import nan

import pytest
from recipes.conftest import Smoke

from leadline.core.table import Table
from leadline.recipes import _chen2021_scores as scores
from leadline.recipes import chen2021_equal_rates as equal
from leadline.recipes import chen2021_table1, chen2021_table2
from leadline.recipes._chen2021 import COLUMNS, ENDINGS, NETS, SIZES, read_name


@pytest.mark.parametrize("table", [chen2021_table1, chen2021_table2])
def test_all_printed_numbers_of_parameters_are_exact_at_the_smallest_scale(table: object, smoke: Smoke) -> None:
    name = str(getattr(table, "__name__")).rpartition(".")[2]  # noqa: B009
    found = [(claim, verdict) for claim, verdict in smoke.made(name).verdicts if "million" in claim.text]
    assert len(found) == len(NETS) * len(ENDINGS) == 16
    for claim, verdict in found:
        assert verdict.outcome == "holds", f"{claim.text}: {verdict.note}"


def test_a_number_that_rounds_otherwise_fails() -> None:
    rows = Table.from_rows([row("ResNet-20", "Standard", outcome="counted", parameters=284_999)], COLUMNS)
    assert scores.counted("ResNet-20", "Standard", "0.28")(rows).outcome == "holds"
    assert scores.counted("ResNet-20", "Standard", "0.27")(rows).outcome == "fails"
    assert scores.counted("ResNet-110", "Standard", "0.27")(rows).outcome == "undecided"


def test_every_model_is_read_as_one_architecture_and_ending() -> None:
    for size in SIZES.values():
        for net, (name, _) in size.nets.items():
            for ending, before in ENDINGS.items():
                assert read_name(before + name) == (net, ending)


def row(net: str, ending: str, *, seed: int = 0, rate: float = 0.1, accuracy: float = nan, **more: object) -> dict:
    fixed = {"net": net, "ending": ending, "model": "", "data": "cifar10", "seed": seed, "rate": rate}
    return fixed | {"outcome": "finished", "test_accuracy": accuracy, "parameters": nan, "millions": nan} | more


def runs(**accuracies: float) -> Table:
    """Three starts of ResNet-20 for each `ending__rate=mean`, or diverged ones where that is no number."""
    rows = []
    for key, accuracy in accuracies.items():
        ending, _, rate = key.partition("__")
        outcome = "finished" if accuracy == accuracy else "diverged"
        shape = {"rate": float(f"0.{rate}"), "outcome": outcome}
        name = next(name for name in ENDINGS if name.replace("-", "_") == ending)
        rows += [row("ResNet-20", name, seed=seed, accuracy=accuracy + 0.1 * seed, **shape) for seed in range(3)]
    return Table.from_rows(rows, COLUMNS)


def test_a_rate_explodes_where_runs_diverge() -> None:
    table = runs(ResNEst__1=nan, ResNEst__01=40.0, Standard__1=60.0)
    assert equal.explodes(0.1)(table).outcome == "holds" and equal.explodes(0.1)(table).measured == 1
    assert equal.explodes(0.01)(table).outcome == "fails"
    assert equal.explodes(0.05)(table).outcome == "undecided"
    assert equal.others_do_not(table).outcome == "holds"
    assert equal.others_do_not(runs(A_ResNEst__1=nan)).outcome == "fails"


def test_a_gap_that_the_rate_makes_is_told_from_one_that_stays() -> None:
    rate_only = runs(ResNEst__01=40.0, A_ResNEst__01=41.0, A_ResNEst__1=60.0)
    assert equal.gap_is_rate(rate_only).outcome == "holds"
    assert equal.gap_is_rate(runs(ResNEst__01=40.0, A_ResNEst__01=60.0, A_ResNEst__1=50.0)).outcome == "fails"
    assert equal.less_accurate("ResNEst", "A-ResNEst", 0.01)(rate_only).outcome == "holds"


def test_accuracies_are_judged_without_the_rows_that_only_count() -> None:
    table = runs(ResNEst__01=40.0, Standard__1=60.0, A_ResNEst__1=57.0)
    counted = Table.from_rows([row("ResNet-20", "Standard", outcome="counted", parameters=1.0)], COLUMNS)
    both = Table.concat([table, counted])
    assert scores.less_accurate("ResNet-20", "ResNEst", "Standard")(both).seeds == 3
    assert scores.competitive(both).outcome == "fails"
    assert scores.within_a_point(dict.fromkeys(NETS, (("60.0", "1"),) * 4))(both).outcome == "fails"
