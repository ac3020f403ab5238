"""Binary linear learners that see one row at a time, BLOCK of them side by side."""

from __future__ import annotations

from locole.kernels.four import prefetch4
from locole.kernels.jit import kernel
from locole.kernels.simd import (
    WIDTH,
    broadcast,
    fma,
    fnma,
    load,
    maximum,
    store,
    zeros,
)

__all__ = ["BLOCK", "arow_pass", "perceptron_pass"]

#: Learners trained side by side: two vectors.
BLOCK = 2 * WIDTH


@kernel
def arow_pass(X, order, codes, signs, r, state, margins, sizes):
    """One pass of AROW over the rows in the given order.

    A learner has a mean μ and a diagonal Σ. With margin m = y·μᵀx ≤ 1 and v = xᵀΣx it moves by

        β = 1/(v + r),   μ += (1 − m)·β·y·Σx,   Σ −= β·(Σx)².

    state : (features · 2·BLOCK,), of each feature BLOCK entries of μ and then BLOCK of Σ, so that one
    visit reads neighbouring memory; X : Csr; signs : (labels · BLOCK,) of int8, the y of each label;
    margins and sizes : (BLOCK,), working memory.
    """
    indptr, indices, data = X
    for n in range(order.size):
        i = order[n]
        start, stop = indptr[i], indptr[i + 1]
        following = order[min(n + 1, order.size - 1)]
        ahead, end = indptr[following], indptr[following + 1]
        a = b = c = d = zeros(state)
        for k in range(start, stop):
            if ahead < end:
                # The next row's features are on their way while this one's are used.
                prefetch4(state, indices[ahead] * (2 * BLOCK))
                ahead += 1
            x, square, at = (
                broadcast(data[k]),
                broadcast(data[k] * data[k]),
                indices[k] * (2 * BLOCK),
            )
            a, b = fma(x, load(state, at), a), fma(x, load(state, at + WIDTH), b)
            c = fma(square, load(state, at + 2 * WIDTH), c)
            d = fma(square, load(state, at + 3 * WIDTH), d)
        store(margins, 0, a)
        store(margins, WIDTH, b)
        store(sizes, 0, c)
        store(sizes, WIDTH, d)
        own, moves = codes[i] * BLOCK, False
        for e in range(BLOCK):
            y = signs[own + e]
            slack = 1 - y * margins[e]
            if y != 0 and slack >= 0:
                sizes[e] = 1 / (sizes[e] + r)
                margins[e] = slack * sizes[e] * y
                moves = True
            else:
                sizes[e] = margins[e] = 0
        if not moves:
            continue
        a, b = load(margins, 0), load(margins, WIDTH)
        c, d = load(sizes, 0), load(sizes, WIDTH)
        nothing = zeros(state)
        for k in range(start, stop):
            x, at = broadcast(data[k]), indices[k] * (2 * BLOCK)
            s, t = load(state, at + 2 * WIDTH), load(state, at + 3 * WIDTH)
            p, q = s * x, t * x
            store(state, at, fma(a, p, load(state, at)))
            store(state, at + WIDTH, fma(b, q, load(state, at + WIDTH)))
            # Rounding must not make a variance negative where x is huge.
            store(state, at + 2 * WIDTH, maximum(fnma(c, p * p, s), nothing))
            store(state, at + 3 * WIDTH, maximum(fnma(d, q * q, t), nothing))


@kernel
def perceptron_pass(X, order, codes, signs, first, total, state, margins):
    """One pass of the averaged perceptron: if y·wᵀx ≤ 0, w += y·x.

    state : (features · 2·BLOCK,), of each feature BLOCK entries of w and then BLOCK of
    u = Σ (t/total)·(move at visit t), so that w − u is the average of w over all ``total`` visits, of
    which ``first`` have been made before. The rest is as in `arow_pass`.
    """
    indptr, indices, data = X
    for n in range(order.size):
        i = order[n]
        start, stop = indptr[i], indptr[i + 1]
        a = b = zeros(state)
        for k in range(start, stop):
            x, at = broadcast(data[k]), indices[k] * (2 * BLOCK)
            a, b = fma(x, load(state, at), a), fma(x, load(state, at + WIDTH), b)
        store(margins, 0, a)
        store(margins, WIDTH, b)
        own, moves = codes[i] * BLOCK, False
        for e in range(BLOCK):
            y = signs[own + e]
            wrong = y != 0 and y * margins[e] <= 0
            margins[e] = y if wrong else 0
            moves = moves or wrong
        if not moves:
            continue
        a, b = load(margins, 0), load(margins, WIDTH)
        time = (first + n) / total
        for k in range(start, stop):
            x, at = broadcast(data[k]), indices[k] * (2 * BLOCK)
            later = broadcast(data[k] * data.dtype.type(time))
            store(state, at, fma(x, a, load(state, at)))
            store(state, at + WIDTH, fma(x, b, load(state, at + WIDTH)))
            store(state, at + 2 * WIDTH, fma(later, a, load(state, at + 2 * WIDTH)))
            store(state, at + 3 * WIDTH, fma(later, b, load(state, at + 3 * WIDTH)))
