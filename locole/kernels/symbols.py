"""Scores of concatenated codes: one table look-up and addition for each symbol."""

from __future__ import annotations

import numpy as np

from locole.kernels.jit import inline, kernel
from locole.kernels.simd import WIDTH, aligned, exceeds, load, store
from locole.kernels.topk import insert

__all__ = ["scan_symbols", "symbol_sums"]

# Rows side by side in a vector.
LANES = WIDTH


@inline
def _load(tables, first, count, lanes):
    """Transpose the rows' tables (rows, symbols · values) into lanes."""
    lanes[:] = 0
    for i in range(count):
        for x in range(tables.shape[1]):
            lanes[x * LANES + i] = tables[first + i, x]


@inline
def _add_up(lanes, word, values):
    total = load(lanes, word[0] * LANES)
    for t in range(1, word.size):
        total = total + load(lanes, (t * values + word[t]) * LANES)
    return total


@kernel
def scan_symbols(tables, values, words, first, labels, best_scores, best_codes):
    """Merge the scores of columns ``first …`` into the rows' lists of best columns.

    tables : (rows, symbols · values), the score of each value of each symbol;
    words : (columns, symbols), the columns' symbols.
    """
    lanes = aligned(tables.shape[1] * LANES, tables)
    least, total = aligned(LANES, tables), aligned(LANES, tables)
    for start in range(0, tables.shape[0], LANES):
        count = min(LANES, tables.shape[0] - start)
        _load(tables, start, count, lanes)
        least[:] = np.inf
        for i in range(count):
            least[i] = best_scores[start + i, -1]
        for c in range(words.shape[0]):
            scores = _add_up(lanes, words[c], values)
            if not exceeds(scores, load(least, 0)):
                continue
            store(total, 0, scores)
            for i in range(count):
                if total[i] > least[i]:
                    row = start + i
                    insert(best_scores[row], best_codes[row], total[i], first + c, labels)
                    least[i] = best_scores[row, -1]


@kernel
def symbol_sums(tables, values, words, out):
    """Fill ``out`` (rows, columns) with the scores of all words."""
    for i in range(tables.shape[0]):
        for c in range(words.shape[0]):
            total = out.dtype.type(0)
            for t in range(words.shape[1]):
                total += tables[i, t * values + words[c, t]]
            out[i, c] = total
