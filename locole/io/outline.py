"""The parts of a model as a tree: what they are, what they hold, and how large they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from locole.io.state import kind_of
from locole.io.strings import pack_strings

__all__ = ["Outline", "all_parts", "outline"]

_PLAIN = (bool, int, float, str, type(None))


class Outline(NamedTuple):
    """A part of a model."""

    name: str
    """Type of the part."""
    values: dict[str, Any]
    """Parameters, and what was learnt, as far as it is a number, a text or a list of these."""
    parts: dict[str, Outline]
    """Parts of the part."""
    n_bytes: int
    """Bytes that its arrays and those of its parts take in a file."""

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON has it."""
        parts = {name: part.to_dict() for name, part in self.parts.items()}
        return {"class": self.name, "bytes": self.n_bytes, **self.values, **parts}


def outline(part: Any) -> Outline:
    """Return the tree of a part that can be saved.

    Examples
    --------
    >>> from locole.embeddings import OneHot
    >>> outline(OneHot(3, dim=3)).name
    'OneHot'
    """
    values: dict[str, Any] = {}
    parts: dict[str, Outline] = {}
    n_bytes = 0
    for name, value in _flat(part._state()):
        if isinstance(value, np.ndarray):
            n_bytes += _n_bytes(value)
        elif isinstance(value, sp.csr_array):
            n_bytes += value.data.nbytes + value.indices.nbytes + value.indptr.nbytes
        elif kind_of(value) is not None:
            parts[name] = outline(value)
        elif _is_plain(value) and not name.startswith("_"):
            values[name] = value
    n_bytes += sum(inner.n_bytes for inner in parts.values())
    return Outline(type(part).__name__, values, parts, n_bytes)


def _n_bytes(array: np.ndarray) -> int:
    if array.dtype.kind not in "OU":
        return array.nbytes
    packed = pack_strings(array)
    return packed.bytes.nbytes + packed.offsets.nbytes


def all_parts(part: Any) -> Iterator[Any]:
    """Yield a part that can be saved, its parts, and theirs."""
    yield part
    for _, value in _flat(part._state()):
        if kind_of(value) is not None:
            yield from all_parts(value)


def _flat(state: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Values of a state; those of lists and dicts of parts by their place."""
    for name, value in state.items():
        if name in ("params", "learnt"):  # which order a state and say nothing
            yield from _flat(value)
        elif isinstance(value, dict) and not _is_plain(value):
            yield from ((f"{name}[{key}]", item) for key, item in value.items())
        elif isinstance(value, list) and any(kind_of(item) is not None for item in value):
            yield from ((f"{name}[{i}]", item) for i, item in enumerate(value))
        else:
            yield name, value


def _is_plain(value: Any) -> bool:
    """Whether JSON has a word for it, and it is not a long list of records."""
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_plain(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return all(isinstance(item, _PLAIN) for item in value)
    return isinstance(value, _PLAIN)
