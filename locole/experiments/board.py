"""Progress of an experiment: a live table on a terminal, a line for each run elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Self

from locole.experiments.records import is_done
from locole.experiments.runs import Run

__all__ = ["Board", "outcome_of"]

_SHOWN = 12
_COLUMNS = ("data", "method", "vectors", "seed", "accuracy", "fit", "memory", "")


class Board:
    """Shows on standard error what runs do; a `locole.experiments.protocols.Watcher`.

    Parameters
    ----------
    title : str
        What is being run.
    total : int
        How many runs are left, as far as it is known.
    """

    def __init__(self, title: str, total: int) -> None:
        self._title, self._total = title, total
        self._begun = time.monotonic()
        self._running: dict[Run, float] = {}
        self._ended: list[tuple[Run, Mapping[str, Any]]] = []
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._live: Any = None

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            console = Console(stderr=True)
            self._live = Live(console=console, get_renderable=self._table, refresh_per_second=2)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    # What happens ------------------------------------------------------------------------------

    def planned(self, runs: Sequence[Run]) -> None:
        """Count runs that were not known before."""
        with self._lock:
            self._total = max(self._total, sum(self._counts.values()) + len(runs))

    def started(self, run: Run) -> None:
        """Show a run as going on."""
        with self._lock:
            self._running[run] = time.monotonic()

    def ended(self, run: Run, record: Mapping[str, Any]) -> None:
        """Show how a run ended."""
        with self._lock:
            self._running.pop(run, None)
            self._ended.append((run, record))
            self._counts[str(record["status"]).partition(":")[0]] += 1
            if self._live is None:
                done = sum(self._counts.values())
                self._say(f"[{done}/{self._total}] {run}: {outcome_of(record)}")

    def note(self, message: str) -> None:
        """Show a line."""
        if self._live is None:
            self._say(message)
        else:
            self._live.console.print(message, markup=False, highlight=False)

    def _say(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    # The table ---------------------------------------------------------------------------------

    def _table(self) -> Any:
        from rich.table import Table
        from rich.text import Text

        with self._lock:
            running = dict(self._running)
            ended = self._ended[-_SHOWN:]
            table = Table(
                title=self._title, caption=self._caption(), box=None, title_justify="left"
            )
        for name in _COLUMNS:
            number = name in ("seed", "accuracy", "fit", "memory")
            table.add_column(name, justify="right" if number else "left", no_wrap=True)
        for run, record in ended:
            table.add_row(*map(Text, (*_head(run), *_figures(record))))
        for run, since in running.items():
            seconds = f"{time.monotonic() - since:.0f} s"
            table.add_row(*map(Text, (*_head(run), "", seconds, "", "running …")), style="bold")
        return table

    def _caption(self) -> str:
        done = sum(self._counts.values())
        words = [f"{done} of {self._total}"]
        words += [f"{n} {kind}" for kind, n in self._counts.items() if kind != "done"]
        if done:
            left_s = (time.monotonic() - self._begun) / done * (self._total - done)
            words.append(f"about {max(1, round(left_s / 60))} min left" if left_s > 30 else "")
        return ", ".join(filter(None, words))


def outcome_of(record: Mapping[str, Any]) -> str:
    """The outcome on one line.

    Examples
    --------
    >>> outcome_of({"status": "done", "accuracy": 0.8123, "fit_wall_s": 4.2, "peak_memory_mb": 512.3})
    'accuracy 81.23 %, fit 4.2 s, 512 MB'
    >>> outcome_of({"status": "failed: there are no rows"})
    'failed: there are no rows'
    """
    if not is_done(record):
        return str(record["status"])
    accuracy, fit, memory, copied = _figures(record)
    words = [
        f"accuracy {accuracy}" if accuracy else "",
        f"fit {fit}" if fit else "",
        memory,
        copied,
    ]
    return ", ".join(filter(None, words))


def _head(run: Run) -> tuple[str, ...]:
    return run.data, run.title, run.vectors, str(run.seed)


def _figures(record: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """Accuracy, seconds, memory, and what else there is to say."""
    if not is_done(record):
        return "", "", "", str(record["status"])
    accuracy, fit, memory = (
        record.get(key) for key in ("accuracy", "fit_wall_s", "peak_memory_mb")
    )
    copied = record.get("copied_from")
    return (
        "" if accuracy is None else f"{100 * accuracy:.2f} %",
        "" if fit is None else f"{fit:.1f} s",
        "" if memory is None else f"{memory:,.0f} MB",
        f"as in {copied}" if copied else "",
    )
