"""Mini-batches of sparse rows: in which order, and their entries by feature."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from locole.blocks import slices
from locole.kernels.sparse_layer import group_by_feature

__all__ = ["Batch", "Grouper", "Orders", "ahead"]

S = TypeVar("S")
T = TypeVar("T")

_ALL = np.empty(0, dtype=np.bool_)


class Batch(NamedTuple):
    """Some rows of X, their entries ordered by feature."""

    rows: NDArray[np.int64]
    features: NDArray[np.int64]
    starts: NDArray[np.int64]
    who: NDArray[np.int64]
    values: NDArray[np.float32]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.rows.size

    @property
    def entries(self) -> tuple[NDArray, NDArray, NDArray, NDArray]:
        """Feature by feature: where its entries begin, their rows and values."""
        return self.features, self.starts, self.who, self.values


class Grouper:
    """Takes batches out of a CSR matrix, which is not copied; one thread at a time may use it."""

    def __init__(self, X: sp.csr_array) -> None:
        self.X = X
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
        features, who = np.empty((2, n), dtype=np.int64)
        starts, values = np.empty(n + 2, dtype=np.int64), np.empty(n, dtype=np.float32)
        found = group_by_feature(
            X.indptr, X.indices, X.data, rows, kept, self._slots, features, starts, who, values
        )
        n = starts[found]
        who, values = who[:n], values[:n]
        if kept.size:
            values /= np.float32(1 - drop)
        return Batch(rows, features[:found], starts[: found + 1], who, values)


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
        order = np.random.default_rng([self.seed, self.n_rows, number]).permutation(self.n_rows)
        return [order[part] for part in self._parts[start:]]


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
