"""Short passes between those over all samples: the same optimum, with fewer visits."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import ElasticNet

from locole.embeddings import Kerdock
from locole.exceptions import LocoleError
from locole.kernels.csr import Csr
from locole.kernels.dual import BLOCK, Duals, DualSamples, DualSums, dual_pass
from locole.regressors import ElasticNetRegressor, direct
from locole.targets import Targets


@pytest.fixture(autouse=True)
def iterate(monkeypatch):
    """No problem is small enough to be solved directly."""
    monkeypatch.setattr(direct, "_SMALL", 0)


def rows(n_samples: int = 700, n_features: int = 400, *, seed: int = 0) -> sp.csr_array:
    rng = np.random.default_rng(seed)
    X = sp.random_array((n_samples, n_features), density=0.05, rng=rng, format="csr")
    return X.astype(np.float32)


def problem(n_outputs: int = 5, *, seed: int = 0) -> tuple[sp.csr_array, np.ndarray]:
    X, rng = rows(seed=seed), np.random.default_rng(seed)
    Y = X @ rng.normal(size=(400, n_outputs)) + 0.1 * rng.normal(size=(700, n_outputs))
    return X, Y.astype(np.float32)


def dense(weights) -> np.ndarray:
    return weights.toarray() if sp.issparse(weights) else weights


def objective(W: np.ndarray, X, Y, l1: float, l2: float) -> float:
    return float(np.square(X @ W - Y).sum() + l1 * np.abs(W).sum() + l2 * np.square(W).sum())


def optimum(X, Y, l1: float, l2: float) -> np.ndarray:
    """Normal equations for ridge, scikit-learn's coordinate descent otherwise."""
    if l1 == 0:
        gram = (X.T @ X).toarray().astype(np.float64)
        return np.linalg.solve(gram + l2 * np.eye(X.shape[1]), X.T @ Y.astype(np.float64))
    first, second = l1 / (2 * len(Y)), l2 / len(Y)
    model = ElasticNet(
        alpha=first + second,
        l1_ratio=first / (first + second),
        fit_intercept=False,
        tol=1e-8,
        max_iter=10_000,
    )
    return np.array([model.fit(X.astype(np.float64), y).coef_ for y in Y.T]).T


def visits(model: ElasticNetRegressor, n_samples: int) -> float:
    """Passes' worth of samples visited."""
    return sum(r["examples_per_s"] * r["cpu_s"] for r in model.history_) / n_samples


@pytest.mark.parametrize(("l1", "l2"), [(0.0, 0.1), (0.0, 1.0), (0.3, 0.5), (0.05, 0.1)])
def test_the_same_optimum_with_and_without(l1, l2):
    X, Y = problem()
    model = ElasticNetRegressor(l1=l1, l2=l2, tol=1e-7, max_passes=500, fit_intercept=False)
    whole, short = (
        model.set_params(shrinking=shrinking).fit(X, Y).coef_.T.copy()
        for shrinking in (False, True)
    )
    best = objective(optimum(X, Y, l1, l2), X, Y, l1, l2)
    for W in (whole, short):
        assert objective(dense(W), X, Y, l1, l2) <= best * (1 + 1e-4)
    np.testing.assert_allclose(dense(short), dense(whole), atol=5e-3)


@settings(max_examples=10)
@given(st.integers(2, 60), st.integers(1, 40), st.sampled_from([0.0, 0.05]), st.integers(0, 999))
def test_no_solution_beats_it(n_samples, n_features, l1, seed):
    rng = np.random.default_rng(seed)
    X = sp.csr_array(rng.standard_normal((n_samples, n_features)) / np.sqrt(n_features))
    Y = rng.standard_normal((n_samples, 2))
    ours = ElasticNetRegressor(
        l1=l1, l2=1.0, tol=1e-9, max_passes=200, shrinking=True, fit_intercept=False
    ).fit(X, Y)
    best = objective(optimum(X, Y, l1, 1.0), X, Y, l1, 1.0)
    assert objective(dense(ours.coef_.T), X, Y, l1, 1.0) <= best * (1 + 1e-4) + 1e-9


def test_it_stops_on_a_pass_over_all_samples():
    """The true gap, from the weights alone, is what the last record says or less."""
    X, Y = problem()
    tol, l2 = 1e-4, 0.1
    model = ElasticNetRegressor(l2=l2, tol=tol, max_passes=500, fit_intercept=False).fit(X, Y)
    norm = np.square(Y).sum()
    best = objective(optimum(X, Y, 0, l2), X, Y, 0, l2)
    assert model.history_[-1]["gap"] <= tol
    assert objective(model.coef_.T, X, Y, 0, l2) - best <= tol * norm
    objectives = [record["objective"] for record in model.history_]
    assert objectives == sorted(objectives)
    assert objectives[-1] * norm <= best * (1 + 1e-5)


def test_hard_samples_are_visited_more_often():
    """A few samples that share one feature are slow; the others, each with its own, are not."""
    hard = sp.csr_array(np.ones((20, 1)) + 0.3 * np.random.default_rng(0).normal(size=(20, 1)))
    X = sp.csr_array(sp.block_diag([hard, sp.eye_array(500)]))
    Y = np.random.default_rng(1).normal(size=(520, 3))
    model = ElasticNetRegressor(l2=1e-2, tol=1e-6, max_passes=2_000, fit_intercept=False)
    whole = visits(model.set_params(shrinking=False).fit(X, Y), 520)
    short = visits(model.set_params(shrinking=True).fit(X, Y), 520)
    assert short < 0.75 * whole


@pytest.mark.parametrize("l1", [0.0, 0.01])
def test_threads_change_no_bit(l1):
    X = rows()
    targets = Targets(np.random.default_rng(0).integers(40, size=700), Kerdock(40, dim=256))
    first, *others = (
        ElasticNetRegressor(l1=l1, l2=0.1, max_passes=5, shrinking=True, n_jobs=n).fit(X, targets)
        for n in (1, 2, 4)
    )
    for other in others:
        np.testing.assert_array_equal(dense(first.coef_.T), dense(other.coef_.T))
        assert [r["gap"] for r in first.history_] == [r["gap"] for r in other.history_]


@pytest.mark.parametrize(
    ("tol", "same_as"), [(0, False), (1e-2, False), (1e-3, False), (9e-4, True), (1e-6, True)]
)
def test_auto_shrinks_for_tight_tolerances(tol, same_as):
    X, Y = problem()
    model = ElasticNetRegressor(l2=0.1, tol=tol, max_passes=6, fit_intercept=False)
    auto = model.fit(X, Y).coef_.T.copy()
    np.testing.assert_array_equal(auto, model.set_params(shrinking=same_as).fit(X, Y).coef_.T)


def test_the_chosen_penalty_does_not_depend_on_it():
    X, Y = problem()
    chosen = {
        ElasticNetRegressor(max_passes=1, shrinking=shrinking).fit(X, Y).l2_
        for shrinking in (True, False, "auto")
    }
    assert len(chosen) == 1


def test_nothing_to_learn():
    model = ElasticNetRegressor(l2=1.0, tol=0, max_passes=4, shrinking=True)
    model.fit(rows(50, 30), np.zeros((50, 3)))
    assert (model.coef_.T == 0).all()
    assert [record["gap"] for record in model.history_] == [0.0]


def test_one_sample_is_never_above_the_mean():
    """Then the short passes are empty."""
    model = ElasticNetRegressor(l2=1.0, tol=0, max_passes=5, shrinking=True, fit_intercept=False)
    model.fit(np.full((1, 3), 0.1), np.full((1, 2), 0.3))
    np.testing.assert_allclose(model.predict(np.full((1, 3), 0.1)), 0.3 * 0.03 / 1.03, rtol=1e-4)
    assert visits(model, 1) == pytest.approx(len(model.history_))


def test_weights_of_samples_and_more_rows():
    X, Y = problem()
    weight = np.random.default_rng(0).random(700) * 2
    fits = [
        ElasticNetRegressor(l2=0.5, tol=1e-8, max_passes=500, shrinking=shrinking)
        .fit(X[:500], Y[:500], sample_weight=weight[:500])
        .partial_fit(X[500:], Y[500:], sample_weight=weight[500:])
        for shrinking in (True, False)
    ]
    np.testing.assert_allclose(fits[0].coef_.T, fits[1].coef_.T, atol=2e-3)


@pytest.mark.parametrize("shrinking", ["yes", None, 2, 0.5, [True]])
def test_bad_values(shrinking):
    X, Y = problem()
    with pytest.raises(LocoleError, match=r"shrinking must be True, False or 'auto', not"):
        ElasticNetRegressor(shrinking=shrinking).fit(X, Y)


def test_parts_of_the_gap():
    """At zero duals and with each feature in one sample, a part is the squared length of a target."""
    X = sp.csr_array(sp.eye_array(7, dtype=np.float32))
    table = np.random.default_rng(0).normal(size=(3, BLOCK)).astype(np.float32)
    codes = np.array([0, 1, 2, 0, 1, 2, 0])
    weights = np.arange(1, 8, dtype=np.float32)
    squares, gains = np.empty((2, BLOCK), dtype=np.float32)
    parts = np.full(7, -1.0, dtype=np.float32)
    duals = [np.zeros(7 * BLOCK, dtype=np.float32) for _ in range(2)]
    order = np.array([5, 0, 3])
    ones = np.ones(7, dtype=np.float32)
    samples, sums = DualSamples(weights, ones, ones, codes), DualSums(squares, gains, parts)
    penalty = np.float32(0), np.float32(1)
    dual_pass(Csr.of(X), order, samples, table.ravel(), *penalty, Duals(*duals), sums)
    expected = weights * np.square(table[codes].astype(np.float64)).sum(axis=1)
    np.testing.assert_allclose(parts[order], expected[order], rtol=1e-5)
    assert (np.delete(parts, order) == -1).all()
    assert squares.sum() == pytest.approx(expected[order].sum(), rel=1e-5)
