"""Probabilities from scores: they sum to one, keep the order, and are right as often as they say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logsumexp

from locole.calibration import SHORT_LIST, Probabilities
from locole.calibration.probabilities import _log_tail, places_of


def drawn(n_rows=2000, n_classes=50, *, scale=1.0, seed=0):
    """Scores that are logits divided by a scale, labels drawn from their softmax."""
    rng = np.random.default_rng(seed)
    logits = 2.5 * rng.standard_normal((n_rows, n_classes))
    p = np.exp(logits - logsumexp(logits, axis=1, keepdims=True))
    labels = (rng.random((n_rows, 1)) < np.cumsum(p, axis=1)).argmax(axis=1)
    order = np.argsort(-logits, axis=1)
    right = order == labels[:, None]
    return np.take_along_axis(logits, order, 1) / scale, places_of(right), p, order


def dense(found, scores, n_classes):
    """The formula of the docstring for all labels, in double precision, row by row."""
    rows = []
    for full in scores:
        s = found.scale * full[: min(SHORT_LIST, n_classes)]
        values = [s[0] - logsumexp(s[1:]), s[0]]
        logit, place = found.coef[0], 1
        for value, knots in zip(values, found.knots, strict=True):
            parts = [value, *(max(value - knot, 0) for knot in knots)]
            logit += float(np.dot(found.coef[place : place + len(parts)], parts))
            place += len(parts)
        steep, rest, power = found.others
        odds = np.exp(steep * (s[1:] - s[0]))
        behind = np.exp(steep * (s[-1] - s[0]) + rest) if n_classes > s.size else 0.0
        total = odds.sum() + behind
        first = min(max(expit(logit), expit(np.log(odds[0] / total) + 1e-9)), expit(16.0))
        ranks = np.arange(s.size + 1, n_classes + 1, dtype=float) ** -power
        tail = behind * ranks / ranks.sum() if ranks.size else ranks
        rows.append([first, *((1 - first) * np.append(odds, tail) / total)])
    return np.array(rows)


@pytest.mark.parametrize("n_classes", [2, 3, 16, 17, 50, 300])
def test_probabilities_are_those_of_the_formula(n_classes):
    scores, places, *_ = drawn(400, n_classes)
    found = Probabilities.fit(scores, places, n_classes=n_classes)
    p = np.exp(found.log_proba(scores[:30], n_classes=n_classes))
    np.testing.assert_allclose(p, dense(found, scores[:30], n_classes), rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-6)
    assert (np.diff(p, axis=1) <= 1e-12).all()
    rest = np.exp(found.log_rest(scores[:30], n_classes=n_classes))
    np.testing.assert_allclose(rest, p[:, SHORT_LIST:].sum(axis=1), atol=1e-6)


@pytest.mark.parametrize("scale", [1.0, 0.01, 300.0])
def test_logits_of_any_scale_become_the_probabilities_that_drew_the_labels(scale):
    scores, places, p, order = drawn(4000, 12, scale=scale)
    found = Probabilities.fit(scores, places, n_classes=12)
    expected = np.take_along_axis(p, order, 1)
    error = np.abs(np.exp(found.log_proba(scores, n_classes=12)) - expected)
    assert error[:, 0].mean() < 0.02
    assert error.mean() < 0.01


@pytest.mark.parametrize("n_classes", [20, 1000])
def test_more_labels_asked_for_change_nothing(n_classes):
    scores, places, *_ = drawn(300, n_classes)
    found = Probabilities.fit(scores[:, :64], places, n_classes=n_classes)
    every = found.log_proba(scores[:9], n_classes=n_classes)
    for k in (16, 18, n_classes):
        np.testing.assert_array_equal(
            found.log_proba(scores[:9, :k], n_classes=n_classes), every[:, :k]
        )


@pytest.mark.parametrize("right", [0, 1, -1])
def test_rows_that_are_all_right_or_all_wrong(right):
    scores, *_ = drawn(40, 30)
    found = Probabilities.fit(scores, np.full(40, right), n_classes=30)
    p = np.exp(found.log_proba(scores, n_classes=30))
    assert np.isfinite(p).all()
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-6)
    assert (p[:, 0].mean() > 0.9) == (right == 0)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 40), st.integers(1, 30), st.floats(-6, 6))
def test_whatever_the_scores(seed, n_classes, n_rows, log_scale):
    rng = np.random.default_rng(seed)
    scores = -np.sort(-(10.0**log_scale) * rng.integers(-3, 4, (n_rows, n_classes)), axis=1)
    places = rng.integers(-1, n_classes, n_rows)
    for found in (
        Probabilities.fit(scores, places, n_classes=n_classes),
        Probabilities.guess(scores, n_classes=n_classes),
    ):
        p = np.exp(found.log_proba(scores, n_classes=n_classes))
        np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-6)
        assert (np.diff(p, axis=1) <= 1e-9).all()


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0, 1.7, 3.0])
@pytest.mark.parametrize("n_classes", [17, 80, 81, 5000])
def test_the_tail_sums_to_one(power, n_classes):
    ranks = np.arange(17, n_classes + 1)
    assert np.exp(_log_tail(ranks, power, 16, n_classes)).sum() == pytest.approx(1, abs=1e-7)


@pytest.mark.parametrize("power", [0.4, 1.0, 1.6])
def test_labels_that_no_scorer_has_proposed_are_behind_the_candidates(power):
    """Ranks are drawn from the tail; those beyond the 64 candidates of a row are not known."""
    n_classes, rng = 2000, np.random.default_rng(0)
    ranks = np.arange(17, n_classes + 1)
    places = rng.choice(ranks, 3000, p=ranks**-power / (ranks**-power).sum()) - 1
    places[places >= 64] = -1
    scores = -np.sort(rng.standard_normal((3000, 96)), axis=1)
    scores[:, 64:] = -np.inf
    found = Probabilities.fit(scores, places, n_classes=n_classes)
    assert found.others[2] == pytest.approx(power, abs=0.101)


def test_a_row_counts_as_often_as_its_weight_says():
    """With rows so few that there are no knots, which are quantiles of the rows without weights."""
    scores, places, *_ = drawn(49, 12)
    weight = np.random.default_rng(1).integers(1, 3, 49)
    twice = np.repeat(np.arange(49), weight)
    by_weight = Probabilities.fit(scores, places, n_classes=12, weight=weight * 1.0, scale=1.0)
    repeated = Probabilities.fit(scores[twice], places[twice], n_classes=12, scale=1.0)
    p, q = (np.exp(one.log_proba(scores, n_classes=12)) for one in (by_weight, repeated))
    assert np.abs(p - q).max() < 0.05


@pytest.mark.parametrize("n_alike", [2, 5, SHORT_LIST, 40])
def test_labels_with_the_same_score_are_equally_probable(n_alike):
    """Also where validation rows are all right, and the curves say that every answer is."""
    falling = -np.arange(40.0)
    scores = np.tile(falling, (200, 1))
    found = Probabilities.fit(scores, np.zeros(200, dtype=int), n_classes=40)
    tied = np.where(np.arange(40) < n_alike, 0.0, falling)[None]
    p = np.exp(found.log_proba(tied, n_classes=40))[0]
    n_equal = min(n_alike, SHORT_LIST)
    np.testing.assert_allclose(p[:n_equal], p[0], rtol=1e-6)
    assert p.sum() == pytest.approx(1)
