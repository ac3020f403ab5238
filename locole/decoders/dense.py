"""Blocked matrix product: any embedding, and the reference for the fast decoders."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from locole.decoders.base import FLOAT32_ROUNDOFF, Best, Codebook, Decoder
from locole.kernels.topk import push_rows

__all__ = ["DenseDecoder"]

# Vectors made at a time: 8 MB of float32.
_BLOCK_FLOATS = 1 << 21


class DenseDecoder(Decoder):
    """Products with blocks of label vectors; memory is one block, whatever the number of labels.

    Examples
    --------
    >>> from locole.decoders import decode
    >>> from locole.embeddings import Gaussian
    >>> embedding = Gaussian(5, dim=16)
    >>> codes, scores = decode(embedding, embedding.real_rows([4]), k=1, decoder=DenseDecoder())
    >>> codes.ravel()
    array([4])
    """

    name = "dense"
    block_rows = 1024

    def scan(self, embedding: Codebook, Z: NDArray[np.float32], best: Best) -> None:
        """Product of the rows with one block of vectors after the other."""
        codes_are_columns = np.empty(0, dtype=np.int64)
        for start, stop in _label_blocks(embedding):
            scores = Z @ embedding.real_block(start, stop).T
            push_rows(scores, start, codes_are_columns, *best)

    def scores(self, embedding: Codebook, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the full product in double precision."""
        out = np.empty((Z.shape[0], embedding.n_classes))
        for start, stop in _label_blocks(embedding):
            out[:, start:stop] = Z @ embedding.real_block(start, stop, np.float64).T
        return out

    def scan_error(self, embedding: Codebook) -> float:
        """Worst case of a sum of real_dim products in any order, and of rounding both factors."""
        return (embedding.real_dim + 3) * FLOAT32_ROUNDOFF


def _label_blocks(embedding: Codebook) -> list[tuple[int, int]]:
    size = max(64, _BLOCK_FLOATS // embedding.real_dim)
    n = embedding.n_classes
    return [(start, min(start + size, n)) for start in range(0, n, size)]
