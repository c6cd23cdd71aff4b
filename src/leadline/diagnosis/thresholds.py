"""The limits the rules go by: those of thresholds.yaml, parts of them replaced by a file of the user's."""

import reprlib
from collections.abc import Mapping
from pathlib import Path

import yaml

from leadline.core.errors import UnreadableError, UsageError, unknown

Thresholds = Mapping[str, Mapping[str, float]]

LARGEST = 1e308
OURS = Path(__file__).with_name("thresholds.yaml")


def thresholds(override: Path | None = None) -> Thresholds:
    """All limits by rule; an unknown rule or limit in `override` is an error."""
    ours = _read(OURS)
    if override is None:
        return ours
    merged = {rule: dict(limits) for rule, limits in ours.items()}
    for rule, limits in _read(override).items():
        if rule not in merged:
            raise unknown(f"rule in {override}", rule, merged)
        for name, value in limits.items():
            if name not in merged[rule]:
                raise unknown(f"limit of {rule}", name, merged[rule])
            merged[rule][name] = value
    return merged


def _read(path: Path) -> dict[str, dict[str, float]]:
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableError(f"cannot read the thresholds {path}: {getattr(error, 'strerror', error)}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UnreadableError(f"the thresholds {path} are not YAML: {str(error).splitlines()[0]}") from None
    if not isinstance(found, dict) or not all(isinstance(limits, dict) for limits in found.values()):
        raise UsageError(f"{path}: expected `rule: {{limit: number}}`, as in thresholds.yaml")
    for rule, limits in found.items():
        for name, value in limits.items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < LARGEST:
                raise UsageError(f"{path}: {rule}.{name} is {reprlib.repr(value)}, expected a number")
    return {str(rule): {str(k): float(v) for k, v in limits.items()} for rule, limits in found.items()}
