"""Binary learners side by side: each of them is AROW or the averaged perceptron of its paper."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from locole.baselines.online import OnlineSettings, learn_online

SETTINGS = OnlineSettings("arow", epochs=3, r=1.0, seed=0, n_jobs=None, description=None)


def problem(seed, n=40, n_features=12, n_labels=7, n_outputs=70):
    """Sparse rows, labels, and what each output should say of each label."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, n_features)) * (rng.random((n, n_features)) < 0.4)
    signs = rng.choice([-1, 1], (n_labels, n_outputs)).astype(np.int8)
    return sp.csr_array(X.astype(np.float32)), rng.integers(0, n_labels, n), signs


def learn(X, codes, signs, **changes):
    settings = SETTINGS._replace(**changes)
    return learn_online(X, codes, lambda a, b: signs[:, a:b], signs.shape[1], settings)


def visits(settings, n):
    """Rows in the order in which they are seen."""
    rng = np.random.default_rng([settings.seed, n])
    return np.concatenate([rng.permutation(n) for _ in range(settings.epochs)])


def arow(X, y, order, r):
    """The paper's algorithm for one learner, with a full matrix of which the diagonal stays."""
    mean, cov = np.zeros(X.shape[1]), np.eye(X.shape[1])
    for i in order:
        x = X[i]
        margin, v = y[i] * (mean @ x), x @ cov @ x
        if margin <= 1:
            beta = 1 / (v + r)
            mean = mean + (1 - margin) * beta * y[i] * (cov @ x)
            cov = np.diag(np.diag(cov - beta * np.outer(cov @ x, cov @ x)))
    return mean


def averaged_perceptron(X, y, order):
    w = np.zeros(X.shape[1])
    total = np.zeros(X.shape[1])
    for i in order:
        if y[i] * (w @ X[i]) <= 0:
            w = w + y[i] * X[i]
        total += w
    return total / len(order)


@given(st.integers(0, 10**6), st.sampled_from([0.1, 1.0, 30.0]), st.integers(1, 4))
def test_each_output_is_arow(seed, r, epochs):
    X, codes, signs = problem(seed)
    W = learn(X, codes, signs, r=r, epochs=epochs, seed=seed)
    order = visits(SETTINGS._replace(epochs=epochs, seed=seed), X.shape[0])
    for output in (0, 15, 16, 31, 32, 69):
        expected = arow(X.toarray().astype(float), signs[codes, output].astype(float), order, r)
        np.testing.assert_allclose(W[:, output], expected, atol=2e-4 * max(1, abs(expected).max()))
    assert (W[:, 70:] == 0).all()


@given(st.integers(0, 10**6), st.integers(1, 4))
def test_each_output_is_an_averaged_perceptron(seed, epochs):
    """Whole numbers, so that no rounding moves a row to the other side."""
    X, codes, signs = problem(seed)
    X.data = np.rint(2 * X.data)
    W = learn(X, codes, signs, learner="perceptron", epochs=epochs, seed=seed)
    order = visits(SETTINGS._replace(epochs=epochs, seed=seed), X.shape[0])
    for output in (0, 33, 69):
        expected = averaged_perceptron(X.toarray(), signs[codes, output].astype(float), order)
        np.testing.assert_allclose(W[:, output], expected, atol=1e-4)


@pytest.mark.parametrize("learner", ["arow", "perceptron"])
def test_threads_and_progress_change_no_bit(learner, monkeypatch):
    monkeypatch.setattr("locole.baselines.online._CHUNK_ROWS", 7)
    X, codes, signs = problem(1, n_outputs=150)
    plain = learn(X, codes, signs, learner=learner)
    for n_jobs in (2, 3, 8):
        assert (learn(X, codes, signs, learner=learner, n_jobs=n_jobs) == plain).all()
    assert (learn(X, codes, signs, learner=learner, description="now") == plain).all()
    monkeypatch.setattr("locole.baselines.online._CHUNK_ROWS", 10**6)
    assert (learn(X, codes, signs, learner=learner) == plain).all()


def test_features_without_rows_and_rows_without_features():
    X = sp.csr_array((np.ones(2, np.float32), [3, 3], [0, 1, 1, 2]), shape=(3, 6))
    W = learn(X, np.array([0, 1, 0]), np.array([[1], [-1]], dtype=np.int8))
    assert (W[[0, 1, 2, 4, 5]] == 0).all()
    assert W[3, 0] > 0


@pytest.mark.parametrize("scale", [1e-12, 1e9])
def test_huge_rows_leave_finite_weights(scale):
    X, codes, signs = problem(2)
    W = learn(X * np.float32(scale), codes, signs)
    assert np.isfinite(W).all()
