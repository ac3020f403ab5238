"""Labels and their codes: code k is the k-th label known."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["codes_of", "extended"]


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
