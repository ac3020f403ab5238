"""More rows for the elastic net: the penalty on moves, against a closed form."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from locole import LocoleClassifier
from locole.datasets import make_topics
from locole.exceptions import LocoleError, ModelFileError
from locole.io import read_model, write_model
from locole.regressors import ElasticNetRegressor

RNG = np.random.default_rng(0)
X = sp.random_array((400, 30), density=0.2, rng=RNG, format="csr").astype(np.float32)
Y = (X @ RNG.normal(size=(30, 5)) + 0.1 * RNG.normal(size=(400, 5))).astype(np.float32)


def moved(W, squares, X, Y, l2, weight=None):
    """argmin Σ_i w_i ‖x_i W' − y_i‖² + Σ_f (λ2 + curvature_f) ‖W'_f − W_f‖²."""
    X, Y = np.asarray(X, dtype=np.float64), np.asarray(Y, dtype=np.float64)
    weight = np.ones(len(X)) if weight is None else weight
    A = X.T @ (weight[:, None] * X) + np.diag(l2 + squares)
    return W + np.linalg.solve(A, X.T @ (weight[:, None] * (Y - X @ W)))


def curvature(X, weight=1.0):
    """Σ_i w_i |x_if|^1.625 ‖x_i‖₁^0.375."""
    sizes = np.abs(np.asarray(X, dtype=np.float64))
    shares = weight * sizes.sum(axis=1) ** 0.375
    return (sizes**1.625 * shares[:, None]).sum(axis=0)


def fitted(**options):
    return ElasticNetRegressor(l2=0.5, max_passes=400, tol=1e-10, **options).fit(X[:300], Y[:300])


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_moves_are_penalised_by_what_the_earlier_rows_have(fit_intercept):
    model = fitted(fit_intercept=fit_intercept)
    more = X[300:].toarray()
    rows = X[:300].toarray()
    W = np.vstack([model.coef_.T, model.intercept_]) if fit_intercept else model.coef_.T
    if fit_intercept:
        more = np.hstack([more, np.ones((100, 1))])
        rows = np.hstack([rows, np.ones((300, 1))])
    np.testing.assert_allclose(model.curvature_, curvature(rows), rtol=1e-5)
    expected = moved(W, curvature(rows), more, Y[300:], 0.5)
    model.partial_fit(X[300:], Y[300:])
    np.testing.assert_allclose(model.coef_.T, expected[:30], atol=2e-3)
    if fit_intercept:
        np.testing.assert_allclose(model.intercept_, expected[30], atol=2e-3)


@settings(max_examples=10)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 40))
def test_weights_of_rows(seed, n):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 400, n)
    weight = rng.integers(0, 3, n).astype(float)
    weight[0] = 1.5
    model = fitted(fit_intercept=False)
    before = model.curvature_
    expected = moved(model.coef_.T, before, X[rows].toarray(), Y[rows], 0.5, weight)
    model.partial_fit(X[rows], Y[rows], sample_weight=weight)
    np.testing.assert_allclose(model.coef_.T, expected, atol=2e-3)
    added = curvature(X[rows].toarray(), weight)
    np.testing.assert_allclose(model.curvature_, before + added, rtol=1e-5)


def test_features_that_many_rows_have_move_less():
    common = sp.csr_array(np.hstack([np.ones((500, 1)), np.zeros((500, 1))]))
    model = ElasticNetRegressor(l2=1.0, fit_intercept=False, max_passes=50, tol=0)
    model.fit(common, np.zeros((500, 1)))
    model.partial_fit(np.array([[1.0, 1.0]]), np.array([[1.0]]))
    known, new = model.coef_.T[:, 0]
    assert new > 100 * known > 0


def test_features_that_come_together_are_not_unlearnt():
    """A tenth more rows must not cost what the first nine tenths taught."""
    rng = np.random.default_rng(0)
    own = rng.random((60, 300)) < 0.04
    themes = rng.random((20, 300)) < 0.3

    def sample(n):
        y = np.arange(n) % 60
        rows = own[y] * (rng.random((n, 300)) < 0.6) + 3 * themes[rng.integers(0, 20, n)]
        return sp.csr_array(rows.astype(np.float32)), y

    (rows, y), (rows_test, y_test) = sample(1500), sample(1000)
    model = LocoleClassifier(regressor="elastic_net").fit(rows[:1350], y[:1350])
    before = model.score(rows_test, y_test)
    assert before > 0.9
    assert model.partial_fit(rows[1350:], y[1350:]).score(rows_test, y_test) > before - 0.02


def test_sparse_weights_move_freely():
    """With λ1 the scale of the features would change the penalty itself."""
    model = ElasticNetRegressor(l1=0.01, l2=0.5).fit(X[:300], Y[:300])
    np.testing.assert_array_equal(model._ease(0.01), np.ones(30))
    before = model.coef_.T.toarray()
    model.partial_fit(X[300:], Y[300:])
    assert sp.issparse(model.coef_)
    assert not np.array_equal(model.coef_.T.toarray(), before)


def test_the_penalty_stays_that_of_the_first_rows():
    model = ElasticNetRegressor().fit(X[:300], Y[:300])
    chosen, reason = model.l2_, model.l2_reason_
    model.partial_fit(X[300:], Y[300:])
    assert (model.l2_, model.l2_reason_) == (chosen, reason)
    with pytest.raises(LocoleError, match="4 outputs, the model 5"):
        model.partial_fit(X[300:], Y[300:, :4])


def test_many_small_parts_stay_near_the_whole():
    """Rows in ten parts: no worse than a few times the error of all rows at once."""
    whole = ElasticNetRegressor(l2=0.5).fit(X, Y)
    parts = ElasticNetRegressor(l2=0.5)
    for start in range(0, 400, 40):
        parts.partial_fit(X[start : start + 40], Y[start : start + 40])

    def error(model):
        return np.square(model.predict(X) - Y).mean()

    assert error(parts) < 4 * error(whole)
    assert error(parts) < 0.1 * np.square(Y).mean()
    np.testing.assert_allclose(parts.curvature_, whole.curvature_, rtol=1e-5)


def test_many_small_batches_teach_nearly_what_one_fit_does():
    """Words that say little: the penalty that suits the first 30 rows costs 18 points, this one 3."""
    data = make_topics(
        3000, n_features=1500, n_classes=60, nnz_per_row=12, noise=0.6, test_size=1000
    )
    whole = LocoleClassifier("kerdock", dim=64, regressor="elastic_net")
    whole.fit(data.X_train, data.y_train)
    stream = LocoleClassifier("kerdock", dim=64, regressor="elastic_net")
    for rows in np.array_split(np.arange(3000), 100):
        stream.partial_fit(data.X_train[rows], data.y_train[rows], classes=np.arange(60))
    expected = whole.score(data.X_test, data.y_test)
    assert expected > 0.85
    assert stream.score(data.X_test, data.y_test) > expected - 0.05


@pytest.mark.parametrize("storage", ["float16", "int8", "int4"])
def test_weights_in_fewer_bits_learn_on(storage):
    small = fitted(storage=storage, fit_intercept=False)
    start = small.coef_.T.astype(np.float64)
    squares = small.curvature_
    small.partial_fit(X[300:], Y[300:])
    expected = moved(start, squares, X[300:].toarray(), Y[300:], 0.5)
    np.testing.assert_allclose(small.coef_.T, expected, atol=0.02 * np.abs(expected).max())


def test_old_labels_survive_new_ones():
    """Labels whose features do not overlap do not disturb each other at all."""
    centres = np.kron(np.eye(20), np.ones(15))
    y = np.repeat(np.arange(20), 5)
    rows = sp.csr_array(centres[y].astype(np.float32))
    old = y < 12
    model = LocoleClassifier("kerdock", dim=64, regressor=ElasticNetRegressor(l2=0.1))
    model.fit(rows[old], y[old])
    before = model.regressor_.predict(rows[old])
    model.partial_fit(rows[~old], y[~old])
    np.testing.assert_allclose(model.regressor_.predict(rows[old]), before, atol=1e-4)
    assert model.score(rows, y) == 1.0


@pytest.mark.parametrize("bad", [np.ones(7), np.full(30, -1.0), np.full(30, np.nan)])
def test_files_with_impossible_curvature_are_refused(bad, tmp_path):
    model = fitted(fit_intercept=False)
    model.curvature_ = bad
    write_model(tmp_path / "m", model)
    with pytest.raises(ModelFileError):
        read_model(tmp_path / "m")


def test_four_bits_are_whole_bytes_while_more_is_learnt():
    """Small changes add up, and what is not touched is the same to the bit once it is compact again."""
    rng = np.random.default_rng(0)
    rows = sp.random_array((300, 400), density=0.05, rng=rng, format="csr")
    points = rng.standard_normal((300, 7))
    four = ElasticNetRegressor(l2=0.5, storage="int4").fit(rows, points)
    before = four.coef_.copy()
    assert four._weights.dtype == np.uint8
    rows.data[rows.indices >= 5] = 0
    rows.eliminate_zeros()
    four.partial_fit(rows, points)
    assert four._weights.dtype == np.int8
    np.testing.assert_array_equal(four.coef_[:, 5:], before[:, 5:])
    assert (four.coef_[:, :5] != before[:, :5]).any()
    four.compact()
    assert four._weights.dtype == np.uint8
    np.testing.assert_allclose(four.coef_[:, 5:], before[:, 5:], rtol=1e-6)
