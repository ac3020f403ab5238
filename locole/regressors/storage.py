"""Weights in fewer bits: half precision, or one byte with a scale for each feature."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Storage", "Weights", "pack", "unpack"]

# Rows packed at a time.
_ROWS = 1024

Storage = Literal["float32", "float16", "int8"]


class Weights(NamedTuple):
    """Stored numbers and, for int8, what each feature's are to be multiplied with."""

    numbers: NDArray
    scales: NDArray[np.float32]


def pack(
    W: NDArray[np.float32], storage: Storage, dither: np.random.Generator | None = None
) -> Weights:
    """Store weights of shape (n_features, width).

    Half precision errs by 2^-11 of a weight at most (weights below 6e-8 vanish); int8 by 1/254 of
    the feature's largest weight. With ``dither``, int8 is rounded up or down at random, so that the mean
    is right: many small changes, each of which would be rounded away, then add up.
    """
    none = np.empty(0, dtype=np.float32)
    if storage == "float32":
        return Weights(W, none)
    if storage == "float16":
        limit = np.finfo(np.float16).max
        return Weights(W.clip(-limit, limit).astype(np.float16).view(np.uint16), none)
    numbers, scales = np.empty(W.shape, dtype=np.int8), np.empty(W.shape[0], dtype=np.float32)
    # A piece after the other stays in the cache.
    for first in range(0, W.shape[0], _ROWS):
        rows = slice(first, first + _ROWS)
        scales[rows] = np.maximum(
            W[rows].max(axis=1, initial=0.0), -W[rows].min(axis=1, initial=0.0)
        )
        scales[rows] /= np.float32(127)
        part = W[rows] / np.where(scales[rows] > 0, scales[rows], np.float32(1))[:, None]
        if dither is None:
            np.rint(part, out=part)
        else:
            part += dither.random(part.shape, dtype=np.float32)
            np.floor(part, out=part)
        numbers[rows] = part.clip(-127, 127, out=part)
    return Weights(numbers, scales)


def unpack(weights: Weights) -> NDArray[np.float32]:
    """Return the weights as float32."""
    numbers, scales = weights
    if numbers.dtype == np.uint16:
        return numbers.view(np.float16).astype(np.float32)
    if numbers.dtype == np.int8:
        return numbers * scales[:, None]
    return numbers
