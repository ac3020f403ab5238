"""Texts and labels out of Parquet files, a batch of rows at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from locole.datasets.delimited import BadRow, Places, Record, TextColumns, parsed
from locole.datasets.sources import PathLike, shown
from locole.exceptions import LocoleError

__all__ = ["arrow_errors", "import_pyarrow", "parquet_records"]

_BATCH_ROWS = 4096


def parquet_records(
    path: PathLike, columns: TextColumns, bad: BadRow | None = None
) -> Iterator[Record]:
    """Rows of the wanted columns; labels may be texts or whole numbers, nothing may be missing."""
    pyarrow, parquet = import_pyarrow()
    name = shown(path)
    if path == "-":
        raise LocoleError("Parquet cannot be read from standard input: give a file.")
    if columns.are_numbers:
        raise LocoleError(
            "the columns of a Parquet file have names: give text= and label= by name."
        )
    with open(path, "rb") as file, arrow_errors(path):
        schema = parquet.read_schema(file)
        names = schema.names
        places = columns.find(names, name)
        _check_types(pyarrow, schema, places, name)
        file.seek(0)
        # A text that stands once in the file for thousands of rows is made once.
        table = parquet.ParquetFile(file, read_dictionary=_texts_in(pyarrow, schema))
        yield from _records(table, names, places, name, bad)


@contextmanager
def arrow_errors(path: PathLike) -> Iterator[None]:
    """Turn what pyarrow raises about a file into one sentence."""
    pyarrow, _ = import_pyarrow()
    name = shown(path)
    try:
        yield
    except UnicodeDecodeError:
        raise LocoleError(f"{name} has texts that are not UTF-8.") from None
    except (pyarrow.ArrowException, OSError, OverflowError) as error:
        brief = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise LocoleError(f"{name} is no Parquet file, or damaged ({brief}).") from error


def import_pyarrow() -> tuple[Any, Any]:
    """Return pyarrow and its Parquet, or say how to install them."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise ImportError(
            "reading Parquet needs the package pyarrow: pip install locole[parquet]"
        ) from error
    return pyarrow, parquet


def _texts_in(pyarrow: Any, schema: Any) -> list[str]:
    """Names of the columns of texts."""
    types = pyarrow.types
    return [f.name for f in schema if types.is_string(f.type) or types.is_large_string(f.type)]


def _check_types(pyarrow: Any, schema: Any, places: Places, name: str) -> None:
    types, label = pyarrow.types, places.label

    def value_type(column: int) -> Any:
        kind = schema.field(column).type
        return kind.value_type if types.is_dictionary(kind) else kind

    def is_text(kind: Any) -> bool:
        return types.is_string(kind) or types.is_large_string(kind)

    for text in places.texts:
        if not is_text(value_type(text)):
            raise LocoleError(f"{name}: column {schema.names[text]!r} does not hold texts.")
    if label is not None and not (
        is_text(value_type(label)) or types.is_integer(value_type(label))
    ):
        raise LocoleError(
            f"{name}: column {schema.names[label]!r} holds neither texts nor whole numbers."
        )


def _cells(column: Any) -> Iterator[Any]:
    """Values of a column; those of a dictionary are the same objects wherever they occur."""
    if not hasattr(column, "dictionary"):
        return iter(column.to_pylist())
    column.validate(full=True)  # a damaged file may count beyond its dictionary
    values = column.dictionary.to_pylist()
    return (None if i is None else values[i] for i in column.indices.to_pylist())


def _records(
    table: Any, names: list[str], places: Places, name: str, bad: BadRow | None
) -> Iterator[Record]:
    wanted = [*places.texts, *(p for p in (places.label, places.id) if p is not None)]

    def rows() -> Iterator[tuple[str, dict[int, Any]]]:
        number = 0
        for batch in table.iter_batches(_BATCH_ROWS, columns=[names[place] for place in wanted]):
            columns = [_cells(batch.column(names[place])) for place in wanted]
            for cells in zip(*columns, strict=True):
                number += 1
                yield f"{name}, row {number}", dict(zip(wanted, cells, strict=True))

    def parse(cells: dict[int, Any], where: str) -> Record:
        if any(value is None for value in cells.values()):
            raise LocoleError(f"{where}: text or label is missing.")
        return places.record({place: str(value) for place, value in cells.items()}, where)

    def shown(cells: dict[int, Any]) -> str:
        return json.dumps({names[p]: value for p, value in cells.items()}, default=str)

    return parsed(rows(), parse, bad, shown)
