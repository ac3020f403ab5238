"""Reed–Solomon simplex embedding: concatenated centred one-hot symbols of a polynomial code."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from locole.embeddings.base import Embedding, InnerProducts, nearest_dims, pair_rms, wanted_dim
from locole.embeddings.fields import make_field, prime_power
from locole.embeddings.one_hot import simplex_vertices
from locole.exceptions import DimensionError

__all__ = ["ReedSolomonSimplex"]

# Two field tables of q² entries.
_LARGEST_Q = 1 << 12


class ReedSolomonSimplex(Embedding):
    """Real vectors with inner products in ``[−1/(q−1), 1/(q+1)]``, for real n = q²−1.

    A label is a polynomial ``a_0 + a_1 t + a_2 t²`` over GF(q), q a prime power, written in base q.
    Block t of the vector is the vertex, among q vertices of a regular simplex in q−1 dimensions, that
    stands for the polynomial's value at t; a last block stands for ``a_2``. Two polynomials agree in
    at most two of these q+1 symbols, and A agreements give the inner product
    ``(A − (q+1−A)/(q−1))/(q+1)``.

    Examples
    --------
    >>> embedding = ReedSolomonSimplex(12046, dim=528)
    >>> embedding.q, embedding.capacity
    (23, 12167)
    >>> round(embedding.inner_products().coherence, 4)
    0.0455
    """

    name = "reed_solomon"
    structure = "symbols"
    table_bytes = 64

    @property
    def q(self) -> int:
        """Size of the field: ``dim = q² − 1``."""
        return math.isqrt(self.dim + 1)

    @property
    def capacity(self) -> float:
        """``q³``."""
        return self.q**3

    @classmethod
    def default_dim(cls, n_classes: int) -> int:
        """Smallest that holds the labels and comes near the wanted real outputs."""
        q = 3
        while prime_power(q) is None or q**2 < wanted_dim(n_classes) // 2 or q**3 < n_classes:
            q += 1
        return q**2 - 1

    def _check_dim(self) -> None:
        valid = (q * q - 1 for q in range(3, _LARGEST_Q + 1) if prime_power(q))
        q = self.q
        if q * q != self.dim + 1 or not 3 <= q <= _LARGEST_Q or prime_power(q) is None:
            raise DimensionError(
                "ReedSolomonSimplex needs dim = q² − 1 with a prime power q ≥ 3, "
                f"not {self.dim}: take {nearest_dims(self.dim, valid)}."
            )
        elements = np.arange(self.q)
        field = make_field(self.q)
        self._times = field.mul(elements[:, None], elements[None, :]).astype(np.int32)
        self._plus = field.add(elements[:, None], elements[None, :]).astype(np.int32)

    def symbols(self, columns: NDArray[np.int64]) -> NDArray[np.int32]:
        """Values at every t, then the leading coefficient: shape (len(columns), q+1).

        Parameters
        ----------
        columns : array of int
            Numbers of vectors.
        """
        q, times, plus = self.q, self._times, self._plus
        a0, a1, a2 = columns % q, columns // q % q, columns // q**2
        t = np.arange(q)
        # Horner: (a_2 t + a_1) t + a_0
        inner = plus[times[a2[:, None], t], a1[:, None]]
        values = plus[times[inner, t], a0[:, None]]
        return np.concatenate([values, a2[:, None].astype(np.int32)], axis=1)

    def symbol_scores(self, Z: NDArray) -> NDArray:
        """Inner product of each block of Z with each vertex, shape (rows, q+1, q).

        Parameters
        ----------
        Z : array of shape (rows, dim)
            Points.
        """
        blocks = Z.reshape(-1, self.q + 1, self.q - 1)
        return blocks @ self._vertices(Z.dtype).T

    def _vertices(self, dtype: np.dtype) -> NDArray:
        return (simplex_vertices(self.q) / math.sqrt(self.q + 1)).astype(dtype)

    def _vectors(self, columns: NDArray[np.int64], dtype: np.dtype) -> NDArray:
        return self._vertices(dtype)[self.symbols(columns)].reshape(columns.size, self.dim)

    def inner_products(self) -> InnerProducts | None:
        """Closed form from the numbers of agreements that occur."""
        if not self._fills_columns:
            return None
        if self.n_classes == 1:
            return InnerProducts(0.0, 0.0, 0.0, 0.0, 0.0)
        counts = _agreements(self.n_classes, self.q)
        q = self.q
        values = [(a - (q + 1 - a) / (q - 1)) / (q + 1) for a in range(3)]
        seen = [v for v, count in zip(values, counts, strict=True) if count]
        squares = sum(count * v * v for v, count in zip(values, counts, strict=True))
        low, high = min(seen), max(seen)
        largest = max(-low, high)
        return InnerProducts(largest, largest, low, high, pair_rms(squares, self.n_classes))


def _agreements(n_classes: int, q: int) -> tuple[int, int, int]:
    """Ordered pairs of different labels that agree in 0, 1 and 2 of the q+1 symbols."""
    # Write C = A q² + B q + R. Pairs are counted by the difference of their polynomials; the pairs
    # (i, j) with i, j < C are split by which of the digits a_2 and a_1 are equal.
    planes, in_plane = divmod(n_classes, q * q)
    widths = [q * q] * planes + ([in_plane] if in_plane else [])
    none = one = two = 0
    for width in widths:
        lines, rest = divmod(width, q)
        same_line = lines * q * (q - 1) + rest * (rest - 1)
        # Same a_2: they agree in the last block, and in one more point unless parallel.
        one += same_line
        two += width * (width - 1) - same_line
    # Different a_2, one plane whole: a difference of degree 2 takes every lower part equally often;
    # of the q² lower parts q(q−1)/2 give no root, q one root, q(q−1)/2 two.
    across = n_classes**2 - sum(w * w for w in widths)
    none += across * (q - 1) // (2 * q)
    one += across // q
    two += across * (q - 1) // (2 * q)
    return none, one, two
