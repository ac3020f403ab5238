"""The contract of an embedding: which unit vector represents a label."""

from __future__ import annotations

import math
import reprlib
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from locole.embeddings.assignment import AssignmentLike, extend_columns, make_columns
from locole.exceptions import CapacityError, DimensionError, LocoleError

__all__ = ["Embedding", "InnerProducts", "nearest_dims"]


# No machine has room for more.
_MOST_LABELS = 1 << 40
# Work and memory of a column without a label in a model file.
_COLUMN_BYTES = 64


@dataclass(frozen=True)
class InnerProducts:
    """What is known of the inner products of different vectors of an embedding.

    Attributes
    ----------
    coherence : float
        Largest ``|⟨g_i, g_j⟩|`` over ``i ≠ j``.
    coherence_re : float
        Largest ``|Re⟨g_i, g_j⟩|``; the theory needs only this one.
    low, high : float
        Smallest and largest ``Re⟨g_i, g_j⟩``.
    rms : float
        Root mean square of ``Re⟨g_i, g_j⟩`` over all ordered pairs ``i ≠ j``.
    """

    coherence: float
    coherence_re: float
    low: float
    high: float
    rms: float


class Embedding(ABC):
    """A unit vector for each of ``n_classes`` labels, made on demand.

    A family numbers its vectors as *columns* 0, 1, 2, …; the assignment says which column a label
    (a *code*, 0 … n_classes−1) gets. Column k never depends on ``n_classes``, so labels can be added
    without moving an old one.

    Parameters
    ----------
    n_classes : int
        Number of labels.
    dim : int
        Number of entries of a vector; complex entries count once here and twice in ``real_dim``.
    random_state : int
        Seed of random vectors and of ``assignment="random"``.
    assignment : {"index", "random"} or array of shape (n_classes,)
        Which column each label gets; an array gives the columns themselves
        (see `group_columns`).
    """

    #: Registry name, also written into model files.
    name: ClassVar[str]
    #: Bytes that the tables of the family take for each entry of a vector.
    table_bytes: ClassVar[int] = 0
    #: What a fast decoder may rely on: "wht", "dft", "symbols", "linear" or None.
    structure: ClassVar[str | None] = None
    is_complex: ClassVar[bool] = False

    def __init__(
        self,
        n_classes: int,
        dim: int,
        *,
        random_state: int = 0,
        assignment: AssignmentLike = "index",
    ) -> None:
        self.n_classes = _whole_number(n_classes, "n_classes", at_least=1)
        if self.n_classes > _MOST_LABELS:
            raise LocoleError(f"n_classes must be at most 2**40, not {reprlib.repr(n_classes)}.")
        self.dim = _whole_number(dim, "dim", at_least=1)
        self.random_state = _whole_number(random_state, "random_state", at_least=0)
        self.assignment = assignment
        self._check_dim()
        if self.n_classes > self.capacity:
            raise self._full(self.n_classes)
        self._columns = make_columns(
            assignment, n_classes=self.n_classes, capacity=self.capacity, seed=self.random_state
        )

    # What a family writes -----------------------------------------------------------------------

    @property
    @abstractmethod
    def capacity(self) -> float:
        """How many labels this dim can hold (``inf`` for random families)."""

    @classmethod
    @abstractmethod
    def default_dim(cls, n_classes: int) -> int:
        """The dim taken when the user names none.

        Parameters
        ----------
        n_classes : int
            Number of labels.
        """

    @abstractmethod
    def _vectors(self, columns: NDArray[np.int64], dtype: np.dtype) -> NDArray:
        """Real view of the vectors of these columns, shape (len(columns), real_dim)."""

    def _check_dim(self) -> None:
        """Raise DimensionError where the construction does not exist."""

    def _way_out(self, n_classes: int) -> str:
        """What to do when ``n_classes`` labels do not fit, as the end of a sentence."""
        return f"take dim={self.default_dim(n_classes)}"

    def inner_products(self) -> InnerProducts | None:
        """Exact inner products from the structure, or None where only a Gram matrix tells."""
        return None

    # What everybody gets ------------------------------------------------------------------------

    @property
    def real_dim(self) -> int:
        """Number of real outputs a regressor must learn."""
        return 2 * self.dim if self.is_complex else self.dim

    @property
    def n_columns(self) -> int:
        """One more than the largest column in use: what a decoder has to scan."""
        return self.n_classes if self._columns is None else int(self._columns.max()) + 1

    def columns(self, codes: ArrayLike) -> NDArray[np.int64]:
        """Columns of these labels, checked.

        Parameters
        ----------
        codes : array-like of int
            Codes of labels, 0 … n_classes−1.
        """
        codes = np.atleast_1d(np.asarray(codes))
        if codes.ndim != 1 or (codes.size and codes.dtype.kind not in "iu"):
            raise LocoleError("codes must be a list of whole numbers, one per label wanted.")
        codes = codes.astype(np.int64, copy=False)
        if codes.size and (codes.min() < 0 or codes.max() >= self.n_classes):
            raise LocoleError(f"codes must lie between 0 and n_classes - 1 = {self.n_classes - 1}.")
        return codes if self._columns is None else self._columns[codes]

    def labels_of_columns(self) -> NDArray[np.int64]:
        """Label of each column (−1: unused), or an empty array where column = label."""
        if self._columns is None:
            return np.empty(0, dtype=np.int64)
        labels = np.full(self.n_columns, -1, dtype=np.int64)
        labels[self._columns] = np.arange(self.n_classes)
        return labels

    def real_rows(self, codes: ArrayLike, dtype: DTypeLike = np.float32) -> NDArray:
        """Real view ``[Re g, Im g]`` of the vectors of these labels.

        Parameters
        ----------
        codes : array-like of int
            Codes of labels, 0 … n_classes−1.
        dtype : dtype
            float32 or float64.

        Returns
        -------
        array of shape (len(codes), real_dim)
        """
        return self._vectors(self.columns(codes), np.dtype(dtype))

    def real_block(self, start: int, stop: int, dtype: DTypeLike = np.float32) -> NDArray:
        """Real view of labels ``start … stop−1``; families may keep such blocks for the next call.

        Parameters
        ----------
        start, stop : int
            First label, and the one after the last.
        dtype : dtype
            float32 or float64.
        """
        return self.real_rows(np.arange(start, stop), dtype)

    def rows(self, codes: ArrayLike) -> NDArray:
        """Return the vectors of these labels, shape (len(codes), dim), float32 or complex64.

        Parameters
        ----------
        codes : array-like of int
            Codes of labels, 0 … n_classes−1.
        """
        real = self.real_rows(codes)
        if not self.is_complex:
            return real
        return real[:, : self.dim] + np.complex64(1j) * real[:, self.dim :]

    def resized(self, n_classes: int) -> Self:
        """Return the same code for another number of labels; labels present in both keep theirs.

        Parameters
        ----------
        n_classes : int
            Number of labels.
        """
        columns = extend_columns(self._columns, n_classes, capacity=self.capacity)
        if columns is not None and columns.size < n_classes:
            raise self._full(n_classes)
        return self._replace(
            n_classes=n_classes, assignment="index" if columns is None else columns
        )

    def grown(self, n_classes: int, *, spent: NDArray[np.int64] | None = None) -> Embedding:
        """Return a code for more labels in which no label moves, if there is one.

        Unlike `resized` it may be of a family that continues this one, and reuses no column of a label
        that is gone.

        Parameters
        ----------
        n_classes : int
            Number of labels.
        spent : array, optional
            Columns of labels that are gone.
        """
        if spent is None or spent.size == 0 or n_classes <= self.n_classes:
            return self.resized(n_classes)
        known = self.columns(np.arange(self.n_classes))
        first = max(int(known.max()), int(spent.max())) + 1
        new = np.arange(first, first + n_classes - self.n_classes)
        if new[-1] >= self.capacity:
            raise self._full(int(new[-1]) + 1)
        return self._replace(n_classes=n_classes, assignment=np.concatenate([known, new]))

    def taken(self, codes: NDArray[np.int64]) -> Self:
        """Return the code of some labels, in this order, each with the vector that it has.

        Parameters
        ----------
        codes : array
            The labels.
        """
        return self._replace(n_classes=codes.size, assignment=self.columns(codes))

    def _full(self, n_classes: int) -> CapacityError:
        return CapacityError(
            name=f"{type(self).__name__} with dim={self.dim}",
            n_classes=n_classes,
            capacity=int(self.capacity),
            way_out=self._way_out(n_classes),
        )

    def spec(self) -> dict[str, Any]:
        """Everything needed to make this embedding again, without its vectors."""
        values = self._state()
        if self._columns is not None:
            values["assignment"] = self._columns.tolist()
        return {"name": self.name, **values}

    def _state(self) -> dict[str, Any]:
        """Return what a model file holds: the specification, with columns as an array."""
        return {
            "n_classes": self.n_classes,
            "dim": self.dim,
            "random_state": self.random_state,
            "assignment": "index" if self._columns is None else self._columns,
            **self._extra_spec(),
        }

    @classmethod
    def _bytes_to_make(cls, values: dict[str, Any]) -> int:
        """Tables of the family, and what a decoder needs for columns that no label has."""
        dim, columns = values.get("dim"), values.get("assignment")
        tables = cls.table_bytes * dim if isinstance(dim, int) else 0
        gaps = 0
        # Without a structure only the labels' own columns are looked at.
        if cls.structure is not None and isinstance(columns, np.ndarray) and columns.size:
            gaps = int(columns.max()) + 1 - columns.size if columns.dtype.kind in "iu" else 0
        return max(tables, 0) + _COLUMN_BYTES * max(gaps, 0)

    @classmethod
    def _from_state(cls, values: dict[str, Any]) -> Self:
        # A name would be drawn again; files hold what was drawn.
        if isinstance(values["assignment"], str) and values["assignment"] != "index":
            raise LocoleError("a model file must give the columns of its labels.")
        return cls(**values)

    def _extra_spec(self) -> dict[str, Any]:
        return {}

    def _replace(self, **changes: Any) -> Self:
        kwargs = {k: v for k, v in self.spec().items() if k != "name"}
        return type(self)(**{**kwargs, **changes})

    @property
    def _fills_columns(self) -> bool:
        """Whether the labels fill columns 0 … n_classes−1, in whatever order."""
        return self.n_columns == self.n_classes

    def __repr__(self) -> str:
        shown = {"n_classes": self.n_classes, "dim": self.dim, **self._extra_spec()}
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in shown.items())})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.spec() == other.spec()

    def __hash__(self) -> int:
        return hash((self.name, self.n_classes, self.dim, self.random_state))


def nearest_dims(dim: int, valid: Iterable[int]) -> str:
    """Name the valid dims (given in rising order) around ``dim`` for an error message: "64 or 256"."""
    below = None
    for candidate in valid:
        if candidate > dim:
            return str(candidate) if below is None else f"{below} or {candidate}"
        below = candidate
    return str(below)


def _whole_number(value: Any, name: str, *, at_least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise LocoleError(f"{name} must be a whole number, not {value!r}.")
    if value < at_least:
        kind = DimensionError if name == "dim" else LocoleError
        raise kind(f"{name} must be at least {at_least}, not {value}.")
    return int(value)


def wanted_dim(n_classes: int) -> int:
    """Real outputs to aim for by default: lossless for few labels, at most 1024 for many."""
    return min(max(n_classes, 2), 1024)


def pair_rms(sum_of_squares: float, n_classes: int) -> float:
    """Root mean square over the ordered pairs of different labels."""
    return math.sqrt(sum_of_squares / (n_classes * (n_classes - 1))) if n_classes > 1 else 0.0
