"""Engine of this machine: the threads of `locole.parallel.blocks`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeVar

from locole.parallel.blocks import n_threads, workers
from locole.parallel.engine import Engine
from locole.parallel.progress import track

__all__ = ["THREADS", "Threads"]

R = TypeVar("R")
S = TypeVar("S")
T = TypeVar("T")


class Threads(Engine):
    """Threads of this process; ``n_jobs`` counts them, and None is one.

    Examples
    --------
    >>> from operator import mul
    >>> list(Threads().map(mul, [3, 4], shared=10))
    [(0, 30), (1, 40)]
    """

    shares_memory = True

    def __repr__(self) -> str:
        return "Threads()"

    def map(
        self,
        function: Callable[[S, T], R],
        tasks: Sequence[T],
        *,
        shared: S,
        n_jobs: int | None = None,
        description: str | None = None,
    ) -> Iterator[tuple[int, R]]:
        """Yield places and results, here in the order of the tasks; see `Engine.map`."""
        tasks = list(tasks)
        with workers(min(n_threads(n_jobs), max(1, len(tasks)))) as apply:
            results = enumerate(apply(partial(function, shared), tasks))
            yield from (
                results if description is None else track(results, description, total=len(tasks))
            )


#: The engine of those who name none.
THREADS = Threads()
