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

    Minimises the mean of ``−log softmax(scores @ weights)[right]`` over the rows that have a label
    among the candidates, a convex problem; of several right ones each has the same part in its row. The
    weighted scores are then calibrated logits.

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
    use = (right & valid).any(axis=1)
    scores, right, valid = scores[use], (right & valid)[use], valid[use]
    sure = scores.shape[2] - signed
    if not use.any():
        return np.repeat([1.0, 0.0], [sure, signed])
    share = np.ones(len(scores)) if sample_weight is None else sample_weight[use]
    share = share / share.sum()
    spread = scores[valid].std(axis=0)
    # A source that says the same of every candidate says nothing.
    silent = spread <= 1e-9 * np.abs(scores[valid]).max(axis=0)
    spread = np.where(silent, np.inf, spread)
    flat = (scores / spread).reshape(-1, spread.size)
    penalty = np.repeat([0.0, _PENALTY], [sure, signed])
    target = _spread(right)

    def objective(weights: NDArray) -> tuple[float, NDArray]:
        logits = np.where(valid, (flat @ weights).reshape(valid.shape), -np.inf)
        logits -= logits.max(axis=1, keepdims=True)
        odds = np.exp(logits)
        p = odds / odds.sum(axis=1, keepdims=True)
        loss = -(share[:, None] * target)[right] @ np.log(np.maximum(p[right], 1e-300))
        slope = (share[:, None] * (p - target)).ravel() @ flat
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
    """Mean of ``−log softmax(total)[right]`` over the rows that have a label among the candidates.

    Of several right candidates each has the same part in its row.

    Examples
    --------
    >>> yes = np.ones((1, 2), dtype=bool)
    >>> round(mean_loss(np.zeros((1, 2)), np.array([[True, False]]), yes), 3)
    0.693
    """
    use = (right & valid).any(axis=1)
    if not use.any():
        return 0.0
    logits = np.where(valid, total, -np.inf)[use]
    target = _spread((right & valid)[use])
    aim = np.multiply(logits, target, where=target > 0, out=np.zeros_like(target)).sum(axis=1)
    losses = logsumexp(logits, axis=1) - aim
    return float(np.average(losses, weights=None if sample_weight is None else sample_weight[use]))


def _spread(right: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Probability of each candidate, if the right ones of a row are equally probable."""
    return right / right.sum(axis=1, keepdims=True)
