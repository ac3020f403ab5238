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
    greatest,
    load,
    maximum,
    prefetch,
    store,
    total,
    zeros,
)

__all__ = ["Batches", "Factors", "descend", "label_products", "scan_labels"]


# Features between the one that is read and the one whose vector is asked for.
_AHEAD = 4
# Numbers of a vector that are kept in registers.
_TILE = 4 * WIDTH


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


@inline
def _project(indptr, indices, data, row, features, dim, out, to):
    """``out[to : to + dim] = Σ_k data[k] · features[indices[k]]`` over the entries of a row.

    features : (n_features · dim,); dim is a multiple of `_TILE`, whose sums stay in registers.
    """
    for o in range(0, dim, _TILE):
        s0, s1, s2, s3 = zeros(out), zeros(out), zeros(out), zeros(out)
        for p in range(indptr[row], indptr[row + 1]):
            x, at = broadcast(data[p]), indices[p] * dim + o
            soon = indices[min(p + _AHEAD, indices.size - 1)] * dim + o
            for k in range(0, _TILE, WIDTH):
                prefetch(features, soon + k)
            s0 = fma(x, load(features, at), s0)
            s1 = fma(x, load(features, at + WIDTH), s1)
            s2 = fma(x, load(features, at + 2 * WIDTH), s2)
            s3 = fma(x, load(features, at + 3 * WIDTH), s3)
        store(out, to + o, s0)
        store(out, to + o + WIDTH, s1)
        store(out, to + o + 2 * WIDTH, s2)
        store(out, to + o + 3 * WIDTH, s3)


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
def _residuals(logits, width, rows, codes, starts, weights, slots, n):
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
        top = greatest(highest)
        for c in own:
            loss -= share * (logits[start + slots[c]] - top)
        mass, shift = zeros(logits), broadcast(top)
        for o in range(start, start + width, WIDTH):
            p = exp(load(logits, o) - shift)
            store(logits, o, p)
            mass = mass + p
        sum_of_odds = total(mass)
        loss += weights[i] * np.log(sum_of_odds)
        factor = broadcast(weights[i] / sum_of_odds)
        for o in range(start, start + width, WIDTH):
            store(logits, o, factor * load(logits, o))
        for c in own:
            logits[start + slots[c]] -= share
    return loss


@inline
def _matrix(room, n_rows, n_columns):
    """The beginning of ``room`` as a matrix."""
    return room[: n_rows * n_columns].reshape(n_rows, n_columns)


@inline
def _step(vectors, to, slope, at, step, dim):
    """``vectors[to : to + dim] −= step · slope[at : at + dim]``."""
    size = broadcast(step)
    for o in range(0, dim, WIDTH):
        store(vectors, to + o, fnma(size, load(slope, at + o), load(vectors, to + o)))


@inline
def _step_features(indptr, indices, data, row, factors, slope, at, sizes, rate):
    """AdaGrad for the features of a row, with one learning rate for all numbers of a vector.

    The slope of a feature is its value times ``slope[at : at + dim]``. sizes : work.
    """
    vectors, squares = factors.features.reshape(-1), factors.feature_squares
    dim, start, stop = factors.features.shape[1], indptr[row], indptr[row + 1]
    mean = _mean_square(slope, at, dim)
    for p in range(start, stop):
        x, f = data[p], indices[p]
        squares[f] += x * x * mean
        sizes[p - start] = rate * x / np.sqrt(squares[f])
    for o in range(0, dim, _TILE):
        s0, s1 = load(slope, at + o), load(slope, at + o + WIDTH)
        s2, s3 = load(slope, at + o + 2 * WIDTH), load(slope, at + o + 3 * WIDTH)
        for p in range(start, stop):
            soon = indices[min(p + _AHEAD, indices.size - 1)] * dim + o
            for k in range(0, _TILE, WIDTH):
                prefetch(vectors, soon + k)
            size, to = broadcast(sizes[p - start]), indices[p] * dim + o
            store(vectors, to, fnma(size, s0, load(vectors, to)))
            store(vectors, to + WIDTH, fnma(size, s1, load(vectors, to + WIDTH)))
            store(vectors, to + 2 * WIDTH, fnma(size, s2, load(vectors, to + 2 * WIDTH)))
            store(vectors, to + 3 * WIDTH, fnma(size, s3, load(vectors, to + 3 * WIDTH)))


@inline
def _mean_square(numbers, at, dim):
    """Mean of the squares of ``numbers[at : at + dim]``, added up in four parts."""
    s0, s1 = zeros(numbers), zeros(numbers)
    for o in range(at, at + dim, 2 * WIDTH):
        a, b = load(numbers, o), load(numbers, o + WIDTH)
        s0, s1 = fma(a, a, s0), fma(b, b, s1)
    return total(s0 + s1) / dim


@inline
def _longest(starts):
    """Length of the longest piece."""
    longest = 0
    for i in range(starts.size - 1):
        longest = max(longest, starts[i + 1] - starts[i])
    return longest


@kernel
def descend(indptr, indices, data, batches, factors, slots):
    """One pass of AdaGrad over the cross-entropy among the labels of each batch and drawn ones.

    A batch takes three dense products; all of its slopes are those of its beginning. The vectors of
    ``factors`` have a multiple of `_TILE` numbers. slots : (labels,) of −1, work. Returns the sum of the
    losses.
    """
    size, dim = batches.size, factors.labels.shape[1]
    own = min(size * _longest(batches.starts), slots.size)
    room = np.empty(own + batches.negatives.shape[1], dtype=np.int64)
    most = -(-room.size // WIDTH) * WIDTH
    sizes = np.empty(_longest(indptr), np.float32)
    U_room, row_room = np.empty(size * dim, np.float32), np.empty(size * dim, np.float32)
    V_room, label_room = np.empty(most * dim, np.float32), np.empty(most * dim, np.float32)
    slope_room = np.empty(size * most, np.float32)
    labels, squares = factors.labels.reshape(-1), factors.label_squares
    loss = 0.0
    for b in range(batches.rates.size):
        rows = batches.order[b * size : (b + 1) * size]
        codes, starts = batches.codes, batches.starts
        weights, rate = batches.weights[rows], batches.rates[b]
        found = room[: _competitors(rows, codes, starts, batches.negatives[b], slots, room)]
        for i in range(rows.size):
            _project(
                indptr, indices, data, rows[i], factors.features.reshape(-1), dim, U_room, i * dim
            )
        width = -(-found.size // WIDTH) * WIDTH
        for j in range(found.size):
            for o in range(0, dim, WIDTH):
                store(V_room, j * dim + o, load(labels, found[j] * dim + o))
        V_room[found.size * dim : width * dim] = 0
        U, V = _matrix(U_room, rows.size, dim), _matrix(V_room, width, dim)
        slopes = _matrix(slope_room, rows.size, width)
        np.dot(U, V.T, slopes)
        loss += _residuals(slope_room, width, rows, codes, starts, weights, slots, found.size)
        np.dot(slopes, V, _matrix(row_room, rows.size, dim))
        np.dot(slopes.T, U, _matrix(label_room, width, dim))
        for j in range(found.size):
            c = found[j]
            slots[c] = -1
            squares[c] += _mean_square(label_room, j * dim, dim)
            _step(labels, c * dim, label_room, j * dim, rate / np.sqrt(squares[c]), dim)
        for i in range(rows.size):
            _step_features(indptr, indices, data, rows[i], factors, row_room, i * dim, sizes, rate)
    return loss
