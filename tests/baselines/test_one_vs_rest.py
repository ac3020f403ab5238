"""One against the rest: the weights are those of scikit-learn, label by label."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import prototypes, words
from same import assert_same_bits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Perceptron, RidgeClassifier, SGDClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import MultinomialNB
from sklearn.neighbors import NearestCentroid
from sklearn.svm import SVC, LinearSVC

from locole import load
from locole.baselines import LinearOneVsRest
from locole.exceptions import LocoleError

X, y = words()
# Some estimators take short indices only.
X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)

ESTIMATORS = {
    "svm": LinearSVC(C=0.5, random_state=0),
    "no intercept": LinearSVC(fit_intercept=False, random_state=0),
    "logistic": LogisticRegression(),
    "ridge": RidgeClassifier(),
    "sgd": SGDClassifier(alpha=1e-3, random_state=0),
    "perceptron": Perceptron(penalty="l1", alpha=1e-4, random_state=0),
    "linear kernel": SVC(kernel="linear"),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_margins_are_those_of_scikit_learn(name):
    estimator = ESTIMATORS[name]
    model = LinearOneVsRest(estimator, min_weight=0).fit(X[:300], y[:300])
    other = OneVsRestClassifier(estimator).fit(X[:300], y[:300])
    expected = other.decision_function(X[300:])
    labels, scores = model.predict_topk(X[300:], k=40)
    np.testing.assert_allclose(scores, -np.sort(-expected, axis=1), rtol=1e-4, atol=1e-3)
    found = np.take_along_axis(expected, labels, axis=1)
    np.testing.assert_allclose(scores, found, rtol=1e-4, atol=1e-3)


@settings(max_examples=10)
@given(st.integers(2, 12), st.floats(0, 0.3))
def test_weights_below_the_threshold_are_gone(n_classes, threshold):
    some, labels = words(n_classes=n_classes, n_samples=60, n_features=40)
    every = LinearOneVsRest(min_weight=0).fit(some, labels).coef_.T.toarray()
    kept = LinearOneVsRest(min_weight=threshold).fit(some, labels).coef_.T
    np.testing.assert_array_equal(kept.toarray(), np.where(abs(every) < threshold, 0, every))
    assert (kept.data != 0).all()


def test_the_default_is_the_squared_hinge():
    """The gradient of ½‖w‖² + ½b² + Σ max(0, 1 − s(⟨w, x⟩ + b))² vanishes."""
    model = LinearOneVsRest(LinearSVC(tol=1e-8, max_iter=100_000), min_weight=0).fit(X, y)
    default = LinearOneVsRest(min_weight=0).fit(X, y)
    W, b = model.coef_.T.toarray().astype(float), model.intercept_.astype(float)
    signs = np.where(y[:, None] == np.arange(40), 1.0, -1.0)
    slack = np.maximum(0, 1 - signs * (X @ W + b))
    np.testing.assert_allclose(W, 2 * (X.T @ (signs * slack)), atol=1e-4)
    np.testing.assert_allclose(b, 2 * (signs * slack).sum(axis=0), atol=1e-3)
    np.testing.assert_allclose(default.coef_.T.toarray(), W, atol=0.05)


def test_threads_and_blocks_change_no_bit(monkeypatch):
    plain = LinearOneVsRest(SGDClassifier()).fit(X, y)
    many = LinearOneVsRest(SGDClassifier(), n_jobs=3).fit(X, y)
    assert_same_bits(many.coef_.T, plain.coef_.T)
    monkeypatch.setattr("locole.baselines.one_vs_rest._BLOCK_LABELS", 3)
    assert_same_bits(LinearOneVsRest(SGDClassifier()).fit(X, y).coef_.T, plain.coef_.T)
    other = LinearOneVsRest(SGDClassifier(), random_state=1).fit(X, y)
    assert (other.coef_.T != plain.coef_.T).nnz


def test_an_estimator_keeps_its_own_seed():
    given = SGDClassifier(random_state=5)
    one, two = (LinearOneVsRest(given, random_state=seed).fit(X, y) for seed in (0, 1))
    assert_same_bits(one.coef_.T, two.coef_.T)
    assert not hasattr(given, "coef_")


def test_labels_that_do_not_converge_are_counted_once():
    dense, labels = prototypes(n_classes=5)
    with pytest.warns(
        ConvergenceWarning, match=r"5 of 5 labels did not converge: scale X"
    ) as caught:
        LinearOneVsRest(LinearSVC(max_iter=1, tol=1e-9)).fit(100 * dense, labels)
    assert len(caught) == 1


class Talkative(LinearSVC):
    """Says something else."""

    def fit(self, X, y):
        warnings.warn("as an aside", UserWarning, stacklevel=2)
        return super().fit(X, y)


def test_other_warnings_pass():
    with pytest.warns(UserWarning, match="as an aside"):
        LinearOneVsRest(Talkative()).fit(X, y)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"min_weight": -1}, "min_weight must be a number of at least 0"),
        ({"min_weight": float("inf")}, "min_weight must be a number"),
        ({"random_state": None}, "random_state must be a whole number"),
        (
            {"estimator": "svm"},
            "estimator must be None or an object with fit and get_params, not 'svm'",
        ),
        ({"estimator": LinearSVC}, "estimator must be a classifier of scikit-learn"),
        ({"estimator": MultinomialNB()}, "estimator MultinomialNB leaves no coef_"),
        ({"estimator": NearestCentroid(metric="manhattan")}, "estimator NearestCentroid leaves no"),
    ],
)
def test_settings_that_cannot_be(changes, message):
    with pytest.raises(LocoleError, match=message):
        LinearOneVsRest(**changes).fit(abs(X), y)


def test_an_estimator_of_dense_rows_only():
    with pytest.raises(LocoleError, match="takes no sparse rows"):
        LinearOneVsRest(LinearDiscriminantAnalysis()).fit(X, y)


def test_long_indices_are_taken():
    long = X.copy()
    long.indices, long.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    assert_same_bits(LinearOneVsRest().fit(long, y).coef_.T, LinearOneVsRest().fit(X, y).coef_.T)


def test_files_hold_weights_and_not_the_estimator(tmp_path):
    model = LinearOneVsRest(RidgeClassifier(), min_weight=0.001).fit(X, y)
    model.save(tmp_path / "m")
    back = load(tmp_path / "m")
    assert back.estimator is None
    assert back.min_weight == 0.001
    assert_same_bits(list(back.predict_topk(X, k=9)), list(model.predict_topk(X, k=9)))


def test_memory_is_that_of_the_weights_that_stay():
    """Ten thousand features, of which a label needs a few."""
    rng = np.random.default_rng(0)
    columns = np.concatenate([np.arange(60) * 3 + 9000, rng.integers(0, 9000, 60)])
    rows = np.concatenate([np.arange(60), np.arange(60)])
    some = sp.csr_array((np.ones(120), (rows, columns)), shape=(60, 10_000))
    model = LinearOneVsRest(min_weight=0.2).fit(some, np.arange(60) // 2)
    assert model.coef_.T.nnz < 60 * 6
    assert model.score(some, np.arange(60) // 2) == 1
