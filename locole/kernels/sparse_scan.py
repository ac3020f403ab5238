"""The best labels of sparse rows by sparse weights."""

from __future__ import annotations

from locole.kernels.jit import kernel
from locole.kernels.topk import push_rows

__all__ = ["scan_lists"]


@kernel
def scan_lists(X, weights, start, room, every, best_scores, best_codes):
    """Scores of all labels for each row, of which the best are kept; ties go to the smaller code.

    X, weights : Csr; those of feature f are its weights of the labels. start : (labels,),
    scores of a row without features; room : (1, labels), work; every : empty, for `push_rows`;
    best_scores, best_codes : (rows, k).
    """
    indptr, indices, data = X
    lists, labels, values = weights
    scores = room[0]
    for i in range(indptr.size - 1):
        scores[:] = start
        for p in range(indptr[i], indptr[i + 1]):
            x = room.dtype.type(data[p])
            for q in range(lists[indices[p]], lists[indices[p] + 1]):
                scores[labels[q]] += x * values[q]
        push_rows(room, 0, every, best_scores[i : i + 1], best_codes[i : i + 1])
