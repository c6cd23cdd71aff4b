"""Checkpoints without pickle: tensors in safetensors, the rest in JSON; the two newest are kept.

Several processes write one together, the first of them to the disk: of sharded tensors it holds the whole, so that any
other number of processes can go on from it. Every process has to call `write` and `read`.
"""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn
from torch.optim import Optimizer

from leadline.core.config import explain
from leadline.core.errors import UnreadableError
from leadline.projections import Procrustes
from leadline.store.layout import FORMAT, NewerError, read_json
from leadline.train import seeds
from leadline.train.processes import everyones, fill, first_finds, rank, whole

KEPT = 2
PARTS = {"model", "optimizer", "random"}
"""What every checkpoint has; a run with projections has theirs too."""


@dataclass(frozen=True)
class Position:
    """Where a run stands: steps taken, bytes of readings written, and the best score so far."""

    step: int
    readings_bytes: int
    best: Mapping[str, float]


class State(BaseModel):
    """What state.json says; `digest` is of all of it but itself."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    format: int
    step: int = Field(ge=0, lt=1 << 53)
    readings_bytes: int = Field(ge=0, lt=1 << 62)
    best: dict[str, int | float]
    optimizer: list[dict[str, Any]]
    sha256: dict[str, str]
    digest: str = ""


def write(
    folder: Path,
    model: nn.Module,
    optimizer: Optimizer,
    position: Position,
    *,
    procrustes: Procrustes | None = None,
) -> Path:
    """Writes one checkpoint under its step; it counts only once its folder has its final name."""
    tensors = {
        "model": _wholes(model.state_dict()),
        "optimizer": _wholes(_optimizer_tensors(optimizer)),
        "random": _everyones_random(),
        **({"projection": _projection_tensors(procrustes)} if procrustes else {}),
    }
    state = {
        "format": FORMAT,
        "step": position.step,
        "readings_bytes": position.readings_bytes,
        "best": dict(position.best),
        "optimizer": _optimizer_numbers(optimizer),
    }
    return first_finds(lambda: _written_down(folder, tensors, state))


def _written_down(folder: Path, tensors: Mapping[str, Mapping[str, Tensor]], state: Mapping[str, Any]) -> Path:
    target = folder / f"step-{state['step']:09d}"
    part = folder / f".{target.name}.part"
    try:
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        digests = {name: _write_tensors(part / f"{name}.safetensors", parts) for name, parts in tensors.items()}
        whole_state = {**state, "sha256": digests}
        _write(part / "state.json", json.dumps({**whole_state, "digest": _digest(whole_state)}, indent=1).encode())
        shutil.rmtree(target, ignore_errors=True)
        part.replace(target)
        _sync_folder(folder)
    except OSError as error:
        shutil.rmtree(part, ignore_errors=True)
        raise UnreadableError(f"cannot write the checkpoint {target}: {error.strerror}") from None
    for old in (*_written(folder)[:-KEPT], *folder.glob(".step-*.part")):
        shutil.rmtree(old, ignore_errors=True)
    return target


def newest(folder: Path, *, readings: int | None = None) -> tuple[Path | None, list[str]]:
    """The newest undamaged checkpoint, if any, and a note on each one that was passed over.

    One that speaks of more than the `readings` bytes that are there is passed over too: it was copied after them. One
    of a newer version is an error: it is not damaged, and going on without it would write over it.
    """
    notes: list[str] = []
    paths = _written(folder)
    for path in reversed(paths):
        try:
            _verify(path, readings)
            return path, notes
        except NewerError:
            raise
        except UnreadableError as error:
            notes.append(f"{error}; {'using the one before' if path != paths[0] else 'starting from the beginning'}")
    return None, notes


def read(path: Path, model: nn.Module, optimizer: Optimizer, *, procrustes: Procrustes | None = None) -> Position:
    """Loads everything in place and returns the position. A checkpoint of another model is refused."""
    state = _state(path)
    _load_model(path, model)
    with _belonging(path, "optimiser"):
        _load_optimizer(path, optimizer, state.optimizer)
    with _belonging(path, "set of random generators"):
        _restore_random(_tensors(path / "random.safetensors"), state.step)
    if procrustes:
        with _belonging(path, "projection"):
            procrustes.load_state_dict(_tensors(path / "projection.safetensors"))
    return Position(state.step, state.readings_bytes, state.best)


@contextmanager
def _belonging(path: Path, what: str) -> Iterator[None]:
    """What does not fit is one line; files that are as they were written only fail to fit where they do not belong."""
    try:
        yield
    except UnreadableError:
        raise
    except (LookupError, ValueError, TypeError, RuntimeError, ArithmeticError) as error:
        reason = (str(error).splitlines() or [""])[0]
        raise UnreadableError(f"the checkpoint {path} is from another {what}: {reason}") from None


def load_weights(path: Path, model: nn.Module) -> None:
    """Only the model's weights and buffers of a checkpoint."""
    _verify(path)
    _load_model(path, model)


def _load_model(path: Path, model: nn.Module) -> None:
    tensors, own = _tensors(path / "model.safetensors"), model.state_dict()
    for name in [*own, *tensors]:
        found, expected = tensors.get(name), own.get(name)
        if found is None or expected is None or found.shape != expected.shape:
            raise UnreadableError(
                f"the checkpoint {path} is from another model: {name} is {_shape(found)} there, {_shape(expected)} here"
            )
    for name, tensor in own.items():
        fill(tensor, tensors[name])


def _shape(tensor: Tensor | None) -> str:
    return "missing" if tensor is None else "x".join(map(str, tensor.shape)) or "a scalar"


def _parameters(optimizer: Optimizer) -> list[Tensor]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _optimizer_tensors(optimizer: Optimizer) -> dict[str, Tensor]:
    return {
        f"{index}.{name}": value
        for index, parameter in enumerate(_parameters(optimizer))
        for name, value in optimizer.state.get(parameter, {}).items()
        if isinstance(value, Tensor)
    }


def _optimizer_numbers(optimizer: Optimizer) -> list[dict[str, Any]]:
    plain = (bool, int, float, str, list, tuple)
    return [
        {name: value for name, value in group.items() if name != "params" and isinstance(value, plain)}
        for group in optimizer.param_groups
    ]


def _load_optimizer(path: Path, optimizer: Optimizer, numbers: list[dict[str, Any]]) -> None:
    parameters = _parameters(optimizer)
    for group, own, saved in zip(optimizer.param_groups, _optimizer_numbers(optimizer), numbers, strict=True):
        for name, value in saved.items():
            if name not in own or _kind(value) != _kind(own[name]):
                raise ValueError(f"{name} is {value!r} there, {own.get(name, 'missing')!r} here")
            group[name] = tuple(value) if isinstance(value, list) else value
    optimizer.state.clear()
    for key, value in _tensors(path / "optimizer.safetensors").items():
        found = re.fullmatch(r"([0-9]{1,9})\.(\w+)", key)
        if not found or value.shape not in (parameters[int(found[1])].shape, torch.Size()):
            raise ValueError(f"{key} of shape {_shape(value)} belongs to none of {len(parameters)} parameters")
        parameter = parameters[int(found[1])]
        like = torch.empty_like(parameter) if value.shape == parameter.shape else torch.empty_like(value)
        fill(like, value)
        optimizer.state[parameter][found[2]] = like


def _kind(value: Any) -> object:
    """What JSON tells apart: a number is a number and a tuple is a list."""
    if isinstance(value, list | tuple):
        return [_kind(item) for item in value]
    return float if type(value) is int else type(value)


def _wholes(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """All of every tensor, kept by the first process alone."""
    found = ((name, whole(tensor.detach())) for name, tensor in tensors.items())
    return {name: tensor.cpu() if rank() == 0 else torch.empty(0) for name, tensor in found}


def _everyones_random() -> dict[str, Tensor]:
    """The generators of all processes: those of the first under their own names, of the k-th with `k:` before them."""
    captured = enumerate(everyones(seeds.capture()))
    return {f"{k}:{name}" if k else name: value for k, state in captured for name, value in state.items()}


def _restore_random(state: Mapping[str, Tensor], step: int) -> None:
    """Each process goes on with its own numbers; one that was not there draws others than the rest do."""
    prefix = f"{rank()}:" if rank() else ""
    own = {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}
    if own:
        seeds.restore(own)
    else:
        seeds.seed_all(int(state["cpu"].sum()) + step, rank())


def _projection_tensors(procrustes: Procrustes) -> dict[str, Tensor]:
    return {name: torch.as_tensor(value) for name, value in procrustes.state_dict().items()}


def _write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> str:
    content = save({name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()})
    _write(path, content)
    return hashlib.sha256(content).hexdigest()


def _write(path: Path, content: bytes) -> None:
    with path.open("wb") as handle:
        handle.write(content)
        handle.flush()
        os.fsync(handle.fileno())


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _written(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("step-*") if path.is_dir()) if folder.is_dir() else []


def _state(path: Path) -> State:
    """What state.json says, all of it as it was written; one without a digest is of an early version."""
    found = read_json(path / "state.json", what="the state of a checkpoint")
    try:
        state = State.model_validate(found)
    except ValidationError as error:
        raise UnreadableError(f"{path / 'state.json'} is damaged: {explain(error, State)}") from None
    if state.digest not in ("", _digest(found)) or not set(state.sha256) >= PARTS:
        raise UnreadableError(f"{path / 'state.json'} is damaged: it is not what was written")
    return state


def _digest(state: Mapping[str, Any]) -> str:
    said = {name: value for name, value in state.items() if name != "digest"}
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def _verify(path: Path, readings: int | None = None) -> None:
    state = _state(path)
    if readings is not None and state.readings_bytes > readings:
        raise UnreadableError(f"{path} is of a run with {state.readings_bytes} bytes of readings, found {readings}")
    for name, digest in state.sha256.items():
        file = path / f"{Path(name).name}.safetensors"
        try:
            found = hashlib.sha256(file.read_bytes()).hexdigest()
        except OSError as error:
            raise UnreadableError(f"cannot read {file}: {error.strerror}") from None
        if found != digest:
            raise UnreadableError(f"{file} is damaged: its SHA-256 is {found[:12]}..., expected {digest[:12]}...")


def _tensors(path: Path) -> dict[str, Tensor]:
    try:
        return load(path.read_bytes())
    except OSError as error:
        raise UnreadableError(f"cannot read {path}: {error.strerror}") from None
    except SafetensorError as error:
        raise UnreadableError(f"{path} is damaged: {error}") from None
