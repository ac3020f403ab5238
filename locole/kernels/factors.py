"""Low-rank label scores ``⟨Eᵀx, v⟩``: steps of their training, and products with some labels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from locole.kernels.jit import inline, kernel
from locole.kernels.simd import (
    WIDTH,
    broadcast,
    exp,
    fma,
    fnma,
    load,
    maximum,
    prefetch,
    store,
    zeros,
)

__all__ = ["Batches", "Factors", "descend", "label_products", "project", "scan_labels"]


# Features between the one that is read and the one whose vector is asked for.
_AHEAD = 4


class Factors(NamedTuple):
    """What is learnt: a vector for each feature and each label, and AdaGrad's sums of squares."""

    features: NDArray[np.float32]
    labels: NDArray[np.float32]
    feature_squares: NDArray[np.float32]
    label_squares: NDArray[np.float32]


class Batches(NamedTuple):
    """Rows in the order in which they are met, and the labels that compete with theirs."""

    size: int
    """Rows of a batch; the last may have fewer."""
    order: NDArray[np.int64]
    codes: NDArray[np.int64]
    starts: NDArray[np.int64]
    """Row i has the labels ``codes[starts[i] : starts[i + 1]]``, at least one."""
    weights: NDArray[np.float32]
    negatives: NDArray[np.int64]
    """Shape (batches, labels drawn for each)."""
    rates: NDArray[np.float32]
    """Learning rate of each batch."""


@kernel
def project(indptr, indices, data, rows, features, dim, out):
    """``out[i] = Σ_k data[k] · features[indices[k]]`` for row ``rows[i]``.

    features : (n_features · dim,), out : (len(rows) · dim,), dim a multiple of WIDTH.
    """
    for i in range(rows.size):
        for o in range(i * dim, (i + 1) * dim, WIDTH):
            store(out, o, zeros(out))
        for p in range(indptr[rows[i]], indptr[rows[i] + 1]):
            x, at = broadcast(data[p]), indices[p] * dim
            soon = indices[min(p + _AHEAD, indices.size - 1)] * dim
            for o in range(0, dim, WIDTH):
                prefetch(features, soon + o)
            for o in range(0, dim, WIDTH):
                to = i * dim + o
                store(out, to, fma(x, load(features, at + o), load(out, to)))


@kernel
def label_products(points, labels, scales, codes, out):
    """``out[i, j] = ⟨points[i], labels[codes[i, j]]⟩``, added up in double precision.

    labels : float32, or int8 to be multiplied by ``scales`` (labels,), which is empty otherwise.
    """
    for i in range(codes.shape[0]):
        for j in range(codes.shape[1]):
            vector = labels[codes[i, j]]
            total = 0.0
            for k in range(vector.size):
                total += np.float64(points[i, k]) * vector[k]
            out[i, j] = total * scales[codes[i, j]] if scales.size else total


@kernel
def scan_labels(points, labels, scales, out):
    """``out[i, c] = ⟨points[i], labels[c]⟩`` for a few points and all labels, in float32.

    points : (rows · dim,), labels : (n · dim,) with scales as in `label_products`; out : (rows, n).
    """
    n_rows, n = out.shape
    dim = labels.size // n
    whole = dim - dim % WIDTH
    lanes = np.empty(WIDTH, dtype=np.float32)
    for i in range(n_rows):
        for c in range(n):
            total = zeros(points)
            for o in range(0, whole, WIDTH):
                total = fma(load(points, i * dim + o), load(labels, c * dim + o), total)
            store(lanes, 0, total)
            score = lanes.sum()
            for o in range(whole, dim):
                score += points[i * dim + o] * np.float32(labels[c * dim + o])
            out[i, c] = score * (scales[c] if scales.size else np.float32(1))


@inline
def _competitors(rows, codes, starts, negatives, slots, found):
    """Write the labels of a batch, its own first, to ``found``; note their places in ``slots``."""
    n = 0
    for row in rows:
        for c in codes[starts[row] : starts[row + 1]]:
            if slots[c] < 0:
                slots[c], found[n] = n, c
                n += 1
    for c in negatives:
        if slots[c] < 0:
            slots[c], found[n] = n, c
            n += 1
    return n


@inline
def _residuals(logits, width, rows, codes, starts, weights, slots, n, lanes):
    """From logits to the slopes ``weight · (softmax − target)``; returns the loss.

    The target gives the labels of a row the same probability each. Columns from n on are no labels,
    and get the slope 0. logits : (rows · width,).
    """
    loss = 0.0
    for i in range(rows.size):
        start, own = i * width, codes[starts[rows[i]] : starts[rows[i] + 1]]
        share = weights[i] / np.float32(own.size)
        logits[start + n : start + width] = -np.inf
        highest = load(logits, start)
        for o in range(start + WIDTH, start + width, WIDTH):
            highest = maximum(highest, load(logits, o))
        store(lanes, 0, highest)
        top = lanes.max()
        for c in own:
            loss -= share * (logits[start + slots[c]] - top)
        mass, shift = zeros(logits), broadcast(top)
        for o in range(start, start + width, WIDTH):
            p = exp(load(logits, o) - shift)
            store(logits, o, p)
            mass = mass + p
        store(lanes, 0, mass)
        total = lanes.sum()
        loss += weights[i] * np.log(total)
        factor = broadcast(weights[i] / total)
        for o in range(start, start + width, WIDTH):
            store(logits, o, factor * load(logits, o))
        for c in own:
            logits[start + slots[c]] -= share
    return loss


@inline
def _step(vectors, place, squares, size, slopes, row, scale, rate, dim):
    """AdaGrad with one learning rate for all numbers of a vector.

    The slope is ``scale · slopes[row]``, and size the mean square of ``slopes[row]``.
    """
    squares[place] += scale * scale * size
    step = broadcast(rate * scale / np.sqrt(squares[place]))
    for o in range(0, dim, WIDTH):
        to = place * dim + o
        store(vectors, to, fnma(step, load(slopes, row * dim + o), load(vectors, to)))


@inline
def _mean_square(numbers):
    total = np.float32(0)
    for number in numbers:
        total += number * number
    return total / numbers.size


@kernel
def descend(indptr, indices, data, batches, factors, slots):
    """One pass of AdaGrad over the cross-entropy among the labels of each batch and drawn ones.

    A batch takes three dense products; all of its slopes are those of its beginning. slots : (labels,)
    of −1, work. Returns the sum of the losses.
    """
    size, dim = batches.size, factors.labels.shape[1]
    most = 0
    for i in range(batches.starts.size - 1):
        most = max(most, batches.starts[i + 1] - batches.starts[i])
    room = np.empty(min(size * most, slots.size) + batches.negatives.shape[1], dtype=np.int64)
    points = np.empty((size, dim), dtype=np.float32)
    features, labels = factors.features.reshape(-1), factors.labels.reshape(-1)
    lanes = np.empty(WIDTH, dtype=np.float32)
    loss = 0.0
    for b in range(batches.rates.size):
        rows = batches.order[b * size : (b + 1) * size]
        codes, starts = batches.codes, batches.starts
        weights, rate = batches.weights[rows], batches.rates[b]
        found = room[: _competitors(rows, codes, starts, batches.negatives[b], slots, room)]
        project(indptr, indices, data, rows, features, dim, points.reshape(-1))
        width = -(-found.size // WIDTH) * WIDTH
        U, V = points[: rows.size], np.zeros((width, dim), dtype=np.float32)
        V[: found.size] = factors.labels[found]
        slopes = np.dot(U, V.T)
        loss += _residuals(slopes.reshape(-1), width, rows, codes, starts, weights, slots,
                           found.size, lanes)  # fmt: skip
        row_slopes, label_slopes = np.dot(slopes, V), np.dot(slopes.T, U)
        for j in range(found.size):
            slots[found[j]] = -1
            _step(labels, found[j], factors.label_squares, _mean_square(label_slopes[j]),
                  label_slopes.reshape(-1), j, np.float32(1), rate, dim)  # fmt: skip
        for i in range(rows.size):
            mean = _mean_square(row_slopes[i])
            for p in range(indptr[rows[i]], indptr[rows[i] + 1]):
                _step(features, indices[p], factors.feature_squares, mean,
                      row_slopes.reshape(-1), i, data[p], rate, dim)  # fmt: skip
    return loss
