"""Softmax over all labels of Nelson's code: chirps and Fourier transforms, two bases at a time.

The logits of two bases are the real and imaginary part of one transform (`kernels.fourier`). The way
back is its transpose. With real weights v, w of the two bases and D the transform of v + i w,

    Σ_a v_a exp(2πi a u/n) = (D(−u) + conj D(u))/2,   Σ_a w_a exp(2πi a u/n) = (D(−u) − conj D(u))/2i,

each to be multiplied by the basis's own chirp. So a pair of bases takes two transforms in all.
"""

from __future__ import annotations

import numpy as np

from locole.kernels.cross_entropy import SLACK, adjust, move_peak
from locole.kernels.fourier import convolve, put, score_pair, times, times_conj
from locole.kernels.jit import inline, kernel
from locole.kernels.lanes import LANES, make_lanes, place
from locole.kernels.simd import broadcast, exceeds, exp, load, maximum, store, zeros

__all__ = ["pull_pair", "softmax_dft"]


@inline
def _waved(re, im, a, wave):
    """Position a times the wave."""
    i, c, s = place(a), broadcast(wave[a].real), broadcast(wave[a].imag)
    return times(load(re, i), load(im, i), c, s)


@inline
def _add(pull, u, n, er, ei, fr, fi, chirp, other):
    """Entry of u: e times the first basis's chirp and f times the other's; both are conjugated."""
    at, to = place(u - 1), place(n + u - 1)
    c, s = broadcast(chirp[u - 1].real), broadcast(chirp[u - 1].imag)
    pr, pi = times_conj(er, ei, c, s)
    c, s = broadcast(other[u - 1].real), broadcast(other[u - 1].imag)
    qr, qi = times_conj(fr, fi, c, s)
    store(pull, at, load(pull, at) + (pr + qr))
    store(pull, to, load(pull, to) + (pi + qi))


@kernel
def pull_pair(re, im, chirp, other, wave, plan, pull):
    """Add ``2 Σ_a (re_a g_a + im_a g'_a)``, g and g' the two bases without their scale 1/√n."""
    sizes, cosines, sines, spectrum_re, spectrum_im = plan
    n = chirp.size
    for a in range(n):
        put(re, im, place(a), _waved(re, im, a, wave))
    for x in range(n, sizes[0]):
        put(re, im, place(x), (zeros(re), zeros(re)))
    convolve(re, im, sizes, cosines, sines, spectrum_re, spectrum_im)
    dr, di = _waved(re, im, 0, wave)
    nought = zeros(re)
    _add(pull, n, n, dr + dr, nought, di + di, nought, chirp, other)
    for u in range(1, (n + 1) // 2):
        ar, ai = _waved(re, im, u, wave)
        br, bi = _waved(re, im, n - u, wave)
        er, ei, fr, fi = br + ar, bi - ai, bi + ai, ar - br
        _add(pull, u, n, er, ei, fr, fi, chirp, other)
        # What belongs to real weights is Hermitian.
        _add(pull, n - u, n, er, nought - ei, fr, nought - fi, chirp, other)


@kernel
def softmax_dft(
    lanes, chirps, wave, plan, first, n_columns, labels, offsets, peak, total, pull
):  # fmt: skip
    """Add an even number of bases to the running softmax of groups of LANES rows.

    lanes : (groups, place(2n) + LANES), real views times 1/(2√n); pull : the same shape, to be
    multiplied by as much; chirps : (bases, n) conjugated; wave, plan : see `locole.kernels.plans`; the
    rest as in `softmax_wht`.
    """
    n, m = chirps.shape[1], plan[0][0]
    re, im = make_lanes(m, lanes), make_lanes(m, lanes)
    for g in range(lanes.shape[0]):
        at, mine = g * LANES, pull[g]
        b = 0
        while b < chirps.shape[0]:
            score_pair(lanes[g], chirps[b], chirps[b + 1], wave, plan, re, im)
            base = load(peak, at)
            top, added = base, load(total, at)
            for half in range(2):
                logits, column = re if half == 0 else im, first + (b + half) * n
                width = min(n, n_columns - column)
                if width < n or labels.size > 0 or offsets.size > 0:
                    adjust(logits, 0, n, width, labels, offsets, column)
                for a in range(n):
                    logit = load(logits, place(a))
                    top = maximum(top, logit)
                    weight = exp(logit - base)
                    added = added + weight
                    store(logits, place(a), weight)
            # Not yet counted: the pair is done again from the new peak.
            if exceeds(top, base + broadcast(np.float32(SLACK))):
                move_peak(at, 2 * n, top, peak, total, mine)
                continue
            store(total, at, added)
            pull_pair(re, im, chirps[b], chirps[b + 1], wave, plan, mine)
            b += 2
