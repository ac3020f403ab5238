"""Products of dense rows with dense weights whose bits do not depend on how many rows there are."""

from __future__ import annotations

from locole.kernels.jit import kernel
from locole.kernels.simd import WIDTH, aligned, broadcast, fma, load, store, zeros

__all__ = ["fill_products"]

# Outputs whose weights are laid side by side; they stay in the cache while rows stream by.
_PANEL = 2 * WIDTH


@kernel
def fill_products(H, V, n_rows, n_outputs, size, out):
    """``out[i, j] = Σ_k H[i, k] · V[j, k]``, added up in the order of k.

    H : (n_rows · size,), V : (n_outputs · size,), out : (n_rows · n_outputs,), all of one type. BLAS
    rounds one row otherwise than many, and on some machines by the row's place among the others.
    Four rows times two vectors of outputs are under way at a time; where fewer rows are left the last
    one is computed again, which changes nothing.
    """
    panel, sums = aligned(size * _PANEL, H), aligned(4 * _PANEL, H)
    last = n_rows - 1
    for first in range(0, n_outputs, _PANEL):
        width = min(_PANEL, n_outputs - first)
        _fill_panel(V, first, width, size, panel)
        for i in range(0, n_rows, 4):
            p, q = i * size, min(i + 1, last) * size
            r, s = min(i + 2, last) * size, min(i + 3, last) * size
            a = b = c = d = e = f = g = h = zeros(H)
            for k in range(size):
                v, w = load(panel, k * _PANEL), load(panel, k * _PANEL + WIDTH)
                x, y = broadcast(H[p + k]), broadcast(H[q + k])
                a, b, c, d = fma(x, v, a), fma(x, w, b), fma(y, v, c), fma(y, w, d)
                x, y = broadcast(H[r + k]), broadcast(H[s + k])
                e, f, g, h = fma(x, v, e), fma(x, w, f), fma(y, v, g), fma(y, w, h)
            store(sums, 0, a)
            store(sums, WIDTH, b)
            store(sums, 2 * WIDTH, c)
            store(sums, 3 * WIDTH, d)
            store(sums, 4 * WIDTH, e)
            store(sums, 5 * WIDTH, f)
            store(sums, 6 * WIDTH, g)
            store(sums, 7 * WIDTH, h)
            for row in range(min(4, n_rows - i)):
                to = (i + row) * n_outputs + first
                for j in range(width):
                    out[to + j] = sums[row * _PANEL + j]


@kernel
def _fill_panel(V, first, width, size, panel):
    """``panel[k, j] = V[first + j, k]``, and zeros behind the last output."""
    if width < _PANEL:
        panel[:] = 0
    # Lines of the panel that stay in the nearest cache while all outputs are written to them.
    for start in range(0, size, 64):
        stop = min(start + 64, size)
        for j in range(width):
            for k in range(start, stop):
                panel[k * _PANEL + j] = V[(first + j) * size + k]
