"""Sparse rows as kernels take them."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["Csr"]


class Csr(NamedTuple):
    """Row i has the entries ``data[indptr[i] : indptr[i+1]]`` of the columns ``indices`` there.

    A kernel unpacks it before its loops: numba counts references where an array is taken out.
    """

    indptr: Any
    indices: Any
    data: Any

    @classmethod
    def of(cls, X: Any) -> Csr:
        """Return the arrays of a scipy matrix."""
        return cls(X.indptr, X.indices, X.data)
