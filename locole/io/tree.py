"""Between a model and its file: a tree of JSON values that names arrays, and the arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from locole.exceptions import ModelFileError
from locole.io.arrays import DTYPES, Entry, describe
from locole.io.manifest import MAX_NDIM
from locole.io.state import bytes_to_make, class_of, kind_of
from locole.io.strings import Strings, pack_strings, unpack_strings
from locole.io.trust import Budget, check_csr

__all__ = ["Encoder", "decode"]

_PLAIN = (type(None), bool, int, str)


class Encoder:
    """Turns a part into a JSON tree, and collects the arrays that the tree names.

    What JSON has no word for is an object with one key that begins with ``$``: ``{"$array": name}``,
    ``$strings``, ``$csr``, ``$part``, ``$tuple`` and ``$float`` (infinite or not a number). Arrays of
    equal contents are kept once.
    """

    def __init__(self) -> None:
        self.arrays: dict[str, NDArray] = {}
        self.table: dict[str, Entry] = {}
        self._names: dict[Entry, str] = {}
        self._needs: list[tuple[int, str]] = []

    def encode(self, value: Any, at: str = "model") -> Any:
        """Tree of a value; ``at`` says where it is, for errors and for names of arrays."""
        if isinstance(value, np.bool_ | np.integer | np.floating):
            value = value.item()
        if isinstance(value, _PLAIN):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"$float": str(value)}
        if isinstance(value, list | tuple):
            items = [self.encode(item, f"{at}[{i}]") for i, item in enumerate(value)]
            return items if isinstance(value, list) else {"$tuple": items}
        if isinstance(value, dict):
            return self._dict(value, at)
        if isinstance(value, np.ndarray):
            return self._array(value, at)
        if isinstance(value, sp.csr_array):
            return {"$csr": self._csr(value, at)}
        return {"$part": self._part(value, at)}

    def _dict(self, value: dict[Any, Any], at: str) -> dict[str, Any]:
        for key in value:
            if not isinstance(key, str) or key.startswith("$"):
                raise ModelFileError(f"{at} has the key {key!r}: keys must be words")
        return {key: self.encode(item, f"{at}.{key}") for key, item in value.items()}

    def _part(self, part: Any, at: str) -> dict[str, Any]:
        kind = kind_of(part)
        if kind is None:
            raise ModelFileError(
                f"{at} is a {type(part).__name__}, and model files hold only numbers, strings and the "
                "parts of locole, because anything else would need pickle: take a part of locole "
                'instead, such as regressor="elastic_net"'
            )
        values = part._state()
        self._needs.append((bytes_to_make(type(part), values), f"part {kind}"))
        # Words that only order the state within a file say nothing in a message.
        names = {key: at if key in ("params", "learnt") else f"{at}.{key}" for key in values}
        tree = {key: self.encode(value, names[key]) for key, value in values.items()}
        return {"kind": kind, "values": tree}

    def _array(self, array: NDArray, at: str) -> dict[str, Any]:
        if array.dtype.kind not in "UO":
            return {"$array": self._keep(array, at)}
        try:
            strings = pack_strings(array)
        except ModelFileError as error:
            raise ModelFileError(f"{at} cannot be saved, because {error}") from None
        return {
            "$strings": {
                "bytes": self._keep(strings.bytes, f"{at}.bytes"),
                "offsets": self._keep(strings.offsets, f"{at}.offsets"),
                "dtype": strings.dtype,
            }
        }

    def _csr(self, matrix: sp.csr_array, at: str) -> dict[str, Any]:
        names = ("data", "indices", "indptr")
        kept = {name: self._keep(getattr(matrix, name), f"{at}.{name}") for name in names}
        return {**kept, "shape": list(matrix.shape)}

    def check_budget(self) -> None:
        """Refuse what no reader would take: parts that need too much for the arrays there are."""
        budget = Budget(sum(entry.nbytes for entry in self.table.values()))
        for need in self._needs:
            budget.spend(*need)

    def _keep(self, array: NDArray, name: str) -> str:
        """Name of the array in the file."""
        if array.dtype.name not in DTYPES or array.ndim > MAX_NDIM:
            raise ModelFileError(
                f"{name} is a {array.ndim}-d array of type {array.dtype}, which a model file cannot "
                "hold exactly: take whole numbers, floats, bools or strings"
            )
        array = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).reshape(
            array.shape
        )
        entry = describe(array)
        if entry not in self._names:
            if name in self.table:
                name = f"{name}#{len(self.table)}"
            self._names[entry], self.arrays[name], self.table[name] = name, array, entry
        return self._names[entry]


class _Source:
    """Arrays of a file, of which all must be used, and what its parts may take."""

    def __init__(self, arrays: dict[str, NDArray]) -> None:
        self.arrays, self.used = arrays, set[str]()
        self.budget = Budget(sum(array.nbytes for array in arrays.values()))

    def array(self, name: Any) -> NDArray:
        if not isinstance(name, str) or name not in self.arrays:
            raise ModelFileError("its manifest uses an array that it does not list")
        self.used.add(name)
        # Also if it is shared: whoever uses it checks it once more.
        self.budget.spend(self.arrays[name].nbytes, "use of one array by many parts")
        return self.arrays[name]


def decode(tree: Any, arrays: dict[str, NDArray]) -> Any:
    """Return the part behind a tree; the tree is not to be trusted."""
    if not isinstance(tree, dict) or list(tree) != ["$part"]:
        raise ModelFileError("its manifest describes no model")
    source = _Source(arrays)
    try:
        value = _decode(tree, source)
    except RecursionError:
        raise ModelFileError("its manifest is nested too deeply") from None
    if source.used != set(arrays):
        raise ModelFileError("its manifest lists an array that it does not use")
    return value


def _decode(tree: Any, source: _Source) -> Any:
    if isinstance(tree, list):
        return [_decode(item, source) for item in tree]
    if not isinstance(tree, dict):
        return tree
    tags = [key for key in tree if key.startswith("$")]
    if not tags:
        return {key: _decode(item, source) for key, item in tree.items()}
    if len(tree) > 1 or tags[0] not in _READERS:
        raise ModelFileError(f"its manifest has the unknown word {tags[0][:20]!r}")
    return _READERS[tags[0]](tree[tags[0]], source)


def _fields(value: Any, *names: str) -> Iterator[Any]:
    if not isinstance(value, dict) or set(value) != set(names):
        raise ModelFileError(f"its manifest has a value without {', '.join(names)}")
    return (value[name] for name in names)


def _read_float(value: Any, source: _Source) -> float:
    if value not in ("nan", "inf", "-inf"):
        raise ModelFileError("its manifest has an invalid number")
    return float(value)


def _read_tuple(value: Any, source: _Source) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise ModelFileError("its manifest has an invalid tuple")
    return tuple(_decode(item, source) for item in value)


def _read_strings(value: Any, source: _Source) -> NDArray:
    raw, offsets, dtype = _fields(value, "bytes", "offsets", "dtype")
    if not isinstance(dtype, str):
        raise ModelFileError("its strings have no type")
    strings = unpack_strings(Strings(source.array(raw), source.array(offsets), dtype))
    source.budget.spend(strings.nbytes, "strings")
    return strings


def _read_csr(value: Any, source: _Source) -> sp.csr_array:
    *names, shape = _fields(value, "data", "indices", "indptr", "shape")
    data, indices, indptr = (source.array(name) for name in names)
    check_csr(data, indices, indptr, shape)
    matrix = sp.csr_array((data, indices, indptr), shape=tuple(shape), copy=False)
    # scipy looks at the size of the indices and may make them shorter: undo that.
    matrix.indices, matrix.indptr = indices, indptr
    return matrix


def _read_part(value: Any, source: _Source) -> Any:
    kind, values = _fields(value, "kind", "values")
    read = _decode(values, source)
    if not isinstance(kind, str) or not isinstance(read, dict):
        raise ModelFileError("its manifest has a part without kind or values")
    part = class_of(kind)
    try:
        source.budget.spend(bytes_to_make(part, read), f"part {kind}")
        return part._from_state(read)
    except ModelFileError:
        raise
    except (
        TypeError,
        ValueError,
        LookupError,
        AttributeError,
        ArithmeticError,
        MemoryError,
    ) as error:
        # A constructor that does not like what it is given; LocoleError is a ValueError.
        reason = str(error).rstrip(".")[:200]
        raise ModelFileError(f"its part {kind} cannot be made: {reason}") from error


_READERS: dict[str, Callable[[Any, Any], Any]] = {
    "$array": lambda value, source: source.array(value),
    "$strings": _read_strings,
    "$csr": _read_csr,
    "$part": _read_part,
    "$tuple": _read_tuple,
    "$float": _read_float,
}
