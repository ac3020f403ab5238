"""The one loop over blocks, of rows or of outputs, on one thread or several."""

from __future__ import annotations

import numbers
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

from locole.exceptions import LocoleError
from locole.progress import track

__all__ = ["map_blocks", "n_threads"]

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
    slices = [slice(i, min(i + block, size)) for i in range(0, size, block)]
    threads = min(n_threads(n_jobs), len(slices))
    # One BLAS thread in either case: threads times BLAS threads would oversubscribe the cores, and
    # a product's last bit depends on their number. OpenMP counts for each thread.
    if threads <= 1:
        with _one_blas_thread():
            return [function(part) for part in _shown(slices, description)]
    with (
        _one_blas_thread(),
        ThreadPoolExecutor(threads, initializer=_one_blas_thread) as pool,
    ):
        futures = [pool.submit(function, part) for part in slices]
        try:
            return [future.result() for future in _shown(futures, description)]
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _one_blas_thread() -> Any:
    """Limit the libraries' own threads to one, until the context ends."""
    return _controller().limit(limits=1)


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    # Looking for the loaded libraries takes milliseconds: once is enough.
    return ThreadpoolController()


def _shown(items: list, description: str | None) -> Iterable:
    return items if description is None else track(items, description)
