"""MACH: hashes that are universal, buckets that are learnt, sums that are exact."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from problems import prototypes, words
from same import assert_same_bits
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from locole import load
from locole.baselines import MACH
from locole.baselines.buckets import BucketTargets, block_softmax, hashed
from locole.exceptions import LocoleError
from locole.regressors import ElasticNetRegressor, SoftmaxRegressor

X, y = words()

GOLDEN = [[0, 4, 4], [3, 4, 3], [1, 1, 2], [4, 1, 3], [2, 1, 2], [0, 3, 1]]


def estimates(model, X):
    """The paper's estimator for every label, from the weights, one repetition after the other."""
    R, B = model.intercept_.shape
    total = np.zeros((X.shape[0], model.classes_.size))
    for j in range(R):
        outputs = X @ model.coef_[j].T.astype(float) + model.intercept_[j]
        total += (softmax(outputs, axis=1) if model._is_softmax else outputs)[
            :, model.buckets_[:, j]
        ]
    return B / (B - 1) * (total / R - 1 / B)


@pytest.mark.parametrize("regressor", ["softmax", "elastic_net"])
@pytest.mark.parametrize(("B", "R"), [(2, 1), (3, 7), (32, 4)])
def test_scores_are_the_estimates_of_the_paper(regressor, B, R):
    model = MACH(n_buckets=B, n_repetitions=R, regressor=regressor).fit(X[:300], y[:300])
    expected = estimates(model, X[300:])
    for k in (1, 4, 40):
        labels, scores = model.predict_topk(X[300:], k=k)
        np.testing.assert_allclose(scores, -np.sort(-expected, axis=1)[:, :k], atol=3e-5)
        found = np.take_along_axis(expected, labels, axis=1)
        np.testing.assert_allclose(scores, found, atol=3e-5)


def test_more_labels_than_one_block(monkeypatch):
    some, labels = words(n_classes=100, n_samples=300)
    model = MACH(n_buckets=4, n_repetitions=9).fit(some, labels)
    expected = list(model.predict_topk(some, k=100))
    monkeypatch.setattr("locole.baselines.mach._BLOCK_LABELS", 7)
    assert_same_bits(list(model.predict_topk(some, k=100)), expected)


def test_hashes_are_2_universal():
    """Over many functions two labels meet about once in B; every bucket is used alike."""
    B, R, n = 8, 4000, 30
    buckets = hashed(n, n_buckets=B, n_repetitions=R, seed=0)
    assert buckets.shape == (n, R)
    assert buckets.min() == 0
    assert buckets.max() == B - 1
    for a in range(0, n, 3):
        share = np.bincount(buckets[a], minlength=B) / R
        np.testing.assert_allclose(share, 1 / B, atol=5 * np.sqrt(1 / B / R))
        for b in range(a):
            meets = (buckets[a] == buckets[b]).mean()
            assert meets < 1 / B + 5 * np.sqrt(1 / B / R)


def test_hashes_never_change():
    """Model files hold the buckets, but a seed should give the same model in all versions."""
    assert hashed(6, n_buckets=5, n_repetitions=3, seed=7).tolist() == GOLDEN


def test_many_labels_are_told_apart():
    buckets = hashed(200_000, n_buckets=32, n_repetitions=25, seed=0)
    assert np.unique(buckets, axis=0).shape[0] == 200_000


@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(2, 6), st.sampled_from([0.0, 0.3]))
def test_losses_and_gradients_of_the_buckets(seed, R, B, smoothing):
    rng = np.random.default_rng(seed)
    codes, buckets = rng.integers(0, 9, 4), hashed(9, n_buckets=B, n_repetitions=R, seed=seed)
    targets = BucketTargets(codes, buckets, B)
    Z = rng.standard_normal((4, R * B))
    loss, gradient = targets.softmax(label_smoothing=smoothing)(Z, codes)
    wanted = (1 - smoothing) * targets.rows(slice(None)) + smoothing / B
    logs = Z.reshape(4, R, B) - np.log(np.exp(Z).reshape(4, R, B).sum(axis=2, keepdims=True))
    np.testing.assert_allclose(loss, -(wanted * logs.reshape(4, -1)).sum(axis=1), rtol=1e-6)
    np.testing.assert_allclose(gradient, np.exp(logs).reshape(4, -1) - wanted, atol=1e-6)


@given(st.integers(1, 5), st.integers(2, 6), st.data())
def test_targets_by_rows_and_by_blocks_agree(R, B, data):
    codes = np.arange(11) % 7
    targets = BucketTargets(codes, hashed(7, n_buckets=B, n_repetitions=R, seed=1), B)
    start = data.draw(st.integers(0, R * B - 1))
    stop = data.draw(st.integers(start + 1, R * B))
    rows = targets.rows(slice(None))
    assert targets.shape == rows.shape == (11, R * B)
    assert (rows.reshape(11, R, B).sum(axis=2) == 1).all()
    assert (targets.table(start, stop)[codes] == rows[:, start:stop]).all()


def test_the_softmax_of_huge_numbers():
    shares, logs = block_softmax(np.array([[1e4, 0, -1e4, -1e4]], dtype=np.float32), 2)
    assert shares.tolist() == [[1, 0, 0.5, 0.5]]
    assert np.isfinite(logs).all()


def test_it_learns_buckets_as_logistic_regression_does():
    """One repetition: the buckets' probabilities are those of another library's softmax."""
    some, labels = prototypes(n_classes=12, n_samples=600, n_features=20, noise=3.0)
    regressor = SoftmaxRegressor(
        epochs=400,
        learning_rate=0.5,
        batch_size=50,
        l2=0.01,
        label_smoothing=0,
        prior=0,
        fit_intercept=False,
    )
    model = MACH(n_buckets=4, n_repetitions=1, regressor=regressor).fit(some, labels)
    other = LogisticRegression(C=1 / (0.01 * 600), fit_intercept=False, tol=1e-8, max_iter=1000)
    other.fit(some, model.buckets_[labels, 0])
    ours = softmax(some @ model.coef_[0].T.astype(float), axis=1)[:, np.unique(model.buckets_)]
    np.testing.assert_allclose(ours, other.predict_proba(some), atol=0.02)


def test_more_repetitions_do_better():
    some, labels = words(n_classes=150, n_samples=3000, n_features=900)
    scores = [
        MACH(n_buckets=8, n_repetitions=R).fit(some[:2000], labels[:2000])
        .score(some[2000:], labels[2000:])
        for R in (2, 12)
    ]  # fmt: skip
    assert scores[1] > scores[0] + 0.1


def test_an_empty_row_ties_all_labels():
    model = MACH().fit(X, y)
    labels, scores = model.predict_topk(sp.csr_array((2, X.shape[1])), k=40)
    assert labels.tolist() == [list(range(40))] * 2
    np.testing.assert_allclose(scores, 0, atol=1e-6)


def test_sparse_weights_are_taken():
    model = MACH(regressor=ElasticNetRegressor(l1=0.2, l2=0.1), n_repetitions=5).fit(X, y)
    assert 0 < np.count_nonzero(model.coef_) < 0.9 * model.coef_.size
    np.testing.assert_allclose(
        model.predict_topk(X, k=40)[1], -np.sort(-estimates(model, X), axis=1), atol=3e-5
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_buckets": 1}, "n_buckets must be a whole number of at least 2, not 1"),
        ({"n_buckets": 4.0}, "n_buckets must be a whole number"),
        ({"n_repetitions": 0}, "n_repetitions must be a whole number of at least 1"),
        ({"n_repetitions": True}, "n_repetitions must be a whole number"),
        ({"random_state": None}, "random_state must be a whole number"),
        (
            {"regressor": "svm"},
            "regressor must be 'elastic_net', 'softmax', a SoftmaxRegressor or an",
        ),
        (
            {"regressor": LogisticRegression()},
            "regressor must be 'elastic_net', 'softmax', a SoftmaxRegressor or an",
        ),
        ({"regressor": SoftmaxRegressor(prior=1.0)}, "neither a prior nor sampled labels"),
        ({"regressor": SoftmaxRegressor(epochs=0)}, "epochs must be"),
    ],
)
def test_settings_that_cannot_be(changes, message):
    with pytest.raises(LocoleError, match=message):
        MACH(**changes).fit(X, y)


@pytest.mark.parametrize("scale", [1e-20, 1e14])
@pytest.mark.parametrize("regressor", ["softmax", "elastic_net"])
def test_tiny_and_huge_rows(scale, regressor):
    model = MACH(n_repetitions=4, regressor=regressor).fit(X, y)
    labels, scores = model.predict_topk(X * scale, k=3)
    assert np.isfinite(scores).all()
    assert np.isin(labels, y).all()


def test_files_hold_the_model_and_its_regressor(tmp_path):
    model = MACH(
        n_repetitions=3, regressor=SoftmaxRegressor(epochs=2, fit_intercept=True, prior=0.0)
    )
    model.fit(X, y).save(tmp_path / "m")
    back = load(tmp_path / "m")
    assert back.regressor.epochs == 2
    assert back.intercept_.any()
    assert_same_bits(list(back.predict_topk(X, k=9)), list(model.predict_topk(X, k=9)))
