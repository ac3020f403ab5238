"""Dual coordinate ascent for squared loss with elastic-net penalty, BLOCK outputs at a time."""

from __future__ import annotations

from locole.kernels.jit import inline, kernel
from locole.kernels.simd import WIDTH, broadcast, load, maximum, minimum, store, zeros

__all__ = ["BLOCK", "dual_pass"]

#: Outputs solved side by side: four vectors, held in registers.
BLOCK = 4 * WIDTH


@inline
def _shrunk(v, l1):
    """Soft threshold: v − clip(v, −l1, l1)."""
    return v - minimum(maximum(v, broadcast(-l1)), broadcast(l1))


@inline
def _load_shrunk(V, at, l1):
    return (
        _shrunk(load(V, at), l1),
        _shrunk(load(V, at + WIDTH), l1),
        _shrunk(load(V, at + 2 * WIDTH), l1),
        _shrunk(load(V, at + 3 * WIDTH), l1),
    )


@inline
def _step(table, code, alpha, at, product, slope, size):
    """Move one vector of duals to its maximum; return the move."""
    old = load(alpha, at)
    move = (load(table, code) - broadcast(slope) * old - product) * broadcast(size)
    store(alpha, at, old + move)
    return move


@kernel
def dual_pass(indptr, indices, data, order, slopes, sizes, table, codes, alpha, V, l1, scale):
    """One pass over the samples in the given order, for BLOCK outputs.

    With v = Xᵀα and w = S_{l1}(v)·scale, scale = 1/(2 l2), the dual of sample i moves by
    ``(y_i − slopes[i]·α_i − w·x_i)·sizes[i]``; slopes = 1/(2 weight), sizes = 1/(slope + ‖x_i‖²·scale).

    table : (labels · BLOCK,), codes : (samples,), alpha : (samples · BLOCK,), V : (features · BLOCK,).
    """
    for i in order:
        a = b = c = d = zeros(V)
        for k in range(indptr[i], indptr[i + 1]):
            x = broadcast(data[k])
            p, q, r, s = _load_shrunk(V, indices[k] * BLOCK, l1)
            a, b, c, d = a + x * p, b + x * q, c + x * r, d + x * s
        f, at, code = broadcast(scale), i * BLOCK, codes[i] * BLOCK
        a = _step(table, code, alpha, at, a * f, slopes[i], sizes[i])
        b = _step(table, code + WIDTH, alpha, at + WIDTH, b * f, slopes[i], sizes[i])
        c = _step(table, code + 2 * WIDTH, alpha, at + 2 * WIDTH, c * f, slopes[i], sizes[i])
        d = _step(table, code + 3 * WIDTH, alpha, at + 3 * WIDTH, d * f, slopes[i], sizes[i])
        for k in range(indptr[i], indptr[i + 1]):
            x, at = broadcast(data[k]), indices[k] * BLOCK
            store(V, at, load(V, at) + x * a)
            store(V, at + WIDTH, load(V, at + WIDTH) + x * b)
            store(V, at + 2 * WIDTH, load(V, at + 2 * WIDTH) + x * c)
            store(V, at + 3 * WIDTH, load(V, at + 3 * WIDTH) + x * d)
