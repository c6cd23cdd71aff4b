"""Which probes to read and when: presets as data, and words that name a probe with its arguments and schedule."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from leadline.core import plugins
from leadline.core.errors import UsageError, unknown
from leadline.core.when import KINDS, Every, When, parse
from leadline.probes import Probe

PACKAGE = "leadline.probes"

LIGHT = {"gradient_norm_ratio": "every:1", "weight_norm": "every:1"}
STANDARD = LIGHT | {
    "gradient_range": "every:100",
    "weight_range": "every:100",
    "activation_range": "every:100",
    "update_ratio": "every:100",
    "weight_condition": "every:100",
    "collinearity": "every:200",
    "hidden_condition": "every:500",
    "operator_condition": "every:500",
    "norm_bound": "every:500",
    "generalisation_gap": "every:500",
}
FULL = STANDARD | {
    "hessian_spectrum": "log:2",
    "feature_predictability": "every:1000",
    "risk_lower_bound": "every:1000",
    "residual_probe": "every:1000",
}
PRESETS: Mapping[str, Mapping[str, str]] = {"light": LIGHT, "standard": STANDARD, "full": FULL}


def choose(wanted: str | Iterable[str | Probe], *, every: int | None = None) -> dict[str, Probe]:
    """The probes meant, by name: of a preset, `name`, `name@every:10`, or a probe itself; the last of a name counts.

    Arguments stand in brackets, `name(samples=64; ridge=0.1)@end`. `every` reads all of them every so many steps
    instead.

    >>> spell(choose(["light", "weight_norm@every:10", "risk_lower_bound(samples=64)@end"]))
    ('gradient_norm_ratio@every:1', 'weight_norm@every:10', 'risk_lower_bound(samples=64)@end')
    """
    chosen: dict[str, Probe] = {}
    for item in [wanted] if isinstance(wanted, str) else wanted:
        chosen |= _meant(item) if isinstance(item, str) else {name_of(item): item}
    if every is not None:
        chosen = {name: at(probe, Every(every)) for name, probe in chosen.items()}
    return chosen


def spell(probes: Mapping[str, Probe]) -> tuple[str, ...]:
    """The words that `choose` reads as these probes."""
    return tuple(f"{name}{_in_brackets(probe)}@{word(probe.when)}" for name, probe in probes.items())


def name_of(probe: Probe) -> str:
    """What the probe's file is called, were it one of ours: `GradientNormRatio` is `gradient_norm_ratio`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", type(probe).__name__).lower()


def word(when: When) -> str:
    """The word of a schedule that `core.when` knows; any other's own description."""
    for kind, schedule in KINDS.items():
        if type(when) is schedule:
            return ":".join((kind, *(str(value) for value in vars(when).values())))
    return repr(when)


def at(probe: Probe, when: When) -> Probe:
    """The same probe on another schedule."""
    try:
        return replace(probe, when=when)  # type: ignore[type-var]
    except TypeError:
        raise UsageError(f"{name_of(probe)} has no field `when` that could be set; leave out every=") from None


def _meant(item: str) -> dict[str, Probe]:
    if item in PRESETS:
        return {name: at(_load(name), parse(when)) for name, when in PRESETS[item].items()}
    called, with_schedule, when = item.partition("@")
    name, with_arguments, arguments = called.partition("(")
    probe = _load(name)
    if with_arguments:
        probe = _given(name, probe, arguments)
    return {name: at(probe, parse(when)) if with_schedule else probe}


def _given(name: str, probe: Probe, text: str) -> Probe:
    """The probe with the arguments that stand in brackets, of the types it has them in."""
    known, changed = _arguments(probe), {}
    for part in text.removesuffix(")").split(";"):
        key, _, value = (each.strip() for each in part.partition("="))
        if key not in known:
            raise unknown(f"argument of probe {name}:", key, known)
        changed[key] = _valued(f"probe {name}: {key}", value, type(known[key]))
    return replace(probe, **changed)  # type: ignore[type-var]


def _valued(what: str, text: str, kind: type) -> Any:
    try:
        value = text if kind is str else json.loads(text)
    except ValueError:
        value = None
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind:
        raise UsageError(f"{what}={text!r} is wrong; expected {kind.__name__}, as in name(samples=64)@end")
    return value


def _in_brackets(probe: Probe) -> str:
    """The arguments that differ from the defaults, as `choose` reads them."""
    known: object = probe
    usual = {part.name: part.default for part in fields(known)} if is_dataclass(known) else {}
    said = [
        f"{name}={value if isinstance(value, str) else json.dumps(value)}"
        for name, value in _arguments(probe).items()
        if value != usual[name]
    ]
    return f"({'; '.join(said)})" if said else ""


def _load(name: str) -> Probe:
    if name not in plugins.names(PACKAGE):
        raise unknown("probe", name, [*PRESETS, *plugins.names(PACKAGE)], listing="leadline list probes")
    probe: Probe = plugins.load(PACKAGE, name, kind="probe")()
    return probe


def describe(probes: Mapping[str, Probe]) -> dict[str, Any]:
    """What a run's description says about its probes: axis, schedule, and what else decides their numbers."""
    return {
        name: {"axis": probe.axis, "when": word(probe.when), "args": _arguments(probe)}
        for name, probe in probes.items()
    }


def _arguments(probe: Probe) -> dict[str, Any]:
    plain: dict[str, Any] = (
        {} if not is_dataclass(probe) else {part.name: getattr(probe, part.name) for part in fields(probe)}
    )
    return {name: value for name, value in plain.items() if isinstance(value, (bool, int, float, str))}
