"""Compiled parts of the softmax and of its descent, each against NumPy."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from locole.kernels.jit import kernel
from locole.kernels.lanes import LANES, place
from locole.kernels.product import subtract_outer
from locole.kernels.simd import WIDTH, exp, load, store
from locole.kernels.softmax import softmax_wht, store_rows

F32 = np.float32


# --- exp ---


@kernel
def exponentials(x, out):
    for i in range(0, x.size, WIDTH):
        store(out, i, exp(load(x, i)))


def exp_of(x: np.ndarray) -> np.ndarray:
    x = np.asarray(x, dtype=F32)
    padded = np.zeros(-(-x.size // WIDTH) * WIDTH, dtype=F32)
    padded[: x.size] = x
    out = np.empty_like(padded)
    exponentials(padded, out)
    return out[: x.size]


def relative_error(x: np.ndarray) -> np.ndarray:
    exact = np.exp(x.astype(np.float64))
    return np.abs(exp_of(x) - exact) / exact


def test_exp_over_its_whole_range():
    x = np.linspace(-87, 88, 400_001, dtype=F32)
    assert relative_error(x).max() < 2e-7


def test_exp_around_every_power_of_two():
    """Where the whole part k changes, and the neighbours of each such place."""
    halves = ((np.arange(-125, 127) + 0.5) * np.log(2)).astype(F32)
    wholes = (np.arange(-125, 127) * np.log(2)).astype(F32)
    x = np.concatenate([halves, wholes])
    x = np.concatenate([x, np.nextafter(x, F32(-np.inf)), np.nextafter(x, F32(np.inf))])
    assert relative_error(x[(x >= -87) & (x <= 88)]).max() < 2e-7


def test_exp_of_tiny_numbers_is_one():
    tiny = np.array([0.0, -0.0, 1e-45, -1e-45, 1e-30, 3e-8, -2e-8], dtype=F32)
    np.testing.assert_array_equal(exp_of(tiny), np.ones(7, dtype=F32))


def test_exp_is_clipped():
    low, high = exp_of([-87, 88])
    below = exp_of([-87.0001, -88, -104, -1e30, -np.inf])
    above = exp_of([88.0001, 89, 1e30, np.inf])
    np.testing.assert_array_equal(below, low)
    np.testing.assert_array_equal(above, high)
    assert 0 < low < 2e-38
    assert 1e38 < high < np.inf


@given(st.lists(st.floats(-87, 88, width=32), min_size=1, max_size=40))
def test_exp_anywhere(values):
    assert (relative_error(np.array(values, dtype=F32)) < 2e-7).all()


def test_exp_rises():
    x = np.sort(np.random.default_rng(0).uniform(-87, 88, 100_000).astype(F32))
    assert (np.diff(exp_of(x)) >= -2e-7 * exp_of(x)[1:]).all()


# --- the outer product of the update ---


def sparse_rows(rng, n_rows=30, n_features=25):
    return sp.random_array((n_rows, n_features), density=0.25, rng=rng, format="csr").astype(F32)


@given(
    seed=st.integers(0, 2**32 - 1),
    width=st.sampled_from([16, 48, 64, 272]),
    index_type=st.sampled_from([np.int32, np.int64]),
    n_batch=st.integers(0, 40),
)
def test_subtract_outer(seed, width, index_type, n_batch):
    """Rows may repeat within a batch, as may features between rows."""
    rng = np.random.default_rng(seed)
    X = sparse_rows(rng)
    batch = rng.integers(0, 30, n_batch)
    G = rng.standard_normal((n_batch, width)).astype(F32)
    W = rng.standard_normal((25, width)).astype(F32)
    expected = W - 0.3 * (X[batch].T @ G.astype(np.float64))
    subtract_outer(
        X.indptr.astype(index_type), X.indices.astype(index_type), X.data, batch,
        G.ravel(), F32(0.3), width, 0, width, W.ravel(),
    )  # fmt: skip
    np.testing.assert_allclose(W, expected, atol=1e-5)


def test_shares_of_the_outputs_are_the_whole_and_nothing_else_is_touched():
    rng = np.random.default_rng(1)
    X = sparse_rows(rng)
    batch, width = rng.permutation(30), 80
    G = rng.standard_normal((30, width)).astype(F32)
    W = rng.standard_normal((25, width)).astype(F32)
    for array in (X.indptr, X.indices, X.data, G, batch):
        array.flags.writeable = False
    arguments = (X.indptr, X.indices, X.data, batch, G.reshape(-1), F32(0.7), width)
    whole, shared, part = W.copy(), W.copy(), W.copy()
    subtract_outer(*arguments, 0, width, whole.ravel())
    for first, last in ((48, 80), (0, 16), (16, 48)):
        subtract_outer(*arguments, first, last, shared.ravel())
    subtract_outer(*arguments, 16, 48, part.ravel())
    np.testing.assert_array_equal(shared, whole)
    np.testing.assert_array_equal(part[:, 16:48], whole[:, 16:48])
    np.testing.assert_array_equal(part[:, :16], W[:, :16])
    np.testing.assert_array_equal(part[:, 48:], W[:, 48:])


# --- running softmax of whole bases ---


def hadamard(n: int) -> np.ndarray:
    positions = np.arange(n)
    bits = np.bitwise_count(positions[:, None] & positions[None, :])
    return 1.0 - 2.0 * (bits % 2)


@given(
    seed=st.integers(0, 2**32 - 1),
    log_n=st.integers(2, 8),
    n_bases=st.integers(1, 4),
    missing=st.integers(0, 3),
    gaps=st.booleans(),
    peak=st.sampled_from([-100.0, -40.0, 0.0, 50.0]),
)
def test_running_softmax_of_bases(seed, log_n, n_bases, missing, gaps, peak):
    """Columns ``(−1)^{a·x} · sign(x)``: sums of exponentials and their pull, whatever the first peak."""
    rng = np.random.default_rng(seed)
    n, groups = 2**log_n, 2
    n_columns = n_bases * n - missing
    signs = rng.choice([-1.0, 1.0], (n_bases, n)).astype(F32)
    labels = np.empty(0, dtype=np.int64)
    exists = np.arange(n_bases * n) < n_columns
    if gaps:
        labels = np.where(rng.random(n_columns) < 0.3, -1, np.arange(n_columns))
        labels[0] = 0
        exists[:n_columns] = labels >= 0
    points = rng.standard_normal((groups * LANES, n)).astype(F32) * 10 / np.sqrt(n)
    points = points.astype(F32)
    lanes = np.zeros((groups, place(n) + LANES), dtype=F32)
    for i, row in enumerate(points):
        lanes[i // LANES, [place(x) + i % LANES for x in range(n)]] = row
    top, total = np.full(groups * LANES, peak, dtype=F32), np.zeros(groups * LANES, dtype=F32)
    pull = np.zeros_like(lanes)
    softmax_wht(lanes, signs, 0, n_columns, labels, top, total, pull)
    out = np.empty_like(points)
    store_rows(pull, F32(1), total, out)

    columns = (hadamard(n)[None] * signs[:, None, :]).reshape(-1, n)[exists]
    logits = points.astype(np.float64) @ columns.T
    largest = logits.max(axis=1, keepdims=True)
    weights = np.exp(logits - largest)
    if peak <= 0:  # a peak far above all logits loses them, which callers avoid
        expected = largest[:, 0] + np.log(weights.sum(axis=1))
        np.testing.assert_allclose(top + np.log(total), expected, atol=2e-5)
        means = weights @ columns / weights.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(out, means, atol=2e-5)
    assert np.isfinite(out).all()
