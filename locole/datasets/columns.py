"""Which columns a LIBSVM file has: the base of its indices, their number, and what lies beyond."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from locole.datasets.base import compact_csr
from locole.datasets.svmlines import MAX_INDEX, LabelKind, LineRules
from locole.exceptions import LocoleError

__all__ = ["Columns", "Unknown", "ZeroBased"]

ZeroBased = bool | Literal["auto"]
Unknown = Literal["error", "drop"]

_ANY_NUMBER = (0, 1 << 62)


class Columns:
    """What is said of the columns, completed by what the files show.

    Parameters
    ----------
    n_features, zero_based, unknown, max_features
        As for `locole.datasets.load_libsvm`.
    """

    def __init__(
        self, n_features: int | None, zero_based: ZeroBased, unknown: Unknown, max_features: int
    ) -> None:
        if zero_based not in (True, False, "auto"):
            raise LocoleError(f'zero_based must be True, False or "auto", not {zero_based!r}.')
        if unknown not in ("error", "drop"):
            raise LocoleError(f"unknown must be 'error' or 'drop', not {unknown!r}.")
        if unknown == "drop" and n_features is None:
            raise LocoleError('unknown="drop" needs n_features: beyond what should be dropped?')
        for name, value in (("n_features", n_features), ("max_features", max_features)):
            if value is not None and not 1 <= value <= MAX_INDEX:
                raise LocoleError(f"{name} must be between 1 and {MAX_INDEX:,}, not {value}.")
        self.n_features = n_features
        self.zero_based = zero_based
        self._unknown, self._max_features = unknown, max_features
        self._has_zero, self._high, self._name = False, -1, ""

    def rules(self, labels: LabelKind, multilabel: bool) -> LineRules:
        """What to look for while parsing, so that errors name the line."""
        if labels not in ("auto", "int", "text", None):
            raise LocoleError(f'labels must be "auto", "int", "text" or None, not {labels!r}.')
        if multilabel and labels not in ("auto", "int"):
            raise LocoleError("multilabel needs labels that are whole numbers: labels='int'.")
        any_number = multilabel or labels is None
        return LineRules(
            labels="int" if multilabel else labels,
            n_labels=_ANY_NUMBER if any_number else (1, 1),
            label_range=(0, MAX_INDEX) if multilabel else None,
            indices=self._index_range(),
            way_out=self._way_out(),
        )

    def _index_range(self) -> tuple[int, int]:
        first = 1 if self.zero_based is False else 0
        # "auto" is checked again when the base is known.
        last = -1 if self.zero_based is True else 0
        if self._unknown == "drop":
            return first, MAX_INDEX
        return first, (self._max_features if self.n_features is None else self.n_features) + last

    def _way_out(self) -> str:
        if self.n_features is not None:
            return 'give a larger n_features, drop such features by unknown="drop", or check zero_based.'
        return "check zero_based, or give a larger max_features if the file is right."

    def note(self, low: int | None, high: int | None, name: str) -> None:
        """Take notice of the smallest and largest index of a file."""
        self._has_zero = self._has_zero or low == 0
        if high is not None and high > self._high:
            self._high, self._name = high, name

    def settle(self) -> None:
        """Decide what was left open, now that all indices are known."""
        if self.zero_based == "auto":
            self.zero_based = self._has_zero
        needed = self._high + 1 if self.zero_based else max(self._high, 0)
        limit = self._max_features if self.n_features is None else self.n_features
        if needed > limit and self._unknown == "error":
            raise LocoleError(
                f"{self._name}: feature {self._high:,}, with features counted from 0, is beyond the "
                f"{limit:,} allowed: {self._way_out()}"
            )
        if self.n_features is None:
            self.n_features = needed

    def settle_for_stream(self, name: str) -> None:
        """Decide without having seen anything."""
        if self.n_features is None:
            raise LocoleError(f"{name} can be read only once: give n_features.")
        if self.zero_based == "auto":
            self.zero_based = False

    def matrix(
        self, data: NDArray, indices: NDArray[np.int32], indptr: NDArray[np.int64]
    ) -> csr_matrix:
        """Rows as a matrix; takes over the arrays."""
        assert self.n_features is not None
        if not self.zero_based:
            indices -= 1
        beyond = np.flatnonzero(indices >= self.n_features)
        if beyond.size:
            data, indices = np.delete(data, beyond), np.delete(indices, beyond)
            indptr = indptr - np.searchsorted(beyond, indptr)
        return compact_csr(data, indices, indptr, (indptr.size - 1, self.n_features))
