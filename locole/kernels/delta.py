"""Delta-coded rows, read from their first entries on."""

from __future__ import annotations

from locole.kernels.jit import kernel

__all__ = ["last_column"]


@kernel
def last_column(starts, steps):
    """Largest column of all entries, each of which is its step behind the one before; −1 without any."""
    last = -1
    for row in range(starts.size - 1):
        column = 0
        for p in range(starts[row], starts[row + 1]):
            column += steps[p]
            last = max(last, column)
    return last
