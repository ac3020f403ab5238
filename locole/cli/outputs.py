"""Files that verbs write: they appear when they are complete."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from locole.cli.places import check_file_place
from locole.cli.show import warn
from locole.datasets.delimited import BadRow
from locole.datasets.writing import complete_or_absent
from locole.exceptions import LocoleError

__all__ = ["kept_bad_rows", "written"]


@contextmanager
def written(output: str | None) -> Iterator[BinaryIO]:
    """Open standard output, or a file that appears when it is complete."""
    if output is None or output == "-":
        yield sys.stdout.buffer
        return
    check_file_place(output)
    # What is behind a link is replaced, and the link stays.
    path = Path(os.path.realpath(output))
    if path.exists() and not path.is_file():
        with open(path, "wb") as device:  # a pipe or /dev/null: nothing to rename
            yield device
        return
    with complete_or_absent(path) as file:
        yield file


@contextmanager
def kept_bad_rows(output: str | None) -> Iterator[BadRow | None]:
    """Give a function that writes rows which cannot be read to a file, or None without one."""
    if output is None:
        yield None
        return
    errors: list[str] = []
    with written(output) as file:

        def keep(row: str, error: LocoleError) -> None:
            errors.append(str(error))
            file.write(row.encode() + b"\n")

        yield keep
    if errors:
        warn(f"{len(errors):,} rows were left out, see {output}; the first: {errors[0]}")
