"""A saved model that is changed and sealed again with the right hashes, as an attacker would do."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np

from locole.io.arrays import describe, map_arrays, write_arrays
from locole.io.manifest import file_name, parse_manifest

Place = tuple[Any, Any]


class Forgery:
    """The manifest of a model as JSON has it, and its arrays by name; both may be changed."""

    def __init__(self, content: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        self.content, self.arrays = content, arrays

    @classmethod
    def of(cls, folder: Path) -> Self:
        """Read an honest model."""
        raw = (folder / "manifest.json").read_bytes()
        manifest = parse_manifest(raw)
        with open(folder / manifest.arrays_file, "rb") as file:
            arrays = map_arrays(file, manifest.arrays)
        return cls(json.loads(raw), {name: array.copy() for name, array in arrays.items()})

    def copy(self) -> Self:
        """Copy the manifest; arrays are replaced and never changed, so they need no copy."""
        return type(self)(copy.deepcopy(self.content), dict(self.arrays))

    def write(self, folder: Path) -> None:
        """Write it as a model, with hashes of what it says now."""
        folder.mkdir(exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        arrays = {name: np.ascontiguousarray(a).reshape(a.shape) for name, a in self.arrays.items()}
        table = {name: describe(array) for name, array in arrays.items()}
        content = {key: value for key, value in self.content.items() if key != "sha256"}
        content["arrays_file"] = file_name(table)
        content["arrays"] = {
            name: {**e._asdict(), "shape": [*e.shape]} for name, e in table.items()
        }
        with open(folder / content["arrays_file"], "wb") as file:
            write_arrays(file, table, arrays)
        text = json.dumps(content, separators=(",", ":"))
        content["sha256"] = hashlib.sha256(text.encode()).hexdigest()
        (folder / "manifest.json").write_text(json.dumps(content))

    def places(self) -> list[Place]:
        """Every place of the tree of the model, as a container and a key."""
        return [(self.content, "model"), *_places(self.content["model"])]

    def pointers(self) -> list[str]:
        """Names of arrays that say where something begins: whole numbers that never fall, no labels."""
        return [
            name
            for name, array in self.arrays.items()
            if array.dtype.kind == "i" and array.ndim == 1 and array.size > 3 and array[0] == 0
            and (array[1:] >= array[:-1]).all() and not name.endswith("classes_")
        ]  # fmt: skip


def _places(tree: Any) -> Iterator[Place]:
    if not isinstance(tree, dict | list):
        return
    for key, value in list(tree.items() if isinstance(tree, dict) else enumerate(tree)):
        yield tree, key
        yield from _places(value)


def wrapped(pointers: np.ndarray, place: int = 1) -> np.ndarray:
    """Pointers with both ends as they were, whose differences wrap around to positive numbers."""
    top = np.iinfo(pointers.dtype).max // 2 + 1
    out = pointers.copy()
    out[place] = top + top // 2
    out[place + 1 : -1] = -top
    return out
