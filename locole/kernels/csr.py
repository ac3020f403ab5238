"""Sparse rows as kernels take them."""

from __future__ import annotations

from typing import Any, NamedTuple

from locole.kernels.jit import inline

__all__ = ["Csr", "place_of"]


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


@inline
def place_of(numbers, start, stop, number):
    """Place of ``number`` in ``numbers[start:stop]``, which are sorted, or −1."""
    end = stop
    while start < stop:
        middle = (start + stop) // 2
        if numbers[middle] < number:
            start = middle + 1
        else:
            stop = middle
    return start if start < end and numbers[start] == number else -1
