"""Decoding of embeddings whose scores cost one pass over the outputs: one-hot and simplex."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from locole.decoders.base import FLOAT32_ROUNDOFF, Best, Codebook, Decoder, by_code
from locole.kernels.topk import push_rows

__all__ = ["ArgmaxDecoder"]


class LinearCodebook(Codebook, Protocol):
    """An embedding that writes down its columns' scores itself."""

    def column_scores(self, Z: NDArray) -> NDArray:
        """Scores of columns 0 … n_columns−1."""


class ArgmaxDecoder(Decoder):
    """The outputs, up to an affine map, are the scores.

    Examples
    --------
    >>> from locole.decoders import decode
    >>> from locole.embeddings import OneHot
    >>> embedding = OneHot(5, dim=5)
    >>> codes, scores = decode(embedding, embedding.real_rows([4]), k=1, decoder=ArgmaxDecoder())
    >>> codes.ravel()
    array([4])
    """

    name = "argmax"
    structure = "linear"

    def scan(self, embedding: LinearCodebook, Z: NDArray[np.float32], best: Best) -> None:
        """Merge the scores, which are no larger than the points themselves."""
        push_rows(embedding.column_scores(Z), 0, embedding.labels_of_columns(), *best)

    def scores(self, embedding: LinearCodebook, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the formula in double precision."""
        return by_code(embedding, embedding.column_scores(Z))

    def scan_error(self, embedding: LinearCodebook) -> float:
        """Worst case of the sum over all outputs."""
        return (embedding.real_dim + 4) * FLOAT32_ROUNDOFF
