"""Rows of files as a model takes them: whole for training, in batches for a model that is there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse, vstack

from locole.cli.encoders import find_encoder
from locole.cli.outputs import kept_bad_rows
from locole.cli.reading import Reading
from locole.datasets import (
    iter_dense,
    iter_examples,
    iter_libsvm,
    load_dense,
    load_libsvm,
    load_texts,
    load_xmc,
    read_examples,
)
from locole.datasets.delimited import TextColumns
from locole.datasets.tables import iter_records, labels_of
from locole.exceptions import LocoleError
from locole.io import read_manifest
from locole.models import load
from locole.parallel.progress import track

__all__ = [
    "FIRST_INDEX",
    "Batch",
    "as_texts",
    "batches",
    "is_multilabel",
    "n_features_of",
    "open_model",
    "read_labelled",
    "read_training",
    "takes_texts",
]

# Formats of rows that are no texts.
NUMBERS = ("libsvm", "xmc", "npz", "dense")
#: Note in a model's manifest: what its training file called the first feature.
FIRST_INDEX = "libsvm_first_index"
# Bytes from which the number of rows of a file is estimated.
_SAMPLE_BYTES = 1 << 16
# Rows read at a time where all are wanted.
_READ_ROWS = 1 << 16


class Batch(NamedTuple):
    """Rows of a file."""

    features: csr_matrix | NDArray | list[str]
    """Numbers, or texts."""
    labels: Any
    """Array; if rows have several labels, a list of tuples or an indicator."""
    ids: list[str] | None = None
    """What names the rows, if a column of it was asked for."""

    def __len__(self) -> int:
        return len(self.features) if isinstance(self.features, list) else self.features.shape[0]

    @property
    def is_empty(self) -> NDArray[np.bool_]:
        """Which texts have nothing but blanks; False for numbers."""
        if not isinstance(self.features, list):
            return np.zeros(len(self), dtype=bool)
        return np.array([not text.strip() for text in self.features])


def read_training(path: str, reading: Reading) -> tuple[Batch, dict[str, str]]:
    """All rows of a training file, and notes on the file that prediction will need."""
    kind = reading.kind(path)
    if kind == "libsvm":
        return _read_libsvm(path, reading)
    if kind == "dense":
        X, y = load_dense(path, **_dense_names(reading))
        for start in range(0, len(X), _READ_ROWS):
            _check_finite(path, X[start : start + _READ_ROWS], start)
        return Batch(X, y), reading.notes(kind)
    if kind == "xmc":
        X, Y = load_xmc(path)
        return Batch(X, _one_or_several(Y)), {}
    if kind in NUMBERS:
        return Batch(*read_examples(path, format=kind)), {}
    check_labelled(kind, path)
    with kept_bad_rows(reading.bad_rows) as bad:
        texts, labels = load_texts(
            path,
            text=reading.text,
            label=reading.label,
            format=kind,
            delimiter=reading.delimiter,
            encoding=reading.encoding or "utf-8",
            bad=bad,
            label_separator=reading.label_separator,
        )
    return Batch(texts, labels), reading.notes(kind)


def _read_libsvm(path: str, reading: Reading) -> tuple[Batch, dict[str, str]]:
    labels: Any = reading.labels or "auto"
    several = reading.label_separator is not None
    if reading.zero_based is not None:
        X, y = load_libsvm(path, zero_based=reading.zero_based, labels=labels, multilabel=several)
        return Batch(X, y), {FIRST_INDEX: "0" if reading.zero_based else "1"}
    # A column for index 0, which is taken out again where it is empty: so the file tells its base.
    X, y = load_libsvm(path, zero_based=True, labels=labels, multilabel=several)
    first = 0 if X.indices.size == 0 or X.indices.min() == 0 else 1
    if first:
        X.indices -= 1
        X = csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], X.shape[1] - 1))
    return Batch(X, y), {FIRST_INDEX: str(first)}


def _dense_names(reading: Reading) -> dict[str, Any]:
    """Names of the dense rows and of their labels, and what separates these."""
    label = reading.label
    return {
        "dense": reading.dense,
        "label": None if label is None else str(label),
        "label_separator": reading.label_separator,
    }


def _checked_dense(
    path: str, parts: Iterator[tuple[NDArray, Any]], n_features: int | None
) -> Iterator[Batch]:
    """Batches of dense rows as the model takes them."""
    start = 0
    for X, y in parts:
        if X.shape[1] != n_features:
            raise LocoleError(
                f"{path} has {X.shape[1]:,} numbers a row where the model takes {n_features:,}: is it "
                "the right file?"
            )
        _check_finite(path, X, start)
        start += len(X)
        yield Batch(X, y)


def _check_finite(path: str, X: NDArray, start: int) -> None:
    """Refuse rows, of which the first has this place, with a number that float32 does not hold."""
    with np.errstate(over="ignore"):
        bad = np.flatnonzero(~np.isfinite(np.asarray(X, dtype=np.float32)).all(axis=1))
    if bad.size:
        raise LocoleError(
            f"{path}, row {start + bad[0] + 1:,}: a number is missing, infinite or too large for "
            "float32: correct it or leave the row out."
        )


def _one_or_several(Y: csr_matrix) -> Any:
    """Labels of rows that have one each, otherwise the indicator."""
    return Y.indices.astype(np.int64) if (np.diff(Y.indptr) == 1).all() else Y


def open_model(path: str, *, jobs: int, encoder: str | None = None) -> tuple[Any, dict[str, str]]:
    """Load a model that will use so many threads, and the notes on how it was made."""
    model = load(path, encoder=find_encoder(encoder))
    needed = getattr(model, "encoder_name_", None)
    if needed is not None and encoder is None:
        raise LocoleError(
            f"the model in {path} needs the encoder that it was trained with: give --encoder {needed}."
        )
    classifier = getattr(model, "classifier_", model)
    if hasattr(classifier, "n_jobs"):
        classifier.set_params(n_jobs=jobs)
    return model, read_manifest(path).made_by


def takes_texts(model: Any) -> bool:
    """Whether the model takes raw texts."""
    return hasattr(model, "features_")


def n_features_of(model: Any) -> int | None:
    """Columns that the model expects, if it is one of numbers."""
    return None if takes_texts(model) else int(model.n_features_in_)


def batches(
    path: str,
    model: Any,
    reading: Reading,
    *,
    batch_rows: int,
    labelled: bool,
    notes: dict[str, str],
    doing: str,
) -> Iterator[Batch]:
    """Batches of rows of a file, checked to be of the kind that the model takes.

    Parameters
    ----------
    path : str
        The file, or "-".
    model : LocoleClassifier, TextClassifier or a baseline
        Tells texts from numbers, the number of columns, and what labels are.
    reading : Reading
        How to read; standard input is by default texts, or LIBSVM lines if the model takes numbers.
    batch_rows : int
        Rows of a batch.
    labelled : bool
        Whether labels are needed.
    notes : dict
        What the model's manifest says of the file that it was trained on.
    doing : str
        Description for the display of progress.
    """
    wants_texts = takes_texts(model)
    if path == "-" and reading.format == "auto":
        reading = reading._replace(format="txt" if wants_texts else "libsvm")
    reading = reading.like_training(path, notes)
    kind = reading.kind(path)
    if wants_texts is (kind in NUMBERS):
        takes, has = ("texts", "numbers") if wants_texts else ("numbers", "texts")
        raise LocoleError(f"{path} has {has} but the model takes {takes}: is it the right file?")
    reading.check(kind, path)
    has_several = is_multilabel(model)
    if reading.label_separator is not None and not has_several:
        raise LocoleError(
            "the model has one label for each row: leave out --label-separator, or fit it with one."
        )
    rows: Iterator[Batch]
    if labelled and has_several and kind in NUMBERS and kind != "dense":
        rows = _slices(_several_labels(path, kind, model, reading, notes), batch_rows)
    elif kind == "libsvm":
        rows = _libsvm(path, model, reading, batch_rows, labelled, notes)
    elif kind == "dense":
        completed = reading.completed(notes, kind, labelled=labelled)
        names = _dense_names(completed)
        found = iter_dense(path, batch_rows=batch_rows, labelled=labelled, **names)
        rows = _checked_dense(path, found, n_features_of(model))
        if labelled:
            rows = (_checked_sets(batch, path, has_several) for batch in rows)
    elif kind in NUMBERS:
        parts = iter_examples(
            path,
            batch_rows=batch_rows,
            format=kind,
            labelled=labelled,
            n_features=n_features_of(model),
        )
        rows = (Batch(*part) for part in parts)
    else:
        if labelled:
            check_labelled(kind, path)
        completed = reading.completed(notes, kind, labelled=labelled)
        rows = _texts(path, kind, completed, batch_rows, labelled)
        if labelled:
            rows = (_checked_sets(batch, path, has_several) for batch in rows)
    return track(rows, doing, total=_estimated_rows(path), unit="rows", size=len)


def read_labelled(path: str, model: Any, reading: Reading, *, notes: dict[str, str]) -> Batch:
    """All rows of a file with labels, as the model takes them."""
    parts = list(
        batches(
            path, model, reading, batch_rows=_READ_ROWS, labelled=True, notes=notes,
            doing=f"reading {path}",
        )
    )  # fmt: skip
    if not parts:
        raise LocoleError(f"{path} has no rows: is it the right file?")
    return Batch(_joined([part.features for part in parts]), _joined([p.labels for p in parts]))


def _joined(parts: list[Any]) -> Any:
    """Texts, rows or labels of all batches."""
    if isinstance(parts[0], list):
        return [one for part in parts for one in part]
    return vstack(parts, format="csr") if issparse(parts[0]) else np.concatenate(parts)


def is_multilabel(model: Any) -> bool:
    """Whether the model has learnt several labels for each row."""
    return getattr(getattr(model, "classifier_", model), "multilabel_", None) is not None


def _checked_sets(batch: Batch, path: str, has_several: bool) -> Batch:
    """Batch whose rows have one label each, or any number, as the model has learnt them."""
    if has_several is isinstance(batch.labels, list):
        return batch
    if has_several:
        raise LocoleError(
            f"the model has several labels for each row: say by --label-separator what stands between "
            f"those of {path}."
        )
    raise LocoleError(
        f"{path} has several labels for a row, but the model has learnt one for each."
    )


def _several_labels(
    path: str, kind: str, model: Any, reading: Reading, notes: dict[str, str]
) -> Batch:
    """All rows of a file of numbers with an indicator of their labels."""
    n_features = n_features_of(model)
    if kind == "xmc":
        X, Y = load_xmc(path)
    elif kind == "libsvm":
        zero_based: Any = reading.zero_based
        if zero_based is None:
            zero_based = notes[FIRST_INDEX] == "0" if FIRST_INDEX in notes else "auto"
        X, Y = load_libsvm(
            path, n_features=n_features, zero_based=zero_based, multilabel=True, unknown="drop"
        )
    else:
        raise LocoleError(
            f"{path}: files of the format {kind} have one label for each row, but the model several."
        )
    if X.shape[1] != n_features:
        raise LocoleError(f"{path} has {X.shape[1]:,} features where {n_features:,} are needed.")
    return Batch(X, Y)


def _slices(whole: Batch, batch_rows: int) -> Iterator[Batch]:
    for start in range(0, len(whole), batch_rows):
        rows = slice(start, start + batch_rows)
        yield Batch(whole.features[rows], whole.labels[rows])


def check_labelled(kind: str, path: str) -> None:
    """Refuse texts alone where labels are needed."""
    if kind == "txt":
        raise LocoleError(
            f"{path}: a file of texts alone has no labels: take .tsv, label tab text, or .csv."
        )


def _texts(
    path: str, kind: str, reading: Reading, batch_rows: int, labelled: bool
) -> Iterator[Batch]:
    columns = TextColumns(
        reading.text, reading.label, labelled, reading.id, reading.delimiter,
        reading.label_separator,
    )  # fmt: skip
    with kept_bad_rows(reading.bad_rows, more=reading.more_bad_rows) as bad:
        parts = iter_records(
            path,
            columns,
            format=kind,
            encoding=reading.encoding or "utf-8",
            batch_rows=batch_rows,
            bad=bad,
        )
        for part in parts:
            ids = None if reading.id is None else [str(record.id) for record in part]
            yield Batch([record.text for record in part], labels_of(part), ids)


def _libsvm(
    path: str, model: Any, reading: Reading, batch_rows: int, labelled: bool, notes: dict[str, str]
) -> Iterator[Batch]:
    zero_based: Any = reading.zero_based
    if zero_based is None:
        # A model that was trained in Python has no note.
        zero_based = notes[FIRST_INDEX] == "0" if FIRST_INDEX in notes else "auto"
    labels: Any = None
    if labelled:
        labels = "int" if model.classes_.dtype.kind in "iuf" else "text"
    parts = iter_libsvm(
        path,
        batch_rows=batch_rows,
        n_features=n_features_of(model),
        zero_based=zero_based,
        labels=labels,
        unknown="drop",
    )
    return (Batch(X, y) for X, y in parts)


def _estimated_rows(path: str) -> float | None:
    """Rows of a file of lines, by the first of them; None for anything else."""
    if not os.path.isfile(path) or Path(path).suffix in (".gz", ".xz", ".bz2", ".npz", ".parquet"):
        return None
    with open(path, "rb") as file:
        start = file.read(_SAMPLE_BYTES)
    return os.path.getsize(path) * start.count(b"\n") / max(len(start), 1) or None


def as_texts(labels: NDArray) -> NDArray[np.object_]:
    """Labels of any type as texts, to be compared with labels of another type."""
    return np.array([str(label) for label in labels.ravel().tolist()], dtype=object).reshape(
        labels.shape
    )
