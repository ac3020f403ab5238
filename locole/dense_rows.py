"""Dense rows, alone or beside sparse ones: which view of the rows a scorer looks at."""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from locole.exceptions import LocoleError
from locole.parallel.memory import available_bytes

__all__ = [
    "DenseRows",
    "PairedRows",
    "dense_view",
    "in_float32",
    "plain_view",
    "room_for",
    "sparse_view",
]

# Part of the memory that an array may take; larger ones go to a file.
_SHARE = 0.5
# Rows that are converted in one go.
_ROWS = 4096


class DenseRows:
    """Some rows of an array, perhaps of one on disk; taking fewer of them copies none.

    Parameters
    ----------
    array : array of shape (n, n_features)
        Also a memory-mapped one, of which only the rows asked for are read.
    rows : array of int, optional
        Which rows; by default all.

    Examples
    --------
    >>> rows = DenseRows(np.arange(8.0).reshape(4, 2)).take(np.array([3, 1]))
    >>> rows.shape, rows[1:]
    ((2, 2), array([[2., 3.]], dtype=float32))
    """

    def __init__(self, array: NDArray, rows: NDArray[np.int64] | None = None) -> None:
        self.array, self.rows = array, rows

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and of features."""
        n_rows = self.array.shape[0] if self.rows is None else self.rows.size
        return n_rows, self.array.shape[1]

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> NDArray[np.float32]:
        """Read some rows."""
        places = rows if self.rows is None else self.rows[rows]
        return np.asarray(self.array[places], dtype=np.float32)

    def take(self, rows: NDArray[np.int64]) -> DenseRows:
        """Some of the rows.

        Parameters
        ----------
        rows : array of int
            Which of them.
        """
        return DenseRows(self.array, rows if self.rows is None else self.rows[rows])


class PairedRows:
    """The same rows seen twice: sparse features, and dense ones beside them.

    What knows of one kind of features only, sees the sparse ones.

    Parameters
    ----------
    sparse : CSR array
        Sparse features.
    dense : array of shape (n_rows, numbers) or DenseRows
        Dense features of the same rows.

    Examples
    --------
    >>> rows = PairedRows(sp.csr_array(np.eye(3)), np.ones((3, 2)))
    >>> rows.shape, rows[:2].dense.shape
    ((3, 3), (2, 2))
    """

    def __init__(self, sparse: Any, dense: Any) -> None:
        self.sparse = sp.csr_array(sparse)
        self.dense = dense if isinstance(dense, DenseRows) else DenseRows(dense)
        if self.sparse.shape[0] != len(self.dense):
            raise LocoleError(
                f"there are {self.sparse.shape[0]:,} rows of sparse and {len(self.dense):,} of dense "
                "features: give both for every row."
            )

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and of sparse features."""
        return self.sparse.shape

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> PairedRows:
        """Read some rows."""
        return PairedRows(self.sparse[rows], self.dense[rows])

    def take(self, rows: NDArray[np.int64]) -> PairedRows:
        """Some of the rows; the dense ones are not read yet.

        Parameters
        ----------
        rows : array of int
            Which of them.
        """
        return PairedRows(self.sparse[rows], self.dense.take(rows))


def dense_view(X: Any) -> DenseRows:
    """Rows for what takes dense features."""
    if isinstance(X, PairedRows):
        return X.dense
    if not sp.issparse(X):
        return X if isinstance(X, DenseRows) else DenseRows(X)
    needed, left = X.dtype.itemsize * X.shape[0] * X.shape[1], available_bytes()
    if left is not None and needed > left:
        raise LocoleError(
            f"X is sparse with {X.shape[1]:,} features and would take {needed / 1e9:.1f} GB as dense "
            "rows: take scorers for sparse rows."
        )
    return DenseRows(X.toarray())


def sparse_view(X: Any) -> sp.csr_array:
    """Rows for what takes sparse features, as a CSR array."""
    return sp.csr_array(plain_view(X))


def plain_view(X: Any) -> Any:
    """Rows for what takes one kind of features: an array or a matrix, whatever it was."""
    if isinstance(X, PairedRows):
        return X.sparse
    return X[:] if isinstance(X, DenseRows) else X


def room_for(n_rows: int, n_numbers: int) -> NDArray[np.float32]:
    """Return an array in memory, or in a temporary file if it would fill half of that."""
    left = available_bytes()
    if left is None or 4 * n_rows * n_numbers <= _SHARE * left:
        return np.empty((n_rows, n_numbers), dtype=np.float32)
    with tempfile.TemporaryFile() as file:  # which is there as long as it is mapped
        return np.memmap(file, dtype=np.float32, mode="w+", shape=(n_rows, n_numbers))


def in_float32(X: NDArray) -> NDArray[np.float32]:
    """Rows of another type as float32, in memory or, if they are too many, in a temporary file.

    Examples
    --------
    >>> in_float32(np.ones((2, 3), dtype=np.float16)).dtype
    dtype('float32')
    """
    made = room_for(*X.shape)
    for start in range(0, len(X), _ROWS):
        made[start : start + _ROWS] = X[start : start + _ROWS]
    return made
