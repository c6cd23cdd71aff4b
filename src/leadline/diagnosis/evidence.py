"""Evidence: readings and anatomy as plain data, asked for by rules."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.core.table import Table
from leadline.diagnosis.course import Course, course

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Evidence:
    """What is known of a model: `record` as a run's description has it (anatomy, places), and the readings."""

    record: Mapping[str, Any]
    readings: Table

    # -- anatomy -----------------------------------------------------------------------------------------------------

    @cached_property
    def blocks(self) -> Sequence[Mapping[str, Any]]:
        """The blocks of the chain, one mapping each, as the anatomy has them."""
        found: Sequence[Mapping[str, Any]] = (self.record.get("anatomy") or {}).get("blocks", ())
        return found

    @property
    def transitions(self) -> NDArray[np.bool_]:
        """For every block: does it change the shape, or pass its skip through anything?"""
        changes = [
            b["kind"] == "transition" or list(b["in_shape"][1:]) != list(b["out_shape"][1:]) for b in self.blocks
        ]
        return np.array(changes, dtype=bool)

    def channels(self, boundary: int) -> int:
        """How many channels a boundary has: the second axis of maps and vectors, the last of sequences."""
        shape = self.blocks[0]["in_shape"] if boundary == 0 else self.blocks[boundary - 1]["out_shape"]
        return int(shape[-1] if len(shape) == 3 else shape[1] if len(shape) > 1 else 1)

    def block(self, number: int) -> str:
        """The name of a block."""
        return str(self.blocks[number]["name"])

    def boundary(self, number: int) -> str:
        """Where a boundary is, in words."""
        return f"the input of {self.block(0)}" if number == 0 else f"the output of {self.block(number - 1)}"

    def named(self, connection: str, *, most: int = 3) -> str:
        """The parameters that are `frozen`, `unreached` or `still`, the first few by name."""
        names = (self.record.get("connection") or {}).get(connection, ())
        more = f" and {len(names) - most} more" if len(names) > most else ""
        return ", ".join(names[:most]) + more

    # -- readings ----------------------------------------------------------------------------------------------------

    def profile(self, metric: str, *, last: bool = False) -> Numbers:
        """The numbers of `probe/reading` along depth when it was first read, or last; empty if it never was."""
        probe, _, name = metric.partition("/")
        found = self.readings.where(probe=probe, name=name)
        if not found.height or (found["block"] < 0).all():
            return np.empty(0)
        steps = found["step"]
        values: Numbers = found.where(step=steps.max() if last else steps.min())["value"]
        return values

    def number(self, metric: str, *, last: bool = False) -> float:
        """A reading that has one number; nan if it was never read. What is known of the start may be in the record."""
        probe, _, name = metric.partition("/")
        found = self.readings.where(probe=probe, name=name)
        if found.height:
            return float(found["value"][-1 if last else 0])
        return float((self.record.get(probe) or {}).get(name, math.nan)) if probe == "start" else math.nan

    def notes(self, metric: str) -> list[str]:
        """Why numbers are missing, one note a place, when it was first read."""
        probe, _, name = metric.partition("/")
        found = self.readings.where(probe=probe, name=name)
        return found.where(step=found["step"].min())["note"].tolist() if found.height else []

    # -- training ----------------------------------------------------------------------------------------------------

    def course(self, name: str = "") -> Course:
        """The losses at the rate asked for, or of another course of the rehearsal (`slower`, `one-batch`, ...)."""
        probe, reading = ("rehearsal", f"loss/{name}") if name else ("loss", "train/loss")
        found = self.readings.where(probe=probe, name=reading)
        losses = found.sort("step")["value"].tolist() if found.height else []
        return course(losses, chance=self.number("start/chance"), start=self.number("start/loss"))

    # -- along depth -------------------------------------------------------------------------------------------------

    @cached_property
    def backward(self) -> Numbers:
        """log10 of what each block multiplies the gradient by on its way back; nan where it could not be measured."""
        return -decades(self.profile("gradient_norm_ratio/ratio"))

    @cached_property
    def forward(self) -> Numbers:
        """log10 of the largest absolute activation at every boundary; inf where it overflowed."""
        low, high = self.profile("activation_range/min"), self.profile("activation_range/max")
        if not len(high) or len(low) != len(high):
            return np.empty(0)
        size = np.maximum(np.abs(low), np.abs(high))
        return np.where(np.isnan(size), math.inf, decades(size))


def decades(values: Numbers) -> Numbers:
    """log10, -inf for zero.

    >>> decades(np.array([100.0, 0.0])).tolist()
    [2.0, -inf]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.log10(values))


def finite(values: Numbers) -> Numbers:
    return values[np.isfinite(values)]


def slope(values: Numbers) -> float:
    """Of the least-squares line through the finite values, per place; nan for fewer than two.

    >>> round(slope(np.array([0.0, 2.0, 4.0])), 6)
    2.0
    """
    known = np.flatnonzero(np.isfinite(values))
    return float(np.polyfit(known, values[known], 1)[0]) if len(known) > 1 else math.nan
