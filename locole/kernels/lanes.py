"""Many rows side by side: the layout of the transforms, and the running lists fed from it.

Rows lie in *lanes*: the numbers that LANES rows have at position x stand side by side, so every
butterfly is one vector operation. Position x starts at ``place(x)``: a gap of one vector after every
64 positions keeps strides off the powers of two that would hit one set of the cache only.
"""

from __future__ import annotations

import numpy as np

from locole.kernels.jit import inline, kernel
from locole.kernels.simd import WIDTH, aligned, exceeds, load, maximum, store
from locole.kernels.topk import insert

__all__ = ["CHUNK", "LANES", "load_rows", "make_lanes", "merge_chunk", "place", "thresholds"]

LANES = WIDTH
#: Positions between two gaps.
CHUNK = 64


@inline
def place(x):
    """Where the lanes of position x start."""
    return (x + x // CHUNK) * LANES


@inline
def make_lanes(n, like):
    """Room for n positions."""
    return aligned(place(n) + LANES, like)


@kernel
def load_rows(Z, first, count, lanes):
    """Transpose rows ``first … first+count−1`` into lanes; lanes without a row are zero."""
    lanes[:] = 0
    for i in range(count):
        row = Z[first + i]
        for x in range(row.size):
            lanes[place(x) + i] = row[x]


@inline
def thresholds(best_scores, first, count, least):
    """Last entries of the rows' lists; lanes without a row can never exceed theirs."""
    least[:] = np.inf
    for i in range(count):
        least[i] = best_scores[first + i, -1]


@kernel
def merge_chunk(
    lanes, at, width, first, count, column, labels, least, top, best_scores, best_codes
):
    """Merge ``width`` positions from ``at`` on, columns ``column …``, into the lists of the rows.

    Most chunks enter no row's list and are left after one comparison of their maxima.
    """
    maxima = load(lanes, at)
    for j in range(1, width):
        maxima = maximum(maxima, load(lanes, at + j * LANES))
    if not exceeds(maxima, load(least, 0)):
        return
    store(top, 0, maxima)
    for i in range(count):
        if top[i] <= least[i]:
            continue
        scores, codes = best_scores[first + i], best_codes[first + i]
        for x in range(width):
            score = lanes[at + x * LANES + i]
            if score > scores[-1]:
                insert(scores, codes, score, column + x, labels)
        least[i] = scores[-1]
