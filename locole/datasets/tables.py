"""Files of texts with a label each: TSV, CSV, JSON lines, Parquet, or texts alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from locole.datasets.base import label_array
from locole.datasets.delimited import Record, TextColumns, csv_records, tsv_records
from locole.datasets.growing import require_room
from locole.datasets.parquet import parquet_records
from locole.datasets.sources import PathLike, Source, decoded_lines, shown, suffix_of
from locole.exceptions import LocoleError

__all__ = ["TEXT_SUFFIXES", "iter_texts", "load_texts"]

Labels = NDArray[np.object_]

#: Suffix of a file → format.
TEXT_SUFFIXES = {
    ".tsv": "tsv",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".txt": "txt",
}
# Memory that must be left for the next rows.
_MARGIN_BYTES = 1 << 26


def load_texts(
    path: PathLike,
    *,
    text: str | int | None = None,
    label: str | int | None = None,
    labelled: bool = True,
    format: str = "auto",
) -> tuple[list[str], Labels | None]:
    r"""Read all texts of a file, and their labels.

    Parameters
    ----------
    path : str or path
        The file, also packed by gzip, xz or bzip2; ``"-"`` is standard input.
    text, label : str or int, optional
        Columns of a table, by name, or by number from 0 if it has no header. Default: columns called
        "text" and "label"; a TSV file for which nothing is said has no header, and its lines are
        label, tab, text.
    labelled : bool
        Whether to read labels; without, no column of labels is needed.
    format : {"auto", "tsv", "csv", "jsonl", "parquet", "txt"}
        ``"auto"`` goes by the suffix, and takes standard input as "txt".

    Returns
    -------
    texts : list of str
    labels : array of shape (len(texts),) of str objects, or None
        Labels are texts, as they stand in the file; whole numbers of JSON and Parquet become texts.
        None if ``labelled`` is False, and for "txt", which has one text a line and no labels.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name, "small.csv")
    >>> _ = path.write_text('label,text\nbird,"a robin, singing"\nfish,salmon\n')
    >>> load_texts(path)
    (['a robin, singing', 'salmon'], array(['bird', 'fish'], dtype=object))
    >>> folder.cleanup()
    """
    texts: list[str] = []
    labels: list[str] = []
    kind = _format_of(path, format)
    # Labels repeat: one string for each keeps them small.
    known: dict[str, str] = {}
    records = _records(path, kind, TextColumns(text, label, labelled))
    while part := list(islice(records, 4096)):
        require_room(_MARGIN_BYTES, shown(path))
        texts += [value for value, _ in part]
        labels += [known.setdefault(name, name) for _, name in part if name is not None]
    if not texts:
        raise LocoleError(f"{shown(path)} has no rows: is it the right file?")
    return texts, label_array(labels) if labels else None


def iter_texts(
    path: PathLike,
    *,
    batch_rows: int = 4096,
    text: str | int | None = None,
    label: str | int | None = None,
    labelled: bool = True,
    format: str = "auto",
) -> Iterator[tuple[list[str], Labels | None]]:
    r"""Read a file in batches, whatever its size.

    Parameters
    ----------
    path, text, label, labelled, format
        As for `load_texts`.
    batch_rows : int
        Rows of a batch; the last one may have fewer.

    Yields
    ------
    texts : list of str
    labels : array of shape (len(texts),) of str objects, or None

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name, "small.txt")
    >>> _ = path.write_text("robin\nsalmon\nwren\n")
    >>> [texts for texts, _ in iter_texts(path, batch_rows=2)]
    [['robin', 'salmon'], ['wren']]
    >>> folder.cleanup()
    """
    if batch_rows < 1:
        raise LocoleError(f"batch_rows must be at least 1, not {batch_rows}.")
    records = _records(path, _format_of(path, format), TextColumns(text, label, labelled))
    return _batches(records, batch_rows)


def _batches(
    records: Iterator[Record], batch_rows: int
) -> Iterator[tuple[list[str], Labels | None]]:
    while part := list(islice(records, batch_rows)):
        labels = [name for _, name in part if name is not None]
        yield [value for value, _ in part], label_array(labels) if labels else None


def _format_of(path: PathLike, format: str) -> str:
    if format == "auto":
        found = "txt" if path == "-" else TEXT_SUFFIXES.get(suffix_of(path))
        if found is None:
            known = ", ".join(TEXT_SUFFIXES)
            raise LocoleError(f"{shown(path)}: the suffix is none of {known}: give format=.")
        return found
    if format not in TEXT_SUFFIXES.values():
        known = ", ".join(dict.fromkeys(TEXT_SUFFIXES.values()))
        raise LocoleError(f"unknown format {format!r}: take one of auto, {known}.")
    return format


def _records(path: PathLike, kind: str, columns: TextColumns) -> Iterator[Record]:
    if kind == "parquet":
        yield from parquet_records(path, columns)
        return
    with Source(path) as source:
        yield from _READERS[kind](source, columns)


def _txt_records(source: Source, columns: TextColumns) -> Iterator[Record]:
    """One text a line; an empty line is an empty text, so that answers match lines."""
    for _, line in decoded_lines(source):
        yield line, None


def _jsonl_records(source: Source, columns: TextColumns) -> Iterator[Record]:
    for number, line in decoded_lines(source):
        if not line.strip():
            continue
        where = f"{source.name}, line {number}"
        record = _parsed_object(line, where)
        names = list(record)
        text, label = columns.find(names, where)
        yield (
            _checked_value(record[names[text]], where, names[text], (str,)),
            None
            if label is None
            else _checked_value(record[names[label]], where, names[label], (str, int)),
        )


def _parsed_object(line: str, where: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise LocoleError(f"{where}: not JSON ({error}).") from None
    if not isinstance(record, dict):
        raise LocoleError(f'{where}: not an object like {{"text": "…", "label": "…"}}.')
    return record


def _checked_value(value: Any, where: str, name: str, kinds: tuple[type, ...]) -> str:
    if not isinstance(value, kinds) or isinstance(value, bool) or (value == "" and int in kinds):
        kind = "a text" if kinds == (str,) else "a text that is not empty, or a whole number"
        raise LocoleError(f"{where}: {name!r} is not {kind}.")
    text = str(value)
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise LocoleError(f"{where}: {name!r} has half of a surrogate pair.") from None
    return text


_READERS = {
    "tsv": tsv_records,
    "csv": csv_records,
    "jsonl": _jsonl_records,
    "txt": _txt_records,
}
