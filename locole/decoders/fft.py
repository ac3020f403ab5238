"""FFT decoding of Nelson's polynomial phases."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from locole.decoders.base import FLOAT32_ROUNDOFF, Best, Codebook, Decoder, by_code
from locole.kernels.chirp import pack_pairs
from locole.kernels.topk import push_complex

__all__ = ["FourierDecoder"]

# Packed inputs held at a time: 1 MB of complex64 stays in the second-level cache.
_BLOCK_COMPLEX = 1 << 17


class ChirpCodebook(Codebook, Protocol):
    """A union of n_bases Fourier bases, each multiplied by a chirp."""

    @property
    def n_bases(self) -> int:
        """Bases that hold a label."""

    def conjugate_chirps(self, start: int, stop: int, dtype: np.dtype) -> NDArray:
        """Conjugated chirps of bases ``start … stop−1``, shape (stop − start, dim)."""


class FourierDecoder(Decoder):
    """Multiply by a chirp, fold, transform: one complex FFT of length n scores 2n labels."""

    name = "fft"
    structure = "dft"
    block_rows = 64

    def scan(self, embedding: ChirpCodebook, Z: NDArray[np.float32], best: Best) -> None:
        """One complex FFT for each row and pair of bases, then the running lists."""
        Z = Z * np.float32(1 / math.sqrt(embedding.dim))
        labels = embedding.labels_of_columns()
        for start, stop in _pair_blocks(embedding, Z.shape[0]):
            packed = _transform(embedding, Z, start, stop)
            first = start * embedding.dim
            push_complex(packed, first, embedding.n_columns, labels, *best)

    def scores(self, embedding: ChirpCodebook, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the same transforms in double precision, written out."""
        Z = Z / math.sqrt(embedding.dim)
        n = embedding.dim
        parts = []
        for start, stop in _pair_blocks(embedding, Z.shape[0]):
            packed = _transform(embedding, Z, start, stop)
            both = np.stack([packed.real, packed.imag], axis=2)
            parts.append(both.reshape(Z.shape[0], (stop - start) * n))
        return by_code(embedding, np.concatenate(parts, axis=1))

    def scan_error(self, embedding: ChirpCodebook) -> float:
        """Bound of pocketfft's error for a prime length: three transforms of twice the length."""
        return 32 * math.log2(2 * embedding.dim) * FLOAT32_ROUNDOFF


def _transform(embedding: ChirpCodebook, Z: NDArray, start: int, stop: int) -> NDArray:
    """Scores of bases ``start … stop−1``: real and imaginary parts of (rows, pairs, n)."""
    chirps = embedding.conjugate_chirps(start, stop, Z.dtype)
    packed = np.empty((Z.shape[0], (stop - start) // 2, embedding.dim), dtype=chirps.dtype)
    pack_pairs(Z, chirps, packed)
    return scipy.fft.fft(packed, axis=-1, overwrite_x=True, workers=1)


def _pair_blocks(embedding: ChirpCodebook, n_rows: int) -> list[tuple[int, int]]:
    """Even numbers of bases; a last odd one is joined by a basis without labels."""
    size = 2 * max(1, _BLOCK_COMPLEX // (n_rows * embedding.dim))
    n = embedding.n_bases + embedding.n_bases % 2
    return [(start, min(start + size, n)) for start in range(0, n, size)]
