"""The problem as solvers see it: sums over rows, piece by piece, without copies of X."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from locole.regressors import ElasticNetRegressor, elastic_net, problem
from locole.regressors.base import as_targets
from locole.regressors.problem import Problem, make_problem


def made(X: sp.csr_array) -> Problem:
    targets = as_targets(np.ones((X.shape[0], 2)))
    return make_problem(X, targets, np.ones(X.shape[0]), constant=False)


@given(st.integers(1, 30), st.integers(1, 12), st.floats(0, 0.6), st.integers(1, 40))
def test_row_squares_by_any_piece(n_samples, n_features, density, rows):
    rng = np.random.default_rng(n_samples)
    X = rng.normal(size=(n_samples, n_features)) * (rng.random((n_samples, n_features)) < density)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(problem, "ROWS", rows)
        found = made(sp.csr_array(X)).row_squares()
    np.testing.assert_allclose(found, np.square(X).sum(axis=1), rtol=1e-6)


def test_row_squares_where_all_rows_are_empty():
    assert (made(sp.csr_array((5, 3))).row_squares() == 0).all()


def test_large_numbers_do_not_overflow():
    X = sp.csr_array(np.full((2, 3), 1e20))
    np.testing.assert_allclose(made(X).row_squares(), 3e40, rtol=1e-6)


@pytest.mark.parametrize("rows", [1, 7, 64, 1_000])
def test_curvature_by_any_piece(rows, monkeypatch):
    rng = np.random.default_rng(0)
    X = sp.random_array((200, 40), density=0.1, rng=rng, format="csr")
    Y, weight = rng.normal(size=(200, 2)), rng.random(200) + 0.5
    monkeypatch.setattr(elastic_net, "ROWS", rows)
    model = ElasticNetRegressor(l2=1.0, fit_intercept=False).fit(X, Y, sample_weight=weight)
    sizes = np.abs(X.toarray())
    lengths = sizes.sum(axis=1) ** 0.375
    expected = (sizes**1.625 * (weight * lengths)[:, None]).sum(axis=0)
    np.testing.assert_allclose(model.curvature_, expected, rtol=1e-10)


def test_sums_over_rows_take_no_copy_of_x():
    rng = np.random.default_rng(0)
    n_samples, per_row = 60_000, 20
    indices = rng.integers(500, size=n_samples * per_row).astype(np.int32)
    data = np.ones(indices.size, dtype=np.float32)
    indptr = np.arange(0, indices.size + 1, per_row, dtype=np.int32)
    whole = made(sp.csr_array((data, indices, indptr), shape=(n_samples, 500)))
    model = ElasticNetRegressor()
    model.curvature_ = np.zeros(500)
    model._count(whole)  # imports and caches are not counted
    tracemalloc.start()
    try:
        whole.row_squares()
        model._count(whole)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.5 * (data.nbytes + indices.nbytes)
