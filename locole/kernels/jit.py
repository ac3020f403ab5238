"""The one way a kernel is compiled."""

from __future__ import annotations

from typing import Any

from numba import njit

__all__ = ["inline", "kernel"]

# error_model="numpy" drops the division checks that would stop vectorisation. No fastmath: sums keep
# their order, so the same input gives the same bits.
_OPTIONS: dict[str, Any] = {"nogil": True, "cache": True, "error_model": "numpy"}

kernel = njit(**_OPTIONS)
inline = njit(inline="always", **_OPTIONS)
