"""Weights of several scores by maximum likelihood."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import logsumexp

from locole.parallel.blocks import one_blas_thread

__all__ = ["first_is_right", "fit_weights", "mean_loss"]

# Of weights of either sign, beside the mean loss of a row.
_PENALTY = 1e-3


def fit_weights(
    scores: NDArray[np.float64],
    right: NDArray[np.bool_],
    valid: NDArray[np.bool_],
    sample_weight: NDArray | None = None,
    *,
    signed: int = 0,
) -> NDArray[np.float64]:
    """Non-negative weights under which the right candidates are most likely.

    Minimises the mean of ``−log softmax(scores @ weights)[right]`` over the rows that have their label
    among the candidates, a convex problem. The weighted scores are then calibrated logits.

    If rows have several right candidates, each is to be told from the wrong ones, and not from the
    others: a row counts once for each of them, with the others left out, and all together as one row.

    Parameters
    ----------
    scores : array of shape (rows, candidates, sources)
    right, valid : arrays of shape (rows, candidates)
        Which candidates are labels of the row; which count at all.
    sample_weight : array of shape (rows,), optional
    signed : int
        How many sources, the last, may have negative weights. They have a slight penalty, because there
        may be few rows to which they make a difference.

    Examples
    --------
    >>> scores = np.array([[[2.0, 0.0], [1.0, 5.0]], [[0.0, 5.0], [1.0, 0.0]]])
    >>> right = np.array([[True, False], [False, True]])
    >>> weights = fit_weights(scores, right, np.ones((2, 2), dtype=bool))
    >>> bool(weights[0] > 1), float(weights[1])
    (True, 0.0)
    """
    rows, right, valid, share = _one_right(right, valid, sample_weight)
    scores = scores[rows]
    sure = scores.shape[2] - signed
    if rows.size == 0:
        return np.repeat([1.0, 0.0], [sure, signed])
    share = share / share.sum()
    spread = scores[valid].std(axis=0)
    # A source that says the same of every candidate says nothing.
    silent = spread <= 1e-9 * np.abs(scores[valid]).max(axis=0)
    spread = np.where(silent, np.inf, spread)
    flat = (scores / spread).reshape(-1, spread.size)
    penalty = np.repeat([0.0, _PENALTY], [sure, signed])

    def objective(weights: NDArray) -> tuple[float, NDArray]:
        logits = np.where(valid, (flat @ weights).reshape(valid.shape), -np.inf)
        logits -= logits.max(axis=1, keepdims=True)
        odds = np.exp(logits)
        p = odds / odds.sum(axis=1, keepdims=True)
        loss = -share @ np.log(np.maximum(p[right], 1e-300))
        slope = (share[:, None] * (p - right)).ravel() @ flat
        return loss + penalty @ weights**2 / 2, slope + penalty * weights

    start = np.repeat([0.5, 0.0], [sure, signed])
    bounds = [(0.0, None)] * sure + [(None, None)] * signed
    with one_blas_thread():
        found = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds)
    return found.x / spread


def first_is_right(
    total: NDArray, right: NDArray[np.bool_], valid: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Whether the valid candidate with the largest total is right, for each row."""
    best = np.where(valid, total, -np.inf).argmax(axis=1)
    return np.take_along_axis(right, best[:, None], 1)[:, 0]


def mean_loss(
    total: NDArray,
    right: NDArray[np.bool_],
    valid: NDArray[np.bool_],
    sample_weight: NDArray | None = None,
) -> float:
    """Mean of ``−log softmax(total)[right]`` over the rows that have their label among the candidates.

    Several right candidates of a row count as for `fit_weights`.

    Examples
    --------
    >>> yes = np.ones((1, 2), dtype=bool)
    >>> round(mean_loss(np.zeros((1, 2)), np.array([[True, False]]), yes), 3)
    0.693
    """
    rows, right, valid, share = _one_right(right, valid, sample_weight)
    if rows.size == 0:
        return 0.0
    logits = np.where(valid, total[rows], -np.inf)
    return float(np.average(logsumexp(logits, axis=1) - logits[right], weights=share))


def _one_right(
    right: NDArray[np.bool_], valid: NDArray[np.bool_], sample_weight: NDArray | None
) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_], NDArray[np.float64]]:
    """Rows with a right candidate, once for each: their numbers, right and valid ones, and weights."""
    right = right & valid
    counts = right.sum(axis=1)
    rows, places = np.nonzero(right)
    alone = np.zeros((rows.size, right.shape[1]), dtype=bool)
    alone[np.arange(rows.size), places] = True
    weight = np.ones(len(right)) if sample_weight is None else sample_weight
    return rows, alone, (valid & ~right)[rows] | alone, weight[rows] / counts[rows]
