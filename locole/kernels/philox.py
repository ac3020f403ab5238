"""Philox4x32-10: random bits as a pure function of (seed, stream, label, position).

The generator of Salmon, Moraes, Dror and Shaw (SC 2011). The counter holds the position of the
block of four words, the stream and the label; the key is the seed.
"""

from __future__ import annotations

import math

import numpy as np

from locole.kernels.jit import inline, kernel

__all__ = ["fill_gaussian", "fill_rademacher", "philox4x32"]

_M0 = np.uint64(0xD2511F53)
_M1 = np.uint64(0xCD9E8D57)
_W0 = np.uint64(0x9E3779B9)
_W1 = np.uint64(0xBB67AE85)
_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)


@inline
def philox4x32(c0, c1, c2, c3, k0, k1):
    """Ten rounds on a counter of four 32-bit words (each held in a uint64)."""
    for _ in range(10):
        p0 = _M0 * c0
        p1 = _M1 * c2
        c0, c1, c2, c3 = (p1 >> _32) ^ c1 ^ k0, p1 & _LOW, (p0 >> _32) ^ c3 ^ k1, p0 & _LOW
        k0 = (k0 + _W0) & _LOW
        k1 = (k1 + _W1) & _LOW
    return c0, c1, c2, c3


@inline
def _words(label, block, seed, stream):
    """Four random words for one block of one label's vector."""
    return philox4x32(
        np.uint64(block),
        np.uint64(stream),
        np.uint64(label) & _LOW,
        np.uint64(label) >> _32,
        np.uint64(seed) & _LOW,
        np.uint64(seed) >> _32,
    )


@kernel
def fill_rademacher(labels, seed, stream, scale, out):
    """``out[i]``: ±scale from the random bits of label ``labels[i]``, 128 entries a block."""
    n = out.shape[1]
    for i in range(labels.size):
        for block in range((n + 127) // 128):
            words = _words(labels[i], block, seed, stream)
            for w in range(4):
                word = words[w]
                start = block * 128 + w * 32
                for j in range(min(32, n - start)):
                    bit = (word >> np.uint64(j)) & np.uint64(1)
                    out[i, start + j] = scale if bit else -scale


@kernel
def fill_gaussian(labels, seed, stream, out):
    """``out[i]``: independent normal entries (Box–Muller), scaled to unit length, label by label."""
    n = out.shape[1]
    line = np.empty(n + 3, dtype=np.float64)
    unit = 1.0 / 4294967296.0
    for i in range(labels.size):
        total = 0.0
        for block in range((n + 3) // 4):
            words = _words(labels[i], block, seed, stream)
            for pair in range(2):
                # (word + ½)/2³² lies strictly inside (0, 1): the logarithm is finite.
                radius = math.sqrt(-2.0 * math.log((words[2 * pair] + 0.5) * unit))
                angle = 2.0 * math.pi * (words[2 * pair + 1] * unit)
                line[block * 4 + 2 * pair] = radius * math.cos(angle)
                line[block * 4 + 2 * pair + 1] = radius * math.sin(angle)
        for j in range(n):
            total += line[j] * line[j]
        norm = math.sqrt(total)
        for j in range(n):
            out[i, j] = line[j] / norm
