"""Sound a model once: one forward and backward pass on a batch, every probe read, the model left bit for bit."""

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from leadline.analysis.profile import Profile
from leadline.core.errors import LeadlineError, UsageError
from leadline.probes import Probe, Splits
from leadline.store.reader import Reading as Line
from leadline.taps.inputs import Inputs, eager, understand
from leadline.taps.preserve import preserved
from leadline.taps.tape import quiet
from leadline.train.presets import choose
from leadline.train.processes import refuse_shards
from leadline.train.sounder import LossFunction, Sounder, look

STEP = 0


def sound(
    model: nn.Module,
    batch: Any,
    loss_fn: LossFunction,
    probes: str | Iterable[str | Probe] | None = None,
    *,
    blocks: str | Sequence[str] | None = None,
    splits: tuple[Iterable[Any], Iterable[Any]] | None = None,
) -> Profile:
    """Measure `model` now, in the mode it is in, on `batch`: what `forward` takes, with or without targets after it.

    The loss is `loss_fn(output, targets)`, targets being None if the batch has none. `probes` are names, a preset
    (`light`, `standard`, `full`), or probes; `standard` when not given. `blocks` names the blocks instead of finding
    them; `splits=(train, test)` are batches for probes that compare the two.
    """
    inner = eager(model)
    refuse_shards(inner)
    inputs = understand(inner, batch)
    sounder = Sounder(
        model=inner,
        anatomy=look(inner, inputs, blocks=blocks),
        probes=choose("standard" if probes is None else probes),
        inputs=inputs,
        loss_fn=loss_fn,
        splits=None if splits is None else Splits(*splits),
    )
    with _left_alone(inner):
        sounder.begin(STEP, everything=True)
        try:
            loss = _passes(inner, inputs, loss_fn)
            found = sounder.read(STEP, loss, stepped=False)
        finally:
            sounder.close()
    said = {} if math.isfinite(loss) else {-1: "the loss is not finite"}
    lines: list[Line] = [{"step": STEP, "probe": "loss", "name": "train/loss", "value": loss, "notes": said}]
    for probe, (name, value, notes) in found:
        lines.append({"step": STEP, "probe": probe, "name": name, "value": value, "notes": notes})
    return Profile.of_lines(sounder.describe(), lines)


@contextmanager
def _left_alone(model: nn.Module) -> Iterator[None]:
    with torch.inference_mode(False), quiet(model), preserved(model), torch.enable_grad():
        yield


def _passes(model: nn.Module, inputs: Inputs, loss_fn: LossFunction) -> float:
    try:
        loss = loss_fn(inputs.call(model), inputs.targets)
        if not isinstance(loss, Tensor) or loss.numel() != 1:
            raise UsageError(f"loss_fn must return one number as a tensor, got {_kind(loss)}")
        if loss.requires_grad:
            loss.backward()  # type: ignore[no-untyped-call]
        return float(loss.detach())
    except LeadlineError:
        raise
    except Exception as error:
        reason = (str(error).strip().splitlines() or [""])[0]
        raise UsageError(f"the model or its loss failed on this batch: {type(error).__name__}: {reason}") from error


def _kind(value: Any) -> str:
    return f"a tensor of shape {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
