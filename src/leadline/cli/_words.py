"""Parsing of the command line into typed dataclasses, every complaint in one line."""

import contextlib
import dataclasses
import io
import json
import re
import sys
from collections.abc import Sequence
from typing import Any, TypeVar

import tyro

from leadline.core.errors import UsageError, unknown

Options = TypeVar("Options")

_FRAME = str.maketrans("", "", "╭╮╰╯│")


def parse(kind: type[Options], words: Sequence[str], *, verb: str) -> Options:
    """The words as an instance of `kind`; help is printed as usual, errors become a UsageError."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            return tyro.cli(kind, args=list(words), prog=f"leadline {verb}", config=(tyro.conf.FlagCreatePairsOff,))
    except SystemExit as ended:
        if ended.code in (0, None):
            raise
        raise UsageError(_one_line(said.getvalue(), verb, _options(kind))) from None


def _options(kind: type) -> list[str]:
    fields = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
    return [f"--{field.name.replace('_', '-')}" for field in fields]


def _one_line(text: str, verb: str, options: Sequence[str]) -> str:
    """What tyro says in a box, as one line; names that are unknown get the nearest ones."""
    lines = [line.strip(" ─") for line in text.translate(_FRAME).splitlines()]
    said = " ".join(line for line in lines if line)
    if found := re.search(r"Unrecognized options: (\S+?),? .*?Perhaps you meant: (?:\S+, )?(--[\w-]+)", said):
        said = f"unknown option {found[1]}; did you mean {found[2]}?"
    elif found := re.search(r"Unrecognized options: (--[^\s=,]+)", said):
        said = str(unknown("option", found[1], options))
    elif found := re.search(r"nvalid choice '(.*?)' for argument '(\S+?)'\. Expected one of \((.*?)\)", said):
        said = str(unknown(found[2], found[1], sorted(set(re.findall(r"'(.*?)'", found[3])) - {"None"})))
    elif found := re.search(r"Error parsing (\S+): .*?matching \{None\}\|(\S+) could .*? from \['(.*?)'\]", said):
        said = f"{found[1]} {found[3]!r}: expected {found[2]}"
    else:
        said = re.split(r" (?:For full helptext|Argument helptext)", said)[0]
        said = re.sub(r"^(?:Unrecognized options|Value error|Invalid choice|Required options) (?=[A-Za-z])", "", said)
    return f"{said} (leadline {verb} --help)"


def pairs(words: Sequence[str], *, option: str) -> dict[str, Any]:
    """The `key=value` words of a repeatable option; a value is JSON where it reads as such, `a,b` a list, else text.

    >>> pairs(["widths=8,16", "norm=none", "shortcut=2"], option="--arg")
    {'widths': [8, 16], 'norm': 'none', 'shortcut': 2}
    """
    found = {}
    for word in words:
        key, equals, text = word.partition("=")
        if not equals or not key:
            raise UsageError(f"{option} {word!r} is not understood; expected key=value")
        found[key] = _list(text) if "," in text and not text.startswith(("[", "{", '"')) else _plain(text)
    return found


def _list(text: str) -> list[Any]:
    return [_plain(item) for item in text.split(",") if item]


def _plain(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return {"True": True, "False": False, "None": None}.get(text, text)


def print_json(value: Any) -> None:
    """A result for machines."""
    json.dump(value, sys.stdout, indent=1, allow_nan=False)
    sys.stdout.write("\n")
