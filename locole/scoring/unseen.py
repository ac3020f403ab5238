"""Scores of labels without rows, calibrated against those of labels that have some."""

from __future__ import annotations

from math import log
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from locole.exceptions import ModelFileError
from locole.io import saved_as
from locole.samples import LARGEST
from locole.scoring.weights import fit_weights

__all__ = ["UnseenCalibration", "best_mean"]

# Labels with rows whose mean score says how well a row is known.
_BEST = 8
# Best labels without rows that compete while weights are fitted.
_LEADING = 16
# Validation rows, and right labels without rows among their candidates, that four numbers need.
_MIN_ROWS, _MIN_FOUND = 1_000, 20


@saved_as("unseen_calibration")
class UnseenCalibration:
    r"""Calibration of an ensemble's scores of labels without rows (calibrated stacking).

    .. math:: s'_i(x) = \begin{cases} a\,s_i(x) & \text{if label i has rows} \\
              d\,s_i(x) + c + g\,m(x) & \text{if it has none, but a text} \end{cases}

    with the mean m(x) of the eight best scores among labels with rows. Rows of a label say more than
    its text, so scores of the two kinds differ in scale (d), and the level of the best scores depends
    on the row (g). A constant c alone puts labels without rows behind dozens of labels with rows that
    have next to no probability.

    Parameters
    ----------
    weights : array of shape (4,)
        a, d, c and g.

    Examples
    --------
    >>> calibration = UnseenCalibration(np.array([1.0, 0.5, -1.0, 0.8]))
    >>> calibration.applied(np.array([[6.0, 4.0, 2.0]]), np.array([[False, False, True]]))
    array([[6., 4., 4.]])
    """

    def __init__(self, weights: NDArray[np.float64]) -> None:
        self.weights = weights

    @classmethod
    def fit(
        cls,
        totals: NDArray[np.float64],
        right: NDArray[np.bool_],
        valid: NDArray[np.bool_],
        is_unseen: NDArray[np.bool_],
        *,
        competing: tuple[int, int] = (1, 1),
        sample_weight: NDArray | None = None,
    ) -> Self | None:
        """Weights under which the right candidates are most likely; None if too few rows tell.

        On validation rows, n labels without rows compete: those that were hidden, and n' without any row
        at all, which are never right there. Later only the n' compete. So c is raised by
        log(n / max(n', n − n')): as if no more than max(n', n − n') had competed.

        Parameters
        ----------
        totals, right, valid, is_unseen : arrays of shape (rows, candidates)
            Scores; which candidates are labels of the row, count at all, and have a text but no rows.
        competing : tuple of int
            n and n', the labels with a text but no rows now, and when all rows have been learnt.
        sample_weight : array of shape (rows,), optional
        """
        if len(right) < _MIN_ROWS or (right & valid & is_unseen).sum() < _MIN_FOUND:
            return None
        level = best_mean(np.where(valid, totals, -np.inf), is_unseen)
        order = np.argsort(-np.where(valid & is_unseen, totals, -np.inf), axis=1, kind="stable")
        leading = np.zeros_like(valid)
        np.put_along_axis(leading, order[:, :_LEADING], True, 1)
        parts = (totals * ~is_unseen, totals * is_unseen, is_unseen, is_unseen * level[:, None])
        weights = fit_weights(
            np.stack(parts, axis=-1),
            right,
            valid & (leading | right | ~is_unseen),
            sample_weight,
            signed=np.array([False, False, True, True]),
        )
        if not weights[0] > 0:
            return None
        now, later = competing
        weights[2] += log(now / max(later, now - later))
        return cls(weights)

    def applied(
        self,
        totals: NDArray[np.float64],
        is_unseen: NDArray[np.bool_],
        level: NDArray[np.float64] | None = None,
    ) -> NDArray[np.float64]:
        """Calibrated scores; −∞ stays.

        Parameters
        ----------
        totals : array of shape (rows, labels)
            Scores.
        is_unseen : bool array of shape (rows, labels) or (labels,)
            Which labels have a text but no rows.
        level : array of shape (rows,), optional
            m; by default that of these labels.
        """
        level = best_mean(totals, is_unseen) if level is None else level
        is_label = totals > -np.inf
        scaled = self.factors(is_unseen) * np.where(is_label, totals, 0.0)
        return np.where(is_label, scaled + self.added(is_unseen, level), -np.inf)

    def added(
        self, is_unseen: NDArray[np.bool_], level: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """What labels without rows get beside their own scaled scores; 0 for others."""
        _, _, c, g = self.weights
        return np.where(is_unseen, c + g * level[:, None], 0.0)

    def factors(self, is_unseen: NDArray[np.bool_]) -> NDArray[np.float64]:
        """What the own score of each label is multiplied with."""
        return np.where(is_unseen, self.weights[1], self.weights[0])

    # Save ---------------------------------------------------------------------------------------

    def _state(self) -> dict[str, Any]:
        return {"weights": self.weights}

    @classmethod
    def _from_state(cls, values: dict[str, Any]) -> Self:
        weights: Any = values.get("weights")
        is_array = isinstance(weights, np.ndarray) and weights.dtype == np.float64
        if len(values) != 1 or not is_array or weights.shape != (4,):
            raise ModelFileError("its weights of labels without rows are missing")
        is_number = np.abs(weights) <= LARGEST  # also not if one is not a number
        if not is_number.all() or weights[0] <= 0 or weights[1] < 0:
            raise ModelFileError("its weights of labels without rows are invalid")
        return cls(weights)


def best_mean(totals: NDArray[np.float64], is_unseen: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Mean of the eight best scores of labels with rows, or of as many as there are.

    Examples
    --------
    >>> best_mean(np.array([[3.0, -np.inf, 1.0, 9.0]]), np.array([False, False, False, True]))
    array([2.])
    """
    seen = np.where(is_unseen, -np.inf, totals)
    if seen.shape[1] > _BEST:
        seen = np.partition(seen, -_BEST, axis=1)[:, -_BEST:]
    best = np.sort(seen, axis=1)  # so that sums do not depend on the order of labels
    known = best > -np.inf
    return np.where(known, best, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
