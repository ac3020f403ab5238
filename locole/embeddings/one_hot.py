"""Embeddings whose scores are a linear-time formula: one-hot and the regular simplex."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from locole.embeddings.base import Embedding, InnerProducts

__all__ = ["OneHot", "Simplex", "simplex_vertices"]


class OneHot(Embedding):
    """The standard basis: label k is the k-th unit vector; ``dim`` ≥ ``n_classes``.

    Examples
    --------
    >>> OneHot(3, dim=3).rows([1])
    array([[0., 1., 0.]], dtype=float32)
    """

    name = "one_hot"
    structure = "linear"

    @property
    def capacity(self) -> float:
        """``dim``."""
        return self.dim

    @classmethod
    def default_dim(cls, n_classes: int) -> int:
        """One output a label."""
        return n_classes

    def grown(self, n_classes: int, *, spent: NDArray[np.int64] | None = None) -> Embedding:
        """Return a code with more outputs if these are full: the first ones of old vectors stay."""
        used = self.n_columns if spent is None or spent.size == 0 else int(spent.max()) + 1
        needed = max(used, self.n_columns) + max(n_classes - self.n_classes, 0)
        larger = self if needed <= self.dim else self._replace(dim=needed)
        return super(OneHot, larger).grown(n_classes, spent=spent)

    def _vectors(self, columns: NDArray[np.int64], dtype: np.dtype) -> NDArray:
        out = np.zeros((columns.size, self.dim), dtype=dtype)
        out[np.arange(columns.size), columns] = 1
        return out

    def column_scores(self, Z: NDArray) -> NDArray:
        """Scores of columns 0 … n_columns−1: the outputs themselves.

        Parameters
        ----------
        Z : array of shape (rows, dim)
            Points.
        """
        return Z[:, : self.n_columns]

    def inner_products(self) -> InnerProducts | None:
        """All zero."""
        return InnerProducts(0.0, 0.0, 0.0, 0.0, 0.0)


class Simplex(Embedding):
    """The ``dim + 1`` vertices of a regular simplex: all inner products are ``−1/dim``.

    Examples
    --------
    >>> rows = Simplex(3, dim=2).rows([0, 1, 2])
    >>> (rows @ rows.T).round(3)
    array([[ 1. , -0.5, -0.5],
           [-0.5,  1. , -0.5],
           [-0.5, -0.5,  1. ]], dtype=float32)
    """

    name = "simplex"
    structure = "linear"

    @property
    def capacity(self) -> float:
        """``dim + 1``."""
        return self.dim + 1

    @classmethod
    def default_dim(cls, n_classes: int) -> int:
        """One output fewer than labels."""
        return max(n_classes - 1, 1)

    def _vectors(self, columns: NDArray[np.int64], dtype: np.dtype) -> NDArray:
        peak, base, last = _simplex_coefficients(self.dim)
        out = np.full((columns.size, self.dim), base, dtype=dtype)
        inner = np.flatnonzero(columns < self.dim)
        out[inner, columns[inner]] += dtype.type(peak)
        out[columns == self.dim] = last
        return out

    def column_scores(self, Z: NDArray) -> NDArray:
        """Scores of columns 0 … n_columns−1: ``peak·z_i + base·Σz``; the last ``last·Σz``.

        Parameters
        ----------
        Z : array of shape (rows, dim)
            Points.
        """
        peak, base, last = _simplex_coefficients(self.dim)
        total = Z.sum(axis=1, keepdims=True, dtype=Z.dtype)
        scores = Z[:, : self.n_columns] * Z.dtype.type(peak) + total * Z.dtype.type(base)
        if self.n_columns > self.dim:
            scores = np.concatenate([scores, total * Z.dtype.type(last)], axis=1)
        return scores

    def inner_products(self) -> InnerProducts | None:
        """All ``−1/dim``."""
        value = 1 / self.dim if self.n_classes > 1 else 0.0
        return InnerProducts(value, value, -value, -value, value)


def _simplex_coefficients(dim: int) -> tuple[float, float, float]:
    """Vertex i < dim is ``peak·e_i + base·1``, vertex dim is ``last·1``."""
    peak = math.sqrt((dim + 1) / dim)
    last = -1 / math.sqrt(dim)
    return peak, (1 / math.sqrt(dim) - peak) / dim, last


def simplex_vertices(count: int) -> NDArray[np.float64]:
    """All vertices of the regular simplex with ``count`` vertices, shape (count, count − 1)."""
    return Simplex(count, count - 1).real_rows(np.arange(count), np.float64)
