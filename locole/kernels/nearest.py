"""Inner products of rows with the rows of some labels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from locole.kernels.jit import kernel
from locole.kernels.simd import WIDTH, fma, load, store, zeros

__all__ = ["Lines", "nearest_dense_rows", "nearest_rows"]


class Lines(NamedTuple):
    """Sparse rows of labels, delta-coded, label by label."""

    starts: NDArray[np.int64]
    """Label c has the lines ``starts[c]`` to ``starts[c+1]``."""
    entries: NDArray[np.integer]
    """Line r has the steps and values ``entries[r]`` to ``entries[r+1]``."""
    steps: NDArray[np.uint16]
    values: NDArray
    scales: NDArray[np.float32]
    """What the values of each line are multiplied by."""


@kernel
def nearest_rows(rows, scales, lines, codes, room, out):
    """For each row and each of its labels ``codes`` the largest product with a line of that label.

    rows : Csr of numbers that ``scales`` (rows,) multiply; lines : Lines; room : (features,) of zeros of
    the type in which products are summed, work; out : (rows, labels of each) filled, 0 where all
    products are negative or there is no line.
    """
    indptr, indices, data = rows
    starts, entries, steps, values, line_scales = lines
    zero, nothing = room.dtype.type(0), np.float32(0)
    for i in range(indptr.size - 1):
        for p in range(indptr[i], indptr[i + 1]):
            room[indices[p]] = data[p]
        for j in range(codes.shape[1]):
            best = nothing
            for r in range(starts[codes[i, j]], starts[codes[i, j] + 1]):
                total, feature = zero, 0
                for p in range(entries[r], entries[r + 1]):
                    feature += steps[p]
                    total += room[feature] * values[p]
                best = max(best, np.float32(total) * line_scales[r])
            out[i, j] = best * scales[i]
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
