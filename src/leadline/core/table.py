"""Table: named columns of equal length; what readers return, recipes fill and figures draw."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leadline.core.errors import UsageError, unknown

if TYPE_CHECKING:
    import pandas

Column = NDArray[Any]


def _column(values: Any) -> Column:
    if isinstance(values, np.ndarray):
        return values
    items = list(values)
    if any(isinstance(item, str) or item is None for item in items):
        column = np.empty(len(items), dtype=object)
        column[:] = items
        return column
    return np.asarray(items)


class Table(Mapping[str, Column]):
    """Columns by name; text columns hold Python strings, the others numbers.

    >>> table = Table(depth=[20, 56, 20], loss=[0.5, 0.7, 0.6])
    >>> table.where(depth=20)["loss"].tolist()
    [0.5, 0.6]
    """

    def __init__(self, columns: Mapping[str, Any] | None = None, /, **more: Any) -> None:
        self._columns = {name: _column(values) for name, values in {**(columns or {}), **more}.items()}
        lengths = {name: len(column) for name, column in self._columns.items()}
        if len(set(lengths.values())) > 1:
            raise UsageError(f"the columns of a table have one length; got {lengths}")

    @classmethod
    def from_rows(cls, rows: Sequence[Mapping[str, Any]], names: Sequence[str] | None = None) -> "Table":
        """A table from dicts; names missing in a row become None."""
        order = list(names) if names is not None else list(dict.fromkeys(name for row in rows for name in row))
        return cls({name: [row.get(name) for row in rows] for name in order})

    @classmethod
    def concat(cls, tables: Sequence["Table"]) -> "Table":
        """The tables one under another; all must have the same columns."""
        filled = [table for table in tables if table.height]
        if not filled:
            return tables[0] if tables else cls()
        return cls({name: np.concatenate([table[name] for table in filled]) for name in filled[0]})

    def __getitem__(self, name: str) -> Column:
        try:
            return self._columns[name]
        except KeyError:
            raise unknown("column", name, self._columns) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    @property
    def height(self) -> int:
        """The number of rows."""
        return len(next(iter(self._columns.values()))) if self._columns else 0

    def rows(self) -> Iterator[dict[str, Any]]:
        """The rows as dicts of plain Python values."""
        lists = [column.tolist() for column in self._columns.values()]
        return (dict(zip(self._columns, row, strict=True)) for row in zip(*lists, strict=True))

    def select(self, keep: NDArray[Any]) -> "Table":
        """The rows that a mask or an index array names."""
        return Table({name: column[keep] for name, column in self._columns.items()})

    def where(self, **equal: Any) -> "Table":
        """The rows in which every named column equals the given value."""
        keep = np.ones(self.height, dtype=bool)
        for name, value in equal.items():
            keep &= self[name] == value
        return self.select(keep)

    def sort(self, *by: str) -> "Table":
        """The rows ordered by the named columns, the first one deciding first; stable."""
        return self.select(np.lexsort([self[name] for name in reversed(by)]))

    def to_pandas(self) -> "pandas.DataFrame":
        """A data frame, when pandas is there."""
        try:
            import pandas
        except ModuleNotFoundError:
            raise UsageError("a data frame needs pandas; install it with: pip install 'leadline[frames]'") from None
        return pandas.DataFrame(self._columns)

    def to_csv(self) -> str:
        """Comma-separated text with a head line; text is quoted where it has to be."""
        import csv
        import io

        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self._columns)
        writer.writerows(zip(*(column.tolist() for column in self._columns.values()), strict=True))
        return out.getvalue()

    def __repr__(self) -> str:
        shown = [tuple(self._columns)] + [tuple(_cell(value) for value in row.values()) for row in self._first(20)]
        widths = [max(len(line[k]) for line in shown) for k in range(len(self._columns))]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in shown]
        return "\n".join([*lines, *([f"... {self.height} rows"] if self.height > 20 else [])])

    def _first(self, count: int) -> Iterator[dict[str, Any]]:
        return self.select(np.arange(min(count, self.height))).rows()


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return "" if value is None else str(value)
