"""Means and standard deviations over seeds, of the rows of a table."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from leadline.core.table import Table


@dataclass(frozen=True)
class Spread:
    """Mean and standard deviation (over n - 1) of the finite ones among `count + lost` numbers."""

    mean: float
    std: float
    count: int
    lost: int = 0

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        return float(self.std / np.sqrt(self.count)) if self.count else float("nan")

    def __str__(self) -> str:
        lost = f", {self.lost} not finite" if self.lost else ""
        deviation = f" ± {self.std:.2g}" if self.count > 1 else ""
        return f"{self.mean:.4g}{deviation} (n = {self.count}{lost})"


def spread(values: ArrayLike) -> Spread:
    """The spread of some numbers; one alone has a standard deviation that is not a number.

    >>> print(spread([1.0, 2.0, 3.0]))
    2 ± 1 (n = 3)
    >>> spread([]).mean
    nan
    """
    numbers = np.asarray(values, dtype=np.float64)
    finite = numbers[np.isfinite(numbers)]
    mean = float(finite.mean()) if len(finite) else float("nan")
    std = float(finite.std(ddof=1)) if len(finite) > 1 else float("nan")
    return Spread(mean, std, len(finite), len(numbers) - len(finite))


def summarise(table: Table, value: str, *, by: Sequence[str]) -> Table:
    """One row for each combination of `by`, in the table's order: mean, std, count and lost of `value`.

    >>> summarise(Table(depth=[2, 2, 4], loss=[1.0, 3.0, 5.0]), "loss", by=["depth"])["mean"].tolist()
    [2.0, 5.0]
    """
    groups: dict[tuple[Any, ...], list[float]] = {}
    for row in table.rows():
        groups.setdefault(tuple(row[name] for name in by), []).append(row[value])
    rows = [dict(zip(by, key, strict=True)) | vars(spread(values)) for key, values in groups.items()]
    return Table.from_rows(rows, [*by, "mean", "std", "count", "lost"])


def mean_of(table: Table, value: str, **where: Any) -> float:
    """The mean of a column over the rows in which the other columns are as given; nan where there are none."""
    return spread(table.where(**where)[value]).mean if table.height else float("nan")


def seeds(table: Table) -> int:
    """How many different seeds a table has rows of."""
    return len(set(table["seed"].tolist())) if "seed" in table else 0
