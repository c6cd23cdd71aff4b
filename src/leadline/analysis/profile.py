"""Profile: readings along depth with the names of their places; prints, becomes a data frame, a file or a figure."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leadline.analysis.remarks import Noted, few, remarks
from leadline.core import markup, plugins
from leadline.core.errors import UnreadableError, UsageError, unknown
from leadline.core.rows import grid
from leadline.core.sparkline import sparkline
from leadline.core.table import Table
from leadline.store.reader import Reading, Run, read, to_table

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

Numbers = NDArray[np.float64]

WIDTH = 32
"""How many marks a sparkline has at most."""
HIDDEN = re.compile(r".*/(histogram/\d\d|p(?!50)\d\d)")
"""Parts of a distribution that the printed table leaves to `frame` and `plot`."""
BOUNDS = {"> ": "> ", "a lower bound": "> ", "an upper bound": "< "}
"""How the note on a number that is only a bound begins, and the sign it is printed with."""
_HEADINGS = ("", "first to last", "min", "median", "max", "")
_RIGHT = (2, 3, 4)
PLURALS = {"block": "blocks", "boundary": "boundaries", "layer": "layers"}


@dataclass(frozen=True)
class Profile:
    """What was read of a model, at one step or at many.

    `record` is what a run's description says (anatomy, probes, places), `readings` the table of the run store.
    """

    record: Mapping[str, Any]
    readings: Table

    @classmethod
    def of_lines(cls, record: Mapping[str, Any], lines: Sequence[Reading]) -> "Profile":
        """From readings as the store writes them, one dict each."""
        return cls(record, to_table(list(lines)))

    @classmethod
    def of_run(cls, run: Run | str | Path) -> "Profile":
        """What was recorded so far in a run, or in the folder of one."""
        found = run if isinstance(run, Run) else read(Path(run))
        return cls(found.record, found.readings)

    # -- numbers -----------------------------------------------------------------------------------------------------

    @property
    def steps(self) -> list[int]:
        """The steps at which something was read."""
        return sorted(set(self.readings["step"].tolist()))

    @property
    def metrics(self) -> list[str]:
        """Every metric there is, `probe/reading`, in the order they were read."""
        return list(dict.fromkeys(f"{row['probe']}/{row['name']}" for row in self._heads()))

    def at(self, step: int) -> "Profile":
        """The readings of one step."""
        return Profile(self.record, self.readings.where(step=step))

    def __getitem__(self, metric: str) -> Numbers:
        """The numbers of a metric along depth when it was last read; one number if it has no places."""
        values: Numbers = self._last(metric)["value"]
        return values

    def notes(self, metric: str) -> dict[int, str]:
        """What is to be said about the numbers of a metric when it was last read, by place (-1: it has no places)."""
        last = self._last(metric)
        return {int(place): str(note) for place, note in zip(last["block"], last["note"], strict=True) if note}

    def names(self, probe: str) -> Sequence[str]:
        """The places the readings of a probe are counted along."""
        axis = self.axis(probe)
        places: Sequence[str] = self.record.get("places", {}).get(axis, ())
        return places

    def axis(self, probe: str) -> str:
        """Whether these are blocks, boundaries or layers."""
        return str(self.record.get("probes", {}).get(probe, {}).get("axis", "block"))

    def transitions(self) -> list[bool]:
        """For every block, whether it changes the shape or has a skip that is no identity."""
        blocks = self.record.get("anatomy", {}).get("blocks", ())
        return [b["kind"] == "transition" or list(b["in_shape"][1:]) != list(b["out_shape"][1:]) for b in blocks]

    def table(self) -> Table:
        """One row a number: step, block (-1 without places), name of the place, metric, value, note."""
        table = self.readings
        rows = zip(table["probe"].tolist(), table["name"].tolist(), table["block"].tolist(), strict=True)
        pairs = [(self._name(probe, place), f"{probe}/{name}") for probe, name, place in rows]
        return Table(
            step=table["step"],
            block=table["block"],
            name=_texts(name for name, _ in pairs),
            metric=_texts(metric for _, metric in pairs),
            value=table["value"],
            note=table["note"],
        )

    def frame(self) -> "pandas.DataFrame":
        """The same as a data frame, when pandas is there."""
        return self.table().to_pandas()

    def to_parquet(self, path: str | Path) -> None:
        """Writes the data frame, when pyarrow is there too."""
        try:
            self.frame().to_parquet(path)
        except ImportError:
            raise UsageError("a Parquet file needs pyarrow; install it with: pip install 'leadline[frames]'") from None
        except OSError as error:
            raise UnreadableError(f"cannot write {path}: {error.strerror or error}") from None

    def plot(self) -> "Figure":
        """The last readings along depth, one panel a probe."""
        figure: Figure = plugins.module("leadline.figures", "depth_profile", kind="figure").draw(self)
        return figure

    # -- words -------------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        shown = grid(_HEADINGS, self._lines(), right=_RIGHT)
        return "\n".join([self._title(), shown, *(f"  {remark}" for remark in self._remarks())])

    __str__ = __repr__

    def _repr_html_(self) -> str:
        shown = markup.table(_HEADINGS, self._lines(), right=_RIGHT)
        return markup.block(markup.words(self._title(), strong=True), shown, markup.listing(self._remarks()))

    def _title(self) -> str:
        record, steps = self.record, self.steps
        model = record.get("anatomy", {}).get("model", "model")
        blocks = len(record.get("places", {}).get("block", ()))
        said = [f"{blocks} block{'s' * (blocks != 1)}", f"{record['mode']} mode" if "mode" in record else ""]
        said += [record.get("dtype", ""), f"steps {steps[0]} to {steps[-1]}, each last read" if len(steps) > 1 else ""]
        return f"{model}: {', '.join(part for part in said if part)}"

    def _shown(self) -> list[str]:
        return [metric for metric in self.metrics if not HIDDEN.fullmatch(metric)]

    def _lines(self) -> list[tuple[str, ...]]:
        return [self._row(metric) for metric in self._shown()]

    def _row(self, metric: str) -> tuple[str, ...]:
        last = self._last(metric)
        values: Numbers = last["value"]
        if last["block"].tolist() == [-1]:
            history: Numbers = self._rows_of(metric)["value"]
            line, over = (sparkline(history, width=WIDTH), f"{len(history)} times") if len(history) > 1 else ("", "")
            return metric, line, "", _short(values[0], _sign(last["note"][0])), "", over
        axis = self.axis(metric.partition("/")[0])
        counted = f"{len(values)} {axis if len(values) == 1 else PLURALS.get(axis, axis)}"
        return metric, sparkline(values, width=WIDTH), *_few(values, last["note"]), counted

    def _remarks(self) -> Iterator[str]:
        found, names = list[Noted](), dict[str, list[str]]()
        for metric in self._shown():
            (probe, _, name), last = metric.partition("/"), self._last(metric)
            if last["block"].tolist() != [-1]:
                names.setdefault(probe, []).append(name)
            for place, value, note in zip(last["block"], last["value"], last["note"], strict=True):
                if note and not math.isfinite(value):
                    found.append(Noted(probe, name, self._name(probe, int(place)), value, note))
        yield from remarks(found, names=names)
        if (aside := self.record.get("aside")) and any(self.axis(probe) == "layer" for probe in names):
            yield f"not among the layers: {few(aside)}, because only parameters named as weights are"

    # -- rows --------------------------------------------------------------------------------------------------------

    def _heads(self) -> Iterator[dict[str, Any]]:
        return self.readings.select(self.readings["block"] <= 0).rows()

    def _rows_of(self, metric: str) -> Table:
        probe, _, name = metric.partition("/")
        found = self.readings.where(probe=probe, name=name)
        if not found.height:
            raise unknown("metric", metric, self.metrics)
        return found

    def _last(self, metric: str) -> Table:
        found = self._rows_of(metric)
        return found.where(step=found["step"].max())

    def _name(self, probe: str, place: int) -> str:
        names = self.names(probe)
        return names[place] if 0 <= place < len(names) else ""


def _texts(texts: Iterable[str]) -> NDArray[np.object_]:
    return np.array(list(texts), dtype=object)


def _few(values: Numbers, notes: NDArray[np.object_]) -> tuple[str, ...]:
    """Least, middle and largest; > where they would be larger if those that are lower bounds were."""
    known = ~np.isnan(values)
    if not known.any():
        return "", "", ""
    bounded = np.array([_sign(note) == "> " for note in notes])
    least, most = values[known], np.where(bounded, math.inf, values)[known]
    return tuple(_short(of(least), "> " * bool(of(least) < of(most))) for of in (np.min, np.median, np.max))


def _sign(note: str) -> str:
    return next((sign for start, sign in BOUNDS.items() if note.startswith(start)), "")


def _short(value: float, sign: str = "") -> str:
    return "" if math.isnan(value) else f"{sign}{value:.3g}"
