"""The one loop over blocks of rows, on one thread or several."""

from __future__ import annotations

import numbers
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from threadpoolctl import threadpool_limits

from locole.exceptions import LocoleError

__all__ = ["map_row_blocks", "n_threads"]

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


def map_row_blocks(
    function: Callable[[slice], T], n_rows: int, *, block: int, n_jobs: int | None = None
) -> list[T]:
    """Apply ``function`` to slices of ``block`` rows and return the results in order.

    The blocks do not depend on the number of threads, so neither does the answer.
    """
    slices = [slice(i, min(i + block, n_rows)) for i in range(0, n_rows, block)]
    threads = min(n_threads(n_jobs), len(slices))
    if threads <= 1:
        return [function(rows) for rows in slices]
    # Threads times BLAS threads would oversubscribe the cores; OpenMP counts for each thread.
    with (
        threadpool_limits(1),
        ThreadPoolExecutor(threads, initializer=threadpool_limits, initargs=(1,)) as pool,
    ):
        futures = [pool.submit(function, rows) for rows in slices]
        try:
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
