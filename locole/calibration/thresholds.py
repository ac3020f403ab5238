"""Thresholds for the probability of an answer, with a guarantee for finitely many validation rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from locole.exceptions import LocoleError

__all__ = ["Threshold", "coverage_threshold", "error_threshold"]

# Shares of the validation rows that are tried first, each at a part of the error probability.
_STARTS = (1 / 2, 1 / 8, 1 / 32)
# Shares that are tried from each start to all rows.
_TRIED = 64


@dataclass(frozen=True)
class Threshold:
    """Smallest probability of an answer that is given; ``float()`` of it is the number.

    Attributes
    ----------
    min_proba : float
        Answers with a smaller probability are held back.
    confidence : float
        Probability, over the draw of the validation rows, that what was asked for holds.
    error : float
        Share of wrong answers among the validation rows that are answered.
    coverage : float
        Share of the validation rows that are answered.
    rows : int
        Number of validation rows.
    """

    min_proba: float
    confidence: float
    error: float
    coverage: float
    rows: int

    def __float__(self) -> float:
        return self.min_proba


def error_threshold(
    proba: NDArray[np.float64],
    right: NDArray[np.bool_],
    *,
    max_error: float,
    confidence: float = 0.95,
) -> Threshold:
    r"""Smallest threshold whose answers are wrong with probability at most ``max_error``.

    Hypotheses "the error above threshold t exceeds α" are tested one after the other for falling t, by
    the exact binomial test, and the last that is rejected is taken (fixed sequence testing; Angelopoulos
    et al., "Learn then test", 2021). Three such sequences begin at different shares of the rows, each at
    a third of the level. With probability ``confidence`` the error is then at most α.

    Parameters
    ----------
    proba : array of shape (rows,)
        Probabilities of the answers to validation rows.
    right : array of shape (rows,)
        Which of the answers are right.
    max_error : float
        α, in (0, 1).
    confidence : float
        In (0, 1).

    Returns
    -------
    Threshold
        The smallest probability of an answer that is given, and what is known of it.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.uniform(size=2000)
    >>> found = error_threshold(proba, rng.uniform(size=2000) < proba, max_error=0.1)
    >>> found.error <= 0.1, 0.7 < float(found) < 0.9
    (True, True)
    """
    order = np.argsort(-proba, kind="stable")
    sure, errors, n = proba[order], np.cumsum(~right[order]), proba.size
    # Only where the next row is less sure: rows that tie are answered together.
    ends = np.append(np.flatnonzero(np.diff(sure) < 0) + 1, n) if n else np.empty(0, dtype=int)
    best, level = 0, (1 - confidence) / len(_STARTS)
    for start in _STARTS:
        tried = np.unique(np.linspace(start * n, n, _TRIED).astype(np.int64))
        tried = (
            np.unique(ends[np.searchsorted(ends, tried).clip(max=ends.size - 1)]) if n else tried
        )
        passed = np.append(binom.cdf(errors[tried - 1], tried, max_error) <= level, False)
        n_passed = int(passed.argmin())
        best = max(best, int(tried[n_passed - 1]) if n_passed else 0)
    if best == 0:
        raise LocoleError(
            f"no threshold is sure to keep the error at {max_error:g} with {n:,} validation rows: take "
            "a larger max_error, or call calibrate with more rows."
        )
    return Threshold(float(sure[best - 1]), confidence, float(errors[best - 1] / best), best / n, n)


def coverage_threshold(
    proba: NDArray[np.float64],
    right: NDArray[np.bool_],
    *,
    coverage: float,
    confidence: float = 0.95,
) -> Threshold:
    """Largest threshold that at least the share ``coverage`` of all rows reaches, with ``confidence``.

    Examples
    --------
    >>> found = coverage_threshold(np.linspace(0, 1, 1001), np.ones(1001, dtype=bool), coverage=0.8)
    >>> 0.17 < float(found) < 0.2
    True
    """
    n = proba.size
    # The m-th smallest has at least this share above it unless more than m − 1 of n rows are below.
    below = int(binom.ppf(1 - confidence, n, 1 - coverage)) - 1
    sure = np.sort(proba)
    least = float(sure[below]) if below >= 0 else 0.0
    kept = proba >= least
    error = float((~right[kept]).mean()) if kept.any() else 0.0
    return Threshold(least, confidence, error, float(kept.mean()) if n else 1.0, n)
