"""Weights of several scores, fitted to validation rows."""

from __future__ import annotations

from functools import partial
from typing import Self

import numpy as np
from numpy.typing import NDArray

from locole.kernels.candidates import Candidates, lowest_quadratic, softmax_moments

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
# Newton's method: curvature that is added, steps at most, and sweeps within one.
_RIDGE, _STEPS, _SWEEPS = 1e-9, 50, 200
# Gain below which the likelihood's weights are near enough to begin another loss at.
_NEAR = 1e-3


def fit_weights(
    scores: NDArray[np.float64],
    right: NDArray[np.bool_],
    valid: NDArray[np.bool_],
    sample_weight: NDArray | None = None,
    *,
    signed: NDArray[np.bool_] | None = None,
    power: float = 0.0,
    start: NDArray[np.float64] | None = None,
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
    start : array of shape (sources,), optional
        Weights to begin at, such as those fitted with one source more.

    Examples
    --------
    >>> rows = [[[2.0, 0], [1, 5]], [[0, 5], [1, 0]], [[1, 0], [2, 0]]]
    >>> right = np.array([[True, False], [False, True], [True, False]])
    >>> fit_weights(np.array(rows), right, np.ones((3, 2), dtype=bool)).round(2)
    array([0.69, 0.  ])
    """
    trial = _Trial.of(scores, right, valid, sample_weight)
    signed = np.zeros(scores.shape[2], dtype=bool) if signed is None else signed
    if not trial.share.size:
        return np.where(signed, 0.0, 1.0)
    spread = trial.scores.std(axis=0)
    # A source that says the same of every candidate says nothing.
    silent = spread <= 1e-9 * np.abs(trial.scores).max(axis=0)
    unit = np.where(silent, 0.0, 1 / np.where(silent, 1.0, spread))
    penalty = np.where(signed, _PENALTY, 0.0)
    lowest = partial(trial.times(unit).lowest, penalty=penalty, signed=signed)
    near = np.where(signed, 0.0, 0.5)
    if start is not None:
        near = start * np.where(silent, 0.0, spread)
    if power == 0:
        return lowest(near) * unit
    if start is None:
        near = lowest(near, least_gain=_NEAR)
    weights = lowest(near, power=power) * unit
    total = trial._replace(scores=(trial.scores @ weights)[:, None])
    return weights * total.lowest(np.ones(1))


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
    trial = _Trial.of(scores, right, valid, sample_weight)
    n_sources, n_corners = scores.shape[2], FREQUENCIES.size
    same = np.repeat(weights, n_corners)
    if not trial.share.size:
        return same.reshape(n_sources, n_corners)
    spread = np.repeat(trial.scores.std(axis=0).clip(min=1e-12), n_corners)
    is_used = valid & (right & valid).any(axis=1, keepdims=True)
    corners = frequency_shares(counts[is_used])
    parts = (trial.scores[:, :, None] * corners[:, None, :]).reshape(-1, same.size) / spread
    center = same * spread
    trial = trial._replace(scores=parts)
    found = trial.lowest(center, penalty=np.full(same.size, _PENALTY), center=center) / spread
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


class _Trial(Candidates):
    """Valid candidates of the rows that have a right one, in the order of the tables."""

    @classmethod
    def of(
        cls,
        scores: NDArray,
        right: NDArray[np.bool_],
        valid: NDArray[np.bool_],
        sample_weight: NDArray | None,
    ) -> Self:
        """From tables of rows and candidates."""
        right = right & valid
        n_right = right.sum(axis=1)
        used = np.flatnonzero(n_right)
        weight = np.ones(len(right)) if sample_weight is None else sample_weight
        share = weight[used] / n_right[used]
        starts = np.append(0, valid[used].sum(axis=1).cumsum())
        is_used = valid & (n_right > 0)[:, None]
        return cls(scores[is_used], starts, right[is_used], share / weight[used].sum())

    def times(self, factors: NDArray) -> Self:
        """With each source multiplied by its factor."""
        return self._replace(scores=self.scores * factors)

    def moments(self, weights: NDArray, power: float) -> tuple[float, NDArray, NDArray]:
        """Loss, its slope, and its curvature, without the part that may make it negative if it does."""
        n = weights.size
        slope, curvature, slopes = np.empty(n), np.empty((n, n)), np.empty((n, n))
        loss = softmax_moments(Candidates(*self), weights, power, slope, curvature, slopes)
        if power > 0:
            whole = curvature - power * slopes
            if np.linalg.eigvalsh(whole)[0] > -_RIDGE / 2:
                curvature = whole
        return loss, slope, curvature

    def lowest(
        self,
        start: NDArray,
        *,
        power: float = 0.0,
        penalty: NDArray | None = None,
        center: NDArray | float = 0.0,
        signed: NDArray[np.bool_] | None = None,
        least_gain: float = 1e-6,
    ) -> NDArray[np.float64]:
        """Weights with the smallest loss, by Newton's method with bounds.

        Parameters
        ----------
        start : array of shape (sources,)
        power : float
            Of the generalised cross-entropy.
        penalty : array of shape (sources,), optional
            Of being away from the center.
        center : array or float
        signed : bool array of shape (sources,), optional
            Which weights may be negative.
        least_gain : float
            Lower loss for which another step is worth its time.
        """
        penalty = np.zeros(start.size) if penalty is None else penalty
        bound = np.zeros(start.size)
        if signed is not None:
            bound[signed] = -np.inf

        def at(weights: NDArray) -> tuple[float, NDArray, NDArray]:
            loss, slope, curvature = self.moments(weights, power)
            away = weights - center
            loss += float(penalty @ away**2) / 2
            return loss, slope + penalty * away, curvature + np.diag(penalty + _RIDGE)

        weights, step = start.astype(np.float64), np.empty(start.size)
        here, slope, curvature = at(weights)
        for _ in range(_STEPS):
            lowest_quadratic(slope, curvature, bound - weights, _SWEEPS, step)
            gain = -float(slope @ step)
            if gain < least_gain:
                return weights + step
            length, then = 1.0, at(weights + step)
            while then[0] > here - 1e-4 * length * gain and length > 1e-6:
                length /= 2
                then = at(weights + length * step)
            if then[0] >= here:
                break
            weights = weights + length * step
            here, slope, curvature = then
        return weights


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
    trial = _Trial.of(total[..., None], right, valid, sample_weight)
    return trial.moments(np.ones(1), power)[0]
