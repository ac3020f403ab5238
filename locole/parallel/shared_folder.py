"""Arrays in files that all nodes can see, for data that is too large for an object store."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from locole.exceptions import LocoleError

__all__ = ["fetched", "stored"]

# Smaller arrays travel with the rest.
_LARGE_BYTES = 1 << 20


class _File(NamedTuple):
    """An array that is in a file; the name is a hash of its contents."""

    path: str


class _StoredCsr(NamedTuple):
    """A CSR array, of which some arrays may be in files."""

    data: Any
    indices: Any
    indptr: Any
    shape: tuple[int, int]


def stored(value: Any, folder: str) -> Any:
    """Return the value with its large arrays replaced by names of files, which are written.

    Arrays are looked for in tuples, also named ones, and CSR arrays. A file that is there already is not
    written again: its name says what is in it. So nodes without a common file system can each have a
    copy of the folder.

    Examples
    --------
    >>> stored((1, np.arange(3)), "/no/such/folder")
    (1, array([0, 1, 2]))
    """
    if isinstance(value, sp.csr_array):
        arrays = (value.data, value.indices, value.indptr)
        data, indices, indptr = (stored(array, folder) for array in arrays)
        return _StoredCsr(data, indices, indptr, value.shape)
    if isinstance(value, tuple):
        return _like(value, [stored(item, folder) for item in value])
    if isinstance(value, np.ndarray) and value.nbytes >= _LARGE_BYTES:
        return _written(value, Path(folder))
    return value


def fetched(value: Any) -> Any:
    """Undo `stored`: files are mapped into memory, read-only, once for all processes of a node."""
    if isinstance(value, _File):
        try:
            return np.load(value.path, mmap_mode="r", allow_pickle=False).view(np.ndarray)
        except OSError as error:
            raise LocoleError(
                f"a node cannot read {value.path}: the folder must be one that all nodes see under this "
                "path, or have a copy of."
            ) from error
    if isinstance(value, _StoredCsr):
        data, indices, indptr = map(fetched, value[:3])
        rows = sp.csr_array((data, indices, indptr), shape=value.shape)
        # scipy takes a narrower type of index if it can, which would be a copy in each process.
        rows.data, rows.indices, rows.indptr = data, indices, indptr
        return rows
    return _like(value, list(map(fetched, value))) if isinstance(value, tuple) else value


def _like(value: tuple[Any, ...], items: list[Any]) -> Any:
    return type(value)(*items) if hasattr(value, "_fields") else tuple(items)


def _written(array: NDArray, folder: Path) -> _File:
    array = np.ascontiguousarray(array)
    said = f"{array.dtype.str} {array.shape}".encode()
    digest = hashlib.blake2b(said + b"\n", digest_size=16)
    digest.update(array.reshape(-1).view(np.uint8).data)
    path = folder.absolute() / f"{digest.hexdigest()}.npy"
    if path.exists():
        return _File(str(path))
    if not folder.is_dir():
        raise LocoleError(f"there is no folder {folder}: make one that all nodes can see.")
    number, name = tempfile.mkstemp(dir=folder, suffix=".part")
    try:
        with os.fdopen(number, "wb") as file:
            np.lib.format.write_array(file, array, allow_pickle=False)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
    # mkstemp's files are for one user only, and workers may be another.
    path.chmod(0o644)
    return _File(str(path))
