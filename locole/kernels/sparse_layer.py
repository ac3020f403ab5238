"""A layer with sparse input: products, and Adamax on the rows of weights that a batch touches."""

from __future__ import annotations

from typing import Any, NamedTuple

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

__all__ = [
    "TINY",
    "Adamax",
    "ByFeature",
    "Moves",
    "Step",
    "adamax",
    "change_places",
    "group_by_feature",
    "meet_next",
    "settle_rows",
    "take_missed",
    "take_rows",
    "update_rows",
]

#: Added and taken away again, it makes zeros of numbers so small that arithmetic with them is slow.
TINY = 1e-25


class ByFeature(NamedTuple):
    """Entries of some rows: those of ``features[s]`` are ``starts[s] … starts[s+1]−1``."""

    features: Any
    starts: Any
    who: Any
    """Number of each entry's row."""
    values: Any


class Adamax(NamedTuple):
    """Weights, first moments at their places, second moments of each weight or of each row."""

    W: Any
    M: Any
    U: Any


class Moves(NamedTuple):
    """For each feature of a batch where its first moments are, and what it misses.

    before, after : places, −1 where the moments were zero and where nobody will ask for them. idle,
    coming : (features, 4), what was missed before the step and what will be after it: S, R/eps and the
    factors of both moments.
    """

    before: Any
    after: Any
    idle: Any
    coming: Any


class Step(NamedTuple):
    """β1 and β2, eps, and the learning rate of one step."""

    betas: Any
    eps: Any
    rate: Any


@kernel
def take_rows(X, later, rows, kept, out, following):
    """Copy some rows of X to ``out``, which are Csr.

    later : a number for each entry of X, which becomes ``following`` of that entry; or empty. kept :
    which entries count, in the order of rows, or empty for all.
    """
    indptr, indices, data = X
    bounds, columns, values = out
    to, entry = 0, 0
    for i in range(rows.size):
        bounds[i] = to
        for k in range(indptr[rows[i]], indptr[rows[i] + 1]):
            if kept.size == 0 or kept[entry]:
                columns[to], values[to] = indices[k], data[k]
                if later.size > 0:
                    following[to] = later[k]
                to += 1
            entry += 1
    bounds[rows.size] = to


@kernel
def group_by_feature(X, slots, firsts, out):
    """Order the entries of Csr rows by feature; returns how many features there are.

    out : ByFeature, whose ``starts`` needs room for two more than entries; ``firsts[s]`` is the number
    of the first entry of its feature s. slots : (n_features,) of −1, which is left as it was.
    """
    bounds, columns, values = X
    features, starts, who, ordered = out
    found = 0
    starts[0] = starts[1] = 0
    for k in range(bounds[-1]):
        slot = slots[columns[k]]
        if slot < 0:
            slot = found
            slots[columns[k]], starts[slot + 2] = slot, 0
            features[slot], firsts[slot] = columns[k], k
            found += 1
        starts[slot + 2] += 1
    for slot in range(found):
        starts[slot + 2] += starts[slot + 1]
    for i in range(bounds.size - 1):
        for k in range(bounds[i], bounds[i + 1]):
            slot = slots[columns[k]]
            to = starts[slot + 1]
            who[to], ordered[to] = i, values[k]
            starts[slot + 1] = to + 1
    for slot in range(found):
        slots[features[slot]] = -1
    return found


@kernel
def meet_next(indptr, indices, order, bounds, step, upcoming, later):
    """For each entry of X the next batch that has its feature.

    Batch b has the rows ``order[bounds[b]:bounds[b+1]]`` and the number ``step + b``. upcoming :
    (n_features,) the first batch after these that has the feature, which is replaced by the first of
    these that does. later : (entries of X,), which is filled, or empty.
    """
    for b in range(bounds.size - 2, -1, -1):
        rows = order[bounds[b] : bounds[b + 1]]
        if later.size > 0:
            for row in rows:
                for k in range(indptr[row], indptr[row + 1]):
                    later[k] = upcoming[indices[k]]
        for row in rows:
            for k in range(indptr[row], indptr[row + 1]):
                upcoming[indices[k]] = step + b


@kernel
def change_places(features, stays, places, free, n_free, before, after):
    """Give places to the features that are to have one, and take them from the others.

    places : (n_features,) the place of each, −1 for none. free : places that nobody has, the first
    ``n_free`` of it, from whose end they are taken. The places of ``features`` until now are written to
    ``before``, those from now on to ``after``; no place has two owners meanwhile. Returns n_free.
    """
    for s in range(features.size):
        before[s] = after[s] = places[features[s]]
        if stays[s] and before[s] < 0:
            n_free -= 1
            after[s] = free[n_free]
        elif not stays[s]:
            after[s] = -1
        places[features[s]] = after[s]
    for s in range(features.size):
        if before[s] >= 0 and after[s] < 0:
            free[n_free] = before[s]
            n_free += 1
    return n_free


@inline
def _pull(m, u, idle):
    """Momentum of idle steps, ``m · min(S/u, R/eps)``, see `locole.regressors.mlp.momentum`."""
    return m * minimum(broadcast(idle[0]) / u, broadcast(idle[1]))


@kernel
def take_missed(late, entries, state, moves, width, first, last, out):
    """``out[who] −= values · (what w has missed)`` for the entries of the features ``features[late]``.

    entries : ByFeature; state : Adamax; moves : Moves. Only outputs ``first … last−1`` are touched.
    """
    features, starts, who, values = entries
    _, M, U = state
    places, _, idle, _ = moves
    is_own = U.size == M.size
    for s in late:
        for o in range(first, last, WIDTH):
            u = load(U, features[s] * width + o) if is_own else broadcast(U[features[s]])
            missed = _pull(load(M, places[s] * width + o), u, idle[s])
            for k in range(starts[s], starts[s + 1]):
                to = who[k] * width + o
                store(out, to, fnma(broadcast(values[k]), missed, load(out, to)))


@kernel
def update_rows(batch, G, state, moves, step, width, lo, hi):
    """Take the step of the rows ``features[lo:hi]``: one read and one write of each number.

    The gradient of a row is ``Σ values · G[who]``. With β1, β2 = betas: the idle steps before it
    first, then m += (1 − β1)(g − m), u = max(β2 u, |g| + eps), w −= rate · m/u, then the idle steps
    that are coming. If U has one number for each row, |g| is the root mean square of the row.
    batch : ByFeature; state : Adamax; moves : Moves; step : Step.
    """
    features, starts, who, values = batch
    W, M, U = state
    before, after, idle, coming = moves
    betas, eps, rate = step
    is_own = U.size == W.size
    one, tiny = broadcast(eps / eps), broadcast(G.dtype.type(TINY))
    part, fade, pace = one - broadcast(betas[0]), broadcast(betas[1]), broadcast(rate)
    floor, zero = broadcast(eps), zeros(G)
    for s in range(lo, hi):
        row, entries = features[s] * width, (starts[s], starts[s + 1])
        old, new = before[s] * width, after[s] * width
        next_s = min(s + 1, hi - 1)
        next_row, next_old = features[next_s] * width, before[next_s] * width
        keep1, keep2 = broadcast(idle[s, 2]), broadcast(idle[s, 3])
        S, R = broadcast(coming[s, 0]), broadcast(coming[s, 1])
        later1, later2 = broadcast(coming[s, 2]), broadcast(coming[s, 3])
        u_before = u_after = eps
        if not is_own:
            u_before = U[features[s]]
            norm = _norm(entries, who, values, G, width)
            u_after = max(betas[1] * (idle[s, 3] * u_before), norm + eps)
            U[features[s]] = coming[s, 3] * u_after
        for o in range(0, width, WIDTH):
            # The next row is asked for meanwhile, piece by piece.
            prefetch(W, next_row + o)
            if is_own:
                prefetch(U, next_row + o)
            if next_old >= 0:
                prefetch(M, next_old + o)
            g = _gradient(entries, who, values, G, width, o)
            w, m = load(W, row + o), zero
            u = load(U, row + o) if is_own else broadcast(u_before)
            if old >= 0:
                m = load(M, old + o)
                if idle[s, 0] != 0:
                    w = w - _pull(m, u, idle[s])
                m = keep1 * m
            m = fma(part, g - m, m)
            if is_own:
                u = maximum(fade * (keep2 * u), maximum(g, zero - g) + floor)
                store(U, row + o, later2 * u)
            else:
                u = broadcast(u_after)
            inverse = one / u
            store(W, row + o, fnma(m, fma(pace, inverse, minimum(S * inverse, R)), w))
            if new >= 0:
                store(M, new + o, later1 * m + tiny - tiny)


@inline
def _gradient(entries, who, values, G, width, o):
    """``Σ values · G[who]`` of one feature, in the columns from o."""
    g = zeros(G)
    for k in range(entries[0], entries[1]):
        g = fma(broadcast(values[k]), load(G, who[k] * width + o), g)
    return g


@kernel
def _norm(entries, who, values, G, width):
    """Root of the mean square of a feature's gradient."""
    squares, total = aligned(WIDTH, G), G.dtype.type(0)
    for o in range(0, width, WIDTH):
        g = _gradient(entries, who, values, G, width, o)
        store(squares, 0, fma(g, g, load(squares, 0)) if o > 0 else g * g)
    for i in range(WIDTH):
        total += squares[i]
    return np.sqrt(total / G.dtype.type(width))


@kernel
def settle_rows(rows, places, state, idle, width):
    """Add the momentum of idle steps to the weights of these rows, which then have missed nothing."""
    W, M, U = state
    is_own = U.size == W.size
    for s in range(rows.size):
        for o in range(0, width, WIDTH):
            at, m_at = rows[s] * width + o, places[s] * width + o
            u = load(U, at) if is_own else broadcast(U[rows[s]])
            m = load(M, m_at)
            store(W, at, load(W, at) - _pull(m, u, idle[s]))
            store(M, m_at, broadcast(idle[s, 2]) * m)
            if is_own:
                store(U, at, broadcast(idle[s, 3]) * u)
        if not is_own:
            U[rows[s]] *= idle[s, 3]


@kernel
def adamax(w, m, u, g, betas, eps, rate):
    """Take one step of Adamax on ordinary arrays, in place."""
    part, tiny = w.dtype.type(1) - betas[0], w.dtype.type(TINY)
    for i in range(w.size):
        m[i] = m[i] + part * (g[i] - m[i]) + tiny - tiny
        u[i] = max(betas[1] * u[i], abs(g[i]) + eps)
        w[i] -= rate * (m[i] / u[i])
