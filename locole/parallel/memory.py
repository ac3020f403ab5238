"""How much memory is left, and giving back what is not needed any more."""

from __future__ import annotations

import ctypes
from pathlib import Path

__all__ = ["available_bytes", "release_free_memory"]

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


def release_free_memory() -> None:
    """Give memory that was freed back to the system, where glibc would keep it for later."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


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
