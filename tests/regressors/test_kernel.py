"""Kernel ridge regression against scikit-learn's, brute force and its own equations."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import words
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import normalize

from locole.embeddings import Kerdock
from locole.exceptions import LocoleError, ModelFileError
from locole.io import read_model, write_model
from locole.regressors import KernelRegressor
from locole.regressors import kernel as module
from locole.regressors.kernel import leave_one_out, similarities
from locole.sparse_rows import unit_rows
from locole.targets import Targets

X, y = words(n_samples=160, n_features=90)
X = sp.csr_array(X, dtype=np.float32)
NEW = words(n_samples=200, n_features=90)[0][160:]
EMBEDDING = Kerdock(40, dim=16)
TARGETS = Targets(y, EMBEDDING)
Y = TARGETS.rows(slice(None)).astype(np.float64)
WEIGHT = np.random.default_rng(0).random(160) + 0.2


def expected(gamma, l2, weight=None):
    """By scikit-learn, which has neither unit rows nor a mean."""
    mean = np.average(Y, axis=0, weights=weight)
    U, V = (normalize(part.toarray().astype(np.float64)) for part in (X, NEW))
    ridge = KernelRidge(alpha=l2, kernel="precomputed")
    ridge.fit(rbf_kernel(U, U, gamma), Y - mean, sample_weight=weight)
    return ridge.predict(rbf_kernel(V, U, gamma)) + mean


@pytest.mark.parametrize(("gamma", "l2"), [(1.0, 0.3), (0.4, 2.0)])
@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_points_are_those_of_scikit_learn(gamma, l2, weight):
    model = KernelRegressor(gamma=gamma, l2=l2).fit(X, TARGETS, sample_weight=weight)
    np.testing.assert_allclose(model.predict(NEW), expected(gamma, l2, weight), atol=2e-5)


@given(gamma=st.floats(0.1, 3), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=20)
def test_similarities_are_gaussian(gamma, seed):
    rng = np.random.default_rng(seed)
    U, V = (
        normalize(rng.random((n, 7)) * (rng.random((n, 7)) < 0.5)).astype(np.float32)
        for n in (5, 19)
    )
    U[:, 0], V[:, 0] = np.maximum(U[:, 0], 0.1), np.maximum(V[:, 0], 0.1)  # no empty rows
    U, V = normalize(U), normalize(V)
    found = similarities(sp.csr_array(U), sp.csr_array(V), gamma)
    np.testing.assert_allclose(found, rbf_kernel(U, V, gamma), rtol=1e-4)


def test_rows_are_left_out_one_by_one():
    K = similarities(unit_rows(X), unit_rows(X), 1.0)[:40, :40].astype(np.float64)
    some, weight = Y[:40], WEIGHT[:40]
    found = leave_one_out(K, some, weight, np.array([0.1, 3.0]))
    for loss, l2 in zip(found, (0.1, 3.0), strict=True):
        total = 0.0
        for i in range(40):
            rest = np.delete(np.arange(40), i)
            A = K[np.ix_(rest, rest)] + np.diag(l2 / weight[rest])
            error = some[i] - K[i, rest] @ np.linalg.solve(A, some[rest])
            total += weight[i] * error @ error
        assert loss == pytest.approx(total / (weight @ (some**2).sum(axis=1)))


def test_the_penalty_with_the_smallest_error_is_taken():
    model = KernelRegressor().fit(X, TARGETS)
    best = min(model.history_, key=lambda record: record["loss"])
    assert model.l2_ == best["l2"]
    assert best["loss"] < 1 < max(record["loss"] for record in model.history_) + 0.5


@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_later_rows_are_learnt_as_if_they_had_been_there(weight):
    """Equations of all rows are solved again, with targets that the model knows."""
    parts = [slice(0, 120), slice(120, 160)]
    model = KernelRegressor(l2=0.5)
    for part in parts:
        some = None if weight is None else weight[part]
        model.partial_fit(X[part], Targets(y[part], EMBEDDING), sample_weight=some)
    whole = KernelRegressor(l2=0.5).fit(X, TARGETS, sample_weight=weight)
    assert model.centres_.shape == whole.centres_.shape
    # But for the mean target, which is that of the first rows.
    np.testing.assert_allclose(model.predict(NEW), whole.predict(NEW), atol=0.02)


def test_a_few_later_rows_leave_the_others_as_they_are():
    model = KernelRegressor(l2=0.5).fit(X[:155], Targets(y[:155], EMBEDDING))
    kept, before = model._weights.copy(), model.predict(X[155:])
    model.partial_fit(X[155:], Targets(y[155:], EMBEDDING))
    np.testing.assert_array_equal(model._weights[:155], kept)
    after = model.predict(X[155:])
    assert np.square(after - Y[155:]).sum() < np.square(before - Y[155:]).sum()


def test_drawn_centres_solve_least_squares():
    model = KernelRegressor(l2=0.5, n_centres=50).fit(X, TARGETS, sample_weight=WEIGHT)
    K = similarities(unit_rows(X), model.centres_, 1.0).astype(np.float64)
    inner = similarities(model.centres_, model.centres_, 1.0).astype(np.float64)
    mean = np.average(Y, axis=0, weights=WEIGHT)
    A = K.T @ (WEIGHT[:, None] * K) + 0.5 * inner
    A += 1e-6 * np.trace(A) / 50 * np.eye(50)
    beta = np.linalg.solve(A, K.T @ (WEIGHT[:, None] * (Y - mean)))
    np.testing.assert_allclose(model.predict(X), K @ beta + mean, atol=1e-3)


def test_all_rows_are_centres_up_to_a_number(monkeypatch):
    monkeypatch.setattr(module, "_ALL", 100)
    monkeypatch.setattr(module, "_DRAWN", 30)
    assert KernelRegressor(l2=1.0).fit(X, TARGETS).centres_.shape[0] == 30
    model = KernelRegressor(l2=1.0).fit(X[:80], Targets(y[:80], EMBEDDING))
    assert model.centres_.shape[0] == 80
    model.partial_fit(X[80:], Targets(y[80:], EMBEDDING))  # too many to be solved again
    assert model.centres_.shape[0] == 160


@pytest.mark.parametrize(("storage", "error"), [("float16", 1e-3), ("int8", 0.05)])
def test_fewer_bits(storage, error):
    whole = KernelRegressor(l2=0.5).fit(X, TARGETS).predict(NEW)
    small = KernelRegressor(l2=0.5, storage=storage).fit(X, TARGETS).predict(NEW)
    np.testing.assert_allclose(small, whole, atol=error)


def test_room_for_more_features_and_outputs():
    model = KernelRegressor(l2=0.5, storage="float16").fit(X, TARGETS)
    before = model.predict(NEW)
    model.grow(95, 21)
    wider = sp.csr_array((NEW.data, NEW.indices, NEW.indptr), shape=(NEW.shape[0], 95))
    after = model.predict(wider)
    np.testing.assert_array_equal(after[:, :16], before)
    assert not after[:, 16:].any()
    more = np.eye(21)[np.full(NEW.shape[0], 20)]
    model.partial_fit(wider, more)
    assert model.predict(wider)[:, 20].mean() > 0.3


def test_rows_that_are_too_alike():
    same = sp.csr_array(np.ones((60, 3), dtype=np.float32))
    with pytest.raises(LocoleError, match="take a larger l2"):
        KernelRegressor(l2=1e-18).fit(same, np.arange(60.0))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("centres_", sp.csr_array(2 * unit_rows(X))),
        ("centres_", sp.csr_array(unit_rows(X)[:9])),
        ("intercept_", np.zeros(3)),
        ("weight_", np.zeros(160)),
        ("_scales", np.ones(160, dtype=np.float32)),
        ("l2_", 0.0),
        ("n_outputs_", 17),
    ],
)
def test_damaged_files(name, value, tmp_path):
    model = KernelRegressor(l2=0.5).fit(X, TARGETS)
    setattr(model, name, value)
    write_model(tmp_path / "m", model)
    with pytest.raises(ModelFileError):
        read_model(tmp_path / "m")
