"""Fast Walsh–Hadamard decoding of the sign codes of quadratic forms."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from locole.decoders.base import FLOAT32_ROUNDOFF, Best, Codebook, Decoder, by_code
from locole.kernels.wht import scan_wht, wht_scores

__all__ = ["WalshHadamardDecoder"]

# Sign vectors made at a time.
_BLOCK_SIGNS = 1 << 18


class SignCodebook(Codebook, Protocol):
    """A union of n_bases Hadamard bases with flipped signs."""

    @property
    def n_bases(self) -> int:
        """Bases that hold a label."""

    def signs(self, start: int, stop: int, dtype: np.dtype) -> NDArray:
        """Signs of bases ``start … stop−1``, shape (stop − start, dim)."""


class WalshHadamardDecoder(Decoder):
    """Flip signs, transform, keep the best: ``n log2 n`` additions for n labels.

    Examples
    --------
    >>> from locole.decoders import decode
    >>> from locole.embeddings import Kerdock
    >>> embedding = Kerdock(50, dim=16)
    >>> codes, scores = decode(embedding, embedding.real_rows([4]), k=1, decoder=WalshHadamardDecoder())
    >>> codes.ravel()
    array([4])
    """

    name = "fwht"
    structure = "wht"

    def scan(self, embedding: SignCodebook, Z: NDArray[np.float32], best: Best) -> None:
        """One transform for each row and basis, fused with the running lists."""
        Z = Z * np.float32(1 / math.sqrt(embedding.dim))
        labels = embedding.labels_of_columns()
        for start, stop in _basis_blocks(embedding):
            signs = embedding.signs(start, stop, Z.dtype)
            scan_wht(Z, signs, start * embedding.dim, embedding.n_columns, labels, *best)

    def scores(self, embedding: SignCodebook, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the same transforms in double precision, written out."""
        Z = Z / math.sqrt(embedding.dim)
        n = embedding.dim
        out = np.empty((Z.shape[0], embedding.n_bases * n))
        for start, stop in _basis_blocks(embedding):
            wht_scores(Z, embedding.signs(start, stop, Z.dtype), out[:, start * n : stop * n])
        return by_code(embedding, out)

    def scan_error(self, embedding: SignCodebook) -> float:
        """One rounding for each of the log2 n additions, and three for input and scale."""
        return (math.log2(embedding.dim) + 4) * FLOAT32_ROUNDOFF


def _basis_blocks(embedding: SignCodebook) -> list[tuple[int, int]]:
    size = max(1, _BLOCK_SIGNS // embedding.dim)
    n = embedding.n_bases
    return [(start, min(start + size, n)) for start in range(0, n, size)]
