"""Reading a name: family, numbers and variants separated by dashes; what cannot be read gets the nearest names."""

import importlib
import re
from collections.abc import Mapping
from functools import cache

from leadline.core import plugins
from leadline.core.errors import UsageError, nearest, unknown
from leadline.models import catalog
from leadline.models.family import Family, Named

PACKAGE = "leadline.models.families"


@cache
def families() -> Mapping[str, Family]:
    """Every family by the name of its file."""
    return {name: importlib.import_module(f"{PACKAGE}.{name}").FAMILY for name in plugins.names(PACKAGE)}


@cache
def prefixes() -> Mapping[str, Family]:
    """Every prefix and its family, the longest first: `resnest-wrn` is looked for before `resnest`."""
    found = {prefix: family for family in families().values() for prefix in family.prefixes}
    return {prefix: found[prefix] for prefix in sorted(found, key=len, reverse=True)}


def resolve(name: str) -> Named:
    """What a name means.

    >>> resolve("resnet-110").numbers
    (110,)
    """
    for prefix, family in prefixes().items():
        if name == prefix or name.startswith(f"{prefix}-"):
            return _read(name, prefix, family)
    raise _unknown(name)


def _read(name: str, prefix: str, family: Family) -> Named:
    words = name[len(prefix) + 1 :].split("-") if name != prefix else []
    split = next((i for i, word in enumerate(words) if not re.fullmatch("0|[1-9][0-9]*", word)), len(words))
    numbers, variants = tuple(map(int, words[:split])), words[split:]
    if len(numbers) not in family.numbers:
        raise UsageError(
            f"{name!r} is not complete: {prefix} is followed by {_wanted(family)}, as in {_example(prefix)}"
        )
    preset = dict(family.prefixes[prefix])
    for variant in variants:
        if variant not in family.variants or variants.count(variant) > 1:
            choices = ", ".join(family.variants) or "none"
            raise UsageError(f"unknown variant {variant!r} in {name!r}; {prefix} has: {choices} (leadline list models)")
        preset |= family.variants[variant]
    return Named(name, family, numbers, preset)


def _wanted(family: Family) -> str:
    words = {0: "nothing", 1: "a depth", 2: "a depth and a widening factor"}
    return " or ".join(words[count] for count in family.numbers)


def _example(prefix: str) -> str:
    return next((entry.name for entry in catalog.entries(f"{prefix}-[0-9]*")), f"{prefix}-20")


def _unknown(name: str) -> UsageError:
    names = [entry.name for entry in catalog.entries()]
    if re.match(r"(?i)resnest-?\d", name):
        ours = " or ".join(nearest("resnest-wrn-16-8", [n for n in names if n.startswith("resnest-")]))
        return UsageError(
            f"unknown model {name!r}: ResNeSt (split attention, Zhang et al. 2020) is not among the models; "
            f"ResNEst (residual nonlinear estimators, Chen et al. 2021) is, as {ours} (leadline list models)"
        )
    return unknown("model", name.lower(), names, listing="leadline list models")
