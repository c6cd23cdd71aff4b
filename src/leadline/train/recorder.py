"""Recorder: records a model while it trains, in whatever loop, into a run folder."""

import json
import math
import weakref
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from leadline.core.errors import UsageError
from leadline.core.version import VERSION
from leadline.probes import Probe, Reading, Splits
from leadline.store.layout import RunFolder
from leadline.store.sinks import Sink, chosen, writing
from leadline.store.writer import RunWriter
from leadline.taps.inputs import Inputs, eager, understand
from leadline.taps.tape import Arguments, Tape, overhear
from leadline.train.presets import choose
from leadline.train.processes import everyones, rank, refuse_shards, world
from leadline.train.sounder import LossFunction, Scaler, Sounder, look

GROUP = 16
"""So many losses are fetched from an accelerator in one transfer."""

_recorded: "weakref.WeakSet[nn.Module]" = weakref.WeakSet()


class Recorder:
    """Records readings of `model` during training: `recorder.step(loss)` after every `optimizer.step()`.

    It listens through hooks on the steps at which a probe is due, and at no other. Gradients are free of the loss scale
    (pass the `scaler`), summed over the backward passes of a step, and put together over processes, of which the first
    writes.
    """

    def __init__(
        self,
        model: nn.Module,
        to: str | Path,
        *,
        probes: str | Iterable[str | Probe] = "light",
        every: int | None = None,
        batch: Any = None,
        loss_fn: LossFunction | None = None,
        optimizer: Optimizer | None = None,
        scaler: Scaler | None = None,
        splits: tuple[Iterable[Any], Iterable[Any]] | None = None,
        blocks: str | Sequence[str] | None = None,
        start: int = 0,
        steps: int | None = None,
        sinks: Iterable[str | Sink] = (),
    ) -> None:
        """Choose what to record.

        `probes`: names, `name@every:10`, a preset (`light`, `standard`, `full`) or probes, each on its own schedule;
        `every` reads all of them every so many steps instead. `batch` (by default the first the model is called with)
        and `loss_fn(output, targets)` are for probes that run passes of their own; `splits=(train, test)` for those
        that compare the two. `blocks` names the blocks. `start`: go on with the run in the folder from this step.
        `steps`: how many there will be, for schedules that need the end. `sinks`: trackers that get aggregated readings
        too, `tensorboard`, `wandb`, `mlflow` or objects of those.
        """
        self.model = eager(model)
        self.folder = RunFolder(Path(to))
        self.steps = start
        self._batch, self._blocks = batch, blocks
        self._sinks = chosen(sinks)
        self._sounder = partial(
            Sounder,
            probes=choose(probes, every=every),
            loss_fn=loss_fn,
            optimizer=optimizer,
            scaler=scaler,
            splits=None if splits is None else Splits(*splits),
            last=None if steps is None else steps - 1,
        )
        self._active: Sounder | None = None
        self._writer: RunWriter | None = None
        self._attached = ExitStack()
        self._losses: list[tuple[int, Tensor | float]] = []

    # -- attaching ---------------------------------------------------------------------------------------------------

    def attach(self) -> Self:
        """Opens the run folder and listens from the next step on; a second recorder on one model is an error."""
        if self.model in _recorded:
            raise UsageError(f"a recorder is already attached to this {type(self.model).__name__}; detach it first")
        refuse_shards(self.model)
        with ExitStack() as attached:
            if rank() == 0:
                self._writer = attached.enter_context(_opened(self.folder, self.steps, self._sinks))
            if self._batch is not None:
                self._prepare(understand(self.model, self._batch))
            else:
                self._waiting = attached.enter_context(ExitStack())
                self._waiting.enter_context(overhear(self.model, self._note_call, _nothing))
                self._waiting.enter_context(Tape(self.model, (), accept=self._begins))
            _recorded.add(self.model)
            attached.callback(_recorded.discard, self.model)
            self._attached = attached.pop_all()
        return self

    def detach(self) -> None:
        """Ends the run: everything is written, done.json last, and the model has no hook of ours any more."""
        if self.model in _recorded:
            self._flush(together=True)
            if self._writer is not None and self._active is not None:
                self._writer.finish({"outcome": "finished", "steps": self.steps})
        self._let_go()

    def _let_go(self) -> None:
        if self._active is not None:
            self._active.close()
        self._active = self._writer = None
        self._attached.close()

    def __enter__(self) -> Self:
        return self.attach()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.detach()
        else:
            self._flush(together=False)
            self._let_go()

    def _note_call(self, name: str, _: nn.Module, arguments: Arguments) -> None:
        if name == "":
            self._arguments = arguments

    def _begins(self, _: nn.Module) -> bool:
        """The model is called, and not to be measured: if it is trained, look at it, and listen to this very pass."""
        if torch.is_grad_enabled():
            self._waiting.close()
            self._prepare(_kept_inputs(self._arguments), inside=True)
        return False

    def _prepare(self, inputs: Inputs, *, inside: bool = False) -> None:
        found = look(self.model, inputs, blocks=self._blocks)
        self._active = self._sounder(model=self.model, anatomy=found, inputs=inputs)
        if self._writer is not None:
            self._writer.describe(_about() | self._active.describe())
        self._active.begin(self.steps, inside=inside)

    # -- recording ---------------------------------------------------------------------------------------------------

    def step(self, loss: Tensor | float) -> None:
        """One step is made: call it after `optimizer.step()` (or `scaler.step`), before gradients are set to None."""
        if self.model not in _recorded:
            raise UsageError("the recorder is not attached; use `with Recorder(...) as recorder:` or recorder.attach()")
        if self._active is None:
            raise UsageError(
                f"the recorded {type(self.model).__name__} was not called in this step: is it the one trained?"
            )
        self._losses.append((self.steps, _number(loss)))
        if self._active.due(self.steps):
            loss_now = self._flush(together=True)
            self._write(self._active.read(self.steps, loss_now))
        elif world() == 1 and len(self._losses) >= (GROUP if _is_far(loss) else 1):
            self._flush(together=False)
        self.steps += 1
        self._active.begin(self.steps)

    def _write(self, readings: Iterable[tuple[str, Reading]]) -> None:
        if self._writer is not None:
            for probe, (name, value, notes) in readings:
                self._writer.append(self.steps, probe, name, value, notes=notes)

    def _flush(self, *, together: bool) -> float:
        """Writes the losses that wait, as their mean over the processes; returns the last one."""
        mine = _fetched([loss for _, loss in self._losses])
        everyone = everyones(mine) if together else [mine]
        means = [sum(losses) / len(losses) for losses in zip(*everyone, strict=True)]
        if self._writer is not None:
            for (step, _), mean in zip(self._losses, means, strict=True):
                self._writer.append(step, "loss", "train/loss", mean)
        self._losses.clear()
        return means[-1] if means else math.nan


def _opened(folder: RunFolder, start: int, sinks: Sequence[Sink]) -> RunWriter:
    """A writer at the place where the readings of step `start` begin; a folder that holds a run needs a start."""
    if start == 0 and folder.run_json.exists():
        raise UsageError(f"{folder.path} holds a run already; choose another folder, or go on with it by start=STEP")
    opened = writing(folder.path, resume_at=_bytes_before(folder, start), sinks=sinks)
    folder.done_json.unlink(missing_ok=True)
    return opened


def _bytes_before(folder: RunFolder, step: int) -> int:
    """The length of the readings of earlier steps, which stand before all others."""
    length = 0
    if step and folder.readings.exists():
        with folder.readings.open("rb") as lines:
            for line in lines:
                try:
                    before = json.loads(line)["step"] < step
                except (ValueError, KeyError, TypeError):
                    break  # torn or damaged: recorded again from here
                if not before:
                    break
                length += len(line)
    return length


def _about() -> dict[str, Any]:
    return {
        "recorder": VERSION,
        "torch": str(torch.__version__),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _kept_inputs(arguments: Arguments) -> Inputs:
    """The arguments of a call, apart from the caller's tensors."""
    given = {key: _kept(value) for key, value in arguments.items()}
    positional = tuple(value for key, value in given.items() if isinstance(key, int))
    return Inputs(positional, {key: value for key, value in given.items() if isinstance(key, str)})


def _kept(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, Mapping):
        return {key: _kept(item) for key, item in value.items()}
    return type(value)(map(_kept, value)) if type(value) in (tuple, list) else value


def _nothing(*_: Any) -> None:
    """What is done after a call."""


def _number(loss: Tensor | float) -> Tensor | float:
    if isinstance(loss, Tensor):
        if loss.numel() != 1:
            raise UsageError(f"recorder.step takes one loss, got a tensor of shape {tuple(loss.shape)}")
        return loss.detach().reshape(())
    return float(loss)


def _is_far(loss: Tensor | float) -> bool:
    return isinstance(loss, Tensor) and loss.device.type != "cpu"


def _fetched(losses: Sequence[Tensor | float]) -> list[float]:
    """As Python numbers, in one transfer."""
    tensors = [loss for loss in losses if isinstance(loss, Tensor)]
    known = iter(torch.stack(tensors).cpu().double().tolist() if tensors else [])
    return [next(known) if isinstance(loss, Tensor) else loss for loss in losses]
