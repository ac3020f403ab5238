"""Compiled kernels on disk, each valid as long as no source that it was made of has changed.

numba's own cache looks at one file, so that it misses an edited function that was inlined from another;
it refuses to import where nothing can be written; and two processes that write its index at once can
leave code under the name of another signature. Here a file's name holds a hash of the sources and one
of the signature, so there is no index, and where nothing can be written kernels stay in memory.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import re
import stat
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["KERNELS", "KernelCache", "cache_folder", "compiling", "source_stamp"]

#: Folder of our own kernels.
KERNELS = Path(__file__).parent
_IMPORT = re.compile(rb"^\s*from locole\.kernels\.(\w+) import", re.MULTILINE)


class Compiling:
    """Kernels compiled in this process: their number, the seconds they took, who is told of it."""

    def __init__(self) -> None:
        self.count = 0
        self.seconds = 0.0
        #: Called with the seconds so far whenever a kernel is about to be compiled.
        self.listener: Callable[[float], None] | None = None
        self._since: list[float] = []  # of kernels under way: one is compiled within another

    def begin(self) -> None:
        """Note that a kernel is about to be compiled."""
        self._since.append(time.monotonic())
        if self.listener is not None:
            self.listener(self.seconds + self._since[-1] - self._since[0])

    def end(self) -> None:
        """Note that it is compiled."""
        since = self._since.pop()
        self.count += 1
        if not self._since:
            self.seconds += time.monotonic() - since


compiling = Compiling()


class KernelCache:
    """The cache of one function, with the methods that numba's dispatcher calls, under its lock."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._source = Path(function.__code__.co_filename)
        # What a closure holds is in no source.
        self._kept = function.__closure__ is None and self._source.is_file()
        name = re.sub(r"[^\w.]", "", f"{self._source.stem}.{function.__qualname__}")
        self._name = f"{name}-py{sys.version_info[0]}{sys.version_info[1]}"
        self._line = function.__code__.co_firstlineno

    @property
    def cache_path(self) -> str | None:
        """Folder where compiled code is written, or None."""
        folder = cache_folder(self._source.parent) if self._kept else None
        return None if folder is None else str(folder)

    def load_overload(self, signature: Any, context: Any) -> Any:
        """Return the compiled function, or None, whereupon numba compiles it."""
        context.refresh()
        if self._kept:
            name = self._file_name(signature, context.codegen())
            # Those beside the source may have been compiled by somebody who could write there.
            for folder in {self.cache_path, str(self._source.parent / "__pycache__")} - {None}:
                found = _read(Path(str(folder)) / name)
                if found is not None and found[0] == signature:
                    from numba.core.compiler import CompileResult

                    return CompileResult._rebuild(context, *found[1])
        compiling.begin()
        return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep a compiled function, if there is a place for it; files of older sources go."""
        compiling.end()
        if self.cache_path is None or result.library.has_dynamic_globals:
            return
        from numba.core.serialize import dumps

        folder, name = Path(self.cache_path), self._file_name(signature, result.codegen)
        with suppress(OSError):  # such as a full disk
            _write(folder / name, dumps((signature, result._reduce())))
            current = f"{self._name}-{source_stamp(self._source)}-"
            for old in folder.glob(f"{self._name}-*.nbc"):
                if not old.name.startswith(current):
                    old.unlink(missing_ok=True)

    def flush(self) -> None:
        """Do nothing: compiled code of these sources is never stale."""

    def _file_name(self, signature: Any, codegen: Any) -> str:
        from numba import __version__

        checked = _option("BOUNDSCHECK")
        key = (self._line, str(signature), codegen.magic_tuple(), __version__, checked)
        stamp = source_stamp(self._source)
        return f"{self._name}-{stamp}-{_digest(repr(key).encode())}.nbc"


def source_stamp(path: Path) -> str:
    """Hash of a source and of all kernels that it imports, directly or not."""
    return _digest(b"".join(_read_source(file) for file in sorted(_imported(path))))


@cache
def _imported(path: Path) -> frozenset[Path]:
    found = {path}
    waiting = [path]
    while waiting:
        names = _IMPORT.findall(_read_source(waiting.pop()))
        new = {KERNELS / f"{name.decode()}.py" for name in names} - found
        found |= new
        waiting += new
    return frozenset(found)


@cache
def _read_source(path: Path) -> bytes:
    return path.read_bytes()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _read(path: Path) -> Any:
    """What is in a file, or None if there is none that can be read."""
    try:
        signature, compiled = pickle.loads(path.read_bytes())
    except Exception:  # a damaged pickle raises whatever its bytes happen to mean
        return None
    return signature, compiled


def _write(path: Path, content: bytes) -> None:
    """Write a file in one step, so that no other process sees a part of it."""
    part = path.with_name(f"{path.name}.{uuid.uuid4().hex[:8]}")
    try:
        part.write_bytes(content)
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


@cache
def cache_folder(beside: Path) -> Path | None:
    """Folder for the compiled kernels of sources in a folder, or None if there is none to write to."""
    return next((folder for folder, safe in _folders(beside) if _usable(folder, safe)), None)


def _folders(beside: Path) -> Iterator[tuple[Path, bool]]:
    """Folders by preference, and whether nobody else may be able to write there.

    Compiled code is trusted as the package is, so that is needed of all that the user did not choose
    and that do not belong to the package.
    """
    name = f"locole-{_digest(str(beside).encode())}"
    chosen = _option("CACHE_DIR")
    if chosen:
        yield Path(chosen) / name, False
    yield beside / "__pycache__", False
    home = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
    if home.is_absolute():  # it is not for a user without a home
        yield home / "locole" / name, True
    with suppress(OSError):  # no folder for temporary files
        yield Path(tempfile.gettempdir()) / f"{name}-{_user()}", True


def _usable(folder: Path, private: bool) -> bool:
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700 if private else 0o777, exist_ok=True)
        own, above = folder.lstat(), folder.parent.stat()
    except OSError:
        return False
    if not os.access(folder, os.W_OK | os.X_OK):
        return False
    if not private or os.name != "posix":
        return True
    # A sticky folder such as /tmp lets nobody rename what others own.
    above_is_safe = above.st_uid == _user() or above.st_mode & stat.S_ISVTX
    open_to_others = own.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    ours = stat.S_ISDIR(own.st_mode) and own.st_uid == _user() and not open_to_others
    return bool(ours and above_is_safe)


def _option(name: str) -> Any:
    """What the environment variable NUMBA_… of that name says."""
    from numba import config

    return getattr(config, name)


def _user() -> int:
    return os.geteuid() if os.name == "posix" else 0
