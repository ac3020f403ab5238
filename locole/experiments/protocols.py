"""What a bench is given: somebody who watches, a way to do runs side by side, and a place for data."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from locole.experiments.children import Children
from locole.experiments.runs import Run

__all__ = ["Nobody", "Watcher", "on_threads", "work_folder"]

Record = dict[str, Any]
#: Applies a function to tasks and yields results as they come, in any order.
Map = Callable[[Callable[[Run], Record], Sequence[Run]], Iterable[Record]]


class Watcher(Protocol):
    """Is told what happens."""

    def planned(self, runs: Sequence[Run]) -> None:
        """Say that these runs will be done now."""

    def started(self, run: Run) -> None:
        """Say that a run has begun."""

    def ended(self, run: Run, record: Mapping[str, Any]) -> None:
        """Say that a run is recorded."""

    def note(self, message: str) -> None:
        """Say something else."""


class Nobody:
    """Watches nothing."""

    def planned(self, runs: Sequence[Run]) -> None:
        """Do nothing."""

    def started(self, run: Run) -> None:
        """Do nothing."""

    def ended(self, run: Run, record: Mapping[str, Any]) -> None:
        """Do nothing."""

    def note(self, message: str) -> None:
        """Do nothing."""


def on_threads(at_once: int, children: Children) -> Map:
    """Map on threads, each of which waits for a process; in this thread if one is enough."""

    def apply(function: Callable[[Run], Record], runs: Sequence[Run]) -> Iterator[Record]:
        if at_once <= 1:
            yield from map(function, runs)
            return
        with ThreadPoolExecutor(at_once) as pool:
            waiting = [pool.submit(function, run) for run in runs]
            try:
                for future in as_completed(waiting):
                    yield future.result()
            except BaseException:
                # Threads would wait for their processes, and start the next.
                pool.shutdown(wait=False, cancel_futures=True)
                children.close()
                raise

    return apply


@contextmanager
def work_folder(path: Path) -> Iterator[Path]:
    """Folder for the data of runs, of which nothing stays, not even of a bench that was killed."""
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
