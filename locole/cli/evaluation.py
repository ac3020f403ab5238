"""Predictions for a file with labels, and figures of them."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from locole import metrics
from locole.cli.examples import as_texts, batches
from locole.cli.reading import Reading
from locole.exceptions import LocoleError

__all__ = ["Predictions", "measure", "predict_file", "worst_labels"]

_BATCH_ROWS = 8192
# Other labels shown for each of the worst.
_SHOWN_MISTAKES = 3


class Predictions(NamedTuple):
    """Labels of a file, and what the model made of its rows."""

    true: NDArray
    """Labels of the file, shape (rows,)."""
    best: NDArray
    """The best labels of the model, shape (rows, k), of the same type."""
    seconds: float
    """Time to predict, without reading the file."""


def predict_file(
    model: Any, path: str, reading: Reading, *, notes: dict[str, str], k: int | None = None
) -> Predictions:
    """Predict all rows of a file with labels; ``k`` is 5 by default, or less if there are fewer."""
    k = min(5, len(model.classes_)) if k is None else k
    true: list[Any] = []
    best: list[Any] = []
    seconds = 0.0
    rows = batches(
        path,
        model,
        reading,
        batch_rows=_BATCH_ROWS,
        labelled=True,
        notes=notes,
        doing=f"testing on {path}",
    )
    for batch in rows:
        start = time.perf_counter()
        best.append(model.predict_topk(batch.features, k=k)[0])
        seconds += time.perf_counter() - start
        true.append(batch.labels)
    if not true:
        raise LocoleError(f"{path} has no rows: is it the right file?")
    y, labels = np.concatenate(true), np.concatenate(best)
    if (y.dtype.kind in "OU") is not (labels.dtype.kind in "OU"):
        y, labels = as_texts(y), as_texts(labels)
    return Predictions(y, labels, seconds)


def measure(predictions: Predictions, model: Any) -> dict[str, Any]:
    """All figures of `locole.metrics`, and how the file and the model fit together.

    Returns
    -------
    dict
        ``rows``, ``labels`` (different ones in the file), ``unseen_rows`` (whose label the model does
        not know, so that they count as wrong), ``k``, ``accuracy``, ``top_k_accuracy``, precision and
        recall as macro and micro averages, ``macro_f1``, ``seconds`` and ``rows_per_s``.
    """
    true, best, seconds = predictions
    first = best[:, 0]
    known = set(as_texts(model.classes_).tolist())
    report = metrics.per_label_report(true, first)
    figures: dict[str, Any] = {
        "rows": len(true),
        "labels": int((report["support"] > 0).sum()),
        "unseen_rows": sum(label not in known for label in as_texts(true).tolist()),
        "k": best.shape[1],
        "accuracy": metrics.accuracy(true, first),
        "top_k_accuracy": metrics.top_k_accuracy(true, best),
    }
    for average in ("macro", "micro"):
        precision, recall = metrics.precision_recall(true, first, average=average)
        figures[f"{average}_precision"], figures[f"{average}_recall"] = precision, recall
    figures["macro_f1"] = float(report["f1"].mean())
    figures["seconds"], figures["rows_per_s"] = seconds, len(true) / max(seconds, 1e-9)
    return figures


def worst_labels(predictions: Predictions, n: int) -> list[dict[str, Any]]:
    """Labels with most wrong rows, and what they were taken for.

    Returns
    -------
    list of dict
        ``label``, its ``rows``, how many were ``wrong``, and ``taken_for``: the labels that were
        predicted instead most often, with their ``rows``.

    Examples
    --------
    >>> import numpy as np
    >>> true, best = np.array([1, 1, 1, 2]), np.array([[2], [2], [3], [2]])
    >>> (worst,) = worst_labels(Predictions(true, best, 0.0), 1)
    >>> worst["label"], worst["wrong"], [(o["label"], o["rows"]) for o in worst["taken_for"]]
    (1, 3, [(2, 2), (3, 1)])
    """
    true, first = predictions.true, predictions.best[:, 0]
    labels, codes = np.unique(np.concatenate([true, first]), return_inverse=True)
    names = labels.tolist()
    y, z = codes[: len(true)], codes[len(true) :]
    rows, wrong = (np.bincount(part, minlength=len(names)) for part in (y, y[y != z]))
    found = []
    for code in np.argsort(-wrong, kind="stable")[:n]:
        if wrong[code] == 0:
            break
        others, counts = np.unique(z[(y == code) & (z != code)], return_counts=True)
        order = np.argsort(-counts, kind="stable")[:_SHOWN_MISTAKES]
        taken_for = [{"label": names[others[i]], "rows": int(counts[i])} for i in order]
        found.append(
            {
                "label": names[code],
                "rows": int(rows[code]),
                "wrong": int(wrong[code]),
                "taken_for": taken_for,
            }
        )
    return found
