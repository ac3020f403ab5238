"""Labels and their codes: code k is the k-th label known."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from locole.exceptions import LocoleError, ModelFileError

__all__ = [
    "LabelFeatures",
    "LabelSets",
    "as_type_of",
    "check_labels",
    "codes_of",
    "extended",
    "kind_of_labels",
    "label_sets",
    "many_labels_are_fine",
    "plain_labels",
    "weights_from_arrays",
    "weights_to_arrays",
]

_KINDS = {"b": "booleans", "i": "whole numbers", "u": "whole numbers", "f": "decimal numbers"}
# What may hold the labels of a row; a text is one label.
_COLLECTIONS = (list, tuple, set, frozenset, np.ndarray)
# Whole numbers up to here are exact as floats.
_MAX_FLOAT = 2**53


class LabelSets(NamedTuple):
    """Any number of labels for each row: row i has ``labels[codes[starts[i] : starts[i + 1]]]``."""

    labels: NDArray
    codes: NDArray[np.int64]
    starts: NDArray[np.int64]
    form: Literal["dense", "sparse", "lists"]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.starts.size - 1

    def canonical(
        self, codes: NDArray[np.int64], n_classes: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
        """Codes of each row rising and different, and where rows begin, if ``labels`` have these codes.

        Without beginnings every row has one label.
        """
        ones = np.ones(self.codes.size, dtype=np.int8)
        shape = (self.n_rows, n_classes)
        member = sp.csr_array((ones, codes[self.codes], self.starts.copy()), shape=shape)
        member.sum_duplicates()
        starts = member.indptr.astype(np.int64)
        is_single = bool((np.diff(starts) == 1).all())
        return member.indices.astype(np.int64), None if is_single else starts

    def kept(self, stays: NDArray[np.bool_]) -> LabelSets:
        """Some of the rows."""
        counts = np.diff(self.starts)
        starts = np.append(0, np.cumsum(counts[stays])).astype(np.int64)
        return self._replace(codes=self.codes[np.repeat(stays, counts)], starts=starts)


class LabelFeatures(NamedTuple):
    """What labels are called, in numbers; for `locole.LocoleClassifier`.

    Examples
    --------
    >>> named = LabelFeatures(np.array(["cat", "dog"]), sp.csr_array(np.eye(2)))
    >>> named.aligned(np.array(["bird", "dog"])).toarray()
    array([[0., 0.],
           [0., 1.]], dtype=float32)
    """

    labels: NDArray
    """Labels, with or without training rows."""
    rows: Any
    """Terms of each label's text, sparse, shape (labels, terms)."""
    terms: Any = None
    """What each feature of the rows says in terms of label texts, shape (features, terms); None if these
    terms are the features themselves."""
    vectors: Any = None
    """Dense vectors of the texts, shape (labels, numbers), for rows that have such vectors too;
    zeros for a label without."""

    def check(self, n_features: int) -> None:
        """Refuse arrays that do not fit together.

        Parameters
        ----------
        n_features : int
            Number of columns of X.
        """
        n_terms = n_features if self.terms is None else self.terms.shape[1]
        fits = len(self.labels) == self.rows.shape[0] and self.rows.shape[1] == n_terms
        if not fits or (self.terms is not None and self.terms.shape[0] != n_features):
            raise LocoleError(
                f"label_features must have a row for each of its labels and columns for {n_terms} "
                f"terms, and its terms a row for each of {n_features} features."
            )
        if self.vectors is not None and len(self.vectors) != len(self.labels):
            raise LocoleError("label_features must have a vector for each of its labels, or none.")

    def aligned(self, classes: NDArray) -> sp.csr_array:
        """Rows in the order of labels; labels without a text have an empty one.

        Parameters
        ----------
        classes : array
            Labels, in the order that is wanted.
        """
        codes = self._places(classes)
        rows = sp.csr_array(self.rows, dtype=np.float32)
        none = sp.csr_array((1, rows.shape[1]), dtype=np.float32)
        # Code −1 is the last row.
        return sp.csr_array(sp.vstack([rows, none], format="csr"))[codes]

    def aligned_vectors(self, classes: NDArray) -> NDArray[np.float32]:
        """Dense vectors in the order of labels; zeros for labels without a text.

        Parameters
        ----------
        classes : array
            Labels, in the order that is wanted.
        """
        vectors = np.asarray(self.vectors, dtype=np.float32)
        return np.pad(vectors, [(0, 1), (0, 0)])[self._places(classes)]

    def _places(self, classes: NDArray) -> NDArray[np.int64]:
        """Place of each label, or −1."""
        return codes_of(as_type_of(np.asarray(self.labels), classes), np.asarray(self.labels))


def label_sets(y: Any) -> LabelSets | None:
    """Labels of rows that may have any number of them; None if y is one label for each row.

    Parameters
    ----------
    y : sparse matrix, array of two dimensions, or sequence
        An indicator, with a column for each label and ones at the labels of a row; or a collection of
        labels (list, tuple, set, array) for each row.

    Examples
    --------
    >>> label_sets([["b", "a"], [], ["b"]]).codes
    array([0, 1, 0])
    >>> label_sets(np.array([[0, 1], [1, 1]])).starts
    array([0, 1, 3])
    >>> label_sets(["b", "a"]) is None
    True
    """
    if sp.issparse(y) or (getattr(y, "ndim", 1) == 2 and y.shape[1] > 1):
        return _from_indicator(y)
    is_list = isinstance(y, list | tuple) or str(getattr(y, "dtype", "")) == "object"
    if is_list and any(isinstance(row, _COLLECTIONS) for row in y):
        return _from_collections(y)
    return None


def _from_indicator(y: Any) -> LabelSets:
    table = y if sp.issparse(y) else np.asarray(y)
    Y = sp.csr_array(table if table.dtype.kind in "biuf" else (1, 1))
    if table.dtype.kind not in "biuf" or not np.isin(Y.data, (0, 1)).all():
        raise LocoleError(
            "y is a table, but no indicator of several labels: give ones and zeros, with a column for "
            "each label, or a list of labels for each row."
        )
    if not Y.has_canonical_format or not Y.data.all():
        Y = Y.copy()
        Y.sum_duplicates()
        Y.eliminate_zeros()
    form: Any = "sparse" if sp.issparse(y) else "dense"
    codes, starts = Y.indices.astype(np.int64), Y.indptr.astype(np.int64)
    return LabelSets(np.arange(Y.shape[1]), codes, starts, form)


def _from_collections(y: Any) -> LabelSets:
    rows = [list(row) if isinstance(row, _COLLECTIONS) else row for row in y]
    others = [row for row in rows if not isinstance(row, list)]
    if others:
        todo = "give a row without labels an empty list"
        if not _is_missing(others[0]):
            todo = "put it in a list of its own"
        raise LocoleError(f"y has lists of labels, but also {others[0]!r:.40} alone: {todo}.")
    numbers: dict[Any, int] = {}
    try:
        codes = [numbers.setdefault(label, len(numbers)) for row in rows for label in row]
    except TypeError:
        raise LocoleError("y has lists within lists: give each row one list of labels.") from None
    if any(map(_is_missing, numbers)):
        number = next(i for i, row in enumerate(rows) if any(map(_is_missing, row)))
        raise LocoleError(f"y has a missing label, None or NaN, in row {number}: leave it out.")
    labels = list(numbers)
    check_labels(labels)
    starts = np.append(0, np.cumsum([len(row) for row in rows]))
    return LabelSets(np.asarray(labels), np.array(codes, dtype=np.int64), starts, "lists")


@contextmanager
def many_labels_are_fine() -> Iterator[None]:
    """Silence scikit-learn where it finds more labels than half of the rows: a regression to it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The number of unique classes is greater")
        yield


def check_labels(y: Any) -> None:
    """Refuse y with labels of two types, or that are not exact.

    Examples
    --------
    >>> check_labels(["a", 7])
    Traceback (most recent call last):
        ...
    locole.exceptions.LocoleError: y has both texts and other labels: give labels of one type.
    """
    if label_sets(y) is not None:
        return
    is_list = isinstance(y, list | tuple) or str(getattr(y, "dtype", "")) == "object"
    missing = [_is_missing(label) for label in y] if is_list else getattr(y, "isna", list)()
    if np.any(missing):
        row = np.argmax(np.ravel(missing))
        raise LocoleError(f"y has a missing label, None or NaN, in row {row}: leave the row out.")
    types = set(map(type, y)) if is_list else set()
    odd = [kind for kind in types if not issubclass(kind, str | int | float | np.generic)]
    if odd:
        raise LocoleError(
            f"y has labels of type {odd[0].__name__}: give texts or numbers, such as str(label)."
        )
    if len({issubclass(kind, str) for kind in types}) > 1:
        raise LocoleError("y has both texts and other labels: give labels of one type.")
    numbers = np.asarray(y) if types & {float, int} else y
    is_float = getattr(getattr(numbers, "dtype", None), "kind", "") == "f"
    if is_float and (np.abs(np.asarray(numbers)) >= _MAX_FLOAT).any():
        raise LocoleError(
            "y has labels of 2^53 and more as floats, which cannot tell neighbours apart: give "
            "whole numbers of one integer type."
        )


def _is_missing(label: Any) -> bool:
    """Whether a label is None, not a number, or what pandas has in place of a value."""
    is_nan = isinstance(label, float | np.floating) and bool(np.isnan(label))
    return label is None or is_nan or type(label).__name__ in ("NAType", "NaTType")


def plain_labels(y: Any) -> Any:
    """Whole numbers and bools of pandas' own types, or in an array of objects, as a list.

    scikit-learn would make floats of the ones, which are not exact, and refuse the others.

    Examples
    --------
    >>> plain_labels(np.array([2**60, 2**60 + 1], dtype=object))
    [1152921504606846976, 1152921504606846977]
    """
    kind = str(getattr(y, "dtype", ""))
    is_nullable = kind.startswith(("Int", "UInt", "boolean")) and not y.isna().any()
    if is_nullable or (kind == "object" and set(map(type, y)) in ({int}, {bool})):
        return y.tolist()
    return y


def codes_of(y: NDArray, classes: NDArray) -> NDArray[np.int64]:
    """Place of each label in ``classes`` (in any order), −1 where it is not there.

    Examples
    --------
    >>> import numpy as np
    >>> codes_of(np.array(["b", "x", "a"]), np.array(["b", "c", "a"]))
    array([ 0, -1,  2])
    """
    if classes.size == 0:
        return np.full(np.shape(y), -1, dtype=np.int64)
    order = np.argsort(classes, kind="stable")
    place = np.searchsorted(classes[order], y).clip(max=classes.size - 1)
    codes = order[place].astype(np.int64)
    return np.where(classes[codes] == y, codes, -1)


def extended(classes: NDArray, y: NDArray) -> NDArray:
    """Known labels followed by the new ones of ``y``, those sorted.

    Examples
    --------
    >>> import numpy as np
    >>> extended(np.array([5, 2]), np.array([9, 2, 7, 9]))
    array([5, 2, 7, 9])
    """
    new = np.unique(y[codes_of(y, classes) < 0])
    return np.concatenate([classes, new]) if new.size else classes


def as_type_of(classes: NDArray, y: NDArray) -> NDArray:
    """``y``, if it can stand beside ``classes`` without a change of any label.

    Examples
    --------
    >>> import numpy as np
    >>> as_type_of(np.array([1, 2]), np.array([7], np.uint64)).dtype
    dtype('int64')
    """
    known, given = kind_of_labels(classes), kind_of_labels(y)
    if known != given:
        raise LocoleError(
            f"the known labels are {known} but y has {given}, such as {y[:1].tolist()[0]!r:.40}: "
            "give labels of one type."
        )
    if {classes.dtype.kind, y.dtype.kind} == {"i", "u"} and y.size:
        # numpy would make floats of both.
        limits = np.iinfo(classes.dtype)
        if not limits.min <= int(y.min()) <= int(y.max()) <= limits.max:
            raise LocoleError(
                f"the known labels are of type {classes.dtype}, which cannot hold all of y: give "
                "labels of one type."
            )
        return y.astype(classes.dtype)
    return y


def weights_to_arrays(weights: dict[Any, float]) -> dict[str, NDArray]:
    """Weights of labels as model files hold them, whose dicts have words for keys.

    Examples
    --------
    >>> weights_to_arrays({3: 0.5, 7: 2})
    {'labels': array([3, 7]), 'weights': array([0.5, 2. ])}
    """
    labels = list(weights)
    is_mixed = len({isinstance(label, str) for label in labels}) > 1  # which no file can hold
    dtype = object if is_mixed else None
    return {
        "labels": np.array(labels, dtype=dtype),
        "weights": np.array([*weights.values()], dtype=np.float64),
    }


def weights_from_arrays(arrays: dict[str, Any]) -> dict[Any, float]:
    """Weights of labels from a file, which may say anything."""
    labels: Any = arrays.get("labels")
    weights: Any = arrays.get("weights")
    fits = (
        isinstance(labels, np.ndarray)
        and isinstance(weights, np.ndarray)
        and labels.ndim == weights.ndim == 1
        and labels.size == weights.size
        and weights.dtype == np.float64
    )
    if not fits:
        raise ModelFileError("its parameter class_weight must be labels and a weight for each")
    return dict(zip(labels.tolist(), weights.tolist(), strict=True))


def kind_of_labels(labels: NDArray) -> str:
    """What labels are: texts, whole numbers and so on."""
    is_text = labels.dtype.kind == "U" or (labels.size and isinstance(labels.flat[0], str))
    return "texts" if is_text else _KINDS.get(labels.dtype.kind, "objects")
