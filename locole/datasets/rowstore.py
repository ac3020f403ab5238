"""Rows that arrive in pieces and leave whole or in batches."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from locole.datasets.base import compact_csr, label_array
from locole.datasets.growing import Growing
from locole.datasets.svmlines import ParsedLines

__all__ = ["Entries", "RowStore", "indicator"]

#: Values, indices, and where the entries of each row start and the last one's end.
Entries = tuple[NDArray[np.float32], NDArray[np.int32], NDArray[np.int64]]


class RowStore:
    """Parsed rows, one piece after the other, in arrays that grow.

    Parameters
    ----------
    name : str
        The file they come from, for errors.
    multilabel : bool
        Whether rows may have any number of labels; otherwise each has one, or labels are skipped.
    """

    def __init__(self, name: str, *, multilabel: bool = False) -> None:
        self._data = Growing(np.float32, name)
        self._indices = Growing(np.int32, name)
        self._indptr = Growing(np.int64, name)
        self._indptr.extend(np.zeros(1, dtype=np.int64))
        self._numbers = Growing(np.int64, name)
        self._label_ends = Growing(np.int64, name)
        self._multilabel = multilabel
        self._texts: list[str] = []
        self._has_labels = False

    @property
    def n_rows(self) -> int:
        """Rows so far."""
        return self._indptr.size - 1

    def add(self, lines: ParsedLines) -> None:
        """Append rows."""
        self._indptr.extend(lines.row_ends + self._data.size)
        self._data.extend(lines.data)
        self._indices.extend(lines.indices)
        if lines.labels is None:
            return
        self._has_labels = True
        if self._multilabel:
            self._label_ends.extend(lines.label_ends + self._numbers.size)
        if isinstance(lines.labels, list):
            self._texts += lines.labels
        else:
            self._numbers.extend(lines.labels)

    # All rows -----------------------------------------------------------------------------------

    def finish(self) -> Entries:
        """Hand out all entries."""
        return self._data.finish(), self._indices.finish(), self._indptr.finish()

    def finish_labels(self) -> NDArray | None:
        """Hand out all labels, row by row."""
        if not self._has_labels:
            return None
        return label_array(self._texts) if self._texts else self._numbers.finish()

    def finish_label_ends(self) -> NDArray[np.int64]:
        """Hand out the number of labels up to the end of each row."""
        return self._label_ends.finish()

    # Batches of rows with one label each ----------------------------------------------------------

    def batches(
        self, batch_rows: int, *, last: bool = False
    ) -> Iterator[tuple[Entries, NDArray | None]]:
        """Hand out full batches, and with ``last`` the rest; they are gone from the store then."""
        count = self.n_rows if last else self.n_rows // batch_rows * batch_rows
        for start in range(0, count, batch_rows):
            stop = min(start + batch_rows, count)
            yield self._entries(start, stop), self._some_labels(start, stop)
        self._drop_first(count)

    def _entries(self, start: int, stop: int) -> Entries:
        indptr = self._indptr.values[start : stop + 1]
        part = slice(indptr[0], indptr[-1])
        return (
            self._data.values[part].copy(),
            self._indices.values[part].copy(),
            indptr - indptr[0],
        )

    def _some_labels(self, start: int, stop: int) -> NDArray | None:
        if not self._has_labels:
            return None
        if self._texts:
            return label_array(self._texts[start:stop])
        return self._numbers.values[start:stop].copy()

    def _drop_first(self, count: int) -> None:
        n_entries = self._indptr.values[count]
        self._data.drop_first(n_entries)
        self._indices.drop_first(n_entries)
        self._indptr.drop_first(count)
        self._indptr.values[:] -= n_entries
        if self._texts:
            del self._texts[:count]
        elif self._has_labels:
            self._numbers.drop_first(count)


def indicator(
    labels: NDArray[np.int64], ends: NDArray[np.int64], n_labels: int | None = None
) -> csr_matrix:
    """Matrix with ones at the labels of each row; a label given twice counts once.

    Examples
    --------
    >>> import numpy as np
    >>> indicator(np.array([2, 0, 1]), np.array([2, 2, 3])).toarray()
    array([[1., 0., 1.],
           [0., 0., 0.],
           [0., 1., 0.]], dtype=float32)
    """
    if n_labels is None:
        n_labels = int(labels.max(initial=-1)) + 1
    indptr = np.concatenate([[0], ends])
    Y = compact_csr(np.ones(labels.size), labels, indptr, (ends.size, n_labels))
    Y.sum_duplicates()
    Y.data[:] = 1
    return Y
