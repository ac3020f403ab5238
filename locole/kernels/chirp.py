"""Polynomial phases modulo a prime: exponents of Nelson's vectors and the packing for their FFT."""

from __future__ import annotations

from locole.kernels.jit import kernel

__all__ = ["fill_exponents", "fill_from_table", "pack_pairs"]


@kernel
def fill_exponents(digits, n, out):
    """``out[i, u−1] = Σ_j digits[i, j]·u^{j+1} mod n`` for u = 1 … n (Horner)."""
    r = digits.shape[1]
    for i in range(digits.shape[0]):
        for u in range(1, n + 1):
            value = 0
            for j in range(r - 1, -1, -1):
                value = (value + digits[i, j]) * u % n
            out[i, u - 1] = value


@kernel
def fill_from_table(exponents, cosines, sines, out):
    """``out[i] = [cosines[e], sines[e]]`` over the exponents e of row i."""
    n = exponents.shape[1]
    for i in range(exponents.shape[0]):
        for u in range(n):
            e = exponents[i, u]
            out[i, u] = cosines[e]
            out[i, n + u] = sines[e]


@kernel
def pack_pairs(Z, chirps, out):
    """Fold every row with every pair of chirps, ready for one complex FFT a pair.

    The score of digit a is Re Σ_u h(u) e^{−2πi a u/n} with h = z · conj(chirp). The real part of a
    DFT is the DFT of the Hermitian part of its input, (h(u) + conj h(−u))/2; two Hermitian parts
    p + i q share one transform, whose real and imaginary parts are the two sets of scores.

    Z : (rows, 2n) real view; chirps : (2·pairs, n) conjugated, entry u−1 for u = 1 … n;
    out : (rows, pairs, n) complex, entry u for u = 0 … n−1.
    """
    n = chirps.shape[1]
    for i in range(Z.shape[0]):
        re, im = Z[i, :n], Z[i, n:]
        for p in range(out.shape[1]):
            c, d = chirps[2 * p], chirps[2 * p + 1]
            line = out[i, p]
            # u = 0 is stored last; its Hermitian part is the real part.
            line[0] = complex(
                re[n - 1] * c[n - 1].real - im[n - 1] * c[n - 1].imag,
                re[n - 1] * d[n - 1].real - im[n - 1] * d[n - 1].imag,
            )
            for u in range(1, (n + 1) // 2):
                a, b = u - 1, n - u - 1
                # h(u) and h(−u) under both chirps
                pr = re[a] * c[a].real - im[a] * c[a].imag
                pi = re[a] * c[a].imag + im[a] * c[a].real
                mr = re[b] * c[b].real - im[b] * c[b].imag
                mi = re[b] * c[b].imag + im[b] * c[b].real
                qr = re[a] * d[a].real - im[a] * d[a].imag
                qi = re[a] * d[a].imag + im[a] * d[a].real
                nr = re[b] * d[b].real - im[b] * d[b].imag
                ni = re[b] * d[b].imag + im[b] * d[b].real
                er, ei = (pr + mr) * 0.5, (pi - mi) * 0.5
                fr, fi = (qr + nr) * 0.5, (qi - ni) * 0.5
                line[u] = complex(er - fi, ei + fr)
                line[n - u] = complex(er + fi, fr - ei)
