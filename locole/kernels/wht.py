"""Fast Walsh–Hadamard transforms of many rows side by side, and signs of quadratic forms.

Rows lie in *lanes*: the numbers that LANES rows have at position x stand side by side, so every
butterfly is one vector operation. Position x starts at ``place(x)``: a gap of one vector after every
64 positions keeps strides off the powers of two that would hit one set of the cache only.
"""

from __future__ import annotations

import numpy as np

from locole.kernels.jit import inline, kernel
from locole.kernels.simd import WIDTH, aligned, broadcast, load, maximum, reaches, store
from locole.kernels.topk import insert

__all__ = ["LANES", "fill_signs", "place", "scan_wht", "transform_wht", "wht_scores"]

LANES = WIDTH
# Positions of a sub-transform that is finished in the first-level cache: 64 · 16 · 4 B = 4 KB.
_CHUNK = 64


@inline
def place(x):
    """Where the lanes of position x start."""
    return (x + x // _CHUNK) * LANES


@inline
def parity(v):
    """Parity of the bits of a uint32."""
    for step in (16, 8, 4, 2, 1):
        v ^= v >> np.uint32(step)
    return v & np.uint32(1)


@inline
def _butterfly4(a, b, c, d):
    p, q, r, s = a + c, a - c, b + d, b - d
    return p + r, p - r, q + s, q - s


@inline
def _store4(x, i, w, values):
    store(x, i, values[0])
    store(x, i + w, values[1])
    store(x, i + 2 * w, values[2])
    store(x, i + 3 * w, values[3])


@inline
def _radix2(x, i, w):
    a, b = load(x, i), load(x, i + w)
    store(x, i, a + b)
    store(x, i + w, a - b)


@inline
def _radix4(x, i, w):
    _store4(
        x, i, w, _butterfly4(load(x, i), load(x, i + w), load(x, i + 2 * w), load(x, i + 3 * w))
    )


@inline
def _column4(x, i, w):
    return _butterfly4(load(x, i), load(x, i + 4 * w), load(x, i + 8 * w), load(x, i + 12 * w))


@inline
def _radix16(x, i, w):
    """Four passes at once: sixteen vectors fit the registers."""
    a, b = _column4(x, i, w), _column4(x, i + w, w)
    c, d = _column4(x, i + 2 * w, w), _column4(x, i + 3 * w, w)
    _store4(x, i, w, _butterfly4(a[0], b[0], c[0], d[0]))
    _store4(x, i + 4 * w, w, _butterfly4(a[1], b[1], c[1], d[1]))
    _store4(x, i + 8 * w, w, _butterfly4(a[2], b[2], c[2], d[2]))
    _store4(x, i + 12 * w, w, _butterfly4(a[3], b[3], c[3], d[3]))


@kernel
def _transform_down_to(x, n, size, smallest):
    """All passes that bring sub-transforms from ``size`` down to ``smallest`` positions."""
    while size > smallest:
        radix = 16 if size >= 16 * smallest else 4 if size >= 4 * smallest else 2
        height = size // radix
        w = place(height)
        for block in range(0, n, size):
            for j in range(block, block + height):
                if radix == 16:
                    _radix16(x, place(j), w)
                elif radix == 4:
                    _radix4(x, place(j), w)
                else:
                    _radix2(x, place(j), w)
        size = height


@kernel
def _transform_chunk(x, start, size):
    """Transform the ``size`` ≤ 64 positions from ``start`` on."""
    if size == _CHUNK:
        for j in range(4):
            _radix16(x, start + j * LANES, 4 * LANES)
        for j in range(0, _CHUNK, 4):
            _radix4(x, start + j * LANES, LANES)
    else:
        part = x[start : start + size * LANES]
        _transform_down_to(part, size, size, 1)


@kernel
def transform_wht(x, n):
    """Transform ``x`` (n positions in lanes) in place: y[a] = Σ_x (−1)^{a·x} x[x]."""
    chunk = min(n, _CHUNK)
    _transform_down_to(x, n, n, chunk)
    for block in range(0, n, chunk):
        _transform_chunk(x, place(block), chunk)


@inline
def _load_rows(Z, first, count, lanes):
    """Transpose rows ``first … first+count−1`` into lanes; lanes without a row are zero."""
    lanes[:] = 0
    for i in range(count):
        for x in range(Z.shape[1]):
            lanes[place(x) + i] = Z[first + i, x]


@inline
def _flip(lanes, sign, work):
    for x in range(sign.size):
        store(work, place(x), load(lanes, place(x)) * broadcast(sign[x]))


@inline
def _chunk_maxima(work, start, count):
    top = load(work, start)
    for j in range(1, count):
        top = maximum(top, load(work, start + j * LANES))
    return top


@kernel
def scan_wht(Z, signs, first, n_columns, labels, best_scores, best_codes):
    """Merge the scores of whole bases into the rows' lists of best columns.

    Z : (rows, n); signs : (bases, n) of ±1; basis b holds columns ``first + b n …``, of which those
    below ``n_columns`` exist. A chunk whose maxima reach no row's list is left at once.
    """
    rows, n = Z.shape
    chunk = min(n, _CHUNK)
    lanes, work = aligned(place(n) + LANES, Z), aligned(place(n) + LANES, Z)
    least, top = aligned(LANES, Z), aligned(LANES, Z)
    for start in range(0, rows, LANES):
        count = min(LANES, rows - start)
        _load_rows(Z, start, count, lanes)
        least[:] = np.inf
        for i in range(count):
            least[i] = best_scores[start + i, -1]
        for b in range(signs.shape[0]):
            column = first + b * n
            _flip(lanes, signs[b], work)
            _transform_down_to(work, n, n, chunk)
            for block in range(0, min(n, n_columns - column), chunk):
                at = place(block)
                _transform_chunk(work, at, chunk)
                width = min(chunk, n_columns - column - block)
                maxima = _chunk_maxima(work, at, width)
                if not reaches(maxima, load(least, 0)):
                    continue
                store(top, 0, maxima)
                for i in range(count):
                    if top[i] < least[i]:
                        continue
                    row = start + i
                    for x in range(width):
                        score = work[at + x * LANES + i]
                        if score >= least[i]:
                            code = column + block + x
                            insert(best_scores[row], best_codes[row], score, code, labels)
                            least[i] = best_scores[row, -1]


@kernel
def wht_scores(Z, signs, out):
    """Fill ``out`` (rows, bases · n) with the unscaled scores of whole bases."""
    rows, n = Z.shape
    lanes, work = aligned(place(n) + LANES, Z), aligned(place(n) + LANES, Z)
    for start in range(0, rows, LANES):
        count = min(LANES, rows - start)
        _load_rows(Z, start, count, lanes)
        for b in range(signs.shape[0]):
            _flip(lanes, signs[b], work)
            transform_wht(work, n)
            for i in range(count):
                for x in range(n):
                    out[start + i, b * n + x] = work[place(x) + i]


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
