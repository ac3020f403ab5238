"""Values that a stranger may put into a model file in place of those that were there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp


def with_entry(array: np.ndarray, value: Any, place: int = 0) -> np.ndarray:
    """A copy with another number at one place."""
    changed = array.copy()
    changed.flat[place] = value
    return changed


def other_types(array: np.ndarray) -> Iterator[tuple[str, Any]]:
    """Arrays of another kind in place of this one: wrong whatever the numbers mean."""
    yield "a row less", array[:-1].copy()
    yield "a row more", np.concatenate([array, array[:1]])
    yield "nothing", array[:0].copy()
    yield "another axis", array[..., None].copy() if array.ndim < 2 else array.ravel()
    yield "a number", 1
    yield "strings", np.full(len(array), "x")
    yield "fractions or not", array.astype(np.int64 if array.dtype.kind == "f" else np.float32)


def other_numbers(array: np.ndarray) -> Iterator[tuple[str, Any]]:
    """Numbers that no model has: not finite, or out of every range."""
    if array.dtype.kind == "f":
        bad = [np.nan, np.inf, -np.inf]
    else:
        limits = np.iinfo(array.dtype)
        bad = [limits.min if limits.min else limits.max - 1, limits.max]
        bad += [-1] if limits.min else []
    for value in bad:
        for place in (0, array.size // 2, -1):
            yield f"{value} at {place}", with_entry(array, value, place)
    if array.dtype.kind != "f" and array.size > 2 and (np.diff(array.ravel()) > 0).all():
        yield "falling", array[::-1].copy()


def hostile(value: Any, *, any_number: bool) -> Iterator[tuple[str, Any]]:
    """What must be refused where a value was, with its name; ``any_number`` excuses the numbers."""
    if isinstance(value, np.ndarray):
        yield from other_types(value)
        if value.size and value.dtype.kind in "iuf" and not any_number:
            yield from other_numbers(value)
    elif sp.issparse(value):
        yield "a row less", value[:-1]
        yield "a column less", value[:, :-1]
        yield "a row more", sp.csr_array(sp.vstack([value, value[:1]]))
        yield "doubles", value.astype(np.float64)
        parts = (with_entry(value.data, np.nan), value.indices, value.indptr)
        yield "NaN", sp.csr_array(parts, shape=value.shape)
        yield "an array", value.toarray()
    elif isinstance(value, list | tuple):
        yield "an item less", value[:-1]
        yield "an item more", [*value, value[0]]
        for what, bad in hostile(value[0], any_number=any_number):
            yield f"first {what}", type(value)([bad, *value[1:]])
    elif isinstance(value, int | float):
        yield "a word", "x"
        if not any_number and not isinstance(value, bool):
            yield "NaN", float("nan")
            yield from [] if isinstance(value, float) else [("negative", -1), ("more", value + 1)]
