"""Binary codes of quadratic forms: Kerdock, Delsarte–Goethals and Gold.

A column is a sign vector ``(−1)^{Q_f(x) + a·x}/√n`` over the n = 2^m bit vectors x. All a for one
form f make an orthonormal basis (the Hadamard matrix with flipped columns), so column ``f·n + a``
belongs to basis f and one fast Walsh–Hadamard transform scores a whole basis.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from locole.embeddings.base import Embedding, InnerProducts, nearest_dims, pair_rms, wanted_dim
from locole.embeddings.fields import Field, make_field
from locole.exceptions import CapacityError, DimensionError
from locole.kernels.lanes import LANES
from locole.kernels.wht import fill_signs, wht_scores

__all__ = ["DelsarteGoethals", "Gold", "Kerdock", "QuadraticForms"]


# Field tables have about n entries.
_LARGEST_LOG = 20


class QuadraticForms(Embedding):
    """Union of orthonormal bases of sign vectors, one for each quadratic form of a family."""

    structure = "wht"
    table_bytes = 128
    #: Shift-and-multiply tells the basis: see `shift_peaks`.
    has_shift_peaks: ClassVar[bool] = True

    @property
    @abstractmethod
    def n_forms(self) -> int:
        """Number of quadratic forms, hence of orthonormal bases."""

    @abstractmethod
    def phases_at(self, forms: NDArray[np.int64], x: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Values Q_f(x) in {0, 1}, shape (len(forms), len(x)).

        Parameters
        ----------
        forms : array of int
            Numbers of quadratic forms.
        x : array of int
            Places of a vector, 0 … dim−1.
        """

    def phases(self, forms: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Values Q_f(x) for all x, shape (len(forms), dim).

        Parameters
        ----------
        forms : array of int
            Numbers of quadratic forms.
        """
        return self.phases_at(forms, np.arange(self.dim))

    @property
    def capacity(self) -> float:
        """``n_forms · n``."""
        return self.n_forms * self.dim

    def signs(self, start: int, stop: int, dtype: np.dtype) -> NDArray:
        """Signs ``(−1)^{Q_f}`` of forms ``start … stop−1``, shape (stop − start, dim).

        Parameters
        ----------
        start, stop : int
            First form, and the one after the last.
        dtype : dtype
            Type of the signs.
        """
        return (1 - 2 * self.phases(np.arange(start, stop)).astype(np.int8)).astype(dtype)

    @property
    def n_bases(self) -> int:
        """Bases that hold a label."""
        return -(-self.n_columns // self.dim)

    def shift_peaks(self, shift: int) -> NDArray[np.int64]:
        """Where the transform of z(x ⊕ shift)·z(x) peaks for each basis: the bits of B_f(·, shift).

        B_f(x, y) = Q_f(x⊕y) + Q_f(x) + Q_f(y) + Q_f(0) is linear in x: its values at the unit
        vectors are the bits of the position.

        Parameters
        ----------
        shift : int
            Added to places modulo 2, bit by bit.
        """
        units = 1 << np.arange(self.dim.bit_length() - 1)
        at = np.concatenate([units ^ shift, units, [shift, 0]])
        phases = self.phases_at(np.arange(self.n_bases), at)
        shifted, plain = phases[:, : units.size], phases[:, units.size : -2]
        return (shifted ^ plain ^ phases[:, [-2]] ^ phases[:, [-1]]).astype(np.int64) @ units

    def demodulated(self, Z: NDArray, bases: NDArray[np.int64]) -> NDArray:
        """Row i of Z times the signs of basis ``bases[i]``.

        Parameters
        ----------
        Z : array of shape (rows, dim)
            Points.
        bases : array of shape (rows,)
            Basis of each.
        """
        distinct, which = np.unique(bases, return_inverse=True)
        return Z * (1 - 2 * self.phases(distinct).astype(np.int8)).astype(Z.dtype)[which]

    def first_basis(self) -> QuadraticForms:
        """Return the Hadamard basis: the columns of form 0."""
        return self._replace(n_classes=self.dim, assignment="index")

    def _vectors(self, columns: NDArray[np.int64], dtype: np.dtype) -> NDArray:
        forms, shifts = np.divmod(columns, self.dim)
        distinct, which = np.unique(forms, return_inverse=True)
        out = np.empty((columns.size, self.dim), dtype=dtype)
        scale = dtype.type(1 / math.sqrt(self.dim))
        fill_signs(self.phases(distinct), which, shifts, scale, out)
        return out

    def inner_products(self) -> InnerProducts | None:
        """Closed form: 0 within a basis; across bases ``±cross_coherence``, or 0."""
        if not self._fills_columns:
            return None
        high = self._cross_coherence() if self.n_bases > 1 else 0.0
        low = -high if high else 0.0
        widths = np.full(self.n_bases, self.dim, dtype=np.float64)
        widths[-1] = self.n_classes - (self.n_bases - 1) * self.dim
        # Against a whole basis the squares of any unit vector's products sum to 1 (Parseval).
        squares = (self.n_classes**2 - float(widths @ widths)) / self.dim
        return InnerProducts(high, high, low, high, pair_rms(squares, self.n_classes))

    @abstractmethod
    def _cross_coherence(self) -> float:
        """Largest |inner product| of vectors from two different bases in use."""


class _GaloisForms(QuadraticForms):
    """Kerdock's forms on GF(2^{m−1}) × GF(2), m even, and those that contain them."""

    smallest_dim: ClassVar[int] = 4

    @classmethod
    def default_dim(cls, n_classes: int) -> int:
        """Smallest power of four that holds the labels and is not needlessly coherent."""
        dim = cls.smallest_dim
        while dim < wanted_dim(n_classes) or cls._capacity_of(dim) < n_classes:
            dim *= 4
        return dim

    @staticmethod
    @abstractmethod
    def _capacity_of(dim: int) -> int: ...

    def _check_dim(self) -> None:
        valid = [4**k for k in range(1, _LARGEST_LOG // 2 + 1) if 4**k >= self.smallest_dim]
        if self.dim not in valid:
            raise DimensionError(
                f"{type(self).__name__} needs a power of 4, at least {self.smallest_dim}, as dim, "
                f"not {self.dim}: take {nearest_dims(self.dim, valid)}."
            )
        self._field: Field = make_field(self.dim // 2)
        elements = np.arange(self.dim // 2)
        self._trace = self._field.trace(elements).astype(np.uint8)
        # Q(y) = Σ_{i=1}^{t} Tr(y^{2^i+1}), t = (m−2)/2; then Q_s(x', x_m) = Q(s x') + x_m Tr(s x').
        self._form = np.zeros(self.dim // 2, dtype=np.uint8)
        for i in range(1, (self.dim.bit_length() - 3) // 2 + 1):
            self._form ^= self._trace[self._field.power(elements, 2**i + 1)]

    def _kerdock_phases(self, s: NDArray[np.int64], x: NDArray[np.int64]) -> NDArray[np.uint8]:
        last, rest = np.divmod(x, self.dim // 2)
        product = self._field.mul(s[:, None], rest[None, :])
        return self._form[product] ^ (self._trace[product] & last.astype(np.uint8))


class Kerdock(_GaloisForms):
    r"""Real sign vectors with inner products exactly ``±1/√n`` or 0, for n = 4^k.

    .. math:: Q_s(x', x_m) = \sum_{i=1}^{(m-2)/2} \mathrm{Tr}((s x')^{2^i+1}) + x_m \mathrm{Tr}(s x')

    with s in GF(2^{m−1}), m = log2 n: n/2 forms, n²/2 labels. Differences of two forms have full
    rank. Half the real outputs of `Nelson` at the same coherence, and decoding needs only additions.

    Examples
    --------
    >>> embedding = Kerdock(12046, dim=256)
    >>> embedding.capacity, embedding.inner_products().coherence
    (32768, 0.0625)
    """

    name = "kerdock"

    @property
    def n_forms(self) -> int:
        """``n/2``."""
        return self.dim // 2

    @staticmethod
    def _capacity_of(dim: int) -> int:
        return dim * dim // 2

    def phases_at(self, forms: NDArray[np.int64], x: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Values of Q_s; form f belongs to the field element numbered f."""
        return self._kerdock_phases(forms, x)

    def _cross_coherence(self) -> float:
        return 1 / math.sqrt(self.dim)

    def grown(self, n_classes: int, *, spent: NDArray[np.int64] | None = None) -> Embedding:
        """Return Delsarte–Goethals once these are full: its first columns are these."""
        try:
            return super().grown(n_classes, spent=spent)
        except CapacityError:
            if not DelsarteGoethals.smallest_dim <= self.dim:
                raise
        values = {name: value for name, value in self._state().items() if name != "name"}
        return DelsarteGoethals(**values).grown(n_classes, spent=spent)

    def _way_out(self, n_classes: int) -> str:
        grow = (
            f"grow into DelsarteGoethals(dim={self.dim}), which keeps every vector, or "
            if self.dim >= DelsarteGoethals.smallest_dim
            and n_classes <= DelsarteGoethals._capacity_of(self.dim)
            else ""
        )
        return f"{grow}take dim={self.default_dim(n_classes)}"


class DelsarteGoethals(_GaloisForms):
    """Kerdock continued: n³/4 labels with coherence at most ``2/√n``.

    ``Q_{s,u}(x', x_m) = Q_s(x', x_m) + Tr(u x'^3)``; the first n²/2 columns (u = 0) are exactly
    those of `Kerdock`, so a full Kerdock model grows without moving a label.

    Examples
    --------
    >>> DelsarteGoethals(10**6, dim=256).capacity
    4194304
    """

    name = "delsarte_goethals"
    # On GF(2) the cube is linear: it would only repeat Kerdock's vectors.
    smallest_dim = 16

    @property
    def n_forms(self) -> int:
        """``(n/2)²``."""
        return (self.dim // 2) ** 2

    @staticmethod
    def _capacity_of(dim: int) -> int:
        return dim**3 // 4

    def phases_at(self, forms: NDArray[np.int64], x: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Values of Q_{s,u}; form f has s = f mod n/2 and u = f div n/2."""
        u, s = np.divmod(forms, self.dim // 2)
        cube = self._field.power(x % (self.dim // 2), 3)
        extra = self._trace[self._field.mul(u[:, None], cube[None, :])]
        return self._kerdock_phases(s, x) ^ extra

    def _cross_coherence(self) -> float:
        """Return 2/√n if some pair of bases in use attains it, 1/√n otherwise."""
        kerdock = 1 / math.sqrt(self.dim)
        for form in range(self.dim // 2, self.n_bases):
            if _largest_product(self, form) > 1.5 * kerdock:
                return 2 * kerdock
        return kerdock


class Gold(QuadraticForms):
    """Real sign vectors with inner products ``±√(2/n)`` or 0, for n = 2^m with m odd.

    ``Q_s(x) = Tr(s x³)`` with s in GF(2^m): n forms, n² labels. The choice between two powers of 4,
    and twice Kerdock's capacity relative to n².

    Examples
    --------
    >>> embedding = Gold(12046, dim=512)
    >>> embedding.capacity, embedding.inner_products().coherence
    (262144, 0.0625)
    """

    name = "gold"

    @property
    def n_forms(self) -> int:
        """``n``."""
        return self.dim

    @classmethod
    def default_dim(cls, n_classes: int) -> int:
        """Smallest odd power of two that holds the labels and is not needlessly coherent."""
        dim = 8
        while dim < min(wanted_dim(n_classes), 512) or dim**2 < n_classes:
            dim *= 4
        return dim

    def _check_dim(self) -> None:
        valid = [2**m for m in range(3, _LARGEST_LOG, 2)]
        if self.dim not in valid:
            raise DimensionError(
                f"Gold needs a dim of 2 to an odd power, at least 8, not {self.dim}: "
                f"take {nearest_dims(self.dim, valid)}."
            )
        self._field: Field = make_field(self.dim)
        elements = np.arange(self.dim)
        self._trace = self._field.trace(elements).astype(np.uint8)
        self._cube = self._field.power(elements, 3)

    def phases_at(self, forms: NDArray[np.int64], x: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Values of Tr(s x³); form f belongs to the field element numbered f."""
        return self._trace[self._field.mul(forms[:, None], self._cube[x][None, :])]

    def _cross_coherence(self) -> float:
        return math.sqrt(2 / self.dim)


def _largest_product(embedding: QuadraticForms, form: int) -> float:
    """Largest |inner product| between the basis of ``form`` and the bases before it."""
    n = embedding.dim
    own = embedding.signs(form, form + 1, np.dtype(np.float32))
    largest = 0.0
    for start in range(0, form, LANES):
        signs = embedding.signs(start, min(start + LANES, form), np.dtype(np.float32))
        products = np.empty_like(signs)
        wht_scores(own * signs, np.ones((1, n), dtype=np.float32), products)
        largest = max(largest, float(np.abs(products).max()) / n)
    return largest
