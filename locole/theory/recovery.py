"""Several labels: when the sum of their vectors says which they are.

The proof is written out in ``docs/research/theory.md``.
"""

from __future__ import annotations

import math

from locole.exceptions import LocoleError
from locole.theory.bounds import inner_product_range

_ROUNDING = 1e-12

__all__ = ["recovered_labels", "recovery_coherence"]


def recovery_coherence(n_labels: int) -> float:
    """Coherence below which every sum of so many label vectors is decoded without a mistake.

    ``1 / (2k − 1)`` for k labels: then the k labels of the sum have the largest k scores, and orthogonal
    matching pursuit finds them too, also with weights of any size (J. Tropp, "Greed is good", 2004).

    Parameters
    ----------
    n_labels : int
        k, at least 1.

    Returns
    -------
    float
        The bound on the coherence.

    Examples
    --------
    >>> recovery_coherence(1), round(recovery_coherence(3), 3)
    (1.0, 0.2)
    """
    if isinstance(n_labels, bool) or not isinstance(n_labels, int) or n_labels < 1:
        raise LocoleError(f"n_labels must be a whole number of at least 1, not {n_labels!r}.")
    return 1 / (2 * n_labels - 1)


def recovered_labels(
    coherence: float | None = None, *, low: float | None = None, high: float | None = None
) -> int | float:
    """Largest k for which every sum of k label vectors is decoded without a mistake.

    The largest k with ``1 + (k − 1)·a > k·b`` for inner products in [a, b], which is
    ``λ < 1 / (2k − 1)`` for a coherence λ, the range [−λ, λ]. Infinity for orthogonal vectors.

    Parameters
    ----------
    coherence : float, optional
        λ in [0, 1). Give this, or both ``low`` and ``high``.
    low, high : float, optional
        Range of Re⟨g_i, g_j⟩ over i ≠ j.

    Returns
    -------
    int or float
        ``inf`` if any number is decoded.

    Examples
    --------
    >>> recovered_labels(1 / 32)  # Kerdock codes of 1,024 outputs
    16
    >>> recovered_labels(low=-1 / 22, high=1 / 24)
    11
    """
    a, b = inner_product_range(coherence, low, high)
    # 1 − a > k·(b − a)
    if b == a:
        return math.inf
    # A quotient that rounding may have lifted above a whole number counts as that.
    return max(math.ceil((1 - a) / (b - a) * (1 - _ROUNDING)) - 1, 1)
