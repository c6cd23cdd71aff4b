"""Probes: one measurement per file. This is what a probe is, what it gets to see, and what it says.

A probe says which places it wants to hear (`taps`), and at each moment its schedule names it reads them, the model's
weights, or passes of its own, and yields readings. A reading that cannot be made is a reading with a note.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from leadline.core.when import When
from leadline.probes._layers import aside, layers
from leadline.taps.inputs import Inputs
from leadline.taps.tape import Heard, Tap

if TYPE_CHECKING:
    from leadline.taps.anatomy import Anatomy

__all__ = ["Axis", "Foresighted", "Moment", "Probe", "Reading", "Splits", "Value", "aside", "layers"]

Axis = Literal["block", "boundary", "layer"]
Value = float | Sequence[float]


class Reading(NamedTuple):
    """A name such as `ratio/transition` and one number, or one for each place along the probe's axis.

    `notes` tells why a number is missing (nan), by its place along the axis; at -1 stands what holds for the reading
    as a whole: why there is none, or the mode, dtype and tolerance it was taken with.
    """

    name: str
    value: Value
    notes: Mapping[int, str] = {}


class Splits(NamedTuple):
    """Batches `(inputs, targets)` of what is trained on and what is not; each can be gone through again and again."""

    train: Iterable[tuple[Any, Any]]
    test: Iterable[tuple[Any, Any]]


@dataclass(frozen=True, kw_only=True)
class Moment:
    """What a probe may look at, and must leave as it is: one batch at one step of one model.

    Weights are those after the step's update. `heard` is from the step's own passes, over all its micro-batches;
    `inputs` is one batch, the same at every step, for passes of the probe's own: take their gradients with
    `torch.autograd.grad`, since `.backward()` would set off what others hang on the parameters. A parameter's `.grad`
    is what the step was made with. `before` is what the probe's own `before` kept.
    """

    step: int
    model: nn.Module
    anatomy: "Anatomy"
    inputs: Inputs
    loss_fn: Callable[[Any, Any], Tensor] | None
    loss: float
    heard: Heard
    optimizer: Optimizer | None = None
    before: Any = None
    splits: "Splits | None" = None
    generator: torch.Generator = field(default_factory=lambda: torch.Generator().manual_seed(0))


class Probe(Protocol):
    """One measurement; parameters that decide a number are fields of a frozen keyword-only dataclass."""

    @property
    def when(self) -> When: ...

    @property
    def axis(self) -> Axis:
        """What the numbers of a reading that has several are counted along; for layers see `layers`."""

    def taps(self, anatomy: "Anatomy") -> Sequence[Tap]:
        """What has to be heard during the forward and backward pass of the step that is read; often nothing."""

    def read(self, at: Moment) -> Iterator[Reading]: ...


@runtime_checkable
class Foresighted(Protocol):
    """A probe that also has to see the model before the step it reads."""

    def before(self, model: nn.Module) -> Any: ...
