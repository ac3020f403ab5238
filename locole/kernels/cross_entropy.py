"""Softmax over all labels by fast transforms: loss and gradient, rows side by side in lanes.

The logits of a basis are one transform of the point, and the pull of their probabilities back on the
point is the transposed transform. Bases follow one another; a running peak per row keeps the
exponentials in range, as in an online log-sum-exp:

    total = Σ_i exp(s_i − peak),   pull = Σ_i exp(s_i − peak)·g_i,

and when a logit rises far above the peak, total and pull are scaled down to the new one.
"""

from __future__ import annotations

import numpy as np

from locole.kernels.jit import inline, kernel
from locole.kernels.lanes import CHUNK, LANES, make_lanes, place
from locole.kernels.simd import broadcast, exceeds, exp, fma, load, maximum, store
from locole.kernels.wht import flip, transform_chunk, transform_down_to

__all__ = ["SLACK", "adjust", "move_peak", "softmax_wht", "store_rows"]

#: Logits may rise so far above the peak before it is moved: e^30 is far from overflow.
SLACK = 30.0
#: A logit of no label: its exponential is zero in effect.
_NEVER = -1e30


@inline
def adjust(work, x, chunk, width, labels, offsets, column):
    """Add the labels' offsets; take out columns that no label has: those past ``width``, and gaps."""
    for j in range(x, x + chunk):
        if j >= width or (labels.size > 0 and labels[column + j] < 0):
            store(work, place(j), broadcast(np.float32(_NEVER)))
        elif offsets.size > 0:
            store(work, place(j), load(work, place(j)) + broadcast(offsets[column + j]))


@inline
def move_peak(at, n, new, peak, total, pull):
    """Bring total and pull from the old peak to the new one."""
    factor = exp(load(peak, at) - new)
    store(total, at, load(total, at) * factor)
    for x in range(n):
        store(pull, place(x), load(pull, place(x)) * factor)
    store(peak, at, new)


@kernel
def softmax_wht(lanes, signs, first, n_columns, labels, offsets, peak, total, pull):
    """Add whole bases to the running softmax of groups of LANES rows.

    lanes, pull : (groups, place(n) + LANES); peak, total : (groups · LANES,); signs : (bases, n);
    basis b holds columns ``first + b n …`` of which those below ``n_columns`` exist, and of these, if
    ``labels`` is not empty, those with a label. ``offsets`` (columns,), if not empty, are added to the
    logits.
    """
    n = signs.shape[1]
    chunk = min(n, CHUNK)
    work = make_lanes(n, lanes)
    for g in range(lanes.shape[0]):
        row, at, mine = lanes[g], g * LANES, pull[g]
        b = 0
        while b < signs.shape[0]:
            column = first + b * n
            width = min(n, n_columns - column)
            plain = width == n and labels.size == 0 and offsets.size == 0
            size = flip(row, signs[b], work, chunk)
            transform_down_to(work, n, size, chunk)
            base = load(peak, at)
            top = base
            added = load(total, at)
            for x in range(0, n, chunk):
                transform_chunk(work, place(x), chunk)
                if not plain:
                    adjust(work, x, chunk, width, labels, offsets, column)
                for j in range(x, x + chunk):
                    logit = load(work, place(j))
                    top = maximum(top, logit)
                    weight = exp(logit - base)
                    added = added + weight
                    store(work, place(j), weight)
                transform_chunk(work, place(x), chunk)
            # Not yet counted: the basis is done again from the new peak.
            if exceeds(top, base + broadcast(np.float32(SLACK))):
                move_peak(at, n, top, peak, total, mine)
                continue
            store(total, at, added)
            transform_down_to(work, n, n, chunk)
            sign = signs[b]
            for x in range(n):
                to = place(x)
                store(mine, to, fma(load(work, to), broadcast(sign[x]), load(mine, to)))
            b += 1


@kernel
def store_rows(pull, scale, total, out):
    """``out[i] = pull_i · scale / total_i``, back from lanes to rows."""
    for i in range(out.shape[0]):
        mine, lane = pull[i // LANES], i % LANES
        factor, row = scale / total[i], out[i]
        for x in range(row.size):
            row[x] = mine[place(x) + lane] * factor
