"""Passes of a probe's own: a few samples, without autocast, heard by nobody, and the model left exactly as it was."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.utils import checkpoint

from leadline.core.errors import LeadlineError, UsageError
from leadline.linalg import memory
from leadline.probes import Moment
from leadline.taps.inputs import Inputs, understand
from leadline.taps.places import Place, leaves
from leadline.taps.preserve import preserved
from leadline.taps.reductions import Reduction
from leadline.taps.tape import Heard, Tap, Tape, quiet

T = TypeVar("T")


@contextmanager
def own_pass(model: nn.Module, *, gradients: bool = False, evaluate: bool = False) -> Iterator[None]:
    """Run `model` inside as it is (or in evaluation mode), in the dtype of its parameters.

    With `gradients` everything is differentiable, frozen parameters included, and nothing is checkpointed: ask
    `require_graph` first whether there is room.
    """
    devices = {"cpu", *(parameter.device.type for parameter in model.parameters())}
    with ExitStack() as stack:
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(quiet(model))
        stack.enter_context(preserved(model))
        stack.enter_context(_not_checkpointed())
        stack.enter_context(torch.set_grad_enabled(gradients))
        for device in devices - {"meta"}:
            stack.enter_context(torch.autocast(device, enabled=False))
        if evaluate:
            model.eval()
        if gradients:
            for parameter in model.parameters():
                parameter.requires_grad_(_is_float(parameter))
        yield


@contextmanager
def _not_checkpointed() -> Iterator[None]:
    """Checkpointed functions are called through: their insides are in the graph, and second derivatives exist."""
    hook = getattr(checkpoint, "_checkpoint_hook", None)
    checkpoint.CheckpointFunction.apply = staticmethod(lambda run, _, *args: run(*args))  # type: ignore[method-assign]
    if hook is not None:
        checkpoint._checkpoint_hook = lambda _: nullcontext()  # type: ignore[assignment, misc, return-value]
    try:
        yield
    finally:
        del checkpoint.CheckpointFunction.apply
        if hook is not None:
            checkpoint._checkpoint_hook = hook  # type: ignore[misc]


def require_graph(at: Moment, inputs: Inputs, *, times: float = 1.0) -> None:
    """Refuse a pass with gradients whose graph does not fit, by what one sample keeps; `times` for graphs of graphs."""
    kept: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor.detach()

    try:
        with own_pass(at.model, gradients=True, evaluate=True):
            with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
                output = followed(samples(inputs, 1)).call(at.model)
            for parameter in at.model.parameters():
                kept.pop(parameter.untyped_storage().data_ptr(), None)
            del output  # whose graph kept the storages apart
    except Exception as error:
        raise UsageError(failure(error)) from None
    device = next((parameter.device for parameter in at.model.parameters()), None)
    count = batch_size(inputs)
    memory.require(
        round(times * count * sum(kept.values())),
        f"the graph of a pass of {count} samples",
        instead="take fewer samples",
        device=device,
    )


def mode(model: nn.Module) -> str:
    """`train`, `eval`, or `mixed`: how batch norm and dropout behave in a pass as it is."""
    modes = {module.training for module in model.modules()}
    return "mixed" if len(modes) > 1 else "train" if True in modes else "eval"


def batch_size(inputs: Inputs) -> int:
    """The length of the first axis of the first input; 0 if there is none."""
    tensors = (tensor for _, tensor in leaves((inputs.args, dict(inputs.kwargs))) if tensor.ndim)
    return next((tensor.shape[0] for tensor in tensors), 0)


def is_empty(inputs: Inputs) -> bool:
    """Whether the first axis of the first input counts no sample at all."""
    tensors = (tensor for _, tensor in leaves((inputs.args, dict(inputs.kwargs))) if tensor.ndim)
    return next((tensor.shape[0] == 0 for tensor in tensors), False)


def samples(inputs: Inputs, count: int, *, start: int = 0) -> Inputs:
    """`count` of the samples: of every tensor whose first axis is the batch's, targets included."""
    size = batch_size(inputs)
    if start == 0 and size <= count:
        return inputs
    return _each(inputs, lambda tensor: tensor[start : start + count] if tensor.shape[:1] == (size,) else tensor)


def followed(inputs: Inputs) -> Inputs:
    """The same inputs as fresh values that autograd follows where they are floating point."""
    return _each(
        inputs, lambda tensor: tensor.detach().clone().requires_grad_().clone() if _is_float(tensor) else tensor
    )


def _is_float(tensor: Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def _each(inputs: Inputs, change: Callable[[Tensor], Tensor]) -> Inputs:
    def changed(value: Any) -> Any:
        if isinstance(value, Tensor):
            return change(value)
        if isinstance(value, Mapping):
            return {key: changed(item) for key, item in value.items()}
        return type(value)(map(changed, value)) if type(value) in (tuple, list) else value

    return Inputs(changed(inputs.args), changed(inputs.kwargs), changed(inputs.targets))


def failure(error: Exception) -> str:
    """A model's own error in one line."""
    return str(error) if isinstance(error, LeadlineError) else f"the model failed on this batch: {in_a_line(error)}"


def in_a_line(error: Exception) -> str:
    first = (str(error).strip().splitlines() or [""])[0]
    return f"{type(error).__name__}: {first}"


def at_boundaries(at: Moment, inputs: Inputs, measure: Callable[[int, Tensor], T]) -> list[T | str]:
    """measure(l, x_l) for every boundary of the chain in one pass; in its place the reason where there is none."""
    found, _ = listen(at, inputs, at.anatomy.boundaries, measure)
    return found


def listen(
    at: Moment,
    inputs: Inputs,
    places: Sequence[Place],
    measure: Callable[[int, Tensor], T],
    *,
    gradients: bool = False,
    evaluate: bool = False,
    also: Sequence[Tap] = (),
    then: Callable[[Any], None] = lambda _: None,
    follow: bool = True,
) -> tuple[list[T | str], Heard]:
    """measure(k, value at place k) in a pass of its own, and what the taps `also` heard in it.

    With `gradients` the value comes with its graph; `then` gets the model's output while the taps still listen. The
    inputs are followed too, unless the model will not have that (some set `requires_grad` on them themselves).
    """
    found: dict[int, T] = {}
    troubles: dict[int, str] = {}

    def listener(index: int) -> Reduction:
        def hear(tensor: Tensor) -> Tensor:
            try:
                found[index] = measure(index, tensor)
            except (LeadlineError, RuntimeError) as error:
                troubles[index] = str(error).splitlines()[0]
            return torch.zeros(0)

        return Reduction(str(places[index]), hear, lambda parts: parts[0])

    taps = [Tap(place, listener(index)) for index, place in enumerate(places)]
    try:
        with own_pass(at.model, gradients=gradients, evaluate=evaluate), Tape(at.model, [*taps, *also]) as tape:
            then((followed(inputs) if gradients and follow else inputs).call(at.model))
    except Exception as error:  # whatever somebody's model raises is the answer, not the end of their training
        if gradients and follow:
            return listen(
                at, inputs, places, measure, gradients=True, evaluate=evaluate, also=also, then=then, follow=False
            )
        return [failure(error) for _ in taps], Heard({}, {})
    heard = tape.read()
    return [found[k] if k in found else troubles.get(k) or heard.why(tap) for k, tap in enumerate(taps)], heard


def no_chain(at: Moment) -> str:
    """Why there is nothing to read along the chain of blocks."""
    return "; ".join(at.anatomy.not_measured) or "no chain of blocks was found"


def training_samples(at: Moment, count: int) -> list[Inputs]:
    """About `count` samples of what is trained on, batch by batch: of the split if it is there, else of the batch."""
    if at.splits is None:
        return [samples(at.inputs, count)]
    device = next((parameter.device for parameter in at.model.parameters()), torch.device("cpu"))
    found: list[Inputs] = []
    for batch in at.splits.train:
        found.append(_each(samples(understand(at.model, batch), count), lambda tensor: tensor.to(device)))
        count -= batch_size(found[-1])
        if count <= 0:
            break
    return found
