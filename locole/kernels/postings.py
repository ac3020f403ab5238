"""Scores of sparse rows against sparse label profiles, feature by feature."""

from __future__ import annotations

from locole.kernels.jit import kernel
from locole.kernels.topk import push_rows

__all__ = ["scan_postings"]


@kernel
def scan_postings(
    indptr,
    indices,
    data,
    lists,
    labels,
    weights,
    room,
    no_labels,
    found,
    at,
    best_scores,
    best_codes,
):
    """For each row the scores of all labels: keep the best, and those of the labels in ``found``.

    Feature f is listed for labels ``labels[lists[f] : lists[f+1]]`` with their weights. room : (1,
    n_classes), work; found, at : (rows, m) codes and their scores; best_scores, best_codes : (rows, k).
    """
    scores = room[0]
    for i in range(indptr.size - 1):
        scores[:] = 0
        for p in range(indptr[i], indptr[i + 1]):
            f, x = indices[p], data[p]
            for q in range(lists[f], lists[f + 1]):
                scores[labels[q]] += x * weights[q]
        for j in range(found.shape[1]):
            at[i, j] = scores[found[i, j]]
        push_rows(room, 0, no_labels, best_scores[i : i + 1], best_codes[i : i + 1])
