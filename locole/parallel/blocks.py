"""The one loop over blocks, of rows or of outputs, on one thread or several."""

from __future__ import annotations

import numbers
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache, partial
from threading import Event
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

from locole.exceptions import LocoleError
from locole.parallel.progress import track

__all__ = ["map_blocks", "n_threads", "one_blas_thread", "slices", "workers"]

S = TypeVar("S")
T = TypeVar("T")


def n_threads(n_jobs: int | None) -> int:
    """Threads for ``n_jobs``: None is 1, −1 all cores, −2 all but one, as in scikit-learn."""
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, numbers.Integral):
        raise LocoleError(f"n_jobs must be a whole number or None, not {n_jobs!r}.")
    if n_jobs == 0:
        raise LocoleError("n_jobs must not be 0: take None for one thread or -1 for all cores.")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return n_jobs if n_jobs > 0 else max(1, (cores or 1) + 1 + n_jobs)


def map_blocks(
    function: Callable[[slice], T],
    size: int,
    *,
    block: int,
    n_jobs: int | None = None,
    description: str | None = None,
) -> list[T]:
    """Apply ``function`` to slices of ``block`` items out of ``size``; results in order.

    The blocks do not depend on the number of threads, so neither does the answer. With a
    description, progress is shown.
    """
    parts = slices(size, block)
    with workers(min(n_threads(n_jobs), max(1, len(parts)))) as apply:
        return list(_shown(apply(function, parts), description, total=len(parts)))


def slices(size: int, block: int) -> list[slice]:
    """Cut ``0 … size−1`` into slices of ``block`` items; the last may be shorter."""
    return [slice(i, min(i + block, size)) for i in range(0, size, block)]


@contextmanager
def workers(n_jobs: int | None) -> Iterator[Callable[[Callable[[Any], T], list[Any]], Iterable[T]]]:
    """Threads that live as long as the context; what it gives maps a function over items, in order."""
    threads = n_threads(n_jobs)
    # One BLAS thread in either case: threads times BLAS threads would oversubscribe the cores, and
    # a product's last bit depends on their number. OpenMP counts for each thread.
    if threads <= 1:
        with _one_thread():
            yield map
        return
    with _one_thread(), ThreadPoolExecutor(threads - 1, initializer=_one_thread) as pool:
        over = Event()
        try:
            yield partial(_share, pool, threads, over)
        finally:
            over.set()  # work that nobody waits for any more ends, too


def _share(
    pool: ThreadPoolExecutor,
    threads: int,
    over: Event,
    function: Callable[[S], T],
    items: Iterable[S],
) -> Iterator[T]:
    """``map`` by the threads of the pool and the caller's own, which has nothing else to do.

    Each takes the next item when it is done with one: no thread waits for another, nor wakes one.
    """
    items = list(items)
    left, due = iter(range(len(items))), 0
    results: dict[int, T] = {}

    def work() -> Iterator[None]:
        try:
            for i in left:
                if over.is_set():
                    return
                results[i] = function(items[i])
                yield
        finally:
            deque(left, maxlen=0)  # whoever fails stops all

    others = [pool.submit(deque, work(), 0) for _ in range(min(threads, len(items)) - 1)]
    for _ in work():
        while due in results:
            yield results.pop(due)
            due += 1
    for other in others:
        other.result()
    for i in range(due, len(items)):
        yield results.pop(i)


def one_blas_thread() -> Any:
    """Limit BLAS to one thread until the context ends: products depend on nothing but their factors."""
    return _controller().limit(limits=1, user_api="blas")


def _one_thread() -> Any:
    """Limit BLAS and OpenMP."""
    return _controller().limit(limits=1)


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    # Looking for the loaded libraries takes milliseconds: once is enough.
    return ThreadpoolController()


def _shown(items: Iterable[T], description: str | None, *, total: int) -> Iterable[T]:
    return items if description is None else track(items, description, total=total)
