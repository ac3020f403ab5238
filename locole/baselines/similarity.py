"""An order of the labels in which similar ones are neighbours."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from locole.parallel.blocks import workers
from locole.sparse_rows import label_sums, row_squares

__all__ = ["similar_order"]

# Directions that centroids are compared in, steps to find them, and rounds of 2-means.
_DIRECTIONS, _STEPS, _ROUNDS = 64, 2, 6


def similar_order(
    X: sp.csr_array, codes: NDArray[np.int64], n_classes: int, *, seed: int = 0
) -> NDArray[np.int64]:
    """Labels in an order in which neighbours have similar centroids.

    Unit centroids are cut into two halves by balanced spherical 2-means, the halves into halves, and so
    on; the order is that of the leaves. They are compared within the first 64 singular directions.

    Examples
    --------
    >>> import numpy as np
    >>> X = sp.csr_array(np.array([[1.0, 0.1], [0.1, 1.0], [1.0, 0.2], [0.2, 1.0]]))
    >>> sorted(similar_order(X, np.arange(4), 4)[:2].tolist()) in ([0, 2], [1, 3])
    True
    """
    rng = np.random.default_rng(seed)
    with workers(1):  # one BLAS thread: the same bits on every machine's number of cores
        points = _points(X, codes, n_classes, rng)
        order = np.arange(n_classes)
        # Halves that are still to be cut, as (start, stop) within the order.
        todo = [(0, n_classes)]
        while todo:
            start, stop = todo.pop()
            if stop - start < 3:
                continue
            part = order[start:stop]
            order[start:stop] = part[_halved(points[part], rng)]
            middle = (start + stop) // 2
            todo += [(start, middle), (middle, stop)]
    return order


def _points(
    X: sp.csr_array, codes: NDArray[np.int64], n_classes: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Unit centroids in few dimensions."""
    sums = label_sums(X, codes, n_classes)
    lengths = np.sqrt(row_squares(sums))
    lengths[lengths == 0] = 1  # only empty rows
    sums.data /= np.repeat(lengths, np.diff(sums.indptr)).astype(np.float32)
    if min(sums.shape) <= _DIRECTIONS:
        return sums.toarray().astype(np.float64)
    return _compressed(sums, rng)


def _compressed(A: sp.csr_array, rng: np.random.Generator) -> NDArray[np.float64]:
    """Rows in few dimensions, with nearly the same inner products.

    A few steps of subspace iteration find Q, whose columns span the first left singular vectors. The
    rows of QQᵀA have the inner products QMQᵀ with M = QᵀAAᵀQ, and so have those of Q·M^½.
    """
    Q = A @ rng.standard_normal((A.shape[1], _DIRECTIONS), dtype=np.float32)
    back = sp.csr_array(A.T)
    for _ in range(_STEPS):
        Q = A @ (back @ np.linalg.qr(Q)[0])
    Q = np.linalg.qr(Q)[0]
    B = back @ Q
    values, vectors = np.linalg.eigh((B.T @ B).astype(np.float64))
    return (Q @ vectors) * np.sqrt(np.maximum(values, 0))


def _halved(points: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Order of points whose first half is one cluster of balanced 2-means and the rest the other."""
    n = points.shape[0]
    one, two = points[rng.choice(n, 2, replace=False)]
    order = np.arange(n)
    for _ in range(_ROUNDS):
        before = order
        order = np.argsort(-(points @ (one - two)), kind="stable")
        if np.array_equal(order[: n // 2], before[: n // 2]):
            break
        one, two = points[order[: n // 2]].mean(axis=0), points[order[n // 2 :]].mean(axis=0)
    return order
