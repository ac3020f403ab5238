"""Texts and labels out of TSV and CSV files."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

from locole.datasets.sources import Source, decoded_lines
from locole.exceptions import LocoleError

__all__ = ["Record", "TextColumns", "csv_records", "tsv_records"]

#: A text and its label.
Record = tuple[str, str | None]

# A quote that is never closed must not swallow a whole file.
MAX_FIELD_CHARACTERS = 1 << 24
_DELIMITERS = (",", ";", "\t")
_SHOWN_COLUMNS = 12


class TextColumns(NamedTuple):
    """Where a table has texts and labels: names of columns, or numbers from 0 if it has no header."""

    text: str | int | None = None
    label: str | int | None = None
    labelled: bool = True

    @property
    def are_numbers(self) -> bool:
        """Whether columns are given by number."""
        given = [column for column in (self.text, self.label) if column is not None]
        numbers = [column for column in given if isinstance(column, int)]
        if numbers and (len(numbers) < len(given) or self.text is None or min(numbers) < 0):
            raise LocoleError(
                "give text and label both by the names of columns or both by numbers from 0."
            )
        return bool(numbers)

    def find(self, names: Sequence[str], where: str) -> tuple[int, int | None]:
        """Places of the text and of the label among the names of the columns."""
        text = self._place(names, self.text, "text", where)
        return text, self._place(names, self.label, "label", where) if self.labelled else None

    def _place(self, names: Sequence[str], wanted: Any, usual: str, where: str) -> int:
        if wanted in names:
            return names.index(wanted)
        plain = [name.strip().casefold() for name in names]
        if wanted is None and usual in plain:
            return plain.index(usual)
        shown = ", ".join(repr(name[:40]) for name in names[:_SHOWN_COLUMNS])
        missing = usual if wanted is None else wanted
        raise LocoleError(
            f"{where}: no column {missing!r} among {shown}: name the column of the {usual}s by {usual}=."
        )


def tsv_records(source: Source, columns: TextColumns) -> Iterator[Record]:
    """Lines ``label<TAB>text``, or the columns that were asked for; nothing is quoted."""
    if columns.text is not None or columns.label is not None:
        yield from _table_records(source, columns, ("\t",), csv.QUOTE_NONE)
        return
    for number, line in decoded_lines(source):
        label, tab, text = line.partition("\t")
        if not line.strip():
            continue
        if not tab:
            raise LocoleError(
                f"{source.name}, line {number}: there is no tab: lines must be label, tab, text; "
                "texts alone go into a .txt file."
            )
        yield text, _checked_label(label, columns, source.name, number)


def csv_records(source: Source, columns: TextColumns) -> Iterator[Record]:
    """Rows below a header, fields separated as the header's are: by commas, semicolons or tabs."""
    return _table_records(source, columns, _DELIMITERS, csv.QUOTE_MINIMAL)


def _table_records(
    source: Source, columns: TextColumns, delimiters: tuple[str, ...], quoting: int
) -> Iterator[Record]:
    lines = (line + "\n" for _, line in decoded_lines(source))
    first = next(lines, None)
    if first is None:
        return
    rows: Iterator[tuple[int, list[str]]]
    width: int | None = None
    if columns.are_numbers:
        rows = _rows(source.name, chain([first], lines), delimiters[0], quoting)
        text, label = int(columns.text or 0), columns.label if columns.labelled else None
        if columns.labelled and label is None:
            raise LocoleError("give the number of the label's column, too: label=.")
    else:
        delimiter = _delimiter_of(first, columns, delimiters, quoting)
        rows = _rows(source.name, chain([first], lines), delimiter, quoting)
        _, header = next(rows, (1, []))
        text, label = columns.find(header, f"{source.name}, line 1")
        width = len(header)
    for number, fields in rows:
        _check_width(fields, width, max(text, int(label or 0)), f"{source.name}, line {number}")
        name = None if label is None else fields[int(label)]
        yield fields[text], _checked_label(name, columns, source.name, number)


def _delimiter_of(
    line: str, columns: TextColumns, delimiters: tuple[str, ...], quoting: int
) -> str:
    """The first delimiter with which the header has the columns; the first of all if none."""
    for delimiter in delimiters:
        try:
            (_, header), *_ = _rows("", iter([line]), delimiter, quoting)
            columns.find(header, "")
        except (LocoleError, ValueError):
            continue
        return delimiter
    return delimiters[0]


def _rows(
    name: str, lines: Iterator[str], delimiter: str, quoting: Any
) -> Iterator[tuple[int, list[str]]]:
    """Number of the first line and fields of each row that is not empty."""
    # The limit belongs to the csv module as a whole. Raising it harms no other reader.
    if csv.field_size_limit() < MAX_FIELD_CHARACTERS:
        csv.field_size_limit(MAX_FIELD_CHARACTERS)
    reader = csv.reader(lines, delimiter=delimiter, quoting=quoting, strict=True)
    while True:
        number = reader.line_num + 1
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise LocoleError(
                f"{name}, line {number}: {error}: is a quote left open, or not doubled inside a field?"
            ) from None
        if fields:
            yield number, fields


def _check_width(fields: list[str], width: int | None, last: int, where: str) -> None:
    if width is not None and len(fields) != width:
        raise LocoleError(
            f"{where}: {len(fields)} fields instead of the header's {width}: put a field that holds a "
            "delimiter in quotes."
        )
    if last >= len(fields):
        raise LocoleError(f"{where}: only {len(fields)} fields, there is no column {last}.")


def _checked_label(label: str | None, columns: TextColumns, name: str, number: int) -> str | None:
    if not columns.labelled:
        return None
    if not label:
        raise LocoleError(
            f"{name}, line {number}: the label is empty: give one or leave the line out."
        )
    return label
