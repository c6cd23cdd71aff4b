"""How good the diagnosis is: every case of one part checked, compared with the truth and with naive baselines.

`python benchmarks/diagnosis/report.py development` (rules are tuned on it) or `test` (looked at once). What was
measured is kept in the repository (`evidence.py`) and is judged by the rules as they are now, in seconds; `--fresh`
measures anew (`measured.py`), in about ten minutes on one core, and goes on where it was stopped. `make bench` leaves
it out: its bars are no speeds, and `tests/diagnosis/test_benchmark.py` holds them.

Will it train: truth `trains` or `trains slowly` against `does not train`. Baselines get the threshold that is best for
them on the development part, as the rules do, and beside it the best there is on the part itself, which flatters them:
norm of the whole gradient and of the last layer's at the start (too small
or too large: the distance of its logarithm from the best centre), and the loss after as many steps as the check makes.
"""

import argparse
import csv
import math
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from evidence import HERE, Row, judged, pack
from measured import measure

from leadline.execute.check import STEPS

VERDICTS = {"trains": "healthy", "trains slowly": "trains slowly", "does not train": "will not train"}
CAUSES = {
    "LL101": "signal or gradient dies with depth",
    "LL102": "signal or gradient dies with depth",
    "LL103": "gradient explodes with depth",
    "LL104": "norm broken at a transition",
    "LL105": "output explodes without norm",
    "LL202": "dead channels",
    "LL301": "flat stationary start",
    "LL302": "shortcut length 1",
    "LL401": "a block too narrow for what it carries",
    "LL501": "learning rate too high",
    "LL502": "learning rate too low",
    "LL601": "loss not connected or frozen",
    "LL602": "loss not connected or frozen",
    "LL603": "labels or data",
    "LL701": "numerical format",
}

BASELINES = {
    "norm of the whole gradient": "global",
    "norm of the last layer's gradient": "last",
    f"loss after {STEPS} steps": "loss",
}


# -- scores --------------------------------------------------------------------------------------------------------


def auc(scores: Sequence[float], good: Sequence[bool]) -> float:
    """The chance that a good case scores above a bad one; ties count half."""
    high = [score for score, is_good in zip(scores, good, strict=True) if is_good]
    low = [score for score, is_good in zip(scores, good, strict=True) if not is_good]
    wins = sum((a > b) + 0.5 * (a == b) for a in high for b in low)
    return wins / max(1, len(high) * len(low))


def best_cut(scores: Sequence[float], good: Sequence[bool]) -> float:
    """The threshold with the best accuracy."""
    return max(sorted({*scores, math.inf}), key=lambda cut: accuracy(scores, good, cut))


def accuracy(scores: Sequence[float], good: Sequence[bool], cut: float) -> float:
    """The share that stands on its side of the threshold."""
    return sum((score >= cut) == is_good for score, is_good in zip(scores, good, strict=True)) / len(scores)


def best_centre(values: Sequence[float], good: Sequence[bool]) -> float:
    """The decade from which the distances of a norm tell best."""
    return max((c / 4 for c in range(-24, 25)), key=lambda centre: auc(nearness(values, centre), good))


def nearness(values: Iterable[float], centre: float) -> list[float]:
    """The nearer the logarithm of a norm is to the centre the better."""
    return [-abs(math.log10(value) - centre) if 0 < value < math.inf else -math.inf for value in values]


Pairs = Sequence[tuple[Row, Row]]


def report(pairs: Pairs, tuned: Pairs) -> list[str]:
    """The lines of the report on some cases; `tuned` are those that thresholds are chosen on."""
    return [*_trains(pairs, tuned), "", *_classes(pairs), "", *_causes(pairs), "", *_cost(pairs)]


def _good(pairs: Pairs) -> list[bool]:
    return [true["truth"] != "does not train" for true, _ in pairs]


def _trains(pairs: Pairs, tuned: Pairs) -> list[str]:
    good, before = _good(pairs), _good(tuned)
    decided = [
        (g, said["verdict"] != "will not train")
        for g, (_, said) in zip(good, pairs, strict=True)
        if said["verdict"] != "undecided"
    ]
    ours = sum(g == h for g, h in decided) / max(1, len(decided))
    rows = [("leadline check", ours, math.nan, auc([float(said["trainability"]) for _, said in pairs], good))]
    for name, column in BASELINES.items():
        values, known = ([float(said[column]) for _, said in some] for some in (pairs, tuned))
        if column == "loss":
            scores, chosen = ([-v if math.isfinite(v) else -math.inf for v in some] for some in (values, known))
        else:
            centre = best_centre(known, before)
            scores, chosen = nearness(values, centre), nearness(known, centre)
        fair = accuracy(scores, good, best_cut(chosen, before))
        rows.append((name, fair, accuracy(scores, good, best_cut(scores, good)), auc(scores, good)))
    lines = [f"will it train ({len(pairs)} cases, {sum(good)} do): accuracy, with the best threshold here, AUC"]
    return [*lines, *(f"  {name:<36} {fair:6.3f} {_or_dash(best)} {area:6.3f}" for name, fair, best, area in rows)]


def _or_dash(value: float) -> str:
    return f"{value:6.3f}" if math.isfinite(value) else f"{'-':>6}"


def _classes(pairs: Pairs) -> list[str]:
    confusion = Counter((true["truth"], said["verdict"]) for true, said in pairs)
    answers = (*VERDICTS.values(), "undecided")
    decided = [(true, said) for true, said in pairs if said["verdict"] != "undecided"]
    right = sum(VERDICTS[true["truth"]] == said["verdict"] for true, said in decided)
    lines = [
        f"three classes: accuracy {right / max(1, len(decided)):.3f}, abstained {1 - len(decided) / len(pairs):.1%}"
    ]
    lines.append(f"  {'truth':<16}" + "".join(f"{answer:>16}" for answer in answers))
    lines += [f"  {name:<16}" + "".join(f"{confusion[name, answer]:>16}" for answer in answers) for name in VERDICTS]
    sound = [said for true, said in pairs if true["truth"] == "trains"]
    alarms = sum(said["verdict"] not in ("healthy", "undecided") for said in sound)
    return [*lines, f"  false alarms on what trains: {alarms} of {len(sound)} ({alarms / max(1, len(sound)):.1%})"]


def _causes(pairs: Pairs) -> list[str]:
    lines = []
    for classes in (("does not train",), ("does not train", "trains slowly")):
        sick = [pair for pair in pairs if pair[0]["truth"] in classes and pair[1]["verdict"] != "undecided"]
        right = sum(_right(*pair) for pair in sick)
        lines.append(f"root cause, {' or '.join(classes)}: {right} of {len(sick)} ({right / max(1, len(sick)):.1%})")
    wrong: Counter[tuple[str, str, str]] = Counter()
    for true, said in pairs:
        if true["truth"] != "trains" and said["verdict"] != "undecided" and not _right(true, said):
            wrong[true["cause"], true["group"], CAUSES.get(said["root"], said["root"] or "no cause named")] += 1
    lines += [
        f"  {count:>3} {group}: {cause} was called {called}" for (cause, group, called), count in wrong.most_common()
    ]
    return lines


def _right(true: Row, said: Row) -> bool:
    return CAUSES.get(said["root"], "") in (true["cause"], true["construction"]) and bool(said["root"])


def _cost(pairs: Pairs) -> list[str]:
    seconds = sorted(float(said["seconds"]) for _, said in pairs)
    return [f"seconds of one core per case: {seconds[len(seconds) // 2]:.2f} in the median, {seconds[-1]:.1f} at most"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("development", "test"))
    parser.add_argument("--fresh", action="store_true", help="measure again")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "leadline-diagnosis")
    options = parser.parse_args()
    if options.fresh:
        torch.set_num_threads(1)
        cache = options.cache / options.part
        cache.mkdir(parents=True, exist_ok=True)
        measure(options.part, cache)
        pack(options.part, cache)
        shutil.rmtree(cache)
    print("\n".join(report(pairs(options.part), pairs("development"))))


def pairs(part: str) -> Pairs:
    """What is true of every case of a part, and what is said of it."""
    said = judged(part)
    with (HERE / "truth.csv").open(newline="") as handle:
        return [(row, said[row["id"]]) for row in csv.DictReader(handle) if row["part"] == part]


if __name__ == "__main__":
    main()
