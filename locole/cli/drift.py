"""What an update says of new rows and of the model: accuracy, calibration, labels with few rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from locole import metrics
from locole.cli.examples import as_texts, is_multilabel

__all__ = ["answers_to", "change", "health"]

# Labels with so many rows or fewer starve; and how many are shown.
_FEW_ROWS, _SHOWN = 2, 10
# Rows asked about at a time.
_BLOCK_ROWS = 8192


def answers_to(model: Any, rows: Any, labels: Any) -> dict[str, Any]:
    """How right a model is about rows that it has not learnt, and how many have labels that are new."""
    n_rows = len(rows) if isinstance(rows, list) else rows.shape[0]
    has_proba = getattr(model, "calibration_", None) is not None
    first: list[Any] = []
    sure: list[Any] = []
    for start in range(0, n_rows, _BLOCK_ROWS):
        some = rows[start : start + _BLOCK_ROWS]
        best, said = model.predict_topk(some, k=1, **({"proba": True} if has_proba else {}))
        first.append(as_texts(best[:, 0]))
        sure.append(said[:, 0])
    answers, wanted = np.concatenate(first), _wanted(labels)
    right = np.array([a in own for a, own in zip(answers.tolist(), wanted, strict=True)])
    known = set(as_texts(model.classes_).tolist())
    unseen = sum(bool(own) and known.isdisjoint(own) for own in wanted)
    name = "precision_at_1" if is_multilabel(model) else "accuracy"
    found: dict[str, Any] = {"rows": n_rows, "unseen_rows": unseen, name: float(right.mean())}
    if has_proba:
        error = metrics.expected_calibration_error(np.concatenate(sure), right)
        found["calibration_error"] = float(error)
    return found


def _wanted(labels: Any) -> list[set[str]]:
    """Labels of each row as texts."""
    if isinstance(labels, list):
        return [set(map(str, own)) for own in labels]
    if hasattr(labels, "tocsr"):
        table = labels.tocsr()
        return [
            set(map(str, part.tolist())) for part in np.split(table.indices, table.indptr[1:-1])
        ]
    return [{label} for label in as_texts(labels).tolist()]


def health(model: Any) -> dict[str, Any]:
    """What the model's validation rows say of it; empty for models without."""
    classifier = getattr(model, "classifier_", model)
    choice = getattr(classifier, "choice_", {})
    found: dict[str, Any] = {}
    if "accuracy" in choice:
        found = {"rows": choice["validation_rows"], "accuracy": choice["accuracy"]}
    calibration = getattr(classifier, "calibration_", None)
    if calibration is not None and calibration.n_rows:
        sure, _, before, _ = calibration.evidence_.T
        error = metrics.expected_calibration_error(sure, before == 0)
        found["calibration_error"] = float(error)
    return found


def change(model: Any, known: Any) -> dict[str, Any]:
    """Labels of a model that it has learnt since it knew ``known``, and those that starve."""
    labels = model.classes_
    new = labels[len(known) :]
    found: dict[str, Any] = {
        "labels": len(labels),
        "new_labels": len(new),
        "first_new": new[:_SHOWN],
    }
    rows = getattr(getattr(model, "classifier_", model), "label_rows_", None)
    if rows is not None:
        order = np.argsort(rows, kind="stable")
        few = order[rows[order] <= _FEW_ROWS]
        found["labels_without_rows"] = int((rows == 0).sum())
        found["labels_with_few_rows"] = int(few.size)
        found["first_with_few_rows"] = labels[few[:_SHOWN]]
    return found
