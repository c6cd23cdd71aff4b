"""A moment of training made by hand: one forward and backward pass of a model with the probe's taps on it."""

from collections.abc import Callable
from typing import Any

import torch
from foreign import Foreign, declare_vision_operators
from torch import Tensor, nn

from leadline.probes import Moment, Probe, Reading
from leadline.taps.anatomy import anatomy
from leadline.taps.inputs import Inputs, understand
from leadline.taps.tape import Heard, Tape

declare_vision_operators()  # before transformers imports torchvision


def moment(
    model: nn.Module,
    inputs: Any,
    targets: Any = None,
    loss_fn: Callable[[Any, Any], Tensor] | None = None,
    *,
    probe: Probe | None = None,
    blocks: str | None = None,
) -> Moment:
    understood = understand(model, inputs)
    understood = Inputs(understood.args, understood.kwargs, targets)
    found = anatomy(model, inputs, blocks=blocks)
    loss, heard = float("nan"), Heard({}, {})
    if loss_fn is not None:
        with Tape(model, probe.taps(found) if probe else []) as tape:
            value = loss_fn(understood.call(model), targets)
            if value.requires_grad:
                value.backward()
        loss, heard = float(value.detach()), tape.read()
        model.zero_grad()
    return Moment(
        step=0,
        model=model,
        anatomy=found,
        inputs=understood,
        loss_fn=loss_fn,
        loss=loss,
        heard=heard,
        generator=torch.Generator(),
    )


def foreign_moment(foreign: Foreign, probe: Probe | None = None) -> Moment:
    return moment(foreign.model, foreign.inputs, foreign.targets, foreign.loss_fn, probe=probe)


def read(probe: Probe, at: Moment) -> dict[str, Reading]:
    """The readings by name, each checked to be labelled: no nan without a reason."""
    readings = list(probe.read(at))
    assert readings, "a probe says at least why it has nothing to say"
    found = {reading.name: reading for reading in readings}
    assert len(found) == len(readings), "names are unique"
    for reading in readings:
        values = [reading.value] if isinstance(reading.value, float | int) else reading.value
        for place, value in enumerate(values):
            assert isinstance(value, float | int), reading
            assert value == value or place in reading.notes or -1 in reading.notes, f"silent nan in {reading}"
    return found


def double(foreign: Foreign) -> Foreign:
    """The same in double precision."""

    def wide(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: wide(item) for key, item in value.items()}
        return value.double() if isinstance(value, Tensor) and value.is_floating_point() else value

    return Foreign(foreign.model.double(), wide(foreign.inputs), wide(foreign.targets), foreign.loss_fn)
