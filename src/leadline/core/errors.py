"""The errors a person can cause: one clear line and an exit code, never a traceback."""

import difflib
from collections.abc import Iterable

LONGEST_NAME = 100


class LeadlineError(Exception):
    """Base of all errors that the command shows as one line; `exit_code` is what it ends with."""

    exit_code = 1


class UsageError(LeadlineError, ValueError):
    """An argument, option or value that cannot be meant: exit 2."""

    exit_code = 2


class UnreadableError(LeadlineError, OSError):
    """A file or folder that is missing, damaged, altered, full or closed to us: exit 3."""

    exit_code = 3


def nearest(name: str, choices: Iterable[str], *, most: int = 3) -> list[str]:
    """The choices that look most like `name`, best first.

    >>> nearest("grad_ratio", ["gradient_norm_ratio", "weight_norm"])
    ['gradient_norm_ratio']
    """
    return difflib.get_close_matches(name, list(choices), n=most, cutoff=0.45)


def unknown(kind: str, name: str, choices: Iterable[str], *, listing: str = "") -> UsageError:
    """The error for a name that is not among `choices`, with the nearest ones and where to see them all.

    >>> print(unknown("probe", "grad_ratio", ["gradient_norm_ratio"], listing="leadline list probes"))
    unknown probe 'grad_ratio'; did you mean 'gradient_norm_ratio'? (leadline list probes)
    """
    options = list(choices)
    name = name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}..."
    close = nearest(name, options)
    if close:
        hint = f"; did you mean {' or '.join(repr(option) for option in close)}?"
    elif len(options) <= 12:
        hint = f"; expected one of {', '.join(options)}"
    else:
        hint = ""
    return UsageError(f"unknown {kind} {name!r}{hint}" + (f" ({listing})" if listing else ""))
