"""FFT decoding of Nelson's polynomial phases."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from locole.decoders.base import FLOAT32_ROUNDOFF, Best, Codebook, Decoder, by_code
from locole.kernels.fourier import dft_scores, scan_dft
from locole.kernels.plans import bluestein_plan

__all__ = ["FourierDecoder"]

# Entries of the chirps made at a time.
_BLOCK_CHIRPS = 1 << 16


class ChirpCodebook(Codebook, Protocol):
    """A union of n_bases Fourier bases, each multiplied by a chirp."""

    @property
    def n_bases(self) -> int:
        """Bases that hold a label."""

    def conjugate_chirps(self, start: int, stop: int, dtype: np.dtype) -> NDArray:
        """Conjugated chirps of bases ``start … stop−1``, shape (stop − start, dim)."""


class FourierDecoder(Decoder):
    """Multiply by a chirp, fold, transform: one complex transform of length n scores 2n labels.

    Examples
    --------
    >>> from locole.decoders import decode
    >>> from locole.embeddings import Nelson
    >>> embedding = Nelson(49, dim=7)
    >>> codes, scores = decode(embedding, embedding.real_rows([4]), k=1, decoder=FourierDecoder())
    >>> codes.ravel()
    array([4])
    """

    name = "fft"
    structure = "dft"

    def scan(self, embedding: ChirpCodebook, Z: NDArray[np.float32], best: Best) -> None:
        """One transform for each row and pair of bases, fused with the running lists."""
        Z = Z * np.float32(0.5 / math.sqrt(embedding.dim))
        labels = embedding.labels_of_columns()
        wave, plan = bluestein_plan(embedding.dim, Z.dtype)
        for start, stop in _pair_blocks(embedding):
            chirps = embedding.conjugate_chirps(start, stop, Z.dtype)
            first = start * embedding.dim
            scan_dft(Z, chirps, wave, plan, first, embedding.n_columns, labels, *best)

    def scores(self, embedding: ChirpCodebook, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the same transforms in double precision, written out."""
        Z = Z * (0.5 / math.sqrt(embedding.dim))
        wave, plan = bluestein_plan(embedding.dim, Z.dtype)
        blocks = _pair_blocks(embedding)
        n = embedding.dim
        out = np.empty((Z.shape[0], blocks[-1][1] * n))
        for start, stop in blocks:
            chirps = embedding.conjugate_chirps(start, stop, Z.dtype)
            dft_scores(Z, chirps, wave, plan, out[:, start * n : stop * n])
        return by_code(embedding, out)

    def scan_error(self, embedding: ChirpCodebook) -> float:
        """A few roundings for each pass of two transforms of length 2^k < 4n."""
        return 8 * (math.log2(embedding.dim) + 4) * FLOAT32_ROUNDOFF


def _pair_blocks(embedding: ChirpCodebook) -> list[tuple[int, int]]:
    """Even numbers of bases; a last odd one is joined by a basis without labels."""
    size = 2 * max(1, _BLOCK_CHIRPS // (2 * embedding.dim))
    n = embedding.n_bases + embedding.n_bases % 2
    return [(start, min(start + size, n)) for start in range(0, n, size)]
