"""Dual coordinate ascent for squared loss with elastic-net penalty, BLOCK outputs at a time."""

from __future__ import annotations

from typing import Any, NamedTuple

from locole.kernels.four import fma4, load4, prefetch4, store4
from locole.kernels.jit import inline, kernel
from locole.kernels.shrink import shrunk
from locole.kernels.simd import (
    WIDTH,
    broadcast,
    fma,
    fnma,
    load,
    maximum,
    minimum,
    store,
    zeros,
)

__all__ = ["BLOCK", "DualSamples", "DualSums", "Duals", "dual_pass", "fill_duals", "fill_weights"]

#: Outputs solved side by side: four vectors, held in registers.
BLOCK = 4 * WIDTH


class DualSamples(NamedTuple):
    """Numbers of each sample, see `dual_pass`, and the line of the table that is its target."""

    weights: Any
    slopes: Any
    sizes: Any
    codes: Any


class Duals(NamedTuple):
    """Dual variables α (samples · BLOCK,) and V = Xᵀα (features · BLOCK,)."""

    alpha: Any
    V: Any


class DualSums(NamedTuple):
    """What a pass has met: gaps and gains of each output (BLOCK,), gaps of each sample or none."""

    squares: Any
    gains: Any
    parts: Any


@inline
def _shrunk(v, l1):
    """Soft threshold: v − clip(v, −l1, l1)."""
    return v - minimum(maximum(v, broadcast(-l1)), broadcast(l1))


@inline
def _product(start, stop, indices, data, V, l1):
    """``S_{l1}(V)ᵀ x`` for one sample; without a threshold the loads feed the sums directly."""
    a = b = c = d = zeros(V)
    if l1 == 0:
        for k in range(start, stop):
            x, at = broadcast(data[k]), indices[k] * BLOCK
            a, b, c, d = fma4(x, V, at, (a, b, c, d))
    else:
        for k in range(start, stop):
            x, at = broadcast(data[k]), indices[k] * BLOCK
            a = fma(x, _shrunk(load(V, at), l1), a)
            b = fma(x, _shrunk(load(V, at + WIDTH), l1), b)
            c = fma(x, _shrunk(load(V, at + 2 * WIDTH), l1), c)
            d = fma(x, _shrunk(load(V, at + 3 * WIDTH), l1), d)
    return a, b, c, d


@inline
def _residual(target, old, product, slope, scale):
    """``y − slope·α − scale·product``: zero at the optimum."""
    return fnma(broadcast(scale), product, fnma(broadcast(slope), old, target))


@inline
def _total(v, room):
    """Sum of a vector's numbers, by way of memory."""
    store(room, 0, v)
    total = room[0]
    for k in range(1, WIDTH):
        total += room[k]
    return total


@kernel
def dual_pass(X, order, samples, table, l1, scale, duals, sums):
    """One pass over the samples in the given order, for BLOCK outputs.

    With v = Xᵀα and w = S_{l1}(v)·scale, scale = 1/(2 l2), sample i has the residual
    r = y_i − slopes[i]·α_i − w·x_i and moves by r·sizes[i], where slopes = 1/(2 weights) and
    sizes = 1/(slopes + ‖x_i‖²·scale). The duality gap is Σ_i weights[i] r_i² (the Fenchel–Young gaps of
    the squared loss; those of the penalty vanish because w is the gradient at v), so the residuals
    met on the way, weighted and summed into ``squares`` (BLOCK numbers), are a running estimate of it.
    A move raises the dual objective by ½ r²·sizes[i] (or more, if l1 > 0); ``gains`` are their sums.
    ``parts[i]`` is what sample i adds to the gap over all outputs; an empty array asks for none.

    X : Csr; samples : DualSamples; table : (labels · BLOCK,); duals : Duals; sums : DualSums.
    """
    indptr, indices, data = X
    weights, slopes, sizes, codes = samples
    alpha, V = duals
    squares, gains, parts = sums
    e = f = g = h = zeros(V)
    t0 = t1 = t2 = t3 = zeros(V)
    for n in range(order.size):
        i = order[n]
        start, stop = indptr[i], indptr[i + 1]
        p, q, r, s = _product(start, stop, indices, data, V, l1)
        at, size, slope = i * BLOCK, broadcast(sizes[i]), slopes[i]
        t, u, v, w = load4(table, codes[i] * BLOCK)
        a, b, c, d = load4(alpha, at)
        p, q = _residual(t, a, p, slope, scale), _residual(u, b, q, slope, scale)
        r, s = _residual(v, c, r, slope, scale), _residual(w, d, s, slope, scale)
        weight = broadcast(weights[i])
        e, f = fma(p * p, weight, e), fma(q * q, weight, f)
        g, h = fma(r * r, weight, g), fma(s * s, weight, h)
        t0, t1 = fma(p * p, size, t0), fma(q * q, size, t1)
        t2, t3 = fma(r * r, size, t2), fma(s * s, size, t3)
        if parts.size > 0:
            # `squares` is written at the end: until then it is room for the sum.
            parts[i] = weights[i] * _total((p * p + q * q) + (r * r + s * s), squares)
        p, q, r, s = p * size, q * size, r * size, s * size
        store4(alpha, at, a + p, b + q, c + r, d + s)
        # While this sample's features are updated, those of the next are on their way.
        following = order[min(n + 1, order.size - 1)]
        prefetch4(alpha, following * BLOCK)
        prefetch4(table, codes[following] * BLOCK)
        ahead, end = indptr[following], indptr[following + 1]
        for at in range(start, stop):
            if ahead < end:
                prefetch4(V, indices[ahead] * BLOCK)
                ahead += 1
            x, to = broadcast(data[at]), indices[at] * BLOCK
            a, b, c, d = load4(V, to)
            store4(V, to, fma(x, p, a), fma(x, q, b), fma(x, r, c), fma(x, s, d))
    store4(squares, 0, e, f, g, h)
    store4(gains, 0, t0, t1, t2, t3)


@kernel
def fill_weights(V, rank, l1, scale, first, width, out):
    """``out[j, first : first + width] = S_{l1}(V[rank[j]])·scale``."""
    for j in range(rank.size):
        at = rank[j] * BLOCK
        line = out[j]
        for k in range(width):
            v = V[at + k]
            line[first + k] = shrunk(v, l1) * scale


@kernel
def fill_duals(weights, rank, l1, scale, first, width, V):
    """Invert `fill_weights`; where a weight is zero, so is V (any value within ±l1 would do)."""
    V[:] = 0
    for j in range(rank.size):
        at = rank[j] * BLOCK
        line = weights[j]
        for k in range(width):
            w = line[first + k]
            if w != 0:
                V[at + k] = w / scale + (l1 if w > 0 else -l1)
