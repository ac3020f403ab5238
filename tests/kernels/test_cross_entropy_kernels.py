"""Compiled parts of the softmax and of its descent, each against NumPy."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from locole.kernels.cross_entropy import softmax_wht, store_rows
from locole.kernels.cross_entropy_dft import pull_pair, softmax_dft
from locole.kernels.csr import Csr
from locole.kernels.jit import kernel
from locole.kernels.lanes import LANES, place
from locole.kernels.plans import bluestein_plan
from locole.kernels.product import subtract_outer
from locole.kernels.shrink import shrink_rows
from locole.kernels.simd import WIDTH, exp, load, store

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
        Csr(X.indptr.astype(index_type), X.indices.astype(index_type), X.data), batch,
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
    arguments = (Csr.of(X), batch, G.reshape(-1), F32(0.7), width)
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
    shifted=st.booleans(),
    peak=st.sampled_from([-100.0, -40.0, 0.0, 50.0]),
)
def test_running_softmax_of_bases(seed, log_n, n_bases, missing, gaps, shifted, peak):
    """Columns ``(−1)^{a·x} · sign(x)``: sums of exponentials and their pull, whatever the first peak."""
    rng = np.random.default_rng(seed)
    n = 2**log_n
    signs = rng.choice([-1.0, 1.0], (n_bases, n)).astype(F32)
    columns = (hadamard(n)[None] * signs[:, None, :]).reshape(-1, n)
    problem = Running(rng, columns, n_bases * n - missing, gaps, shifted, peak)
    softmax_wht(problem.lanes, signs, 0, *problem.where, *problem.state)
    problem.check(F32(1))


class Running:
    """Points in lanes, labels and offsets, and what the running softmax must come to."""

    def __init__(self, rng, columns, n_columns, gaps, shifted, peak):
        groups, size = 2, columns.shape[1]
        exists = np.arange(len(columns)) < n_columns
        labels, offsets = np.empty(0, dtype=np.int64), np.empty(0, dtype=F32)
        if gaps:
            labels = np.where(rng.random(n_columns) < 0.3, -1, np.arange(n_columns))
            labels[0] = 0
            exists[:n_columns] = labels >= 0
        if shifted:
            offsets = 2 * rng.standard_normal(n_columns).astype(F32)
        points = rng.standard_normal((groups * LANES, size)).astype(F32) * 10 / np.sqrt(size)
        self.points, self.columns, self.peak = points.astype(F32), columns[exists], peak
        self.added = offsets[exists[:n_columns]] if shifted else 0.0
        self.where = n_columns, labels, offsets
        self.lanes = np.zeros((groups, place(size) + LANES), dtype=F32)
        for i, row in enumerate(self.points):
            self.lanes[i // LANES, [place(x) + i % LANES for x in range(size)]] = row
        top, total = np.full(groups * LANES, peak, dtype=F32), np.zeros(groups * LANES, dtype=F32)
        self.state = top, total, np.zeros_like(self.lanes)

    def check(self, scale):
        top, total, pull = self.state
        out = np.empty_like(self.points)
        store_rows(pull, scale, total, out)
        assert np.isfinite(out).all()
        if self.peak > 0:  # a peak far above all logits loses them, which callers avoid
            return
        logits = self.points.astype(np.float64) @ self.columns.T + self.added
        largest = logits.max(axis=1, keepdims=True)
        weights = np.exp(logits - largest)
        expected = largest[:, 0] + np.log(weights.sum(axis=1))
        np.testing.assert_allclose(top + np.log(total), expected, atol=2e-5)
        means = weights @ self.columns / weights.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(out, means, atol=2e-5)


# --- chirps ---


def chirped(rng, n, n_bases):
    """Bases of unit modulus times waves: conjugated chirps, and all columns, u = 1 … n."""
    angles = 2 * np.pi * rng.random((n_bases, n))
    u, a = np.arange(1, n + 1), np.arange(n)
    waves = np.exp(2j * np.pi / n * (a[:, None] * u[None, :]))
    columns = (np.exp(1j * angles)[:, None, :] * waves[None]).reshape(-1, n)
    return np.exp(-1j * angles).astype(np.complex64), columns


each_prime = st.sampled_from([3, 5, 7, 31, 37, 61, 67, 127, 257])


@given(seed=st.integers(0, 2**32 - 1), n=each_prime)
def test_pull_of_a_pair_of_bases(seed, n):
    """Twice the weighted sums of the columns of two bases, added to what is there."""
    rng = np.random.default_rng(seed)
    chirps, columns = chirped(rng, n, 2)
    wave, plan = bluestein_plan(n, np.dtype(F32))
    weights = rng.random((2, n, LANES)).astype(F32)
    re, im = np.full((2, place(int(plan[0][0])) + LANES), 7, dtype=F32)
    for a in range(n):
        re[place(a) : place(a) + LANES], im[place(a) : place(a) + LANES] = weights[:, a]
    pull = np.ones(place(2 * n) + LANES, dtype=F32)
    pull_pair(re, im, *chirps, wave, plan, pull)
    expected = 2 * np.einsum("kl,ku->ul", weights.reshape(2 * n, LANES), columns)
    found = np.array([pull[place(x) : place(x) + LANES] for x in range(2 * n)]) - 1
    scale = np.abs(expected).max()
    np.testing.assert_allclose(found[:n], expected.real, atol=3e-6 * scale)
    np.testing.assert_allclose(found[n:], expected.imag, atol=3e-6 * scale)


@given(
    seed=st.integers(0, 2**32 - 1),
    n=each_prime,
    n_pairs=st.integers(1, 2),
    missing=st.integers(0, 4),
    gaps=st.booleans(),
    shifted=st.booleans(),
    peak=st.sampled_from([-100.0, -40.0, 0.0, 50.0]),
)
def test_running_softmax_of_chirps(seed, n, n_pairs, missing, gaps, shifted, peak):
    """Any chirps, not only polynomials; with 3 columns and 4 missing the last basis is empty."""
    rng = np.random.default_rng(seed)
    chirps, columns = chirped(rng, n, 2 * n_pairs)
    real_view = np.hstack([columns.real, columns.imag])
    problem = Running(rng, real_view, 2 * n_pairs * n - missing, gaps, shifted, peak)
    problem.lanes *= F32(0.5)
    wave, plan = bluestein_plan(n, np.dtype(F32))
    softmax_dft(problem.lanes, chirps, wave, plan, 0, *problem.where, *problem.state)
    problem.check(F32(0.5))


# --- soft thresholds ---


@given(
    seed=st.integers(0, 2**32 - 1),
    width=st.sampled_from([16, 48]),
    index_type=st.sampled_from([np.int32, np.int64]),
)
def test_shrink_rows(seed, width, index_type):
    rng = np.random.default_rng(seed)
    W = rng.standard_normal((9, width)).astype(F32)
    features = rng.permutation(9)[: rng.integers(0, 10)].astype(index_type)
    amounts = rng.choice([0.0, 1e-3, 0.5, 2.0, 100.0], features.size).astype(F32)
    expected = W.copy()
    old = W[features]
    expected[features] = np.sign(old) * np.maximum(np.abs(old) - amounts[:, None], 0)
    shrink_rows(features, amounts, width, W.reshape(-1))
    np.testing.assert_array_equal(W, expected)
