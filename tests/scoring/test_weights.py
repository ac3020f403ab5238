"""Weights of sources are optimal for their likelihood, which is written down from its definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from locole.scoring.weights import first_is_right, fit_weights, mean_loss


def trial(seed: int, n_sources: int = 2, n_rows: int = 60, n_candidates: int = 7):
    """Sources of different quality and scale; a label that is found in most rows."""
    rng = np.random.default_rng(seed)
    right = np.zeros((n_rows, n_candidates), dtype=bool)
    right[np.arange(n_rows), rng.integers(0, n_candidates, n_rows)] = True
    right[::9] = False
    quality = rng.uniform(-0.3, 1.5, n_sources)
    scale = 10.0 ** rng.integers(-3, 4, n_sources)
    noise = rng.standard_normal((n_rows, n_candidates, n_sources))
    valid = rng.random(right.shape) < 0.9
    valid |= right
    return (right[..., None] * quality + noise) * scale, right, valid


def loss_of(weights, scores, right, valid):
    """Mean −log p of the right candidate over the rows that have it, from the definition."""
    total, n = 0.0, 0
    for s, r, v in zip(scores @ np.asarray(weights), right, valid, strict=True):
        if (r & v).any():
            total += np.log(np.exp(s[v] - s[v].max()).sum()) + s[v].max() - s[r & v][0]
            n += 1
    return total / n


@given(seed=st.integers(0, 2**32 - 1), n_sources=st.integers(1, 3))
def test_weights_are_optimal_and_never_negative(seed, n_sources):
    """As good as scipy's best from several places, and as every point of a grid around."""
    scores, right, valid = trial(seed, n_sources)
    weights = fit_weights(scores, right, valid)
    assert weights.shape == (n_sources,)
    assert (weights >= 0).all()
    found = loss_of(weights, scores, right, valid)
    unit = 1 / scores[valid].std(axis=0)
    for start in (0.0, 0.1, 2.0):
        best = minimize(
            lambda w: loss_of(w * unit, scores, right, valid),
            np.full(n_sources, start),
            method="L-BFGS-B",
            bounds=[(0, None)] * n_sources,
        )
        assert found <= best.fun + 1e-4
    for factor in (0.0, 0.5, 0.9, 1.1, 2.0):
        assert found <= loss_of(factor * weights, scores, right, valid) + 1e-5


@given(seed=st.integers(0, 2**32 - 1))
def test_weights_on_a_grid(seed):
    scores, right, valid = trial(seed)
    unit = 1 / scores[valid].std(axis=0)
    found = loss_of(fit_weights(scores, right, valid), scores, right, valid)
    grid = [(a, b) for a in np.linspace(0, 3, 7) for b in np.linspace(0, 3, 7)]
    assert found <= min(loss_of(g * unit, scores, right, valid) for g in grid) + 1e-5


@given(seed=st.integers(0, 2**32 - 1), source=st.integers(0, 1), factor=st.sampled_from([1e-6, 50]))
def test_the_unit_of_a_source_does_not_matter(seed, source, factor):
    scores, right, valid = trial(seed)
    plain = fit_weights(scores, right, valid)
    scores[..., source] *= factor
    scaled = fit_weights(scores, right, valid)
    expected = plain / np.where(np.arange(2) == source, factor, 1.0)
    np.testing.assert_allclose(scaled, expected, rtol=1e-3, atol=1e-3 * expected.max() + 1e-12)


def test_a_source_that_misleads_gets_no_weight():
    scores, right, valid = trial(0)
    scores[..., 0] = 3.0 * right + 0.5 * np.random.default_rng(1).standard_normal(right.shape)
    scores[..., 1] = -1.0 * right + np.random.default_rng(2).standard_normal(right.shape)
    good, bad = fit_weights(scores, right, valid)
    assert good > 0
    assert bad == 0


@given(seed=st.integers(0, 2**32 - 1))
def test_sources_of_either_sign_have_a_slight_penalty(seed):
    """The optimum of the mean loss and half a thousandth of their weights' squares."""
    scores, right, valid = trial(seed, 3)
    unit = 1 / scores[valid].std(axis=0)
    found = fit_weights(scores, right, valid, signed=np.array([False, True, True]))
    assert found[0] >= 0

    def objective(weights):
        penalty = 5e-4 * np.square(weights[1:]).sum()
        return loss_of(weights * unit, scores, right, valid) + penalty

    best = minimize(
        objective, np.zeros(3), method="L-BFGS-B", bounds=[(0, None), (None, None), (None, None)]
    )
    assert objective(found / unit) <= best.fun + 1e-4


def test_a_source_that_misleads_may_count_negatively():
    scores, right, valid = trial(0)
    scores[..., 1] = -1.0 * right + np.random.default_rng(2).standard_normal(right.shape)
    good, bad = fit_weights(scores, right, valid, signed=np.array([False, True]))
    assert good >= 0
    assert bad < -0.3


def test_no_row_has_its_label_among_the_candidates():
    scores, right, valid = trial(0)
    np.testing.assert_array_equal(fit_weights(scores, right & False, valid), [1, 1])
    np.testing.assert_array_equal(fit_weights(scores, right, valid & ~right), [1, 1])
    np.testing.assert_array_equal(
        fit_weights(scores, right & False, valid, signed=np.array([False, True])), [1, 0]
    )


@pytest.mark.parametrize("constant", [0.0, 5.0])
def test_a_source_that_says_nothing(constant):
    scores, right, valid = trial(3)
    alone = fit_weights(scores[..., :1], right, valid)
    scores[..., 1] = constant
    weights = fit_weights(scores, right, valid)
    assert np.isfinite(weights).all()
    np.testing.assert_allclose(weights[0], alone[0], rtol=1e-3)


def test_labels_that_are_always_first_give_finite_weights():
    """The loss has no minimum: some large weight will do."""
    _, right, valid = trial(4)
    scores = np.stack([right * 1.0, right * 2.0], axis=-1)
    weights = fit_weights(scores, right, valid)
    assert np.isfinite(weights).all()
    assert (weights > 0).any()
    assert loss_of(weights, scores, right, valid) < 1e-2


def test_a_weight_of_a_row_is_a_number_of_copies():
    scores, right, valid = trial(5)
    times = np.random.default_rng(0).integers(0, 4, len(right))
    weighted = fit_weights(scores, right, valid, times.astype(float))
    copied = fit_weights(*(np.repeat(table, times, axis=0) for table in (scores, right, valid)))
    np.testing.assert_allclose(weighted, copied, rtol=1e-2, atol=1e-3 * copied.max())


@given(seed=st.integers(0, 2**32 - 1))
def test_first_is_right(seed):
    scores, right, valid = trial(seed, 1)
    valid[:, 0] = True
    expected = [
        bool(r[max(np.flatnonzero(v), key=lambda j: s[j])])
        for s, r, v in zip(scores[..., 0], right, valid, strict=True)
    ]
    np.testing.assert_array_equal(first_is_right(scores[..., 0], right, valid), expected)


@given(seed=st.integers(0, 2**32 - 1))
def test_several_right_candidates_are_rows_of_their_own(seed):
    """Each right one among itself and the wrong ones; the row counts once, however many it has."""
    scores, right, valid = trial(seed, n_rows=30)
    right |= (np.random.default_rng(seed).random(right.shape) < 0.2) & valid
    weight = np.random.default_rng(seed).random(30)
    pairs = [(i, j) for i, j in np.argwhere(right & valid)]
    alone = np.zeros((len(pairs), right.shape[1]), dtype=bool)
    alone[np.arange(len(pairs)), [j for _, j in pairs]] = True
    rows = np.array([i for i, _ in pairs])
    others = (right[rows] & ~alone) | ~valid[rows]
    share = weight[rows] / (right & valid).sum(axis=1)[rows]
    expected = fit_weights(scores[rows], alone, ~others, share)
    np.testing.assert_allclose(fit_weights(scores, right, valid, weight), expected, rtol=1e-4)
    total = scores @ expected
    assert mean_loss(total, right, valid, weight) == pytest.approx(
        mean_loss(total[rows], alone, ~others, share)
    )


# --- rows with a wrong label ---


def noisy_rows(n_rows=2000, wrong=0.1, seed=0):
    """One good source and one that is right about the rows with a wrong label only."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n_rows, 8, 2))
    right = np.zeros((n_rows, 8), dtype=bool)
    is_wrong = rng.random(n_rows) < wrong
    right[np.arange(n_rows), np.where(is_wrong, 7, 0)] = True
    scores[:, 0, 0] += 3
    scores[:, 7, 1] += 1
    return scores, right, is_wrong


def test_a_positive_power_gives_less_weight_to_rows_with_a_wrong_label():
    scores, right, is_wrong = noisy_rows()
    valid = np.ones_like(right)
    shares, clean = [], []
    for power in (0.0, 0.5):
        weights = fit_weights(scores, right, valid, power=power)
        shares.append(weights[1] / weights[0])
        clean.append(first_is_right(scores @ weights, right, valid)[~is_wrong].mean())
    assert shares[0] > 2 * shares[1] >= 0
    assert clean[0] < clean[1]


@pytest.mark.parametrize("power", [0.25, 0.5, 1.0])
def test_the_scale_is_that_of_the_likelihood(power):
    scores, right, _ = noisy_rows(500)
    valid = np.ones_like(right)
    total = (scores @ fit_weights(scores, right, valid, power=power))[..., None]
    assert fit_weights(total, right, valid)[0] == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("power", [0.25, 0.5])
def test_no_weights_near_by_have_a_smaller_generalised_loss(power):
    scores, right, _ = noisy_rows(500, seed=1)
    valid = np.ones_like(right)
    weights = fit_weights(scores, right, valid, power=power)

    def lowest(ratio):
        """Smallest loss over all scales of the sum."""
        scales = np.geomspace(0.1, 30, 200)
        total = scores @ np.array([1.0, ratio])
        return min(mean_loss(scale * total, right, valid, power=power) for scale in scales)

    best = weights[1] / weights[0]
    assert lowest(best) <= min(lowest(abs(best + step)) for step in (0.1, -0.1)) + 1e-4


def test_the_generalised_loss_approaches_the_likelihood():
    scores, right, _ = noisy_rows(100)
    valid = np.ones_like(right)
    total = scores.sum(axis=2)
    near = mean_loss(total, right, valid, power=1e-6)
    assert near == pytest.approx(mean_loss(total, right, valid), rel=1e-4)
