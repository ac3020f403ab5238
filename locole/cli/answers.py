"""Answers of a model as TSV, CSV, JSON lines or Parquet, to standard output or a file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import repeat
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from locole.cli.outputs import written
from locole.datasets.sources import suffix_of
from locole.exceptions import LocoleError

__all__ = ["Answers", "answers_to", "output_format", "table_lines"]


class Answers(NamedTuple):
    """Labels and scores of some rows, best first, and what stands beside them."""

    labels: NDArray
    scores: NDArray
    beside: Mapping[str, list[str]] = {}
    """Columns that come before the answers: ids, texts."""
    is_empty: NDArray | None = None
    """Which rows had nothing to go by."""
    sets: list[NDArray] | None = None
    """Labels of each row, if they are sets of any size, without scores."""
    value: str = "score"
    """What the scores are."""


#: Writes the answers to some rows.
Writer = Callable[[Answers], None]

_PLURAL = {"score": "scores", "probability": "probabilities"}
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
def answers_to(
    output: str | None,
    format: str,
    k: int,
    classes: NDArray,
    beside: Sequence[str] = (),
    *,
    value: str = "score",
) -> Iterator[Writer]:
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
    beside : sequence of str
        Names of the columns that come before the answers.
    value : str
        What stands beside each label.
    """
    if format == "tsv":
        _check_tsv(classes)
    with written(output) as file:
        if format == "parquet":
            with _parquet(file, _header(k, value), classes, beside) as write:
                yield write
            return
        if format == "csv":
            file.write(_joined([*beside, *_header(k, value)], ","))
        encode = {"tsv": _tsv, "csv": _csv, "jsonl": _jsonl}[format]

        def write(answers: Answers) -> None:
            file.write(encode(answers))
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
        _check_field("label", str(label))


def _check_field(what: str, text: str) -> None:
    if any(character in text for character in "\t\r\n"):
        raise LocoleError(
            f"{what} {text!r:.60} has a tab or the end of a line in it, which TSV cannot hold: take "
            "another format, such as jsonl."
        )


def _header(k: int, value: str) -> list[str]:
    return [f"{what}_{place}" for place in range(1, k + 1) for what in ("label", value)]


def _cells(values: NDArray) -> list[Any]:
    """Values of a column, floats with as few digits as tell float32 apart."""
    if values.dtype.kind == "f":
        return list(map(str, values.astype(np.float32)))
    # An answer that is held back is an empty field.
    return ["" if value is None else value for value in values.tolist()]


def _rows(answers: Answers) -> Iterator[tuple[Any, ...]]:
    if answers.sets is not None:
        beside = zip(*answers.beside.values(), strict=True) if answers.beside else repeat(())
        pairs = zip(beside, answers.sets, strict=False)
        return ((*before, *labels.tolist()) for before, labels in pairs)
    labels, scores = answers.labels, answers.scores
    columns = [
        _cells(part[:, place]) for place in range(labels.shape[1]) for part in (labels, scores)
    ]
    return zip(*answers.beside.values(), *columns, strict=True)


def _joined(cells: Sequence[Any], delimiter: str) -> bytes:
    texts = map(str, cells) if delimiter == "\t" else map(_csv_field, cells)
    return (delimiter.join(texts) + "\n").encode()


def _csv_field(cell: Any) -> str:
    """Field of a CSV file; Python's own writer would leave a lone CR without quotes."""
    text = str(cell)
    if text and not any(character in text for character in ',"\r\n'):
        return text
    return '"' + text.replace('"', '""') + '"'


def _tsv(answers: Answers) -> bytes:
    for what, texts in answers.beside.items():
        for text in texts:
            _check_field(what, text)
    return b"".join(_joined(row, "\t") for row in _rows(answers))


def _csv(answers: Answers) -> bytes:
    return b"".join(_joined(row, ",") for row in _rows(answers))


def _jsonl(answers: Answers) -> bytes:
    lines = []
    beside = list(zip(*answers.beside.values(), strict=True))
    labels: Any = answers.labels if answers.sets is None else answers.sets
    for i, names in enumerate(labels):
        row: dict[str, Any] = dict(zip(answers.beside, beside[i] if beside else (), strict=True))
        row["labels"] = names.tolist()
        if answers.sets is None:
            # Through text, so that 0.1 in float32 does not become 0.10000000149.
            values = answers.scores[i].astype(np.float32)
            row[_PLURAL[answers.value]] = [float(str(value)) for value in values]
        if answers.is_empty is not None and answers.is_empty[i]:
            row["empty"] = True
        lines.append(json.dumps(row, ensure_ascii=False) + "\n")
    return "".join(lines).encode()


@contextmanager
def _parquet(
    file: BinaryIO, header: Sequence[str], classes: NDArray, beside: Sequence[str]
) -> Iterator[Writer]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise ImportError(
            "Parquet needs the package pyarrow: pip install locole[parquet]"
        ) from error
    is_number = classes.dtype.kind in "iu"
    k = len(header) // 2
    kinds = [pyarrow.string()] * len(beside)
    kinds += [pyarrow.int64() if is_number else pyarrow.string(), pyarrow.float32()] * k
    schema = pyarrow.schema(list(zip([*beside, *header], kinds, strict=True)))

    def write(answers: Answers) -> None:
        columns: list[Any] = list(answers.beside.values())
        for place in range(k):
            names = answers.labels[:, place]
            texts = [name if name is None or is_number else str(name) for name in names.tolist()]
            columns += [texts]
            columns += [answers.scores[:, place].astype(np.float32)]
        arrays = [pyarrow.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
        writer.write_table(pyarrow.Table.from_arrays(arrays, schema=schema))

    with parquet.ParquetWriter(file, schema) as writer:
        yield write
