"""Cross-entropy of right candidates under weighted sums of scores, with its slope and curvature."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from locole.kernels.jit import inline, kernel

__all__ = ["Candidates", "lowest_quadratic", "softmax_moments"]

# Beyond this a difference of logits makes a probability 1 in double precision.
_SURE = 700.0
# Wrong candidates so far behind the best have odds of 1e-10 against it, and are passed over: most are.
_FAINT = 23.0


class Candidates(NamedTuple):
    """Candidates of rows, one row after the other."""

    scores: NDArray[np.float64]
    """Shape (candidates, sources)."""
    starts: NDArray[np.int64]
    """Row i has the candidates ``starts[i] : starts[i + 1]``."""
    right: NDArray[np.bool_]
    """Which candidates are labels of their row."""
    share: NDArray[np.float64]
    """How much each right candidate of a row counts, shape (rows,)."""


@inline
def _add(odds, scores, first, second):
    """Add a candidate with these odds to the sums of scores and of their products (lower half)."""
    for a in range(scores.size):
        part = odds * scores[a]
        first[a] += part
        if part != 0:
            for b in range(a + 1):
                second[a, b] += part * scores[b]


@kernel
def softmax_moments(candidates, weights, power, slope, curvature, slopes):
    """Loss of the right candidates, each among itself and the wrong ones of its row.

    Returns the sum of ``share · (1 − p^power) / power``, or of ``−share · log p`` if power is 0, and
    fills ``slope`` (sources,). The second derivative is ``curvature − power · slopes``, both of shape
    (sources, sources): the covariances of the scores, and the products of the slopes of each term.
    """
    scores, starts, right, share = candidates
    n, loss = weights.size, 0.0
    mean, first, second = np.empty(n), np.empty(n), np.empty((n, n))
    slope[:], curvature[:], slopes[:] = 0.0, 0.0, 0.0
    logits = np.empty(scores.shape[0])
    for j in range(logits.size):
        logits[j] = 0.0
        for a in range(n):
            logits[j] += weights[a] * scores[j, a]
    for i in range(share.size):
        top = -np.inf
        for j in range(starts[i], starts[i + 1]):
            if not right[j]:
                top = max(top, logits[j])
        if top == -np.inf:
            continue
        mass, first[:], second[:] = 0.0, 0.0, 0.0
        for j in range(starts[i], starts[i + 1]):
            if not right[j] and logits[j] > top - _FAINT:
                odds = np.exp(logits[j] - top)
                mass += odds
                _add(odds, scores[j], first, second)
        for j in range(starts[i], starts[i + 1]):
            if right[j]:
                lead = min(logits[j] - top, _SURE)
                odds = np.exp(lead)
                total = mass + odds
                p, own = odds / total, scores[j]
                grip = share[i]
                if power > 0:
                    grip *= p**power
                    loss += (share[i] - grip) / power
                else:
                    loss += share[i] * (np.log(total) - lead)
                for a in range(n):
                    mean[a] = first[a] / total + p * own[a]
                    slope[a] += grip * (mean[a] - own[a])
                    for b in range(a + 1):
                        product = second[a, b] / total + p * own[a] * own[b]
                        curvature[a, b] += grip * (product - mean[a] * mean[b])
                        slopes[a, b] += grip * (mean[a] - own[a]) * (mean[b] - own[b])
    for a in range(n):
        for b in range(a):
            curvature[b, a], slopes[b, a] = curvature[a, b], slopes[a, b]
    return loss


@kernel
def lowest_quadratic(slope, curvature, least, n_sweeps, step):
    """Lower ``⟨slope, step⟩ + ½ stepᵀ curvature step`` over ``step ≥ least``, a number at a time.

    step begins at 0 and is filled; a number with no curvature stays 0.
    """
    step[:] = 0.0
    rest = slope.copy()
    for _ in range(n_sweeps):
        moved = 0.0
        for a in range(step.size):
            if curvature[a, a] > 0:
                to = max(step[a] - rest[a] / curvature[a, a], least[a])
                change = to - step[a]
                step[a] = to
                moved = max(moved, abs(change))
                for b in range(step.size):
                    rest[b] += change * curvature[a, b]
        if moved < 1e-12:
            break
