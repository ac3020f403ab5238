"""Rows of files as a model takes them: whole for training, in batches for a model that is there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from locole.cli.options import Reading
from locole.datasets import Examples, iter_examples, iter_libsvm, load_libsvm, read_examples
from locole.datasets.files import format_of
from locole.exceptions import LocoleError
from locole.io import read_manifest
from locole.models import load
from locole.parallel.progress import track

__all__ = [
    "FIRST_INDEX",
    "as_texts",
    "batches",
    "n_features_of",
    "open_model",
    "read_training",
    "takes_texts",
]

#: Note in a model's manifest: what its training file called the first feature.
FIRST_INDEX = "libsvm_first_index"
# Bytes from which the number of rows of a file is estimated.
_SAMPLE_BYTES = 1 << 16


def read_training(path: str, reading: Reading) -> tuple[Examples, dict[str, str]]:
    """All rows of a training file, and notes on the file that prediction will need."""
    if format_of(path, reading.format) != "libsvm":
        rows = read_examples(path, format=reading.format, text=reading.text, label=reading.label)
        return rows, {}
    labels: Any = reading.labels
    if reading.zero_based is not None:
        X, y = load_libsvm(path, zero_based=reading.zero_based, labels=labels)
        return Examples(X, y), {FIRST_INDEX: "0" if reading.zero_based else "1"}
    # A column for index 0, which is taken out again where it is empty: so the file tells its base.
    X, y = load_libsvm(path, zero_based=True, labels=labels)
    first = 0 if X.indices.size == 0 or X.indices.min() == 0 else 1
    if first:
        X.indices -= 1
        X = csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], X.shape[1] - 1))
    return Examples(X, y), {FIRST_INDEX: str(first)}


def open_model(path: str, *, jobs: int) -> tuple[Any, dict[str, str]]:
    """Load a model that will use so many threads, and the notes on how it was made."""
    model = load(path)
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
) -> Iterator[Examples]:
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
    kind = reading.format
    if path == "-" and kind == "auto":
        kind = "txt" if wants_texts else "libsvm"
    kind = format_of(path, kind)
    if wants_texts is (kind in ("libsvm", "xmc", "npz")):
        takes, has = ("texts", "numbers") if wants_texts else ("numbers", "texts")
        raise LocoleError(f"{path} has {has} but the model takes {takes}: is it the right file?")
    if kind == "libsvm":
        rows = _libsvm(path, model, reading, batch_rows, labelled, notes)
    else:
        rows = iter_examples(
            path,
            batch_rows=batch_rows,
            format=kind,
            text=reading.text,
            label=reading.label,
            labelled=labelled,
            n_features=n_features_of(model),
        )
    return track(rows, doing, total=_estimated_rows(path), unit="rows", size=_n_rows)


def _libsvm(
    path: str, model: Any, reading: Reading, batch_rows: int, labelled: bool, notes: dict[str, str]
) -> Iterator[Examples]:
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
    return (Examples(X, y) for X, y in parts)


def _n_rows(batch: Examples) -> int:
    return len(batch.features) if isinstance(batch.features, list) else batch.features.shape[0]


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
