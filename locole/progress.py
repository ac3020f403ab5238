"""Progress of long loops: a bar on a terminal, a line now and then elsewhere, silence when short."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sized
from typing import Any, TypeVar

__all__ = ["track"]

T = TypeVar("T")

# Shorter loops show nothing.
_PATIENCE_S = 2.0
_LINE_EVERY_S = 10.0


def track(items: Iterable[T], description: str, *, total: int | None = None) -> Iterator[T]:
    """Yield the items, and report on standard error once the loop has taken two seconds.

    Examples
    --------
    >>> sum(track(range(4), "adding"))
    6
    """
    if total is None and isinstance(items, Sized):
        total = len(items)
    start = time.monotonic()
    reporter: _Bar | _Lines | None = None
    done = 0
    try:
        for item in items:
            yield item
            done += 1
            if reporter is None and time.monotonic() - start > _PATIENCE_S:
                reporter = (_Bar if sys.stderr.isatty() else _Lines)(description, total, start)
            if reporter is not None:
                reporter.update(done)
    finally:
        if reporter is not None:
            reporter.close()


class _Bar:
    """A bar with rate and time left."""

    def __init__(self, description: str, total: int | None, start: float) -> None:
        from rich.console import Console
        from rich.progress import Progress

        self._progress = Progress(console=Console(stderr=True), transient=True)
        self._task: Any = self._progress.add_task(description, total=total)
        self._progress.start()

    def update(self, done: int) -> None:
        self._progress.update(self._task, completed=done)

    def close(self) -> None:
        self._progress.stop()


class _Lines:
    """Plain lines for logs."""

    def __init__(self, description: str, total: int | None, start: float) -> None:
        self._description, self._total, self._start = description, total, start
        self._last = 0.0

    def update(self, done: int) -> None:
        now = time.monotonic()
        if now - self._last < _LINE_EVERY_S and done != self._total:
            return
        self._last = now
        elapsed = now - self._start
        line = f"{self._description}: {done}"
        if self._total:
            left = elapsed / done * (self._total - done)
            line += f"/{self._total} ({done / self._total:.0%}), about {left:.0f} s left"
        print(f"{line}, {elapsed:.0f} s", file=sys.stderr, flush=True)

    def close(self) -> None:
        pass
