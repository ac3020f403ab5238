"""Thresholds keep what they promise, as often as they say."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import beta

from locole.calibration import error_threshold
from locole.calibration.thresholds import coverage_threshold
from locole.exceptions import LocoleError


def drawn(n, rng):
    proba = rng.beta(4, 1, n)
    return proba, rng.random(n) < proba


@pytest.mark.parametrize("max_error", [0.1, 0.15])
def test_the_error_is_kept_in_nearly_all_draws(max_error):
    """The true error above t of such rows is known: the mean of 1 − p for p ~ Beta(4, 1), p > t."""
    rng = np.random.default_rng(0)
    kept = []
    for _ in range(200):
        try:
            t = float(error_threshold(*drawn(1000, rng), max_error=max_error))
        except LocoleError:  # no answers, no errors
            continue
        true = 1 - (4 / 5) * (1 - t**5) / (1 - beta.cdf(t, 4, 1))
        kept.append(true <= max_error)
    assert len(kept) > 150
    assert np.mean(kept) >= 0.95 - 2 * np.sqrt(0.95 * 0.05 / len(kept))


def test_a_threshold_says_what_it_was_found_with():
    proba, right = drawn(2000, np.random.default_rng(1))
    found = error_threshold(proba, right, max_error=0.1, confidence=0.9)
    given = proba >= float(found)
    assert found.coverage == pytest.approx(given.mean())
    assert found.error == pytest.approx((~right[given]).mean())
    assert (found.rows, found.confidence) == (2000, 0.9)
    assert found.error < 0.1


def test_rows_that_tie_are_answered_together():
    proba = np.repeat([0.9, 0.5], 500)
    right = np.ones(1000, dtype=bool)
    right[500:] = False
    found = error_threshold(proba, right, max_error=0.05)
    assert (float(found), found.coverage) == (0.9, 0.5)


def test_all_rows_may_be_answered_and_none():
    sure = np.linspace(0.5, 1, 400)
    assert error_threshold(sure, np.ones(400, dtype=bool), max_error=0.05).coverage == 1
    with pytest.raises(
        LocoleError, match=r"no threshold is sure to keep the error at 0\.05 with 40"
    ):
        error_threshold(sure, np.zeros(400, dtype=bool), max_error=0.05)
    with pytest.raises(LocoleError, match="with 10 validation rows"):
        error_threshold(sure[:10], np.ones(10, dtype=bool), max_error=0.05)


def test_more_confidence_answers_less():
    proba, right = drawn(2000, np.random.default_rng(2))
    some = [float(error_threshold(proba, right, max_error=0.1, confidence=c)) for c in (0.5, 0.95)]
    assert some[0] < some[1]


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.99])
def test_coverage_is_kept_in_nearly_all_draws(coverage):
    rng = np.random.default_rng(3)
    found = [float(coverage_threshold(*drawn(500, rng), coverage=coverage)) for _ in range(300)]
    kept = 1 - beta.cdf(found, 4, 1) >= coverage
    assert 0.95 - 2 * np.sqrt(0.95 * 0.05 / 300) <= kept.mean()
    assert np.mean(1 - beta.cdf(found, 4, 1)) < coverage + 0.05
