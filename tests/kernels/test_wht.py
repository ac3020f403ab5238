"""The fast Walsh–Hadamard transform against the Hadamard matrix."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import hadamard

from locole.kernels.lanes import LANES, place
from locole.kernels.wht import fill_signs, scan_wht, transform_wht, wht_scores

RNG = np.random.default_rng(0)
NO_LABELS = np.empty(0, dtype=np.int64)
each_size = pytest.mark.parametrize("n", [2**m for m in range(1, 13)])
each_type = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def hadamard_times(Z: np.ndarray) -> np.ndarray:
    """Z @ H, exact for whole numbers of this size."""
    n = Z.shape[1]
    if n <= 256:
        return Z.astype(np.float64) @ hadamard(n, dtype=np.float64)
    top, bottom = hadamard_times(Z[:, : n // 2]), hadamard_times(Z[:, n // 2 :])
    return np.hstack([top + bottom, top - bottom])


@each_size
@each_type
def test_transform_in_lanes(n, dtype):
    Z = RNG.integers(-9, 10, (LANES, n))
    lanes = np.full(place(n) + LANES, np.nan, dtype=dtype)
    for x in range(n):
        lanes[place(x) : place(x) + LANES] = Z[:, x]
    transform_wht(lanes, n)
    out = np.array([lanes[place(x) : place(x) + LANES] for x in range(n)]).T
    np.testing.assert_array_equal(out, hadamard_times(Z))


@each_size
@each_type
def test_scores_of_whole_bases(n, dtype):
    rows, bases = (1, LANES, LANES + 3)[n % 3], 3
    Z = RNG.integers(-9, 10, (rows, n))
    signs = RNG.choice([-1, 1], (bases, n))
    out = np.empty((rows, bases * n), dtype=dtype)
    wht_scores(Z.astype(dtype), signs.astype(dtype), out)
    expected = np.hstack([hadamard_times(Z * sign) for sign in signs])
    np.testing.assert_array_equal(out, expected)


def test_real_numbers_within_rounding():
    Z = RNG.standard_normal((40, 1024))
    for dtype, tolerance in ((np.float32, 1e-5), (np.float64, 1e-13)):
        out = np.empty((40, 1024), dtype=dtype)
        wht_scores(Z.astype(dtype), np.ones((1, 1024), dtype=dtype), out)
        np.testing.assert_allclose(out, hadamard_times(Z), atol=tolerance * 32)


@each_size
@pytest.mark.parametrize("k", [1, 4])
def test_scan_keeps_the_best_of_all_bases(n, k):
    rows, bases = LANES + 1, 3
    n_columns = bases * n - n // 2  # the last basis is not whole
    Z = RNG.integers(-9, 10, (rows, n))
    signs = RNG.choice([-1, 1], (bases, n))
    scores = np.hstack([hadamard_times(Z * sign) for sign in signs])[:, :n_columns]
    k = min(k, n_columns)
    for labels in (NO_LABELS, RNG.permutation(n_columns)):
        best_scores = np.full((rows, k), -np.inf, dtype=np.float32)
        best_codes = np.full((rows, k), -1, dtype=np.int64)
        for b in range(bases):  # one basis a call: the lists run on
            sign = signs[b : b + 1].astype(np.float32)
            scan_wht(Z.astype(np.float32), sign, b * n, n_columns, labels, best_scores, best_codes)
        names = labels if labels.size else np.arange(n_columns)
        by_label = np.empty_like(scores)
        by_label[:, names] = scores
        expected = -np.sort(-scores, axis=1)[:, :k]
        np.testing.assert_array_equal(best_scores, expected)
        np.testing.assert_array_equal(np.take_along_axis(by_label, best_codes, 1), expected)
        assert all(np.unique(codes).size == k for codes in best_codes)


@each_type
def test_signs_of_phases_and_shifts(dtype):
    n = 64
    phases = RNG.integers(0, 2, (5, n)).astype(np.uint8)
    which, shifts = RNG.integers(0, 5, 30), RNG.integers(0, n, 30)
    out = np.empty((30, n), dtype=dtype)
    fill_signs(phases, which, shifts, dtype(0.125), out)
    expected = 0.125 * (-1.0) ** phases[which] * hadamard(n)[shifts]
    np.testing.assert_array_equal(out, expected)
