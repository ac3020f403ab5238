"""What the regressor has to hit: labels and their vectors, served by pieces."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from locole.cross_entropy import Softmax
from locole.embeddings import Embedding

__all__ = ["BLOCK_FLOATS", "Targets"]

#: Label vectors made at a time while a block of columns is cut out of them.
BLOCK_FLOATS = 1 << 19


class Targets:
    """Labels and their embedding; target i is the vector of label ``codes[i]``.

    The array of all targets, n_samples × real_dim, never exists: a regressor asks for some rows, or
    for some outputs as a table over the labels.

    Parameters
    ----------
    codes : int64 array of shape (n_samples,)
        Label of each sample.
    embedding : Embedding
        Vector of each label.

    Examples
    --------
    >>> import numpy as np
    >>> from locole.embeddings import OneHot
    >>> targets = Targets(np.array([2, 0, 2]), OneHot(3, dim=3))
    >>> targets.rows(slice(0, 2))
    array([[0., 0., 1.],
           [1., 0., 0.]], dtype=float32)
    >>> targets.table(1, 3)[targets.codes]
    array([[0., 1.],
           [0., 0.],
           [0., 1.]], dtype=float32)
    """

    def __init__(self, codes: NDArray[np.int64], embedding: Embedding) -> None:
        self.codes = codes
        self.embedding = embedding

    @property
    def shape(self) -> tuple[int, int]:
        """``(n_samples, real_dim)``."""
        return self.codes.size, self.embedding.real_dim

    @property
    def n_classes(self) -> int:
        """Number of labels, also of those that no sample has."""
        return self.embedding.n_classes

    def rows(self, index: slice | NDArray) -> NDArray[np.float32]:
        """Return the targets of these samples, shape (…, real_dim)."""
        return self.embedding.real_rows(self.codes[index])

    def table(self, start: int, stop: int) -> NDArray[np.float32]:
        """Outputs ``start … stop−1`` of every label: row ``codes[i]`` belongs to sample i."""
        embedding = self.embedding
        out = np.empty((embedding.n_classes, stop - start), dtype=np.float32)
        step = max(1, BLOCK_FLOATS // embedding.real_dim)
        for first in range(0, embedding.n_classes, step):
            last = min(first + step, embedding.n_classes)
            out[first:last] = embedding.real_block(first, last)[:, start:stop]
        return out

    def take(self, index: NDArray) -> Targets:
        """Return the targets of these samples."""
        some = copy(self)
        some.codes = self.codes[index]
        return some

    def softmax(self, **settings: Any) -> Softmax:
        """Cross-entropy over all labels, as a function of points and codes; see `Softmax`."""
        return Softmax(self.embedding, **settings)

    def mean(self, sample_weight: NDArray | None = None) -> NDArray[np.float64]:
        """Weighted mean of the targets: the point ``Gη`` of the labels' frequencies."""
        embedding = self.embedding
        counts = np.bincount(self.codes, weights=sample_weight, minlength=embedding.n_classes)
        total = np.zeros(embedding.real_dim)
        step = max(1, BLOCK_FLOATS // embedding.real_dim)
        for first in range(0, embedding.n_classes, step):
            last = min(first + step, embedding.n_classes)
            total += counts[first:last] @ embedding.real_block(first, last)
        return total / counts.sum()
