"""LIBSVM files, ``label index:value …``: read whole or in batches, in memory little above the result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from locole.datasets.base import MAX_FEATURES
from locole.datasets.columns import Columns, Unknown, ZeroBased
from locole.datasets.rowstore import RowStore, indicator
from locole.datasets.sources import PathLike, Source, is_stream, iter_chunks, shown
from locole.datasets.svmlines import LabelKind, LineParser
from locole.exceptions import LocoleError

__all__ = ["iter_libsvm", "load_libsvm", "load_libsvm_files"]


def load_libsvm(
    path: PathLike,
    *,
    n_features: int | None = None,
    zero_based: ZeroBased = "auto",
    multilabel: bool = False,
    labels: LabelKind = "auto",
    unknown: Unknown = "error",
    max_features: int = MAX_FEATURES,
) -> tuple[csr_matrix, Any]:
    r"""Read a LIBSVM (SVMlight) file, also one packed by gzip, xz or bzip2.

    Lines are ``label index:value index:value …`` and may end in ``# comment``; ``qid:`` is skipped,
    and so are empty lines.

    Parameters
    ----------
    path : str or path
        The file; ``"-"`` is standard input.
    n_features : int, optional
        Number of columns; by default as many as the largest index needs.
    zero_based : bool or "auto"
        Whether the first feature has index 0. ``"auto"``: if index 0 occurs in this file. Give it for
        a test file, which may lack the first feature.
    multilabel : bool
        Whether lines have any number of labels, ``3,7``, which must then be whole numbers.
    labels : {"auto", "int", "text"} or None
        What labels are: whole numbers (also written ``3.0``), or texts taken as they stand. ``"auto"``
        goes by the first label. None: lines may lack a label, and labels are skipped.
    unknown : {"error", "drop"}
        What to do with features beyond ``n_features``.
    max_features : int
        Larger indices are an error: a damaged line must not make a model of billions of columns.

    Returns
    -------
    X : csr_matrix of shape (rows, n_features)
        float32 with int32 indices that rise within a row. Values are rounded correctly; those of a
        feature that a line has twice are added up.
    y : array of shape (rows,), csr_matrix or None
        int64 for whole numbers, object for texts. With ``multilabel`` a matrix of shape (rows, largest
        label + 1) with ones at the labels.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name, "small.svm")
    >>> _ = path.write_text("7 1:0.5 3:2\n9 2:1e-3  # a comment\n")
    >>> X, y = load_libsvm(path)
    >>> X.shape, X.nnz, y
    ((2, 3), 3, array([7, 9]))
    >>> folder.cleanup()
    """
    columns = Columns(n_features, zero_based, unknown, max_features)
    return _load_all([path], columns, labels, multilabel)[0]


def load_libsvm_files(
    paths: Sequence[PathLike],
    *,
    n_features: int | None = None,
    zero_based: ZeroBased = "auto",
    labels: LabelKind = "auto",
    unknown: Unknown = "error",
    max_features: int = MAX_FEATURES,
) -> list[tuple[csr_matrix, Any]]:
    r"""Read files that belong together, with the same columns for all of them.

    Parameters
    ----------
    paths : sequence of str or path
        The files, for instance the training and the test part.
    n_features, zero_based, labels, unknown, max_features
        As for `load_libsvm`; ``"auto"`` looks for index 0 in all files, and the default of
        ``n_features`` is what the largest index of all needs.

    Returns
    -------
    list of (X, y)
        One pair for each file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> paths = [pathlib.Path(folder.name, name) for name in ("train.svm", "test.svm")]
    >>> _ = paths[0].write_text("7 0:0.5 3:2\n"), paths[1].write_text("9 2:1\n")
    >>> [(X.shape, X.indices.tolist()) for X, _ in load_libsvm_files(paths)]
    [((1, 4), [0, 3]), ((1, 4), [2])]
    >>> folder.cleanup()
    """
    columns = Columns(n_features, zero_based, unknown, max_features)
    return _load_all(paths, columns, labels, multilabel=False)


def _load_all(
    paths: Sequence[PathLike], columns: Columns, labels: LabelKind, multilabel: bool
) -> list[tuple[csr_matrix, Any]]:
    stores = []
    for path in paths:
        with Source(path) as source:
            parser = LineParser(source.name, columns.rules(labels, multilabel))
            rows = RowStore(source.name, multilabel=multilabel)
            for chunk in iter_chunks(source):
                rows.add(parser.parse(chunk))
        if rows.n_rows == 0:
            raise LocoleError(f"{shown(path)} has no rows: is it the right file?")
        columns.note(parser.low, parser.high, shown(path))
        stores.append(rows)
    columns.settle()
    return [(columns.matrix(*rows.finish()), _labels_of(rows, multilabel)) for rows in stores]


def _labels_of(rows: RowStore, multilabel: bool) -> Any:
    y: Any = rows.finish_labels()
    return indicator(y, rows.finish_label_ends()) if multilabel else y


def iter_libsvm(
    path: PathLike,
    *,
    batch_rows: int = 4096,
    n_features: int | None = None,
    zero_based: ZeroBased = "auto",
    labels: LabelKind = "auto",
    unknown: Unknown = "error",
    max_features: int = MAX_FEATURES,
) -> Iterator[tuple[csr_matrix, NDArray | None]]:
    r"""Read a LIBSVM file in batches, all with the same number of columns, whatever its size.

    Parameters
    ----------
    path, n_features, zero_based, labels, unknown, max_features
        As for `load_libsvm`. If ``n_features`` is not given or ``zero_based`` is ``"auto"``, the file
        is read twice; standard input and pipes can be read once only, so there ``n_features`` is
        needed and ``"auto"`` means 1-based.
    batch_rows : int
        Rows of a batch; the last one may have fewer, and of a stream every batch: what has come so far.

    Yields
    ------
    X : csr_matrix of shape (batch_rows, n_features)
    y : array of shape (batch_rows,) or None

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name, "small.svm")
    >>> _ = path.write_text("7 1:0.5 3:2\n9 2:1\n7 1:1\n")
    >>> [(X.shape, y.tolist()) for X, y in iter_libsvm(path, batch_rows=2)]
    [((2, 3), [7, 9]), ((1, 3), [7])]
    >>> folder.cleanup()
    """
    if batch_rows < 1:
        raise LocoleError(f"batch_rows must be at least 1, not {batch_rows}.")
    columns = Columns(n_features, zero_based, unknown, max_features)
    if is_stream(path):
        columns.settle_for_stream(shown(path))
    elif n_features is None or zero_based == "auto":
        columns.note(*_scan(path, columns), shown(path))
        columns.settle()
    return _iter_batches(path, columns, labels, batch_rows)


def _scan(path: PathLike, columns: Columns) -> tuple[int | None, int | None]:
    """Smallest and largest index."""
    with Source(path) as source:
        parser = LineParser(source.name, columns.rules(None, multilabel=False))
        for chunk in iter_chunks(source):
            parser.parse(chunk)
    return parser.low, parser.high


def _iter_batches(
    path: PathLike, columns: Columns, labels: LabelKind, batch_rows: int
) -> Iterator[tuple[csr_matrix, NDArray | None]]:
    with Source(path) as source:
        parser = LineParser(source.name, columns.rules(labels, multilabel=False))
        rows = RowStore(source.name)
        for chunk in iter_chunks(source):
            rows.add(parser.parse(chunk))
            # A stream may keep us waiting for more.
            for batch, y in rows.batches(batch_rows, last=source.is_stream):
                yield columns.matrix(*batch), y
        for batch, y in rows.batches(batch_rows, last=True):
            yield columns.matrix(*batch), y
