"""Files of texts with a label each: TSV, CSV, JSON lines, Parquet, or texts alone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from locole.datasets.base import label_array
from locole.datasets.delimited import (
    BadRow,
    Column,
    Record,
    TextColumns,
    checked_label,
    csv_records,
    numbered_lines,
    parsed,
    split_labels,
    tsv_records,
)
from locole.datasets.growing import require_room
from locole.datasets.parquet import parquet_records
from locole.datasets.sources import PathLike, Source, decoded_lines, shown, suffix_of
from locole.exceptions import LocoleError

__all__ = ["TEXT_SUFFIXES", "iter_records", "iter_texts", "labels_of", "load_texts"]

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
    text: Column | Sequence[Column] | None = None,
    label: Column | None = None,
    labelled: bool = True,
    format: str = "auto",
    delimiter: str | None = None,
    encoding: str = "utf-8",
    bad: BadRow | None = None,
    label_separator: str | None = None,
) -> tuple[list[str], Any]:
    r"""Read all texts of a file, and their labels.

    Parameters
    ----------
    path : str or path
        The file, also packed by gzip, xz or bzip2; ``"-"`` is standard input.
    text, label : str or int, optional
        Columns of a table, by name, or by number from 0 if it has no header. Default: columns called
        "text" and "label"; a TSV file for which nothing is said has no header, and its lines are
        label, tab, text. Several columns of text are joined by a blank.
    labelled : bool
        Whether to read labels; without, no column of labels is needed.
    format : {"auto", "tsv", "csv", "jsonl", "parquet", "txt"}
        ``"auto"`` goes by the suffix, and takes standard input as "txt".
    delimiter : str, optional
        Character between fields; by default the tab for TSV, and for CSV whichever of comma, semicolon
        and tab the header has.
    encoding : str
        Of all formats but Parquet.
    bad : function, optional
        Called with each row of a table that cannot be read and the error, instead of raising it.
    label_separator : str, optional
        What stands between the labels of a row, such as "|": rows then have any number of labels.

    Returns
    -------
    texts : list of str
    labels : array of shape (len(texts),) of str objects, or None
        Labels are texts, as they stand in the file but for blanks around them; whole numbers of JSON
        and Parquet become texts. None if ``labelled`` is False, and for "txt", which has one text a
        line and no labels. A list of tuples if rows have several labels, by ``label_separator`` or as
        lists in JSON.

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
    labels: list[Any] = []
    # Labels repeat: one string for each keeps them small.
    known: dict[Any, Any] = {}
    columns = TextColumns(
        text, label, labelled, delimiter=delimiter, label_separator=label_separator
    )
    for part in iter_records(path, columns, format=format, encoding=encoding, bad=bad):
        require_room(_MARGIN_BYTES, shown(path))
        texts += [record.text for record in part]
        labels += [known.setdefault(r.label, r.label) for r in part if r.label is not None]
    if not texts:
        raise LocoleError(f"{shown(path)} has no rows: is it the right file?")
    return texts, _one_or_several(labels)


def iter_texts(
    path: PathLike,
    *,
    batch_rows: int = 4096,
    text: Column | Sequence[Column] | None = None,
    label: Column | None = None,
    labelled: bool = True,
    format: str = "auto",
    delimiter: str | None = None,
    encoding: str = "utf-8",
) -> Iterator[tuple[list[str], Labels | None]]:
    r"""Read a file in batches, whatever its size.

    Parameters
    ----------
    path, text, label, labelled, format, delimiter, encoding
        As for `load_texts`.
    batch_rows : int
        Rows of a batch; the last one may have fewer, and of a stream every batch: what has come so far.

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
    columns = TextColumns(text, label, labelled, delimiter=delimiter)
    parts = iter_records(path, columns, format=format, encoding=encoding, batch_rows=batch_rows)
    return (([record.text for record in part], labels_of(part)) for part in parts)


def labels_of(records: Sequence[Record]) -> Any:
    """Labels of records, if they have any: an array, or a list of tuples if rows have several."""
    return _one_or_several([record.label for record in records if record.label is not None])


def _one_or_several(labels: list[Any]) -> Any:
    if any(isinstance(label, tuple) for label in labels):
        return [label if isinstance(label, tuple) else (label,) for label in labels]
    return label_array(labels) if labels else None


def iter_records(
    path: PathLike,
    columns: TextColumns,
    *,
    format: str = "auto",
    encoding: str = "utf-8",
    batch_rows: int = 4096,
    bad: BadRow | None = None,
) -> Iterator[list[Record]]:
    """Read records in batches; rows that cannot be read go to ``bad``, or are errors without it.

    Batches of a stream end where one would have to wait for more.
    """
    if batch_rows < 1:
        raise LocoleError(f"batch_rows must be at least 1, not {batch_rows}.")
    kind = _format_of(path, format)
    if columns.delimiter is not None and kind not in ("tsv", "csv"):
        raise LocoleError(f"{shown(path)}: the format {kind} has no delimiter: leave it out.")
    if kind == "parquet":
        records = parquet_records(path, columns, bad)
        return iter(lambda: list(islice(records, batch_rows)), [])
    return _batches(path, columns, kind, encoding, batch_rows, bad)


def _batches(
    path: PathLike,
    columns: TextColumns,
    kind: str,
    encoding: str,
    batch_rows: int,
    bad: BadRow | None,
) -> Iterator[list[Record]]:
    with Source(path, encoding) as source:
        batch: list[Record] = []
        for record in _READERS[kind](source, columns, bad):
            batch.append(record)
            if len(batch) == batch_rows or source.must_wait:
                yield batch
                batch = []
        if batch:
            yield batch


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


def _txt_records(source: Source, columns: TextColumns, bad: BadRow | None) -> Iterator[Record]:
    """One text a line; an empty line is an empty text, so that answers match lines."""
    for _, line in decoded_lines(source):
        yield Record(line)


def _jsonl_records(source: Source, columns: TextColumns, bad: BadRow | None) -> Iterator[Record]:
    def parse(line: str, where: str) -> Record:
        found = _parsed_object(line, where)
        names = list(found)
        texts, label, id, _ = columns.find(names, where)

        def value(place: int, *kinds: type) -> str:
            return _checked_value(found[names[place]], where, names[place], kinds)

        def labels(place: int) -> str | tuple[str, ...]:
            given, name = found[names[place]], names[place]
            if isinstance(given, list):
                each = [_checked_value(one, where, name, (str, int)) for one in given]
                return tuple(checked_label(one, where) for one in each)
            cell = value(place, str, int)
            separator = columns.label_separator
            return (
                checked_label(cell, where) if separator is None else split_labels(cell, separator)
            )

        return Record(
            " ".join([value(place, str) for place in texts]),
            None if label is None else labels(label),
            None if id is None else value(id, str, int, float),
        )

    return parsed(numbered_lines(source, bad), parse, bad)


def _parsed_object(line: str, where: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise LocoleError(f"{where}: not JSON ({error}).") from None
    if not isinstance(record, dict):
        raise LocoleError(f'{where}: not an object like {{"text": "…", "label": "…"}}.')
    return record


def _checked_value(value: Any, where: str, name: str, kinds: tuple[type, ...]) -> str:
    if not isinstance(value, kinds) or isinstance(value, bool):
        kind = "a text" if kinds == (str,) else "a text or a whole number"
        raise LocoleError(f"{where}: {name!r} is not {kind}: give one or leave the line out.")
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
