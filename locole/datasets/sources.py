"""Bytes of a file or of standard input, unpacked, in chunks of whole lines."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from locole.exceptions import LocoleError
from locole.parallel.progress import track

__all__ = [
    "Chunk",
    "PathLike",
    "Source",
    "check_characters",
    "decoded_lines",
    "is_stream",
    "iter_chunks",
    "shown",
    "suffix_of",
]

PathLike = str | os.PathLike[str]

CHUNK_BYTES = 1 << 21
#: Longer lines are refused; a line of 4 million features takes about as much.
MAX_LINE_BYTES = 1 << 26
# No data of the kinds read here shrinks to a 200th; what does is made to fill disks and memory.
MAX_RATIO = 200
MAX_RATIO_FROM_BYTES = 1 << 28
# Unpacking the largest preset of xz takes 65 MiB.
XZ_MEMORY_BYTES = 1 << 28
_BOM = b"\xef\xbb\xbf"
_UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")
# What bytes become that are not UTF-8.
_UNDECODED = re.compile("[\udc80-\udcff]")
_MAGIC = {".gz": b"\x1f\x8b", ".xz": b"\xfd7zXZ\x00", ".bz2": b"BZh"}


class Chunk(NamedTuple):
    """Some whole lines, the last one with its newline; valid until the next chunk is asked for."""

    text: NDArray[np.uint8]
    first_line: int


def suffix_of(path: PathLike) -> str:
    """Suffix that tells the format, without that of a compression, in small letters.

    Examples
    --------
    >>> suffix_of("data/Train.SVM.xz")
    '.svm'
    """
    path = Path(path)
    return Path(path.stem if path.suffix.lower() in _MAGIC else path.name).suffix.lower()


def is_stream(path: PathLike) -> bool:
    """Whether the bytes can be read only once: standard input, a named pipe.

    Examples
    --------
    >>> is_stream("-"), is_stream("train.svm")
    (True, False)
    """
    return path == "-" or (os.path.exists(path) and not os.path.isfile(path))


class Source:
    """An open file; what gzip, xz or bzip2 have packed is unpacked, whatever its name.

    Parameters
    ----------
    path : str or path
        The file; ``"-"`` is standard input.
    encoding : str
        Other encodings than UTF-8 are turned into it.

    Attributes
    ----------
    name : str
        What errors call it.
    is_stream : bool
        Whether it can be read only once, and may keep its reader waiting.
    must_wait : bool
        Whether all that has come of a stream has been handed out by `decoded_lines`.
    """

    def __init__(self, path: PathLike, encoding: str = "utf-8") -> None:
        decoder = _decoder(encoding)
        self.name = shown(path)
        self.is_stream, self.must_wait = is_stream(path), False
        self._is_input = path == "-"
        file = sys.stdin.buffer if self._is_input else open(path, "rb")  # noqa: SIM115 - see close
        self._raw = _Counted(file, may_wait=self.is_stream)
        try:
            self._packing = self._find_packing(path)
            self._stream = _OPENERS[self._packing](self._raw)
            self._recoded = (
                None if decoder is None else _Recoded(self._unpacked, decoder, self.name)
            )
        except BaseException:
            self.close()
            raise
        self._n_bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; standard input stays open."""
        if not self._is_input:
            self._raw.close()

    def _find_packing(self, path: PathLike) -> str:
        head = self._raw.peek()
        found = next((suffix for suffix, magic in _MAGIC.items() if head.startswith(magic)), "")
        suffix = Path(path).suffix.lower()
        if suffix in _MAGIC and found != suffix:
            raise LocoleError(
                f"{self.name} is not a {suffix} file, or cut short: get it again or rename it."
            )
        return found

    def readinto(self, room: memoryview) -> int:
        """Fill some of ``room``; 0 at the end."""
        return self._unpacked(room) if self._recoded is None else self._recoded.readinto(room)

    def _unpacked(self, room: memoryview) -> int:
        if not self._packing:
            return self._stream.readinto(room)
        try:
            count = self._stream.readinto(room)
        except (EOFError, OSError, zlib.error, lzma.LZMAError) as error:
            raise LocoleError(
                f"{self.name} is damaged or cut short ({error}): get it again."
            ) from error
        self._n_bytes += count
        if self._n_bytes > max(MAX_RATIO_FROM_BYTES, MAX_RATIO * self._raw.count):
            raise LocoleError(
                f"{self.name} unpacks to more than {MAX_RATIO} times its size, as if made to fill the "
                "memory: unpack it yourself if you trust it."
            )
        return count

    def size_mb(self) -> float | None:
        """How much there is to read, for the display of progress."""
        if self._packing or self.is_stream:
            return None
        return os.fstat(self._raw.fileno()).st_size / 1e6


def shown(path: PathLike) -> str:
    """Name of a file in messages."""
    return "standard input" if path == "-" else os.fspath(path)


def _decoder(encoding: str) -> codecs.IncrementalDecoder | None:
    """Decoder of an encoding; None for UTF-8."""
    try:
        known = codecs.lookup(encoding)
        "".encode(encoding)  # what is no encoding of texts says so
    except (LookupError, ValueError):  # names that Python cannot even look up
        raise LocoleError(
            f"unknown encoding {encoding!r}: take one that Python knows, such as utf-8, latin-1, cp1252 "
            "or utf-16."
        ) from None
    return None if known.name == "utf-8" else known.incrementaldecoder()


class _Recoded:
    """Bytes of another encoding as UTF-8."""

    def __init__(
        self, readinto: Callable[[memoryview], int], decoder: codecs.IncrementalDecoder, name: str
    ) -> None:
        self._readinto, self._decoder, self._name = readinto, decoder, name
        self._room, self._line, self._ready = memoryview(bytearray(1 << 16)), 1, b""

    def readinto(self, room: memoryview) -> int:
        while not self._ready:
            count = self._readinto(self._room)
            try:
                text = self._decoder.decode(self._room[:count].tobytes(), final=not count)
                self._ready = text.encode()
            except UnicodeError as error:
                raise LocoleError(
                    f"{self._name}, line {self._line} or after it: {error}: is it another encoding?"
                ) from None
            self._line += text.count("\n")
            if not count:
                break
        part, self._ready = self._ready[: len(room)], self._ready[len(room) :]
        room[: len(part)] = part
        return len(part)


class _Counted:
    """The file as it is on disk, with a count of the bytes taken."""

    def __init__(self, file: Any, *, may_wait: bool) -> None:
        self._file, self._may_wait = file, may_wait
        self.count = self._n_peeked = 0
        self.close, self.fileno = file.close, file.fileno

    def peek(self) -> bytes:
        head = self._file.peek()
        self._n_peeked = len(head) if self._may_wait else 0
        return head

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self.count += len(data)
        return data

    def readinto(self, room: memoryview) -> int:
        # One call of the system: a pipe gives what is there instead of waiting for more. What was
        # peeked at is taken alone, as it would not keep readinto1 from a call that waits.
        if self._n_peeked:
            room = room[: self._n_peeked]
            self._n_peeked -= len(room)
        return self._file.readinto1(room)


class _Unpacked(io.RawIOBase):
    """xz and bzip2 files, which may consist of several streams."""

    def __init__(self, raw: _Counted, make: Callable[[], Any]) -> None:
        self._raw, self._make = raw, make
        self._unpacker = make()

    def readinto(self, room: Any) -> int:
        filled = 0
        while filled < len(room):
            data = self._next_input()
            if data is None:
                break
            part = self._unpacker.decompress(data, len(room) - filled)
            room[filled : filled + len(part)] = part
            filled += len(part)
        return filled

    def _next_input(self) -> bytes | None:
        """Packed bytes if the unpacker wants any; None at the end of the file."""
        if not self._unpacker.eof:
            if not self._unpacker.needs_input:
                return b""
            data = self._raw.read(io.DEFAULT_BUFFER_SIZE)
            if not data:
                raise EOFError("the last stream does not end")
            return data
        # Zeros may stand between and after streams.
        data = self._unpacker.unused_data.lstrip(b"\0")
        while not data:
            data = self._raw.read(io.DEFAULT_BUFFER_SIZE)
            if not data:
                return None
            data = data.lstrip(b"\0")
        self._unpacker = self._make()
        return data


_OPENERS: dict[str, Callable[[_Counted], Any]] = {
    "": lambda raw: raw,
    ".gz": lambda raw: gzip.GzipFile(fileobj=raw, mode="rb"),  # type: ignore[call-overload]
    ".xz": lambda raw: _Unpacked(
        raw, lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=XZ_MEMORY_BYTES)
    ),
    ".bz2": lambda raw: _Unpacked(raw, bz2.BZ2Decompressor),
}


def iter_chunks(source: Source) -> Iterator[Chunk]:
    """Chunks of whole lines; a missing newline at the end is added, a byte-order mark left out.

    Progress is shown if it takes more than two seconds.
    """
    return track(
        _iter_chunks(source),
        f"reading {source.name}",
        total=source.size_mb(),
        unit="MB",
        size=lambda chunk: chunk.text.size / 1e6,
    )


def _iter_chunks(source: Source) -> Iterator[Chunk]:
    room = bytearray(CHUNK_BYTES)
    filled, line = 0, 1
    # The last byte is kept for a newline that the file may lack.
    while count := source.readinto(memoryview(room)[filled:-1]):
        filled += count
        stop = room.rfind(b"\n", filled - count, filled) + 1
        if stop:
            chunk = _chunk(room, stop, line)
            yield chunk
            line += int(np.count_nonzero(chunk.text == ord("\n")))
            room[: filled - stop] = room[stop:filled]
            filled -= stop
        elif filled >= MAX_LINE_BYTES:
            raise LocoleError(
                f"{source.name}, line {line}: longer than {MAX_LINE_BYTES >> 20} MiB; is it text at all?"
            )
        elif filled == len(room) - 1:
            room = room + bytearray(len(room))
    if filled:
        room[filled] = ord("\n")
        yield _chunk(room, filled + 1, line)


def _chunk(room: bytearray, stop: int, line: int) -> Chunk:
    start = len(_BOM) if line == 1 and room.startswith(_BOM) else 0
    return Chunk(np.frombuffer(room, np.uint8, stop - start, start), line)


def decoded_lines(source: Source, *, lenient: bool = False) -> Iterator[tuple[int, str]]:
    """Line numbers and lines, without the ends of lines; lenient ones are for `check_characters`."""
    for chunk in iter_chunks(source):
        lines = _decoded(chunk, source.name, lenient).split("\n")[:-1]
        last = chunk.first_line + len(lines) - 1
        for number, line in enumerate(lines, start=chunk.first_line):
            source.must_wait = source.is_stream and number == last
            yield number, line.removesuffix("\r")


def _decoded(chunk: Chunk, name: str, lenient: bool) -> str:
    data = chunk.text.tobytes()
    try:
        return data.decode("utf-8", "surrogateescape" if lenient else "strict")
    except UnicodeDecodeError as error:
        line = chunk.first_line + data.count(b"\n", 0, error.start)
        likely = "utf-16" if line == 1 and data.startswith(_UTF16_BOMS) else "cp1252"
        raise _not_utf8(f"{name}, line {line}", data[error.start], likely) from None


def check_characters(text: str, where: str) -> None:
    """Refuse a text of lenient lines that has bytes in it which are not UTF-8."""
    found = None if text.isascii() else _UNDECODED.search(text)
    if found:
        raise _not_utf8(where, ord(found[0]) - 0xDC00, "cp1252")


def _not_utf8(where: str, byte: int, likely: str) -> LocoleError:
    return LocoleError(f"{where}: byte {byte:#04x} is not UTF-8: give encoding=, such as {likely}.")
