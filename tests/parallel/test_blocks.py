"""The loop over blocks of rows."""

from __future__ import annotations

import os
import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

from locole.exceptions import LocoleError
from locole.parallel.blocks import map_blocks, n_threads

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


@given(st.integers(0, 50), st.integers(1, 20), st.sampled_from([None, 1, 2, 3, -1]))
def test_blocks_cover_the_rows_once_and_in_order(n_rows, block, n_jobs):
    slices = map_blocks(lambda rows: rows, n_rows, block=block, n_jobs=n_jobs)
    assert [i for rows in slices for i in range(n_rows)[rows]] == list(range(n_rows))
    assert all(0 < rows.stop - rows.start <= block for rows in slices)
    assert all(rows.stop - rows.start == block for rows in slices[:-1])


def test_results_keep_their_order_when_early_ones_are_late():
    def slow_start(rows: slice) -> int:
        time.sleep(0.02 if rows.start == 0 else 0)
        return rows.start

    assert map_blocks(slow_start, 8, block=1, n_jobs=4) == list(range(8))


def test_one_thread_is_the_callers():
    names = map_blocks(lambda rows: threading.current_thread(), 5, block=2)
    assert set(names) == {threading.current_thread()}


def test_several_threads_work_at_the_same_time():
    barrier = threading.Barrier(3, timeout=10)
    assert len(map_blocks(lambda rows: barrier.wait(), 3, block=1, n_jobs=3)) == 3


def test_linear_algebra_inside_threads_takes_one_thread_each():
    def most_threads(rows: slice) -> int:
        return max(p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas")

    np.ones((2, 2)) @ np.ones((2, 2))  # a BLAS is there
    with threadpool_limits(2):
        before = most_threads(slice(0))
        assert set(map_blocks(most_threads, 4, block=1, n_jobs=2)) == {1}
        assert most_threads(slice(0)) == before


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_exception_reaches_the_caller(n_jobs):
    def fail(rows: slice) -> None:
        if rows.start == 3:
            raise KeyError("row 3")

    with pytest.raises(KeyError, match="row 3"):
        map_blocks(fail, 10, block=1, n_jobs=n_jobs)


def test_after_an_exception_no_new_block_starts():
    started = []

    def fail(rows: slice) -> None:
        started.append(rows.start)
        if rows.start == 0:
            raise KeyError("first")
        time.sleep(0.02)

    with pytest.raises(KeyError, match="first"):
        map_blocks(fail, 200, block=1, n_jobs=2)
    assert len(started) < 100


@pytest.mark.parametrize(
    ("n_jobs", "expected"),
    [(None, 1), (1, 1), (7, 7), (-1, CORES), (-2, max(1, CORES - 1)), (-1000, 1)],
)
def test_number_of_threads(n_jobs, expected):
    assert n_threads(n_jobs) == expected


def test_no_threads_are_refused():
    with pytest.raises(LocoleError, match="n_jobs must not be 0: take None for one thread"):
        n_threads(0)


@pytest.mark.parametrize("n_jobs", [1.5, "2"])
def test_threads_are_a_whole_number(n_jobs):
    with pytest.raises(LocoleError, match="n_jobs must"):
        n_threads(n_jobs)
