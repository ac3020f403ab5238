"""Weights by the number of rows of a label: what they gain, and that they follow labels that change."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from locole import LocoleClassifier, load
from locole.datasets import make_topics
from locole.exceptions import ModelFileError
from locole.label_past import Relabelling
from locole.samples import Rows, Samples
from locole.scoring.frequencies import FrequencyWeights
from locole.scoring.weights import FREQUENCIES, fit_curves, frequency_shares

COUNTS = st.lists(st.integers(0, 10**7), min_size=1, max_size=20).map(np.array)


@cache
def rare_labels():
    """Many labels, of which half have one or two rows."""
    return make_topics(11_000, 3_000, 2_500, nnz_per_row=20, noise=0.5, power=1.1, test_size=1_000)


@pytest.fixture(scope="module")
def fitted():
    data = rare_labels()
    return LocoleClassifier(factors=False, nearest=False).fit(data.X_train, data.y_train)


@given(counts=COUNTS)
def test_shares_are_those_of_a_line_between_corners(counts):
    shares = frequency_shares(counts)
    np.testing.assert_allclose(shares.sum(axis=-1), 1)
    assert (shares >= 0).all()
    assert ((shares > 0).sum(axis=-1) <= 2).all()
    scale = np.log2(counts.clip(0.5, FREQUENCIES[-1]))
    np.testing.assert_allclose(shares @ np.log2(FREQUENCIES.clip(0.5)), scale, atol=1e-12)


@given(seed=st.integers(0, 2**32 - 1))
def test_curves_have_the_smallest_loss(seed):
    """Against another solver, with the loss written out."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(30, 4, 2))
    counts = rng.choice([0, 1, 2, 5, 64, 5000], size=(30, 4))
    right = np.arange(4) == rng.integers(0, 4, size=(30, 1))
    valid = np.ones_like(right)
    weights, shares = np.array([0.5, 1.5]), frequency_shares(counts)
    spread = scores.reshape(-1, 2).std(axis=0)

    def loss(flat):
        curves = flat.reshape(2, -1)
        logits = (scores * (shares @ curves.T)).sum(axis=-1)
        likely = logits[right] - np.log(np.exp(logits).sum(axis=1))
        away = (curves - weights[:, None]) * spread[:, None]
        return -likely.mean() + 5e-4 * np.square(away).sum()

    found = fit_curves(scores, counts, right, valid, weights)
    assert (found >= 0).all()
    best = minimize(loss, np.repeat(weights, 6), bounds=[(0, None)] * 12)
    assert loss(found.ravel()) <= best.fun + 1e-5


def test_without_a_right_candidate_weights_stay():
    nothing = np.zeros((3, 2), dtype=bool)
    counts = np.ones((3, 2), dtype=np.int64)
    found = fit_curves(np.ones((3, 2, 2)), counts, nothing, ~nothing, np.array([1.0, 2.0]))
    np.testing.assert_array_equal(found, np.repeat([[1.0], [2.0]], 6, axis=1))


def test_rare_labels_gain(fitted):
    data, ensemble = rare_labels(), fitted.scorer_
    assert ensemble.frequencies_.curves is not None
    is_rare = ensemble.frequencies_.rows[np.searchsorted(fitted.classes_, data.y_test)] <= 2
    assert 50 < is_rare.sum() < 900
    same = LocoleClassifier(factors=False, nearest=False).fit(data.X_train, data.y_train)
    same.scorer_.frequencies_ = ensemble.frequencies_.with_curves(None)
    right, before = (m.predict(data.X_test) == data.y_test for m in (fitted, same))
    assert right[is_rare].mean() > before[is_rare].mean()
    assert right.mean() >= before.mean()


def test_few_validation_rows_say_nothing_of_frequencies():
    data = rare_labels()
    some = LocoleClassifier(factors=False).fit(data.X_train[:5_000], data.y_train[:5_000])
    assert some.scorer_.frequencies_.curves is None


def test_all_scores_and_explanations_are_of_the_same_weights(fitted):
    X = rare_labels().X_test[:40]
    labels, scores = fitted.predict_topk(X, k=5)
    codes = np.searchsorted(fitted.classes_, labels)
    every = np.take_along_axis(fitted.decision_function(X), codes, 1)
    np.testing.assert_allclose(every, scores, rtol=1e-5)
    found = fitted.scorer_.explain(Rows(sp.csr_array(X)), codes)
    total = sum(found.others.values(), start=np.zeros(codes.shape))
    for row, part in enumerate(np.split(found.features, X.indptr[1:-1])):
        total[row] += part.sum(axis=0)
    np.testing.assert_allclose(total, scores, rtol=1e-5, atol=1e-5)


def test_they_are_saved(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    X = rare_labels().X_test[:100]
    np.testing.assert_array_equal(loaded.decision_function(X), fitted.decision_function(X))


def test_rows_are_counted_as_labels_change():
    X = np.zeros((4, 1))
    known = FrequencyWeights(np.array([2, 1, 5]))
    more = known.with_rows(Samples(X, np.array([3, 0, 3, 1]), 4))
    assert more.rows.tolist() == [3, 2, 5, 2]
    assert more.with_rows(Samples(X, np.array([3, 0, 3, 3]), 4), -1).rows.tolist() == [2, 2, 5, 0]
    change = Relabelling.of(4, merged={3: 0}, retired=[1])
    assert more.relabelled(change).rows.tolist() == [5, 5]


@pytest.mark.parametrize(
    "state",
    [
        {},
        {"rows": np.array([1]), "curves": None, "more": 1},
        {"rows": [1, 2], "curves": None},
        {"rows": np.array([-1]), "curves": None},
        {"rows": np.array([1.0]), "curves": None},
        {"rows": np.array([[1]]), "curves": None},
        {"rows": np.array([1]), "curves": np.full((1, 6), np.nan)},
        {"rows": np.array([1]), "curves": np.full((1, 6), -1.0)},
        {"rows": np.array([1]), "curves": np.ones((1, 4))},
        {"rows": np.array([1]), "curves": np.ones((1, 6), dtype=np.float32)},
        {"rows": np.array([1]), "curves": "text"},
    ],
)
def test_invalid_files_are_refused(state):
    with pytest.raises(ModelFileError, match=r"how many rows its labels have|are invalid"):
        FrequencyWeights._from_state(state)
