"""What JSON has no word for, said as the run store says it: infinities and nan as text, tuples as lists."""

import math
from collections.abc import Mapping
from typing import Any


def plain(value: Any) -> Any:
    """The same value for a strict JSON writer.

    >>> plain({"losses": (1.0, float("nan"), float("-inf"))})
    {'losses': [1.0, 'nan', '-inf']}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
