"""Products of sparse rows with weights: the linear part of every prediction."""

from __future__ import annotations

import numpy as np

from locole.kernels.jit import inline, kernel
from locole.kernels.simd import WIDTH, broadcast, fma, fnma, load, prefetch, store

__all__ = ["NO_SCALES", "add_dense_product", "add_sparse_product", "subtract_outer"]


@inline
def _factor(data, indices, scales, k):
    return broadcast(data[k] * scales[indices[k]] if scales.size else data[k])


#: The scales of weights that are not multiplied by any.
NO_SCALES = np.empty(0, dtype=np.float32)

# Rows whose common weights stay in the cache, and outputs whose sums stay in registers.
_ROWS, _GROUP = 128, 8 * WIDTH
# Features between the one that is added and the one whose weights are asked for.
_AHEAD = 4


@kernel
def add_dense_product(X, rows, weights, scales, width, first, last, out):
    """``out[i] += Σ_f x_f · weights[f]`` for row ``rows[i]`` of X, SIMD across outputs.

    X : Csr; weights : (features · width,) of float32, or of half precision as uint16, or of int8 or
    pairs of four bits as uint8, to be multiplied by ``scales`` (features,), which is empty otherwise;
    out : (len(rows) · width,), width a multiple of WIDTH. Only outputs ``first … last−1`` (multiples of
    WIDTH) are touched, so threads may share the outputs among them.
    """
    indptr, indices, data = X
    whole = first + (last - first) // _GROUP * _GROUP
    for start in range(0, rows.size, _ROWS):
        stop = min(start + _ROWS, rows.size)
        for o in range(first, whole, _GROUP):
            for i in range(start, stop):
                _add_group(X, rows[i], weights, scales, width, o, out, i * width + o)
        for o in range(whole, last, WIDTH):
            for i in range(start, stop):
                a = load(out, i * width + o)
                for k in range(indptr[rows[i]], indptr[rows[i] + 1]):
                    x = _factor(data, indices, scales, k)
                    a = fma(x, load(weights, indices[k] * width + o), a)
                store(out, i * width + o, a)


@inline
def _add_group(X, row, weights, scales, width, o, out, to):
    """Add the outputs from o on of one row to ``out[to:]``."""
    indptr, indices, data = X
    a, b = load(out, to), load(out, to + WIDTH)
    c, d = load(out, to + 2 * WIDTH), load(out, to + 3 * WIDTH)
    e, f = load(out, to + 4 * WIDTH), load(out, to + 5 * WIDTH)
    g, h = load(out, to + 6 * WIDTH), load(out, to + 7 * WIDTH)
    for k in range(indptr[row], indptr[row + 1]):
        soon = indices[min(k + _AHEAD, indices.size - 1)] * width + o
        for piece in range(0, _GROUP, WIDTH):
            prefetch(weights, soon + piece)
        x, at = _factor(data, indices, scales, k), indices[k] * width + o
        a, b = fma(x, load(weights, at), a), fma(x, load(weights, at + WIDTH), b)
        c = fma(x, load(weights, at + 2 * WIDTH), c)
        d = fma(x, load(weights, at + 3 * WIDTH), d)
        e = fma(x, load(weights, at + 4 * WIDTH), e)
        f = fma(x, load(weights, at + 5 * WIDTH), f)
        g = fma(x, load(weights, at + 6 * WIDTH), g)
        h = fma(x, load(weights, at + 7 * WIDTH), h)
    store(out, to, a)
    store(out, to + WIDTH, b)
    store(out, to + 2 * WIDTH, c)
    store(out, to + 3 * WIDTH, d)
    store(out, to + 4 * WIDTH, e)
    store(out, to + 5 * WIDTH, f)
    store(out, to + 6 * WIDTH, g)
    store(out, to + 7 * WIDTH, h)


@kernel
def add_sparse_product(X, weights, out):
    """Like `add_dense_product` for all rows, with weights that are Csr too; out : (rows, outputs)."""
    indptr, indices, data = X
    w_indptr, w_indices, w_data = weights
    for i in range(out.shape[0]):
        line = out[i]
        for k in range(indptr[i], indptr[i + 1]):
            x, j = data[k], indices[k]
            for m in range(w_indptr[j], w_indptr[j + 1]):
                line[w_indices[m]] += x * w_data[m]


@kernel
def subtract_outer(X, rows, G, step, width, first, last, weights):
    """``weights[f] −= step · x_f · G[i]`` for the features f of row ``rows[i]``, in this order.

    Only outputs ``first … last−1`` (multiples of WIDTH) are touched, so threads may share the
    outputs among them. X : Csr; G : (len(rows) · width,); weights : (features · width,).
    """
    indptr, indices, data = X
    for i in range(rows.size):
        start, stop = indptr[rows[i]], indptr[rows[i] + 1]
        for k in range(start, stop):
            x, to = broadcast(data[k] * step), indices[k] * width
            if k + 1 < stop:
                following = indices[k + 1] * width
                for o in range(first, last, WIDTH):
                    prefetch(weights, following + o)
            for o in range(first, last, WIDTH):
                old = load(weights, to + o)
                store(weights, to + o, fnma(x, load(G, i * width + o), old))
