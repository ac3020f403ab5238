"""The contract of a decoder: from a point back to the labels whose vectors are nearest."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

__all__ = ["FLOAT32_ROUNDOFF", "Best", "Codebook", "Decoder", "by_code"]

FLOAT32_ROUNDOFF = 2.0**-24


class Codebook(Protocol):
    """What a decoder needs of an embedding; fast decoders also use the structure's own methods."""

    structure: ClassVar[str | None]
    n_classes: int
    dim: int

    @property
    def real_dim(self) -> int:
        """Entries of a point."""

    @property
    def n_columns(self) -> int:
        """Columns to scan."""

    def columns(self, codes: ArrayLike) -> NDArray[np.int64]:
        """Column of each label."""

    def labels_of_columns(self) -> NDArray[np.int64]:
        """Label of each column, −1 where unused; empty where column = label."""

    def real_rows(self, codes: ArrayLike, dtype: DTypeLike = ...) -> NDArray:
        """Vectors of these labels."""

    def real_block(self, start: int, stop: int, dtype: DTypeLike = ...) -> NDArray:
        """Vectors of labels ``start … stop−1``."""


class Best(NamedTuple):
    """Running lists of the best labels of each row, sorted by falling score."""

    scores: NDArray[np.float32]
    codes: NDArray[np.int64]

    @classmethod
    def empty(cls, n_rows: int, size: int) -> Self:
        """Lists without an entry: score −inf, code −1."""
        return cls(
            np.full((n_rows, size), -np.inf, dtype=np.float32),
            np.full((n_rows, size), -1, dtype=np.int64),
        )


class Decoder(ABC):
    """Scores points against all labels of an embedding it can handle.

    `scan` is fast and works in float32 within a stated error; `scores` is exact to double precision.
    What to make of the difference is decided for all decoders in ``locole.decoders.exact_ranking``.
    """

    name: ClassVar[str]
    #: The structure an embedding must have; None: any embedding.
    structure: ClassVar[str | None] = None
    #: Whether `scan` sees every label; a shortlist decoder does not.
    exhaustive: ClassVar[bool] = True
    #: Rows worth handing to one call.
    block_rows: ClassVar[int] = 256

    def __repr__(self) -> str:
        options = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({options})"

    def _state(self) -> dict[str, Any]:
        return dict(vars(self))

    @classmethod
    def _from_state(cls, values: dict[str, Any]) -> Self:
        return cls(**values)

    def fits(self, embedding: Codebook) -> bool:
        """Whether this decoder can decode that embedding.

        Parameters
        ----------
        embedding : Embedding
            Where the labels' vectors are.
        """
        return self.structure in (None, embedding.structure)

    @abstractmethod
    def scan(self, embedding: Any, Z: NDArray[np.float32], best: Best) -> None:
        """Merge the float32 scores of all labels into the rows' lists.

        Parameters
        ----------
        embedding : Embedding
            Where the labels' vectors are.
        Z : array of shape (rows, real_dim)
            Points in the real view.
        best : Best
            Running lists of the best labels, which are filled.
        """

    @abstractmethod
    def scores(self, embedding: Any, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scores of all labels, shape (rows, n_classes).

        Parameters
        ----------
        embedding : Embedding
            Where the labels' vectors are.
        Z : array of shape (rows, real_dim)
            Points in the real view.
        """

    @abstractmethod
    def scan_error(self, embedding: Any) -> float:
        """Bound of ``|scan − exact|`` for points of unit length.

        Parameters
        ----------
        embedding : Embedding
            Where the labels' vectors are.
        """


def by_code(embedding: Codebook, column_scores: NDArray) -> NDArray:
    """Reorder scores of columns 0 … n_columns−1 (or more) into scores of labels."""
    if embedding.labels_of_columns().size == 0:
        return column_scores[:, : embedding.n_classes]
    return column_scores[:, embedding.columns(np.arange(embedding.n_classes))]
