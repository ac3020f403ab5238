"""Probabilities from the best scores of a row: one for the answer, and the rest shared by the others."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, log_expit

__all__ = ["SHORT_LIST", "Probabilities", "places_of"]

#: Labels of a row whose scores count; those behind them are told apart by their rank alone.
SHORT_LIST = 16
# Knots of the two curves, and validation rows that each of them needs.
_KNOTS, _ROWS_FOR_KNOT = 2, 100
# Penalty of coefficients of standardised features, beside the sum of the rows' losses.
_RIDGE = 1 / 3
_STEPS = 30
# Penalty of what is fitted to the rows with a wrong answer, which may be few, for being off its start:
# a scale at which the last of the short list has e^−4 of the first's odds.
_PRIOR_ROWS, _SCALE = 2.0, 4.0
_POWERS = 0.0, 3.0
# Largest logit of an answer: no validation rows say more.
_SUREST = 16.0

Floats = NDArray[np.float64]


class Probabilities(NamedTuple):
    r"""Turns the best scores of a row, s_1 ≥ s_2 ≥ …, into probabilities of all labels.

    The answer, label 1, is right with probability

    .. math:: p_1 = \sigma(b + f(\ell) + g(s_1)), \qquad
              \ell = s_1 / T - \log \sum_{r=2}^{16} e^{s_r / T}

    with piecewise linear curves f and g, and the temperature T under which the softmax of the best 16
    scores is most likely. The other labels share 1 − p_1: those of ranks 2 to 16 in
    proportion to :math:`e^{\beta s_r}`, all that come later together in proportion to
    :math:`e^{\beta s_{16} + c}`, which falls with the rank r like :math:`r^{-a}`. No label has a larger
    probability than one before it, and equal scores are equally probable. All numbers are fitted by
    maximum likelihood to validation rows.

    Examples
    --------
    >>> scores = np.array([[3.0, 1.0, 0.0], [1.0, 0.9, 0.0]] * 50)
    >>> found = Probabilities.fit(scores, np.array([0, 1] * 50), n_classes=3)
    >>> p = np.exp(found.log_proba(scores[:2], n_classes=3))
    >>> p.sum(axis=1).round(6).tolist(), bool(p[0, 0] > p[1, 0])
    ([1.0, 1.0], True)
    """

    scale: float
    """1 / T."""
    knots: Floats
    """Of f and g, shape (2, knots)."""
    coef: Floats
    """b, then the slopes of f and of g and how much they change at each knot."""
    others: Floats
    """β, c and a."""

    @classmethod
    def fit(
        cls,
        scores: Floats,
        places: NDArray[np.int64],
        *,
        n_classes: int,
        weight: NDArray | None = None,
        scale: float | None = None,
    ) -> Probabilities:
        """Fit to validation rows.

        Parameters
        ----------
        scores : array of shape (rows, k)
            The best scores of each row, falling; −∞ where there are fewer.
        places : array of shape (rows,)
            Where the right label stands among all candidates, from 0; −1 if it is not among them.
        n_classes : int
            Number of labels.
        weight : array of shape (rows,), optional
            How much each row counts.
        scale : float, optional
            1 / T, if it is known.
        """
        n_ranked = np.minimum((scores > -np.inf).sum(axis=1), n_classes - 1)
        scores = _short(scores, n_classes)
        weight = np.ones(len(scores)) if weight is None else weight / weight.mean()
        scale = _fit_scale(scores, places, weight) if scale is None else scale
        scores = scale * scores
        n_knots = min(_KNOTS, len(scores) // _ROWS_FOR_KNOT)
        values = _values(scores)
        at = np.arange(1, n_knots + 1) / (n_knots + 1)
        knots = np.quantile(values, at, axis=0).T.reshape(2, n_knots)
        coef = _fit_logistic(_bases(values, knots), places == 0, weight)
        wrong = (places > 0) | ((places < 0) & (n_classes > scores.shape[1]))
        power = _fit_power(
            places[wrong], n_ranked[wrong], weight[wrong], scores.shape[1], n_classes
        )
        others = _fit_others(scores[wrong], places[wrong], weight[wrong], power, n_classes)
        return cls(scale, knots, coef, others)

    @classmethod
    def guess(
        cls, scores: Floats, *, n_classes: int, weight: NDArray | None = None
    ) -> Probabilities:
        """Without validation rows: the best label of such rows has odds of about 7 against the next.

        Only the order of these probabilities means something.

        Parameters
        ----------
        scores : array of shape (rows, k)
            Best scores of some rows, falling.
        n_classes : int
            Number of labels.
        weight : array of shape (rows,), optional
            How much each row counts.
        """
        scores = _short(scores, n_classes)
        gap = float(np.average(scores[:, 0] - scores[:, 1], weights=weight))
        scale = 2 / gap if gap > 1e-12 else 1.0
        return cls(scale, np.empty((2, 0)), np.array([0.0, 1.0, 0.0]), np.array([1.0, 0.0, 1.0]))

    def log_proba(self, scores: Floats, *, n_classes: int) -> Floats:
        """Logarithms of the probabilities of the best labels of each row, shape as ``scores``.

        Parameters
        ----------
        scores : array of shape (rows, k)
            The best scores of each row, falling; k is at least `SHORT_LIST`, or all labels.
        n_classes : int
            Number of labels.
        """
        first, others, rest = self._parts(scores, n_classes)
        out = np.empty(scores.shape)
        k = 1 + others.shape[1]
        out[:, 0], out[:, 1:k] = first, others
        if scores.shape[1] > k:
            ranks = np.arange(k + 1, scores.shape[1] + 1)
            out[:, k:] = rest[:, None] + _log_tail(ranks, self.others[2], k, n_classes)
        return out

    def log_rest(self, scores: Floats, *, n_classes: int) -> Floats:
        """Logarithm of the mass of all labels behind the short list, shape (rows,).

        Parameters
        ----------
        scores : array of shape (rows, k)
            Best scores of each row, falling.
        n_classes : int
            Number of labels.
        """
        return self._parts(scores, n_classes)[2]

    def _parts(self, scores: Floats, n_classes: int) -> tuple[Floats, Floats, Floats]:
        """Logarithms of p_1, of the others on the short list, and of the mass behind it."""
        short = self.scale * _short(scores, n_classes)
        steepness, rest, _ = self.others
        odds = _odds_of_others(short, steepness, rest, n_classes)
        shares = odds - _log_sum_exp(odds)[:, None]
        logit = _bases(_values(short), self.knots) @ self.coef
        # No label is before the first: p_1 / (1 − p_1) is at least the second's share of the rest. Nor
        # is it before one with the same score, as all labels have for a row without features.
        lowest = shares[:, 0] + 1e-9
        alike = (scores[:, :1] == scores[:, 1:2]).any(axis=1) & np.isfinite(scores[:, 0])
        logit = np.where(alike, lowest, np.minimum(np.maximum(logit, lowest), _SUREST))
        left = shares + log_expit(-logit)[:, None]
        return log_expit(logit), left[:, :-1], left[:, -1]


def places_of(right: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Place of the first that is right in each row, −1 if none is.

    Examples
    --------
    >>> places_of(np.array([[False, True], [False, False]]))
    array([ 1, -1])
    """
    return np.where(right.any(axis=1), right.argmax(axis=1), -1)


def _short(scores: NDArray, n_classes: int) -> Floats:
    """Scores of the short list as doubles; where a list is shorter, its last score goes on."""
    short = np.asarray(scores[:, : min(SHORT_LIST, n_classes)], dtype=np.float64)
    if np.isfinite(short).all():
        return short
    lowest = np.where(np.isfinite(short), short, np.inf).min(axis=1, keepdims=True)
    return np.where(np.isfinite(short), short, np.where(np.isfinite(lowest), lowest, 0.0))


def _values(short: Floats) -> Floats:
    """ℓ and s_1, shape (rows, 2)."""
    return np.column_stack([short[:, 0] - _log_sum_exp(short[:, 1:]), short[:, 0]])


def _log_sum_exp(values: Floats) -> Floats:
    """Logarithm of the sum over each row; scipy's takes longer to look at its arguments than to add."""
    most = values.max(axis=1)
    return most + np.log(np.exp(values - most[:, None]).sum(axis=1))


def _bases(values: Floats, knots: Floats) -> Floats:
    """One, and for each of the two values itself and how far it is above each knot."""
    columns = [np.ones(len(values))]
    for value, own in zip(values.T, knots, strict=True):
        columns += [value, *(np.maximum(value - knot, 0.0) for knot in own)]
    return np.column_stack(columns)


def _fit_scale(scores: Floats, places: NDArray[np.int64], weight: NDArray) -> float:
    """Factor under which the softmax of the short list makes the right labels most likely."""
    use = (places >= 0) & (places < scores.shape[1])
    gaps = scores[use] - scores[use, :1]
    spread = -float(gaps.mean()) if use.any() else 0.0
    if spread <= 1e-12:
        return 1.0
    found, weight = np.take_along_axis(gaps, places[use, None], 1)[:, 0] / spread, weight[use]
    gaps = gaps / spread

    def loss(log_scale: float) -> float:
        scale = np.exp(log_scale)
        return float(weight @ (np.log(np.exp(scale * gaps).sum(axis=1)) - scale * found))

    best = minimize_scalar(loss, bounds=(-3.0, 5.0), method="bounded", options={"xatol": 1e-3})
    return float(np.exp(best.x)) / spread


def _fit_logistic(bases: Floats, right: NDArray[np.bool_], weight: NDArray) -> Floats:
    """Penalised maximum likelihood by Newton's method; targets are smoothed as Platt does."""
    mean, spread = bases.mean(axis=0), bases.std(axis=0)
    mean[0], spread[0] = 0.0, 1.0
    spread = np.where(spread > 1e-9 * (1 + np.abs(mean)), spread, np.inf)
    A = (bases - mean) / spread
    n_right = float(weight[right].sum())
    n_wrong = float(weight.sum()) - n_right
    target = np.where(right, (n_right + 1) / (n_right + 2), 1 / (n_wrong + 2))
    ridge = np.full(A.shape[1], _RIDGE)
    ridge[0] = 1e-9
    theta = np.zeros(A.shape[1])
    theta[0] = np.log((n_right + 1) / (n_wrong + 1))
    for _ in range(_STEPS):
        theta, moved = _newton(A, target, weight, ridge, theta)
        if moved < 1e-8:
            break
    coef = theta / spread
    coef[0] = theta[0] - coef[1:] @ mean[1:]
    return coef


def _newton(
    A: Floats, target: Floats, weight: NDArray, ridge: Floats, theta: Floats
) -> tuple[Floats, float]:
    """One step, shortened until it lowers the loss, and how far it went."""

    def loss(theta: Floats) -> float:
        z = A @ theta
        return float(-weight @ (target * log_expit(z) + (1 - target) * log_expit(-z))) + float(
            ridge @ theta**2 / 2
        )

    p = expit(A @ theta)
    slope = A.T @ (weight * (p - target)) + ridge * theta
    curvature = (A * (weight * p * (1 - p))[:, None]).T @ A + np.diag(ridge + 1e-9)
    step = np.linalg.solve(curvature, slope)
    here, length = loss(theta), 1.0
    while length > 1e-6 and loss(theta - length * step) > here:
        length /= 2
    return theta - length * step, float(np.abs(length * step).max())


def _odds_of_others(short: Floats, steepness: float, rest: float, n_classes: int) -> Floats:
    """Logits of the labels after the first, and of all behind the short list as the last column."""
    logits = steepness * (short[:, 1:] - short[:, :1])
    behind = logits[:, -1:] + (rest if n_classes > short.shape[1] else -np.inf)
    return np.hstack([logits, behind])


def _log_tail(ranks: NDArray[np.int64], power: float, k: int, n_classes: int) -> Floats:
    """Logarithm of ``r^−a / Σ_{k<j≤n} j^−a``."""
    # Up to here term by term, from here by Euler and Maclaurin's formula.
    middle = min(k + 64, n_classes)
    total = float((np.arange(k + 1.0, middle + 1) ** -power).sum())
    if n_classes > middle:
        first, last = middle + 1.0, float(n_classes)
        exponent = 1 - power
        area = np.log(last / first)
        if abs(exponent) > 1e-9:
            area = (last**exponent - first**exponent) / exponent
        total += area + (first**-power + last**-power) / 2
        total += power * (first ** (-power - 1) - last ** (-power - 1)) / 12
    return -power * np.log(ranks) - np.log(total)


def _fit_others(
    scores: Floats, places: NDArray[np.int64], weight: NDArray, power: float, n_classes: int
) -> Floats:
    """β, c and a, which is given, from the rows whose answer is wrong."""
    k = scores.shape[1]
    # The first label behind the short list must not have more than the last one on it.
    most = -float(_log_tail(np.array([k + 1]), power, k, n_classes)[0]) if n_classes > k else 0.0
    spread = max(float((scores[:, 0] - scores[:, -1]).mean()), 1e-9) if len(scores) else 1.0
    column = np.where((places >= 1) & (places < k), places - 1, k - 1)

    rows, center = np.arange(len(scores)), np.log(_SCALE)

    def loss(theta: Floats) -> tuple[float, Floats]:
        odds = _odds_of_others(scores, np.exp(theta[0]) / spread, theta[1], n_classes)
        log_p = odds - _log_sum_exp(odds)[:, None]
        value, slope = float(-weight @ log_p[rows, column]), np.exp(log_p)
        slope[rows, column] -= 1
        # Both logits at the end of a row have the score of its last label.
        steep = np.hstack([odds[:, :-1], odds[:, -2:-1]])
        slopes = np.array([weight @ (slope * steep).sum(axis=1), weight @ slope[:, -1]])
        if most:
            away = np.array([theta[0] - center, theta[1] / most])
            value += _PRIOR_ROWS * float(away @ away)
            slopes += 2 * _PRIOR_ROWS * away / [1.0, most]
        return value, slopes

    theta = np.array([center, 0.0])
    if len(scores) and k > 2:
        bounds = [(-7.0, 7.0), (-50.0 if most else 0.0, most)]
        theta = minimize(loss, theta, jac=True, method="L-BFGS-B", bounds=bounds).x
    return np.array([np.exp(theta[0]) / spread, theta[1], power])


def _fit_power(
    places: NDArray[np.int64],
    n_ranked: NDArray[np.int64],
    weight: NDArray,
    k: int,
    n_classes: int,
) -> float:
    """How fast the mass behind the short list falls with the rank.

    A label that is not among the ``n_ranked`` candidates of its row has a rank behind all of these.
    """
    if n_classes <= k + 1:
        return 1.0
    far, missed = places >= k, (places < 0) & (n_ranked >= k)
    depth = n_ranked[missed] - k
    ranks = np.arange(k + 1, k + 1 + depth.max(initial=0))
    tried = np.linspace(*_POWERS, 31)
    losses = []
    for power in tried:
        passed = np.exp(_log_tail(ranks, power, k, n_classes)).cumsum()
        behind = np.log1p(-np.append(0.0, passed)[depth])
        found = weight[far] @ _log_tail(places[far] + 1, power, k, n_classes)
        losses.append(_PRIOR_ROWS * (power - 1) ** 2 - found - weight[missed] @ behind)
    return float(tried[np.argmin(losses)])
