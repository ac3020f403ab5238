"""Inner products of sparse rows with the sparse rows of some labels."""

from __future__ import annotations

from locole.kernels.jit import kernel

__all__ = ["nearest_rows"]


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
