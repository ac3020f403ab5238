"""Texts and labels out of Parquet files, a batch of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from locole.datasets.delimited import Record, TextColumns
from locole.datasets.sources import PathLike, shown
from locole.exceptions import LocoleError

__all__ = ["parquet_records"]

_BATCH_ROWS = 4096


def parquet_records(path: PathLike, columns: TextColumns) -> Iterator[Record]:
    """Rows of the two columns; labels may be texts or whole numbers, nothing may be missing."""
    pyarrow, parquet = _import_pyarrow()
    name = shown(path)
    if path == "-":
        raise LocoleError("Parquet cannot be read from standard input: give a file.")
    if columns.are_numbers:
        raise LocoleError(
            "the columns of a Parquet file have names: give text= and label= by name."
        )
    with open(path, "rb") as file:
        try:
            table = parquet.ParquetFile(file)
            names = table.schema_arrow.names
            text, label = columns.find(names, name)
            _check_types(pyarrow, table.schema_arrow, text, label, name)
            yield from _records(table, names[text], None if label is None else names[label], name)
        except (pyarrow.ArrowException, OSError, OverflowError) as error:
            brief = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
            raise LocoleError(f"{name} is no Parquet file, or damaged ({brief}).") from error


def _import_pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise ImportError(
            "reading Parquet needs the package pyarrow: pip install locole[parquet]"
        ) from error
    return pyarrow, parquet


def _check_types(pyarrow: Any, schema: Any, text: int, label: int | None, name: str) -> None:
    types = pyarrow.types

    def value_type(column: int) -> Any:
        kind = schema.field(column).type
        return kind.value_type if types.is_dictionary(kind) else kind

    def is_text(kind: Any) -> bool:
        return types.is_string(kind) or types.is_large_string(kind)

    if not is_text(value_type(text)):
        raise LocoleError(f"{name}: column {schema.names[text]!r} does not hold texts.")
    if label is not None and not (
        is_text(value_type(label)) or types.is_integer(value_type(label))
    ):
        raise LocoleError(
            f"{name}: column {schema.names[label]!r} holds neither texts nor whole numbers."
        )


def _records(table: Any, text: str, label: str | None, name: str) -> Iterator[Record]:
    row = 0
    wanted = [text] if label is None else [text, label]
    for batch in table.iter_batches(batch_size=_BATCH_ROWS, columns=wanted):
        texts = batch.column(text).to_pylist()
        labels = [None] * len(texts) if label is None else batch.column(label).to_pylist()
        for value, known in zip(texts, labels, strict=True):
            row += 1
            if value is None or (label is not None and known in (None, "")):
                raise LocoleError(f"{name}, row {row}: text or label is missing.")
            yield value, None if known is None else str(known)
