"""Weights in fewer bits: half precision, or a byte or half of one with a scale for each feature."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Storage", "Weights", "narrowed", "pack", "unpack", "widened"]

# Rows packed at a time.
_ROWS = 1024
# Largest whole numbers in a byte and in four bits.
_MOST, _MOST_IN_FOUR = 127, 7
# Four bits hold a number from −8 to 7 as one from 0 to 15.
_ZERO = 8

Storage = Literal["float32", "float16", "int8", "int4"]


class Weights(NamedTuple):
    """Stored numbers and, for int8 and int4, what each feature's are to be multiplied with."""

    numbers: NDArray
    """float32, float16 as uint16, int8, or two numbers of four bits in a uint8, the first in the low
    bits."""
    scales: NDArray[np.float32]

    @property
    def width(self) -> int:
        """Numbers of each feature."""
        return int(self.numbers.shape[1] * (2 if self.numbers.dtype == np.uint8 else 1))


def pack(
    W: NDArray[np.float32], storage: Storage, dither: np.random.Generator | None = None
) -> Weights:
    """Store weights of shape (n_features, width); for int4 the width is even.

    Half precision errs by 2^-11 of a weight at most (weights below 6e-8 vanish); int8 by 1/254 of
    the feature's largest weight, int4 by 1/14. With ``dither``, these are rounded up or down at
    random, so that the mean is right: many small changes, each of which would be rounded away, then
    add up.
    """
    none = np.empty(0, dtype=np.float32)
    if storage == "float32":
        return Weights(W, none)
    if storage == "float16":
        limit = np.finfo(np.float16).max
        return Weights(W.clip(-limit, limit).astype(np.float16).view(np.uint16), none)
    is_four = storage == "int4"
    most = _MOST_IN_FOUR if is_four else _MOST
    shape, dtype = (W.shape[0], W.shape[1] // (1 + is_four)), np.uint8 if is_four else np.int8
    numbers, scales = np.empty(shape, dtype=dtype), np.empty(W.shape[0], dtype=np.float32)
    # A piece after the other stays in the cache.
    for first in range(0, W.shape[0], _ROWS):
        rows = slice(first, first + _ROWS)
        scales[rows] = np.maximum(
            W[rows].max(axis=1, initial=0.0), -W[rows].min(axis=1, initial=0.0)
        )
        scales[rows] /= np.float32(most)
        part = W[rows] / np.where(scales[rows] > 0, scales[rows], np.float32(1))[:, None]
        if dither is None:
            np.rint(part, out=part)
        else:
            part += dither.random(part.shape, dtype=np.float32)
            np.floor(part, out=part)
        part.clip(-most, most, out=part)
        if is_four:
            nibbles = (part + _ZERO).astype(np.uint8)
            numbers[rows] = nibbles[:, ::2] | nibbles[:, 1::2] << 4
        else:
            numbers[rows] = part
    return Weights(numbers, scales)


def unpack(weights: Weights) -> NDArray[np.float32]:
    """Return the weights as float32."""
    numbers, scales = weights
    if numbers.dtype == np.uint8:
        numbers, scales = widened(weights)
    if numbers.dtype == np.uint16:
        return numbers.view(np.float16).astype(np.float32)
    if numbers.dtype == np.int8:
        return numbers * scales[:, None]
    return numbers


def narrowed(weights: Weights) -> Weights:
    """Return weights in bytes as weights of four bits."""
    numbers, scales = weights
    found = Weights(np.empty((numbers.shape[0], weights.width // 2), np.uint8), scales.copy())
    for first in range(0, numbers.shape[0], _ROWS):
        rows = slice(first, first + _ROWS)
        part = Weights(numbers[rows], scales[rows])
        found.numbers[rows], found.scales[rows] = pack(unpack(part), "int4")
    return found


def widened(weights: Weights) -> Weights:
    """Return the same weights in whole bytes instead of four bits each."""
    numbers, scales = weights
    wide = np.empty((numbers.shape[0], weights.width), dtype=np.int8)
    wide[:, ::2], wide[:, 1::2] = numbers & 15, numbers >> 4
    wide -= _ZERO
    # As large as a byte holds, so that the scales of later numbers need not change for them.
    factor = _MOST // _MOST_IN_FOUR
    wide *= factor
    return Weights(wide, scales / np.float32(factor))
