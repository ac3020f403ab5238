"""The one way a kernel is compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit

from locole.kernels.cache import KernelCache

__all__ = ["inline", "kernel"]

# error_model="numpy" drops the division checks that would stop vectorisation. No fastmath: sums keep
# their order, so the same input gives the same bits.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}

inline = njit(inline="always", **_OPTIONS)


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function when it is first called, or take it from the disk."""
    compiled = njit(**_OPTIONS)(function)
    compiled._cache = KernelCache(function)
    return compiled
