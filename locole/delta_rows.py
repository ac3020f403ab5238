"""Sparse rows whose columns are delta-coded: two bytes for a column, whatever their number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from locole.exceptions import ModelFileError
from locole.io import saved_as
from locole.io.trust import check_pointers
from locole.kernels.delta import last_column
from locole.sparse_rows import ROWS

__all__ = ["DeltaRows"]

# The longest step to the next entry.
_LONGEST = int(np.iinfo(np.uint16).max)
# Columns that a file may speak of; scipy cannot count further than 2^63.
_MOST_COLUMNS = 1 << 48


@saved_as("rows.delta")
class DeltaRows:
    """CSR rows that hold the distance of each entry from the one before it in place of its column.

    Distances take two bytes, where columns of scipy's arrays take four or eight. Where the next entry is
    further away, entries of the value 0 stand between, 65,535 columns apart. A row is read from its
    first entry on; there is no random access to columns.

    Parameters
    ----------
    starts : array of int32 or int64 of shape (n_rows + 1,)
        Row i has the entries at places ``starts[i]`` to ``starts[i+1]``.
    steps : array of uint16
        Distance of each entry from the one before it, that of the first from column 0.
    values : array
        Of each entry.
    n_columns : int

    Examples
    --------
    >>> rows = DeltaRows.of(sp.csr_array(np.array([[0.0, 0.5, 0.0, 2.0], [1.0, 0.0, 0.0, 0.0]])))
    >>> rows.steps
    array([1, 2, 0], dtype=uint16)
    >>> rows.take(np.array([1, 0])).toarray()
    array([[1. , 0. , 0. , 0. ],
           [0. , 0.5, 0. , 2. ]])
    """

    def __init__(
        self,
        starts: NDArray[np.integer],
        steps: NDArray[np.uint16],
        values: NDArray,
        n_columns: int,
    ) -> None:
        self.starts, self.steps, self.values, self.n_columns = starts, steps, values, n_columns

    @classmethod
    def of(cls, X: sp.csr_array) -> Self:
        """Code rows without duplicates; zeros are left out."""
        parts = (X[first : first + ROWS] for first in range(0, max(X.shape[0], 1), ROWS))
        return cls.stacked([cls._coded(sp.csr_array(part, copy=True)) for part in parts])

    @classmethod
    def _coded(cls, X: sp.csr_array) -> Self:
        X.eliminate_zeros()
        X.sort_indices()
        steps = np.diff(X.indices.astype(np.int64), prepend=0)
        is_first = X.indptr[:-1][np.diff(X.indptr) > 0]
        steps[is_first] = X.indices[is_first]
        between = np.maximum(steps - 1, 0) // _LONGEST
        before = np.append(0, np.cumsum(between))
        n_entries = X.nnz + before[-1]
        coded, values = np.full(n_entries, _LONGEST, np.uint16), np.zeros(n_entries, X.dtype)
        place = np.arange(X.nnz) + before[1:]
        coded[place], values[place] = steps - _LONGEST * between, X.data
        return cls(_pointers(np.diff(X.indptr + before[X.indptr])), coded, values, int(X.shape[1]))

    @classmethod
    def stacked(cls, parts: Sequence[DeltaRows]) -> Self:
        """The rows of all parts, one below the other; there is at least one part."""
        return cls(
            _pointers(np.concatenate([np.diff(part.starts) for part in parts])),
            np.concatenate([part.steps for part in parts]),
            np.concatenate([part.values for part in parts]),
            parts[0].n_columns,
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return self.starts.size - 1, self.n_columns

    @property
    def columns(self) -> NDArray[np.int64]:
        """Column of each entry."""
        columns = np.cumsum(self.steps, dtype=np.int64)
        before = np.append(0, columns)[self.starts[:-1]]
        return columns - np.repeat(before, np.diff(self.starts))

    def counts(self, rows: NDArray) -> NDArray[np.int64]:
        """Entries of some rows, those of the value 0 included."""
        return self.starts[rows + 1].astype(np.int64) - self.starts[rows]

    def places(self, rows: NDArray) -> NDArray[np.int64]:
        """Places of the entries of some rows, one row after the other."""
        counts = self.counts(rows)
        ends = np.cumsum(counts)
        return np.arange(counts.sum()) + np.repeat(self.starts[rows] - (ends - counts), counts)

    def take(self, rows: NDArray) -> DeltaRows:
        """Some of the rows."""
        places, starts = self.places(rows), _pointers(self.counts(rows))
        return DeltaRows(starts, self.steps[places], self.values[places], self.n_columns)

    def with_values(self, values: NDArray) -> DeltaRows:
        """The same entries with other values, in their order."""
        return DeltaRows(self.starts, self.steps, values, self.n_columns)

    def widened(self, n_columns: int) -> DeltaRows:
        """The same entries among more columns."""
        return DeltaRows(self.starts, self.steps, self.values, n_columns)

    def csr(self) -> sp.csr_array:
        """The rows as scipy has them, without zeros."""
        X = sp.csr_array((self.values, self.columns, self.starts), shape=self.shape, copy=True)
        X.eliminate_zeros()
        return X

    def toarray(self) -> NDArray:
        """The rows as a dense array."""
        return self.csr().toarray()

    # Save ---------------------------------------------------------------------------------------

    def _state(self) -> dict[str, Any]:
        return dict(vars(self))

    @classmethod
    def _from_state(cls, values: dict[str, Any]) -> Self:
        rows = cls(**values)
        check_pointers(rows.starts, "delta-coded rows", end=rows.steps.size)
        if type(rows.n_columns) is not int or not 0 <= rows.n_columns <= _MOST_COLUMNS:
            raise ModelFileError("its delta-coded rows have an impossible number of columns")
        fits = rows.steps.ndim == 1 and rows.steps.dtype == np.uint16
        if not fits or rows.values.shape != rows.steps.shape:
            raise ModelFileError("its delta-coded rows are not a step and a value for each entry")
        if last_column(rows.starts, rows.steps) >= rows.n_columns:
            raise ModelFileError("its delta-coded rows have entries outside their columns")
        return rows


def _pointers(lengths: NDArray) -> NDArray[np.integer]:
    """Where lists of these lengths begin and end, in four bytes where these are enough."""
    ends = np.append(0, np.cumsum(lengths, dtype=np.int64))
    return ends.astype(np.int32) if ends[-1] <= np.iinfo(np.int32).max else ends
