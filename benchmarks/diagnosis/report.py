"""How good the diagnosis is: every case of one part checked, compared with the truth and with naive baselines.

`python benchmarks/diagnosis/report.py development` (rules are tuned on it) or `test` (looked at once). What was
measured stays outside the repository (`measured.py`) and is judged by the rules as they are now; `--fresh` measures
anew.

Will it train: truth `trains` or `trains slowly` against `does not train`. Baselines get the best threshold there is for
them on the part itself, which flatters them: norm of the whole gradient and of the last layer's at the start (too small
or too large: the distance of its logarithm from the best centre), and the loss after as many steps as the check makes.
"""

import argparse
import csv
import math
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from measured import Row, judged, measure
from truth import HERE

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


# -- scores --------------------------------------------------------------------------------------------------------


def auc(scores: Sequence[float], good: Sequence[bool]) -> float:
    """The chance that a good case scores above a bad one; ties count half."""
    high = [score for score, is_good in zip(scores, good, strict=True) if is_good]
    low = [score for score, is_good in zip(scores, good, strict=True) if not is_good]
    wins = sum((a > b) + 0.5 * (a == b) for a in high for b in low)
    return wins / max(1, len(high) * len(low))


def best_accuracy(scores: Sequence[float], good: Sequence[bool]) -> float:
    """Of the best threshold."""
    cuts = sorted({*scores, math.inf})
    return max(
        sum((score >= cut) == is_good for score, is_good in zip(scores, good, strict=True)) for cut in cuts
    ) / len(scores)


def norm_scores(values: Iterable[float], good: Sequence[bool]) -> list[float]:
    """The nearer the logarithm of a norm is to the best centre the better."""
    logs = [math.log10(value) if 0 < value < math.inf else math.inf for value in values]
    centres = [c / 4 for c in range(-24, 25)]
    options = [[-abs(log - centre) for log in logs] for centre in centres]
    return max(options, key=lambda scores: auc(scores, good))


def report(truth: Mapping[str, Row], said: Mapping[str, Row]) -> list[str]:
    """The lines of the report over the cases that have both."""
    ids = [id for id in truth if id in said]
    pairs = [(truth[id], said[id]) for id in ids]
    return [*_trains(pairs), "", *_classes(pairs), "", *_causes(pairs), "", *_cost(pairs)]


def _trains(pairs: Sequence[tuple[Row, Row]]) -> list[str]:
    good = [true["truth"] != "does not train" for true, _ in pairs]
    decided = [
        (g, said["verdict"] != "will not train")
        for g, (_, said) in zip(good, pairs, strict=True)
        if said["verdict"] != "undecided"
    ]
    ours = sum(g == h for g, h in decided) / max(1, len(decided))
    rows = [("leadline check", ours, auc([float(said["trainability"]) for _, said in pairs], good))]
    for name, column in (("norm of the whole gradient", "global"), ("norm of the last layer's gradient", "last")):
        scores = norm_scores([float(said[column]) for _, said in pairs], good)
        rows.append((name, best_accuracy(scores, good), auc(scores, good)))
    after = [-value if math.isfinite(value := float(said["loss"])) else -math.inf for _, said in pairs]
    rows.append((f"loss after {STEPS} steps", best_accuracy(after, good), auc(after, good)))
    lines = [f"will it train ({len(pairs)} cases, {sum(good)} do): accuracy, AUC"]
    return [*lines, *(f"  {name:<36} {accuracy:6.3f} {area:6.3f}" for name, accuracy, area in rows)]


def _classes(pairs: Sequence[tuple[Row, Row]]) -> list[str]:
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


def _causes(pairs: Sequence[tuple[Row, Row]]) -> list[str]:
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


def _cost(pairs: Sequence[tuple[Row, Row]]) -> list[str]:
    seconds = sorted(float(said["seconds"]) for _, said in pairs)
    return [f"seconds of one core per case: {seconds[len(seconds) // 2]:.2f} in the median, {seconds[-1]:.1f} at most"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("development", "test"))
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "leadline-diagnosis")
    parser.add_argument("--fresh", action="store_true", help="forget what was measured")
    options = parser.parse_args()
    torch.set_num_threads(1)
    cache = options.cache / options.part
    if options.fresh:
        shutil.rmtree(cache, ignore_errors=True)
    cache.mkdir(parents=True, exist_ok=True)
    measure(options.part, cache)
    said = judged(options.part, cache)
    with (HERE / "truth.csv").open(newline="") as handle:
        truth = {row["id"]: row for row in csv.DictReader(handle) if row["part"] == options.part}
    print("\n".join(report(truth, said)))


if __name__ == "__main__":
    main()
