"""Bag-of-words files of the extreme-classification repository: a header, then ``l1,l2 f:v f:v``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from locole.datasets.base import MAX_FEATURES, compact_csr
from locole.datasets.rowstore import Entries, RowStore, indicator
from locole.datasets.sources import Chunk, PathLike, Source, iter_chunks
from locole.datasets.svmlines import LineParser, LineRules, ParsedLines
from locole.exceptions import LocoleError

__all__ = ["iter_xmc", "load_xmc"]

XmcLabels = Literal["all", "first", "repeat", "error"] | None

_MAX_HEADER_BYTES = 200


class _Header(NamedTuple):
    n_rows: int
    n_features: int
    n_labels: int


def load_xmc(path: PathLike, *, labels: XmcLabels = "all") -> tuple[csr_matrix, Any]:
    r"""Read a file whose first line is ``rows features labels`` and whose indices start at 0.

    Parameters
    ----------
    path : str or path
        The file, also packed by gzip, xz or bzip2.
    labels : {"all", "first", "repeat", "error"} or None
        What to make of several labels. ``"all"``: a matrix; ``"first"``: the first label of each row,
        rows without one are left out; ``"repeat"``: a row for each of its labels; ``"error"``: every
        row must have exactly one. None: labels are skipped.

    Returns
    -------
    X : csr_matrix of shape (rows, n_features)
        float32 with int32 indices.
    y : csr_matrix of shape (rows, n_labels), array of shape (rows,), or None
        Ones at the labels of each row for ``"all"``, otherwise one int64 label for each row of X.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name, "small.xmc")
    >>> _ = path.write_text("3 5 4\n2,0 0:0.5 4:1\n 3:1\n1 2:2\n")
    >>> X, Y = load_xmc(path)
    >>> X.shape, Y.toarray().astype(int).tolist()
    ((3, 5), [[1, 0, 1, 0], [0, 0, 0, 0], [0, 1, 0, 0]])
    >>> X, y = load_xmc(path, labels="first")
    >>> X.shape, y
    ((2, 5), array([2, 1]))
    >>> folder.cleanup()
    """
    _check_labels(labels, ("all", "first", "repeat", "error", None))
    with Source(path) as source:
        chunks = iter_chunks(source)
        header, first = _read_header(chunks, source.name)
        rows = RowStore(source.name, multilabel=True)
        for lines in _parsed(source.name, header, chain([first], chunks), labels):
            rows.add(lines)
    y, ends = rows.finish_labels(), rows.finish_label_ends()
    X = _matrix(rows.finish(), header)
    if y is None:
        return X, None
    if labels == "all":
        return X, indicator(y, ends, header.n_labels)
    return _one_label(X, y, ends, labels)


def iter_xmc(
    path: PathLike, *, batch_rows: int = 4096, labels: Literal["error"] | None = "error"
) -> Iterator[tuple[csr_matrix, NDArray | None]]:
    r"""Read such a file in batches; each row must have exactly one label, unless they are skipped.

    Parameters
    ----------
    path : str or path
        The file.
    batch_rows : int
        Rows of a batch; the last one may have fewer.
    labels : "error" or None
        As for `load_xmc`.

    Yields
    ------
    X : csr_matrix of shape (batch_rows, n_features)
    y : array of shape (batch_rows,) or None

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name, "small.xmc")
    >>> _ = path.write_text("3 5 4\n2 0:0.5 4:1\n0 3:1\n1 2:2\n")
    >>> [(X.shape, y.tolist()) for X, y in iter_xmc(path, batch_rows=2)]
    [((2, 5), [2, 0]), ((1, 5), [1])]
    >>> folder.cleanup()
    """
    _check_labels(labels, ("error", None))
    if batch_rows < 1:
        raise LocoleError(f"batch_rows must be at least 1, not {batch_rows}.")
    return _iter_batches(path, batch_rows, labels)


def _iter_batches(
    path: PathLike, batch_rows: int, labels: XmcLabels
) -> Iterator[tuple[csr_matrix, NDArray | None]]:
    with Source(path) as source:
        chunks = iter_chunks(source)
        header, first = _read_header(chunks, source.name)
        rows = RowStore(source.name)
        for lines in _parsed(source.name, header, chain([first], chunks), labels):
            rows.add(lines)
            for entries, y in rows.batches(batch_rows):
                yield _matrix(entries, header), y
        for entries, y in rows.batches(batch_rows, last=True):
            yield _matrix(entries, header), y


def _check_labels(labels: XmcLabels, allowed: tuple[XmcLabels, ...]) -> None:
    if labels not in allowed:
        raise LocoleError(f"labels must be one of {allowed}, not {labels!r}.")


def _read_header(chunks: Iterator[Chunk], name: str) -> tuple[_Header, Chunk]:
    """The header, and what follows it in the first chunk."""
    for text, _ in chunks:
        stop = int(np.argmax(text == ord("\n"))) + 1
        line = text[: min(stop, _MAX_HEADER_BYTES)].tobytes()
        numbers = re.fullmatch(rb"\s*(\d{1,18})\s+(\d{1,18})\s+(\d{1,18})\s*", line)
        if numbers is None:
            raise LocoleError(
                f"{name}, line 1: the header must be three whole numbers: rows, features, labels."
            )
        header = _Header(*(int(number) for number in numbers.groups()))
        if max(header.n_features, header.n_labels) > MAX_FEATURES:
            raise LocoleError(
                f"{name}, line 1: more than {MAX_FEATURES:,} features or labels; is it damaged?"
            )
        return header, Chunk(text[stop:], 2)
    raise LocoleError(f"{name} is empty: the first line must be the header, rows features labels.")


def _parsed(
    name: str, header: _Header, chunks: Iterable[Chunk], labels: XmcLabels
) -> Iterator[ParsedLines]:
    """Exactly the rows that the header promises; only empty lines may follow them."""
    single = labels == "error"
    rules = LineRules(
        labels=None if labels is None else "int",
        n_labels=(1, 1) if single else (0, 1 << 62),
        label_range=(0, header.n_labels - 1),
        indices=(0, header.n_features - 1),
        way_out="the header says how many there are.",
        # A row may have neither labels nor features, which is an empty line.
        blank_is_row=not single,
    )
    parser = LineParser(name, rules)
    left = header.n_rows
    for chunk in chunks:
        lines = parser.parse(chunk)
        wanted = _first_rows(lines, min(left, lines.row_ends.size))
        if wanted.data.size < lines.data.size or wanted.n_labels < lines.n_labels:
            raise LocoleError(f"{name} has more rows than the {header.n_rows:,} of its header.")
        left -= wanted.row_ends.size
        yield wanted
    if left:
        raise LocoleError(
            f"{name} has {header.n_rows - left:,} rows instead of the {header.n_rows:,} of its header: "
            "is it cut short?"
        )


def _first_rows(lines: ParsedLines, count: int) -> ParsedLines:
    n_entries = int(lines.row_ends[count - 1]) if count else 0
    n_labels = int(lines.label_ends[count - 1]) if count else 0
    return ParsedLines(
        lines.data[:n_entries],
        lines.indices[:n_entries],
        lines.row_ends[:count],
        None if lines.labels is None else lines.labels[:n_labels],
        lines.label_ends[:count],
    )


def _matrix(entries: Entries, header: _Header) -> csr_matrix:
    data, indices, indptr = entries
    return compact_csr(data, indices, indptr, (indptr.size - 1, header.n_features))


def _one_label(
    X: csr_matrix, labels: NDArray, ends: NDArray[np.int64], how: XmcLabels
) -> tuple[csr_matrix, NDArray]:
    """One label for each row, in the order of the file."""
    counts = np.diff(ends, prepend=0)
    if how == "repeat":
        return X[np.repeat(np.arange(ends.size), counts)], labels
    kept = np.flatnonzero(counts)
    return X if kept.size == ends.size else X[kept], labels[(ends - counts)[kept]]
