"""The file of arrays, in the safetensors format: written in pieces, mapped into memory when read."""

from __future__ import annotations

import hashlib
import json
import math
import mmap
import os
from collections.abc import Mapping
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from locole.exceptions import ModelFileError

__all__ = ["DTYPES", "Entry", "describe", "map_arrays", "verify_arrays", "write_arrays"]

#: Types of arrays, and what the format calls them.
DTYPES = {
    "bool": "BOOL",
    "int8": "I8",
    "int16": "I16",
    "int32": "I32",
    "int64": "I64",
    "uint8": "U8",
    "uint16": "U16",
    "uint32": "U32",
    "uint64": "U64",
    "float16": "F16",
    "float32": "F32",
    "float64": "F64",
}
# Arrays begin at multiples of a cache line where their sizes allow it.
_ALIGNMENT = 64
_PIECE_BYTES = 1 << 24


class Entry(NamedTuple):
    """What the manifest says of an array."""

    dtype: str
    shape: tuple[int, ...]
    sha256: str

    @property
    def itemsize(self) -> int:
        """Bytes of one number."""
        return np.dtype(self.dtype).itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of the array."""
        return math.prod(self.shape) * self.itemsize


def describe(array: NDArray) -> Entry:
    """Entry of an array; its bytes are read once for the hash."""
    return Entry(array.dtype.name, array.shape, _digest(array))


def _digest(array: NDArray) -> str:
    return hashlib.sha256(_bytes(array)).hexdigest()


def _bytes(array: NDArray) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


class _Layout(NamedTuple):
    """Where everything is in the file: a function of names, types and shapes only."""

    head: bytes
    starts: dict[str, int]
    """First byte of each array within the file, in rising order."""
    size: int


def _lay_out(table: Mapping[str, Entry]) -> _Layout:
    # The format allows no gaps. Whole cache lines first, then large numbers before small ones:
    # every array then begins at a multiple of the size of its numbers.
    def rank(name: str) -> tuple[bool, int, str]:
        entry = table[name]
        return entry.nbytes % _ALIGNMENT != 0, -entry.itemsize, name

    header, starts, at = {}, {}, 0
    for name in sorted(table, key=rank):
        entry = table[name]
        header[name] = {
            "dtype": DTYPES[entry.dtype],
            "shape": list(entry.shape),
            "data_offsets": [at, at + entry.nbytes],
        }
        starts[name] = at
        at += entry.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % _ALIGNMENT)
    head = len(text).to_bytes(8, "little") + text
    return _Layout(head, {name: len(head) + s for name, s in starts.items()}, len(head) + at)


def write_arrays(file: BinaryIO, table: Mapping[str, Entry], arrays: Mapping[str, NDArray]) -> None:
    """Write the arrays that the table describes; none is copied as a whole."""
    layout = _lay_out(table)
    file.write(layout.head)
    for name in layout.starts:
        data = _bytes(arrays[name])
        for start in range(0, len(data), _PIECE_BYTES):
            file.write(data[start : start + _PIECE_BYTES])


def map_arrays(file: BinaryIO, table: Mapping[str, Entry]) -> dict[str, NDArray]:
    """Arrays of an open file, which is read only where they are used.

    Size and head of the file must be what the table says, to the byte. The arrays may be written to,
    which changes neither the file nor what other processes see: numba would compile every kernel a
    second time for arrays that must not be written.
    """
    layout = _lay_out(table)
    size = os.fstat(file.fileno()).st_size
    if size != layout.size:
        raise ModelFileError(f"its arrays take {size} bytes instead of {layout.size}")
    memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    if memory[: len(layout.head)] != layout.head:
        raise ModelFileError("the head of its arrays is not what the manifest says")
    return {name: _view(memory, start, table[name]) for name, start in layout.starts.items()}


def _view(memory: Any, start: int, entry: Entry) -> NDArray:
    count = math.prod(entry.shape)
    if count == 0:
        return np.empty(entry.shape, dtype=entry.dtype)
    return np.frombuffer(memory, entry.dtype, count, start).reshape(entry.shape)


def verify_arrays(
    arrays: Mapping[str, NDArray], table: Mapping[str, Entry], *, max_bytes: float
) -> None:
    """Compare hashes, small arrays first, as long as ``max_bytes`` last."""
    for name in sorted(table, key=lambda name: table[name].nbytes):
        max_bytes -= table[name].nbytes
        if max_bytes < 0:
            return
        if _digest(arrays[name]) != table[name].sha256:
            raise ModelFileError(f"the array {name} has changed since it was saved")
