"""Four vectors that lie side by side in memory: as many as a kernel holds in registers."""

from __future__ import annotations

from locole.kernels.jit import inline
from locole.kernels.simd import WIDTH, fma, load, prefetch, store

__all__ = ["fma4", "load4", "prefetch4", "store4"]


@inline
def load4(x, at):
    """Read ``x[at : at + 4 · WIDTH]``."""
    return (
        load(x, at),
        load(x, at + WIDTH),
        load(x, at + 2 * WIDTH),
        load(x, at + 3 * WIDTH),
    )


@inline
def store4(x, at, a, b, c, d):
    """Write ``x[at : at + 4 · WIDTH]``."""
    store(x, at, a)
    store(x, at + WIDTH, b)
    store(x, at + 2 * WIDTH, c)
    store(x, at + 3 * WIDTH, d)


@inline
def prefetch4(x, at):
    """Ask for the cache lines of ``x[at : at + 4 · WIDTH]``."""
    prefetch(x, at)
    prefetch(x, at + WIDTH)
    prefetch(x, at + 2 * WIDTH)
    prefetch(x, at + 3 * WIDTH)


@inline
def fma4(factor, x, at, sums):
    """``sums + factor · x[at : at + 4 · WIDTH]``, all of one rounding."""
    a, b, c, d = sums
    return (
        fma(factor, load(x, at), a),
        fma(factor, load(x, at + WIDTH), b),
        fma(factor, load(x, at + 2 * WIDTH), c),
        fma(factor, load(x, at + 3 * WIDTH), d),
    )
