"""Say why a model does not train, and what to change: seconds, nothing of it is changed."""

import contextlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.console import Console
from tyro.conf import Positional, UseAppendAction

from leadline.cli import _trial
from leadline.cli._page import write_page
from leadline.cli._trial import Trial
from leadline.cli._verdicts import STYLES
from leadline.cli._words import pairs, parse, print_json
from leadline.core.errors import UsageError
from leadline.core.plain import plain

if TYPE_CHECKING:
    from leadline.diagnosis.finding import Diagnosis
    from leadline.execute.prove import Told
    from leadline.remedies._proof import Proof


@dataclass(frozen=True, kw_only=True)
class Check(Trial):
    """Say why a model does not train, and what to change.

    MODEL is a name from `leadline list models`, module:factory (imported from here or from what is installed), or a
    run folder, which is judged by its readings. Without --data the model is shown random inputs and labels.
    Ends with 0 if it is healthy, 1 with findings, 2 for usage, 3 for what cannot be read.
    """

    model: Positional[str]
    """a name, module:factory, or a run folder"""
    budget: float = 50.0
    """seconds for everything but --prove"""
    select: Annotated[tuple[str, ...], UseAppendAction] = ()
    """only findings with these ids, or ids that begin so"""
    ignore: Annotated[tuple[str, ...], UseAppendAction] = ()
    """all findings but those"""
    prove: bool = False
    """train the model briefly with and without each remedy of the root cause, and say what came of it"""
    prove_budget: float = 120.0
    """seconds for that"""


def run(words: Sequence[str]) -> int:
    options = parse(Check, words, verb="check")
    found, proof = _of_run(options) if Path(options.model).is_dir() else _of_model(options)
    if options.out is not None:
        write_page(options.out, [options.out])
    if options.json:
        print_json(plain(found.to_json() | ({} if proof is None else {"proof": proof.to_json()})))
    else:
        show(found, proof)
    return found.exit_code


def show(found: "Diagnosis", proof: "Proof | None" = None) -> None:
    """The diagnosis as text, its verdict coloured on a terminal; then what the remedies came to."""
    console = Console(highlight=False, soft_wrap=True)
    first, *others = str(found).splitlines()
    console.print(first, style=STYLES[found.verdict], markup=False)
    for line in others:
        console.print(line, style="bold" if line.startswith("LL") else None, markup=False)
    if proof is not None:
        *lines, last = str(proof).splitlines()
        console.print("\n" + "\n".join(lines), markup=False)
        console.print(last, style="bold green" if proof.best else "bold yellow", markup=False)


def _of_run(options: Check) -> "tuple[Diagnosis, None]":
    from leadline.execute.check import check_run
    from leadline.execute.keep import keep_of_run
    from leadline.store.reader import read

    if options.prove:
        raise UsageError(f"--prove trains copies of a model, and {options.model} is a folder; give the model it is of")
    run = read(Path(options.model))
    found = check_run(run, select=options.select, ignore=options.ignore, thresholds=options.thresholds)
    if options.out is not None:
        keep_of_run(options.out, run, found)
    return found, None


def _of_model(options: Check) -> "tuple[Diagnosis, Proof | None]":
    from leadline.execute.check import check
    from leadline.execute.keep import write_proof
    from leadline.execute.prove import prove

    data = _trial.dataset(options)
    model = _trial.build(options, options.model, pairs(options.arg, option="--arg"), data)
    batches = _trial.batches(options, model, data)
    trained = (model, batches[0], _trial.loss(options), _trial.optimizer(options, model))
    with _waiting(f"checking {options.model}") as tell:
        found = check(
            *trained,
            batches=batches[1:],
            steps=options.steps,
            budget=options.budget,
            select=options.select,
            ignore=options.ignore,
            thresholds=options.thresholds,
            to=options.out,
        )
        if not options.prove or found.root is None:
            return found, None
        proof = prove(
            *trained,
            among=found,
            batches=batches[1:],
            steps=options.steps,
            budget=options.prove_budget,
            seed=options.seed,
            progress=tell,
        )
    if options.out is not None:
        write_proof(options.out, proof)
    return found, proof


@contextlib.contextmanager
def _waiting(text: str) -> "Iterator[Told]":
    """A line on stderr, where someone looks; what the model prints goes there as well."""
    with Console(stderr=True).status(text) as line, contextlib.redirect_stdout(sys.stderr):
        yield lambda what, step, steps: line.update(f"proving: {what}, step {step} of {steps}")
