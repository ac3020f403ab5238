"""Progress of long loops: a bar on a terminal, a line now and then elsewhere, silence when short."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

__all__ = ["count_steps", "track"]

T = TypeVar("T")

# Shorter loops show nothing.
_PATIENCE_S = 2.0
_BAR_EVERY_S = 0.1
_LINE_EVERY_S = 10.0

# Loops under way, outermost first. Only that one reports: two bars would write over each other.
_loops: list[object] = []


def track(
    items: Iterable[T],
    description: str,
    *,
    total: float | None = None,
    unit: str = "",
    size: Callable[[T], float] | None = None,
) -> Iterator[T]:
    """Yield the items, and report on standard error once the loop has taken two seconds.

    Loops within the loop are silent.

    Parameters
    ----------
    items : iterable
        What to loop over.
    description : str
        What is being done.
    total : float, optional
        How much there is to do, also an estimate; by default the number of items if it is known.
    unit : str
        What is counted, such as "rows".
    size : function, optional
        How many units an item is; by default 1.

    Examples
    --------
    >>> sum(track(range(4), "adding"))
    6
    """
    if total is None and size is None and isinstance(items, Sized):
        total = len(items)
    with _shown(_Loop(description, total, unit)) as loop:
        for item in items:
            yield item
            loop.advance(1 if size is None else size(item))


@contextmanager
def count_steps(description: str | None, total: int | None) -> Iterator[Callable[[int], None]]:
    """Give a function to be told the number of steps done so far, which shows it as `track` does.

    Without a description nothing is shown.

    Examples
    --------
    >>> with count_steps("learning", 2) as tell:
    ...     tell(1), tell(2)
    (None, None)
    """
    if description is None:
        yield lambda done: None
        return
    with _shown(_Loop(description, total, "steps")) as loop:
        yield loop.reach


@contextmanager
def _shown(loop: _Loop) -> Iterator[_Loop]:
    _loops.append(loop)
    try:
        yield loop
    finally:
        _loops.remove(loop)
        loop.close()


class _Loop:
    """Counts, and shows the count when it is time to."""

    def __init__(self, description: str, total: float | None, unit: str) -> None:
        self._description, self._total, self._unit = description, total, unit
        self._start = time.monotonic()
        self._next = self._start + _PATIENCE_S
        self._done = 0.0
        self._reporter: _Reporter | None = None

    def advance(self, amount: float) -> None:
        self._done += amount
        now = time.monotonic()
        at_end = self._reporter is not None and self._done == self._total
        if (now < self._next and not at_end) or _loops[0] is not self:
            return
        if self._reporter is None:
            self._reporter = (_Bar if sys.stderr.isatty() else _Lines)(self._description)
        elapsed = max(now - self._start, 1e-9)
        self._reporter.show(_Count(self._done, self._total, self._unit, elapsed))
        self._next = now + self._reporter.every_s

    def reach(self, done: float) -> None:
        """Go on to a count; work that is begun again may tell of a smaller one."""
        if done > self._done:
            self.advance(done - self._done)

    def close(self) -> None:
        if self._reporter is not None:
            self._reporter.close()


class _Count:
    """How far a loop is."""

    def __init__(self, done: float, total: float | None, unit: str, elapsed_s: float) -> None:
        self.done, self.elapsed_s = done, elapsed_s
        # An estimate that was too small is none.
        self.total = total if total and done <= total else None
        self._unit = f" {unit}" if unit else ""

    @property
    def rate(self) -> str:
        """Such as "12,300 rows/s"."""
        return f"{_number(self.done / self.elapsed_s)}{self._unit}/s"

    @property
    def left(self) -> str:
        """Such as "about 12 s left"."""
        if self.total is None or not self.done:
            return ""
        left_s = round(self.elapsed_s / self.done * (self.total - self.done))
        return f"about {left_s} s left" if left_s < 120 else f"about {left_s // 60} min left"

    def __str__(self) -> str:
        if self.total is None:
            return f"{_number(self.done)}{self._unit}, {self.rate}, {self.elapsed_s:.0f} s"
        return (
            f"{_number(self.done)}/{_number(self.total)}{self._unit} "
            f"({self.done / self.total:.0%}), "
            f"{self.rate}, {self.left}, {self.elapsed_s:.0f} s"
        )


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


class _Reporter(Protocol):
    """Shows a count."""

    every_s: float

    def show(self, count: _Count) -> None: ...

    def close(self) -> None: ...


class _Bar:
    """A bar with rate and time left."""

    every_s = _BAR_EVERY_S

    def __init__(self, description: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[rate]}", markup=False),
            TextColumn("{task.fields[left]}", markup=False),
        )
        self._progress = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task: Any = self._progress.add_task(description, total=None, rate="", left="")
        self._progress.start()

    def show(self, count: _Count) -> None:
        self._progress.update(
            self._task, completed=count.done, total=count.total, rate=count.rate, left=count.left
        )

    def close(self) -> None:
        self._progress.stop()


class _Lines:
    """Plain lines for logs."""

    every_s = _LINE_EVERY_S

    def __init__(self, description: str) -> None:
        self._description = description

    def show(self, count: _Count) -> None:
        print(f"{self._description}: {count}", file=sys.stderr, flush=True)

    def close(self) -> None:
        pass
