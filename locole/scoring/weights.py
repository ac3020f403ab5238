"""Weights of several scores, fitted to validation rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from locole.parallel.blocks import one_blas_thread

__all__ = [
    "FREQUENCIES",
    "first_is_right",
    "fit_curves",
    "fit_weights",
    "frequency_shares",
    "mean_loss",
]

#: Rows of a label at which `fit_curves` fits weights; on a logarithmic scale they are linear in between.
FREQUENCIES = np.array([0, 1, 2, 8, 64, 1024])
# Of weights of either sign, and of what curves add to a weight, beside the mean loss of a row.
_PENALTY = 1e-3


def fit_weights(
    scores: NDArray[np.float64],
    right: NDArray[np.bool_],
    valid: NDArray[np.bool_],
    sample_weight: NDArray | None = None,
    *,
    signed: NDArray[np.bool_] | None = None,
    power: float = 0.0,
) -> NDArray[np.float64]:
    """Non-negative weights under which the right candidates are most likely.

    Minimises the mean of ``−log p`` with ``p = softmax(scores @ weights)[right]`` over the rows that
    have their label among the candidates, a convex problem. The weighted scores are then calibrated
    logits.

    A few rows with a wrong label can have most of that loss. With a positive ``power`` q, sources are
    weighed against each other by the generalised cross-entropy ``(1 − p^q) / q``, to which no row adds
    more than 1/q, starting from those weights. The scale of their sum is then fitted by ``−log p``.

    If rows have several right candidates, each is to be told from the wrong ones, and not from the
    others: a row counts once for each of them, with the others left out, and all together as one row.

    Parameters
    ----------
    scores : array of shape (rows, candidates, sources)
    right, valid : arrays of shape (rows, candidates)
        Which candidates are labels of the row; which count at all.
    sample_weight : array of shape (rows,), optional
    signed : bool array of shape (sources,), optional
        Which sources may have negative weights. They have a slight penalty, because there may be few
        rows to which they make a difference.
    power : float
        q, from 0 to 1.

    Examples
    --------
    >>> scores = np.array([[[2.0, 0.0], [1.0, 5.0]], [[0.0, 5.0], [1.0, 0.0]]])
    >>> right = np.array([[True, False], [False, True]])
    >>> weights = fit_weights(scores, right, np.ones((2, 2), dtype=bool))
    >>> bool(weights[0] > 1), float(weights[1])
    (True, 0.0)
    """
    rows, right, valid, share = _one_right(right, valid, sample_weight)
    scores, right, valid = _packed(scores[rows], right, valid)
    signed = np.zeros(scores.shape[2], dtype=bool) if signed is None else signed
    if rows.size == 0:
        return np.where(signed, 0.0, 1.0)
    share = share / share.sum()
    spread = scores[valid].std(axis=0)
    # A source that says the same of every candidate says nothing.
    silent = spread <= 1e-9 * np.abs(scores[valid]).max(axis=0)
    spread = np.where(silent, np.inf, spread)
    trial = _Trial((scores / spread).reshape(-1, spread.size), right, valid, share)
    found = trial.lowest(np.where(signed, 0.0, 0.5), 0.0, signed=signed)
    if power == 0:
        return found / spread
    weights = trial.lowest(found, power, signed=signed) / spread
    return weights * fit_weights((scores @ weights)[..., None], right, valid, share)


def fit_curves(
    scores: NDArray[np.float64],
    counts: NDArray[np.int64],
    right: NDArray[np.bool_],
    valid: NDArray[np.bool_],
    weights: NDArray[np.float64],
    sample_weight: NDArray | None = None,
) -> NDArray[np.float64]:
    """Weights of sources by the number of rows that a label has.

    A regression scores labels with few rows too low, because it shrinks them, and other sources are
    off in ways of their own. So the weight of a source becomes a curve over the number of rows, with
    corners at `FREQUENCIES`. Minimises the mean of ``−log p``, as `fit_weights` does, with a slight
    penalty for leaving the weights that are the same for all labels.

    Parameters
    ----------
    scores, right, valid, sample_weight : arrays
        As for `fit_weights`.
    counts : array of shape (rows, candidates)
        Rows of each candidate that the sources have learnt.
    weights : array of shape (sources,)
        Non-negative weights that are the same for all labels.

    Returns
    -------
    array of shape (sources, corners)

    Examples
    --------
    >>> scores = np.array([[[2.0], [1.0]], [[1.0], [2.0]]])
    >>> counts = np.array([[64, 1], [64, 1]])
    >>> right = np.array([[False, True], [False, True]])
    >>> curves = fit_curves(scores, counts, right, np.ones((2, 2), dtype=bool), np.ones(1))
    >>> bool(curves[0, 1] > 1 > curves[0, 4])
    True
    """
    rows, right, valid, share = _one_right(right, valid, sample_weight)
    n_sources, n_corners = scores.shape[2], FREQUENCIES.size
    same = np.repeat(weights, n_corners)
    if rows.size == 0:
        return same.reshape(n_sources, n_corners)
    spread = np.repeat(scores[rows][valid].std(axis=0).clip(min=1e-12), n_corners)
    parts = scores[rows][..., None] * frequency_shares(counts[rows])[:, :, None, :]
    trial = _Trial(parts.reshape(-1, same.size) / spread, right, valid, share / share.sum())
    found = trial.lowest_near(same * spread) / spread
    return found.reshape(n_sources, n_corners)


def frequency_shares(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """How much each of `FREQUENCIES` says of labels with so many rows; the last axis sums to 1.

    Examples
    --------
    >>> frequency_shares(np.array([0, 1, 4, 5000]))
    array([[1. , 0. , 0. , 0. , 0. , 0. ],
           [0. , 1. , 0. , 0. , 0. , 0. ],
           [0. , 0. , 0.5, 0.5, 0. , 0. ],
           [0. , 0. , 0. , 0. , 0. , 1. ]])
    """
    scale, corners = np.log2(np.maximum(counts, 0.5)), np.log2(np.maximum(FREQUENCIES, 0.5))
    return np.stack([np.interp(scale, corners, one) for one in np.eye(corners.size)], axis=-1)


class _Trial(NamedTuple):
    """Scores of all candidates, shape (rows · candidates, sources), and one right one for each row."""

    flat: NDArray[np.float64]
    right: NDArray[np.bool_]
    valid: NDArray[np.bool_]
    share: NDArray[np.float64]
    """How much each row counts."""

    def lowest(
        self, start: NDArray, power: float, *, signed: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """Weights with the smallest loss; those that are ``signed`` may be negative, for a penalty."""
        bounds = [(None if free else 0.0, None) for free in signed]
        return self._lowest(start, bounds, power, np.where(signed, _PENALTY, 0.0), 0.0)

    def lowest_near(self, center: NDArray) -> NDArray[np.float64]:
        """Non-negative weights with the smallest loss, for a penalty on leaving the center."""
        return self._lowest(center, [(0.0, None)] * center.size, 0.0, _PENALTY, center)

    def _lowest(self, start: NDArray, bounds: list[Any], *more: Any) -> NDArray[np.float64]:
        with one_blas_thread():
            found = minimize(
                self._objective, start, more, jac=True, method="L-BFGS-B", bounds=bounds
            )
        return found.x

    def _objective(
        self, weights: NDArray, power: float, penalty: NDArray | float, center: NDArray | float
    ) -> tuple[float, NDArray[np.float64]]:
        """Loss and slope."""
        away = weights - center
        p = _softmax((self.flat @ weights).reshape(self.valid.shape), self.valid)
        slopes = (self.share * p[self.right] ** power)[:, None] * (p - self.right)
        loss = self.share @ _losses(p[self.right], power) + np.sum(penalty * away**2) / 2
        return float(loss), slopes.ravel() @ self.flat + penalty * away


def _packed(
    scores: NDArray, right: NDArray[np.bool_], valid: NDArray[np.bool_]
) -> tuple[NDArray, NDArray[np.bool_], NDArray[np.bool_]]:
    """Without the columns that no row needs, once its valid candidates stand first."""
    most = int(valid.sum(axis=1).max(initial=0))
    order = np.argsort(~valid, axis=1, kind="stable")[:, :most]
    right, valid = (np.take_along_axis(table, order, 1) for table in (right, valid))
    return np.take_along_axis(scores, order[..., None], 1), right, valid


def _softmax(logits: NDArray, valid: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Probabilities of the valid candidates of each row."""
    logits = np.where(valid, logits, -np.inf)
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)


def _losses(p: NDArray, power: float) -> NDArray[np.float64]:
    """Cross-entropy, or its generalised form, of probabilities of the right candidates."""
    return (1 - p**power) / power if power > 0 else -np.log(np.maximum(p, 1e-300))


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
    *,
    power: float = 0.0,
) -> float:
    """Mean loss over the rows that have their label among the candidates, as in `fit_weights`.

    Examples
    --------
    >>> yes = np.ones((1, 2), dtype=bool)
    >>> round(mean_loss(np.zeros((1, 2)), np.array([[True, False]]), yes), 3)
    0.693
    >>> mean_loss(np.zeros((1, 2)), np.array([[True, False]]), yes, power=1.0)
    0.5
    """
    rows, right, valid, share = _one_right(right, valid, sample_weight)
    if rows.size == 0:
        return 0.0
    p = _softmax(total[rows], valid)
    return float(np.average(_losses(p[right], power), weights=share))


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
