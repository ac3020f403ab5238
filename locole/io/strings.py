"""Arrays of strings as two arrays that any reader understands: UTF-8 bytes and offsets."""

from __future__ import annotations

import itertools
import re
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from locole.exceptions import ModelFileError
from locole.io.trust import check_pointers

__all__ = ["Strings", "pack_strings", "unpack_strings"]

# numpy pads strings to the longest one, so a small file could ask for any amount of memory. Beyond
# this they come back as Python's strings, which take as much as they are long.
_ROOM_BYTES = 1 << 30
_ROOM_FACTOR = 64


class Strings(NamedTuple):
    """String i is ``bytes[offsets[i]:offsets[i + 1]]``."""

    bytes: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    dtype: str
    """``"object"`` or numpy's name, such as ``"<U12"``."""


def pack_strings(array: NDArray) -> Strings:
    """Pack a one-dimensional array of strings; numpy's own or Python's.

    Examples
    --------
    >>> import numpy as np
    >>> packed = pack_strings(np.array(["a", "", "né"]))
    >>> packed.bytes.tobytes().decode(), packed.offsets, packed.dtype
    ('ané', array([0, 1, 1, 4]), '<U2')
    >>> unpack_strings(packed)
    array(['a', '', 'né'], dtype='<U2')
    """
    if array.ndim != 1:
        raise ModelFileError("it is a table of strings: only lists of strings can be saved")
    texts = array.tolist()
    for text in texts:
        if not isinstance(text, str):
            kind = type(text).__name__
            raise ModelFileError(
                f"it mixes in the {kind} {text!r}: make all of it strings, or numbers of one type"
            )
    encoded = [_encoded(text) for text in texts]
    offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)), out=offsets[1:])
    joined = np.frombuffer(b"".join(encoded), dtype=np.uint8)
    # Little-endian like everything else in the file.
    name = "object" if array.dtype.kind == "O" else array.dtype.newbyteorder("<").str
    return Strings(joined, offsets, name)


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ModelFileError(
            f"the string {text!r} has half a character (a surrogate) in it: remove that"
        ) from None


def unpack_strings(strings: Strings) -> NDArray:
    """Return the array that was packed; nothing about the arrays is taken for granted."""
    raw, offsets, dtype = strings
    _check_offsets(raw, offsets)
    try:
        text = raw.tobytes().decode()
    except UnicodeDecodeError:
        raise ModelFileError("its strings are not UTF-8") from None
    # From places of bytes to places of characters, so that one decoding serves all strings: of each
    # character only the first byte counts.
    is_later = (raw & 0xC0) == 0x80
    if is_later[offsets[offsets < raw.size]].any():
        raise ModelFileError("its strings are cut within characters")
    places = offsets - np.searchsorted(np.flatnonzero(is_later), offsets)
    width = None if dtype == "object" else _width(dtype, places)
    room = max(_ROOM_BYTES, _ROOM_FACTOR * (raw.nbytes + offsets.nbytes))
    if width is not None and 4 * width * (offsets.size - 1) <= room:
        return _padded(text, places, width)
    cuts = places.tolist()
    out = np.empty(len(cuts) - 1, dtype=object)
    out[:] = [text[a:b] for a, b in itertools.pairwise(cuts)]
    return out


def _check_offsets(raw: NDArray, offsets: NDArray) -> None:
    if raw.dtype != np.uint8 or offsets.dtype != np.int64 or raw.ndim != 1 or offsets.ndim != 1:
        raise ModelFileError("its strings are no bytes and offsets")
    check_pointers(offsets, "strings", end=raw.size)


def _width(dtype: str, places: NDArray[np.int64]) -> int:
    """Characters of a numpy string of that type, if all strings fit."""
    found = re.fullmatch(r"<U(\d{1,10})", dtype)
    if found is None:
        raise ModelFileError(f"its strings have the unknown type {dtype!r}")
    width = max(int(found[1]), 1)  # numpy has no strings of width 0
    if np.diff(places).max(initial=0) > width:
        raise ModelFileError(f"its strings are longer than their type {dtype!r} says")
    return width


def _padded(text: str, places: NDArray[np.int64], width: int) -> NDArray[np.str_]:
    n, lengths = places.size - 1, np.diff(places)
    characters = np.zeros((n, width), dtype="<u4")
    column = np.arange(len(text)) - np.repeat(places[:-1], lengths)
    characters[np.repeat(np.arange(n), lengths), column] = np.frombuffer(
        text.encode("utf-32-le"), dtype="<u4"
    )
    return characters.view(f"<U{width}").reshape(n)
