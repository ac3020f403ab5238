"""Block-coordinate ascent for the multiclass hinge loss, with one hash table of features a label.

The tables hold V = Σ_i x_i α_iᵀ, of which only pairs of a feature and a label that meet in a row with
a dual variable are ever touched. All tables lie in one pool of 32-bit words: slot s has its feature at
``pool[2s]`` (−1 is empty) and its number at ``numbers[2s + 1]``, where ``numbers`` is the same memory as
float32, so that one slot is one place in memory. Label k owns ``2^bits[k]`` slots from ``starts[k]`` on.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from locole.kernels.csr import Csr
from locole.kernels.jit import inline, kernel
from locole.kernels.shrink import shrunk

__all__ = [
    "BlockDuals",
    "HingeLoss",
    "HingeSamples",
    "Tables",
    "Work",
    "ascend",
    "count_weights",
    "fill_weights",
    "keep_weights",
    "move_tables",
    "project_block",
]

_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_ALL_BITS = np.uint64(64)


class Tables(NamedTuple):
    """Hash tables of all labels, see above."""

    pool: Any
    numbers: Any
    spans: Any
    """(3, labels): start, bits and load of each."""
    used: Any
    """(2,): slots of the pool in use and, if it is too small, how many a row needs."""


class HingeSamples(NamedTuple):
    """Rows, their labels, and ‖x‖² of each."""

    X: Csr
    codes: Any
    sizes: Any


class BlockDuals(NamedTuple):
    """Dual variables: row i has ``counts[i]`` from ``heads[i]`` on in ``betas``, of ``rivals``."""

    heads: Any
    counts: Any
    rivals: Any
    betas: Any


class HingeLoss(NamedTuple):
    """Penalty l1, sum of a row's variables at most, and whether weights of zero stay so."""

    l1: Any
    budget: Any
    fixed: Any


class Work(NamedTuple):
    """Room for the labels of one row; of ``places``, a line for each."""

    labels: Any
    lacking: Any
    order: Any
    slopes: Any
    wished: Any
    moved: Any
    places: Any


@inline
def _find(pool, start, bits, feature):
    """Slot of the feature in the table at ``start``, or the empty one where it belongs."""
    mask = (np.int64(1) << bits) - 1
    at = np.int64((np.uint64(feature) * _SPREAD) >> (_ALL_BITS - np.uint64(bits)))
    while True:
        key = pool[2 * (start + at)]
        if key == feature or key < 0:
            return start + at
        at = (at + 1) & mask


@inline
def _score(X, i, tables, k, loss, places):
    """⟨S_{l1}(V_k), x_i⟩ and how many features the table needs; ``places`` gets the slots, or −1."""
    indptr, indices, data = X
    pool, numbers, _, _ = tables
    start, bits = tables.spans[0, k], tables.spans[1, k]
    l1, fixed, begin = loss.l1, loss.fixed, indptr[i]
    total, missing = 0.0, 0
    for p in range(begin, indptr[i + 1]):
        slot = _find(pool, start, bits, indices[p])
        if pool[2 * slot] < 0:
            places[p - begin] = -1
            missing += 0 if fixed else 1
        else:
            places[p - begin] = slot
            total += np.float64(data[p]) * shrunk(numbers[2 * slot + 1], l1)
    return total, missing


@kernel
def project_block(wished, held, budget, order, out):
    """Dual variables of one row: the maximum of its quadratic model.

    Minimises Σ_k (b_k − wished_k)² + (Σ_k b_k − held)² over b ≥ 0 with Σ_k b_k ≤ budget, where ``held``
    is the present sum: the row's own label moves by the sum of what the rivals move. At the optimum
    b_k = max(wished_k − t, 0) for one t, found by going down the sorted wishes.
    """
    n = wished.size
    for j in range(n):
        i = j
        while i > 0 and wished[order[i - 1]] < wished[j]:
            order[i] = order[i - 1]
            i -= 1
        order[i] = j
    total, level = 0.0, 0.0
    for j in range(n):
        total += wished[order[j]]
        level = (total - held) / (j + 2)
        if total - (j + 1) * level > budget:
            level = (total - budget) / (j + 1)
        if j + 1 < n and wished[order[j + 1]] <= level:
            break
    for j in range(n):
        out[j] = max(wished[j] - level, 0.0)


@inline
def _is_full(load, bits):
    """Whether a table is too small for so many features."""
    return 3 * load > np.int64(2) << bits


@inline
def _bits_for(load):
    """Table for so many features, at most half full."""
    bits = 2
    while (np.int64(1) << bits) < 2 * load:
        bits += 1
    return bits


@inline
def _grow(tables, k, bits):
    """Move the table of label k to the end of the pool."""
    pool, numbers, spans, end = tables
    used, start, size = end[0], spans[0, k], np.int64(1) << spans[1, k]
    for s in range(used, used + (np.int64(1) << bits)):
        pool[2 * s] = -1
    for s in range(start, start + size):
        if pool[2 * s] >= 0:
            slot = _find(pool, used, bits, pool[2 * s])
            pool[2 * slot] = pool[2 * s]
            numbers[2 * slot + 1] = numbers[2 * s + 1]
    spans[0, k], spans[1, k] = used, bits
    end[0] = used + (np.int64(1) << bits)


@inline
def _add(X, i, tables, k, step, missing, places):
    """``V_k += step · x_i``, in places that are known or, where features are missing, anew."""
    indptr, indices, data = X
    pool, numbers, spans, _ = tables
    begin, end = indptr[i], indptr[i + 1]
    if missing == 0:
        for p in range(begin, end):
            if places[p - begin] >= 0:
                numbers[2 * places[p - begin] + 1] += step * data[p]
        return
    start, bits = spans[0, k], spans[1, k]
    for p in range(begin, end):
        slot = _find(pool, start, bits, indices[p])
        if pool[2 * slot] < 0:
            pool[2 * slot] = indices[p]
            numbers[2 * slot + 1] = 0
            spans[2, k] += 1
        numbers[2 * slot + 1] += step * data[p]


@kernel
def ascend(samples, rows, found, loss, duals, tables, work, sums):
    """Maximise the dual over the variables of each row in turn.

    found : labels that may join the rivals of each of ``rows`` (−1 is none), for which there is room
    behind them; sums : (2,), get the Fenchel–Young gaps met on the way,
    budget · max_k(slope_k)₊ − Σ_k β_k slope_k, and the change of Σ β. Returns how many rows were done
    before slots were wanting.
    """
    X, codes, sizes = samples
    heads, counts, rivals, betas = duals
    labels, lacking, order, slopes, wished, moved, places = work
    pool, _, spans, used = tables
    budget = loss.budget
    for n in range(rows.size):
        i = rows[n]
        head, own = heads[i], codes[i]
        active = counts[i]
        for j in range(active):
            labels[j + 1] = rivals[head + j]
        for j in range(found.shape[1]):
            k = found[n, j]
            known = k < 0 or k == own
            for a in range(1, active + 1):
                known = known or labels[a] == k
            if not known:
                betas[head + active] = 0
                active += 1
                labels[active] = k
        if active == 0:
            continue
        labels[0] = own
        slopes[0], lacking[0] = _score(X, i, tables, own, loss, places[0])
        top, held, product = 0.0, 0.0, 0.0
        for j in range(1, active + 1):
            k = labels[j]
            score, lacking[j] = _score(X, i, tables, k, loss, places[j])
            beta = betas[head + j - 1]
            slopes[j] = 1.0 + score - slopes[0]
            top = max(top, slopes[j])
            held += beta
            product += beta * slopes[j]
            wished[j - 1] = beta + slopes[j] / sizes[i]
        project_block(wished[:active], held, budget, order, moved[1:])
        slots = used[0]
        for j in range(active + 1):
            load = spans[2, labels[j]] + lacking[j]
            if _is_full(load, spans[1, labels[j]]):
                slots += np.int64(1) << _bits_for(load)
        if 2 * slots > pool.size:
            used[1] = slots - used[0]
            return n
        sums[0] += budget * top - product
        total, kept = 0.0, 0
        for j in range(1, active + 1):
            beta = moved[j]
            step = beta - betas[head + j - 1]
            total += step
            moved[j] = -step
            if beta > 0:
                # Never behind j: what is written has been read.
                rivals[head + kept] = labels[j]
                betas[head + kept] = beta
                kept += 1
        counts[i] = kept
        moved[0] = total
        sums[1] += total
        for j in range(active + 1):
            if moved[j] != 0:
                k = labels[j]
                load = spans[2, k] + lacking[j]
                if _is_full(load, spans[1, k]):
                    _grow(tables, k, _bits_for(load))
                _add(X, i, tables, k, moved[j], lacking[j], places[j])
    return rows.size


@kernel
def move_tables(pool, tables, new_pool):
    """Copy the tables into a new pool, one behind the other; returns its slots in use."""
    used = np.int64(0)
    for k in range(tables.shape[1]):
        start, size = tables[0, k], np.int64(1) << tables[1, k]
        new_pool[2 * used : 2 * (used + size)] = pool[2 * start : 2 * (start + size)]
        tables[0, k] = used
        used += size
    return used


@kernel
def keep_weights(pool, numbers, tables, l1, new_pool, new_numbers):
    """Copy what has a weight into a new pool of empty slots; returns how many are in use."""
    used = np.int64(0)
    for k in range(tables.shape[1]):
        start, end = tables[0, k], tables[0, k] + (np.int64(1) << tables[1, k])
        load = 0
        for s in range(start, end):
            load += pool[2 * s] >= 0 and abs(numbers[2 * s + 1]) > l1
        bits = min(tables[1, k], _bits_for(load))
        for s in range(start, end):
            if pool[2 * s] >= 0 and abs(numbers[2 * s + 1]) > l1:
                slot = _find(new_pool, used, bits, pool[2 * s])
                new_pool[2 * slot] = pool[2 * s]
                new_numbers[2 * slot + 1] = numbers[2 * s + 1]
        tables[0, k], tables[1, k], tables[2, k] = used, bits, load
        used += np.int64(1) << bits
    return used


@kernel
def count_weights(pool, numbers, tables, l1, counts):
    """How many labels each feature has a weight for; returns the sum of squares of the weights."""
    squares = 0.0
    for k in range(tables.shape[1]):
        start = tables[0, k]
        for s in range(start, start + (np.int64(1) << tables[1, k])):
            if pool[2 * s] >= 0:
                w = shrunk(numbers[2 * s + 1], l1)
                if w != 0:
                    squares += w * w
                    counts[pool[2 * s]] += 1
    return squares


@kernel
def fill_weights(pool, numbers, tables, l1, heads, labels, weights):
    """Lists of the labels and weights of each feature, which begin at ``heads``; these move on."""
    for k in range(tables.shape[1]):
        start = tables[0, k]
        for s in range(start, start + (np.int64(1) << tables[1, k])):
            if pool[2 * s] >= 0:
                w = shrunk(numbers[2 * s + 1], l1)
                if w != 0:
                    f = pool[2 * s]
                    labels[heads[f]] = k
                    weights[heads[f]] = w
                    heads[f] += 1
