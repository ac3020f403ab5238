"""Within-class whitening of dense rows: numbers that vary within labels count less."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular
from scipy.special import logsumexp

from locole.dense_rows import DenseRows, room_for
from locole.parallel.blocks import map_blocks, slices, workers

__all__ = ["SCALES", "Whitening", "label_sums", "leave_one_out", "mean_loss_at", "unit"]

# Rows looked at in one go.
_ROWS = 4096
# Variance within labels, all numbers together, below which there is nothing but rounding errors; rows
# have length 1.
_LEAST = 1e-3
#: Scales of cosines that are tried: the best one differs by data, but not by much.
SCALES = 2.0 ** np.arange(2, 7.5, 0.5)


class Whitening(NamedTuple):
    r"""Rows of unit length to points of unit length: :math:`z = A^\top (x - \mu)`, scaled.

    With A Aᵀ = (S + ρ s I)⁻¹, S the covariance within labels, pooled over them, s its mean diagonal and
    ρ the ridge. Cosines of whitened rows are those of linear discriminant analysis.

    With two views, centred rows stand before the whitened ones, each of the same length.
    """

    mean: NDArray[np.float32]
    matrix: NDArray[np.float32] | None
    """A, of shape (numbers, numbers); None for the identity."""
    n_views: int = 1
    """2 if rows stand beside the whitened ones."""

    @classmethod
    def fit(
        cls,
        rows: DenseRows,
        codes: NDArray,
        weights: NDArray,
        *,
        ridge: float | None,
        n_views: int = 1,
        n_jobs: int | None,
    ) -> Self:
        """Estimate the mean and, unless the ridge is None, the covariance within labels."""
        mean = _mean(rows, weights)
        if ridge is None:
            return cls(mean, None)
        return cls(mean, _root(_scatter(rows, codes, weights, mean, n_jobs), ridge), n_views)

    @property
    def width(self) -> int:
        """Numbers of a point."""
        return self.n_views * self.mean.size

    def points(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        """Whitened rows of unit length; rows of zeros stay zeros."""
        centred: NDArray[np.float32] = unit(X) - self.mean
        Z: NDArray[np.float32] = centred if self.matrix is None else centred @ self.matrix
        if self.n_views == 2:
            Z = np.hstack([unit(centred), unit(Z)])
        Z[~X.any(axis=1)] = 0
        return unit(Z)

    def pulled_back(
        self, row: NDArray[np.float64], vectors: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Vectors w with ⟨z, v⟩ = ⟨x − μ, w⟩ for a row x of unit length and vectors v of points.

        row : (numbers,), vectors : (labels, width); returns shape (labels, numbers).
        """
        centred = row - self.mean
        matrices = [None, self.matrix] if self.n_views == 2 else [self.matrix]
        found = np.zeros((len(vectors), row.size))
        for matrix, part in zip(matrices, np.split(vectors, self.n_views, axis=1), strict=True):
            seen = centred if matrix is None else centred @ matrix
            length = np.linalg.norm(seen) * self.n_views**0.5
            if length > 0:
                found += (part if matrix is None else part @ matrix.T) / length
        return found

    def all_points(self, rows: DenseRows, *, n_jobs: int | None) -> NDArray[np.float32]:
        """Points of all rows, in memory or, if they are too many, in a temporary file."""
        Z = room_for(len(rows), self.width)

        def fill(part: slice) -> None:
            Z[part] = self.points(rows[part])

        map_blocks(fill, len(rows), block=_ROWS, n_jobs=n_jobs)
        return Z


def unit(X: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows of unit length; rows of zeros stay as they are."""
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    lengths[lengths == 0] = 1
    return np.divide(X, lengths, dtype=np.float32)


def label_sums(
    Z: NDArray[np.float32], codes: NDArray, weights: NDArray, n_classes: int
) -> NDArray[np.float32]:
    """Weighted sum of the rows of each label."""
    shape = (n_classes, codes.size)
    member = sp.csr_array((weights.astype(np.float32), (codes, np.arange(codes.size))), shape)
    return np.asarray(member @ Z)


def leave_one_out(
    Z: NDArray[np.float32], sums: NDArray[np.float32], weights: NDArray
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Cosine of each row with the sum of its label's rows, and with that sum without the row.

    ``sums`` are those of each row's label. Without another row the second cosine is 0.
    """
    weights = weights.astype(np.float32)[:, None]
    own = np.einsum("ij,ij->i", Z, unit(sums))
    others = sums - weights * Z
    # What is left of a label with one row is rounding error, perhaps that of sums in bytes.
    is_alone = np.linalg.norm(others, axis=1) <= 0.02 * weights[:, 0]
    return own, np.where(is_alone, np.float32(0), np.einsum("ij,ij->i", Z, unit(others)))


def mean_loss_at(
    cosines: NDArray[np.float32], own: NDArray[np.int64], weights: NDArray
) -> NDArray[np.float64]:
    """Weighted cross-entropy of the labels ``own`` for each of `SCALES`; shape (scales,)."""
    right = cosines[np.arange(own.size), own]
    losses = [logsumexp(scale * cosines, axis=1) - scale * right for scale in SCALES]
    return np.asarray(losses, dtype=np.float64) @ weights


def _blocks(rows: DenseRows) -> Iterator[slice]:
    return iter(slices(len(rows), _ROWS))


def _mean(rows: DenseRows, weights: NDArray) -> NDArray[np.float32]:
    total = np.zeros(rows.shape[1])
    for part in _blocks(rows):
        total += weights[part] @ unit(rows[part]).astype(np.float64)
    return (total / weights.sum()).astype(np.float32)


def _scatter(
    rows: DenseRows, codes: NDArray, weights: NDArray, mean: NDArray, n_jobs: int | None
) -> NDArray[np.float64]:
    """Covariance within labels: squares of the rows less their labels' means."""
    by_label = np.bincount(codes, weights)
    means = np.zeros((by_label.size, rows.shape[1]), dtype=np.float32)
    for part in _blocks(rows):
        share = (weights[part] / by_label[codes[part]]).astype(np.float32)
        np.add.at(means, codes[part], share[:, None] * (unit(rows[part]) - mean))

    def squares(part: slice) -> NDArray[np.float32]:
        X = unit(rows[part]) - mean - means[codes[part]]
        X *= np.sqrt(weights[part], dtype=np.float32)[:, None]
        return X.T @ X

    total = np.zeros((rows.shape[1],) * 2)
    with workers(n_jobs) as apply:
        for square in apply(squares, list(_blocks(rows))):
            total += square
    return total / max(1.0, weights.sum() - float(np.count_nonzero(by_label)))


def _root(scatter: NDArray[np.float64], ridge: float) -> NDArray[np.float32]:
    """A with A Aᵀ = (scatter + ridge · mean variance)⁻¹."""
    size = len(scatter)
    variance = max(float(np.trace(scatter)), _LEAST) / size
    regular = scatter + ridge * variance * np.eye(size)
    factor = cholesky(regular, lower=True)
    inverse = solve_triangular(factor, np.eye(size), lower=True)
    return np.ascontiguousarray(inverse.T, dtype=np.float32)
