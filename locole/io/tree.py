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
from locole.io.state import class_of, kind_of
from locole.io.strings import Strings, pack_strings, unpack_strings

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


def decode(tree: Any, arrays: dict[str, NDArray]) -> Any:
    """Return the part behind a tree; the tree is not to be trusted."""
    if not isinstance(tree, dict) or list(tree) != ["$part"]:
        raise ModelFileError("its manifest describes no model")
    used: set[str] = set()

    def array(name: Any) -> NDArray:
        if not isinstance(name, str) or name not in arrays:
            raise ModelFileError("its manifest uses an array that it does not list")
        used.add(name)
        return arrays[name]

    try:
        value = _decode(tree, array)
    except RecursionError:
        raise ModelFileError("its manifest is nested too deeply") from None
    if used != set(arrays):
        raise ModelFileError("its manifest lists an array that it does not use")
    return value


def _decode(tree: Any, array: Callable[[Any], NDArray]) -> Any:
    if isinstance(tree, list):
        return [_decode(item, array) for item in tree]
    if not isinstance(tree, dict):
        return tree
    tags = [key for key in tree if key.startswith("$")]
    if not tags:
        return {key: _decode(item, array) for key, item in tree.items()}
    if len(tree) > 1 or tags[0] not in _READERS:
        raise ModelFileError(f"its manifest has the unknown word {tags[0][:20]!r}")
    return _READERS[tags[0]](tree[tags[0]], array)


def _fields(value: Any, *names: str) -> Iterator[Any]:
    if not isinstance(value, dict) or set(value) != set(names):
        raise ModelFileError(f"its manifest has a value without {', '.join(names)}")
    return (value[name] for name in names)


def _read_float(value: Any, array: Any) -> float:
    if value not in ("nan", "inf", "-inf"):
        raise ModelFileError("its manifest has a number that is none")
    return float(value)


def _read_tuple(value: Any, array: Any) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise ModelFileError("its manifest has a tuple that is none")
    return tuple(_decode(item, array) for item in value)


def _read_strings(value: Any, array: Any) -> NDArray:
    raw, offsets, dtype = _fields(value, "bytes", "offsets", "dtype")
    if not isinstance(dtype, str):
        raise ModelFileError("its strings have no type")
    return unpack_strings(Strings(array(raw), array(offsets), dtype))


def _read_csr(value: Any, array: Any) -> sp.csr_array:
    *names, shape = _fields(value, "data", "indices", "indptr", "shape")
    data, indices, indptr = (array(name) for name in names)
    _check_csr(data, indices, indptr, shape)
    matrix = sp.csr_array((data, indices, indptr), shape=tuple(shape), copy=False)
    # scipy looks at the size of the indices and may make them shorter: undo that.
    matrix.indices, matrix.indptr = indices, indptr
    return matrix


def _check_csr(data: NDArray, indices: NDArray, indptr: NDArray, shape: Any) -> None:
    """Check all that compiled loops over the matrix rely on."""
    is_shape = isinstance(shape, list) and [type(n) for n in shape] == [int, int]
    is_flat = data.ndim == indices.ndim == indptr.ndim == 1 and data.size == indices.size
    if not is_shape or not is_flat or indices.dtype.kind != "i" or indptr.dtype.kind != "i":
        raise ModelFileError("it has a sparse matrix that is none")
    rises = indptr.size and indptr[0] == 0 and indptr[-1] == data.size
    if indptr.size != shape[0] + 1 or not rises or (np.diff(indptr) < 0).any():
        raise ModelFileError("the rows of its sparse matrix do not rise from 0 to the end")
    if indices.size and not (indices.min() >= 0 and indices.max() < shape[1]):
        raise ModelFileError("its sparse matrix has a column outside its shape")


def _read_part(value: Any, array: Any) -> Any:
    kind, values = _fields(value, "kind", "values")
    read = _decode(values, array)
    if not isinstance(kind, str) or not isinstance(read, dict):
        raise ModelFileError("its manifest has a part without kind or values")
    part = class_of(kind)
    try:
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
    "$array": lambda value, array: array(value),
    "$strings": _read_strings,
    "$csr": _read_csr,
    "$part": _read_part,
    "$tuple": _read_tuple,
    "$float": _read_float,
}
