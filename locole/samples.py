"""Rows: with labels and weights to learn from, and without to be scored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_sample_weight, _num_samples, validate_data

from locole.dense_rows import DenseRows, PairedRows, dense_view, plain_view, sparse_view
from locole.exceptions import LocoleError

__all__ = [
    "LARGEST",
    "Rows",
    "Samples",
    "check_dense",
    "check_scale",
    "checked_rows",
    "checked_weight",
    "last_rows",
    "spare_rows",
    "split_rows",
    "take",
    "tidy",
]

T = TypeVar("T")

# A row of 10^8 such numbers still has a squared length that fits into float32.
LARGEST = 1e15
# Dense rows that are looked at in one go.
_SOME_ROWS = 4_096


class Samples(NamedTuple):
    """Rows to learn from, the codes of each row's labels, and how much each row counts.

    Codes are 0 … n_classes−1; labels without a row are allowed. Without weights all rows count 1.

    Rows that have one label each, ``codes[i]``, need no ``starts``. Otherwise row i has the labels
    ``codes[starts[i] : starts[i + 1]]``, rising and different, and may have none. `owners` is the row of
    each code in both cases.

    Examples
    --------
    >>> samples = Samples(np.eye(3), np.array([0, 1, 1]), 2, np.array([1.0, 0.0, 2.0]))
    >>> samples.positive().codes
    array([0, 1])
    >>> samples.total_weight
    3.0
    >>> several = Samples(np.eye(3), np.array([1, 0, 1]), 2, starts=np.array([0, 1, 1, 3]))
    >>> several.owners
    array([0, 2, 2])
    """

    X: Any
    codes: NDArray[np.int64]
    n_classes: int
    weight: NDArray | None = None
    starts: NDArray[np.int64] | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.codes.size if self.starts is None else self.starts.size - 1

    @property
    def n_labels(self) -> NDArray[np.int64]:
        """Number of labels of each row."""
        return np.ones(self.n_rows, dtype=np.int64) if self.starts is None else np.diff(self.starts)

    @property
    def label_counts(self) -> NDArray[np.int64]:
        """Number of rows of each label."""
        return np.bincount(self.codes, minlength=self.n_classes)

    @property
    def owners(self) -> NDArray[np.int64]:
        """Row that each of ``codes`` is a label of."""
        rows = np.arange(self.n_rows)
        return rows if self.starts is None else np.repeat(rows, self.n_labels)

    @property
    def n_positive(self) -> int:
        """Number of rows with a positive weight."""
        return self.n_rows if self.weight is None else int(np.count_nonzero(self.weight))

    @property
    def total_weight(self) -> float:
        """Sum of the weights, or the number of rows."""
        return float(self.n_rows if self.weight is None else self.weight.sum())

    def has(
        self, codes: NDArray[np.int64], rows: NDArray[np.int64] | None = None
    ) -> NDArray[np.bool_]:
        """Whether row i, or ``rows[i]``, has each of the labels ``codes[i]``; shape as ``codes``.

        Examples
        --------
        >>> several = Samples(np.eye(2), np.array([1, 0, 1]), 2, starts=np.array([0, 1, 3]))
        >>> several.has(np.array([[0, 1], [0, 1]]))
        array([[False,  True],
               [ True,  True]])
        """
        rows = np.arange(self.n_rows) if rows is None else rows
        if self.starts is None:
            return codes == self.codes[rows, None]
        if self.codes.size == 0:
            return np.zeros(codes.shape, dtype=bool)
        # Pairs of row and label, numbered so that they rise.
        known = self.owners * self.n_classes + self.codes
        asked = rows[:, None] * self.n_classes + codes
        place = np.searchsorted(known, asked).clip(max=known.size - 1)
        return known[place] == asked

    @property
    def csr(self) -> sp.csr_array:
        """The rows as a CSR array; of paired rows the sparse ones."""
        return sparse_view(self.X)

    @property
    def dense(self) -> DenseRows:
        """The rows as dense ones; of paired rows those."""
        return dense_view(self.X)

    @property
    def plain(self) -> Any:
        """The rows as they are; of paired rows the sparse ones."""
        return plain_view(self.X)

    def take(self, rows: NDArray[np.int64]) -> Samples:
        """Some of the rows."""
        weight = None if self.weight is None else self.weight[rows]
        some = self._replace(X=take(self.X, rows), weight=weight)
        if self.starts is None:
            return some._replace(codes=self.codes[rows])
        first, counts = self.starts[rows], self.n_labels[rows]
        starts = np.append(0, np.cumsum(counts))
        places = np.arange(starts[-1]) + np.repeat(first - starts[:-1], counts)
        return some._replace(codes=self.codes[places], starts=starts)

    def positive(self) -> Samples:
        """Rows with a positive weight."""
        return self if self.weight is None else self.take(np.flatnonzero(self.weight))

    def labelled(self) -> Samples:
        """Rows with a label."""
        return self if self.starts is None else self.take(np.flatnonzero(self.n_labels))

    def single(self) -> Samples:
        """Every label of every row as a row of its own; rows that have one label each as they are."""
        if self.starts is None:
            return self
        weight = None if self.weight is None else self.weight[self.owners]
        return self._replace(X=take(self.X, self.owners), weight=weight, starts=None)

    def split(self, n_validation: int, *, seed: Sequence[int]) -> tuple[Samples, Samples]:
        """Rows to learn from, in their order, and validation rows, in random order.

        Validation rows are the last of each label: data often comes in the order of time or of its
        sources, and new rows are most like the last ones. Rows with several labels are drawn at random.
        """
        train, validation = _split(self, n_validation, seed)
        return self.take(train), self.take(validation)

    def split_hiding(
        self, n_validation: int, *, n_hidden: int, seed: Sequence[int]
    ) -> tuple[Samples, Samples, Samples]:
        """As `split`, with ``n_hidden`` validation rows or more whose label no training row has.

        If chance has not left so many, labels are drawn and all their rows taken out of the training
        rows. Those that are not needed are in the third part only, beside the validation rows.

        Examples
        --------
        >>> samples = Samples(np.eye(8), np.arange(8) // 2, 4)
        >>> train, validation, later = samples.split_hiding(2, n_hidden=1, seed=[0])
        >>> np.setdiff1d(validation.codes, train.codes).size
        1
        >>> train.n_rows, validation.n_rows, later.n_rows
        (5, 2, 3)
        """
        train, validation = self.split(n_validation, seed=seed)
        is_new = ~np.isin(validation.codes, train.codes)
        if np.unique(validation.owners[is_new]).size >= n_hidden:
            return train, validation, validation
        rng = np.random.default_rng([*seed, 1])
        is_hidden = np.zeros(self.n_rows, dtype=bool)
        hidden = _hidden_labels(self, n_hidden, 2 * n_validation, rng)
        is_hidden[self.owners[np.isin(self.codes, hidden)]] = True
        others, taken = np.flatnonzero(~is_hidden), rng.permutation(np.flatnonzero(is_hidden))
        stay, go = _split(self.take(others), max(1, n_validation - n_hidden), seed)
        wanted = np.append(taken[:n_hidden], others[go])
        later = np.append(wanted, taken[n_hidden:])
        return self.take(others[stay]), self.take(wanted), self.take(later)


def _hidden_labels(
    samples: Samples, n_hidden: int, most: int, rng: np.random.Generator
) -> list[int]:
    """Draw labels of ``n_hidden`` rows or more together, and ``most`` at most; two labels stay."""
    counts = np.bincount(samples.codes, minlength=samples.n_classes)
    order = rng.permutation(np.flatnonzero(counts))[2:]
    hidden: list[int] = []
    n_rows = 0
    for label in order:
        if n_rows >= n_hidden:
            break
        if n_rows + counts[label] <= most:
            hidden.append(int(label))
            n_rows += counts[label]
    # All are frequent: one has to do.
    return hidden or order[np.argsort(counts[order], kind="stable")[:1]].tolist()


def _split(
    samples: Samples, n_validation: int, seed: Sequence[int]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows to learn from, in their order, and validation rows, in random order."""
    rng, n_rows = np.random.default_rng(seed), samples.n_rows
    if np.array_equal(samples.owners, np.arange(n_rows)):
        validation = rng.permutation(last_rows(samples.codes, n_validation, rng=rng))
        return np.delete(np.arange(n_rows), validation), validation
    train, validation = split_rows(n_rows, n_validation, seed=rng)
    return np.sort(train), validation


def split_rows(
    n_rows: int, n_validation: int, *, seed: Sequence[int] | np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw validation rows; return the other rows and these, both in random order.

    Who splits the same rows for another purpose adds a number to the seed, so that rows which choose a
    penalty do not also choose weights.

    Examples
    --------
    >>> train, validation = split_rows(10, 3, seed=[0])
    >>> train.size, validation.size, np.intersect1d(train, validation).size
    (7, 3, 0)
    """
    order = np.random.default_rng(seed).permutation(n_rows)
    return order[n_validation:], order[:n_validation]


def last_rows(
    codes: NDArray[np.int64], n_rows: int, *, rng: np.random.Generator
) -> NDArray[np.int64]:
    """The last rows of each label, of every label the same share; chance decides about fractions.

    Examples
    --------
    >>> last_rows(np.array([0, 0, 0, 0, 1, 1, 1, 1]), 4, rng=np.random.default_rng(0))
    array([2, 3, 6, 7])
    """
    order = np.argsort(codes, kind="stable")
    counts = np.bincount(codes)
    # How many rows of the label come later, as a share of its rows.
    later = np.repeat(np.cumsum(counts), counts) - 1 - np.arange(codes.size)
    share = (later + rng.random(codes.size)) / np.repeat(counts, counts)
    return np.sort(order[np.argsort(share, kind="stable")[:n_rows]])


def spare_rows(
    codes: NDArray[np.int64], n_validation: int, *, seed: Sequence[int] | np.random.Generator
) -> NDArray[np.int64]:
    """Draw validation rows, sorted; fewer than asked for if a label would be left without rows.

    Examples
    --------
    >>> spare_rows(np.array([0, 0, 1, 2, 2]), 9, seed=[0]).size
    2
    """
    order, _ = split_rows(codes.size, 0, seed=seed)
    # The first of each label in this order stays.
    stays = np.unique(codes[order], return_index=True)[1]
    spare = np.delete(order, stays)
    # From the end: near the start, labels with few rows have lost theirs.
    return np.sort(spare[max(0, spare.size - n_validation) :])


class Rows:
    """A block of rows to be scored; what several scorers need of it is made once.

    Parameters
    ----------
    X : array, sparse matrix, or whatever a regressor takes
        The rows.

    Examples
    --------
    >>> rows = Rows(np.array([[0.0, 2.0], [0.0, 0.0]]))
    >>> rows.csr.nnz, rows.is_empty
    (1, array([False,  True]))
    """

    def __init__(self, X: Any) -> None:
        self.X = X
        self._kept: dict[tuple[int, str], Any] = {}

    def __len__(self) -> int:
        return int(_num_samples(self.X))

    @cached_property
    def csr(self) -> sp.csr_array:
        """The rows as a CSR array; of paired rows the sparse ones."""
        return sparse_view(self.X)

    @cached_property
    def dense(self) -> NDArray[np.float32]:
        """The rows as a dense array; of paired rows the dense ones."""
        return dense_view(self.X)[:]

    @property
    def plain(self) -> Any:
        """The rows as they are; of paired rows the sparse ones."""
        return plain_view(self.X)

    @cached_property
    def is_empty(self) -> NDArray[np.bool_]:
        """Which rows have no entry."""
        return np.diff(self.csr.indptr) == 0

    def once(self, owner: object, make: Callable[[], T], what: str = "") -> T:
        """Return what ``make`` makes, which is called once for each owner and thing.

        The owner must not change as long as the rows are in use.
        """
        key = id(owner), what
        if key not in self._kept:
            # The owner is kept as well: its id must not be given to another object.
            self._kept[key] = owner, make()
        return self._kept[key][1]


def take(X: Any, rows: Any) -> Any:
    """Some rows of an array, a sparse matrix, a data frame or a list; all of them are X itself."""
    if isinstance(rows, slice) and rows == slice(0, _num_samples(X)):
        return X
    if isinstance(X, DenseRows | PairedRows):
        return X[rows] if isinstance(rows, slice) else X.take(rows)
    return X[rows] if sp.issparse(X) else _safe_indexing(X, rows)


def checked_rows(estimator: Any, X: Any, *, dtype: Any, reset: bool = True) -> Any:
    """Rows as scikit-learn checks them, of a size that can be computed with, and tidy."""
    if reset or not _need_no_change(X, estimator, dtype):
        X = validate_data(estimator, X, accept_sparse="csr", dtype=dtype, reset=reset)
    check_scale(X, alone=reset)
    return tidy(X)


def _need_no_change(X: Any, estimator: Any, dtypes: Any) -> bool:
    """Whether scikit-learn would give these rows back; it takes a tenth of a millisecond to do so."""
    return (
        sp.issparse(X)
        and X.format == "csr"
        and X.ndim == 2
        and X.dtype in (dtypes if isinstance(dtypes, list) else [dtypes])
        and X.shape[0] > 0
        and X.shape[1] == estimator.n_features_in_
        and not hasattr(estimator, "feature_names_in_")
        and bool(np.isfinite(X.data).all())
    )


def checked_weight(sample_weight: Any, X: Any) -> NDArray:
    """Weight of each row, none negative and at least one positive."""
    weight = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
    if not weight.any():
        raise LocoleError("all sample weights are zero: give some samples a positive weight.")
    return weight


def check_scale(X: Any, *, alone: bool = True) -> None:
    """Refuse numbers whose squares, added up over a row, single precision cannot hold.

    Rows that stand ``alone`` must not all be tiny either.
    """
    values = X.data if sp.issparse(X) else X
    largest = float(max(values.max(), -values.min())) if values.size else 0.0
    if largest > LARGEST or (alone and 0 < largest < 1 / LARGEST):
        raise LocoleError(
            f"the largest number in X is {largest:.3g}, which is beyond what can be squared in single "
            "precision: scale the features first, for example by sklearn.preprocessing.MaxAbsScaler."
        )


def check_dense(rows: DenseRows) -> None:
    """Refuse dense rows with what is no number or cannot be squared, looking at some at a time."""
    for start in range(0, len(rows), _SOME_ROWS):
        X = rows[start : start + _SOME_ROWS]
        if X.size and not max(X.max(), -X.min()) <= LARGEST:  # also if one is not a number
            raise LocoleError(
                "the dense rows have NaN, infinity or numbers too large to be squared in single "
                "precision: look at what made them."
            )


def tidy(X: Any) -> Any:
    """Sparse rows sorted and without duplicate entries; the caller's arrays stay as they are.

    Most of scipy's methods tidy in place where they need it, and arrays are shared by all matrices that
    are made of one another without a copy.
    """
    if sp.issparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X
