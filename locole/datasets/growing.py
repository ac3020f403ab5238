"""Arrays that grow into the memory that is left."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike, NDArray

from locole.exceptions import LocoleError
from locole.parallel.memory import available_bytes

__all__ = ["Growing", "require_room"]

_GROWTH = 1.25


def require_room(n_bytes: float, name: str) -> None:
    """Raise an error instead of letting the system kill the process for want of memory."""
    left = available_bytes()
    if left is not None and n_bytes > left:
        raise _too_large(name)


def _too_large(name: str) -> LocoleError:
    return LocoleError(
        f"{name} does not fit into memory: read it in batches (iter_libsvm, iter_texts, iter_examples)."
    )


class Growing:
    """A one-dimensional array with room for more at its end.

    Growing is left to the C library, which moves large arrays without copying them, so that nearly no
    memory is needed beside the result.

    Examples
    --------
    >>> import numpy as np
    >>> numbers = Growing(np.int64, "example")
    >>> numbers.extend(np.arange(3))
    >>> numbers.extend(np.arange(2))
    >>> numbers.finish()
    array([0, 1, 2, 0, 1])
    """

    def __init__(self, dtype: DTypeLike, name: str) -> None:
        self._array: NDArray = np.empty(0, dtype=dtype)
        self._name = name
        self.size = 0

    def extend(self, values: NDArray) -> None:
        """Append values."""
        stop = self.size + values.size
        if stop > self._array.size:
            self._resize(max(stop, int(_GROWTH * self._array.size)))
        self._array[self.size : stop] = values
        self.size = stop

    @property
    def values(self) -> NDArray:
        """View of what is there; it must be gone before the array grows."""
        return self._array[: self.size]

    def drop_first(self, count: int) -> None:
        """Forget the first values and move the others to the front."""
        self._array[: self.size - count] = self._array[count : self.size].copy()
        self.size -= count

    def finish(self) -> NDArray:
        """Hand out the array, which then belongs to the caller."""
        self._resize(self.size)
        array, self._array, self.size = self._array, np.empty(0, dtype=self._array.dtype), 0
        return array

    def _resize(self, size: int) -> None:
        require_room((size - self._array.size) * self._array.itemsize, self._name)
        try:
            self._array.resize(size, refcheck=False)
        except MemoryError as error:
            raise _too_large(self._name) from error
