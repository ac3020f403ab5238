"""Scores of sparse rows against sparse label profiles, feature by feature."""

from __future__ import annotations

import numpy as np

from locole.kernels.jit import inline, kernel
from locole.kernels.simd import WIDTH, broadcast, fma, load, store
from locole.kernels.topk import push_rows

__all__ = ["fill_evidence", "scan_postings", "tune_features"]


@kernel
def scan_postings(
    indptr, indices, data, lists, labels, weights, full, table, room, no_labels, found, at,
    best_scores, best_codes,
):  # fmt: skip
    """For each row the scores of all labels: keep the best, and those of the labels in ``found``.

    Feature f is listed for labels ``labels[lists[f] : lists[f+1]]`` with their weights; where most
    labels have it, ``full[f] ≥ 0`` names its row in ``table`` (features · width,), which vectors add at
    once. room : (1, width), work; found, at : (rows, m) codes and their scores; best_scores,
    best_codes : (rows, k).
    """
    scores = room[0]
    width = scores.size
    for i in range(indptr.size - 1):
        scores[:] = 0
        for p in range(indptr[i], indptr[i + 1]):
            f, x = indices[p], data[p]
            if full[f] >= 0:
                factor, start = broadcast(x), full[f] * width
                for c in range(0, width, WIDTH):
                    store(scores, c, fma(factor, load(table, start + c), load(scores, c)))
            else:
                for q in range(lists[f], lists[f + 1]):
                    scores[labels[q]] += x * weights[q]
        for j in range(found.shape[1]):
            at[i, j] = scores[found[i, j]]
        push_rows(room, 0, no_labels, best_scores[i : i + 1], best_codes[i : i + 1])


@inline
def _place_of(labels, start, stop, code):
    """Place of ``code`` in the sorted ``labels[start:stop]``, or −1."""
    end = stop
    while start < stop:
        middle = (start + stop) // 2
        if labels[middle] < code:
            start = middle + 1
        else:
            stop = middle
    return start if start < end and labels[start] == code else -1


@kernel
def fill_evidence(
    row, indptr, indices, data, code, weight, rivals, lists, labels, sums, weights, full,
    table, width, by_label, by_feature, total, out,
):  # fmt: skip
    """What each feature of a row says for each rival and, in the last column, for its own label.

    The row's own part in its label's sums is taken out first (``weight`` times the row): without that
    every row would speak for its label. out : (features of the row, rivals + 1).
    """
    start, stop = indptr[row], indptr[row + 1]
    size = data.dtype.type(0)
    for p in range(start, stop):
        size += data[p] * weight
    rest = by_label[code] - size
    for p in range(start, stop):
        f, x = indices[p], data[p]
        first, last = lists[f], lists[f + 1]
        line = out[p - start]
        for j in range(rivals.size):
            if full[f] >= 0:
                line[j] = x * table[full[f] * width + rivals[j]]
            else:
                at = _place_of(labels, first, last, rivals[j])
                line[j] = x * weights[at] if at >= 0 else 0
        own = _place_of(labels, first, last, code)
        left = sums[own] - x * weight if own >= 0 else 0
        line[rivals.size] = 0
        if left > 1e-6 * x and rest > 0:
            others = max(by_feature[f] - x * weight, 1e-12)
            line[rivals.size] = x * np.log1p(left / rest * (total - size) / others)


@kernel
def tune_features(
    rows, indptr, indices, data, codes, row_weights, found, lists, labels, sums, weights,
    full, table, width, by_label, by_feature, total, scale, rates, evidence, logits, tuned, squares,
):  # fmt: skip
    """One pass of AdaGrad over the features' weights; returns the mean loss.

    The logit of a candidate is scale · Σ_f tuned[f] · evidence[f], and the loss the cross-entropy of
    the row's label among the candidates ``found`` and itself. rates : learning rate of each row.
    """
    n = found.shape[1]
    loss = 0.0
    for r in range(rows.size):
        row = rows[r]
        start, stop = indptr[row], indptr[row + 1]
        code = codes[row]
        fill_evidence(
            row, indptr, indices, data, code, row_weights[row], found[r], lists, labels, sums,
            weights, full, table, width, by_label, by_feature, total, evidence,
        )  # fmt: skip
        logits[:] = 0
        for p in range(start, stop):
            line, factor = evidence[p - start], scale * tuned[indices[p]]
            for j in range(n + 1):
                logits[j] += factor * line[j]
        for j in range(n):
            if found[r, j] == code:
                logits[j] = -np.inf
        top = logits.max()
        mass = 0.0
        for j in range(n + 1):
            logits[j] = np.exp(logits[j] - top)
            mass += logits[j]
        loss -= np.log(logits[n] / mass)
        for j in range(n + 1):
            logits[j] /= mass
        logits[n] -= 1
        for p in range(start, stop):
            line, f = evidence[p - start], indices[p]
            slope = data.dtype.type(0)
            for j in range(n + 1):
                slope += logits[j] * line[j]
            slope *= scale
            squares[f] += slope * slope
            tuned[f] = max(tuned[f] - rates[r] * slope / np.sqrt(squares[f]), 0)
    return loss / max(rows.size, 1)
