"""Trellis graphs: a few dozen edges, and as many paths as there are labels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from locole.kernels.trellis import best_paths, fill_path_gains
from locole.scoring.base import best_of

__all__ = ["Trellis"]

# Gains are rounded to so many bits: what is left of 53 holds sums of at most 2^6 of them exactly.
_BITS = 46


class Trellis:
    """A graph of slices with exactly ``n_paths`` paths from its source to its sink.

    Write ``n_paths = Σ_t d_t·width^t`` with digits d_0 … d_last. There are last + 1 slices of ``width``
    states, but d_last in the last one. The source leads to all states of slice 0, every state to all
    states of the next slice, and the first d_t states of slice t lead to the sink. A state of slice t is
    reached in width^t ways, so d_t·width^t paths leave there.

    Paths are numbered from 0: first those through the last slice, then those that leave earlier. Within
    a slice the state that leaves counts most and then the states of slices 0, 1, …, so that neighbouring
    numbers mostly are paths that differ in two or three edges.

    Parameters
    ----------
    n_paths : int
        At least 1.
    width : int
        States of a slice, at least 2.

    Attributes
    ----------
    n_edges : int
        About width²·log(n_paths)/log(width).

    Examples
    --------
    >>> trellis = Trellis(10_106, width=2)
    >>> trellis.n_edges, trellis.edges([0])[0].size
    (61, 15)
    """

    def __init__(self, n_paths: int, *, width: int = 2) -> None:
        self.n_paths, self.width = n_paths, width
        digits = _digits(n_paths, width)
        last = len(digits) - 1
        widths = [width] * last + [digits[last]]
        # Edges in the order source, slice to slice, sink; paths of later slices first.
        inner = np.cumsum([widths[0], *(widths[t] * widths[t + 1] for t in range(last))])
        sinks = inner[-1] + np.cumsum([0, *digits])
        counts = [digit * width**t for t, digit in enumerate(digits)]
        self._digits = np.array(digits, dtype=np.int64)
        self._widths = np.array(widths, dtype=np.int64)
        self._inner = inner[:-1].astype(np.int64)
        self._sinks = sinks[:-1].astype(np.int64)
        self._offsets = np.array([sum(counts[t + 1 :]) for t in range(last + 1)], dtype=np.int64)
        self.n_edges = int(sinks[-1])

    def edges(self, paths: NDArray[np.int64] | list[int]) -> NDArray[np.int64]:
        """Edges of these paths from source to sink, shape (len(paths), slices + 1), then −1."""
        paths = np.asarray(paths, dtype=np.int64)
        out = np.full((paths.size, self._digits.size + 1), -1, dtype=np.int64)
        slices = np.searchsorted(-self._offsets, -paths)  # offsets fall
        for t in range(self._digits.size):
            mine = np.flatnonzero(slices == t)
            state, way = np.divmod(paths[mine] - self._offsets[t], self.width**t)
            out[mine, t + 1] = self._sinks[t] + state
            for s in range(t - 1, -1, -1):
                way, before = np.divmod(way, self.width)
                out[mine, s + 1] = self._inner[s] + before * self._widths[s + 1] + state
                state = before
            out[mine, 0] = state
        return out

    def signs(self, paths: NDArray[np.int64], first: int, stop: int) -> NDArray[np.int8]:
        """1 where an edge ``first … stop−1`` is on a path and −1 where not, (len(paths), edges)."""
        edges = self.edges(paths)
        table = np.full((edges.shape[0], stop - first), -1, dtype=np.int8)
        rows, columns = np.nonzero((edges >= first) & (edges < stop))
        table[rows, edges[rows, columns] - first] = 1
        return table

    def heaviest(
        self, gains: NDArray[np.float64], k: int, path_of_label: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Labels of the k heaviest paths of each row, heaviest first, and the sums of their gains.

        Ties go to the smaller label. Sums are exact after gains have been rounded to 46 bits below the
        largest of their row, so that paths of equal weight do tie.

        Parameters
        ----------
        gains : array of shape (rows, n_edges)
        k : int
            At most ``n_paths``.
        path_of_label : array of shape (n_paths,)
            A permutation.
        """
        gains = _rounded(gains)
        label_of_path = np.empty_like(path_of_label)
        label_of_path[path_of_label] = np.arange(path_of_label.size)
        # One more shows whether the last one ties with a path outside the list.
        wanted = min(k + 1, self.n_paths)
        if wanted * self.width * self._digits.size >= self.n_paths:
            return self._by_all(gains, k, path_of_label)
        paths = np.empty((gains.shape[0], wanted), dtype=np.int64)
        scores = np.empty(paths.shape)
        best_paths(gains, self.width, *self._tables, scores, paths)
        labels = label_of_path[paths]
        order = np.lexsort((labels, -scores), axis=1)[:, :k]
        labels = np.take_along_axis(labels, order, axis=1)
        open_rows = np.flatnonzero(scores[:, k - 1] == scores[:, k])
        if open_rows.size:
            labels[open_rows] = self._by_all(gains[open_rows], k, path_of_label)[0]
        return labels, scores[:, :k]

    @property
    def _tables(self) -> tuple[NDArray[np.int64], ...]:
        return self._digits, self._inner, self._sinks, self._offsets

    def _by_all(
        self, gains: NDArray[np.float64], k: int, path_of_label: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """`heaviest` by the weights of all paths, one row after the other."""
        last = self._digits.size - 1
        room = np.empty(2 * int(self._digits[last]) * self.width**last)
        weights = np.empty(self.n_paths)
        labels = np.empty((gains.shape[0], k), dtype=np.int64)
        scores = np.empty(labels.shape)
        for i in range(gains.shape[0]):
            fill_path_gains(gains[i], self.width, *self._tables, room, weights)
            labels[i : i + 1], scores[i : i + 1] = best_of(weights[None, path_of_label], k)
        return labels, scores


def _digits(number: int, base: int) -> list[int]:
    """Digits of a positive number, the last one is not 0."""
    digits = []
    while number:
        number, digit = divmod(number, base)
        digits.append(digit)
    return digits


def _rounded(gains: NDArray[np.float64]) -> NDArray[np.float64]:
    _, exponent = np.frexp(np.abs(gains).max(axis=1, keepdims=True, initial=0.0))
    quantum = np.ldexp(1.0, np.maximum(exponent - _BITS, -1074))
    return np.ascontiguousarray(np.rint(gains / quantum) * quantum)
