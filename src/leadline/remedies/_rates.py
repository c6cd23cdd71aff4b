"""Learning rates of an optimiser times a factor, in every group."""

from functools import partial

from torch import Tensor

from leadline.core.errors import UsageError
from leadline.remedies._treatment import Treatment

KEYS = ("lr", "initial_lr")  # the second is where a scheduler that is built later starts from


def scale_rates(at: Treatment, factor: float) -> str:
    """Why nothing was changed, if nothing was."""
    if at.optimizer is None:
        raise UsageError(f"{at.remedy} acts on an optimiser; give it optimizer=")
    for index, group in enumerate(at.optimizer.param_groups):
        before = float(group["lr"])
        for key in KEYS:
            if key in group and before != 0:
                _set(at, group, key, factor)
        if before != 0:
            at.say(f"group {index}", f"learning rate {before:g} -> {before * factor:g}")
    return "every learning rate is 0"


def _set(at: Treatment, group: dict[str, float | Tensor], key: str, factor: float) -> None:
    rate = group[key]
    if isinstance(rate, Tensor):
        at.surgery.write(rate, rate * factor)
    else:
        at.surgery.later(partial(group.__setitem__, key, rate))
        group[key] = rate * factor
