"""What coherence costs: the risk and the error bars that follow from it.

The derivations are written out in ``docs/theory.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from locole.exceptions import LocoleError

__all__ = [
    "RiskBound",
    "excess_risk_bound",
    "lossless_margin",
    "posterior_error_bar",
    "required_coherence",
]

Constant = Literal["tight", "paper"]
Floats = NDArray[np.float64]


def lossless_margin(
    coherence: float | None = None, *, low: float | None = None, high: float | None = None
) -> float:
    """Margin d(x) above which decoding the ideal regressor is always right.

    ``(b - a) / (1 - a)`` for real inner products in [a, b]; ``2λ / (1 + λ)`` for a coherence λ,
    which is the range [-λ, λ].

    Parameters
    ----------
    coherence : float, optional
        λ in [0, 1). Give this, or both ``low`` and ``high``.
    low, high : float, optional
        Range of Re⟨g_i, g_j⟩ over i ≠ j.

    Returns
    -------
    float
        The margin, in [0, 1).

    Examples
    --------
    >>> round(lossless_margin(0.0625), 4)
    0.1176
    >>> round(lossless_margin(low=-1 / 22, high=1 / 24), 4)
    0.0833
    """
    a, b = inner_product_range(coherence, low, high)
    return _threshold(a, b)


def required_coherence(margin: float) -> float:
    """Coherence below which labels of this margin survive the embedding without loss.

    ``c / (2 - c)``, the inverse of :func:`lossless_margin`.

    Parameters
    ----------
    margin : float
        Massart margin c in [0, 1]: d(x) >= c for almost every x.

    Returns
    -------
    float
        Any coherence strictly below this makes ``excess_risk_bound`` free of an irreducible term.

    Examples
    --------
    >>> required_coherence(0.5)
    0.3333333333333333
    >>> required_coherence(1.0)
    1.0
    """
    c = _checked("margin", margin, upper=1.0)
    return c / (2.0 - c)


@dataclass(frozen=True)
class RiskBound:
    """An upper bound on the excess 0-1 risk, with the terms it is made of.

    Attributes
    ----------
    value : float
        The bound, clipped to 1, which no excess 0-1 risk exceeds.
    r : float
        Margin at which the infimum is reached; ``inf`` when splitting by margin does not help.
    irreducible, mixed, fast : float
        The three terms at ``r``, not clipped: a constant times P(d < r), one that falls like the
        square root of the excess squared risk, and one that falls like the risk itself.
    threshold : float
        The lossless margin; the infimum is taken over r above it.
    constant : str
        "tight" or "paper".
    vacuous : bool
        True when the three terms add up to 1 or more, so that the bound says nothing.
    """

    value: float
    r: float
    irreducible: float
    mixed: float
    fast: float
    threshold: float
    constant: Constant
    vacuous: bool


def excess_risk_bound(
    excess_squared_risk: float,
    coherence: float | None = None,
    *,
    low: float | None = None,
    high: float | None = None,
    margins: ArrayLike | None = None,
    massart: float | None = None,
    constant: Constant = "tight",
) -> RiskBound:
    """Bound the excess 0-1 risk of a label embedding by its excess squared risk.

    With real inner products in [a, b], t = (b - a)/(1 - a), K = 4 - 4b: the infimum over r > t of
    ``t P(d < r) + sqrt(K P(d < r) E) / (1 - a) + K E / ((1 - a) r - (b - a))²``.
    A coherence λ stands for [-λ, λ]: t = 2λ/(1 + λ), K = 4 - 4λ, 1 - a = 1 + λ, b - a = 2λ.

    Parameters
    ----------
    excess_squared_risk : float
        E, the excess of the risk of ½‖f(x) - g_y‖² over its minimum: the mean of ½‖f(x) - p*(x)‖².
    coherence : float, optional
        λ in [0, 1), or λ_Re, which is enough. Give this, or both ``low`` and ``high``.
    low, high : float, optional
        Range of Re⟨g_i, g_j⟩ over i ≠ j: as a rule a sharper bound than λ gives.
    margins : array-like of shape (m,), optional
        d(x) in [0, 1] at sampled x; P(d < r) is their empirical distribution.
    massart : float, optional
        A margin c that d(x) never falls below. With neither of the two, P(d < r) = 1 is assumed.
    constant : {"tight", "paper"}
        K = 4 - 4λ, or the paper's larger 4 - 2λ (with a coherence only).

    Returns
    -------
    RiskBound
        The value, clipped to 1 (``vacuous`` says whether it was), and its parts.

    Examples
    --------
    >>> bound = excess_risk_bound(0.01, 0.0625, massart=0.6)
    >>> round(bound.value, 4), bound.r
    (0.1428, 0.6)
    >>> round(excess_risk_bound(0.01, 0.0625, massart=0.6, constant="paper").value, 4)
    0.1475
    >>> excess_risk_bound(0.01, 0.0625, margins=[0.05, 0.7, 0.9, 1.0]).r
    0.7
    """
    a, b = inner_product_range(coherence, low, high)
    excess = _checked("excess_squared_risk", excess_squared_risk, upper=None)
    numerator = _numerator(b, coherence=coherence, constant=constant)
    steps, below = _margin_steps(margins, massart, a=a, b=b)
    return _infimum(steps, below, a=a, b=b, scaled=numerator * excess, constant=constant)


def posterior_error_bar(score: ArrayLike, coherence_re: float) -> tuple[Floats, Floats]:
    """Interval of the posterior η_i that a decoder score allows.

    Solves ``|score_i - η_i| <= λ_Re (1 - η_i)``, which holds for scores Re⟨p*(x), g_i⟩:
    η_i lies between ``(s - λ_Re)/(1 - λ_Re)`` and ``(s + λ_Re)/(1 + λ_Re)``, clipped to [0, 1].

    Parameters
    ----------
    score : array-like
        Decoder scores of a regressor whose output is not normalised; any shape.
    coherence_re : float
        λ_Re = max ``|Re⟨g_i, g_j⟩|`` in [0, 1); the coherence itself is safe too.

    Returns
    -------
    low, high : ndarray of the shape of ``score``
        Both ends. A learnt f adds at most ‖f(x) - p*(x)‖ to the distance of a score from its ideal.

    Examples
    --------
    >>> low, high = posterior_error_bar([0.0, 0.5, 1.0], 0.1)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.0, 0.444, 1.0], [0.091, 0.545, 1.0])
    """
    lam = _coherence(coherence_re)
    s = np.asarray(score, dtype=np.float64)
    if np.isnan(s).any():
        raise LocoleError("score holds NaN: there is no posterior to bracket.")
    low, high = (s - lam) / (1.0 - lam), (s + lam) / (1.0 + lam)
    return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)


def _margin_steps(
    margins: ArrayLike | None, massart: float | None, *, a: float, b: float
) -> tuple[Floats, Floats]:
    """Return the values at which P(d < r) jumps, ascending, and P(d < r) at each."""
    if margins is not None and massart is not None:
        raise LocoleError("Give margins or massart, not both.")
    if massart is not None:
        return np.array([_massart(massart, a=a, b=b)]), np.zeros(1)
    if margins is None:
        return np.empty(0), np.empty(0)
    d = np.asarray(margins, dtype=np.float64).ravel()
    if d.size == 0 or not ((d >= 0.0) & (d <= 1.0)).all():
        raise LocoleError("margins must be one or more numbers in [0, 1], without NaN.")
    values, counts = np.unique(d, return_counts=True)
    return values, (np.cumsum(counts) - counts) / d.size


def _infimum(
    steps: Floats, below: Floats, *, a: float, b: float, scaled: float, constant: Constant
) -> RiskBound:
    """Minimise over r: between two steps the objective falls, so only the steps and inf compete."""
    threshold = _threshold(a, b)
    keep = steps > threshold
    # Past the largest margin {d >= r} is empty and P(d < r) is 1: r = inf drops the third term.
    r, p = np.append(steps[keep], np.inf), np.append(below[keep], 1.0)
    irreducible, mixed = threshold * p, np.sqrt(p * scaled) / (1.0 - a)
    with np.errstate(over="ignore"):  # a step right above the threshold: infinite, never chosen
        fast = (math.sqrt(scaled) / ((1.0 - a) * (r - threshold))) ** 2
    total = irreducible + mixed + fast
    best = int(np.argmin(total))
    return RiskBound(
        value=min(1.0, float(total[best])),
        r=float(r[best]),
        irreducible=float(irreducible[best]),
        mixed=float(mixed[best]),
        fast=float(fast[best]),
        threshold=threshold,
        constant=constant,
        vacuous=bool(total[best] >= 1.0),
    )


def _threshold(a: float, b: float) -> float:
    return (b - a) / (1.0 - a)


def _numerator(b: float, *, coherence: float | None, constant: str) -> float:
    if constant == "tight":
        return 4.0 - 4.0 * b
    if constant != "paper":
        raise LocoleError(f"constant must be 'tight' or 'paper', not {constant!r}.")
    if coherence is None:
        raise LocoleError("constant='paper' needs a coherence: the paper has no bound for a range.")
    return 4.0 - 2.0 * b


def _massart(margin: float, *, a: float, b: float) -> float:
    c = _checked("massart", margin, upper=1.0)
    if c <= _threshold(a, b):
        raise LocoleError(
            f"massart={c:g} is not above this embedding's lossless margin {_threshold(a, b):.4g}: "
            f"a coherence below c/(2-c) = {required_coherence(c):.4g} would be low enough; take a "
            f"larger dim, or give margins instead."
        )
    return c


def inner_product_range(
    coherence: float | None, low: float | None, high: float | None
) -> tuple[float, float]:
    if coherence is not None and low is None and high is None:
        lam = _coherence(coherence)
        return -lam, lam
    if coherence is not None or low is None or high is None:
        raise LocoleError("Give either a coherence, or both low and high.")
    if not -1.0 <= low <= high < 1.0:
        raise LocoleError(f"Needs -1 <= low <= high < 1, not low={low}, high={high}.")
    return float(low), float(high)


def _coherence(value: float) -> float:
    if not 0.0 <= value < 1.0:
        raise LocoleError(
            f"coherence must lie in [0, 1), not {value}: at 1 two labels share a vector."
        )
    return float(value)


def _checked(name: str, value: float, *, upper: float | None) -> float:
    if not 0.0 <= value <= (np.inf if upper is None else upper) or not math.isfinite(value):
        span = "finite and >= 0" if upper is None else f"in [0, {upper:g}]"
        raise LocoleError(f"{name} must be {span}, not {value}.")
    return float(value)
