"""Vectors of labels that are gone: never used again, and what they say for the labels they became."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from locole.embeddings import Embedding, Explicit
from locole.exceptions import ModelFileError
from locole.io import saved_as
from locole.label_past import Relabelling

__all__ = ["GoneLabels"]


@saved_as("labels.gone")
class GoneLabels:
    r"""Vectors of merged and retired labels.

    Regressors go on hitting the vector g_a of a label a that was merged into b. Points are therefore
    mapped by

    .. math:: z \mapsto z + \sum_a \langle z, g_a \rangle (g_b - g_a)

    so that what says a speaks for b. With orthonormal vectors, as one-hot ones are, this is the point of
    a ridge regression that was fitted to the merged labels; otherwise it differs from that by the inner
    products of label vectors.

    Attributes
    ----------
    embedding_ : Embedding
        Vectors of the labels that are gone, of the same family as the others.
    into_ : array
        Code of the label that each became; −1 for retired labels.

    Examples
    --------
    >>> from locole.embeddings import OneHot
    >>> labels, change = OneHot(3, dim=3), Relabelling.of(3, merged={2: 0})
    >>> gone = GoneLabels.after(None, labels, change)
    >>> gone.points(np.array([[0.1, 0.2, 0.7]]), labels.taken(change.kept)).round(3)
    array([[0.8, 0.2, 0. ]])
    """

    def __init__(self, embedding: Embedding, into: NDArray[np.int64]) -> None:
        self.embedding_, self.into_ = embedding, into

    @classmethod
    def after(cls, known: Self | None, labels: Embedding, change: Relabelling) -> Self:
        """Those that are gone after a change of the labels of an embedding."""
        gone = np.delete(np.arange(change.codes.size), change.kept)
        more, into = labels.taken(gone), change.codes[gone]
        if known is None:
            return cls(more, into)
        before = np.where(known.into_ >= 0, change.codes[known.into_], -1)
        return cls(_joined(known.embedding_, more), np.append(before, into))

    def like(self, labels: Embedding) -> GoneLabels:
        """The same beside an embedding that has grown."""
        own = self.embedding_
        if isinstance(labels, Explicit) or (type(own), own.dim) == (type(labels), labels.dim):
            return self
        grown = labels._replace(n_classes=own.n_classes, assignment=self.spent)
        return GoneLabels(grown, self.into_)

    @property
    def spent(self) -> NDArray[np.int64]:
        """Columns of the labels that are gone."""
        return self.embedding_.columns(np.arange(self.embedding_.n_classes))

    def points(self, Z: NDArray, labels: Embedding) -> NDArray:
        """Points in which merged labels speak for those that they became."""
        merged = self._merged
        if not merged.size:
            return Z
        G = self.embedding_.real_rows(merged, Z.dtype)
        lead = labels.real_rows(self.into_[merged], Z.dtype) - G
        # Not by BLAS, whose sums depend on how many rows there are.
        return Z + np.einsum("im,mj->ij", np.einsum("ij,mj->im", Z, G), lead)

    def vectors(self, G: NDArray, labels: Embedding) -> NDArray:
        """Vectors whose products with z are those of G with the mapped z."""
        merged = self._merged
        old = self.embedding_.real_rows(merged, G.dtype)
        return G + (G @ (labels.real_rows(self.into_[merged], G.dtype) - old).T) @ old

    @property
    def _merged(self) -> NDArray[np.int64]:
        return np.flatnonzero(self.into_ >= 0)

    def fits(self, labels: Embedding) -> bool:
        """Whether what a file says of them fits to the labels that are left."""
        own, is_code = self.embedding_, (self.into_ >= -1) & (self.into_ < labels.n_classes)
        return bool(type(own) is type(labels) and own.real_dim == labels.real_dim and is_code.all())

    def _state(self) -> dict[str, Any]:
        return {"embedding": self.embedding_, "into": self.into_}

    @classmethod
    def _from_state(cls, values: dict[str, Any]) -> Self:
        embedding, into = values["embedding"], values["into"]
        fits = (
            len(values) == 2
            and isinstance(embedding, Embedding)
            and isinstance(into, np.ndarray)
            and into.dtype == np.int64
            and into.shape == (embedding.n_classes,)
        )
        if not fits:
            raise ModelFileError("its labels that are gone are invalid")
        return cls(embedding, into)


def _joined(first: Embedding, second: Embedding) -> Embedding:
    """Vectors of both, which are of one family."""
    if isinstance(first, Explicit) and isinstance(second, Explicit):
        return Explicit(np.vstack([part.real_block(0, part.n_classes) for part in (first, second)]))
    columns = [part.columns(np.arange(part.n_classes)) for part in (first, second)]
    n_classes = first.n_classes + second.n_classes
    return second._replace(n_classes=n_classes, assignment=np.concatenate(columns))
