"""What may be changed in a saved model: numbers, types and shapes of arrays, and all of the tree."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import numpy as np
from forgery import Forgery, wrapped

from locole.io.state import _CLASSES

__all__ = ["mutate", "mutated_array"]

Rng = np.random.Generator

#: Values that stand where others were.
STRANGE: list[Any] = [
    None, True, False, -1, 0, 1, 2, 3, 17, 2**31, 2**63, 2**70, -(2**63), 0.5, -0.5, 1e300, 1e-300,
    "", "x", "auto", "\x1b[31m", "/tmp/evil", [], [0], [[]], {}, {"x": 1}, {"$float": "nan"},
    {"$float": "inf"}, {"$tuple": []}, {"$tuple": [1, 2]},
]  # fmt: skip
_DTYPES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint64", "float16", "float32",
    "float64",
]  # fmt: skip


def mutate(forged: Forgery, rng: Rng) -> None:
    """Change one to three things."""
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        if forged.arrays and rng.random() < 0.5:
            _change_array(forged, rng)
        else:
            _change_tree(forged, rng)
    _forget_unused(forged)


# Arrays -------------------------------------------------------------------------------------------


def _change_array(forged: Forgery, rng: Rng) -> None:
    names = list(forged.arrays)
    name = names[rng.integers(len(names))]
    if rng.random() < 0.1:
        other = names[rng.integers(len(names))]
        arrays = forged.arrays
        arrays[name], arrays[other] = arrays[other], arrays[name]
    else:
        forged.arrays[name] = mutated_array(forged.arrays[name], rng)


def mutated_array(array: np.ndarray, rng: Rng) -> np.ndarray:
    """Return an array of other numbers, another type or another shape."""
    with np.errstate(all="ignore"):
        kind = list(_ARRAYS.values())[rng.integers(len(_ARRAYS))]
        return np.asarray(kind(array, rng))


def _one_number(array: np.ndarray, rng: Rng) -> np.ndarray:
    out = array.copy()
    if not out.size:
        return out
    if out.dtype.kind == "f":
        bad = [np.nan, np.inf, -np.inf, 0, -1, np.finfo(out.dtype).max, np.finfo(out.dtype).tiny]
    elif out.dtype.kind == "b":
        bad = [True, False]
    else:
        limits = np.iinfo(out.dtype)
        bad = [limits.min, limits.max, limits.max // 2 + 1, 0, 1, int(out.max())]
        bad += [max(-1, limits.min), min(out.size, limits.max), min(int(out.max()) + 1, limits.max)]
    count = min(rng.choice([1, 1, 2, out.size]), out.size)
    out.flat[rng.choice(out.size, count, replace=False)] = bad[rng.integers(len(bad))]
    return out


def _wrap(array: np.ndarray, rng: Rng) -> np.ndarray:
    if array.dtype.kind != "i" or array.ndim != 1 or array.size < 4:
        return _one_number(array, rng)
    return wrapped(array, int(rng.integers(1, array.size - 2)))


def _narrower(array: np.ndarray, rng: Rng) -> np.ndarray:
    return array[..., : -int(rng.integers(1, 3))].copy() if array.ndim else array


def _wider(array: np.ndarray, rng: Rng) -> np.ndarray:
    if not array.ndim:
        return array
    return np.concatenate([array, array[..., : int(rng.integers(1, 20))]], axis=-1)


_ARRAYS: dict[str, Callable[[np.ndarray, Rng], np.ndarray]] = {
    "one number": _one_number,
    "some numbers": _one_number,
    "wrap around": _wrap,
    "narrower": _narrower,
    "wider": _wider,
    "shorter": lambda a, rng: a[: -int(rng.integers(1, 3))].copy() if a.ndim else a,
    "longer": lambda a, rng: np.concatenate([a, a[: int(rng.integers(1, 20))]]) if a.ndim else a,
    "empty": lambda a, rng: a[:0].copy() if a.ndim else a,
    "another type": lambda a, rng: a.astype(_DTYPES[rng.integers(len(_DTYPES))]),
    "another axis": lambda a, rng: a.ravel() if a.ndim > 1 else a[None],
    "turned": lambda a, rng: a.T.copy(),
    "backwards": lambda a, rng: a[::-1].copy() if a.ndim else a,
    "shuffled": lambda a, rng: rng.permutation(a) if a.ndim else a,
    "a number": lambda a, rng: a.reshape(-1)[0] if a.size else a,
}


# Tree ---------------------------------------------------------------------------------------------


def _change_tree(forged: Forgery, rng: Rng) -> None:
    places = forged.places()
    node, key = places[rng.integers(len(places))]
    way = rng.random()
    if way < 0.5:
        node[key] = copy.deepcopy(STRANGE[rng.integers(len(STRANGE))])
    elif way < 0.7:
        other, place = places[rng.integers(len(places))]
        node[key] = copy.deepcopy(other[place])
    elif way < 0.8:
        del node[key]
        if key == "model":
            node[key] = None
    elif way < 0.9 and isinstance(node[key], int | float) and not isinstance(node[key], bool):
        node[key] = node[key] + int(rng.integers(-2, 3))
    else:
        _change_kind(forged, rng)


def _change_kind(forged: Forgery, rng: Rng) -> None:
    parts = [node[key] for node, key in forged.places() if key == "$part"]
    kinds = sorted(_CLASSES)
    if parts:
        part = parts[rng.integers(len(parts))]
        if isinstance(part, dict):
            part["kind"] = kinds[rng.integers(len(kinds))]


def _forget_unused(forged: Forgery) -> None:
    """Leave out arrays that the tree no longer names: they would be noticed at once."""
    text = json.dumps(forged.content["model"])
    for name in list(forged.arrays):
        if json.dumps(name) not in text:
            del forged.arrays[name]
