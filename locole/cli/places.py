"""Whether files can be read and written where the user says, asked before any work is done."""

from __future__ import annotations

import errno
import os
import tempfile

from locole.exceptions import LocoleError

__all__ = [
    "IN_PLACE",
    "check_file_place",
    "check_model_place",
    "check_old_model",
    "check_readable",
]

#: Way out for verbs that change a model, or write the changed one to a place where there is none.
IN_PLACE = "take another path, or leave --output out to change the model in its place"


def check_readable(*paths: str | None) -> None:
    """Refuse files that are not there or may not be read; ``-`` is standard input, None no file."""
    for path in paths:
        if path is None or path == "-":
            continue
        os.stat(path)  # says that there is none
        if os.path.isdir(path):
            raise LocoleError(f"{path} is a folder: give the name of a file.")
        if not os.access(path, os.R_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)


def check_model_place(path: str, *, force: bool, way_out: str = "replace it by --force") -> None:
    """Refuse before an hour of training what would be refused after it."""
    parent = os.path.dirname(os.path.abspath(path))
    _check_folder(parent, path)
    if not os.path.lexists(path):
        _check_writable(parent, path)
        return
    if not os.path.isdir(path):
        raise LocoleError(f"{path} is a file: a model is a folder, take another path.")
    if os.listdir(path):
        if not os.path.exists(os.path.join(path, "manifest.json")):
            raise LocoleError(f"{path} is not empty and holds no model: take another path.")
        if not force:
            raise LocoleError(f"there is a model in {path}: {way_out}.")
    _check_writable(path, path)


def check_old_model(path: str) -> None:
    """Refuse a folder whose manifest cannot be read, as a save would; this imports heavy parts."""
    if os.path.exists(os.path.join(path, "manifest.json")):
        from locole.io import read_manifest

        read_manifest(path)


def check_file_place(path: str | None, *others: str | None) -> None:
    """Refuse a file that could not be written in the end; ``-`` and None are standard output.

    Others are files that the same command reads or writes, which must not be replaced.
    """
    if path is None or path == "-":
        return
    # What is behind a link is replaced.
    real = os.path.realpath(path)
    if os.path.isdir(real):
        raise LocoleError(f"{path} is a folder: give the name of a file.")
    if any(_is_same_file(real, other) for other in others):
        raise LocoleError(
            f"{path} is named twice, and what is written would replace the other: take another path."
        )
    _check_folder(os.path.dirname(real), path)
    if not os.path.exists(real) or os.path.isfile(real):  # a pipe or device is written as it is
        _check_writable(os.path.dirname(real), path)


def _is_same_file(real: str, other: str | None) -> bool:
    """Whether both are one file, also by links; pipes and devices may be named twice."""
    if other is None or other == "-" or (os.path.exists(real) and not os.path.isfile(real)):
        return False
    if os.path.exists(real) and os.path.exists(other):
        return os.path.samefile(real, other)
    return real == os.path.realpath(other)


def _check_folder(folder: str, path: str) -> None:
    if not os.path.isdir(folder):
        raise LocoleError(f"{path}: there is no folder {folder}: make it first.")


def _check_writable(folder: str, path: str) -> None:
    """Make a file without a name: what the system says of permissions is not all there is."""
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise LocoleError(
            f"{path} cannot be written ({error.strerror}): take another path, or make {folder} writable."
        ) from None
