"""Calibrated scores of labels without rows: the formula, the fit, every way to ask, hostile files."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize

from locole import LocoleClassifier, load
from locole.exceptions import ModelFileError
from locole.labels import LabelFeatures
from locole.scoring.names import UNSEEN
from locole.scoring.unseen import UnseenCalibration, best_mean

FINITE = st.floats(-100, 100, width=32)
N, SEEN, TERMS = 300, 270, 400


def make_names(rng):
    """Three terms of each label, of which others have some as well."""
    names = np.zeros((N, TERMS), dtype=np.float32)
    for row in names:
        row[rng.choice(TERMS, 3, replace=False)] = 1
    return sp.csr_array(names / np.sqrt(3))


NAMES = make_names(np.random.default_rng(0))


def make_rows(labels, seed):
    """Some terms of the label's text, and others."""
    rng = np.random.default_rng(seed)
    X = np.zeros((len(labels), TERMS), dtype=np.float32)
    for row, label in zip(X, labels, strict=True):
        own = NAMES[[label]].indices
        row[own[rng.random(3) < 0.7]] = 1
        row[rng.integers(0, TERMS, 3)] += 0.7
    return sp.csr_array(X)


@pytest.fixture(scope="module")
def fitted():
    y = np.random.default_rng(1).integers(0, SEEN, 11_000)
    named = LabelFeatures(np.arange(N), NAMES)
    return LocoleClassifier(label_features=named).fit(make_rows(y, 2), y)


@given(
    totals=arrays(np.float64, (3, 12), elements=FINITE),
    is_unseen=arrays(np.bool_, (3, 12)),
    weights=st.tuples(st.floats(0.1, 2), st.floats(0, 2), FINITE, st.floats(-1, 1)),
)
def test_scores_are_those_of_the_formula(totals, is_unseen, weights):
    a, d, c, g = weights
    found = UnseenCalibration(np.array(weights)).applied(totals, is_unseen)
    for row, unseen, said in zip(totals, is_unseen, found, strict=True):
        best = sorted(row[~unseen])[-8:]
        level = sum(best) / len(best) if best else 0.0
        wanted = [d * s + c + g * level if u else a * s for s, u in zip(row, unseen, strict=True)]
        np.testing.assert_allclose(said, wanted, rtol=1e-9, atol=1e-9)


def test_places_without_a_label_stay_so():
    totals = np.array([[-np.inf, 2.0, -np.inf, 1.0]])
    is_unseen = np.array([[False, False, True, True]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = UnseenCalibration(np.array([1.0, 0.0, 3.0, 0.5])).applied(totals, is_unseen)
    assert found.tolist() == [[-np.inf, 2, -np.inf, 4]]
    assert best_mean(totals, np.ones((1, 4), dtype=bool)).tolist() == [0]


def make_trial(seed, n_rows=1_200, n_seen=12, n_unseen=6):
    """Rows whose labels are drawn from the softmax of the formula with known weights."""
    rng = np.random.default_rng(seed)
    totals = rng.normal(size=(n_rows, n_seen + n_unseen)) * 2 + rng.normal(size=(n_rows, 1)) * 2
    is_unseen = np.tile(np.arange(n_seen + n_unseen) >= n_seen, (n_rows, 1))
    logits = UnseenCalibration(np.array([1.2, 0.5, -1.0, 0.6])).applied(totals, is_unseen)
    right = np.zeros(totals.shape, dtype=bool)
    drawn = (logits + rng.gumbel(size=totals.shape)).argmax(axis=1)
    right[np.arange(n_rows), drawn] = True
    return totals, right, is_unseen


@pytest.mark.parametrize("seed", range(3))
def test_weights_have_the_smallest_loss(seed):
    """Against another solver, with the loss written out."""
    totals, right, is_unseen = make_trial(seed)

    def loss(weights):
        logits = UnseenCalibration(weights).applied(totals, is_unseen)
        return float(np.mean(np.logaddexp.reduce(logits, axis=1) - logits[right]))

    found = UnseenCalibration.fit(totals, right, np.ones_like(right), is_unseen)
    other = minimize(loss, np.array([1.0, 1.0, 0.0, 0.0]), method="Nelder-Mead", tol=1e-8)
    assert loss(found.weights) < other.fun + 1e-3
    np.testing.assert_allclose(found.weights, [1.2, 0.5, -1.0, 0.6], atol=0.5)


@pytest.mark.parametrize(
    ("now", "later", "wanted"), [(40, 30, 40 / 30), (40, 10, 40 / 30), (40, 0, 1.0), (7, 7, 1.0)]
)
def test_labels_that_can_never_be_right_are_discounted(now, later, wanted):
    totals, right, is_unseen = make_trial(0)
    valid = np.ones_like(right)
    plain = UnseenCalibration.fit(totals, right, valid, is_unseen).weights
    found = UnseenCalibration.fit(totals, right, valid, is_unseen, competing=(now, later)).weights
    np.testing.assert_allclose(found - plain, [0, 0, np.log(wanted), 0], atol=1e-12)


def test_few_rows_tell_nothing():
    totals, right, is_unseen = make_trial(0)
    valid = np.ones_like(right)
    assert UnseenCalibration.fit(totals[:900], right[:900], valid[:900], is_unseen[:900]) is None
    assert UnseenCalibration.fit(totals, right & ~is_unseen, valid, is_unseen) is None


# In a classifier --------------------------------------------------------------------------------


def test_labels_without_rows_are_found_and_others_are_no_worse(fitted):
    y = np.random.default_rng(4).integers(0, N, 3_000)
    plain = copy.deepcopy(fitted)
    plain.scorer_.unseen_ = None
    right, found = {}, {}
    for name, model in {"calibrated": fitted, "plain": plain}.items():
        answers = model.predict_topk(make_rows(y, 5), k=20)[0]
        right[name] = (answers[:, 0] == y).mean()
        found[name] = (answers == y[:, None]).any(axis=1)[y >= SEEN].mean()
    assert found["calibrated"] > found["plain"] - 0.01
    assert right["calibrated"] > right["plain"] - 0.005


def test_every_way_to_ask_gives_the_same_scores(fitted):
    assert fitted.scorer_.unseen_ is not None
    asked = make_rows(np.arange(0, N, 7), 6)
    labels, scores = fitted.predict_topk(asked, k=10)
    assert (labels >= SEEN).any()
    every = fitted.decision_function(asked)
    np.testing.assert_allclose(np.take_along_axis(every, labels, 1), scores, atol=1e-5)
    fewer = fitted.predict_topk(asked, k=3)
    np.testing.assert_array_equal(fewer[0], labels[:, :3])
    for i, label in enumerate(labels[:, 1].tolist()):
        (one,) = fitted.explain(asked[[i]], label)
        np.testing.assert_allclose(one.score, scores[i, 1], atol=1e-4)


def test_labels_that_get_rows_are_labels_with_rows(fitted):
    more = copy.deepcopy(fitted)
    y = np.full(5, N - 1)
    more.partial_fit(make_rows(y, 7), y)
    before, after = fitted.scorer_._is_unseen, more.scorer_._is_unseen
    assert np.flatnonzero(before != after).tolist() == [N - 1]
    np.testing.assert_array_equal(more.scorer_.unseen_.weights, fitted.scorer_.unseen_.weights)


def test_explanations_say_what_it_adds(fitted):
    asked = make_rows([N - 1], 8)
    (one,) = fitted.explain(asked, N - 1)
    assert one.others[UNSEEN] != 0


def test_a_saved_classifier_answers_the_same(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    asked = make_rows(np.arange(0, N, 9), 9)
    wanted = fitted.decision_function(asked)
    np.testing.assert_array_equal(load(tmp_path / "model").decision_function(asked), wanted)


def test_it_needs_the_rows_of_labels(fitted, tmp_path):
    model = copy.deepcopy(fitted)
    model.scorer_.frequencies_ = None
    model.save(tmp_path / "model")
    with pytest.raises(ModelFileError, match="do not fit together"):
        load(tmp_path / "model")


@pytest.mark.parametrize(
    "state",
    [
        {},
        {"weights": np.ones(3)},
        {"weights": np.ones(4), "more": 1},
        {"weights": np.ones(4, dtype=np.float32)},
        {"weights": np.array([1.0, 1.0, np.nan, 0.0])},
        {"weights": np.array([1.0, 1.0, 1e300, 0.0])},
        {"weights": np.array([0.0, 1.0, 0.0, 0.0])},
        {"weights": np.array([1.0, -1.0, 0.0, 0.0])},
    ],
)
def test_hostile_files_are_refused(state):
    with pytest.raises(ModelFileError):
        UnseenCalibration._from_state(state)
