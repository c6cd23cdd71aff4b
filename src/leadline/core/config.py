"""RunConfig: everything that decides the numbers of a run, checked; its digest is the run's identity."""

import functools
import hashlib
import json
from collections.abc import Mapping
from typing import Any, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from leadline.core.errors import UsageError, nearest

Scale = Literal["smoke", "laptop", "paper"]


class Part(BaseModel):
    """A part of a configuration: immutable, and an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Named(Part):
    """A plug-in by name with arguments: a model, a data set, a probe."""

    name: str
    args: dict[str, Any] = Field(default_factory=dict)

    def __str__(self) -> str:
        return (
            f"{self.name}({', '.join(f'{key}={value}' for key, value in self.args.items())})"
            if self.args
            else self.name
        )


class Data(Part):
    """The data set and how batches are cut from it."""

    name: str = "digits"
    args: dict[str, Any] = Field(default_factory=dict)
    batch_size: int = Field(default=128, ge=1)
    augment: Literal["none", "crop-flip"] = "none"
    pad: Literal["zero", "reflect"] = "zero"
    normalise: bool = True


class Optimizer(Part):
    """The optimiser; weight decay acts on everything unless `decay_norms` is off (the papers decay all)."""

    name: Literal["sgd", "adam", "adamw"] = "sgd"
    lr: float = Field(default=0.1, gt=0)
    momentum: float = Field(default=0.9, ge=0, lt=1)
    nesterov: bool = False
    betas: tuple[float, float] = (0.9, 0.999)
    weight_decay: float = Field(default=1e-4, ge=0)
    decay_norms: bool = True

    @model_validator(mode="after")
    def _nesterov_needs_momentum(self) -> Self:
        if self.nesterov and self.momentum == 0:
            raise ValueError("nesterov needs momentum above 0")
        return self


class Schedule(Part):
    """The learning rate over time; `milestones` and `warmup` count epochs."""

    name: Literal["constant", "step", "cosine", "one-cycle"] = "constant"
    milestones: tuple[float, ...] = ()
    factor: float = Field(default=0.1, gt=0, le=1)
    warmup: float = Field(default=0.0, ge=0)

    @model_validator(mode="after")
    def _milestones_where_used(self) -> Self:
        if (self.name == "step") != bool(self.milestones):
            raise ValueError("milestones go with the step schedule and only with it")
        if list(self.milestones) != sorted(set(self.milestones)):
            raise ValueError(f"milestones must grow, got {self.milestones}")
        return self


class Training(Part):
    """How long and in which arithmetic. Give `epochs` or `steps`, not both; neither means one epoch.

    `local_norm` is over how many shares of each batch the statistics of batch norm are taken, one on each process.
    """

    epochs: int | None = Field(default=None, ge=1)
    steps: int | None = Field(default=None, ge=1)
    accumulate: int = Field(default=1, ge=1)
    clip: float | None = Field(default=None, gt=0)
    precision: Literal["fp32", "bf16", "fp64"] = "fp32"
    channels_last: bool = False
    checkpoint_blocks: bool = False
    evaluate_every: int = Field(default=1, ge=1)
    loss: Literal["auto", "cross-entropy", "mse"] = "auto"
    local_norm: int = Field(default=1, ge=1)

    @model_validator(mode="after")
    def _one_length(self) -> Self:
        if self.epochs is not None and self.steps is not None:
            raise ValueError("epochs and steps exclude each other")
        return self


class Projection(Part):
    """Keeps the transitions norm-preserving after optimiser steps (Zaeemzadeh et al., Algorithm 1)."""

    every: int = Field(default=1, ge=1)
    schedule: Literal["steps", "random"] = "steps"
    momentum: Literal["keep", "tangent"] = "keep"


ADDED: dict[tuple[str, ...], Any] = {("training", "local_norm"): 1, ("projection",): None}
"""What the first configurations did not have, and what it was then: at that it changes nobody's identity."""


class RunConfig(Part):
    """One run, resolved: the same configuration is the same run, wherever and however it is executed."""

    model: Named
    data: Data = Data()
    optimizer: Optimizer = Optimizer()
    schedule: Schedule = Schedule()
    training: Training = Training()
    projection: Projection | None = None
    probes: tuple[str, ...] = ()
    seed: int = Field(default=0, ge=0, lt=2**63)

    @field_validator("model", mode="before")
    @classmethod
    def _model_by_name(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON of all that decides the numbers."""
        said = self.model_dump(mode="json")
        for (*parts, field), former in ADDED.items():
            part = functools.reduce(dict.__getitem__, parts, said)
            if part[field] == former:
                del part[field]
        text = json.dumps(said, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def identity(self) -> str:
        """The run's folder name: model, seed and ten digits of the digest."""
        model = "".join(c if c.isalnum() or c in "-_." else "-" for c in self.model.name).lstrip(".")
        return f"{model[:60]}-s{self.seed}-{self.digest[:10]}"

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> "RunConfig":
        """A configuration from plain data; what cannot be meant is one line that says what was expected."""
        try:
            config = cls.model_validate(dict(data))
            config.digest.isalnum()
        except ValidationError as error:
            raise UsageError(explain(error, cls)) from None
        except (ValueError, RecursionError) as error:
            raise UsageError(f"the configuration holds what JSON cannot: {str(error).splitlines()[0]}") from None
        return config


def explain(error: ValidationError, model: type[BaseModel]) -> str:
    """The first complaint of pydantic as one line with its place, the value found and the nearest known key.

    >>> try:
    ...     RunConfig.model_validate({"model": "net", "optimizer": {"learning": 1}})
    ... except ValidationError as error:
    ...     print(explain(error, RunConfig))
    unknown option optimizer.learning; expected one of name, lr, momentum, nesterov, betas, weight_decay, decay_norms
    """
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        known = _fields_at(model, first["loc"][:-1])
        close = nearest(str(first["loc"][-1]), known)
        hint = f"did you mean {' or '.join(close)}?" if close else f"expected one of {', '.join(known)}"
        return f"unknown option {place}; {hint}"
    said = first["msg"].removeprefix("Value error, ")
    return f"{place or 'configuration'}: {said[0].lower()}{said[1:]}" + (
        "" if place == "" else f", got {first['input']!r}"
    )


def _fields_at(model: type[BaseModel], place: tuple[int | str, ...]) -> list[str]:
    for part in place:
        meant = model.model_fields[str(part)].annotation
        for kind in get_args(meant) or (meant,):
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                model = kind
    return list(model.model_fields)
