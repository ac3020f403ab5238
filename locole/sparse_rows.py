"""Sparse rows: their lengths, a constant feature, and sums of the rows of each label."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

__all__ = [
    "ROWS",
    "column_squares",
    "compact",
    "label_sums",
    "row_squares",
    "times_columns",
    "unit_rows",
    "with_constant",
]

#: Rows looked at in one go where the work needs copies of them.
ROWS = 4_096


def row_squares(X: sp.csr_array) -> NDArray[np.float64]:
    """‖x‖² of each row; squares of tiny or huge numbers need double precision.

    Examples
    --------
    >>> row_squares(sp.csr_array(np.array([[3.0, 4.0], [0.0, 0.0]])))
    array([25.,  0.])
    """
    squares = np.zeros(X.shape[0])
    # A piece after the other, since all at once would be two more copies of X.
    for start in range(0, X.shape[0], ROWS):
        places = X.indptr[start : start + ROWS + 1]
        values = np.square(X.data[places[0] : places[-1]], dtype=np.float64)
        owner = np.repeat(np.arange(places.size - 1), np.diff(places))
        squares[start : start + ROWS] = np.bincount(owner, values, places.size - 1)
    return squares


def column_squares(X: sp.csr_array, weight: NDArray | None = None) -> NDArray[np.float64]:
    """Σ x² of each feature over all rows, which count by their weights.

    Examples
    --------
    >>> column_squares(sp.csr_array(np.array([[3.0, 0.0], [1.0, 2.0]])), np.array([1.0, 2.0]))
    array([11.,  8.])
    """
    weight = np.ones(X.shape[0]) if weight is None else weight
    squares = np.zeros(X.shape[1])
    for start in range(0, X.shape[0], ROWS):
        places = X.indptr[start : start + ROWS + 1]
        part = slice(places[0], places[-1])
        values = np.square(X.data[part], dtype=np.float64)
        values *= np.repeat(weight[start : start + ROWS], np.diff(places))
        squares += np.bincount(X.indices[part], values, X.shape[1])
    return squares


def times_columns(X: sp.csr_array, factors: NDArray) -> sp.csr_array:
    """X with each feature multiplied by its factor.

    Examples
    --------
    >>> times_columns(sp.csr_array(np.array([[3.0, 4.0]])), np.array([2.0, 0.5])).toarray()
    array([[6., 2.]])
    """
    return sp.csr_array((X.data * factors[X.indices], X.indices, X.indptr), shape=X.shape)


def unit_rows(X: sp.csr_array, *, stored_zeros: bool = False) -> sp.csr_array:
    """Rows of unit length in float32, without stored zeros if not asked for; empty rows stay empty.

    Examples
    --------
    >>> unit_rows(sp.csr_array(np.array([[3.0, 4.0], [0.0, 0.0]]))).toarray()
    array([[0.6, 0.8],
           [0. , 0. ]], dtype=float32)
    """
    lengths = np.sqrt(row_squares(X))
    lengths[lengths == 0] = 1
    data = (X.data / np.repeat(lengths, np.diff(X.indptr))).astype(np.float32)
    unit = sp.csr_array((data, X.indices, X.indptr), shape=X.shape, copy=True)
    if not stored_zeros:
        unit.eliminate_zeros()
    return unit


def with_constant(X: sp.csr_array) -> sp.csr_array:
    """X with a last feature that is always 1."""
    ones = sp.csr_array(np.ones((X.shape[0], 1), dtype=X.dtype))
    return sp.csr_array(sp.hstack([X, ones], format="csr"))


def label_sums(
    X: sp.csr_array,
    codes: NDArray[np.int64],
    n_classes: int,
    *,
    owners: NDArray[np.int64] | None = None,
) -> sp.csr_array:
    """Sum of the rows of each label; ``owners`` are the rows of the codes, if not one after the other.

    Examples
    --------
    >>> label_sums(sp.csr_array(np.eye(3)), np.array([1, 0, 1]), 2).toarray()
    array([[0., 1., 0.],
           [1., 0., 1.]])
    """
    owners = np.arange(codes.size) if owners is None else owners
    ones, shape = np.ones(codes.size, dtype=X.dtype), (n_classes, X.shape[0])
    member = sp.csr_array((ones, (codes, owners)), shape=shape)
    return sp.csr_array(member @ X)


def compact(X: sp.csr_array) -> sp.csr_array:
    """The same rows with 32-bit indices, if these are enough: kernels are compiled for each type."""
    largest = max(*X.shape, X.nnz)
    if X.indices.dtype == X.indptr.dtype == np.int32 or largest > np.iinfo(np.int32).max:
        return X
    parts = (X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32))
    return sp.csr_array(parts, shape=X.shape)
