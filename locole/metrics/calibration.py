"""How far probabilities can be trusted: calibration, log loss, and the error of the surest answers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from locole.exceptions import LocoleError

__all__ = [
    "RiskCoverage",
    "brier_score",
    "calibration_bins",
    "expected_calibration_error",
    "log_loss",
    "risk_coverage",
]

Floats = NDArray[np.float64]


class RiskCoverage(NamedTuple):
    """Error of the answers that are given against the share of rows that are answered."""

    coverage: Floats
    """Rising, from 1/rows to 1."""
    risk: Floats
    """Share of wrong answers among them."""

    @property
    def area(self) -> float:
        """Mean of the risk over all coverages: smaller is better."""
        return float(self.risk.mean())

    def risk_at(self, coverage: float) -> float:
        """Error of this share of the rows, the surest.

        Parameters
        ----------
        coverage : float
            Share of rows that are answered, in (0, 1].
        """
        place = max(round(coverage * self.risk.size), 1)
        return float(self.risk[place - 1])


def calibration_bins(
    proba: ArrayLike, right: ArrayLike, *, n_bins: int = 15
) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Mean probability, accuracy and number of rows of bins that hold the same number of rows.

    Parameters
    ----------
    proba : array-like of shape (rows,)
        Probabilities of the answers.
    right : array-like of shape (rows,)
        Which answers are right.
    n_bins : int
        Number of bins.

    Returns
    -------
    proba : array of shape (n_bins,)
        Mean probability of each bin.
    accuracy : array of shape (n_bins,)
        Share of right answers in each bin.
    rows : array of shape (n_bins,)
        Number of rows in each bin.

    Examples
    --------
    >>> mean, accuracy, rows = calibration_bins([0.2, 0.3, 0.8, 0.9], [0, 0, 1, 1], n_bins=2)
    >>> mean.round(2).tolist(), accuracy.tolist(), rows.tolist()
    ([0.25, 0.85], [0.0, 1.0], [2, 2])
    """
    p, is_right = _checked(proba, right)
    parts = [part for part in np.array_split(np.argsort(p, kind="stable"), n_bins) if part.size]
    mean = np.array([p[part].mean() for part in parts])
    accuracy = np.array([is_right[part].mean() for part in parts])
    return mean, accuracy, np.array([part.size for part in parts])


def expected_calibration_error(proba: ArrayLike, right: ArrayLike, *, n_bins: int = 15) -> float:
    r"""Mean distance of probability and accuracy over bins of equal mass.

    .. math:: \sum_b \frac{n_b}{n} |\bar p_b - \mathrm{accuracy}_b|

    Also perfect probabilities have an error of the order of :math:`\sqrt{p (1 - p) / n_b}`.

    Parameters
    ----------
    proba, right, n_bins
        As for `calibration_bins`.

    Returns
    -------
    float
        Between 0, the best, and 1.

    Examples
    --------
    >>> round(expected_calibration_error([0.2, 0.3, 0.8, 0.9], [0, 0, 1, 1], n_bins=2), 3)
    0.2
    """
    mean, accuracy, rows = calibration_bins(proba, right, n_bins=n_bins)
    return float(np.average(np.abs(mean - accuracy), weights=rows))


def log_loss(proba_of_label: ArrayLike) -> float:
    """Mean of −log p over the rows, p being the probability of the right label.

    Parameters
    ----------
    proba_of_label : array-like of shape (rows,)
        Probability that each row's right label was given.

    Returns
    -------
    float
        0 is best.

    Examples
    --------
    >>> round(log_loss([1.0, 0.5]), 4)
    0.3466
    """
    p = np.asarray(proba_of_label, dtype=np.float64)
    return float(-np.log(np.maximum(p, np.finfo(np.float64).tiny)).mean())


def brier_score(topk_proba: ArrayLike, topk_right: ArrayLike) -> float:
    r"""Brier score of the best k labels, the mean of :math:`\sum_{r \le k} (p_r - 1_r)^2` over the rows.

    Labels after the k-th count as if they had probability 0 and were wrong.

    Parameters
    ----------
    topk_proba, topk_right : array-like of shape (rows, k)
        Probabilities of the best labels, and which of them are right.

    Returns
    -------
    float
        0 is best; at most 2.

    Examples
    --------
    >>> round(brier_score([[0.8, 0.1]], [[True, False]]), 3)
    0.05
    """
    p, right = np.asarray(topk_proba, dtype=np.float64), np.asarray(topk_right, dtype=bool)
    return float(((p - right) ** 2).sum(axis=1).mean())


def risk_coverage(proba: ArrayLike, right: ArrayLike) -> RiskCoverage:
    """Error of the surest rows, for every share of them.

    Parameters
    ----------
    proba, right : array-like of shape (rows,)
        Probabilities of the answers, and which are right.

    Returns
    -------
    RiskCoverage
        The curve; its ``risk_at`` reads a point of it.

    Examples
    --------
    >>> curve = risk_coverage([0.9, 0.5, 0.7, 0.6], [1, 0, 1, 0])
    >>> curve.risk.round(3).tolist(), round(curve.area, 3)
    ([0.0, 0.0, 0.333, 0.5], 0.208)
    """
    p, is_right = _checked(proba, right)
    order = np.argsort(-p, kind="stable")
    given = np.arange(1, p.size + 1)
    return RiskCoverage(given / p.size, np.cumsum(~is_right[order]) / given)


def _checked(proba: ArrayLike, right: ArrayLike) -> tuple[Floats, NDArray[np.bool_]]:
    p, is_right = np.asarray(proba, dtype=np.float64), np.asarray(right).astype(bool)
    if p.ndim != 1 or p.shape != is_right.shape or not p.size:
        raise LocoleError("proba and right must be two lists of the same length, which is not 0.")
    if not ((p >= 0) & (p <= 1 + 1e-9)).all():
        raise LocoleError("proba must be numbers from 0 to 1.")
    return p, is_right
