"""Discrete Fourier transforms of prime length for many rows side by side, by Bluestein's algorithm.

With w[u] = exp(−πi u²/n) and 2au = a² + u² − (a−u)²,

    Σ_u x[u] exp(−2πi a u/n) = w[a] · Σ_u (x[u] w[u]) · conj w[a−u],

a convolution, done by transforms of length m = 2^k ≥ 2n−1. The forward transform leaves its output
in scrambled order, the inverse takes it from there, and the spectrum of conj w is stored in the same
order: nothing is ever reordered.

Only real parts are wanted. The real part of a DFT is the DFT of the input's Hermitian part,
(h(u) + conj h(−u))/2, and two Hermitian parts p + i q share one transform, whose real and imaginary
parts are the two answers: one transform scores two bases.
"""

from __future__ import annotations

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
from locole.kernels.simd import aligned, broadcast, fma, fnma, load, store, zeros

__all__ = [
    "convolve",
    "dft_scores",
    "forward",
    "put",
    "scan_dft",
    "score_pair",
    "times",
    "times_conj",
]

# Positions of a sub-transform that fits the first-level cache: 256 · 16 · 8 B = 32 KB.
_CACHED = 256


@inline
def times(ar, ai, br, bi):
    """Complex product."""
    return fnma(ai, bi, ar * br), fma(ar, bi, ai * br)


@inline
def times_conj(ar, ai, br, bi):
    """Complex product with the conjugate of b."""
    return fma(ai, bi, ar * br), fnma(ar, bi, ai * br)


@inline
def put(re, im, at, value):
    """Store a complex vector."""
    store(re, at, value[0])
    store(im, at, value[1])


@inline
def _forward2(re, im, i, w, c, s):
    ar, ai, br, bi = load(re, i), load(im, i), load(re, i + w), load(im, i + w)
    put(re, im, i, (ar + br, ai + bi))
    put(re, im, i + w, times(ar - br, ai - bi, broadcast(c), broadcast(s)))


@inline
def _inverse2(re, im, i, w, c, s):
    ar, ai = load(re, i), load(im, i)
    br, bi = times_conj(load(re, i + w), load(im, i + w), broadcast(c), broadcast(s))
    put(re, im, i, (ar + br, ai + bi))
    put(re, im, i + w, (ar - br, ai - bi))


@inline
def _forward4(re, im, i, w, cosines, sines, t):
    """Radix-4 butterfly, then the twiddles exp(−2πi k t/m), k = 0 … 3."""
    ar, ai, br, bi = load(re, i), load(im, i), load(re, i + w), load(im, i + w)
    cr, ci = load(re, i + 2 * w), load(im, i + 2 * w)
    dr, di = load(re, i + 3 * w), load(im, i + 3 * w)
    pr, pi, qr, qi = ar + cr, ai + ci, ar - cr, ai - ci
    rr, ri, sr, si = br + dr, bi + di, br - dr, bi - di
    put(re, im, i, (pr + rr, pi + ri))
    c, s = broadcast(cosines[t]), broadcast(sines[t])
    put(re, im, i + w, times(qr + si, qi - sr, c, s))
    c, s = broadcast(cosines[2 * t]), broadcast(sines[2 * t])
    put(re, im, i + 2 * w, times(pr - rr, pi - ri, c, s))
    c, s = broadcast(cosines[3 * t]), broadcast(sines[3 * t])
    put(re, im, i + 3 * w, times(qr - si, qi + sr, c, s))


@inline
def _inverse4(re, im, i, w, cosines, sines, t):
    """The mirror image: conjugate twiddles, then the inverse butterfly."""
    ar, ai = load(re, i), load(im, i)
    c, s = broadcast(cosines[t]), broadcast(sines[t])
    br, bi = times_conj(load(re, i + w), load(im, i + w), c, s)
    c, s = broadcast(cosines[2 * t]), broadcast(sines[2 * t])
    cr, ci = times_conj(load(re, i + 2 * w), load(im, i + 2 * w), c, s)
    c, s = broadcast(cosines[3 * t]), broadcast(sines[3 * t])
    dr, di = times_conj(load(re, i + 3 * w), load(im, i + 3 * w), c, s)
    pr, pi, qr, qi = ar + cr, ai + ci, ar - cr, ai - ci
    rr, ri, sr, si = br + dr, bi + di, br - dr, bi - di
    put(re, im, i, (pr + rr, pi + ri))
    put(re, im, i + w, (qr - si, qi + sr))
    put(re, im, i + 2 * w, (pr - rr, pi - ri))
    put(re, im, i + 3 * w, (qr + si, qi - sr))


@kernel
def _forward_pass(re, im, start, stop, size, height, m, cosines, sines):
    """Split sub-transforms of ``size`` positions into sub-transforms of ``height``."""
    w, step = place(height), m // size
    for block in range(start, stop, size):
        for j in range(height):
            i = place(block + j)
            if size == 2 * height:
                _forward2(re, im, i, w, cosines[j * step], sines[j * step])
            else:
                _forward4(re, im, i, w, cosines, sines, j * step)


@kernel
def _inverse_pass(re, im, start, stop, size, height, m, cosines, sines):
    """Join sub-transforms of ``height`` positions into sub-transforms of ``size``."""
    w, step = place(height), m // size
    for block in range(start, stop, size):
        for j in range(height):
            i = place(block + j)
            if size == 2 * height:
                _inverse2(re, im, i, w, cosines[j * step], sines[j * step])
            else:
                _inverse4(re, im, i, w, cosines, sines, j * step)


@kernel
def forward(re, im, sizes, cosines, sines):
    """Transform positions in lanes, in place, into scrambled order.

    sizes : m, …, 4, 1: lengths of the sub-transforms, each a half or a quarter of the one before;
    cosines, sines : exp(−2πi t/m) for t < m.
    """
    m = sizes[0]
    for k in range(sizes.size - 1):
        _forward_pass(re, im, 0, m, sizes[k], sizes[k + 1], m, cosines, sines)


@kernel
def convolve(re, im, sizes, cosines, sines, spectrum_re, spectrum_im):
    """Forward, times the spectrum, and back; what fits the cache is finished block by block."""
    m, top = sizes[0], 0
    while sizes[top] > _CACHED:
        _forward_pass(re, im, 0, m, sizes[top], sizes[top + 1], m, cosines, sines)
        top += 1
    for start in range(0, m, sizes[top]):
        stop = start + sizes[top]
        for k in range(top, sizes.size - 1):
            _forward_pass(re, im, start, stop, sizes[k], sizes[k + 1], m, cosines, sines)
        for x in range(start, stop):
            i, c, s = place(x), broadcast(spectrum_re[x]), broadcast(spectrum_im[x])
            put(re, im, i, times(load(re, i), load(im, i), c, s))
        for k in range(sizes.size - 2, top - 1, -1):
            _inverse_pass(re, im, start, stop, sizes[k], sizes[k + 1], m, cosines, sines)
    for k in range(top - 1, -1, -1):
        _inverse_pass(re, im, 0, m, sizes[k], sizes[k + 1], m, cosines, sines)


@inline
def _phased(lanes, a, n, chirp):
    """h(u) = z(u) · conj chirp(u); ``a`` is the entry of u."""
    c, s = broadcast(chirp[a].real), broadcast(chirp[a].imag)
    return times(load(lanes, place(a)), load(lanes, place(n + a)), c, s)


@kernel
def _fold(lanes, chirp, other, wave, re, im):
    """Fill ``re + i im`` with w[u]·(p(u) + i q(u)), p and q twice the Hermitian parts under two chirps.

    Entry u−1 of the input belongs to u = 1 … n; w[n−u] = −w[u] because n is odd.
    """
    n = chirp.size
    pr, _ = _phased(lanes, n - 1, n, chirp)
    qr, _ = _phased(lanes, n - 1, n, other)
    put(re, im, 0, (pr + pr, qr + qr))
    for u in range(1, (n + 1) // 2):
        pr, pi = _phased(lanes, u - 1, n, chirp)
        mr, mi = _phased(lanes, n - u - 1, n, chirp)
        qr, qi = _phased(lanes, u - 1, n, other)
        nr, ni = _phased(lanes, n - u - 1, n, other)
        er, ei, fr, fi = pr + mr, pi - mi, qr + nr, qi - ni
        c, s = broadcast(wave[u].real), broadcast(wave[u].imag)
        put(re, im, place(u), times(er - fi, ei + fr, c, s))
        put(
            re,
            im,
            place(n - u),
            times(er + fi, fr - ei, broadcast(-wave[u].real), broadcast(-wave[u].imag)),
        )


@kernel
def score_pair(lanes, chirp, other, wave, plan, re, im):
    """Scores of two bases: ``re`` of the first, ``im`` of the second."""
    sizes, cosines, sines, spectrum_re, spectrum_im = plan
    n = chirp.size
    for x in range(n, sizes[0]):
        put(re, im, place(x), (zeros(re), zeros(re)))
    _fold(lanes, chirp, other, wave, re, im)
    convolve(re, im, sizes, cosines, sines, spectrum_re, spectrum_im)
    for a in range(n):
        i, c, s = place(a), broadcast(wave[a].real), broadcast(wave[a].imag)
        put(re, im, i, times(load(re, i), load(im, i), c, s))


@kernel
def scan_dft(Z, chirps, wave, plan, first, n_columns, labels, best_scores, best_codes):
    """Merge the scores of an even number of bases into the rows' lists of best columns.

    Z : (rows, 2n) real view, times 1/2; chirps : (bases, n) conjugated; wave, plan : see
    `locole.kernels.plans`. Basis b holds columns ``first + b n …``, those below ``n_columns`` exist.
    """
    n, m = chirps.shape[1], plan[0][0]
    lanes, re, im = make_lanes(2 * n, Z), make_lanes(m, Z), make_lanes(m, Z)
    least, top = aligned(LANES, Z), aligned(LANES, Z)
    for start in range(0, Z.shape[0], LANES):
        count = min(LANES, Z.shape[0] - start)
        load_rows(Z, start, count, lanes)
        thresholds(best_scores, start, count, least)
        for b in range(0, chirps.shape[0], 2):
            score_pair(lanes, chirps[b], chirps[b + 1], wave, plan, re, im)
            for half in range(2):
                scores, column = re if half == 0 else im, first + (b + half) * n
                for x in range(0, min(n, n_columns - column), CHUNK):
                    width = min(CHUNK, n - x, n_columns - column - x)
                    merge_chunk(
                        scores,
                        place(x),
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
def dft_scores(Z, chirps, wave, plan, out):
    """Fill ``out`` (rows, bases · n) with the scores of an even number of bases."""
    n, m = chirps.shape[1], plan[0][0]
    lanes, re, im = make_lanes(2 * n, Z), make_lanes(m, Z), make_lanes(m, Z)
    for start in range(0, Z.shape[0], LANES):
        count = min(LANES, Z.shape[0] - start)
        load_rows(Z, start, count, lanes)
        for b in range(0, chirps.shape[0], 2):
            score_pair(lanes, chirps[b], chirps[b + 1], wave, plan, re, im)
            for i in range(count):
                for x in range(n):
                    out[start + i, b * n + x] = re[place(x) + i]
                    out[start + i, (b + 1) * n + x] = im[place(x) + i]
