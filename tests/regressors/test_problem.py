"""The problem as solvers see it: sums over rows, piece by piece, without copies of X."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from locole.regressors import ElasticNetRegressor, elastic_net
from locole.regressors.base import as_targets
from locole.regressors.problem import Problem, make_problem
from locole.sparse_rows import row_squares


def made(X: sp.csr_array) -> Problem:
    return make_problem(X, as_targets(np.ones((X.shape[0], 2))), None).weighted()


def test_rows_of_weight_zero_are_left_out_with_their_targets():
    X, Y = sp.csr_array(np.eye(4)), np.arange(8.0).reshape(4, 2)
    found = make_problem(X, as_targets(Y), [0, 2, 0, 1])
    np.testing.assert_array_equal(found.X.toarray(), np.eye(4)[[1, 3]])
    np.testing.assert_array_equal(found.weight, [2, 1])
    assert found.targets.shape == (2, 2)
    np.testing.assert_array_equal(found.targets.rows(slice(0, 2)), Y[[1, 3]])
    np.testing.assert_array_equal(found.targets.table(1, 2)[found.codes], Y[[1, 3], 1:])
    np.testing.assert_allclose(found.relative().weight, [4 / 3, 2 / 3])
    with pytest.raises(ValueError, match=r"weights .*zero"):
        make_problem(X, as_targets(Y), np.zeros(4))


def test_a_split_has_every_row_once_with_its_own_target():
    X, Y = sp.csr_array(np.diag(np.arange(1.0, 10))), np.arange(1.0, 10)
    train, held = make_problem(X, as_targets(Y), Y).split(3, seed=[0])
    assert (train.n_rows, held.n_rows) == (6, 3)
    for part in (train, held):
        np.testing.assert_array_equal(part.X.data, part.targets.rows(slice(None))[:, 0])
        np.testing.assert_array_equal(part.X.data, part.weight)
        assert (np.diff(part.X.data) > 0).all()
    assert sorted([*train.weight, *held.weight]) == list(range(1, 10))


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
        row_squares(whole.X)
        model._count(whole)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.5 * (data.nbytes + indices.nbytes)
