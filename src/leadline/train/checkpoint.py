"""Checkpoints without pickle: tensors in safetensors, the rest in JSON; the two newest are kept."""

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn
from torch.optim import Optimizer

from leadline.core.errors import UnreadableError
from leadline.projections import Procrustes
from leadline.store.layout import FORMAT, read_json
from leadline.train import seeds

KEPT = 2


@dataclass(frozen=True)
class Position:
    """Where a run stands: steps taken, bytes of readings written, and the best score so far."""

    step: int
    readings_bytes: int
    best: Mapping[str, float]


def write(
    folder: Path,
    model: nn.Module,
    optimizer: Optimizer,
    position: Position,
    *,
    procrustes: Procrustes | None = None,
) -> Path:
    """Writes one checkpoint under its step; it counts only once its folder has its final name."""
    target = folder / f"step-{position.step:09d}"
    part = folder / f".{target.name}.part"
    try:
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        digests = {
            name: _write_tensors(part / f"{name}.safetensors", tensors)
            for name, tensors in (
                ("model", model.state_dict()),
                ("optimizer", _optimizer_tensors(optimizer)),
                ("random", seeds.capture()),
                *([("projection", _projection_tensors(procrustes))] if procrustes else []),
            )
        }
        state = {
            "format": FORMAT,
            "step": position.step,
            "readings_bytes": position.readings_bytes,
            "best": dict(position.best),
            "optimizer": _optimizer_numbers(optimizer),
            "sha256": digests,
        }
        _write(part / "state.json", json.dumps(state, indent=1).encode())
        shutil.rmtree(target, ignore_errors=True)
        part.replace(target)
        _sync_folder(folder)
    except OSError as error:
        shutil.rmtree(part, ignore_errors=True)
        raise UnreadableError(f"cannot write the checkpoint {target}: {error.strerror}") from None
    for old in _written(folder)[:-KEPT]:
        shutil.rmtree(old, ignore_errors=True)
    return target


def newest(folder: Path) -> tuple[Path | None, list[str]]:
    """The newest undamaged checkpoint, if any, and a note on each damaged one that was passed over."""
    notes: list[str] = []
    for path in reversed(_written(folder)):
        try:
            _verify(path)
            return path, notes
        except UnreadableError as error:
            notes.append(f"{error}; using the one before")
    return None, notes


def read(path: Path, model: nn.Module, optimizer: Optimizer, *, procrustes: Procrustes | None = None) -> Position:
    """Loads everything in place and returns the position. A checkpoint of another model is refused."""
    state = read_json(path / "state.json", what="the state of a checkpoint")
    _load_model(path, model)
    _load_optimizer(path, optimizer, state["optimizer"])
    seeds.restore(_tensors(path / "random.safetensors"))
    if procrustes:
        procrustes.load_state_dict(_tensors(path / "projection.safetensors"))
    return Position(state["step"], state["readings_bytes"], state["best"])


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
    with torch.no_grad():
        for name, tensor in own.items():
            tensor.copy_(tensors[name])


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
    for group, saved in zip(optimizer.param_groups, numbers, strict=True):
        group.update({name: tuple(value) if isinstance(value, list) else value for name, value in saved.items()})
    optimizer.state.clear()
    for key, value in _tensors(path / "optimizer.safetensors").items():
        index, _, name = key.partition(".")
        parameter = parameters[int(index)]
        like = torch.empty_like(parameter) if value.shape == parameter.shape else torch.empty_like(value)
        optimizer.state[parameter][name] = like.copy_(value)


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


def _verify(path: Path) -> None:
    state = read_json(path / "state.json", what="the state of a checkpoint")
    for name, digest in state["sha256"].items():
        file = path / f"{name}.safetensors"
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
