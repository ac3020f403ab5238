"""Predictions for a file with labels, and figures of them."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from locole import metrics
from locole.cli.examples import as_texts, batches, is_multilabel
from locole.cli.reading import Reading
from locole.cli.trust import Confidences, confidences, joined, trust_figures
from locole.exceptions import LocoleError

__all__ = ["Predictions", "measure", "predict_file", "summary", "worst_labels"]

_BATCH_ROWS = 8192
# Other labels shown for each of the worst.
_SHOWN_MISTAKES = 3


class Predictions(NamedTuple):
    """Labels of a file, and what the model made of its rows."""

    true: Any
    """Labels of the file, shape (rows,); a list for each row if it has several."""
    best: NDArray
    """The best labels of the model, shape (rows, k), of the same type."""
    seconds: float
    """Time to predict, without reading the file."""
    sets: list[list[Any]] | None = None
    """The labels that the model predicts for each row, if rows have several."""
    confidences: Confidences | None = None
    """How sure the model is, if it says so."""

    @property
    def has_several(self) -> bool:
        """Whether rows have several labels."""
        return self.sets is not None


def predict_file(
    model: Any, path: str, reading: Reading, *, notes: dict[str, str], k: int | None = None
) -> Predictions:
    """Predict all rows of a file with labels; ``k`` is 5 by default, or less if there are fewer."""
    k = min(5, len(model.classes_)) if k is None else k
    has_several = is_multilabel(model)
    sets: list[list[Any]] = []
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
    sure: list[Confidences] = []
    for batch in rows:
        start = time.perf_counter()
        best.append(model.predict_topk(batch.features, k=k)[0])
        sets += _as_lists(model.predict(batch.features), model.classes_) if has_several else []
        seconds += time.perf_counter() - start
        true.append(batch.labels)
        if getattr(model, "calibration_", None) is not None:
            sure.append(confidences(model, batch.features, true[-1]))
    if not true:
        raise LocoleError(f"{path} has no rows: is it the right file?")
    labels = np.concatenate(best)
    if has_several:
        known = model.classes_
        lists = [
            own
            for part in true
            for own in (part if isinstance(part, list) else _as_lists(part, None))
        ]
        if known.dtype.kind not in "OU":
            lists = [[known.dtype.type(label) for label in own] for own in lists]
        return Predictions(lists, labels, seconds, sets)
    y = np.concatenate(true)
    if (y.dtype.kind in "OU") is not (labels.dtype.kind in "OU"):
        y, labels = as_texts(y), as_texts(labels)
    return Predictions(y, labels, seconds, None, joined(sure) if sure else None)


def measure(predictions: Predictions, model: Any) -> dict[str, Any]:
    """All figures of `locole.metrics`, and how the file and the model fit together.

    Returns
    -------
    dict
        ``rows``, ``labels`` (different ones in the file), ``unseen_rows`` (whose label the model does
        not know, so that they count as wrong), ``k``, ``accuracy``, ``top_k_accuracy``, precision and
        recall as macro and micro averages, ``macro_f1``, ``seconds`` and ``rows_per_s``; and for models
        that say how sure they are the figures of `locole.cli.trust.trust_figures`.
    """
    if predictions.has_several:
        return _measure_several(predictions, model)
    true, best, seconds, _, sure = predictions
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
    if sure is not None:
        figures |= trust_figures(sure, best.shape[1])
    figures["seconds"], figures["rows_per_s"] = seconds, len(true) / max(seconds, 1e-9)
    return figures


def _measure_several(predictions: Predictions, model: Any) -> dict[str, Any]:
    """Metrics of ranked answers and of predicted sets, for rows with several labels."""
    true, best, seconds, sets, _ = predictions
    known = set(model.classes_.tolist())
    k = best.shape[1]
    figures: dict[str, Any] = {
        "rows": len(true),
        "labels": len({label for own in true for label in own}),
        "unlabelled_rows": sum(not own for own in true),
        "unseen_rows": sum(bool(own) and known.isdisjoint(own) for own in true),
        "k": k,
    }
    depths = sorted({n for n in (1, 3, 5, k) if n <= k})
    propensities = _propensities(model)
    figures |= metrics.ranking_report(true, best, k=depths, propensities=propensities)
    for average in ("micro", "macro", "samples"):
        figures[f"{average}_f1"] = metrics.f1_score(true, sets, average=average)
    figures["seconds"], figures["rows_per_s"] = seconds, len(true) / max(seconds, 1e-9)
    return figures


def _propensities(model: Any) -> metrics.Propensities | None:
    """How probable it is that labels are noted, if the model has counted their training rows."""
    model = getattr(model, "classifier_", model)
    counts, known = (getattr(model, name, None) for name in ("label_rows_", "marginals_"))
    if counts is None or known is None or not known.n_rows_:
        return None
    return metrics.Propensities.of_counts(model.classes_, counts, known.n_rows_)


def summary(figures: dict[str, Any]) -> str:
    """The main figures in a few words."""
    k = figures["k"]
    if "accuracy" in figures:
        return (
            f"accuracy {figures['accuracy']:.2%}, in the first {k} {figures['top_k_accuracy']:.2%}"
        )
    return f"precision of the first {figures['P@1']:.2%}, of the first {k} {figures[f'P@{k}']:.2%}"


def _as_lists(Y: Any, labels: NDArray | None) -> list[list[Any]]:
    """Labels of each row of an indicator; numbers of columns if ``labels`` is None."""
    Y = sp.csr_array(Y)
    names = Y.indices if labels is None else labels[Y.indices]
    return [part.tolist() for part in np.split(names, Y.indptr[1:-1])]


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
