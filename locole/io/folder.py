"""A model's folder: replaced as a whole, whatever happens on the way."""

from __future__ import annotations

import os
import re
import secrets
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Literal

from locole.exceptions import ModelFileError
from locole.io.arrays import map_arrays, verify_arrays, write_arrays
from locole.io.manifest import MAX_BYTES, Manifest, dump_manifest, parse_manifest
from locole.io.tree import Encoder, decode

try:
    import fcntl
except ImportError:  # not on Windows, where two writers of one folder are on their own
    fcntl = None  # type: ignore[assignment]

__all__ = ["Verify", "read_manifest", "read_model", "write_model"]

Verify = bool | Literal["auto"]

_MANIFEST = "manifest.json"
# Files that a save may leave behind: arrays of another model, and what was being written.
_OURS = re.compile(r"arrays-[0-9a-f]{32}\.safetensors|\.saving-[0-9a-f]{16}")
# Checked in about 0.2 s; "auto" stops there.
_AUTO_BYTES = 256 << 20
# How long a reader looks for a file of arrays that was replaced while it read the manifest.
_ATTEMPTS, _PAUSE_S = 100, 0.001


# Write ------------------------------------------------------------------------------------------


def write_model(
    path: str | os.PathLike[str],
    model: Any,
    *,
    notes: Mapping[str, str] | None = None,
    replaces: Manifest | None = None,
) -> None:
    """Save a model into the folder ``path``, which is made or, if it holds a model, replaced.

    The manifest is the pointer: arrays are written first, under a name of their own, then the manifest
    is replaced in one step, then old arrays are removed. So at every moment the folder holds the old
    model or the new one, and a process that is reading gets one of the two. What a save that was killed
    has left is removed by the next. ``notes`` on how the model was made go into the manifest. A model
    that was made from the one in the folder says by ``replaces`` which that was: if the folder holds
    another one by now, nothing is written, since what that one has learnt would be lost.
    """
    folder = Path(path)
    encoder = Encoder()
    try:
        raw = dump_manifest(encoder.encode(model), encoder.table, notes)
        encoder.check_budget()
    except ModelFileError as error:
        raise ModelFileError(f"the model cannot be saved: {error}.") from None
    except RecursionError:
        raise ModelFileError("the model cannot be saved: it is nested too deeply.") from None
    arrays_file = parse_manifest(raw).arrays_file
    is_new = not folder.exists()
    try:
        if _make(folder):
            _sync(folder.absolute().parent)
        with _locked(folder):
            _check_replaceable(folder, replaces)
            # No context manager: its own code, between body and cleanup, can be interrupted too.
            try:
                _sweep(folder)
                _write(
                    folder, arrays_file, lambda f: write_arrays(f, encoder.table, encoder.arrays)
                )
                _sync(folder)
                _write(folder, _MANIFEST, lambda file: file.write(raw))
                _sync(folder)
                _sweep(folder)
            except BaseException:
                _sweep(folder)
                raise
    except BaseException:
        if is_new:
            with suppress(OSError):
                folder.rmdir()
        raise


def _make(folder: Path) -> bool:
    """Whether the folder was made; False if it was there."""
    try:
        folder.mkdir()
    except FileExistsError:
        if folder.is_dir():
            return False
        raise ModelFileError(
            f"{folder} is a file: a model is a folder, take another path."
        ) from None
    except (FileNotFoundError, NotADirectoryError):
        parent = folder.absolute().parent
        raise ModelFileError(f"there is no folder {parent}: make it first.") from None
    return True


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Wait for other savers of this folder; a lock dies with its process."""
    if fcntl is None:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        # Some network file systems have no locks.
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _check_replaceable(folder: Path, replaces: Manifest | None) -> None:
    """Refuse to write into a folder that holds something else, or not the model to be replaced."""
    names = os.listdir(folder)
    if _MANIFEST not in names:
        if all(_OURS.fullmatch(name) for name in names):
            return
        raise ModelFileError(
            f"{folder} is not empty and holds no model: take another path or remove it."
        )
    try:
        present = _read_manifest(folder)
    except (OSError, ModelFileError) as error:
        raise ModelFileError(
            f"{folder} holds something that this locole cannot read ({error}): take another path or "
            "remove it."
        ) from None
    if replaces is not None and present != replaces:
        raise ModelFileError(
            f"{folder} holds another model than the one that was changed, because somebody else has "
            "replaced it meanwhile: make the change again, or save to another path."
        )


def _sweep(folder: Path) -> None:
    """Remove what belongs to no model, if it is ours."""
    kept = None
    with suppress(FileNotFoundError):
        kept = _read_manifest(folder).arrays_file
    for name in os.listdir(folder):
        if name != kept and _OURS.fullmatch(name):
            # Windows does not remove a file that is in use: the next save will.
            with suppress(OSError):
                os.unlink(folder / name)


def _write(folder: Path, name: str, fill: Callable[[BinaryIO], Any]) -> None:
    """Write a file under another name, wait for the disk, give it its name."""
    temporary = folder / f".saving-{secrets.token_hex(8)}"
    with open(temporary, "xb") as file:
        fill(file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, folder / name)


def _sync(folder: Path) -> None:
    """Wait until the disk knows the folder's names, where the system can."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# Read -------------------------------------------------------------------------------------------


def read_model(path: str | os.PathLike[str], *, verify: Verify = "auto") -> Any:
    """Return the model in the folder ``path``, its arrays mapped into memory.

    Parameters
    ----------
    path : str or path
        The folder.
    verify : bool or "auto"
        Whether the bytes of the arrays are compared with their hashes; see `locole.load`.
    """
    if verify not in (True, False, "auto"):
        raise ModelFileError(f'verify must be True, False or "auto", not {verify!r}.')
    max_bytes = _AUTO_BYTES if verify == "auto" else float("inf") if verify else -1.0
    folder = Path(path)
    try:
        manifest, arrays = _map_whole(folder)
        verify_arrays(arrays, manifest.arrays, max_bytes=max_bytes)
        return decode(manifest.model, arrays)
    except ModelFileError as error:
        raise ModelFileError(f"the model in {folder} cannot be loaded: {error}.") from error


def read_manifest(path: str | os.PathLike[str]) -> Manifest:
    """Return what a model's manifest says, without looking at its arrays."""
    folder = Path(path)
    try:
        return _read_manifest(folder)
    except (FileNotFoundError, NotADirectoryError):
        raise ModelFileError(
            f"there is no model in {folder}: give the path of a folder that save has made."
        ) from None
    except ModelFileError as error:
        raise ModelFileError(f"the model in {folder} cannot be loaded: {error}.") from error


def _map_whole(folder: Path) -> tuple[Manifest, dict[str, Any]]:
    """Return a manifest and the arrays that belong to it, also while another process saves."""
    for _ in range(_ATTEMPTS):
        try:
            manifest = _read_manifest(folder)
        except (FileNotFoundError, NotADirectoryError):
            raise ModelFileError(
                "there is none: give the path of a folder that save has made"
            ) from None
        try:
            with _open_plain(folder / manifest.arrays_file) as file:
                return manifest, map_arrays(file, manifest.arrays)
        except FileNotFoundError:
            # A save came between the two files: the next manifest names its own. Or it is lost.
            time.sleep(_PAUSE_S)
    raise ModelFileError(f"its file {manifest.arrays_file} is missing")


def _read_manifest(folder: Path) -> Manifest:
    with _open_plain(folder / _MANIFEST) as file:
        size = os.fstat(file.fileno()).st_size
        if size > MAX_BYTES:
            raise ModelFileError("its manifest is too long to be one")
        return parse_manifest(file.read(size))


def _open_plain(path: Path) -> BinaryIO:
    """Open an ordinary file: no link to elsewhere, no pipe that would wait for ever."""
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0)
    flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    if path.is_symlink():
        raise ModelFileError(f"its file {path.name} is a link")
    handle = os.open(path, flags)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise ModelFileError(f"its file {path.name} is no ordinary file")
    return open(handle, "rb")
