"""Scores of sparse rows against sparse label profiles, feature by feature."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from locole.kernels.csr import Csr
from locole.kernels.jit import inline, kernel
from locole.kernels.simd import (
    WIDTH,
    broadcast,
    exp,
    fma,
    greatest,
    load,
    prefetch,
    store,
    total,
    zeros,
)
from locole.kernels.topk import push_rows

__all__ = [
    "Owners",
    "Postings",
    "Sums",
    "Work",
    "fill_evidence",
    "gather_evidence",
    "scan_postings",
    "tune_features",
]

# So many features ahead a list is asked for: waiting for the first of its labels takes longer than to
# go through it.
_AHEAD = 4
# Full features, most frequent first, whose weights are asked for as soon as the rivals are known.
_MOST_MET = 8 * WIDTH


class Postings(NamedTuple):
    """Labels that have a feature, and what it says of each, feature by feature."""

    starts: NDArray
    """Feature f has the places ``starts[f]`` to ``starts[f + 1]``, each of which is a label."""
    steps: NDArray[np.uint16]
    """From the label before, or from label 0."""
    weights: NDArray[np.float32]
    full: NDArray[np.int64]
    """Row of ``table`` of a feature that many labels have, otherwise −1."""
    table: NDArray[np.float32]
    """Weights of full features for all labels, which vectors add at once: (features · width,)."""


class Sums(NamedTuple):
    """Sums of the rows of each label, from which the weights of `Postings` come."""

    values: NDArray[np.float32]
    """In the order of ``Postings.steps``."""
    full: NDArray[np.float32]
    """Those of full features, a label's numbers side by side: (labels, full features)."""
    full_weights: NDArray[np.float32]
    """Their weights, likewise."""
    by_label: NDArray[np.float32]
    by_feature: NDArray[np.float32]
    mass: np.float32
    """Of everything."""


class Owners(NamedTuple):
    """The label of each row, and how much the row counts in the label's sums."""

    codes: NDArray[np.int64]
    weights: NDArray[np.float32]


class Work(NamedTuple):
    """Room for the scores of one row."""

    scores: NDArray[np.float32]
    """(1, width)."""
    labels: NDArray[np.int64]
    """Label of each score, −1 behind the last: (width,)."""


@kernel
def scan_postings(rows, postings, work, found, at, best_scores, best_codes):
    """For each row the scores of all labels: keep the best, and those of the labels in ``found``.

    rows : Csr; found, at : (rows, m) codes and their scores; best_scores, best_codes : (rows, k).
    """
    indptr, indices, data = rows
    starts, steps, weights, full, table = postings
    scores = work.scores[0]
    width = scores.size
    for i in range(indptr.size - 1):
        scores[:] = 0
        for p in range(indptr[i], indptr[i + 1]):
            f, x = indices[p], data[p]
            if p + _AHEAD < indptr[i + 1]:
                ahead = starts[indices[p + _AHEAD]]
                prefetch(steps, ahead)
                prefetch(weights, ahead)
            if full[f] >= 0:
                factor, start = broadcast(x), full[f] * width
                for c in range(0, width, WIDTH):
                    store(scores, c, fma(factor, load(table, start + c), load(scores, c)))
            else:
                label = 0
                for q in range(starts[f], starts[f + 1]):
                    label += steps[q]
                    scores[label] += x * weights[q]
        for j in range(found.shape[1]):
            at[i, j] = scores[found[i, j]]
        push_rows(work.scores, 0, work.labels, best_scores[i : i + 1], best_codes[i : i + 1])


@inline
def _mark(slots, rivals, code, marks):
    """Note in ``slots`` (labels,) which column a label has in the evidence: its own the last."""
    for j in range(rivals.size):
        slots[rivals[j]] = j if marks else -1
    slots[code] = rivals.size if marks else -1


@kernel
def fill_evidence(row, rows, owners, rivals, postings, sums, slots, out):
    """What each feature of a row says for each rival and, in the column behind, for its own label.

    The row's own part in its label's sums is taken out first: without that every row would speak for
    its label. Lists are walked from end to end: they are short, and looking 16 labels up in each took
    longer. slots : (labels,) of −1, work; out : (features of the row, WIDTH), of which columns behind
    the own label's stay as they are.
    """
    indptr, indices, data = rows
    starts, steps, weights, full, _ = postings
    values, full_sums, full_weights, by_label, by_feature, mass = sums
    code, weight, n = owners.codes[row], owners.weights[row], rivals.size
    start, stop = indptr[row], indptr[row + 1]
    size = data.dtype.type(0)
    for p in range(start, stop):
        size += data[p] * weight
    rest = by_label[code] - size
    _mark(slots, rivals, code, True)
    width = full_weights.shape[1]
    for j in range(n):
        for k in range(0, min(width, _MOST_MET), WIDTH):
            prefetch(full_weights, rivals[j] * width + k)
    for p in range(start, stop):
        f, x = indices[p], data[p]
        line = out[p - start]
        left = -x * weight
        if full[f] >= 0:
            left += full_sums[code, full[f]]
            for j in range(n):
                line[j] = x * full_weights[rivals[j], full[f]]
        else:
            line[:n] = 0
            label = 0
            for q in range(starts[f], starts[f + 1]):
                label += steps[q]
                slot = slots[label]
                if slot == n:
                    left += values[q]
                elif slot >= 0:
                    line[slot] = x * weights[q]
        line[n] = 0
        if left > 1e-6 * x and rest > 0:
            others = max(by_feature[f] - x * weight, 1e-12)
            line[n] = x * np.log1p(left / rest * (mass - size) / others)
    _mark(slots, rivals, code, False)


@kernel
def gather_evidence(rare, rows, owners, postings, sums, work, rivals, evidence):
    """For each row its rivals, best by its rare features, and what every feature says of them.

    The lists that a row's rare features have are in the cache when they are walked again. rare, rows :
    Csr; rivals : scores and codes (rows, rivals), filled; evidence : (non-zeros of the rows, WIDTH),
    filled.
    """
    scores, codes = rivals
    indptr = rows.indptr
    nobody = np.empty((1, 0), dtype=np.int64)
    nothing = np.empty((1, 0), dtype=np.float32)
    slots = np.full(sums.by_label.size, -1, dtype=np.int16)
    for i in range(indptr.size - 1):
        one = Csr(rare.indptr[i : i + 2], rare.indices, rare.data)
        scan_postings(one, postings, work, nobody, nothing, scores[i : i + 1], codes[i : i + 1])
        out = evidence[indptr[i] - indptr[0] :]
        fill_evidence(i, rows, owners, codes[i], postings, sums, slots, out)


@kernel
def tune_features(rows, codes, found, evidence, scale, rates, tuned, squares):
    """AdaGrad steps for the features' weights, row by row; returns the mean loss.

    The logit of a candidate is scale · Σ_f tuned[f] · evidence[f], and the loss the cross-entropy of
    the row's label among the candidates ``found`` and itself. evidence : (non-zeros · WIDTH,), of each
    the rivals and the own label; rates : learning rate of each row.
    """
    indptr, indices, _ = rows
    n = found.shape[1]
    lanes = np.empty(WIDTH, dtype=evidence.dtype)
    loss = 0.0
    for r in range(indptr.size - 1):
        start, stop = indptr[r], indptr[r + 1]
        logits = zeros(evidence)
        for p in range(start, stop):
            factor = broadcast(scale * tuned[indices[p]])
            logits = fma(factor, load(evidence, (p - indptr[0]) * WIDTH), logits)
        store(lanes, 0, logits)
        own = lanes[n]
        lanes[n + 1 :] = -np.inf
        for j in range(n):
            if found[r, j] == codes[r]:
                lanes[j] = -np.inf
        top = greatest(load(lanes, 0))
        odds = exp(load(lanes, 0) - broadcast(top))
        mass = total(odds)
        loss += np.log(mass) - (own - top)
        store(lanes, 0, broadcast(scale / mass) * odds)
        lanes[n] -= scale
        slopes = load(lanes, 0)
        for p in range(start, stop):
            f = indices[p]
            slope = total(slopes * load(evidence, (p - indptr[0]) * WIDTH))
            squares[f] += slope * slope
            tuned[f] = max(tuned[f] - rates[r] * slope / np.sqrt(squares[f]), 0)
    return loss / max(indptr.size - 1, 1)
