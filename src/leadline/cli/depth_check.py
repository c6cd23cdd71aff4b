"""Say how readings of a network grow with its depth, and how deep it may get and still train."""

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text
from tyro.conf import Positional

from leadline.cli import _trial
from leadline.cli._page import write_page
from leadline.cli._trial import Trial
from leadline.cli._verdicts import STYLES
from leadline.cli._words import pairs, parse, print_json
from leadline.core.errors import UsageError
from leadline.core.plain import plain

if TYPE_CHECKING:
    from torch import nn

    from leadline.analysis.deepest import DepthCheck


@dataclass(frozen=True, kw_only=True)
class Deeper(Trial):
    """Measure one recipe at several depths, and say what grows with depth and how deep it may get and still train.

    MODEL-FAMILY is the name of a built-in network without its depth (resnet, procresnet; wrn-{}-4 where the depth
    stands inside), or module:factory, called with --depth-arg. Ends with 0 if nothing explodes and every depth trains,
    1 otherwise, 2 for usage, 3 for what cannot be read.
    """

    family: Positional[str]
    """a name without its depth, or module:factory"""
    depths: str
    """three or more, as in 8,16,32,64"""
    depth_arg: str = "depth"
    """what the factory calls its depth"""
    repeats: int = 3
    """seeds under which the untrained networks are measured"""
    budget: float = 120.0
    """seconds for everything, shared out by depth"""


def run(words: Sequence[str]) -> int:
    options = parse(Deeper, words, verb="depth-check")
    depths = _depths(options.depths)
    from leadline.execute.depth_check import depth_check

    data = _trial.dataset(options)
    make = _factory(options, data)
    first = _trial.build(options, *_named(options, depths[0]), data)
    batches = _trial.batches(options, first, data)
    with _waiting() as tell:
        found = depth_check(
            make,
            depths,
            batches[0],
            _trial.loss(options),
            lambda model: _trial.optimizer(options, model),
            batches=batches[1:],
            repeats=options.repeats,
            steps=options.steps,
            budget=options.budget,
            seed=options.seed,
            family=options.family,
            thresholds=options.thresholds,
            to=options.out,
            progress=tell,
        )
    if options.out is not None:
        write_page(options.out, [options.out / f"depth-{depth}" for depth in depths])
    if options.json:
        print_json(plain(found.to_json()))
    else:
        show(found)
    return found.exit_code


def show(found: "DepthCheck") -> None:
    """The tables as text, the verdicts in them coloured on a terminal."""
    console = Console(highlight=False, soft_wrap=True)
    for line in str(found).splitlines():
        text = Text(line, style="bold" if line.startswith("largest") else "")
        for verdict, style in STYLES.items():
            text.highlight_words([verdict], style)
        console.print(text)


def _factory(options: Deeper, data: Any) -> "Callable[[int], nn.Module]":
    def make(depth: int) -> "nn.Module":
        return _trial.create(options, *_named(options, depth), data)

    return make


def _named(options: Deeper, depth: int) -> tuple[str, dict[str, Any]]:
    """The model's name at a depth, and its arguments."""
    arguments = pairs(options.arg, option="--arg")
    if ":" in options.family:
        if options.depth_arg in arguments:
            raise UsageError(f"--arg {options.depth_arg}=... is what --depths decides; leave it out")
        return options.family, {**arguments, options.depth_arg: depth}
    if "{}" in options.family:
        return options.family.replace("{}", str(depth)), arguments
    return f"{options.family}-{depth}", arguments


def _depths(text: str) -> list[int]:
    try:
        depths = sorted({int(word) for word in text.split(",") if word})
    except ValueError:
        depths = []
    if len(depths) < 3 or depths[0] < 1:
        raise UsageError(f"--depths {text!r}: expected three or more numbers, as in 8,16,32,64")
    return depths


@contextlib.contextmanager
def _waiting() -> "Iterator[Callable[[str], object]]":
    """A line on stderr, where someone looks; what the models print goes there as well."""
    with Console(stderr=True).status("") as line, contextlib.redirect_stdout(sys.stderr):
        yield line.update
