"""Fast Walsh–Hadamard transforms of many rows side by side, and signs of quadratic forms."""

from __future__ import annotations

import numpy as np

from locole.kernels.jit import inline, kernel
from locole.kernels.lanes import (
    CHUNK,
    LANES,
    load_rows,
    make_lanes,
    merge_chunk,
    place,
    thresholds,
)
from locole.kernels.simd import aligned, broadcast, load, store

__all__ = ["fill_signs", "scan_wht", "transform_wht", "wht_scores"]


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
def transform_down_to(x, n, size, smallest):
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
def transform_chunk(x, start, size):
    """Transform the ``size`` ≤ 64 positions from ``start`` on."""
    if size == CHUNK:
        for j in range(4):
            _radix16(x, start + j * LANES, 4 * LANES)
        for j in range(0, CHUNK, 4):
            _radix4(x, start + j * LANES, LANES)
    else:
        part = x[start : start + size * LANES]
        transform_down_to(part, size, size, 1)


@kernel
def transform_wht(x, n):
    """Transform ``x`` (n positions in lanes) in place: y[a] = Σ_x (−1)^{a·x} x[x]."""
    chunk = min(n, CHUNK)
    transform_down_to(x, n, n, chunk)
    for block in range(0, n, chunk):
        transform_chunk(x, place(block), chunk)


@inline
def _signed(lanes, sign, x):
    return load(lanes, place(x)) * broadcast(sign[x])


@inline
def _signed_column4(lanes, sign, x, step):
    return _butterfly4(
        _signed(lanes, sign, x),
        _signed(lanes, sign, x + step),
        _signed(lanes, sign, x + 2 * step),
        _signed(lanes, sign, x + 3 * step),
    )


@kernel
def flip(lanes, sign, work, chunk):
    """Flip signs on the way into the first pass; return the length of the sub-transforms left."""
    n = sign.size
    if n >= 16 * chunk and n > chunk:
        height = n // 16
        w = place(height)
        for j in range(height):
            a = _signed_column4(lanes, sign, j, 4 * height)
            b = _signed_column4(lanes, sign, j + height, 4 * height)
            c = _signed_column4(lanes, sign, j + 2 * height, 4 * height)
            d = _signed_column4(lanes, sign, j + 3 * height, 4 * height)
            at = place(j)
            _store4(work, at, w, _butterfly4(a[0], b[0], c[0], d[0]))
            _store4(work, at + 4 * w, w, _butterfly4(a[1], b[1], c[1], d[1]))
            _store4(work, at + 8 * w, w, _butterfly4(a[2], b[2], c[2], d[2]))
            _store4(work, at + 12 * w, w, _butterfly4(a[3], b[3], c[3], d[3]))
        return height
    if n >= 4 * chunk:
        height = n // 4
        for j in range(height):
            _store4(work, place(j), place(height), _signed_column4(lanes, sign, j, height))
        return height
    for x in range(n):
        store(work, place(x), _signed(lanes, sign, x))
    return n


@kernel
def scan_wht(Z, signs, first, n_columns, labels, best_scores, best_codes):
    """Merge the scores of whole bases into the rows' lists of best columns.

    Z : (rows, n); signs : (bases, n) of ±1; basis b holds columns ``first + b n …``, of which those
    below ``n_columns`` exist.
    """
    rows, n = Z.shape
    chunk = min(n, CHUNK)
    lanes, work = make_lanes(n, Z), make_lanes(n, Z)
    least, top = aligned(LANES, Z), aligned(LANES, Z)
    for start in range(0, rows, LANES):
        count = min(LANES, rows - start)
        load_rows(Z, start, count, lanes)
        thresholds(best_scores, start, count, least)
        for b in range(signs.shape[0]):
            column = first + b * n
            size = flip(lanes, signs[b], work, chunk)
            transform_down_to(work, n, size, chunk)
            for x in range(0, min(n, n_columns - column), chunk):
                at, width = place(x), min(chunk, n_columns - column - x)
                transform_chunk(work, at, chunk)
                merge_chunk(
                    work,
                    at,
                    width,
                    start,
                    count,
                    column + x,
                    labels,
                    least,
                    top,
                    best_scores,
                    best_codes,
                )


@kernel
def wht_scores(Z, signs, out):
    """Fill ``out`` (rows, bases · n) with the unscaled scores of whole bases."""
    rows, n = Z.shape
    chunk = min(n, CHUNK)
    lanes, work = make_lanes(n, Z), make_lanes(n, Z)
    for start in range(0, rows, LANES):
        count = min(LANES, rows - start)
        load_rows(Z, start, count, lanes)
        for b in range(signs.shape[0]):
            size = flip(lanes, signs[b], work, chunk)
            transform_down_to(work, n, size, chunk)
            for x in range(0, n, chunk):
                transform_chunk(work, place(x), chunk)
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
