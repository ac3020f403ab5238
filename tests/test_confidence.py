"""What a classifier says of its own answers: probabilities, abstention, sets, reasons."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from problems import words
from same import assert_same_bits
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import log_loss, roc_auc_score, top_k_accuracy_score
from sklearn.model_selection import cross_val_predict

from locole import LocoleClassifier, confidence, load
from locole.datasets import make_topics
from locole.exceptions import LocoleError
from locole.metrics import expected_calibration_error
from locole.regressors import ElasticNetRegressor, SoftmaxRegressor
from locole.samples import Samples

TOPICS = make_topics(3000, 400, 60, nnz_per_row=12, noise=0.6, power=0.5)
DIGITS = load_digits(return_X_y=True)


@pytest.fixture(scope="module")
def topics():
    return LocoleClassifier().fit(TOPICS.X_train, TOPICS.y_train)


@pytest.fixture(scope="module")
def digits():
    return LocoleClassifier().fit(DIGITS[0][:1200], DIGITS[1][:1200])


def coverage_of(sets, y):
    return np.mean([label in found for label, found in zip(y, sets, strict=True)])


# --- probabilities ---


@pytest.mark.parametrize("k", [1, 5, 16, 30, 60])
def test_probabilities_sum_to_one_and_are_the_same_for_every_k(topics, k):
    p = topics.predict_proba(TOPICS.X_test)
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-6)
    labels, best = topics.predict_topk(TOPICS.X_test, k=k, proba=True)
    np.testing.assert_array_equal(labels, topics.predict_topk(TOPICS.X_test, k=k)[0])
    np.testing.assert_allclose(best, -np.sort(-p, axis=1)[:, :k], rtol=1e-6)
    np.testing.assert_array_equal(topics.classes_[p.argmax(axis=1)], topics.predict(TOPICS.X_test))


def test_answers_are_right_as_often_as_they_say(topics, digits):
    for model, X, y in (
        (topics, TOPICS.X_test, TOPICS.y_test),
        (digits, DIGITS[0][1200:], DIGITS[1][1200:]),
    ):
        labels, p = model.predict_topk(X, k=1, proba=True)
        right = labels[:, 0] == y
        assert abs(p.mean() - right.mean()) < 0.05
        assert expected_calibration_error(p[:, 0], right, n_bins=5) < 0.08


def test_an_ensemble_is_calibrated_by_its_validation_rows(topics):
    assert 0 < topics.calibration_.n_rows <= topics.choice_["validation_rows"]
    assert topics.scorer_.validation_scores() is None  # they take memory


@pytest.mark.parametrize("regressor", ["elastic_net", "softmax"])
@pytest.mark.parametrize("embedding", ["kerdock", "rademacher"])
def test_every_regressor(regressor, embedding):
    X, y = words(20, n_samples=500, n_features=120)
    model = LocoleClassifier(embedding, regressor=regressor).fit(X[:400], y[:400])
    assert model.calibration_.n_rows == 80
    p = model.predict_proba(X[400:])
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-6)
    assert abs(p.max(axis=1).mean() - model.score(X[400:], y[400:])) < 0.15


def test_the_second_fit_can_be_left_out_and_asked_for():
    X, y = words(20, n_samples=400, n_features=120)
    plain, twice = (LocoleClassifier(calibration=value).fit(X, y) for value in (False, True))
    assert (plain.calibration_.n_rows, twice.calibration_.n_rows) == (0, 80)
    assert_same_bits(plain.decision_function(X), twice.decision_function(X))
    p = plain.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-6)
    with pytest.raises(LocoleError, match="call calibrate"):
        plain.threshold(max_error=0.1)
    foreign = LocoleClassifier(regressor=Ridge(), calibration=True).fit(X.toarray(), y)
    assert foreign.calibration_.n_rows == 80
    checkpointed = ElasticNetRegressor(l2=0.1)
    assert LocoleClassifier(regressor=checkpointed).fit(X, y).calibration_.n_rows == 80


def test_labels_with_one_row_and_new_labels():
    X, y = words(30, n_samples=300, n_features=100)
    y[:10] = np.arange(100, 110)
    model = LocoleClassifier("kerdock", regressor=SoftmaxRegressor(epochs=2)).fit(X[:250], y[:250])
    before = model.predict_proba(X[250:])
    assert before.shape == (50, 40)
    model.partial_fit(X[:4], [199, 198, 199, 197])
    after = model.predict_proba(X[250:])
    assert after.shape == (50, 43)
    np.testing.assert_allclose(after.sum(axis=1), 1, atol=1e-6)
    assert model.calibration_.counts_[-3:].tolist() == [1, 1, 2]


def test_threads_change_no_bit(topics):
    other = LocoleClassifier(n_jobs=2).fit(TOPICS.X_train, TOPICS.y_train)
    assert_same_bits(other.calibration_, topics.calibration_)
    assert_same_bits(other.predict_proba(TOPICS.X_test), topics.predict_proba(TOPICS.X_test))


def test_memory_that_is_not_there(topics, monkeypatch):
    monkeypatch.setattr(confidence, "available_bytes", lambda: 1000)
    with pytest.raises(LocoleError, match=r"60 labels for 300 rows take .*predict_topk"):
        topics.predict_proba(TOPICS.X_test)


def test_several_labels_have_none():
    X, y = words(6, n_samples=200, n_features=60)
    Y = np.eye(6, dtype=int)[y] | np.eye(6, dtype=int)[(y + 1) % 6]
    model = LocoleClassifier().fit(X, Y)
    with pytest.raises(LocoleError, match="rows have several labels"):
        model.predict_set(X)


# --- abstention ---


def test_answers_that_are_not_sure_are_held_back(topics):
    labels, p = topics.predict_topk(TOPICS.X_test, k=1, proba=True)
    found = topics.predict(TOPICS.X_test, min_proba=0.7)
    np.testing.assert_array_equal(found == None, p[:, 0] < 0.7)  # noqa: E711 - of an array
    np.testing.assert_array_equal(found[p[:, 0] >= 0.7], labels[p[:, 0] >= 0.7, 0])
    numbers = topics.predict(TOPICS.X_test, min_proba=0.7, reject_label=-1)
    assert numbers.dtype.kind == "i"
    np.testing.assert_array_equal(numbers == -1, p[:, 0] < 0.7)


def test_a_wanted_error(topics):
    threshold = topics.threshold(max_error=0.2)
    assert 0 < threshold.coverage <= 1
    assert threshold.error <= 0.2
    found = topics.predict(TOPICS.X_test, max_error=0.2, reject_label=-1)
    assert_same_bits(found, topics.predict(TOPICS.X_test, min_proba=threshold, reject_label=-1))
    given = found != -1
    assert (found[given] != TOPICS.y_test[given]).mean() < 0.27
    wanted = topics.threshold(coverage=0.5)
    assert (topics.predict(TOPICS.X_test, min_proba=wanted, reject_label=-1) != -1).mean() > 0.4


@pytest.mark.parametrize(
    ("method", "arguments", "message"),
    [
        ("threshold", {}, "max_error or coverage"),
        ("threshold", {"max_error": 0.1, "coverage": 0.9}, "one of the two"),
        ("threshold", {"max_error": 0.0}, "max_error must be a number above 0 and below 1"),
        ("threshold", {"coverage": 2}, "coverage must be"),
        ("threshold", {"max_error": 0.1, "confidence": 1.0}, "confidence must be"),
        ("predict_set", {"coverage": 1.5}, "coverage must be"),
        ("predict_set", {"method": "raps"}, "method must be"),
        ("predict", {"min_proba": 1.5}, "min_proba must be a number from 0 to 1"),
        ("predict", {"min_proba": "0,5"}, "min_proba must be a number from 0 to 1, not '0,5'"),
        ("explain", {"label": [0, 1]}, "one label each, for all rows"),
        ("predict", {"min_proba": 0.5, "max_error": 0.1}, "take one"),
        ("explain", {"label": 777}, "does not know the label"),
        ("explain", {"against": 999}, "does not know the label"),
    ],
)
def test_bad_arguments(topics, method, arguments, message):
    rows = [] if method == "threshold" else [TOPICS.X_test]
    with pytest.raises(LocoleError, match=message):
        getattr(topics, method)(*rows, **arguments)


# --- sets ---


@pytest.mark.parametrize("method", ["lac", "aps"])
@pytest.mark.parametrize("by_frequency", [False, True])
def test_sets_hold_the_label(topics, method, by_frequency):
    sets = topics.predict_set(TOPICS.X_test, 0.9, method=method, by_frequency=by_frequency)
    assert 0.8 < coverage_of(sets, TOPICS.y_test) < 0.99
    labels, _ = topics.predict_topk(TOPICS.X_test, k=60)
    for found, ranked in zip(sets, labels, strict=True):
        if not by_frequency:
            np.testing.assert_array_equal(found, ranked[: found.size])
    smaller = topics.predict_set(TOPICS.X_test, 0.6, method=method, by_frequency=by_frequency)
    assert sum(map(len, smaller)) < sum(map(len, sets))


def test_sets_longer_than_the_short_list(topics):
    sets = topics.predict_set(TOPICS.X_test, 0.995)
    assert max(map(len, sets)) > 16
    p = topics.predict_proba(TOPICS.X_test)
    rule = topics.calibration_.set_rule(coverage=0.995, method="lac", by_frequency=False)
    assert [len(found) for found in sets] == (p >= rule.limits[0]).sum(axis=1).tolist()


def test_calibrate_puts_right_what_has_drifted(topics):
    """Half of the new rows have labels at random: the old sets miss them, the new ones do not."""
    model = copy.copy(topics)
    rng = np.random.default_rng(0)
    y = np.where(rng.random(300) < 0.5, rng.permutation(TOPICS.y_test), TOPICS.y_test)
    old, new = slice(0, 150), slice(150, 300)
    before = model.predict_proba(TOPICS.X_test[new]).max(axis=1).mean()
    model.calibrate(TOPICS.X_test[old], y[old])
    assert model.calibration_.n_rows == 150
    right = (model.predict(TOPICS.X_test[new]) == y[new]).mean()
    after = model.predict_proba(TOPICS.X_test[new]).max(axis=1).mean()
    assert abs(after - right) < abs(before - right)
    assert_same_bits(model.predict(TOPICS.X_test), topics.predict(TOPICS.X_test))


@pytest.mark.parametrize(
    ("rows", "y", "message"),
    [
        (slice(0, 5), TOPICS.y_test[:5], "needs 20 rows"),
        (slice(0, 50), np.full(50, 777), "needs 20 rows"),
        (slice(0, 50), TOPICS.y_test[:49], "50 rows but y has 49"),
    ],
)
def test_rows_that_cannot_calibrate(topics, rows, y, message):
    with pytest.raises(LocoleError, match=message):
        topics.calibrate(TOPICS.X_test[rows], y)


# --- reasons ---


def test_explanations_add_up_to_the_score(topics):
    labels, scores = topics.predict_topk(TOPICS.X_test[:20], k=2)
    every = topics.decision_function(TOPICS.X_test[:20])
    for i, found in enumerate(topics.explain(TOPICS.X_test[:20])):
        assert found.label == labels[i, 0]
        total = sum(value for _, value in found.features) + sum(found.others.values())
        assert total == pytest.approx(found.score) == pytest.approx(scores[i, 0], abs=1e-4)
        sizes = [abs(value) for _, value in found.features]
        assert sizes == sorted(sizes, reverse=True)
    lead = topics.explain(TOPICS.X_test[:20], 3, against=5)
    for i, found in enumerate(lead):
        assert found.score == pytest.approx(every[i, 3] - every[i, 5], abs=1e-4)
        assert (found.label, found.against) == (3, 5)


def test_explanations_can_be_shown(topics):
    found = topics.explain(TOPICS.X_test[:2])
    assert str(found).count("\n\n") == 1
    assert str(found[0].label) in str(found[0])
    html = found._repr_html_()
    assert html.count("<table>") == 2
    assert set(found[0].to_dict()) == {"label", "against", "score", "features", "others"}


def test_labels_in_html_are_no_html():
    X = np.eye(6)[[0, 1, 2, 3, 4, 5] * 10]
    y = np.array(["<b>", "a", "c", "d", "e", "f"])[[0, 1, 2, 3, 4, 5] * 10]
    found = LocoleClassifier().fit(X, y).explain(X[:1], "<b>")
    assert "<b><b>" not in found._repr_html_()
    assert "&lt;b&gt;" in found._repr_html_()


def test_a_regressor_of_another_library_explains_nothing():
    X, y = DIGITS
    model = LocoleClassifier(regressor=Ridge()).fit(X[:200], y[:200])
    with pytest.raises(LocoleError, match="takes rows as they are"):
        model.explain(X[:2])


# --- files ---


def test_files_hold_the_calibration(topics, tmp_path):
    topics.save(tmp_path / "m")
    back = load(tmp_path / "m")
    assert_same_bits(back.calibration_, topics.calibration_)
    assert_same_bits(back.predict_set(TOPICS.X_test), topics.predict_set(TOPICS.X_test))


# --- scikit-learn ---


def test_in_scikit_learns_ensembles_and_metrics():
    X, y = DIGITS[0] / 16, DIGITS[1]
    train, test = slice(0, 800), slice(800, 1100)
    model = LocoleClassifier()
    logistic = LogisticRegression(max_iter=200)
    for combined in (
        VotingClassifier([("locole", model), ("logistic", logistic)], voting="soft"),
        StackingClassifier([("locole", model)], final_estimator=logistic, cv=2),
        CalibratedClassifierCV(model, cv=2),
    ):
        assert combined.fit(X[train], y[train]).score(X[test], y[test]) > 0.85
    p = model.fit(X[train], y[train]).predict_proba(X[test])
    assert log_loss(y[test], p) < 0.6
    assert top_k_accuracy_score(y[test], p, k=3) > 0.95
    assert roc_auc_score(y[test], p, multi_class="ovr") > 0.97
    crossed = cross_val_predict(model, X[train], y[train], cv=2, method="predict_proba")
    np.testing.assert_allclose(crossed.sum(axis=1), 1, atol=1e-6)


# --- validation rows ---


def test_validation_rows_are_the_last_of_each_label():
    """So that data in order of time is judged by what came last: here labels change their words."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(20), 100)
    samples = Samples(np.arange(2000)[:, None], y, 20)
    train, validation = samples.split(200, seed=[0])
    assert train.n_rows + validation.n_rows == 2000
    places = validation.X[:, 0] % 100
    assert places.min() >= 88
    assert np.abs(np.bincount(validation.codes) - 10).max() <= 1
    mixed = Samples(samples.X, rng.permutation(y), 20).split(200, seed=[0])[1]
    assert np.abs(np.bincount(mixed.codes) - 10).max() <= 1
    one_each = Samples(samples.X, np.arange(2000), 2000)
    first, again, other = (one_each.split(200, seed=[seed])[1].codes for seed in (1, 1, 2))
    assert_same_bits(first, again)
    assert np.unique(first).size == 200
    assert np.intersect1d(first, other).size < 60


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"average": "macro"}, "average='macro' is for models of several labels"),
        ({"average": "most"}, "average must be 'samples', 'micro' or 'macro'"),
        ({"reject_label": "?"}, "give min_proba or max_error too"),
    ],
)
def test_options_without_effect_are_refused(topics, options, message):
    with pytest.raises(LocoleError, match=message):
        topics.predict(TOPICS.X_test[:2], **options)
