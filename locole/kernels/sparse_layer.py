"""A layer with sparse input: products, and Adamax on the rows of weights that a batch touches."""

from __future__ import annotations

import numpy as np

from locole.kernels.jit import inline, kernel
from locole.kernels.simd import (
    WIDTH,
    aligned,
    broadcast,
    fma,
    fnma,
    load,
    maximum,
    minimum,
    prefetch,
    store,
    zeros,
)

__all__ = ["adamax", "add_product", "group_by_feature", "settle_rows", "update_rows"]

# Columns of weights that are worked on before the next row: the gradients of a batch stay near.
_BLOCK = 512
# Added and taken away again, it makes zeros of numbers so small that arithmetic with them is slow.
_TINY = 1e-25


@kernel
def group_by_feature(indptr, indices, data, rows, kept, slots, features, starts, who, values):
    """Entries of some rows of X, ordered by feature; returns how many features there are.

    Feature ``features[s]`` has the entries ``starts[s] … starts[s+1]−1``: ``values`` of the rows
    ``rows[who]``. kept : which entries count, in the order of rows, or empty for all. slots :
    (n_features,) of −1, which is left as it was. starts needs room for two more than entries.
    """
    found, entry = 0, 0
    starts[0] = starts[1] = 0
    for row in rows:
        for k in range(indptr[row], indptr[row + 1]):
            if kept.size == 0 or kept[entry]:
                slot = slots[indices[k]]
                if slot < 0:
                    slot = found
                    slots[indices[k]], features[slot], starts[slot + 2] = slot, indices[k], 0
                    found += 1
                starts[slot + 2] += 1
            entry += 1
    for slot in range(found):
        starts[slot + 2] += starts[slot + 1]
    entry = 0
    for i in range(rows.size):
        for k in range(indptr[rows[i]], indptr[rows[i] + 1]):
            if kept.size == 0 or kept[entry]:
                slot = slots[indices[k]]
                to = starts[slot + 1]
                who[to], values[to] = i, data[k]
                starts[slot + 1] = to + 1
            entry += 1
    for slot in range(found):
        slots[features[slot]] = -1
    return found


@inline
def _pull(m, u, idle):
    """Momentum of idle steps, ``m · min(S/u, T/eps)``, see `locole.regressors.mlp.momentum`."""
    return m * minimum(broadcast(idle[0]) / u, broadcast(idle[1]))


@kernel
def add_product(features, starts, who, values, W, M, U, idle, width, first, last, out):
    """``out[who] += values · w`` for all entries, in their order, with weights as they are now.

    W, M, U : (n_features · width,) weights (float32, or half precision as uint16) and the moments of
    Adamax; U may have one number for each row instead. idle : (features, 4), what the rows have missed:
    S, T/eps and the factors of both moments. Only columns ``first … last−1`` (multiples of WIDTH) of
    out : (rows · width,) are filled, so threads may share the columns among them.
    """
    n, is_own = features.size, U.size == W.size
    for s in range(n):
        row, base = features[s], features[s] * width
        after = min(s + 1, n - 1)
        ahead = features[after] * width
        for o in range(first, last, WIDTH):
            # Asked for piece by piece: all at once would wait for each other.
            prefetch(W, ahead + o)
            if idle[after, 0] != 0:
                prefetch(M, ahead + o)
                if is_own:
                    prefetch(U, ahead + o)
            w = load(W, base + o)
            if idle[s, 0] != 0:
                u = load(U, base + o) if is_own else broadcast(U[row])
                w = w - _pull(load(M, base + o), u, idle[s])
            for k in range(starts[s], starts[s + 1]):
                to = who[k] * width + o
                store(out, to, fma(broadcast(values[k]), w, load(out, to)))


@kernel
def update_rows(features, starts, who, values, G, W, M, U, idle, betas, eps, rate, width, lo, hi):
    """Take the step of the rows ``features[lo:hi]``: one read and one write of each number.

    The gradient of a row is ``Σ values · G[who]``. With β1, β2 = betas: the idle steps first, then
    m += (1 − β1)(g − m), u = max(β2 u, |g| + eps), w −= rate · m/u. If U has one number for each row,
    |g| is the root mean square of the row.
    """
    is_own = U.size == W.size
    slope = aligned(width, G)
    if not is_own:
        for s in range(lo, hi):
            _gradient(starts, who, values, s, G, width, 0, width, slope)
            u = max(betas[1] * (idle[s, 3] * U[features[s]]), _norm(slope, width) + eps)
            after = features[min(s + 1, hi - 1)]
            _step(W, M, U, features[s], after, u, width, 0, width, idle[s], slope, betas, eps, rate)
            U[features[s]] = u
        return
    for first in range(0, width, _BLOCK):
        last = min(first + _BLOCK, width)
        for s in range(lo, hi):
            _gradient(starts, who, values, s, G, width, first, last, slope)
            row, after = features[s], features[min(s + 1, hi - 1)]
            _step(W, M, U, row, after, eps, width, first, last, idle[s], slope, betas, eps, rate)


@inline
def _gradient(starts, who, values, s, G, width, first, last, slope):
    """``slope = Σ values · G[who]`` of one feature, for columns first … last−1."""
    for o in range(first, last, WIDTH):
        g = zeros(slope)
        for k in range(starts[s], starts[s + 1]):
            g = fma(broadcast(values[k]), load(G, who[k] * width + o), g)
        store(slope, o, g)


@kernel
def _norm(slope, width):
    """Root of the mean square of a row's gradient."""
    total = slope.dtype.type(0)
    for o in range(width):
        total += slope[o] * slope[o]
    return np.sqrt(total / slope.dtype.type(width))


@kernel
def _step(W, M, U, row, after, u_row, width, first, last, idle, slope, betas, eps, rate):
    """Step of one row, with second moments of its own or, if U has one for each row, ``u_row``.

    The row ``after`` it is asked for meanwhile.
    """
    is_own = U.size == W.size
    one = slope.dtype.type(1)
    part, fade, pace = broadcast(one - betas[0]), broadcast(betas[1]), broadcast(rate)
    keep1, keep2 = broadcast(idle[2]), broadcast(idle[3])
    floor, tiny, zero = broadcast(eps), broadcast(slope.dtype.type(_TINY)), zeros(slope)
    for o in range(first, last, WIDTH):
        at, ahead = row * width + o, after * width + o
        prefetch(W, ahead)
        prefetch(M, ahead)
        if is_own:
            prefetch(U, ahead)
        w, m, g = load(W, at), load(M, at), load(slope, o)
        u = load(U, at) if is_own else broadcast(U[row])
        if idle[0] != 0:
            w = w - _pull(m, u, idle)
        m = keep1 * m
        m = fma(part, g - m, m) + tiny - tiny
        if is_own:
            u = maximum(fade * (keep2 * u), maximum(g, zero - g) + floor)
            store(U, at, u)
        else:
            u = broadcast(u_row)
        store(M, at, m)
        store(W, at, fnma(pace, m / u, w))


@kernel
def settle_rows(rows, W, M, U, idle, width):
    """Add the momentum of idle steps to the weights of these rows, which then have missed nothing."""
    is_own = U.size == W.size
    for s in range(rows.size):
        for at in range(rows[s] * width, (rows[s] + 1) * width, WIDTH):
            u = load(U, at) if is_own else broadcast(U[rows[s]])
            m = load(M, at)
            store(W, at, load(W, at) - _pull(m, u, idle[s]))
            store(M, at, broadcast(idle[s, 2]) * m)
            if is_own:
                store(U, at, broadcast(idle[s, 3]) * u)
        if not is_own:
            U[rows[s]] *= idle[s, 3]


@kernel
def adamax(w, m, u, g, betas, eps, rate):
    """Take one step of Adamax on ordinary arrays, in place."""
    part = w.dtype.type(1) - betas[0]
    for i in range(w.size):
        m[i] += part * (g[i] - m[i])
        u[i] = max(betas[1] * u[i], abs(g[i]) + eps)
        w[i] -= rate * (m[i] / u[i])
