"""Fast Walsh–Hadamard transforms of many rows side by side, and signs of quadratic forms.

Rows lie in *lanes*: an array of n × LANES numbers whose inner index is the row, so every butterfly
is a contiguous vector operation.
"""

from __future__ import annotations

import numpy as np

from locole.kernels.jit import inline, kernel
from locole.kernels.topk import insert

__all__ = ["LANES", "fill_signs", "scan_wht", "transform_wht", "wht_scores"]

LANES = 32
# Once a sub-transform fits the first-level cache (256 · 32 · 4 B = 32 KB), finish it before the next.
_CACHED = 256


@inline
def parity(v):
    """Parity of the bits of a uint32."""
    for step in (16, 8, 4, 2, 1):
        v ^= v >> np.uint32(step)
    return v & np.uint32(1)


@inline
def _pass2(x, start, width):
    a = x[start : start + width]
    b = x[start + width : start + 2 * width]
    for j in range(width):
        u, v = a[j], b[j]
        a[j] = u + v
        b[j] = u - v


@inline
def _pass4(x, start, width):
    a = x[start : start + width]
    b = x[start + width : start + 2 * width]
    c = x[start + 2 * width : start + 3 * width]
    d = x[start + 3 * width : start + 4 * width]
    for j in range(width):
        p, q = a[j] + c[j], a[j] - c[j]
        r, s = b[j] + d[j], b[j] - d[j]
        a[j] = p + r
        b[j] = p - r
        c[j] = q + s
        d[j] = q - s


@kernel
def transform_wht(x, n):
    """Transform ``x`` (flat, n × LANES) in place: y[a] = Σ_x (−1)^{a·x} x[x], natural order."""
    size = n
    odd = n & 0x55555555 == 0  # n is an odd power of two: one radix-2 pass first
    if odd:
        _pass2(x, 0, n // 2 * LANES)
        size = n // 2
    while size > _CACHED:
        width = size // 4 * LANES
        for start in range(0, n * LANES, 4 * width):
            _pass4(x, start, width)
        size //= 4
    for block in range(0, n * LANES, size * LANES):
        part = size
        while part > 1:
            width = part // 4 * LANES
            for start in range(block, block + size * LANES, 4 * width):
                _pass4(x, start, width)
            part //= 4


@inline
def _load(Z, first, count, lanes, n):
    """Transpose rows ``first … first+count−1`` into lanes; lanes without a row are zero."""
    lanes[:] = 0
    for i in range(count):
        for x in range(n):
            lanes[x * LANES + i] = Z[first + i, x]


@inline
def _apply_signs(lanes, sign, work, n):
    for x in range(n):
        s = sign[x]
        a = lanes[x * LANES : (x + 1) * LANES]
        b = work[x * LANES : (x + 1) * LANES]
        for j in range(LANES):
            b[j] = s * a[j]


@inline
def _lane_maxima(work, width, top):
    top[:] = work[:LANES]
    for x in range(1, width):
        line = work[x * LANES : (x + 1) * LANES]
        for j in range(LANES):
            top[j] = max(top[j], line[j])


@kernel
def scan_wht(Z, signs, first, n_columns, labels, best_scores, best_codes):
    """Merge the scores of whole bases into the rows' lists of best columns.

    Z : (rows, n); signs : (bases, n) of ±1; basis b holds columns ``first + b n …``, of which those
    below ``n_columns`` exist. Scores are unscaled: Σ_x ±z[x].
    """
    rows, n = Z.shape
    lanes = np.empty(n * LANES, dtype=Z.dtype)
    work = np.empty(n * LANES, dtype=Z.dtype)
    top = np.empty(LANES, dtype=Z.dtype)
    for start in range(0, rows, LANES):
        count = min(LANES, rows - start)
        _load(Z, start, count, lanes, n)
        for b in range(signs.shape[0]):
            column = first + b * n
            width = min(n, n_columns - column)
            _apply_signs(lanes, signs[b], work, n)
            transform_wht(work, n)
            _lane_maxima(work, width, top)
            for i in range(count):
                scores, codes = best_scores[start + i], best_codes[start + i]
                if top[i] >= scores[-1]:
                    for x in range(width):
                        score = work[x * LANES + i]
                        if score >= scores[-1]:
                            insert(scores, codes, score, column + x, labels)


@kernel
def wht_scores(Z, signs, out):
    """Fill ``out`` (rows, bases · n) with the unscaled scores of whole bases."""
    rows, n = Z.shape
    lanes = np.empty(n * LANES, dtype=Z.dtype)
    work = np.empty(n * LANES, dtype=Z.dtype)
    for start in range(0, rows, LANES):
        count = min(LANES, rows - start)
        _load(Z, start, count, lanes, n)
        for b in range(signs.shape[0]):
            _apply_signs(lanes, signs[b], work, n)
            transform_wht(work, n)
            for i in range(count):
                for x in range(n):
                    out[start + i, b * n + x] = work[x * LANES + i]


@kernel
def fill_signs(phases, which, shifts, scale, out):
    """``out[i, x] = scale · (−1)^{phases[which[i], x] + shifts[i]·x}``, · the bitwise product."""
    for i in range(which.size):
        a = np.uint32(shifts[i])
        phase = phases[which[i]]
        line = out[i]
        for x in range(phase.size):
            bit = np.uint32(phase[x]) ^ parity(a & np.uint32(x))
            line[x] = -scale if bit else scale
