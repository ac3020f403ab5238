"""Shortlist decoding of chirp codes for very many labels: not exact, with its recall on record."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from locole.decoders.base import Best, Codebook, Decoder
from locole.decoders.fft import FourierDecoder
from locole.decoders.fwht import WalshHadamardDecoder
from locole.exceptions import LocoleError
from locole.kernels.topk import push_rows
from locole.kernels.wht import wht_scores

__all__ = ["CandidateDecoder"]

_EXACT: dict[str, Decoder] = {"wht": WalshHadamardDecoder(), "dft": FourierDecoder()}


class ShiftCodebook(Codebook, Protocol):
    """A union of bases that tells where a shifted product of one of its vectors has its peak."""

    @property
    def n_bases(self) -> int:
        """Bases that hold a label."""

    def shift_peaks(self, shift: int) -> NDArray[np.int64]:
        """Position of the peak for each basis, shape (n_bases,)."""

    def demodulated(self, Z: NDArray, bases: NDArray[np.int64]) -> NDArray:
        """Row i of Z with the phase of basis ``bases[i]`` taken off: basis 0 then scores it."""

    def first_basis(self) -> Any:
        """Return the embedding of the ``dim`` columns of basis 0."""


class CandidateDecoder(Decoder):
    """Guess the basis by shift-and-multiply, then score the guessed bases exactly.

    The product of a chirp with its own shift, z(x+τ)·conj z(x), is a pure wave whose frequency tells
    the basis (Howard, Calderbank and Searle 2008 for binary chirps). One transform for each of a few
    shifts therefore votes for every basis at once; the best ``shortlist`` bases are then transformed
    as the exact decoder does. Work per point is ``(shifts + shortlist) · n log n``, whatever the
    number of labels. A label that shares its point with many others may be missed: see `recall`.

    Parameters
    ----------
    shortlist : int
        Bases scored exactly for each point.
    shifts : int
        Shifts that vote.

    Examples
    --------
    >>> import numpy as np
    >>> from locole.decoders import decode
    >>> from locole.embeddings import Kerdock
    >>> embedding = Kerdock(2048, dim=64)
    >>> decode(embedding, embedding.real_rows([5, 2000]), decoder=CandidateDecoder())[0].ravel()
    array([   5, 2000])
    """

    name = "candidates"
    exhaustive = False

    def __init__(self, shortlist: int = 16, *, shifts: int = 8) -> None:
        for value in (shortlist, shifts):
            if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
                raise LocoleError(
                    f"shortlist and shifts must be whole numbers of at least 1, not {value!r}."
                )
        self.shortlist = shortlist
        self.shifts = shifts

    def fits(self, embedding: Codebook) -> bool:
        """Whether shifts of the embedding's vectors tell their basis."""
        return embedding.structure in _EXACT and bool(getattr(embedding, "has_shift_peaks", False))

    def scan(self, embedding: ShiftCodebook, Z: NDArray[np.float32], best: Best) -> None:
        """Vote, then scan the shortlisted bases."""
        bases = self._shortlist(embedding, Z)
        rows = np.repeat(np.arange(Z.shape[0]), bases.shape[1])
        flat = bases.ravel()
        single = embedding.first_basis()
        found = Best.empty(flat.size, best.codes.shape[1])
        _EXACT[str(embedding.structure)].scan(single, embedding.demodulated(Z[rows], flat), found)
        columns = np.where(found.codes >= 0, flat[:, None] * embedding.dim + found.codes, -1)
        codes = _labels(embedding, columns).reshape(Z.shape[0], -1)
        scores = np.where(codes >= 0, found.scores.reshape(codes.shape), -np.inf)
        order = np.argsort(-scores, axis=1, kind="stable")[:, : best.codes.shape[1]]
        width = order.shape[1]
        best.codes[:, :width] = np.take_along_axis(codes, order, axis=1)
        best.scores[:, :width] = np.take_along_axis(scores, order, axis=1)

    def scores(self, embedding: ShiftCodebook, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return exact scores of all labels: who asks for all gets all."""
        return _EXACT[str(embedding.structure)].scores(embedding, Z)

    def scan_error(self, embedding: ShiftCodebook) -> float:
        """Return that of the exact decoder."""
        return _EXACT[str(embedding.structure)].scan_error(embedding)

    def _shortlist(self, embedding: ShiftCodebook, Z: NDArray[np.float32]) -> NDArray[np.int64]:
        """Bases with the most votes, shape (rows, min(shortlist, n_bases))."""
        size = min(self.shortlist, embedding.n_bases)
        if size == embedding.n_bases:
            return np.tile(np.arange(size), (Z.shape[0], 1))
        votes = np.zeros((Z.shape[0], embedding.n_bases), dtype=np.float32)
        transform = _walsh_powers if embedding.structure == "wht" else _fourier_powers
        # There are no more shifts than that, whatever a model file asks for.
        for shift in range(1, min(self.shifts, embedding.dim - 1) + 1):
            votes += transform(Z, shift, embedding.dim)[:, embedding.shift_peaks(shift)]
        best = Best.empty(Z.shape[0], size)
        push_rows(votes, 0, np.empty(0, dtype=np.int64), *best)
        return best.codes


def _walsh_powers(Z: NDArray[np.float32], shift: int, n: int) -> NDArray[np.float32]:
    """Modulus of the transform of z(x ⊕ shift)·z(x)."""
    products = Z * Z[:, np.arange(n) ^ shift]
    out = np.empty_like(products)
    wht_scores(products, np.ones((1, n), dtype=np.float32), out)
    return np.abs(out)


def _fourier_powers(Z: NDArray[np.float32], shift: int, n: int) -> NDArray[np.float32]:
    """Modulus of the transform of z(u + shift)·conj z(u)."""
    points = Z[:, :n] + np.complex64(1j) * Z[:, n:]
    products = np.roll(points, -shift, axis=1) * points.conj()
    return np.abs(scipy.fft.fft(products, axis=1))


def _labels(embedding: Codebook, columns: NDArray[np.int64]) -> NDArray[np.int64]:
    """Labels of columns, −1 for columns without one."""
    columns = np.where(columns < embedding.n_columns, columns, -1)
    labels = embedding.labels_of_columns()
    return np.where(columns >= 0, labels[columns], -1) if labels.size else columns
