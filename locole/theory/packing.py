"""How low the coherence of so many vectors can be: the bounds of sphere packing."""

from __future__ import annotations

import math
import operator
from typing import Literal

from locole.exceptions import LocoleError

__all__ = ["coherence_lower_bound", "levenshtein_bound", "orthoplex_bound", "welch_bound"]

Field = Literal["real", "complex"]


def welch_bound(n_classes: int, dim: int) -> float:
    """Welch's lower bound on the coherence of ``n_classes`` unit vectors.

    ``sqrt((C - n) / (n (C - 1)))`` for C > n, and 0 for C <= n, where an orthonormal set exists.

    Parameters
    ----------
    n_classes : int
        Number of vectors C.
    dim : int
        Dimension n of the space, real or complex.

    Returns
    -------
    float
        No embedding of this size has a lower coherence, nor a lower RMS inner product.

    Examples
    --------
    >>> round(welch_bound(12046, 512), 4)
    0.0432
    >>> welch_bound(10, 10)
    0.0
    """
    c, n = _sizes(n_classes, dim)
    return math.sqrt((c - n) / (n * (c - 1))) if c > n else 0.0


def orthoplex_bound(n_classes: int, dim: int, *, field: Field = "real") -> float:
    """Orthoplex lower bound on the coherence of many unit vectors.

    ``1 / sqrt(n)`` once C > n(n+1)/2 (real) or C > n² (complex); 0 where it says nothing.

    Parameters
    ----------
    n_classes : int
        Number of vectors C.
    dim : int
        Dimension n over ``field``.
    field : {"real", "complex"}
        The numbers that the vectors are made of.

    Returns
    -------
    float
        The bound, or 0 when C is too small for it.

    Examples
    --------
    >>> orthoplex_bound(200, 16)
    0.25
    >>> orthoplex_bound(200, 16, field="complex")
    0.0
    """
    c, n = _sizes(n_classes, dim)
    return 1.0 / math.sqrt(n) if c > _gerzon(n, field) else 0.0


def levenshtein_bound(n_classes: int, dim: int, *, field: Field = "real") -> float:
    """Levenshtein's lower bound on the coherence of many unit vectors.

    ``sqrt((3C - n² - 2n) / ((n + 2)(C - n)))`` for C > n(n+1)/2 real vectors,
    ``sqrt((2C - n² - n) / ((n + 1)(C - n)))`` for C > n² complex ones; 0 where it says nothing.

    Parameters
    ----------
    n_classes, dim, field
        As for `orthoplex_bound`.

    Returns
    -------
    float
        The bound, or 0 when C is too small for it.

    Notes
    -----
    Equals 1/sqrt(n) at C = n(n+2)/2 (real) and C = n(n+1) (complex), where full sets of mutually
    unbiased bases, among them Kerdock's, attain it.

    Examples
    --------
    >>> levenshtein_bound(16 * 18 // 2, 16)
    0.25
    >>> levenshtein_bound(16 * 17, 16, field="complex")
    0.25
    """
    c, n = _sizes(n_classes, dim)
    if c <= _gerzon(n, field):
        return 0.0
    if field == "real":
        return math.sqrt((3 * c - n * n - 2 * n) / ((n + 2) * (c - n)))
    return math.sqrt((2 * c - n * n - n) / ((n + 1) * (c - n)))


def coherence_lower_bound(n_classes: int, dim: int, *, field: Field = "real") -> float:
    """Return the largest of the Welch, orthoplex and Levenshtein bounds.

    Parameters
    ----------
    n_classes : int
        Number of vectors C.
    dim : int
        Dimension n over ``field``.
    field : {"real", "complex"}
        The numbers that the vectors are made of.

    Returns
    -------
    float
        No set of C unit vectors in this space has a lower coherence.

    Examples
    --------
    >>> round(coherence_lower_bound(12046, 128), 4)
    0.1122
    >>> round(welch_bound(12046, 128), 4)
    0.0879
    """
    return max(
        welch_bound(n_classes, dim),
        orthoplex_bound(n_classes, dim, field=field),
        levenshtein_bound(n_classes, dim, field=field),
    )


def _sizes(n_classes: int, dim: int) -> tuple[int, int]:
    c, n = operator.index(n_classes), operator.index(dim)
    if c < 1 or n < 1:
        raise LocoleError(f"n_classes and dim must be at least 1, not {n_classes} and {dim}.")
    return c, n


def _gerzon(n: int, field: str) -> int:
    """Gerzon's number of lines: beyond it Welch's bound cannot be attained."""
    if field not in ("real", "complex"):
        raise LocoleError(f"field must be 'real' or 'complex', not {field!r}.")
    return n * (n + 1) // 2 if field == "real" else n * n
