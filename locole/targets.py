"""What the regressor has to hit: labels and their vectors, served by pieces."""

from __future__ import annotations

from copy import copy
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from locole.cross_entropy import Softmax
from locole.embeddings import Embedding
from locole.exceptions import LocoleError
from locole.parallel.blocks import slices

__all__ = ["BLOCK_FLOATS", "Targets"]

#: Label vectors made at a time while a block of columns is cut out of them.
BLOCK_FLOATS = 1 << 19


class Targets:
    """Labels and their embedding; the target of a sample is the sum of its labels' vectors.

    The array of all targets, n_samples × real_dim, never exists: a regressor asks for some rows, or
    for some outputs as a table, in which the line of sample i is ``codes[i]``. Lines are labels where
    every sample has one, and otherwise the different sets of labels that occur.

    Parameters
    ----------
    codes : int64 array
        Label of each sample; with ``starts`` the labels of all samples, one sample after the other.
    embedding : Embedding
        Vector of each label.
    starts : int64 array of shape (n_samples + 1,), optional
        Where the labels of each sample begin, as in `locole.samples.Samples`. The target of a sample
        without labels is 0.

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
    >>> Targets(np.array([0, 2, 1]), OneHot(3, dim=3), starts=np.array([0, 2, 2, 3])).rows(slice(None))
    array([[1., 0., 1.],
           [0., 0., 0.],
           [0., 1., 0.]], dtype=float32)
    """

    def __init__(
        self,
        codes: NDArray[np.int64],
        embedding: Embedding,
        *,
        starts: NDArray[np.int64] | None = None,
    ) -> None:
        self.embedding = embedding
        #: Sets of labels, shape (sets, n_classes); None where each line is one label.
        self.sets: sp.csr_array | None = None
        self.codes = codes
        if starts is not None:
            self.codes, self.sets = _different_sets(codes, starts, embedding.n_classes)

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
        if self.sets is None:
            return self.embedding.real_rows(self.codes[index])
        sets = sp.csr_array(self.sets[self.codes[index]])
        shape = (sets.shape[0], sets.nnz)
        each = sp.csr_array((sets.data, np.arange(sets.nnz), sets.indptr), shape=shape)
        return each @ self.embedding.real_rows(sets.indices.astype(np.int64))

    def table(self, start: int, stop: int) -> NDArray[np.float32]:
        """Outputs ``start … stop−1`` of every line: line ``codes[i]`` belongs to sample i."""
        out = np.empty((self.n_classes, stop - start), dtype=np.float32)
        for labels in self._blocks():
            out[labels] = self.embedding.real_block(labels.start, labels.stop)[:, start:stop]
        return out if self.sets is None else self.sets @ out

    def take(self, index: NDArray) -> Targets:
        """Return the targets of these samples."""
        some = copy(self)
        some.codes = self.codes[index]
        return some

    def softmax(self, **settings: Any) -> Softmax:
        """Cross-entropy over all labels, as a function of points and codes; see `Softmax`."""
        if self.sets is not None:
            raise LocoleError(
                "the softmax over all labels learns one label for each row: take regressor='auto' or "
                "'elastic_net', or a network with the squared loss."
            )
        return Softmax(self.embedding, **settings)

    def mean(self, sample_weight: NDArray | None = None) -> NDArray[np.float64]:
        """Weighted mean of the targets: the point ``Gη`` of the labels' frequencies."""
        n_lines = self.n_classes if self.sets is None else self.sets.shape[0]
        lines = np.bincount(self.codes, weights=sample_weight, minlength=n_lines)
        counts = lines if self.sets is None else lines @ self.sets
        total = np.zeros(self.embedding.real_dim)
        for labels in self._blocks():
            total += counts[labels] @ self.embedding.real_block(labels.start, labels.stop)
        return total / lines.sum()

    def _blocks(self) -> list[slice]:
        """Labels whose vectors are made at a time."""
        return slices(self.n_classes, max(1, BLOCK_FLOATS // self.embedding.real_dim))


def _different_sets(
    codes: NDArray[np.int64], starts: NDArray[np.int64], n_classes: int
) -> tuple[NDArray[np.int64], sp.csr_array]:
    """Number of each sample's set of labels, and the sets, in the order in which they first occur."""
    numbers: dict[bytes, int] = {}
    sets = [codes[first:last] for first, last in pairwise(starts)]
    own = [numbers.setdefault(labels.tobytes(), len(numbers)) for labels in sets]
    different = [np.frombuffer(labels, dtype=codes.dtype) for labels in numbers]
    indices = np.concatenate([codes[:0], *different])
    indptr = np.append(0, np.cumsum([labels.size for labels in different]))
    shape = (len(different), n_classes)
    ones = np.ones(indices.size, dtype=np.float32)
    return np.array(own, dtype=np.int64), sp.csr_array((ones, indices, indptr), shape=shape)
