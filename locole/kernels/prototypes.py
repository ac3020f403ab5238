"""Steps of label vectors along their slopes."""

from __future__ import annotations

import numpy as np

from locole.kernels.jit import kernel
from locole.kernels.simd import WIDTH, broadcast, fma, fnma, load, store, zeros

__all__ = ["adagrad_rows"]


@kernel
def adagrad_rows(vectors, codes, squares, slopes, rate):
    """AdaGrad with one rate for all numbers of a vector: label ``codes[j]`` has the slope ``slopes[j]``.

    vectors : (labels, numbers), squares : (labels,), both changed in place; slopes : contiguous.
    """
    dim = slopes.shape[1]
    whole = dim - dim % WIDTH
    flat, steps = vectors.reshape(-1), slopes.reshape(-1)
    lanes = np.empty(WIDTH, dtype=np.float32)
    for j in range(codes.size):
        c, start = codes[j] * dim, j * dim
        sums = zeros(steps)
        for o in range(0, whole, WIDTH):
            slope = load(steps, start + o)
            sums = fma(slope, slope, sums)
        store(lanes, 0, sums)
        total = lanes.sum()
        for o in range(whole, dim):
            total += steps[start + o] * steps[start + o]
        if total == 0:
            continue
        squares[codes[j]] += total / np.float32(dim)
        step = rate / np.sqrt(squares[codes[j]])
        wide = broadcast(step)
        for o in range(0, whole, WIDTH):
            store(flat, c + o, fnma(wide, load(steps, start + o), load(flat, c + o)))
        for o in range(whole, dim):
            flat[c + o] -= step * steps[start + o]
