"""A part that holds whatever it is given, to try the files without a model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from locole.io import saved_as


@saved_as("test.bag")
class Bag:
    def __init__(self, **values: Any) -> None:
        self.values = values

    def _state(self) -> dict[str, Any]:
        return self.values

    @classmethod
    def _from_state(cls, values: dict[str, Any]) -> Self:
        return cls(**values)


def letter_bag(letter: str, size: int = 3000) -> Bag:
    """Every value tells which bag this is, so that a mixture of two is noticed."""
    code = ord(letter)
    return Bag(
        letter=letter,
        numbers=np.full(size, code, dtype=np.int32),
        names=np.array([letter * 3] * 5),
        bytes=np.full(1 + code % 7, code, dtype=np.uint8),
    )


def letter_of(bag: Bag) -> str:
    """The one letter that all values of the bag agree on."""
    values = bag.values
    letters = {values["letter"]} | set("".join(values["names"]))
    letters |= {chr(n) for n in np.unique(values["numbers"])}
    letters |= {chr(n) for n in np.unique(values["bytes"])}
    (letter,) = letters
    return letter


def assert_same(left: Any, right: Any) -> None:
    """Equal in type, and to the bit."""
    if isinstance(left, np.ndarray):
        assert isinstance(right, np.ndarray)
        assert left.dtype == right.dtype
        assert left.shape == right.shape
        if left.dtype.kind == "O":
            assert left.tolist() == right.tolist()
        else:
            assert left.tobytes() == right.tobytes()
    elif isinstance(left, sp.csr_array):
        assert isinstance(right, sp.csr_array)
        assert left.shape == right.shape
        for name in ("data", "indices", "indptr"):
            assert_same(getattr(left, name), getattr(right, name))
    elif isinstance(left, Bag):
        assert isinstance(right, Bag)
        assert_same(left.values, right.values)
    elif isinstance(left, dict):
        assert list(left) == list(right)
        for key in left:
            assert_same(left[key], right[key])
    elif isinstance(left, list | tuple):
        assert type(left) is type(right)
        assert len(left) == len(right)
        for a, b in zip(left, right, strict=True):
            assert_same(a, b)
    else:
        assert type(left) is type(right)
        # The text tells nan from nan and 0.0 from -0.0 as they should be.
        assert repr(left) == repr(right)


#: Values that an attacker may put anywhere.
STRANGE: list[Any] = [None, True, -1, 0, 2**70, 0.5, 1e300, "", "x", [], {}, {"$float": "nan"}]


def seal(content: dict[str, Any]) -> dict[str, Any]:
    """Give a changed manifest the hash that belongs to it, as a careful attacker would."""
    content.pop("sha256", None)
    text = json.dumps(content, separators=(",", ":"))
    return {**content, "sha256": hashlib.sha256(text.encode()).hexdigest()}


def places_of(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Every place of a JSON tree, as a container and a key."""
    for key, value in list(tree.items() if isinstance(tree, dict) else enumerate(tree)):
        yield tree, key
        if isinstance(value, dict | list):
            yield from places_of(value)
