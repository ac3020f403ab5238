"""Products of sparse rows with weights: the linear part of every prediction."""

from __future__ import annotations

from locole.kernels.jit import inline, kernel
from locole.kernels.simd import WIDTH, broadcast, fma, load, store

__all__ = ["add_dense_product", "add_sparse_product"]


@inline
def _factor(data, indices, scales, k):
    return broadcast(data[k] * scales[indices[k]] if scales.size else data[k])


@kernel
def add_dense_product(indptr, indices, data, weights, scales, width, first, out):
    """``out[i] += Σ_k data[k] · weights[indices[k]]`` for rows ``first …``, SIMD across outputs.

    weights : (features · width,) of float32, or of half precision as uint16, or of int8 to be
    multiplied by ``scales`` (features,), which is empty otherwise; out : (rows · width,), width a
    multiple of WIDTH. Four vectors of outputs at a time stay in registers while features stream by.
    """
    group = 4 * WIDTH
    whole = width // group * group
    for i in range(out.size // width):
        start, stop = indptr[first + i], indptr[first + i + 1]
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
def add_sparse_product(indptr, indices, data, w_indptr, w_indices, w_data, first, out):
    """Like `add_dense_product` with weights in compressed rows; out : (rows, outputs)."""
    for i in range(out.shape[0]):
        line = out[i]
        for k in range(indptr[first + i], indptr[first + i + 1]):
            x, j = data[k], indices[k]
            for m in range(w_indptr[j], w_indptr[j + 1]):
                line[w_indices[m]] += x * w_data[m]
