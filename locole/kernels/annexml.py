"""Loops of AnnexML: parts of rows, linear maps of sparse rows, nearest points, votes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from locole.kernels.csr import place_of
from locole.kernels.four import fma4, store4
from locole.kernels.jit import inline, kernel
from locole.kernels.product import add_dense_product
from locole.kernels.simd import WIDTH, broadcast, fma, fnma, load, prefetch, store, zeros
from locole.kernels.topk import push_rows

__all__ = [
    "LANES",
    "AdaGrad",
    "Balance",
    "descend",
    "fill_embeddings",
    "fill_votes",
    "find_nearest",
    "learn_parts",
]

#: Points that `find_nearest` compares with a query at once.
LANES = 4 * WIDTH


class AdaGrad(NamedTuple):
    """Vectors of the features (features · width,), and the sums of squares of their gradients.

    A feature's vector has one sum, of the squared lengths of its gradients, so its steps are along the
    gradient and at most ``rate`` long. width is a multiple of WIDTH.
    """

    weights: Any
    squares: Any
    rate: Any
    width: Any


class Balance(NamedTuple):
    """Mean scores of the rows of each label, and the shares of the parts.

    means : (labels, n_parts), of about the last ``memory`` visits; seen : (labels,), how many these
    were; loads : (n_parts,), shares of the last rows, of which each counts ``share``; penalty : for
    parts that get more than their share.
    """

    means: Any
    seen: Any
    loads: Any
    memory: Any
    share: Any
    penalty: Any


@kernel
def learn_parts(X, codes, order, ada, balance, scores):
    """One pass of AdaGrad over the rows; returns how often a row is in the part that it should be in.

    The part of a row is that of its largest score ``weights[f]·x``. It should be in the part that its
    neighbours score highest, less a penalty for parts that get more than their share: rows of one
    label are neighbours. X : Csr; ada : AdaGrad; balance : Balance; scores : (width,), work.
    """
    means, seen, loads, memory, share, penalty = balance
    weights, _, _, width = ada
    n_parts, no_scales, hits = loads.size, scores[:0], 0
    for r in range(order.size):
        row, mine = order[r], means[codes[order[r]]]
        scores[:] = 0
        add_dense_product(X, order[r : r + 1], weights, no_scales, width, 0, width, scores)
        seen[codes[row]] = min(seen[codes[row]] + 1, memory)
        best = own = 0
        highest = -np.inf
        for k in range(n_parts):
            mine[k] += (scores[k] - mine[k]) / seen[codes[row]]
            score = mine[k] - penalty * (loads[k] * n_parts - 1)
            if score > highest:
                highest, best = score, k
            if scores[k] > scores[own]:
                own = k
        for k in range(n_parts):
            loads[k] -= share * loads[k]
        loads[own] += share
        hits += own == best
        size = _softmax_slope(scores, n_parts, best, scores[own])
        _step(X, row, scores, 0, size, ada)
    return hits / max(order.size, 1)


@inline
def _softmax_slope(scores, n, target, top):
    """Replace scores by the gradient of the cross-entropy; returns its squared length."""
    mass = scores[0] - scores[0]
    for k in range(n):
        scores[k] = np.exp(scores[k] - top)
        mass += scores[k]
    size = mass - mass
    for k in range(n):
        scores[k] = scores[k] / mass - (k == target)
        size += scores[k] * scores[k]
    return size


@inline
def _step(X, row, G, at, size, ada):
    """AdaGrad on ``weights[f]`` for the features f of a row; ``G[at : at + width]`` has length² size."""
    indptr, indices, data = X
    weights, squares, rate, width = ada
    start, stop = indptr[row], indptr[row + 1]
    for p in range(start, stop):
        f, x = indices[p], data[p]
        squares[f] += x * x * size
        if squares[f] <= 0:
            continue
        if p + 1 < stop:
            for o in range(0, width, WIDTH):
                prefetch(weights, indices[p + 1] * width + o)
        step = broadcast(rate * x / np.sqrt(squares[f]))
        for o in range(0, width, WIDTH):
            to = f * width + o
            store(weights, to, fnma(step, load(G, at + o), load(weights, to)))


@kernel
def descend(X, rows, G, ada):
    """AdaGrad steps of the rows in turn; the gradient by the point of ``rows[i]`` is ``G[i]``.

    X : Csr; G : (len(rows) · width,); ada : AdaGrad.
    """
    width = ada.width
    for i in range(rows.size):
        at = i * width
        size = G[at] - G[at]
        for k in range(width):
            size += G[at + k] * G[at + k]
        _step(X, rows[i], G, at, size, ada)


@kernel
def fill_embeddings(X, rows, features, start, stop, maps, width, out):
    """``out[i] = Σ_f x_f maps[f]`` scaled to unit length, over the features that the part knows.

    X : Csr; these are ``features[start:stop]``, sorted; maps : (all features · width,) of half-precision
    numbers as uint16; out : (len(rows) · width,). Rows without such features stay zero.
    """
    indptr, indices, data = X
    for i in range(rows.size):
        at = i * width
        for o in range(0, width, WIDTH):
            store(out, at + o, zeros(out))
        for p in range(indptr[rows[i]], indptr[rows[i] + 1]):
            place = place_of(features, start, stop, indices[p])
            if place >= 0:
                x = broadcast(data[p])
                for o in range(0, width, WIDTH):
                    store(out, at + o, fma(x, load(maps, place * width + o), load(out, at + o)))
        size = out[at] - out[at]
        for k in range(width):
            size += out[at + k] * out[at + k]
        scale = 1 / np.sqrt(size) if size > 0 else size
        for k in range(width):
            out[at + k] *= scale


@kernel
def find_nearest(points, n_points, queries, room, no_labels, best_cosines, best_places):
    """Merge the points nearest to each query into its list; equals go to the smaller place.

    points : (groups, dim, LANES), point p being ``points[p // LANES, :, p % LANES]``, of which the
    first ``n_points`` exist; queries : (rows, ≥ dim); both of unit length; room : (1, LANES), work.
    """
    dim = points.shape[1]
    flat, scores = points.reshape(-1), room[0]
    for g in range(points.shape[0]):
        there = room[:, : min(LANES, n_points - g * LANES)]
        for i in range(queries.shape[0]):
            a = b = c = d = zeros(scores)
            query = queries[i]
            for j in range(dim):
                x, at = broadcast(query[j]), (g * dim + j) * LANES
                a, b, c, d = fma4(x, flat, at, (a, b, c, d))
            store4(scores, 0, a, b, c, d)
            push_rows(there, g * LANES, no_labels, best_cosines[i : i + 1], best_places[i : i + 1])


@kernel
def fill_votes(codes, weights, best_codes, best_scores):
    """Add up the weights of each label and list the best; ties go to the smaller code.

    codes, weights : (rows, votes), code −1 being no vote; used up as work. best_codes, best_scores :
    (rows, k), k at most the number of labels; labels without a vote follow with score 0.
    """
    for i in range(codes.shape[0]):
        mine, sums = codes[i], weights[i]
        n = 0
        for v in range(mine.size):
            if mine[v] < 0:
                continue
            at = 0
            while at < n and mine[at] != mine[v]:
                at += 1
            if at == n:
                mine[n], sums[n] = mine[v], sums[v]
                n += 1
            else:
                sums[at] += sums[v]
        listed = _sort_votes(mine, sums, n, best_codes[i], best_scores[i])
        code = 0
        for k in range(listed, best_codes.shape[1]):
            while (mine[:n] == code).any():
                code += 1
            best_codes[i, k], best_scores[i, k] = code, 0
            code += 1


@inline
def _sort_votes(codes, sums, n, best_codes, best_scores):
    """List the best of n labels; returns how many there were for the list."""
    listed = 0
    for v in range(n):
        at = listed
        while at > 0 and (
            sums[v] > best_scores[at - 1]
            or (sums[v] == best_scores[at - 1] and codes[v] < best_codes[at - 1])
        ):
            if at < best_codes.size:
                best_codes[at], best_scores[at] = best_codes[at - 1], best_scores[at - 1]
            at -= 1
        if at < best_codes.size:
            best_codes[at], best_scores[at] = codes[v], sums[v]
            listed = min(listed + 1, best_codes.size)
    return listed
