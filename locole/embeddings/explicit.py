"""The user's own vectors: side information, learnt embeddings, zero-shot labels."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from locole.embeddings.base import Embedding
from locole.exceptions import LocoleError

__all__ = ["Explicit"]


class Explicit(Embedding):
    """Given vectors, one a row, scaled to unit length.

    Parameters
    ----------
    vectors : array of shape (n_vectors, dim)
        Real or complex; kept as float32 or complex64.
    labels : array of shape (n_vectors,), optional
        Names of the rows. A classifier then knows all of them, also those without training rows
        (zero-shot). Without names, row k belongs to the k-th label in sorted order.
    n_classes : int, optional
        How many of the vectors are in use; all by default.

    Examples
    --------
    >>> Explicit([[3.0, 4.0], [0.0, -2.0]]).rows([0, 1])
    array([[ 0.6,  0.8],
           [ 0. , -1. ]], dtype=float32)
    """

    name = "explicit"

    def __init__(
        self, vectors: ArrayLike, *, labels: ArrayLike | None = None, n_classes: int | None = None
    ) -> None:
        array = np.array(vectors)
        if array.ndim != 2 or array.shape[0] == 0 or array.dtype.kind not in "iufc":
            raise LocoleError("vectors must be a table of numbers with a row for each label.")
        self.is_complex = array.dtype.kind == "c"  # type: ignore[misc]
        real = np.hstack([array.real, array.imag]) if self.is_complex else array
        real = real.astype(np.float64)
        norms = np.linalg.norm(real, axis=1, keepdims=True)
        if not np.all(np.isfinite(norms) & (norms > 0)):
            raise LocoleError("every vector must be finite and different from zero.")
        # Vectors that have unit length already stay as they are, bit for bit.
        norms[np.abs(norms - 1) < 1e-6] = 1
        self.vectors = (real / norms).astype(np.float32)
        self.labels = None if labels is None else _checked_labels(labels, array.shape[0])
        super().__init__(array.shape[0] if n_classes is None else n_classes, array.shape[1])

    @property
    def capacity(self) -> float:
        """Number of vectors given."""
        return self.vectors.shape[0]

    @classmethod
    def default_dim(cls, n_classes: int) -> int:
        """Not used: the vectors have their dim."""
        raise LocoleError("Explicit takes its dim from the vectors.")

    def _way_out(self, n_classes: int) -> str:
        return "give a vector for every label"

    def _vectors(self, columns: NDArray[np.int64], dtype: np.dtype) -> NDArray:
        return self.vectors[columns].astype(dtype, copy=False)

    def resized(self, n_classes: int) -> Self:
        """Return the first ``n_classes`` vectors."""
        return self._replace(n_classes=n_classes)

    def taken(self, codes: NDArray[np.int64]) -> Self:
        """Return the vectors of some labels, followed by those that no label has yet."""
        order = np.append(self.columns(codes), np.arange(self.n_classes, len(self.vectors)))
        labels = None if self.labels is None else self.labels[order]
        values = {"is_complex": self.is_complex, "vectors": self.vectors[order], "labels": labels}
        return self._from_state({"n_classes": codes.size, **values})

    def grown(self, n_classes: int, *, spent: NDArray[np.int64] | None = None) -> Embedding:
        """Return the first ``n_classes`` vectors: those of labels that are gone are not among them."""
        return self.resized(n_classes)

    def spec(self) -> dict[str, Any]:
        """Return the description; unlike the generated families it has to hold the vectors."""
        vectors = self.vectors
        if self.is_complex:
            vectors = vectors[:, : self.dim] + np.complex64(1j) * vectors[:, self.dim :]
        return {
            "name": self.name,
            "n_classes": self.n_classes,
            "vectors": vectors.tolist(),
            "labels": None if self.labels is None else self.labels.tolist(),
        }

    def _state(self) -> dict[str, Any]:
        return {
            "n_classes": self.n_classes,
            "is_complex": self.is_complex,
            "vectors": self.vectors,
            "labels": self.labels,
        }

    @classmethod
    def _from_state(cls, values: dict[str, Any]) -> Self:
        """Take the vectors as they are: a copy of many would need as much memory again."""
        n_classes, is_complex, vectors, labels = (
            values[name] for name in ("n_classes", "is_complex", "vectors", "labels")
        )
        halves = 2 if is_complex else 1
        if vectors.dtype != np.float32 or vectors.ndim != 2 or vectors.shape[1] % halves:
            raise LocoleError("vectors must be a table of float32, in the real view.")
        norms = np.einsum("ij,ij->i", vectors, vectors)
        if not (np.abs(norms - 1) < 1e-3).all():
            raise LocoleError("vectors must have unit length.")
        made = cls.__new__(cls)
        made.is_complex, made.vectors = bool(is_complex), vectors  # type: ignore[misc]
        made.labels = None if labels is None else _checked_labels(labels, vectors.shape[0])
        Embedding.__init__(made, n_classes, vectors.shape[1] // halves)
        return made


def _checked_labels(labels: ArrayLike, n_vectors: int) -> NDArray:
    array = np.asarray(labels)
    if array.shape != (n_vectors,) or np.unique(array).size != n_vectors:
        raise LocoleError("labels must name every vector once.")
    return array
