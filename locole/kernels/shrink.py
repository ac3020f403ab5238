"""Soft thresholds of some rows of weights."""

from __future__ import annotations

from locole.kernels.jit import inline, kernel
from locole.kernels.simd import WIDTH, broadcast, load, maximum, minimum, store, zeros

__all__ = ["shrink_rows", "shrunk"]


@inline
def shrunk(v, l1):
    """Soft threshold of a number: v − clip(v, −l1, l1)."""
    return v - min(max(v, -l1), l1)


@kernel
def shrink_rows(features, amounts, width, weights):
    """Move the weights of ``features[i]`` towards zero by ``amounts[i]``, but not beyond.

    weights : (features · width,), width a multiple of WIDTH.
    """
    nought = zeros(weights)
    for i in range(features.size):
        amount, first = broadcast(amounts[i]), features[i] * width
        for at in range(first, first + width, WIDTH):
            value = load(weights, at)
            # What is taken away is the value itself where that is smaller: exactly zero is left.
            taken = minimum(maximum(value, nought - amount), amount)
            store(weights, at, value - taken)
