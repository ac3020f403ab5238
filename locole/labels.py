"""Labels and their codes: code k is the k-th label known."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from locole.exceptions import LocoleError

__all__ = ["as_type_of", "check_labels", "codes_of", "extended"]

_KINDS = {"b": "booleans", "i": "whole numbers", "u": "whole numbers", "f": "decimal numbers"}
# Whole numbers up to here are exact as floats.
_MAX_FLOAT = 2**53


def check_labels(y: Any) -> None:
    """Refuse y with several labels for a row, with labels of two types, or that are not exact.

    Examples
    --------
    >>> check_labels(["a", 7])
    Traceback (most recent call last):
        ...
    locole.exceptions.LocoleError: y has both texts and other labels: give labels of one type.
    """
    is_table = getattr(y, "ndim", 1) > 1 and y.shape[1] > 1
    is_list = isinstance(y, list | tuple) or str(getattr(y, "dtype", "")) == "object"
    types = set(map(type, y)) if is_list and not is_table else set()
    several = (list, tuple, set, frozenset, dict, np.ndarray)
    if sp.issparse(y) or is_table or any(issubclass(kind, several) for kind in types):
        raise LocoleError(
            "y has several labels for a row, which is not supported yet: keep one label for each row, "
            "or give each pair of row and label as a row of its own."
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


def codes_of(y: NDArray, classes: NDArray) -> NDArray[np.int64]:
    """Place of each label in ``classes`` (in any order), −1 where it is not there.

    Examples
    --------
    >>> import numpy as np
    >>> codes_of(np.array(["b", "x", "a"]), np.array(["b", "c", "a"]))
    array([ 0, -1,  2])
    """
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
    known, given = _kind(classes), _kind(y)
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


def _kind(labels: NDArray) -> str:
    is_text = labels.dtype.kind == "U" or (labels.size and isinstance(labels.flat[0], str))
    return "texts" if is_text else _KINDS.get(labels.dtype.kind, "objects")
