"""Nelson's embedding: exponentials of polynomials modulo a prime."""

from __future__ import annotations

import math
import reprlib
from typing import Any

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from locole.embeddings.base import (
    Embedding,
    InnerProducts,
    _whole_number,
    nearest_dims,
    pair_rms,
    wanted_dim,
)
from locole.embeddings.fields import is_prime
from locole.exceptions import DimensionError
from locole.kernels.chirp import fill_exponents, fill_from_table

__all__ = ["Nelson"]

# Exponents are sums and products of two residues in int64.
_LARGEST_DIM = 1 << 31
# 3^64 labels are more than 64 bits can number.
_LARGEST_R = 64


class Nelson(Embedding):
    r"""Complex vectors ``g(u) = exp(2πi/n · Σ_j a_j u^j)/√n``, u = 1 … n, for prime n > r.

    The label with base-n digits (a_1 … a_r) has that polynomial, so n^r labels fit. By Weil's bound
    the coherence is at most ``(r−1)/√n``; for r = 2 inner products have modulus exactly 1/√n or 0.

    Parameters
    ----------
    n_classes, dim, random_state, assignment
        See `Embedding`. ``dim`` must be prime and larger than ``r``.
    r : int, default=2
        Degree of the polynomials.

    Examples
    --------
    >>> embedding = Nelson(12046, dim=509)
    >>> embedding.real_dim, embedding.capacity
    (1018, 259081)
    >>> round(embedding.inner_products().coherence, 4)
    0.0443
    """

    name = "nelson"
    structure = "dft"
    is_complex = True

    def __init__(self, n_classes: int, dim: int, *, r: int = 2, **kwargs: Any) -> None:
        self.r = _whole_number(r, "r", at_least=2)
        super().__init__(n_classes, dim, **kwargs)

    @classmethod
    def default_dim(cls, n_classes: int) -> int:
        """Largest prime within the wanted real outputs, or the first that holds the labels."""
        half = wanted_dim(n_classes) // 2
        largest = next((d for d in range(half, 4, -1) if is_prime(d)), 5)
        return next(d for d in range(largest, 1 << 32) if d**2 >= n_classes and is_prime(d))

    def _check_dim(self) -> None:
        if self.r > _LARGEST_R:
            raise DimensionError(
                f"r={reprlib.repr(self.r)} is more than any number of labels needs: take r=2."
            )
        if not self.r < self.dim < _LARGEST_DIM or not is_prime(self.dim):
            raise DimensionError(
                f"Nelson with r={self.r} needs a prime dim above {self.r}, not {self.dim}: "
                f"take {nearest_dims(self.dim, self._primes_around(self.dim))}."
            )

    def _primes_around(self, dim: int) -> list[int]:
        near = min(max(dim, self.r + 1), _LARGEST_DIM - 1)
        down = (d for d in range(near, self.r, -1) if is_prime(d))
        up = (d for d in range(near + 1, _LARGEST_DIM) if is_prime(d))
        return [d for d in (next(down, None), next(up, None)) if d is not None]

    def _way_out(self, n_classes: int) -> str:
        r = self.r + 1
        while self.dim**r < n_classes:
            r += 1
        higher = f" or r={r}" if r < self.dim else ""
        return f"take dim={self.default_dim(n_classes)}{higher}"

    def _extra_spec(self) -> dict[str, Any]:
        return {"r": self.r}

    @property
    def capacity(self) -> float:
        """``n^r``."""
        return self.dim**self.r

    @property
    def n_bases(self) -> int:
        """Orthonormal bases (choices of a_2 … a_r) that hold a label."""
        return -(-self.n_columns // self.dim)

    def exponents(self, columns: NDArray[np.int64]) -> NDArray[np.int64]:
        """Polynomial values modulo n, shape (len(columns), dim), entry u−1 for u = 1 … n.

        Parameters
        ----------
        columns : array of int
            Numbers of vectors.
        """
        digits = np.empty((columns.size, self.r), dtype=np.int64)
        rest = columns
        for j in range(self.r):
            rest, digits[:, j] = np.divmod(rest, self.dim)
        out = np.empty((columns.size, self.dim), dtype=np.int64)
        fill_exponents(digits, self.dim, out)
        return out

    def conjugate_chirps(self, start: int, stop: int, dtype: np.dtype) -> NDArray:
        """``exp(−2πi/n Σ_{j≥2} a_j u^j)`` for bases ``start … stop−1``, complex of that precision.

        Parameters
        ----------
        start, stop : int
            First basis, and the one after the last.
        dtype : dtype
            float32 or float64.
        """
        chirps = self.conjugate_chirps_of(np.arange(start, stop))
        return chirps.astype(np.result_type(dtype, np.complex64))

    @property
    def has_shift_peaks(self) -> bool:
        """Whether shift-and-multiply leaves a pure wave: only for polynomials of degree 2."""
        return self.r == 2

    def shift_peaks(self, shift: int) -> NDArray[np.int64]:
        """Where the transform of z(u + shift)·conj z(u) peaks for each basis: 2·a_2·shift mod n.

        Parameters
        ----------
        shift : int
            Added to u, modulo n.
        """
        return 2 * np.arange(self.n_bases) * shift % self.dim

    def demodulated(self, Z: NDArray, bases: NDArray[np.int64]) -> NDArray:
        """Row i of Z times the conjugated chirp of basis ``bases[i]``.

        Parameters
        ----------
        Z : array of shape (rows, dim)
            Points.
        bases : array of shape (rows,)
            Basis of each.
        """
        distinct, which = np.unique(bases, return_inverse=True)
        chirps = self.conjugate_chirps_of(distinct).astype(np.result_type(Z.dtype, np.complex64))
        points = (Z[:, : self.dim] + 1j * Z[:, self.dim :]) * chirps[which]
        return np.hstack([points.real, points.imag]).astype(Z.dtype)

    def first_basis(self) -> Nelson:
        """Return the Fourier basis: the columns with a_2 = … = a_r = 0."""
        return self._replace(n_classes=self.dim, assignment="index")

    def _vectors(self, columns: NDArray[np.int64], dtype: np.dtype) -> NDArray:
        out = np.empty((columns.size, self.real_dim), dtype=dtype)
        angles = 2 * np.pi / self.dim * np.arange(self.dim)
        scale = 1 / math.sqrt(self.dim)
        fill_from_table(
            self.exponents(columns), scale * np.cos(angles), scale * np.sin(angles), out
        )
        return out

    def inner_products(self) -> InnerProducts | None:
        """Exact, by one FFT for each difference of two bases.

        An inner product depends only on the difference of the digits (modulo n). Between different
        bases, at least one of which is whole, every difference of the first digit occurs.
        """
        if not self._fills_columns:
            return None
        differences, weights = self._basis_differences()
        largest = low = high = squares = 0.0
        for start in range(0, differences.size, 256):
            part = slice(start, start + 256)
            chirps = np.conj(self.conjugate_chirps_of(differences[part]))
            sums = scipy.fft.fft(np.roll(chirps, 1, axis=1), axis=1) / self.dim
            largest = max(largest, float(np.abs(sums).max()))
            low, high = min(low, float(sums.real.min())), max(high, float(sums.real.max()))
            squares += float(weights[part] @ (sums.real**2).sum(axis=1))
        return InnerProducts(largest, max(-low, high), low, high, pair_rms(squares, self.n_classes))

    def conjugate_chirps_of(self, bases: NDArray[np.int64]) -> NDArray:
        """Like `conjugate_chirps` for any list of bases, in double precision.

        Parameters
        ----------
        bases : array of int
            Numbers of bases.
        """
        exponents = self.exponents(bases * self.dim)
        return np.exp(-2j * np.pi / self.dim * np.arange(self.dim))[exponents]

    def _basis_differences(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Digit-wise differences of the bases in use, and the pairs of labels behind each.

        The weight of a difference counts, for each value of the first digit's difference, the
        ordered pairs of labels that have it: n for two whole bases, the width for a partial one.
        """
        whole, rest = divmod(self.n_classes, self.dim)
        high = (self.r - 2) * (self.dim,)
        top = -(-self.n_bases // int(np.prod(high, dtype=np.int64)))
        # The top digit takes only the values 0 … top−1: twice that much room unless it wraps.
        room = self.dim if 2 * top > self.dim else 2 * top
        shape = (room, *high)
        full = np.zeros(math.prod(shape))
        full[:whole] = 1
        partial = np.zeros_like(full)
        partial[whole : self.n_bases] = 1
        a, b = (scipy.fft.rfftn(v.reshape(shape)) for v in (full, partial))
        counts = self.dim * np.abs(a) ** 2 + rest * 2 * (a * np.conj(b)).real
        weights = np.rint(scipy.fft.irfftn(counts, shape)).ravel()
        weights[0] = 0  # the same basis: orthogonal
        index = np.flatnonzero(weights)
        top_digit, lower = np.divmod(index, math.prod(high))
        # A difference in the upper half of the room is negative.
        top_digit = np.where(top_digit >= -(-room // 2), top_digit - room, top_digit) % self.dim
        return top_digit * math.prod(high) + lower, weights[index]
