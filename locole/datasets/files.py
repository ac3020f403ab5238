"""One door to all file formats: features and labels of a file, whole or in batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from locole.datasets.columns import Unknown, ZeroBased
from locole.datasets.delimited import Column
from locole.datasets.libsvm import iter_libsvm, load_libsvm
from locole.datasets.npz import load_npz
from locole.datasets.sources import PathLike, shown, suffix_of
from locole.datasets.tables import TEXT_SUFFIXES, iter_texts, load_texts
from locole.datasets.xmc import iter_xmc, load_xmc
from locole.exceptions import LocoleError

__all__ = ["FORMATS", "Examples", "format_of", "iter_examples", "read_examples"]

_SUFFIXES = {
    ".svm": "libsvm",
    ".libsvm": "libsvm",
    ".xmc": "xmc",
    ".npz": "npz",
    **TEXT_SUFFIXES,
}
#: Names of the formats.
FORMATS = tuple(dict.fromkeys(_SUFFIXES.values()))


class Examples(NamedTuple):
    """Rows of a file."""

    features: csr_matrix | list[str]
    """Numbers, or texts."""
    labels: NDArray | None
    """One for each row: int64, or texts as objects."""


def format_of(path: PathLike, format: str = "auto") -> str:
    """Name of a file's format, from its suffix unless it is given.

    Examples
    --------
    >>> format_of("train.svm.xz"), format_of("-"), format_of("train.txt", "xmc")
    ('libsvm', 'txt', 'xmc')
    """
    if format != "auto":
        if format not in FORMATS:
            raise LocoleError(f"unknown format {format!r}: take one of auto, {', '.join(FORMATS)}.")
        return format
    if path == "-":
        return "txt"
    found = _SUFFIXES.get(suffix_of(path))
    if found is None:
        raise LocoleError(
            f"{shown(path)}: the suffix is none of {', '.join(_SUFFIXES)}: rename the file or give "
            f"format=, one of {', '.join(FORMATS)}."
        )
    return found


def read_examples(
    path: PathLike,
    *,
    format: str = "auto",
    text: Column | Sequence[Column] | None = None,
    label: Column | None = None,
    labelled: bool = True,
    n_features: int | None = None,
    zero_based: ZeroBased = "auto",
    unknown: Unknown = "error",
) -> Examples:
    r"""Read all rows of a file of any format.

    Parameters
    ----------
    path : str or path
        The file; ``"-"`` is standard input.
    format : str
        "libsvm", "xmc", "npz", "tsv", "csv", "jsonl", "parquet" or "txt"; ``"auto"`` goes by the
        suffix (.svm and .libsvm are "libsvm"), and takes standard input as "txt".
    text, label : str or int, optional
        Columns of a table: see `load_texts`.
    labelled : bool
        Whether labels are needed; otherwise they are skipped where there are any.
    n_features, zero_based, unknown
        For "libsvm": see `load_libsvm`. A file of another kind that has not ``n_features`` columns is
        an error.

    Returns
    -------
    features : csr_matrix or list of str
    labels : array of shape (rows,) or None
        Both as the fields of a named tuple. Rows with several labels are an error.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name, "small.tsv")
    >>> _ = path.write_text("bird\trobin\nfish\tsalmon\n")
    >>> read_examples(path)
    Examples(features=['robin', 'salmon'], labels=array(['bird', 'fish'], dtype=object))
    >>> folder.cleanup()
    """
    kind = _checked_format(path, format, labelled, text, label)
    if kind == "libsvm":
        X, y = load_libsvm(
            path,
            n_features=n_features,
            zero_based=zero_based,
            labels="auto" if labelled else None,
            unknown=unknown,
        )
        return Examples(X, y)
    if kind in ("xmc", "npz"):
        if kind == "xmc":
            X, y = load_xmc(path, labels="error" if labelled else None)
        else:
            X, y = load_npz(path, labelled=labelled)
        return Examples(_with_columns(X, n_features, shown(path)), y)
    return Examples(*load_texts(path, text=text, label=label, labelled=labelled, format=kind))


def iter_examples(
    path: PathLike,
    *,
    batch_rows: int = 4096,
    format: str = "auto",
    text: Column | Sequence[Column] | None = None,
    label: Column | None = None,
    labelled: bool = True,
    n_features: int | None = None,
    zero_based: ZeroBased = "auto",
    unknown: Unknown = "error",
) -> Iterator[Examples]:
    r"""Read a file of any format in batches; all but "npz" are streamed, whatever their size.

    Parameters
    ----------
    path, format, text, label, labelled, n_features, zero_based, unknown
        As for `read_examples`.
    batch_rows : int
        Rows of a batch; the last one may have fewer.

    Yields
    ------
    features : csr_matrix or list of str
    labels : array of shape (batch_rows,) or None

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name, "small.svm")
    >>> _ = path.write_text("7 1:0.5\n9 2:1\n7 3:1\n")
    >>> for X, y in iter_examples(path, batch_rows=2, n_features=4):
    ...     print(X.shape, y)
    (2, 4) [7 9]
    (1, 4) [7]
    >>> folder.cleanup()
    """
    kind = _checked_format(path, format, labelled, text, label)
    parts: Iterator[tuple[Any, NDArray | None]]
    if kind == "libsvm":
        parts = iter_libsvm(
            path,
            batch_rows=batch_rows,
            n_features=n_features,
            zero_based=zero_based,
            labels="auto" if labelled else None,
            unknown=unknown,
        )
    elif kind == "xmc":
        parts = iter_xmc(path, batch_rows=batch_rows, labels="error" if labelled else None)
    elif kind == "npz":
        parts = _slices(*load_npz(path, labelled=labelled), batch_rows)
    else:
        parts = iter_texts(
            path, batch_rows=batch_rows, text=text, label=label, labelled=labelled, format=kind
        )
    if kind in ("xmc", "npz"):
        return (Examples(_with_columns(X, n_features, shown(path)), y) for X, y in parts)
    return (Examples(X, y) for X, y in parts)


def _checked_format(
    path: PathLike, format: str, labelled: bool, *columns: Column | Sequence[Column] | None
) -> str:
    kind = format_of(path, format)
    if kind == "txt" and labelled:
        raise LocoleError(
            f"{shown(path)}: a file of texts alone has no labels: take .tsv, label tab text, or .csv."
        )
    if any(column is not None for column in columns) and kind in ("libsvm", "xmc", "npz", "txt"):
        raise LocoleError(
            f"{shown(path)}: the format {kind} has no columns: leave out text and label."
        )
    return kind


def _with_columns(X: csr_matrix, n_features: int | None, name: str) -> csr_matrix:
    if n_features is not None and X.shape[1] != n_features:
        raise LocoleError(f"{name} has {X.shape[1]:,} features where {n_features:,} are needed.")
    return X


def _slices(
    X: csr_matrix, y: NDArray | None, batch_rows: int
) -> Iterator[tuple[csr_matrix, NDArray | None]]:
    if batch_rows < 1:
        raise LocoleError(f"batch_rows must be at least 1, not {batch_rows}.")
    for start in range(0, X.shape[0], batch_rows):
        rows = slice(start, start + batch_rows)
        yield X[rows], None if y is None else y[rows]
