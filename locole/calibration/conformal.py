"""Label sets that hold the right label with a probability that is chosen: split conformal prediction."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Method", "SetRule", "bands_of", "in_sets", "pseudo_uniform", "set_rule"]

Method = Literal["lac", "aps"]
Floats = NDArray[np.float64]

# Bands of label frequency, and validation rows that each of them needs.
_BANDS, _BAND_ROWS = 4, 100


class SetRule(NamedTuple):
    """Which labels of a row are in its set."""

    method: Method
    """How sets are made, "lac" or "aps"."""
    limits: Floats
    """For each band of labels: the smallest probability ("lac"), or the largest mass ("aps")."""
    edges: NDArray[np.int64]
    """Training rows of a label from which on it belongs to the next band."""


def set_rule(
    proba: Floats,
    before: Floats,
    uniform: Floats,
    counts: NDArray[np.int64],
    *,
    coverage: float,
    method: Method = "lac",
    by_frequency: bool = False,
) -> SetRule:
    r"""Rule from validation rows, under which a row's set has its label with probability ``coverage``.

    With the score 1 − p(y) ("lac": the smallest sets on average; Sadinle, Lei, Wasserman, 2019) or
    :math:`\sum_{p_i > p_y} p_i + u\, p_y` with u uniform ("aps": sets that grow where rows are hard;
    Romano, Sesia, Candès, 2020), the limit is the ⌈(n + 1)·coverage⌉-th smallest score of n rows. If
    validation rows and new rows are exchangeable, the right label is in the set with at least that
    probability. By frequency, labels are pooled into up to four bands by their number of training rows,
    with a limit and the same guarantee for each band.

    Parameters
    ----------
    proba, before : arrays of shape (rows,)
        Probability of the right label; mass of the labels before it.
    uniform : array of shape (rows,)
        u.
    counts : array of shape (rows,)
        Training rows of the right label.
    coverage : float
        In (0, 1).
    method : {"lac", "aps"}
        The score, as above.
    by_frequency : bool
        Whether the guarantee is for each band of labels, not for all rows together.

    Returns
    -------
    SetRule
        For `in_sets`.

    Examples
    --------
    >>> p = np.linspace(0.005, 1, 200)
    >>> rule = set_rule(p, 1 - p, p, np.ones(200, dtype=int), coverage=0.9)
    >>> round(float(rule.limits[0]), 3)
    0.1
    """
    scores = 1 - proba if method == "lac" else before + uniform * proba
    edges = np.empty(0, dtype=np.int64)
    if by_frequency:
        n_bands = max(1, min(_BANDS, counts.size // _BAND_ROWS))
        at = np.quantile(counts, np.arange(1, n_bands) / n_bands)
        edges = np.unique(np.ceil(at).astype(np.int64))
    bands = bands_of(counts, edges)
    found = [_quantile(scores[bands == band], coverage) for band in range(edges.size + 1)]
    limits = np.array(found)
    return SetRule(method, 1 - limits if method == "lac" else limits, edges)


def bands_of(counts: NDArray[np.int64], edges: NDArray[np.int64]) -> NDArray[np.int64]:
    """Band of each label by its number of training rows."""
    return np.searchsorted(edges, counts, side="right")


def _quantile(scores: Floats, coverage: float) -> float:
    """The ⌈(n + 1)·coverage⌉-th smallest of n scores; 1, which all labels reach, if n is smaller."""
    place = int(np.ceil((scores.size + 1) * coverage - 1e-9))
    return float(np.partition(scores, place - 1)[place - 1]) if 0 < place <= scores.size else 1.0


def in_sets(
    proba: Floats, uniform: Floats, counts: NDArray[np.int64], rule: SetRule
) -> NDArray[np.bool_]:
    """Which labels are in the sets, shape (rows, k).

    Parameters
    ----------
    proba : array of shape (rows, k)
        Probabilities of the best labels, falling.
    uniform : array of shape (rows,)
        u of each row.
    counts : array of shape (rows, k)
        Training rows of these labels.
    rule : SetRule
        From `set_rule`.

    Returns
    -------
    array of bool of shape (rows, k)
        Whether each label is in the set of its row.

    Examples
    --------
    >>> rule = SetRule("lac", np.array([0.3]), np.empty(0, dtype=int))
    >>> in_sets(np.array([[0.5, 0.3, 0.2]]), np.zeros(1), np.ones((1, 3), dtype=int), rule)
    array([[ True,  True, False]])
    """
    limits = rule.limits[bands_of(counts, rule.edges)]
    if rule.method == "lac":
        return proba >= limits
    before = np.cumsum(proba, axis=1) - proba
    return before + uniform[:, None] * proba <= limits


def pseudo_uniform(scores: NDArray) -> Floats:
    """A number in [0, 1) for each row, made of the bits of its first score: the same for the same row.

    Examples
    --------
    >>> u = pseudo_uniform(np.linspace(0, 1, 1000)[:, None])
    >>> bool(0.45 < u.mean() < 0.55)
    True
    """
    bits = np.ascontiguousarray(scores[:, 0], dtype=np.float64).view(np.uint64).copy()
    # The finaliser of splitmix64.
    with np.errstate(over="ignore"):
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
    return (bits ^ (bits >> np.uint64(31))).astype(np.float64) / 2.0**64
