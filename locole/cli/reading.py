"""How a file is to be read: as it was typed, or as a model remembers its training file."""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from locole.cli.options import (
    Delimiter,
    DenseColumn,
    Encoding,
    Format,
    SkipBadRows,
    TextColumn,
    ZeroBased,
)
from locole.exceptions import LocoleError

__all__ = ["Reading", "column_of", "with_reading_options"]

Column = str | int

# Note in a model's manifest: how its training file was read.
_NOTE = "reading"
_REMEMBERED = ("format", "text", "label", "delimiter", "encoding", "dense", "label_separator")
# Formats whose columns have names, and for each option the formats that it is for.
_NAMED = ("csv", "jsonl", "parquet")
_TABLES = ("tsv", *_NAMED)
_FORMATS = {
    "text": ("--text-column", _TABLES),
    "label": ("--label-column", (*_TABLES, "dense")),
    "id": ("--id-column", _TABLES),
    "bad_rows": ("--skip-bad-rows", _TABLES),
    "delimiter": ("--delimiter", ("tsv", "csv")),
    "encoding": ("--encoding", ("tsv", "csv", "jsonl", "txt")),
    "zero_based": ("--zero-based or --one-based", ("libsvm",)),
    "labels": ("--labels", ("libsvm",)),
    "dense": ("--dense", ("dense",)),
    "label_separator": ("--label-separator", (*_TABLES, "libsvm", "dense")),
}
# Files that hold dense rows: always, or if their name is said.
_DENSE, _MAYBE_DENSE = (".npy",), (".npz", ".parquet")


class Reading(NamedTuple):
    """How to read a file; None is what was not said."""

    format: str = "auto"
    text: tuple[Column, ...] | None = None
    label: Column | None = None
    id: Column | None = None
    delimiter: str | None = None
    encoding: str | None = None
    bad_rows: str | None = None
    more_bad_rows: bool = False
    zero_based: bool | None = None
    labels: str | None = None
    dense: str | None = None
    label_separator: str | None = None

    def kind(self, path: str) -> str:
        """Format of a file; "dense" for rows that are read by `locole.datasets.load_dense`."""
        from locole.datasets.files import format_of

        if self.dense is not None or (self.format == "auto" and path.endswith(_DENSE)):
            return "dense"
        return format_of(path, self.format)

    def like_training(self, path: str, notes: Mapping[str, str]) -> Reading:
        """With the name of the dense rows of the training file, if this file may have such."""
        known = _remembered(notes)
        if self.dense is not None or self.format != "auto" or not path.endswith(_MAYBE_DENSE):
            return self
        if known.dense is None:
            return self
        return self._replace(dense=known.dense, label=self.label or known.label)

    def check(self, kind: str, path: str) -> None:
        """Refuse what a file of this format has no use for."""
        for name, (option, formats) in _FORMATS.items():
            if getattr(self, name) is not None and kind not in formats:
                raise LocoleError(
                    f"{path}: {option} is for {', '.join(formats)}, not for {kind}: leave it out."
                )
        if self.label_separator == "" or (
            kind == "libsvm" and self.label_separator not in (None, ",")
        ):
            raise LocoleError(
                f"{path}: --label-separator must be ',' for LIBSVM and at least a character for tables."
            )

    def notes(self, kind: str) -> dict[str, str]:
        """What is worth remembering with a model that was trained on such a file."""
        known = self._replace(format=kind)._asdict()
        given = {name: known[name] for name in _REMEMBERED if known[name] is not None}
        return {_NOTE: json.dumps(given, ensure_ascii=False)} if len(given) > 1 else {}

    def completed(self, notes: Mapping[str, str], kind: str, *, labelled: bool) -> Reading:
        """What was not said, as the training file had it, where files of this format can be alike."""
        known = _remembered(notes)
        is_same = known.format == kind
        if not is_same and not (known.format in _NAMED and kind in _NAMED and known.has_names):
            return self
        names = ["text", *(["label", "label_separator"] if labelled else [])]
        names += ["delimiter", "encoding"] if is_same else []
        missing = [name for name in names if getattr(self, name) is None]
        return self._replace(**{name: getattr(known, name) for name in missing})

    @property
    def has_names(self) -> bool:
        """Whether no column is a number."""
        return not any(isinstance(column, int) for column in (*(self.text or ()), self.label))


def _remembered(notes: Mapping[str, str]) -> Reading:
    """How the training file was read; a manifest may say anything."""
    try:
        known = {**json.loads(notes.get(_NOTE, "{}"))}
        columns = [*known.pop("text", ())]
        places = [*columns, known.get("label", "")]
        words = [value for name, value in known.items() if name != "label"]
        is_right = (
            set(known) <= {*_REMEMBERED}
            and all(type(place) in (str, int) for place in places)
            and all(type(word) is str for word in words)
            and known.get("label_separator") != ""
        )
    except (ValueError, TypeError, RecursionError):
        is_right = False
    if not is_right:
        raise LocoleError(
            "the model's note on how its training file was read is damaged: fit or save it again."
        )
    return Reading(**known, text=tuple(columns) or None)


def column_of(name: str | None) -> Column | None:
    """Column as it was typed; numbers are counted from 0.

    Examples
    --------
    >>> column_of("1"), column_of("city")
    (1, 'city')
    """
    return int(name) if name is not None and name.isdecimal() and name.isascii() else name


def _reading(
    format: Format = "auto",
    text_column: TextColumn = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    skip_bad_rows: SkipBadRows = None,
    dense: DenseColumn = None,
    zero_based: ZeroBased = None,
) -> Reading:
    """Take options as they were typed."""
    columns: Any = [column_of(name) for name in text_column or ()]
    return Reading(
        format,
        text=tuple(columns) or None,
        delimiter=None if delimiter is None else delimiter.replace("\\t", "\t"),
        encoding=encoding,
        bad_rows=skip_bad_rows,
        zero_based=zero_based,
        dense=dense,
    )


def with_reading_options(verb: Callable[..., None]) -> Callable[..., None]:
    """Verb that has the options of `Reading` in place of its parameter ``reading``, if it has that."""
    own = inspect.signature(verb, eval_str=True)
    if "reading" not in own.parameters:
        return verb
    shared = inspect.signature(_reading, eval_str=True).parameters

    @functools.wraps(verb)
    def expanded(**options: Any) -> None:
        verb(reading=_reading(**{name: options.pop(name) for name in shared}), **options)

    parameters: list[inspect.Parameter] = []
    for name, parameter in own.parameters.items():
        parameters += shared.values() if name == "reading" else [parameter]
    named = [parameter.replace(kind=parameter.KEYWORD_ONLY) for parameter in parameters]
    expanded.__signature__ = own.replace(parameters=named)  # type: ignore[attr-defined]
    expanded.__annotations__ = {parameter.name: parameter.annotation for parameter in named}
    return expanded
