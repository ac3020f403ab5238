"""Loss, slope and curvature of candidates against their definition and finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from locole.kernels.candidates import Candidates, lowest_quadratic, softmax_moments


def made(seed: int, n_rows: int = 5, n_sources: int = 3) -> Candidates:
    rng = np.random.default_rng(seed)
    starts = np.append(0, rng.integers(1, 6, n_rows).cumsum())
    right = rng.random(starts[-1]) < 0.4
    right[starts[:-1]] = True
    return Candidates(
        rng.standard_normal((starts[-1], n_sources)), starts, right, rng.random(n_rows)
    )


def moments(candidates: Candidates, weights, power):
    n = len(weights)
    slope, curvature, slopes = np.full(n, 7.0), np.full((n, n), 7.0), np.full((n, n), 7.0)
    loss = softmax_moments(candidates, np.asarray(weights), power, slope, curvature, slopes)
    return loss, slope, curvature - power * slopes


def loss_by_definition(candidates: Candidates, weights, power):
    """Each right candidate among itself and the wrong ones."""
    total = 0.0
    for i, share in enumerate(candidates.share):
        own = slice(candidates.starts[i], candidates.starts[i + 1])
        odds, right = np.exp(candidates.scores[own] @ weights), candidates.right[own]
        p = odds[right] / (odds[right] + odds[~right].sum())
        total += share * (((1 - p**power) / power) if power else -np.log(p)).sum()
    return total


@given(seed=st.integers(0, 2**32 - 1), power=st.sampled_from([0.0, 0.5, 1.0]))
def test_moments(seed, power):
    candidates = made(seed)
    weights = np.random.default_rng(seed + 1).standard_normal(3)
    loss, slope, curvature = moments(candidates, weights, power)
    assert loss == pytest.approx(loss_by_definition(candidates, weights, power), abs=1e-12)
    for a, way in enumerate(1e-5 * np.eye(3)):
        ends = [moments(candidates, weights + sign * way, power) for sign in (1, -1)]
        np.testing.assert_allclose((ends[0][0] - ends[1][0]) / 2e-5, slope[a], atol=1e-8)
        np.testing.assert_allclose((ends[0][1] - ends[1][1]) / 2e-5, curvature[a], atol=1e-8)


@pytest.mark.parametrize("power", [0.0, 0.5])
@pytest.mark.parametrize("scale", [1e3, 1e6])
def test_scores_far_apart_do_not_overflow(power, scale):
    candidates = made(3)
    loss, slope, curvature = moments(candidates, np.array([scale, -scale, 0.0]), power)
    assert np.isfinite([loss, *slope, *curvature.ravel()]).all()


@given(seed=st.integers(0, 2**32 - 1))
def test_lowest_quadratic(seed):
    """No step within the bounds is lower, and the slope is zero where the step is within."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((6, 4))
    curvature, slope = A.T @ A + 1e-3 * np.eye(4), rng.standard_normal(4)
    least, step = np.where(rng.random(4) < 0.5, -rng.random(4), -np.inf), np.empty(4)
    lowest_quadratic(slope, curvature, least, 100_000, step)
    assert (step >= least).all()
    rest = slope + curvature @ step
    free = step > least
    np.testing.assert_allclose(rest[free], 0, atol=1e-6)
    assert (rest[~free] >= -1e-6).all()
