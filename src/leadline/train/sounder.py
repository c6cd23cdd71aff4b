"""Sounder: takes the readings of several probes, each at its own steps; at any other step nothing listens."""

import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from leadline.core.errors import UsageError
from leadline.probes import Foresighted, Moment, Probe, Reading, Splits, aside, layers
from leadline.probes._passes import samples
from leadline.taps.anatomy import Anatomy, anatomy
from leadline.taps.inputs import Inputs
from leadline.taps.tape import Heard, Tape
from leadline.train import seeds
from leadline.train.batch_norm import alone
from leadline.train.presets import describe
from leadline.train.processes import everyones, world

FEW = 2

LossFunction = Callable[[Any, Any], Tensor]


class Scaler(Protocol):
    """A torch.amp.GradScaler, for what is asked of it."""

    def get_scale(self) -> float: ...


@dataclass(kw_only=True)
class Sounder:
    """`begin(step)` before the passes of a step, `read(step, loss)` after its update, `close()` at the end.

    With several processes every one of them calls all three; what they heard is put together, and each gets the same
    readings. Gradients are then those of the mean of the processes' losses, as DistributedDataParallel trains on.
    `readable` gives the model with whole parameters where those of `model` are sharded.
    """

    model: nn.Module
    anatomy: Anatomy
    probes: Mapping[str, Probe]
    inputs: Inputs
    loss_fn: LossFunction | None = None
    optimizer: Optimizer | None = None
    scaler: Scaler | None = None
    splits: Splits | None = None
    last: int | None = None
    readable: Callable[[], nn.Module] | None = None

    def __post_init__(self) -> None:
        self._due: Mapping[str, Probe] = {}
        self._before: dict[str, Any] = {}
        self._tapes: dict[tuple[str, ...], _Ear | None] = {}
        self._tape: _Ear | None = None
        self._scale = 1.0

    def due(self, step: int) -> dict[str, Probe]:
        """The probes to read at `step`."""
        return {name: probe for name, probe in self.probes.items() if probe.when.due(step, last=self.last)}

    def begin(self, step: int, *, everything: bool = False, inside: bool = False) -> None:
        """Listens for what is due at `step`, or for everything; `inside`: the model's forward pass has begun."""
        self._due, self._before = self.probes if everything else self.due(step), {}
        foresighted = {name: probe for name, probe in self._due.items() if isinstance(probe, Foresighted)}
        if foresighted:
            model = self._readable()
            self._before = {name: probe.before(model) for name, probe in foresighted.items()}
        self._listen(self._tape_for(tuple(self._due)))
        if inside and self._tape is not None:
            self._tape.join()

    def read(self, step: int, loss: float, *, stepped: bool = True) -> list[tuple[str, Reading]]:
        """What each probe that is due says; one that fails says so, and ends nobody's training.

        `stepped`: the optimiser has made its update, so there is a before and an after.
        """
        if not self._due:
            return []
        heard, model, found = self._hear(), self._readable(), []
        with _at_peace(model), alone(model):
            for name, probe in self._due.items():
                before = self._before.pop(name, None)
                moment = self._moment(step, loss, heard, before if stepped else None, model)
                found += [(name, reading) for reading in _readings(probe, moment)]
        return found

    def close(self) -> None:
        """Stops listening; the model has no hook of ours any more."""
        self._due = {}
        self._listen(None)

    def describe(self) -> dict[str, Any]:
        """What a run's description says: the model's anatomy, the probes, and what their numbers are counted along."""
        model = self._readable()
        dtypes = dict.fromkeys(str(parameter.dtype).removeprefix("torch.") for parameter in model.parameters())
        return {
            "mode": "train" if model.training else "eval",
            "dtype": ", ".join(dtypes),
            "anatomy": self.anatomy.to_json(),
            "probes": describe(self.probes),
            "places": {
                "block": [block.name for block in self.anatomy.blocks],
                "boundary": [str(place) for place in self.anatomy.boundaries],
                "layer": [layer.name for layer in layers(model)],
            },
            "aside": aside(model),
        }

    def _readable(self) -> nn.Module:
        return self.model if self.readable is None else self.readable()

    def _moment(self, step: int, loss: float, heard: Heard, before: Any, model: nn.Module) -> Moment:
        return Moment(
            step=step,
            model=model,
            anatomy=self.anatomy,
            inputs=self.inputs,
            loss_fn=self.loss_fn,
            loss=loss,
            heard=heard,
            optimizer=self.optimizer,
            before=before,
            splits=self.splits,
            generator=seeds.forked(0, step),
        )

    # -- listening ---------------------------------------------------------------------------------------------------

    def _tape_for(self, names: tuple[str, ...]) -> "_Ear | None":
        if names not in self._tapes:
            taps = [tap for probe in self._due.values() for tap in probe.taps(self.anatomy)]
            self._tapes[names] = _Ear(self.model, taps, accept=self._accept) if taps else None
        return self._tapes[names]

    def _listen(self, tape: "_Ear | None") -> None:
        if tape is self._tape:
            return
        if self._tape is not None:
            self._tape.detach()
        self._tape = None
        if tape is not None:
            tape.attach()
            self._tape = tape

    def _accept(self, _: nn.Module) -> bool:
        """Passes that record gradients, not the evaluation between two steps; the loss scale is what it is now."""
        if torch.is_grad_enabled() and self.scaler is not None:
            self._scale = float(self.scaler.get_scale())
        return torch.is_grad_enabled()

    def _hear(self) -> Heard:
        if self._tape is None:
            return Heard({}, {})
        processes = world()
        return self._tape.read(scale=self._scale * processes, gather=everyones if processes > 1 else None)


class _Ear(Tape):
    """A tape that can begin to listen in the middle of a forward pass, before any of its places is reached."""

    def join(self) -> None:
        self._start(self.model, None)


def look(model: nn.Module, inputs: Inputs, *, blocks: str | Sequence[str] | None = None) -> Anatomy:
    """The anatomy found on two samples, since the graph of a whole batch would take more memory than a training step.

    A model that cannot do with two is given all.
    """
    try:
        return anatomy(model, as_batch(model, samples(inputs, FEW)), blocks=blocks)
    except UsageError:
        return anatomy(model, as_batch(model, inputs), blocks=blocks)


def as_batch(model: nn.Module, inputs: Inputs) -> Any:
    """The inputs of a call as a batch without targets."""
    if inputs.args and inputs.kwargs:
        return inspect.signature(model.forward).bind(*inputs.args, **inputs.kwargs).arguments
    return inputs.kwargs or (inputs.args, None)


@contextmanager
def _at_peace(model: nn.Module) -> Iterator[None]:
    """Probes that run passes of their own find autograd on and autocast off, wherever they are called from."""
    device = next((parameter.device.type for parameter in model.parameters()), "cpu")
    with torch.inference_mode(False), torch.enable_grad(), torch.autocast(device, enabled=False):
        yield


def _readings(probe: Probe, moment: Moment) -> list[Reading]:
    try:
        return list(probe.read(moment))
    except Exception as error:  # a measurement must not end somebody's training
        reason = (str(error).strip().splitlines() or [""])[0]
        return [Reading("failed", math.nan, {-1: f"it failed: {type(error).__name__}: {reason}"})]
