"""LIBSVM files that read back to the same bits, written so that no half file is ever seen."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse as sp

from locole.datasets.sources import PathLike
from locole.exceptions import LocoleError

__all__ = ["complete_or_absent", "save_libsvm"]

_BLOCK_ROWS = 4096
# What would end a label, or make it several or a feature.
_NOT_IN_LABELS = frozenset(" \t\r\n,:")
_PACKERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}


def save_libsvm(path: PathLike, X: Any, y: Any = None, *, zero_based: bool = False) -> None:
    """Write rows and labels as a LIBSVM file, packed if the name ends in .gz, .xz or .bz2.

    Values are written with as few digits as give the same float32 back. The file appears when it is
    complete: an interrupted call leaves the old one, or none.

    Parameters
    ----------
    path : str or path
        Where to.
    X : sparse matrix or array of shape (rows, n_features)
        Finite numbers, rounded to float32. Explicit zeros are written.
    y : array of shape (rows,) or sparse matrix of shape (rows, n_labels), optional
        Whole numbers, or texts without blanks, commas and colons; or a one for each label of a row.
        Without it every line gets label 0, as is usual for unlabelled rows.
    zero_based : bool
        Whether the first feature gets index 0.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import scipy.sparse as sp
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name, "small.svm")
    >>> save_libsvm(path, sp.csr_matrix([[0.5, 0, 2], [0, 0.1, 0]]), [7, 9])
    >>> print(path.read_text(), end="")
    7 1:0.5 3:2.0
    9 2:0.1
    >>> folder.cleanup()
    """
    rows = _checked_rows(X)
    labels = _label_fields(y, rows.shape[0])
    with complete_or_absent(Path(path)) as file:
        for start in range(0, rows.shape[0], _BLOCK_ROWS):
            block = rows[start : start + _BLOCK_ROWS]
            lines = _lines(block, labels(start, start + block.shape[0]), 0 if zero_based else 1)
            file.write(lines.encode())


def _checked_rows(X: Any) -> sp.csr_matrix:
    X = sp.csr_matrix(X)
    with np.errstate(over="ignore"):
        X = X.astype(np.float32)
    X.sum_duplicates()
    if not np.isfinite(X.data).all():
        raise LocoleError("X has NaN, infinity or numbers too large for float32: replace them.")
    return X


def _label_fields(y: Any, n_rows: int) -> Callable[[int, int], list[str]]:
    """Function that gives the label fields of some rows."""
    if y is None:
        return lambda start, stop: ["0"] * (stop - start)
    y = sp.csr_matrix(y) if sp.issparse(y) else np.asarray(y)
    if y.shape[0] != n_rows:
        raise LocoleError(f"X has {n_rows} rows but y has {y.shape[0]}.")
    if sp.issparse(y):
        return lambda start, stop: [
            ",".join(map(str, y.indices[a:b]))
            for a, b in zip(y.indptr[start:stop], y.indptr[start + 1 : stop + 1], strict=True)
        ]
    if y.ndim != 1 or y.dtype.kind not in "iuUO":
        raise LocoleError("y must be a list of whole numbers or texts, or a sparse matrix.")
    return lambda start, stop: [_label_field(label) for label in y[start:stop].tolist()]


def _label_field(label: Any) -> str:
    field = str(label)
    if not isinstance(label, str | int) or not field or not _NOT_IN_LABELS.isdisjoint(field):
        raise LocoleError(f"label {label!r} cannot be written: use texts without blanks , and :")
    if field.startswith("#"):
        raise LocoleError(f"label {label!r} cannot be written: # would start a comment.")
    return field


def _lines(block: sp.csr_matrix, labels: list[str], first: int) -> str:
    # The text of a float32 array has the shortest digits that tell its numbers apart.
    values: list[str] = block.data.astype("U32").tolist()
    indices: list[int] = (block.indices + first).tolist()
    pairs = [f" {index}:{value}" for index, value in zip(indices, values, strict=True)]
    ends = block.indptr.tolist()
    lines = [label + "".join(pairs[ends[i] : ends[i + 1]]) for i, label in enumerate(labels)]
    if "" in lines:
        raise LocoleError(
            "a row has neither labels nor features, which the format cannot express: leave it out."
        )
    return "\n".join(lines) + "\n"


@contextmanager
def complete_or_absent(path: Path) -> Iterator[BinaryIO]:
    """Write to a temporary file beside ``path``, which takes its name once it is safe on disk."""
    name = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with open(name, "xb") as file:
            pack = _PACKERS.get(path.suffix.lower())
            if pack is None:
                yield file
            else:
                with pack(file, "wb") as packed:
                    yield packed
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        name.unlink(missing_ok=True)
        raise
