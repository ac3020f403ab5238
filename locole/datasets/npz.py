"""Sparse matrices saved by scipy, with their labels beside them; nothing in them is ever executed."""

from __future__ import annotations

import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from locole.datasets.base import MAX_FEATURES, compact_csr, label_array
from locole.datasets.growing import require_room
from locole.datasets.sources import PathLike, shown
from locole.exceptions import LocoleError
from locole.io.trust import Budget, check_csr

__all__ = ["DAMAGE", "brief", "checked_labels", "labels_path", "load_npz"]

#: Whatever numpy and zipfile raise when they are given bytes that they have not written.
DAMAGE = (
    ValueError, OSError, EOFError, LookupError, TypeError, AttributeError, MemoryError, SyntaxError,
    RecursionError, NotImplementedError, OverflowError, RuntimeError, tokenize.TokenError,
    zipfile.BadZipFile, zlib.error,
)  # fmt: skip


def labels_path(path: PathLike) -> Path:
    """Where the labels of a matrix are.

    Examples
    --------
    >>> labels_path("train.npz").name
    'train_y.npy'
    """
    path = Path(path)
    return path.with_name(f"{path.stem}_y.npy")


def load_npz(path: PathLike, *, labelled: bool = True) -> tuple[sp.csr_matrix, NDArray | None]:
    """Read a matrix of ``scipy.sparse.save_npz`` and labels of ``numpy.save``.

    Parameters
    ----------
    path : str or path
        The matrix, ``train.npz``, in CSR or CSC format; the labels, whole numbers or texts, are in
        ``train_y.npy``.
    labelled : bool
        Whether to read labels.

    Returns
    -------
    X : csr_matrix
        float32 with int32 indices.
    y : array of shape (rows,) or None
        int64, or texts as objects.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name, "train.npz")
    >>> sp.save_npz(path, sp.csr_matrix([[0.5, 0], [0, 2]]))
    >>> np.save(labels_path(path), [7, 9])
    >>> X, y = load_npz(path)
    >>> X.shape, y
    ((2, 2), array([7, 9]))
    >>> folder.cleanup()
    """
    if path == "-":
        raise LocoleError("a matrix cannot be read from standard input: give a file.")
    X = _checked_matrix(_read_matrix(path), shown(path))
    return X, _read_labels(path, X.shape[0]) if labelled else None


def _read_matrix(path: PathLike) -> sp.csr_matrix | sp.csc_matrix:
    name = shown(path)
    with open(path, "rb") as file:
        n_bytes = _unpacked_bytes(file, name)
        # Zeros pack a thousandfold: look at the size before unpacking.
        require_room(n_bytes, name)
        try:
            with np.load(file, allow_pickle=False) as members:
                return _matrix(members, Budget(n_bytes))
        except DAMAGE as error:
            raise _no_matrix(name, error) from error


def _unpacked_bytes(file: BinaryIO, name: str) -> int:
    try:
        with zipfile.ZipFile(file) as members:
            return sum(member.file_size for member in members.infolist())
    except DAMAGE as error:
        raise _no_matrix(name, error) from error
    finally:
        file.seek(0)


def _matrix(members: Any, budget: Budget) -> sp.csr_matrix | sp.csc_matrix:
    """Matrix of the arrays of a file, checked before scipy sees them, whose own check wraps around."""
    kind = members["format"].item()
    kind = kind.decode("ascii") if isinstance(kind, bytes) else kind
    if kind not in ("csr", "csc"):
        raise LocoleError(f"its format is {kind!r}")
    shape = [int(size) for size in members["shape"]]
    data, indices, indptr = (members[name] for name in ("data", "indices", "indptr"))
    indices, indptr = _places(indices), _places(indptr)
    check_csr(data, indices, indptr, shape if kind == "csr" else shape[::-1])
    # Rows without an entry are for nothing in columns.
    budget.spend(8 * shape[0], "rows")
    made = sp.csr_matrix if kind == "csr" else sp.csc_matrix
    return made((data, indices, indptr), shape=tuple(shape))


def _places(array: NDArray) -> NDArray:
    """Whole numbers in the types that are checked; anything else as it is."""
    is_usual = array.dtype in (np.dtype(np.int32), np.dtype(np.int64))
    return array if is_usual or array.dtype.kind not in "iu" else array.astype(np.int64)


def _no_matrix(name: str, error: BaseException) -> LocoleError:
    return LocoleError(
        f"{name} is no sparse matrix in CSR or CSC format, or damaged ({brief(error)}): save it with "
        "scipy.sparse.save_npz."
    )


def _checked_matrix(X: Any, name: str) -> sp.csr_matrix:
    if X.shape[1] > MAX_FEATURES or X.dtype.kind not in "biuf":
        raise LocoleError(
            f"{name}: a matrix of numbers with at most {MAX_FEATURES:,} columns is needed."
        )
    with np.errstate(over="ignore"):
        X = sp.csr_matrix(X, dtype=np.float32)
    X.sum_duplicates()
    if not np.isfinite(X.data).all():
        raise LocoleError(f"{name} has NaN, infinity or numbers too large for float32.")
    return compact_csr(X.data, X.indices, X.indptr, X.shape)


def _read_labels(path: PathLike, n_rows: int) -> NDArray:
    beside = labels_path(path)
    if not beside.exists():
        raise LocoleError(
            f"{shown(path)}: there are no labels in {beside.name} beside it: save them with numpy.save."
        )
    try:
        # Mapped, so that a header that promises too much takes no memory.
        y = np.load(beside, allow_pickle=False, mmap_mode="r")
    except DAMAGE as error:
        raise LocoleError(
            f"{shown(beside)} is no array of whole numbers or texts ({brief(error)})."
        ) from error
    return checked_labels(y, n_rows, shown(beside))


def checked_labels(y: Any, n_rows: int, name: str) -> NDArray:
    """Whole numbers as int64 or texts as objects, one for each row."""
    if not isinstance(y, np.ndarray) or y.dtype.kind not in "iuU" or y.shape != (n_rows,):
        raise LocoleError(f"{name} must hold {n_rows} whole numbers or texts.")
    if y.dtype.kind == "u" and y.max(initial=0) > np.iinfo(np.int64).max:
        raise LocoleError(f"{name} has numbers too large for int64.")
    return label_array(y.tolist()) if y.dtype.kind == "U" else np.array(y, dtype=np.int64)


def brief(error: BaseException) -> str:
    """First line of what an error says."""
    return str(error).split("\n")[0][:120] or type(error).__name__
