"""Threads that live through many small loops."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

from locole.exceptions import LocoleError
from locole.parallel.blocks import slices, workers


@given(st.integers(0, 100), st.integers(1, 30))
def test_slices_cover_everything_once(size, block):
    parts = slices(size, block)
    assert [i for part in parts for i in range(size)[part]] == list(range(size))
    assert all(part.stop - part.start == block for part in parts[:-1])


@pytest.mark.parametrize("n_jobs", [None, 1, 2, 4])
def test_results_keep_their_order(n_jobs):
    with workers(n_jobs) as apply:
        for _ in range(20):
            assert list(apply(lambda i: i * i, list(range(9)))) == [i * i for i in range(9)]


def test_one_worker_is_the_callers_thread():
    with workers(1) as apply:
        assert list(apply(lambda _: threading.current_thread(), [0])) == [
            threading.current_thread()
        ]


def test_the_callers_thread_takes_its_part():
    barrier = threading.Barrier(2, timeout=10)

    def who(_):
        barrier.wait()
        return threading.current_thread()

    with workers(2) as apply:
        threads = list(apply(who, [0, 1]))
    assert len(set(threads)) == 2
    assert threading.current_thread() in threads


def test_results_come_before_the_work_is_done():
    done = []

    def work(i):
        time.sleep(0.002)
        done.append(i)

    with workers(2) as apply:
        results = apply(work, list(range(100)))
        next(iter(results))
        assert len(done) < 100
        results.close()
    assert len(done) < 100


def test_who_leaves_stops_the_work():
    """Also if what it was reading is not closed: an exception may hold it."""
    done = []

    def work(i):
        time.sleep(0.001)
        done.append(i)

    def leave():
        with workers(2) as apply:
            results = apply(work, list(range(1000)))
            next(results)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        leave()
    n = len(done)
    assert n < 1000
    time.sleep(0.02)
    assert len(done) == n


@pytest.mark.parametrize("fails", ["caller", "other"])
def test_whoever_fails_stops_all(fails):
    caller, done, failed = threading.current_thread(), [], threading.Event()

    def work(i):
        if (threading.current_thread() is caller) == (fails == "caller"):
            failed.set()
            raise KeyError(fails)
        failed.wait(10)
        time.sleep(0.001)
        done.append(i)

    with workers(3) as apply, pytest.raises(KeyError, match=fails):
        list(apply(work, list(range(1000))))
    assert len(done) < 1000


def test_the_same_threads_serve_all_loops():
    names = set()
    with workers(2) as apply:
        for _ in range(30):
            names |= set(apply(lambda _: threading.get_ident(), [0, 1, 2]))
    assert len(names) <= 2


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_linear_algebra_takes_one_thread_inside_and_its_own_afterwards(n_jobs):
    def most_threads(_=None):
        return max(p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas")

    np.ones((2, 2)) @ np.ones((2, 2))  # a BLAS is there
    with threadpool_limits(2):
        before = most_threads()
        with workers(n_jobs) as apply:
            assert set(apply(most_threads, [0, 1, 2])) == {1}
        assert most_threads() == before


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_exception_leaves_no_thread_behind(n_jobs):
    def interrupted():
        with workers(n_jobs) as apply:
            list(apply(lambda i: i, [1, 2, 3]))
            raise KeyboardInterrupt

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert threading.active_count() == before


def test_a_bad_number_of_threads():
    with pytest.raises(LocoleError, match="n_jobs must not be 0"), workers(0):
        pass
