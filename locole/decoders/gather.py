"""Gather-sum decoding of Reed–Solomon simplex codes."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from locole.decoders.base import FLOAT32_ROUNDOFF, Best, Codebook, Decoder, by_code
from locole.kernels.symbols import scan_symbols, symbol_sums

__all__ = ["GatherDecoder"]

# Columns whose symbols are made at a time.
_BLOCK_COLUMNS = 1 << 12


class SymbolCodebook(Codebook, Protocol):
    """A concatenated code: each column is a word of q+1 symbols with q values."""

    @property
    def q(self) -> int:
        """Values of a symbol."""

    def symbols(self, columns: NDArray[np.int64]) -> NDArray[np.int32]:
        """Words of these columns, shape (len(columns), q+1)."""

    def symbol_scores(self, Z: NDArray) -> NDArray:
        """Score of each value of each symbol, shape (rows, q+1, q)."""


class GatherDecoder(Decoder):
    """Score every value of every symbol once, then add q+1 numbers for each label.

    Examples
    --------
    >>> from locole.decoders import decode
    >>> from locole.embeddings import ReedSolomonSimplex
    >>> embedding = ReedSolomonSimplex(20, dim=15)
    >>> codes, scores = decode(embedding, embedding.real_rows([4]), k=1, decoder=GatherDecoder())
    >>> codes.ravel()
    array([4])
    """

    name = "gather"
    structure = "symbols"

    def scan(self, embedding: SymbolCodebook, Z: NDArray[np.float32], best: Best) -> None:
        """Look up and add, fused with the running lists."""
        labels = embedding.labels_of_columns()
        tables = embedding.symbol_scores(Z).reshape(Z.shape[0], -1)
        for start, stop in _column_blocks(embedding):
            words = embedding.symbols(np.arange(start, stop))
            scan_symbols(tables, embedding.q, words, start, labels, *best)

    def scores(self, embedding: SymbolCodebook, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the same sums in double precision, written out."""
        tables = embedding.symbol_scores(Z).reshape(Z.shape[0], -1)
        out = np.empty((Z.shape[0], embedding.n_columns))
        for start, stop in _column_blocks(embedding):
            words = embedding.symbols(np.arange(start, stop))
            symbol_sums(tables, embedding.q, words, out[:, start:stop])
        return by_code(embedding, out)

    def scan_error(self, embedding: SymbolCodebook) -> float:
        """Worst case of sums of q products and then of q+1 symbol scores."""
        return (2 * embedding.q + 4) * FLOAT32_ROUNDOFF


def _column_blocks(embedding: SymbolCodebook) -> list[tuple[int, int]]:
    n = embedding.n_columns
    return [(start, min(start + _BLOCK_COLUMNS, n)) for start in range(0, n, _BLOCK_COLUMNS)]
