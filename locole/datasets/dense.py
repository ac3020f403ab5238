"""Dense rows, such as sentence embeddings, out of .npy, .npz and Parquet files of any size."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from locole.datasets.base import label_array
from locole.datasets.delimited import split_labels
from locole.datasets.growing import require_room
from locole.datasets.npz import DAMAGE, brief, checked_labels, labels_path
from locole.datasets.parquet import arrow_errors, import_pyarrow
from locole.datasets.sources import PathLike, shown, suffix_of
from locole.dense_rows import room_for
from locole.exceptions import LocoleError

__all__ = ["iter_dense", "load_dense"]

# Rows of Parquet that are read at a time.
_BATCH_ROWS = 4096


def load_dense(
    path: PathLike,
    *,
    dense: str | None = None,
    label: str | None = None,
    labelled: bool = True,
    label_separator: str | None = None,
) -> tuple[NDArray, Any]:
    """Read dense rows and their labels.

    Parameters
    ----------
    path : str or path
        ``.npy``: an array of ``numpy.save``, which is mapped into memory and may be larger than it, with
        its labels in ``<name>_y.npy``. ``.npz``: arrays of ``numpy.savez``. ``.parquet``: a column of
        lists of numbers, all of one length; if it is too large for memory it is read into a temporary
        file.
    dense, label : str, optional
        Names of the array or column of rows and of labels; by default ``"X"`` and ``"y"`` in an .npz
        file, ``"embedding"`` and ``"label"`` in a Parquet file.
    labelled : bool
        Whether to read labels.
    label_separator : str, optional
        What stands between the labels of a row, which are texts.

    Returns
    -------
    X : array of shape (rows, numbers)
        float32, or as the .npy file has it.
    y : array of shape (rows,) or None
        int64, or texts as objects. A list of tuples if there is a separator.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name, "train.npz")
    >>> np.savez(path, X=np.eye(2), y=["cat", "dog"])
    >>> X, y = load_dense(path)
    >>> X.shape, y
    ((2, 2), array(['cat', 'dog'], dtype=object))
    >>> folder.cleanup()
    """
    X, y = _load(path, dense, label, labelled)
    return X, _sets(y, label_separator)


def iter_dense(
    path: PathLike,
    *,
    batch_rows: int = _BATCH_ROWS,
    dense: str | None = None,
    label: str | None = None,
    labelled: bool = True,
    label_separator: str | None = None,
) -> Iterator[tuple[NDArray[np.float32], Any]]:
    """Read dense rows in batches, whatever their number.

    Parameters
    ----------
    path : str or path
        File, as for `load_dense`.
    batch_rows : int
        Rows of a batch.
    dense, label : str, optional
        Names of the array or column of rows and of labels, as for `load_dense`.
    labelled : bool
        Whether to read labels.
    label_separator : str, optional
        What stands between the labels of a row, as for `load_dense`.

    Yields
    ------
    X : array of shape (batch_rows, numbers) of float32
        Rows of a batch.
    y : array of shape (batch_rows,), list of tuples, or None
        Their labels.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name, "train.npz")
    >>> np.savez(path, X=np.eye(3), y=[0, 1, 2])
    >>> [len(y) for X, y in iter_dense(path, batch_rows=2)]
    [2, 1]
    >>> folder.cleanup()
    """
    if batch_rows < 1:
        raise LocoleError(f"batch_rows must be at least 1, not {batch_rows}.")
    if suffix_of(path) == ".parquet":
        parts = _parquet_batches(path, dense, label, labelled, batch_rows)
        yield from ((X, _sets(y, label_separator)) for X, y in parts)
        return
    X, y = load_dense(
        path, dense=dense, label=label, labelled=labelled, label_separator=label_separator
    )
    for start in range(0, len(X), batch_rows):
        rows = slice(start, start + batch_rows)
        yield np.asarray(X[rows], dtype=np.float32), None if y is None else y[rows]


def _load(
    path: PathLike, dense: str | None, label: str | None, labelled: bool
) -> tuple[NDArray, NDArray | None]:
    if path == "-":
        raise LocoleError("dense rows cannot be read from standard input: give a file.")
    kind = suffix_of(path)
    if kind == ".npy":
        return _load_npy(path, labelled)
    if kind == ".npz":
        return _load_npz(path, dense or "X", (label or "y") if labelled else None)
    if kind == ".parquet":
        return _load_parquet(path, dense, label, labelled)
    raise LocoleError(f"{shown(path)}: dense rows are read from .npy, .npz and .parquet files.")


def _sets(y: NDArray | None, separator: str | None) -> Any:
    """Labels of each row, if something separates them."""
    if y is None or separator is None:
        return y
    return [split_labels(str(label), separator) for label in y]


# NumPy ----------------------------------------------------------------------------------------------


def _load_npy(path: PathLike, labelled: bool) -> tuple[NDArray, NDArray | None]:
    X = _checked(_mapped(path), shown(path))
    if not labelled:
        return X, None
    beside = labels_path(path)
    if not beside.exists():
        raise LocoleError(
            f"{shown(path)}: there are no labels in {beside.name} beside it: save them with numpy.save."
        )
    return X, checked_labels(_mapped(beside), len(X), shown(beside))


def _mapped(path: PathLike) -> Any:
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except DAMAGE as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise LocoleError(
            f"{shown(path)} is no array, or damaged ({brief(error)}): save it with numpy.save."
        ) from error


def _load_npz(path: PathLike, dense: str, label: str | None) -> tuple[NDArray, NDArray | None]:
    name = shown(path)
    with open(path, "rb") as file:
        try:
            with zipfile.ZipFile(file) as members:
                require_room(sum(member.file_size for member in members.infolist()), name)
            file.seek(0)
            with np.load(file, allow_pickle=False) as arrays:
                known = list(arrays)
                for wanted in (dense, *([] if label is None else [label])):
                    if wanted not in known:
                        raise LocoleError(
                            f"{name} has no array {wanted!r}: it has {', '.join(known)[:200]}."
                        )
                X, y = arrays[dense], None if label is None else arrays[label]
        except LocoleError:
            raise
        except DAMAGE as error:
            raise LocoleError(
                f"{name} holds no arrays, or is damaged ({brief(error)}): save them with numpy.savez."
            ) from error
    X = _checked(X, name)
    if X.dtype != np.float32:
        with np.errstate(over="ignore"):
            X = X.astype(np.float32)
    return X, None if y is None else checked_labels(y, len(X), f"{name}, {label}")


def _checked(X: Any, name: str) -> NDArray:
    is_table = isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "biuf"
    if not is_table:
        raise LocoleError(f"{name}: rows of numbers are needed, an array of two dimensions.")
    if X.shape[0] == 0 or X.shape[1] == 0:
        raise LocoleError(f"{name} has no rows: is it the right file?")
    return X


# Parquet ----------------------------------------------------------------------------------------------


def _load_parquet(
    path: PathLike, dense: str | None, label: str | None, labelled: bool
) -> tuple[NDArray, NDArray | None]:
    X: Any = None
    labels: list[NDArray] = []
    filled = 0
    for rows, y in _parquet_batches(path, dense, label, labelled, _BATCH_ROWS):
        if X is None:
            X = room_for(_parquet_rows(path), rows.shape[1])
        X[filled : filled + len(rows)] = rows
        filled += len(rows)
        labels += [] if y is None else [y]
    if X is None:
        raise LocoleError(f"{shown(path)} has no rows: is it the right file?")
    return X[:filled], np.concatenate(labels) if labels else None


def _parquet_rows(path: PathLike) -> int:
    _, parquet = import_pyarrow()
    with open(path, "rb") as file, arrow_errors(path):
        return int(parquet.ParquetFile(file).metadata.num_rows)


def _parquet_batches(
    path: PathLike, dense: str | None, label: str | None, labelled: bool, batch_rows: int
) -> Iterator[tuple[NDArray[np.float32], NDArray | None]]:
    _, parquet = import_pyarrow()
    dense, label = dense or "embedding", label or "label"
    wanted = [dense, *([label] if labelled else [])]
    with open(path, "rb") as file, arrow_errors(path):
        table = parquet.ParquetFile(file)
        for name in wanted:
            if name not in table.schema_arrow.names:
                known = ", ".join(table.schema_arrow.names)[:200]
                raise LocoleError(f"{shown(path)} has no column {name!r}: it has {known}.")
        n_numbers = None
        for batch in table.iter_batches(batch_rows, columns=wanted):
            rows = _vectors(batch.column(dense), f"{shown(path)}, column {dense!r}")
            if n_numbers not in (None, rows.shape[1]):
                raise LocoleError(f"{shown(path)}, column {dense!r}: lists differ in length.")
            n_numbers = rows.shape[1]
            yield (
                rows,
                _labels(batch.column(label), f"{shown(path)}, column {label!r}")
                if labelled
                else None,
            )


def _vectors(column: Any, name: str) -> NDArray[np.float32]:
    """Lists of numbers as rows."""
    if not hasattr(column, "flatten") or column.null_count:
        raise LocoleError(f"{name} must hold a list of numbers in every row.")
    column.validate(full=True)
    flat = column.flatten()
    if flat.null_count or not (hasattr(flat, "to_numpy") and str(flat.type) in _NUMBERS):
        raise LocoleError(f"{name} must hold a list of numbers in every row.")
    values = flat.to_numpy(zero_copy_only=False).astype(np.float32)
    lengths = np.unique(column.value_lengths().to_numpy(zero_copy_only=False))
    if lengths.size != 1 or lengths[0] == 0:
        raise LocoleError(f"{name}: lists differ in length.")
    return values.reshape(len(column), int(lengths[0]))


_NUMBERS = (
    "halffloat",
    "float",
    "double",
    *(f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64)),
)


def _labels(column: Any, name: str) -> NDArray:
    values = column.to_pylist()
    if all(type(value) is int for value in values):
        return np.array(values, dtype=np.int64)
    if not all(type(value) is str for value in values):
        raise LocoleError(f"{name} must hold whole numbers or texts.")
    return label_array(values)
