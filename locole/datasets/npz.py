"""Sparse matrices saved by scipy, with their labels beside them; nothing in them is ever executed."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from locole.datasets.base import MAX_FEATURES, compact_csr, label_array
from locole.datasets.growing import require_room
from locole.datasets.sources import PathLike, shown
from locole.exceptions import LocoleError

__all__ = ["labels_path", "load_npz"]


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


def _read_matrix(path: PathLike) -> Any:
    name = shown(path)
    with open(path, "rb") as file:
        try:
            with zipfile.ZipFile(file) as members:
                # Zeros pack a thousandfold: look at the size before unpacking.
                require_room(sum(member.file_size for member in members.infolist()), name)
            file.seek(0)
            X = sp.load_npz(file)
            X.check_format(full_check=True)
        except LocoleError:
            raise
        except (
            ValueError, OSError, EOFError, KeyError, TypeError, AttributeError, MemoryError,
            NotImplementedError, OverflowError, zipfile.BadZipFile, zlib.error,
        ) as error:  # fmt: skip
            raise LocoleError(
                f"{name} is no sparse matrix in CSR format, or damaged ({_brief(error)}): save it "
                "with scipy.sparse.save_npz."
            ) from error
    return X


def _checked_matrix(X: Any, name: str) -> sp.csr_matrix:
    if X.ndim != 2 or X.shape[1] > MAX_FEATURES or X.dtype.kind not in "biuf":
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
    except (ValueError, OSError, EOFError, OverflowError, MemoryError) as error:
        raise LocoleError(
            f"{shown(beside)} is no array of whole numbers or texts ({_brief(error)})."
        ) from error
    if not isinstance(y, np.ndarray) or y.dtype.kind not in "iuU" or y.shape != (n_rows,):
        raise LocoleError(f"{shown(beside)} must hold {n_rows} whole numbers or texts.")
    if y.dtype.kind == "u" and y.max(initial=0) > np.iinfo(np.int64).max:
        raise LocoleError(f"{shown(beside)} has numbers too large for int64.")
    return label_array(y.tolist()) if y.dtype.kind == "U" else np.array(y, dtype=np.int64)


def _brief(error: BaseException) -> str:
    return str(error).split("\n")[0][:120] or type(error).__name__
