"""Files that verbs write: they appear when they are complete."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from locole.cli.places import check_file_place
from locole.cli.process import visible
from locole.cli.show import warn
from locole.datasets.delimited import BadRow
from locole.datasets.writing import complete_or_absent
from locole.exceptions import LocoleError

__all__ = ["kept_bad_rows", "named", "written"]


@contextmanager
def written(output: str | None) -> Iterator[BinaryIO]:
    """Open standard output, or a file that appears when it is complete."""
    if output is None or output == "-":
        with named("standard output"):
            yield cast(BinaryIO, _Screen()) if sys.stdout.isatty() else sys.stdout.buffer
        return
    with named(output), _opened(output) as file:
        yield file


@contextmanager
def named(output: str) -> Iterator[None]:
    """Let errors of the system say what could not be written: a full disk names no file."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.ENOSPC:
            error.filename = output
        raise


@contextmanager
def _opened(output: str) -> Iterator[BinaryIO]:
    check_file_place(output)
    # What is behind a link is replaced, and the link stays.
    path = Path(os.path.realpath(output))
    if path.exists() and not path.is_file():
        with open(path, "wb") as device:  # a pipe or /dev/null: nothing to rename
            yield device
        return
    with complete_or_absent(path) as file:
        yield file


class _Screen:
    """Standard output that is a terminal: what labels and texts have in them must not steer it."""

    def write(self, data: bytes) -> int:
        lines = data.decode().split("\n")
        shown = ("\t".join(map(visible, line.split("\t"))) for line in lines)
        sys.stdout.buffer.write("\n".join(shown).encode())
        return len(data)

    def flush(self) -> None:
        sys.stdout.buffer.flush()


@contextmanager
def kept_bad_rows(output: str | None, *, more: bool = False) -> Iterator[BadRow | None]:
    """Give a function that writes rows which cannot be read to a file, or None without one.

    With ``more`` they come after those that the file has.
    """
    if output is None:
        yield None
        return
    errors: list[str] = []
    before = Path(output).read_bytes() if more and os.path.isfile(output) else b""
    with written(output) as file:
        file.write(before)

        def keep(row: str, error: LocoleError) -> None:
            errors.append(str(error))
            file.write(row.encode(errors="surrogateescape") + b"\n")

        yield keep
    if errors:
        count = "1 row was" if len(errors) == 1 else f"{len(errors):,} rows were"
        warn(f"{count} left out, see {output}; the first: {errors[0]}")
