"""Inner products of rows with the rows of some labels."""

from __future__ import annotations

import numpy as np

from locole.kernels.jit import kernel
from locole.kernels.simd import WIDTH, fma, load, store, zeros

__all__ = ["nearest_dense_rows", "nearest_rows"]


@kernel
def nearest_rows(indptr, indices, data, starts, lines, features, values, codes, room, out):
    """For each row and each of its labels ``codes`` the largest product with a row of that label.

    Those of label c are ``lines[starts[c]]`` to ``lines[starts[c+1]]`` in features and values. room :
    (features,) of zeros, work; out : (rows, labels of each) filled, 0 where all products are negative
    or there is no row.
    """
    zero = room.dtype.type(0)
    for i in range(indptr.size - 1):
        for p in range(indptr[i], indptr[i + 1]):
            room[indices[p]] = data[p]
        for j in range(codes.shape[1]):
            best = zero
            for r in range(starts[codes[i, j]], starts[codes[i, j] + 1]):
                total = zero
                for p in range(lines[r], lines[r + 1]):
                    total += room[features[p]] * values[p]
                best = max(best, total)
            out[i, j] = best
        for p in range(indptr[i], indptr[i + 1]):
            room[indices[p]] = zero


@kernel
def nearest_dense_rows(points, starts, table, scales, codes, out):
    """The same for dense rows, of which those of labels are bytes with a scale for each row.

    points : (rows · numbers,), table : (lines · numbers,), those of label c are lines ``starts[c]`` to
    ``starts[c+1]``.
    """
    dim = points.size // codes.shape[0]
    whole = dim - dim % WIDTH
    lanes = np.empty(WIDTH, dtype=np.float32)
    for i in range(codes.shape[0]):
        for j in range(codes.shape[1]):
            best = np.float32(0)
            for r in range(starts[codes[i, j]], starts[codes[i, j] + 1]):
                sums = zeros(points)
                for o in range(0, whole, WIDTH):
                    sums = fma(load(points, i * dim + o), load(table, r * dim + o), sums)
                store(lanes, 0, sums)
                total = lanes.sum()
                for o in range(whole, dim):
                    total += points[i * dim + o] * np.float32(table[r * dim + o])
                best = max(best, total * scales[r])
            out[i, j] = best
