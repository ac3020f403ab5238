"""Sets hold the right label as often as was asked for, over many draws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import beta

from locole.calibration import in_sets, set_rule
from locole.calibration.conformal import bands_of, pseudo_uniform

N, C = 200, 30
# Labels with few and with many training rows, and how hard they are.
COUNTS = np.repeat([1, 5, 20, 100, 1000], 6)


def drawn(rng, n):
    """Sorted probabilities, which are too sure of themselves, and the place of the right label."""
    logits = 2 * rng.standard_normal((n, C))
    logits[:, COUNTS < 10] -= 1
    true = softmax(logits / 1.5, axis=1)
    labels = (rng.random((n, 1)) < np.cumsum(true, axis=1)).argmax(axis=1)
    order = np.argsort(-logits, axis=1)
    p = np.take_along_axis(softmax(logits, axis=1), order, 1)
    return p, order, (order == labels[:, None]).argmax(axis=1)


def evidence(p, order, places):
    own = np.take_along_axis(p, places[:, None], 1)[:, 0]
    before = np.take_along_axis(np.cumsum(p, axis=1) - p, places[:, None], 1)[:, 0]
    return (
        own,
        before,
        pseudo_uniform(p),
        COUNTS[np.take_along_axis(order, places[:, None], 1)[:, 0]],
    )


@pytest.mark.parametrize("method", ["lac", "aps"])
@pytest.mark.parametrize("coverage", [0.8, 0.9, 0.95])
def test_coverage_over_two_hundred_draws(method, coverage):
    """The coverage of a rule of n rows is Beta(⌈(n + 1)c⌉, n + 1 − ⌈(n + 1)c⌉)."""
    rng = np.random.default_rng(0)
    covered = []
    for _ in range(200):
        rule = set_rule(*evidence(*drawn(rng, N)), coverage=coverage, method=method)
        p, order, places = drawn(rng, 500)
        sets = in_sets(p, pseudo_uniform(p), COUNTS[order], rule)
        covered.append(np.take_along_axis(sets, places[:, None], 1).mean())
    place = np.ceil((N + 1) * coverage)
    spread = beta(place, N + 1 - place).var() + coverage * (1 - coverage) / 500
    assert abs(np.mean(covered) - place / (N + 1)) < 3 * np.sqrt(spread / 200)


@pytest.mark.parametrize("method", ["lac", "aps"])
def test_rare_labels_are_covered_too_if_asked_for(method):
    rng = np.random.default_rng(1)
    found = {True: [], False: []}
    for _ in range(40):
        rows = evidence(*drawn(rng, 1000))
        p, order, places = drawn(rng, 1000)
        counts = COUNTS[np.take_along_axis(order, places[:, None], 1)[:, 0]]
        for by_frequency in found:
            rule = set_rule(*rows, coverage=0.9, method=method, by_frequency=by_frequency)
            sets = in_sets(p, pseudo_uniform(p), COUNTS[order], rule)
            hit = np.take_along_axis(sets, places[:, None], 1)[:, 0]
            found[by_frequency].append(hit[counts == 1].mean())
    assert np.mean(found[True]) > 0.88
    assert np.mean(found[True]) > np.mean(found[False]) + (0.02 if method == "lac" else -0.02)


def test_aps_takes_the_best_labels_up_to_a_mass():
    p = np.array([[0.6, 0.3, 0.1]])
    rule = set_rule(np.full(99, 0.5), np.full(99, 0.45), np.ones(99), np.ones(99, int), coverage=0.9,
                    method="aps")  # fmt: skip
    for uniform, n_in in ((0.0, 3), (0.4, 3), (0.6, 2), (1.0, 2)):
        assert in_sets(p, np.array([uniform]), np.ones((1, 3), int), rule).sum() == n_in


def test_too_few_rows_give_all_labels():
    rule = set_rule(np.full(5, 0.9), np.zeros(5), np.zeros(5), np.ones(5, int), coverage=0.95)
    assert in_sets(np.array([[0.9, 0.1, 0.0]]), np.zeros(1), np.ones((1, 3), int), rule).all()


def test_bands():
    np.testing.assert_array_equal(
        bands_of(np.array([1, 4, 5, 99]), np.array([5, 20])), [0, 0, 1, 2]
    )


def test_numbers_made_of_scores_are_uniform():
    u = pseudo_uniform(np.random.default_rng(0).standard_normal((20_000, 1)))
    assert ((u >= 0) & (u < 1)).all()
    counts, _ = np.histogram(u, bins=20, range=(0, 1))
    assert np.abs(counts - 1000).max() < 150
