"""Products of sparse rows with weights: the linear part of every prediction."""

from __future__ import annotations

from locole.kernels.jit import inline, kernel
from locole.kernels.simd import WIDTH, broadcast, fma, fnma, load, prefetch, store

__all__ = ["add_dense_product", "add_sparse_product", "subtract_outer"]


@inline
def _factor(data, indices, scales, k):
    return broadcast(data[k] * scales[indices[k]] if scales.size else data[k])


@kernel
def add_dense_product(indptr, indices, data, rows, weights, scales, width, out):
    """``out[i] += Σ_k data[k] · weights[indices[k]]`` for row ``rows[i]``, SIMD across outputs.

    weights : (features · width,) of float32, or of half precision as uint16, or of int8 to be
    multiplied by ``scales`` (features,), which is empty otherwise; out : (len(rows) · width,), width a
    multiple of WIDTH. Four vectors of outputs at a time stay in registers while features stream by.
    """
    group = 4 * WIDTH
    whole = width // group * group
    for i in range(rows.size):
        start, stop = indptr[rows[i]], indptr[rows[i] + 1]
        for o in range(0, whole, group):
            to = i * width + o
            a, b = load(out, to), load(out, to + WIDTH)
            c, d = load(out, to + 2 * WIDTH), load(out, to + 3 * WIDTH)
            for k in range(start, stop):
                x, at = _factor(data, indices, scales, k), indices[k] * width + o
                a, b = fma(x, load(weights, at), a), fma(x, load(weights, at + WIDTH), b)
                c = fma(x, load(weights, at + 2 * WIDTH), c)
                d = fma(x, load(weights, at + 3 * WIDTH), d)
            store(out, to, a)
            store(out, to + WIDTH, b)
            store(out, to + 2 * WIDTH, c)
            store(out, to + 3 * WIDTH, d)
        for o in range(whole, width, WIDTH):
            a = load(out, i * width + o)
            for k in range(start, stop):
                x = _factor(data, indices, scales, k)
                a = fma(x, load(weights, indices[k] * width + o), a)
            store(out, i * width + o, a)


@kernel
def add_sparse_product(indptr, indices, data, w_indptr, w_indices, w_data, out):
    """Like `add_dense_product` for all rows, with weights in compressed rows; out : (rows, outputs)."""
    for i in range(out.shape[0]):
        line = out[i]
        for k in range(indptr[i], indptr[i + 1]):
            x, j = data[k], indices[k]
            for m in range(w_indptr[j], w_indptr[j + 1]):
                line[w_indices[m]] += x * w_data[m]


@kernel
def subtract_outer(indptr, indices, data, rows, G, step, width, first, last, weights):
    """``weights[f] −= step · x_f · G[i]`` for the features f of row ``rows[i]``, in this order.

    Only outputs ``first … last−1`` (multiples of WIDTH) are touched, so threads may share the
    outputs among them. G : (len(rows) · width,); weights : (features · width,).
    """
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
