"""Progress on stderr: a bar where someone looks, a line now and then where not."""

import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from leadline.train.evaluate import Score

QUIET_SECONDS = 30.0


class Bar:
    """Shows samples per second, loss and the time left of one run after another."""

    def __init__(self) -> None:
        self.console = Console(stderr=True, highlight=False)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TaskProgressColumn(),
            TextColumn("{task.fields[status]}"),
            TimeRemainingColumn(),
            console=self.console,
            transient=True,
            disable=not self.console.is_interactive,
        )
        self._task = self._bar.add_task("", total=None, status="", visible=False)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def begin(self, name: str, *, step: int, steps: int, batch: int) -> None:
        self._name, self._first, self._steps, self._batch = name, step, steps, batch
        self._start = self._shown = time.monotonic()
        self._bar.reset(self._task, total=steps, completed=step, description=name, visible=True, status="")
        if step:
            self.note(f"goes on from step {step} of {steps}")

    def advance(self, step: int, loss: float) -> None:
        now = time.monotonic()
        if now - self._shown < (0.1 if self.console.is_interactive else QUIET_SECONDS):
            return
        self._shown = now
        rate = (step - self._first) * self._batch / max(now - self._start, 1e-9)
        status = f"loss {loss:.4g}  {rate:,.0f} samples/s"
        self._bar.update(self._task, completed=step, status=status)
        if not self.console.is_interactive:
            left = (self._steps - step) * self._batch / max(rate, 1e-9)
            self.note(f"step {step} of {self._steps}  {status}  {left:.0f} s left")

    def scored(self, step: int, score: "Score") -> None:
        accuracy = "" if score.accuracy != score.accuracy else f", accuracy {100 * score.accuracy:.2f} %"
        self.note(f"step {step}: test loss {score.loss:.4g}{accuracy}")

    def note(self, text: str) -> None:
        self.console.print(f"{self._name}: {text}", markup=False, soft_wrap=True)

    def end(self) -> None:
        self._bar.update(self._task, visible=False)
