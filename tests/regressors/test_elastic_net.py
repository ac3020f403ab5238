"""The elastic net against scikit-learn's solvers: the same optimum by every path."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import words
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import ElasticNet, Ridge

from locole.embeddings import Kerdock, Nelson
from locole.exceptions import LocoleError
from locole.kernels.dual import BLOCK
from locole.regressors import ElasticNetRegressor, direct
from locole.targets import Targets


@pytest.fixture
def iterate(monkeypatch):
    """No problem is small enough to be solved directly."""
    monkeypatch.setattr(direct, "_SMALL", 0)


def problem(n_samples: int, n_features: int, n_outputs: int, *, seed: int = 0) -> tuple:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, n_features)) / np.sqrt(n_features)
    W = rng.standard_normal((n_features, n_outputs)) * (rng.random((n_features, 1)) < 0.3)
    return X, X @ W + 0.1 * rng.standard_normal((n_samples, n_outputs))


def objective(W: np.ndarray, X, Y, l1: float, l2: float, weight=None) -> float:
    weight = np.ones(len(Y)) if weight is None else weight
    squares = weight @ (X @ W - Y) ** 2
    return float(squares.sum() + l1 * np.abs(W).sum() + l2 * (W**2).sum())


# --- ridge ---

SHAPES = [(60, 10, 3), (10, 60, 3), (40, 40, BLOCK + 5), (1, 4, 1), (5, 1, 2)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("is_sparse", [False, True])
def test_ridge_solved_directly(shape, is_sparse):
    X, Y = problem(*shape)
    ours = ElasticNetRegressor(l2=0.7, fit_intercept=False)
    ours.fit(sp.csr_array(X) if is_sparse else X, Y)
    theirs = Ridge(alpha=0.7, fit_intercept=False).fit(X, Y)
    np.testing.assert_allclose(ours.coef_.T, theirs.coef_.reshape(shape[2], -1).T, atol=1e-9)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X).reshape(Y.shape), atol=1e-9)
    assert (ours.intercept_ == 0).all()


@pytest.mark.usefixtures("iterate")
@pytest.mark.parametrize("shape", SHAPES)
def test_ridge_by_passes(shape):
    X, Y = problem(*shape)
    ours = ElasticNetRegressor(l2=0.7, tol=0, max_passes=200, fit_intercept=False).fit(X, Y)
    theirs = Ridge(alpha=0.7, fit_intercept=False).fit(X, Y)
    assert ours.coef_.T.dtype == np.float32
    best = objective(theirs.coef_.reshape(shape[2], -1).T, X, Y, 0, 0.7)
    assert objective(ours.coef_.T, X, Y, 0, 0.7) <= best * (1 + 1e-6)
    np.testing.assert_allclose(ours.coef_.T, theirs.coef_.reshape(shape[2], -1).T, atol=1e-4)


def test_a_problem_too_large_to_be_solved_directly():
    X, Y = problem(300, 280, 3)
    ours = ElasticNetRegressor(l2=1.0, tol=0, max_passes=60, fit_intercept=False).fit(X, Y)
    assert ours.coef_.T.dtype == np.float32  # the iterative path
    best = objective(Ridge(alpha=1.0, fit_intercept=False).fit(X, Y).coef_.T, X, Y, 0, 1.0)
    assert objective(ours.coef_.T, X, Y, 0, 1.0) <= best * (1 + 1e-4)


@pytest.mark.parametrize("small", [0, 10**6])
def test_the_intercept_is_a_penalised_constant_feature(small, monkeypatch):
    monkeypatch.setattr(direct, "_SMALL", small)
    X, Y = problem(50, 8, 4)
    Y = Y + 3
    ours = ElasticNetRegressor(l2=0.5, tol=0, max_passes=300).fit(X, Y)
    ones = np.hstack([X, np.ones((50, 1))])
    theirs = Ridge(alpha=0.5, fit_intercept=False).fit(ones, Y)
    np.testing.assert_allclose(ours.coef_.T, theirs.coef_[:, :-1].T, atol=1e-4)
    np.testing.assert_allclose(ours.intercept_, theirs.coef_[:, -1], atol=1e-4)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(ones), atol=1e-4)


# --- ℓ1 ---


def dense(weights) -> np.ndarray:
    return weights.toarray() if sp.issparse(weights) else weights


def sklearn_optimum(X: np.ndarray, Y: np.ndarray, l1: float, l2: float) -> np.ndarray:
    """Map ‖Xw−y‖² + l1‖w‖₁ + l2‖w‖² to 1/(2N)‖y−Xw‖² + αρ‖w‖₁ + α(1−ρ)/2‖w‖²."""
    first, second = l1 / (2 * len(Y)), l2 / len(Y)
    model = ElasticNet(
        alpha=first + second,
        l1_ratio=first / (first + second),
        fit_intercept=False,
        tol=1e-10,
        max_iter=100_000,
    )
    return np.array([model.fit(X, y).coef_ for y in Y.T]).T


@pytest.mark.parametrize(("l1", "l2"), [(0.1, 1.0), (1.0, 1.0), (0.01, 0.3), (0.5, 0.1)])
def test_the_same_optimum_as_scikit_learn(l1, l2):
    X, Y = problem(120, 30, 5)
    ours = ElasticNetRegressor(l1=l1, l2=l2, tol=0, max_passes=400, fit_intercept=False).fit(X, Y)
    theirs = sklearn_optimum(X, Y, l1, l2)
    assert sp.issparse(ours.coef_)
    coef = ours.coef_.T.toarray()
    assert objective(coef, X, Y, l1, l2) <= objective(theirs, X, Y, l1, l2) * (1 + 1e-4)
    np.testing.assert_array_equal(coef != 0, np.abs(theirs) > 1e-6)


@settings(max_examples=12)
@given(
    st.integers(2, 40),
    st.integers(1, 40),
    st.integers(1, 3),
    st.sampled_from([0.0, 0.05, 0.5]),
    st.integers(0, 2**32 - 1),
)
def test_no_solution_beats_ours(n_samples, n_features, n_outputs, l1, seed):
    X, Y = problem(n_samples, n_features, n_outputs, seed=seed)
    ours = ElasticNetRegressor(l1=l1, l2=1.0, tol=0, max_passes=200, fit_intercept=False).fit(X, Y)
    reached = objective(dense(ours.coef_.T), X, Y, l1, 1.0)
    if l1:
        best = objective(sklearn_optimum(X, Y, l1, 1.0), X, Y, l1, 1.0)
    else:
        best = objective(np.linalg.solve(X.T @ X + np.eye(n_features), X.T @ Y), X, Y, 0, 1.0)
    assert reached <= best * (1 + 1e-4) + 1e-9


def test_more_passes_come_nearer():
    X, Y = problem(200, 100, 4)
    model = ElasticNetRegressor(l1=0.1, l2=0.1, tol=0, fit_intercept=False)
    reached = [
        objective(dense(model.set_params(max_passes=p).fit(X, Y).coef_.T), X, Y, 0.1, 0.1)
        for p in (1, 5, 25, 125)
    ]
    assert reached == sorted(reached, reverse=True)


# --- targets, formats, threads, weights ---


@pytest.mark.parametrize("small", [0, 10**6])
@pytest.mark.parametrize("embedding", [Kerdock(40, dim=64), Nelson(40, dim=37)], ids=repr)
def test_labels_and_their_embedding_as_targets(small, embedding, monkeypatch):
    monkeypatch.setattr(direct, "_SMALL", small)
    X, y = words()
    by_label = ElasticNetRegressor(l2=1.0).fit(X, Targets(y, embedding))
    by_row = ElasticNetRegressor(l2=1.0).fit(X, embedding.real_rows(y))
    np.testing.assert_allclose(by_label.coef_.T, by_row.coef_.T, atol=1e-6)
    np.testing.assert_allclose(by_label.intercept_, by_row.intercept_, atol=1e-6)


@pytest.mark.parametrize("l1", [0.0, 0.01])
def test_threads_change_no_bit(l1):
    X, y = words(n_samples=500, n_features=300)
    targets = Targets(y, Kerdock(40, dim=256))
    first, *others = (
        ElasticNetRegressor(l1=l1, tol=0, max_passes=3, n_jobs=n_jobs).fit(X, targets)
        for n_jobs in (1, 2, 4)
    )
    for other in others:
        np.testing.assert_array_equal(dense(first.coef_.T), dense(other.coef_.T))
        np.testing.assert_array_equal(first.predict(X), other.predict(X))


def test_the_seed_decides_the_order_of_the_samples():
    X, Y = problem(300, 280, 3)
    a, b, c = (
        ElasticNetRegressor(tol=0, max_passes=1, random_state=s).fit(X, Y).coef_.T
        for s in (0, 0, 1)
    )
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(a, c)


@pytest.mark.parametrize("small", [0, 10**6])
@pytest.mark.parametrize("shape", [(80, 10, 3), (20, 50, 3)])
def test_a_weight_is_a_number_of_copies(small, shape, monkeypatch):
    monkeypatch.setattr(direct, "_SMALL", small)
    X, Y = problem(*shape)
    weight = np.random.default_rng(0).integers(0, 4, shape[0])
    model = ElasticNetRegressor(l2=1.0, tol=0, max_passes=300)
    weighted = clone(model).fit(X, Y, sample_weight=weight)
    repeated = clone(model).fit(np.repeat(X, weight, axis=0), np.repeat(Y, weight, axis=0))
    np.testing.assert_allclose(weighted.coef_.T, repeated.coef_.T, atol=2e-5)
    np.testing.assert_allclose(weighted.intercept_, repeated.intercept_, atol=2e-5)


def test_real_weights_enter_the_objective():
    X, Y = problem(80, 10, 3)
    weight = np.random.default_rng(0).random(80) * 2
    model = ElasticNetRegressor(l1=0.2, l2=1.0, tol=0, max_passes=300, fit_intercept=False)
    ours = model.fit(X, Y, sample_weight=weight)
    root = np.sqrt(weight)[:, None]
    best = objective(sklearn_optimum(root * X, root * Y, 0.2, 1.0), X, Y, 0.2, 1.0, weight)
    assert objective(ours.coef_.T, X, Y, 0.2, 1.0, weight) <= best * (1 + 1e-4)


def test_rows_and_features_without_an_entry():
    X, Y = problem(30, 10, 3)
    X[4] = 0
    X[:, 7] = 0
    for l1 in (0.0, 0.1):
        model = ElasticNetRegressor(l1=l1, fit_intercept=False).fit(sp.csr_array(X), Y)
        assert (dense(model.coef_.T)[7] == 0).all()
        assert (model.predict(X[[4]]) == 0).all()


def test_one_output_may_be_a_plain_array():
    X, Y = problem(30, 5, 1)
    flat = ElasticNetRegressor().fit(X, Y.ravel())
    np.testing.assert_array_equal(flat.coef_.T, ElasticNetRegressor().fit(X, Y).coef_.T)
    whole = ElasticNetRegressor().fit(X, np.arange(30))
    assert whole.predict(X).shape == (30, 1)


# --- errors ---


@pytest.mark.parametrize(
    ("parameters", "part"),
    [
        ({"l1": -1}, "l1 must be a number of at least 0, not -1"),
        ({"l1": np.nan}, "l1 must be a number"),
        ({"l1": "1"}, "l1 must be a number"),
        ({"l2": -0.5}, "l2 must be a number above 0, 'auto' or 'stream', not -0.5"),
        ({"l2": np.inf}, "l2 must be a number"),
        ({"l2": 0}, "l2 must be a number above 0, 'auto' or 'stream', not 0"),
        ({"max_passes": 0}, "max_passes must be a whole number from 1 to 10000, not 0"),
        ({"max_passes": 2.5}, "max_passes must be a whole number"),
        ({"tol": -1.0}, "tol must be a number of at least 0"),
        ({"recipe": "imagenet"}, "recipe must be None, 'dmoz', 'lshtc1' or 'odp', not 'imagenet'"),
    ],
)
def test_bad_parameters(parameters, part):
    X, Y = problem(10, 3, 2)
    with pytest.raises(LocoleError, match=part):
        ElasticNetRegressor(**parameters).fit(X, Y)


def test_bad_data():
    X, Y = problem(10, 3, 2)
    with pytest.raises(LocoleError, match="10 rows but there are 9 targets"):
        ElasticNetRegressor().fit(X, Y[:9])
    with pytest.raises(LocoleError, match="targets must be numbers"):
        ElasticNetRegressor().fit(X, np.full(10, "a"))
    with pytest.raises(ValueError, match="NaN"):
        ElasticNetRegressor().fit(X * np.nan, Y)
    with pytest.raises(ValueError, match=r"weight"):
        ElasticNetRegressor().fit(X, Y, sample_weight=np.zeros(10))
    with pytest.raises(NotFittedError):
        ElasticNetRegressor().predict(X)
    with pytest.raises(ValueError, match="2 features"):
        ElasticNetRegressor().fit(X, Y).predict(X[:, :2])


@pytest.mark.parametrize("small", [0, 10**6])
def test_targets_that_are_not_finite_are_refused(small, monkeypatch):
    monkeypatch.setattr(direct, "_SMALL", small)
    X, Y = problem(10, 3, 2)
    Y[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"NaN|infs or NaNs"):
        ElasticNetRegressor().fit(X, Y)
