"""Texts and labels out of TSV and CSV files."""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple, TypeVar

from locole.datasets.sources import Source, check_characters, decoded_lines
from locole.exceptions import LocoleError, LocoleWarning

__all__ = [
    "BadRow",
    "Column",
    "Places",
    "Record",
    "TextColumns",
    "checked_label",
    "csv_records",
    "numbered_lines",
    "parsed",
    "split_labels",
    "tsv_records",
]

#: A column by its name, or by its number from 0 if there is no header.
Column = str | int
#: Is told of a row that cannot be read, and why; the row is then left out.
BadRow = Callable[[str, LocoleError], None]
Row = TypeVar("Row")

# A quote that is never closed must not swallow a whole file.
MAX_FIELD_CHARACTERS = 1 << 24
_DELIMITERS = (",", ";", "\t")
# What columns are usually called: a first line of two such words is most likely a header.
_USUAL = {
    "label", "labels", "class", "category", "intent", "tag", "target", "topic", "text", "texts",
    "title", "name", "body", "content", "description", "document", "query", "sentence",
}  # fmt: skip
_SHOWN_COLUMNS = 12


class Record(NamedTuple):
    """A row of a table: its text, its label, and what names the row."""

    text: str
    label: str | tuple[str, ...] | None = None
    """Several labels, if the table has such, as a tuple."""
    id: str | None = None


class TextColumns(NamedTuple):
    """Where a table has what: names of columns, or numbers from 0 if it has no header."""

    text: Column | Sequence[Column] | None = None
    """Several columns are joined by a blank."""
    label: Column | None = None
    labelled: bool = True
    id: Column | None = None
    delimiter: str | None = None
    """Between the fields of TSV and CSV files; by default the tab, or as the header has it."""
    label_separator: str | None = None
    """Between the labels of a row, which may then have any number of them."""

    @property
    def texts(self) -> list[Column | None]:
        """Columns of the text."""
        is_one = self.text is None or isinstance(self.text, str | int)
        return [self.text] if is_one else list(self.text)  # type: ignore[list-item,arg-type]

    @property
    def are_named(self) -> bool:
        """Whether anything was said of the columns."""
        return any(column is not None for column in (self.text, self.label, self.id))

    @property
    def are_numbers(self) -> bool:
        """Whether columns are given by number."""
        given = [c for c in (*self.texts, self.label, self.id) if c is not None]
        numbers = [column for column in given if isinstance(column, int)]
        if numbers and (len(numbers) < len(given) or self.text is None or min(numbers) < 0):
            raise LocoleError(
                "give text and label both by the names of columns or both by numbers from 0."
            )
        return bool(numbers)

    def find(self, names: Sequence[str], where: str) -> Places:
        """Places of the columns among their names."""
        return Places(
            [_place(names, wanted, "text", where) for wanted in self.texts],
            _place(names, self.label, "label", where) if self.labelled else None,
            None if self.id is None else _place(names, self.id, "id", where),
            self.label_separator,
        )

    def numbered(self) -> Places:
        """Places of columns that are given by number."""
        if self.labelled and self.label is None:
            raise LocoleError("give the number of the label's column, too: label=.")
        label = int(self.label) if self.labelled and self.label is not None else None
        texts = [int(column) for column in self.texts if column is not None]
        id = None if self.id is None else int(self.id)
        return Places(texts, label, id, self.label_separator)


class Places(NamedTuple):
    """Places of columns within a row."""

    texts: list[int]
    label: int | None
    id: int | None
    label_separator: str | None = None

    @property
    def last(self) -> int:
        """The largest."""
        return max(*self.texts, self.label or 0, self.id or 0)

    def record(self, cells: Sequence[str] | Mapping[int, str], where: str) -> Record:
        """Pick a record out of a row."""
        return Record(
            " ".join([cells[place] for place in self.texts]),
            None if self.label is None else _labels(cells[self.label], self.label_separator, where),
            None if self.id is None else cells[self.id],
        )


def _place(names: Sequence[str], wanted: Any, usual: str, where: str) -> int:
    if wanted is None:
        # Case and blanks may differ in the usual names.
        names, wanted = [name.strip().casefold() for name in names], usual
    if names.count(wanted) == 1:
        return names.index(wanted)
    if wanted in names:
        raise LocoleError(f"{where}: several columns are called {wanted!r}: rename all but one.")
    shown = ", ".join(repr(name[:40]) for name in names[:_SHOWN_COLUMNS])
    raise LocoleError(
        f"{where}: no column {wanted!r} among {shown}: name the column of the {usual}s by {usual}=."
    )


def checked_label(label: str, where: str) -> str:
    """Label without blanks around it."""
    label = label.strip()
    if not label:
        raise LocoleError(f"{where}: the label is empty: give one or leave the line out.")
    return label


def _labels(cell: str, separator: str | None, where: str) -> str | tuple[str, ...]:
    """The label of a row, or its labels, of which there may be none."""
    if separator is None:
        return checked_label(cell, where)
    return split_labels(cell, separator)


def split_labels(cell: str, separator: str) -> tuple[str, ...]:
    """Labels between separators, without blanks around them.

    Examples
    --------
    >>> split_labels("cat| dog |", "|")
    ('cat', 'dog')
    """
    return tuple(part.strip() for part in cell.split(separator) if part.strip())


def parsed(
    rows: Iterable[tuple[str, Row]],
    parse: Callable[[Row, str], Record],
    bad: BadRow | None,
    shown: Callable[[Row], str] = str,
) -> Iterator[Record]:
    """Records of rows, each with where it stands; errors go to ``bad`` if there is one."""
    for where, row in rows:
        try:
            if bad is not None and isinstance(row, str | list):
                check_characters("".join(row), where)
            record = parse(row, where)
        except LocoleError as error:
            if bad is None:
                raise
            bad(shown(row), error)
        else:
            yield record


def tsv_records(source: Source, columns: TextColumns, bad: BadRow | None) -> Iterator[Record]:
    """Lines ``label<TAB>text``, or the columns that were asked for; nothing is quoted."""
    delimiter = _checked_delimiter(columns.delimiter or "\t")
    if columns.are_named:
        return _table_records(source, columns, (delimiter,), csv.QUOTE_NONE, bad)

    def parse(line: str, where: str) -> Record:
        label, found, text = line.partition(delimiter)
        if not found:
            name = "tab" if delimiter == "\t" else repr(delimiter)
            raise LocoleError(
                f"{where}: there is no {name}: lines must be label, {name}, text; texts alone go into a "
                ".txt file."
            )
        if not columns.labelled:
            return Record(text)
        return Record(text, _labels(label, columns.label_separator, where))

    return parsed(_after_a_look(numbered_lines(source, bad), delimiter), parse, bad)


def _after_a_look(lines: Iterator[tuple[str, str]], delimiter: str) -> Iterator[tuple[str, str]]:
    """Lines as they are, and a warning if the first one seems to name the columns."""
    for where, line in islice(lines, 1):
        cells = [cell.strip().casefold() for cell in line.split(delimiter)]
        if len(cells) > 1 and _USUAL.issuperset(cells):
            warnings.warn(
                f"{where} looks like a header and is read as a row: name its columns by text= and "
                "label=, or remove it.",
                LocoleWarning,
                stacklevel=2,
            )
        yield where, line
    yield from lines


def numbered_lines(source: Source, bad: BadRow | None) -> Iterator[tuple[str, str]]:
    """Lines that are not blank, and where they stand."""
    lines = decoded_lines(source, lenient=bad is not None)
    return ((f"{source.name}, line {n}", line) for n, line in lines if line.strip())


def csv_records(source: Source, columns: TextColumns, bad: BadRow | None) -> Iterator[Record]:
    """Rows below a header, fields separated as the header's are: by commas, semicolons or tabs."""
    given = columns.delimiter
    delimiters = _DELIMITERS if given is None else (_checked_delimiter(given),)
    return _table_records(source, columns, delimiters, csv.QUOTE_MINIMAL, bad)


def _checked_delimiter(delimiter: str) -> str:
    if len(delimiter) != 1 or delimiter in '\r\n"':
        raise LocoleError(f"the delimiter must be one character, such as ';', not {delimiter!r}.")
    return delimiter


def _table_records(
    source: Source,
    columns: TextColumns,
    delimiters: tuple[str, ...],
    quoting: int,
    bad: BadRow | None,
) -> Iterator[Record]:
    lines = (line + "\n" for _, line in decoded_lines(source, lenient=bad is not None))
    first = next(lines, None)
    if first is None:
        return
    width: int | None = None
    if columns.are_numbers:
        delimiter, places = delimiters[0], columns.numbered()
        rows = _rows(source.name, chain([first], lines), delimiter, quoting)
    else:
        delimiter = _delimiter_of(first, columns, delimiters, quoting)
        rows = _rows(source.name, chain([first], lines), delimiter, quoting)
        where, header = next(rows, (f"{source.name}, line 1", []))
        places, width = columns.find(header, where), len(header)

    def parse(fields: list[str], where: str) -> Record:
        _check_width(fields, width, places.last, where)
        return places.record(fields, where)

    def shown(fields: list[str]) -> str:
        line = io.StringIO()
        csv.writer(line, delimiter=delimiter, lineterminator="").writerow(fields)
        return line.getvalue()

    yield from parsed(rows, parse, bad, shown)


def _delimiter_of(
    line: str, columns: TextColumns, delimiters: tuple[str, ...], quoting: int
) -> str:
    """The first delimiter with which the header has the columns, or else the most columns."""
    n_columns = {}
    for delimiter in delimiters:
        try:
            (_, header), *_ = _rows("", iter([line]), delimiter, quoting)
            n_columns[delimiter] = len(header)
            columns.find(header, "")
        except (LocoleError, ValueError):
            continue
        return delimiter
    return max(n_columns, key=n_columns.__getitem__, default=delimiters[0])


def _rows(
    name: str, lines: Iterator[str], delimiter: str, quoting: Any
) -> Iterator[tuple[str, list[str]]]:
    """Where each row that is not empty begins, and its fields."""
    # The limit belongs to the csv module as a whole. Raising it harms no other reader.
    if csv.field_size_limit() < MAX_FIELD_CHARACTERS:
        csv.field_size_limit(MAX_FIELD_CHARACTERS)
    reader = csv.reader(lines, delimiter=delimiter, quoting=quoting, strict=True)
    while True:
        where = f"{name}, line {reader.line_num + 1}"
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise LocoleError(
                f"{where}: {error}: is a quote left open, or not doubled inside a field?"
            ) from None
        if fields:
            yield where, fields


def _check_width(fields: list[str], width: int | None, last: int, where: str) -> None:
    if width is not None and len(fields) != width:
        raise LocoleError(
            f"{where}: {len(fields)} fields instead of the header's {width}: put a field that holds a "
            "delimiter in quotes."
        )
    if last >= len(fields):
        raise LocoleError(f"{where}: only {len(fields)} fields, there is no column {last}.")
