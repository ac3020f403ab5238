"""Dense vectors of texts by an encoder that the user brings: checked, named and recognised again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from locole.exceptions import LocoleError

__all__ = ["Encoder", "check_encoder", "encode", "name_of", "probe"]

#: From a list of texts to an array of shape (texts, numbers).
Encoder = Callable[[list[str]], Any]

# An encoder is recognised by what it makes of these.
_PROBES = ["Which of these is nearest?", "Übermorgen 12 Äpfel, bitte!", "猫 и собака"]
# Cosine above which two vectors of one text are of the same encoder, on whatever machine.
_SAME = 0.995


def encode(encoder: Encoder, texts: Sequence[str], n_numbers: int | None = None) -> NDArray:
    """Return the vectors of texts as float32, or say what is wrong with them.

    Parameters
    ----------
    encoder : callable
    texts : sequence of str
    n_numbers : int, optional
        Numbers that each vector must have.

    Examples
    --------
    >>> encode(lambda texts: [[len(text), 1.0] for text in texts], ["a", "bcd"])
    array([[1., 1.],
           [3., 1.]], dtype=float32)
    """
    found = encoder(list(texts))
    name = name_of(encoder)
    try:
        vectors = np.asarray(found, dtype=np.float32)
    except (TypeError, ValueError):
        raise LocoleError(f"the encoder {name} gives no array of numbers.") from None
    if vectors.ndim != 2 or len(vectors) != len(texts):
        raise LocoleError(
            f"the encoder {name} must give an array of shape ({len(texts)}, numbers) for {len(texts)} "
            f"texts, not {vectors.shape}."
        )
    if n_numbers is not None and vectors.shape[1] != n_numbers:
        raise LocoleError(
            f"the encoder {name} gives {vectors.shape[1]} numbers for a text, and the model was trained "
            f"with {n_numbers}: take the encoder that it was trained with."
        )
    if not np.isfinite(vectors).all():
        raise LocoleError(f"the encoder {name} gives numbers that are infinite or not a number.")
    return vectors


def name_of(encoder: Any) -> str:
    """Module and name of an encoder, for people; of an object without a name those of its class.

    Examples
    --------
    >>> name_of(np.linalg.norm)
    'numpy.linalg:norm'
    """
    named = encoder if hasattr(encoder, "__qualname__") else type(encoder)
    return f"{named.__module__}:{named.__qualname__}"


def probe(encoder: Encoder) -> NDArray[np.float32]:
    """Vectors of some fixed texts, by which an encoder is recognised."""
    return encode(encoder, _PROBES)


def check_encoder(encoder: Encoder, name: str, expected: NDArray[np.float32]) -> None:
    """Raise LocoleError if an encoder is not the one that gave these vectors for the fixed texts."""
    found = encode(encoder, _PROBES, expected.shape[1])
    lengths = np.linalg.norm(found, axis=1) * np.linalg.norm(expected, axis=1)
    cosines = (found * expected).sum(axis=1) / np.maximum(lengths, np.finfo(np.float32).tiny)
    same = np.where(lengths == 0, ~found.any(axis=1) & ~expected.any(axis=1), cosines > _SAME)
    if not same.all():
        raise LocoleError(
            f"the encoder {name_of(encoder)} is not the one that the model was trained with, {name}: "
            "its vectors are others."
        )
