"""How much memory is left, and arrays that grow into it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike, NDArray

from locole.exceptions import LocoleError

__all__ = ["Growing", "available_bytes", "require_room"]

_GROWTH = 1.25
_MEMINFO = Path("/proc/meminfo")
_CGROUP = Path("/sys/fs/cgroup")


def available_bytes() -> int | None:
    """Bytes that can be used before the system runs out of memory; None where it does not tell.

    Examples
    --------
    >>> left = available_bytes()
    >>> left is None or left > 0
    True
    """
    known = [left for left in (_left_of_machine(), _left_of_container()) if left is not None]
    return min(known, default=None)


def _left_of_machine() -> int | None:
    try:
        lines = _MEMINFO.read_text().splitlines()
        found = next(line for line in lines if line.startswith("MemAvailable:"))
        return int(found.split()[1]) * 1024
    except (OSError, StopIteration, ValueError, IndexError):
        return None


def _left_of_container() -> int | None:
    """What the limit of a control group leaves; pages of files can be given back, so they count."""
    try:
        limit = int((_CGROUP / "memory.max").read_text())
        used = int((_CGROUP / "memory.current").read_text())
        stat = dict(line.split() for line in (_CGROUP / "memory.stat").read_text().splitlines())
        return max(0, limit - used + int(stat["inactive_file"]))
    except (OSError, ValueError, KeyError):
        return None


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
