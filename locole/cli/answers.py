"""Answers of a model as TSV, CSV, JSON lines or Parquet, to standard output or a file."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from locole.cli.examples import as_texts
from locole.cli.places import check_file_place
from locole.datasets.sources import suffix_of
from locole.datasets.writing import complete_or_absent
from locole.exceptions import LocoleError

__all__ = ["answers_to", "output_format", "table_lines", "written"]

#: Writes the labels and scores of some rows.
Writer = Callable[[NDArray, NDArray], None]

FORMATS = ("tsv", "csv", "jsonl", "parquet")


def output_format(output: str | None, given: str | None) -> str:
    """Name of the format: as given, or by the suffix of the file, or TSV.

    Examples
    --------
    >>> output_format("answers.csv.gz", None), output_format(None, None)
    ('csv', 'tsv')
    """
    to_file = output not in (None, "-")
    if given is None:
        suffix = suffix_of(str(output))[1:] if to_file else "tsv"
        given = {"ndjson": "jsonl", "txt": "tsv"}.get(suffix, suffix)
        if given not in FORMATS:
            raise LocoleError(
                f"{output}: the suffix is none of {', '.join(FORMATS)}: give --output-format."
            )
    if given not in FORMATS:
        raise LocoleError(f"unknown output format {given!r}: take one of {', '.join(FORMATS)}.")
    if given == "parquet" and not to_file:
        raise LocoleError("Parquet goes to a file: give one by -o.")
    return given


@contextmanager
def written(output: str | None) -> Iterator[BinaryIO]:
    """Open standard output, or a file that appears when it is complete."""
    if output is None or output == "-":
        yield sys.stdout.buffer
        return
    check_file_place(output)
    # What is behind a link is replaced, and the link stays.
    path = Path(os.path.realpath(output))
    if path.exists() and not path.is_file():
        with open(path, "wb") as device:  # a pipe or /dev/null: nothing to rename
            yield device
        return
    with complete_or_absent(path) as file:
        yield file


@contextmanager
def answers_to(output: str | None, format: str, k: int, classes: NDArray) -> Iterator[Writer]:
    """Give a function that writes answers; files appear when all answers are written.

    Parameters
    ----------
    output : str, optional
        The file; standard output if None or "-".
    format : str
        One of `output_format`.
    k : int
        Answers of a row.
    classes : array
        All labels, to be checked against what the format can hold.
    """
    if format == "tsv":
        _check_tsv(classes)
    with written(output) as file:
        if format == "parquet":
            with _parquet(file, k, classes) as write:
                yield write
            return
        if format == "csv":
            file.write(_joined(_header(k), ","))
        encode = {"tsv": _tsv, "csv": _csv, "jsonl": _jsonl}[format]

        def write(labels: NDArray, scores: NDArray) -> None:
            file.write(encode(labels, scores))
            file.flush()

        yield write


def table_lines(header: Sequence[str], columns: Sequence[NDArray], format: str) -> bytes:
    """Columns as a TSV or CSV file with a header."""
    delimiter = {"tsv": "\t", "csv": ","}[format]
    if format == "tsv":
        _check_tsv(columns[0])
    rows = zip(*(_cells(column) for column in columns), strict=True)
    return _joined(header, delimiter) + b"".join(_joined(row, delimiter) for row in rows)


def _check_tsv(labels: NDArray) -> None:
    for label in labels.tolist() if labels.dtype.kind in "OU" else ():
        if any(character in str(label) for character in "\t\r\n"):
            raise LocoleError(
                f"label {label!r} has a tab or the end of a line in it, which TSV cannot hold: take "
                "another format, such as jsonl."
            )


def _header(k: int) -> list[str]:
    return [f"{what}_{place}" for place in range(1, k + 1) for what in ("label", "score")]


def _cells(values: NDArray) -> list[Any]:
    """Values of a column, floats with as few digits as tell float32 apart."""
    if values.dtype.kind == "f":
        return list(map(str, values.astype(np.float32)))
    return values.tolist()


def _rows(labels: NDArray, scores: NDArray) -> Iterator[list[Any]]:
    columns = [
        _cells(part[:, place]) for place in range(labels.shape[1]) for part in (labels, scores)
    ]
    return map(list, zip(*columns, strict=True))


def _joined(cells: Sequence[Any], delimiter: str) -> bytes:
    if delimiter == "\t":
        return ("\t".join(map(str, cells)) + "\n").encode()
    line = io.StringIO()
    csv.writer(line, delimiter=delimiter, lineterminator="\n").writerow(cells)
    return line.getvalue().encode()


def _tsv(labels: NDArray, scores: NDArray) -> bytes:
    return b"".join(_joined(row, "\t") for row in _rows(labels, scores))


def _csv(labels: NDArray, scores: NDArray) -> bytes:
    lines = io.StringIO()
    csv.writer(lines, lineterminator="\n").writerows(_rows(labels, scores))
    return lines.getvalue().encode()


def _jsonl(labels: NDArray, scores: NDArray) -> bytes:
    lines = []
    # Through text, so that 0.1 in float32 does not become 0.10000000149.
    for names, values in zip(labels.tolist(), scores.astype(np.float32), strict=True):
        row = {"labels": names, "scores": [float(str(value)) for value in values]}
        lines.append(json.dumps(row, ensure_ascii=False) + "\n")
    return "".join(lines).encode()


@contextmanager
def _parquet(file: BinaryIO, k: int, classes: NDArray) -> Iterator[Writer]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise ImportError(
            "Parquet needs the package pyarrow: pip install locole[parquet]"
        ) from error
    is_number = classes.dtype.kind in "iu"
    kinds = [pyarrow.int64() if is_number else pyarrow.string(), pyarrow.float32()]
    schema = pyarrow.schema(list(zip(_header(k), kinds * k, strict=True)))

    def write(labels: NDArray, scores: NDArray) -> None:
        columns = []
        for place in range(k):
            names = labels[:, place]
            columns += [names.tolist() if is_number else as_texts(names).tolist()]
            columns += [scores[:, place].astype(np.float32)]
        arrays = [
            pyarrow.array(column, kind) for column, kind in zip(columns, kinds * k, strict=True)
        ]
        writer.write_table(pyarrow.Table.from_arrays(arrays, schema=schema))

    with parquet.ParquetWriter(file, schema) as writer:
        yield write
