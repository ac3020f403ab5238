"""Mini-batches of sparse rows: in which order, and their entries by feature."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from locole.kernels.csr import Csr
from locole.kernels.sparse_layer import ByFeature, group_by_feature, meet_next, take_rows
from locole.parallel.blocks import slices

__all__ = ["Batch", "Foresight", "Grouper", "Orders", "ahead"]

S = TypeVar("S")
T = TypeVar("T")

_ALL = np.empty(0, dtype=np.bool_)
_UNKNOWN = np.empty(0, dtype=np.int32)


class Batch(NamedTuple):
    """Some rows of X, their entries row by row and feature by feature."""

    rows: NDArray[np.int64]
    by_row: Csr
    entries: ByFeature
    following: NDArray[np.int64] | None
    """Step in which each feature is next met, if that is known."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.rows.size

    @property
    def features(self) -> NDArray[np.int64]:
        """Features that the rows have."""
        features: NDArray[np.int64] = self.entries.features
        return features


class Grouper:
    """Takes batches out of a CSR matrix, which is not copied; one thread at a time may use it.

    Parameters
    ----------
    X : sparse array
        All rows.
    later : array, optional
        For each entry of X the step in which its feature is next met, see `Foresight`.
    """

    def __init__(self, X: sp.csr_array, later: NDArray[np.int32] = _UNKNOWN) -> None:
        self.X, self.later = X, later
        self._slots = np.full(X.shape[1], -1, dtype=np.int64)

    def __call__(
        self, rows: NDArray[np.int64], *, drop: float = 0.0, rng: np.random.Generator | None = None
    ) -> Batch:
        """Entries of these rows; a part ``drop`` of them is left out, the others grow in turn."""
        X = self.X
        n = int((X.indptr[rows + 1] - X.indptr[rows]).sum())
        kept = _ALL
        if drop > 0 and rng is not None:
            kept = rng.random(n, dtype=np.float32) >= drop
        bounds = np.empty(rows.size + 1, dtype=np.int64)
        columns, following = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
        values = np.empty(n, dtype=np.float32)
        out = Csr(bounds, columns, values)
        take_rows(Csr.of(X), self.later, rows, kept, out, following)
        n = bounds[-1]
        columns, values = columns[:n], values[:n]
        if kept.size:
            values /= np.float32(1 - drop)
        features, firsts, who = np.empty((3, n), dtype=np.int64)
        starts, ordered = np.empty(n + 2, dtype=np.int64), np.empty_like(values)
        taken = Csr(bounds, columns, values)
        entries = ByFeature(features, starts, who, ordered)
        found = group_by_feature(taken, self._slots, firsts, entries)
        known = following[firsts[:found]] if self.later.size else None
        entries = entries._replace(features=features[:found], starts=starts[: found + 1])
        return Batch(rows, taken, entries, known)


class Orders:
    """In which order rows are met: another one in each epoch, the same for the same seed."""

    def __init__(self, n_rows: int, batch_size: int, seed: int) -> None:
        self.n_rows, self.seed = n_rows, seed
        self._parts = slices(n_rows, batch_size)
        # The mean and spread of one row say nothing to a batch norm.
        if len(self._parts) > 1 and self._parts[-1].stop - self._parts[-1].start == 1:
            self._parts[-2:] = [slice(self._parts[-2].start, n_rows)]

    @property
    def n_batches(self) -> int:
        """Batches of an epoch."""
        return len(self._parts)

    def epoch(self, number: int, *, start: int = 0) -> list[NDArray[np.int64]]:
        """Rows of each batch of an epoch, from the batch ``start`` on."""
        order = self.order(number)
        return [order[part] for part in self._parts[start:]]

    def order(self, number: int) -> NDArray[np.int64]:
        """All rows in the order of an epoch."""
        return np.random.default_rng([self.seed, self.n_rows, number]).permutation(self.n_rows)

    @property
    def bounds(self) -> NDArray[np.int64]:
        """Where batches begin, and where the last one ends."""
        return np.array([0, *(part.stop for part in self._parts)])


class Foresight:
    """When features will be met, which the orders of all epochs tell beforehand.

    Parameters
    ----------
    X : sparse array
        All rows.
    orders : Orders
        In which order they are met.
    n_epochs : int
        Epochs that there will be.

    Examples
    --------
    Four rows with a feature each, in two batches an epoch: steps 1 to 4.

    >>> X = sp.csr_array(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 0.0]]))
    >>> orders = Orders(4, 2, seed=0)
    >>> [rows.tolist() for epoch in (0, 1) for rows in orders.epoch(epoch)]
    [[2, 1], [0, 3], [2, 1], [3, 0]]
    >>> Foresight(X, orders, 2).epoch(0)
    array([3, 3, 2, 3], dtype=int32)
    """

    def __init__(self, X: sp.csr_array, orders: Orders, n_epochs: int) -> None:
        self.X, self.orders, self.n_epochs = X, orders, n_epochs
        self._later = np.empty(X.nnz, dtype=np.int32)

    def epoch(self, number: int) -> NDArray[np.int32]:
        """For each entry of X, met in this epoch, the step in which its feature is met next.

        Steps count from 1 over all epochs; one more than there are is never. The array is used again.
        """
        n_batches, bounds = self.orders.n_batches, self.orders.bounds
        never = self.n_epochs * n_batches + 1
        upcoming = np.full(self.X.shape[1], never, dtype=np.int32)
        for epoch, later in ((number + 1, _UNKNOWN), (number, self._later)):
            if epoch < self.n_epochs:
                first, order = epoch * n_batches + 1, self.orders.order(epoch)
                meet_next(self.X.indptr, self.X.indices, order, bounds, first, upcoming, later)
        return self._later


def ahead(function: Callable[[S], T], items: Iterable[S], *, threaded: bool) -> Iterator[T]:
    """``map(function, items)``, with the next result under way on a thread of its own."""
    if not threaded:
        yield from map(function, items)
        return
    with ThreadPoolExecutor(1) as pool:
        under_way = None
        for item in items:
            following = pool.submit(function, item)
            if under_way is not None:
                yield under_way.result()
            under_way = following
        if under_way is not None:
            yield under_way.result()
