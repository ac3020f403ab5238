"""Polynomial phases modulo a prime: Nelson's vectors."""

from __future__ import annotations

from locole.kernels.jit import kernel

__all__ = ["fill_exponents", "fill_from_table"]


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
