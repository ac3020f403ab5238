"""The trust boundary: what must hold of arrays from a file before anything computes with them.

Kernels trust their arrays, and whoever writes a file can compute its hashes. Numbers are only compared
here: differences of hostile ones wrap around.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from locole.exceptions import ModelFileError

__all__ = [
    "Budget",
    "check_csr",
    "check_indices",
    "check_like",
    "check_permutation",
    "check_pointers",
]

#: Types of numbers that places in other arrays have.
_PLACES = ("int32", "int64")
# More than any matrix has; scipy cannot count further than 2^63.
_MOST_COLUMNS = 1 << 48
# What a file may ask for, however small it is; and a larger one as a multiple of its size.
_ROOM_BYTES, _ROOM_FACTOR = 1 << 30, 64


def check_pointers(
    pointers: NDArray,
    what: str,
    *,
    end: int,
    size: int | None = None,
    dtypes: Sequence[str] = _PLACES,
    rise: bool = False,
) -> None:
    """Check where lists begin, one behind the other: from 0 to ``end``, never falling.

    Parameters
    ----------
    pointers : array of shape (lists + 1,)
        List i is at places ``pointers[i]`` to ``pointers[i+1]``.
    what : str
        What the lists are, for the error.
    end : int
        Length of all lists together.
    size : int, optional
        Number of pointers; at least one if it is not given.
    dtypes : sequence of str
        Types that the pointers may have.
    rise : bool
        Whether no list may be empty.

    Examples
    --------
    >>> check_pointers(np.array([0, 2, 2, 5]), "rows", end=5)
    >>> check_pointers(np.array([0, 2**62 + 2**61, -(2**62), 5]), "rows", end=5)
    Traceback (most recent call last):
    locole.exceptions.ModelFileError: its rows do not rise from 0 to the end
    """
    if pointers.ndim != 1 or pointers.dtype.name not in dtypes or not pointers.size:
        raise ModelFileError(f"its {what} have no beginnings")
    if size is not None and pointers.size != size:
        raise ModelFileError(f"it has {pointers.size - 1} {what} instead of {size - 1}")
    before, after = pointers[:-1], pointers[1:]
    rises = (before < after).all() if rise else (before <= after).all()
    if pointers[0] != 0 or pointers[-1] != end or not rises:
        raise ModelFileError(f"its {what} do not rise from 0 to the end")


def check_indices(
    indices: NDArray,
    what: str,
    *,
    below: int,
    dtypes: Sequence[str] = _PLACES,
    rising_within: NDArray | None = None,
) -> None:
    """Check places in another array: whole numbers from 0 to ``below`` − 1, in a list.

    With ``rising_within``, which are checked pointers, they must also rise within each list.

    Examples
    --------
    >>> check_indices(np.array([1, 4, 0]), "columns", below=5, rising_within=np.array([0, 2, 3]))
    >>> check_indices(np.array([-1, 4]), "columns", below=5)
    Traceback (most recent call last):
    locole.exceptions.ModelFileError: its columns lie outside 0 … 4
    """
    if indices.ndim != 1 or indices.dtype.name not in dtypes:
        raise ModelFileError(f"its {what} are no whole numbers of the right type")
    # One pass for both ends: negative numbers are the largest without a sign.
    if indices.size and int(indices.view(f"u{indices.itemsize}").max()) >= below:
        raise ModelFileError(f"its {what} lie outside 0 … {below - 1}")
    if rising_within is not None and indices.size:
        rises = indices[:-1] < indices[1:]
        rises[rising_within[(rising_within > 0) & (rising_within < indices.size)] - 1] = True
        if not rises.all():
            raise ModelFileError(f"its {what} are not sorted")


def check_permutation(numbers: NDArray, what: str, *, size: int) -> None:
    """Check that each of 0 … ``size`` − 1 is there once.

    Examples
    --------
    >>> check_permutation(np.array([2, 0, 1]), "paths", size=3)
    """
    check_indices(numbers, what, below=size, dtypes=("int64",))
    if numbers.size != size or not (np.bincount(numbers, minlength=size) == 1).all():
        raise ModelFileError(f"its {what} do not occur once each")


def check_like(found: Any, wanted: Any, what: str) -> None:
    """Check that a value has the type, keys and shape of another one, whatever its numbers are.

    Examples
    --------
    >>> check_like({"loss": 0.5}, {"loss": 0.0}, "state")
    >>> check_like({"loss": "low"}, {"loss": 0.0}, "state")
    Traceback (most recent call last):
    locole.exceptions.ModelFileError: its state.loss is a str
    """
    if type(found) is not type(wanted):
        raise ModelFileError(f"its {what} is a {type(found).__name__}")
    if isinstance(wanted, dict):
        if set(found) != set(wanted):
            raise ModelFileError(f"its {what} has other entries than it should")
        for name, value in wanted.items():
            check_like(found[name], value, f"{what}.{name}")
    elif hasattr(wanted, "shape") and (found.shape, found.dtype) != (wanted.shape, wanted.dtype):
        raise ModelFileError(f"its {what} has another type or shape than it should")


def check_csr(data: NDArray, indices: NDArray, indptr: NDArray, shape: Any) -> None:
    """Check all that compiled loops over a CSR matrix rely on."""
    is_shape = isinstance(shape, list) and [type(n) for n in shape] == [int, int]
    if (
        not is_shape
        or not 0 <= min(shape) <= max(shape) < _MOST_COLUMNS
        or data.ndim != 1
        or data.size != indices.size
    ):
        raise ModelFileError("it has an invalid sparse matrix")
    check_pointers(indptr, "rows of a sparse matrix", end=data.size, size=shape[0] + 1)
    check_indices(indices, "columns of a sparse matrix", below=shape[1])


class Budget:
    """Bytes that the parts of a file may still take: some, or many times what the file has itself.

    A name in a manifest can stand for gigabytes, be it a code over a large field or an array that a
    thousand parts share.
    """

    def __init__(self, file_bytes: int) -> None:
        self.file_bytes, self.left = file_bytes, max(_ROOM_BYTES, _ROOM_FACTOR * file_bytes)

    def spend(self, n_bytes: int, what: str) -> None:
        """Take bytes off; refuse the file when there are not so many left."""
        self.left -= n_bytes
        if self.left < 0:
            raise ModelFileError(
                f"its {what} would take {n_bytes / 1e9:.1f} GB or more with the parts before, too much "
                f"for the {self.file_bytes:,} bytes of its arrays"
            )
