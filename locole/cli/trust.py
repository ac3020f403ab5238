"""How far the probabilities and sets of a model can be trusted on a file with labels."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from locole import metrics
from locole.cli.examples import as_texts

__all__ = ["SET_COVERAGE", "Confidences", "by_frequency", "confidences", "joined", "trust_figures"]

# Best labels of a row whose probabilities are looked at.
_DEPTH = 64
#: Coverage of the label sets that are tried.
SET_COVERAGE = 0.9


class Confidences(NamedTuple):
    """Of each row: probabilities of the best labels, which is right, and the size of its set."""

    proba: NDArray[np.float64]
    """Of the best k labels, shape (rows, k)."""
    right: NDArray[np.bool_]
    """Which of them is right, shape (rows, k)."""
    own: NDArray[np.float64]
    """Probability of the right label, shape (rows,); 0 for labels that the model does not know."""
    set_size: NDArray[np.int64] | None
    """Labels in the row's set; None if the model has no validation rows."""
    in_set: NDArray[np.bool_] | None
    """Whether the right label is in it."""
    n_training: NDArray[np.int64]
    """Training rows of the right label."""


def confidences(model: Any, rows: Any, true: NDArray) -> Confidences:
    """Ask a calibrated model how sure it is of its answers to some rows with labels.

    Labels are compared as texts, whatever type they have in a file and in the model.
    """
    calibration, n_classes = model.calibration_, model.classes_.size
    k = min(_DEPTH, n_classes)
    labels, proba = model.predict_topk(rows, k=k, proba=True)
    wanted = as_texts(true)
    right = as_texts(labels) == wanted[:, None]
    known = {str(label): place for place, label in enumerate(model.classes_.tolist())}
    places = np.array([known.get(label, -1) for label in wanted.tolist()])
    # Labels behind the best share what is left evenly.
    left = np.maximum(1 - proba.sum(axis=1), 0) / max(n_classes - k, 1)
    own = np.where(right.any(axis=1), (proba * right).sum(axis=1), left * (places >= 0))
    count = np.where(places >= 0, calibration.counts_[places], 0)
    if calibration.n_rows == 0:
        return Confidences(proba, right, own, None, None, count)
    sets = model.predict_set(rows, SET_COVERAGE)
    in_set = [label in map(str, found.tolist()) for label, found in zip(wanted, sets, strict=True)]
    sizes = np.array([found.size for found in sets])
    return Confidences(proba, right, own, sizes, np.array(in_set), count)


def joined(parts: list[Confidences]) -> Confidences:
    """Confidences of several batches as those of one."""
    columns: Any = zip(*parts, strict=True)
    whole: Any = [None if part[0] is None else np.concatenate(part) for part in columns]
    return Confidences(*whole)


def trust_figures(found: Confidences, k: int) -> dict[str, Any]:
    """Calibration, log loss, Brier score, errors of the surest rows, and coverage of sets."""
    sure, right = found.proba[:, 0], found.right[:, 0]
    curve = metrics.risk_coverage(sure, right)
    own = found.own[found.own > 0]
    figures: dict[str, Any] = {
        "expected_calibration_error": metrics.expected_calibration_error(sure, right),
        "log_loss": metrics.log_loss(own) if own.size else float("nan"),
        "brier_score": metrics.brier_score(found.proba[:, :k], found.right[:, :k]),
        "area_under_risk_coverage": curve.area,
    }
    for share in (0.8, 0.9, 0.95):
        figures[f"accuracy_at_{share:.0%}_coverage".replace("%", "")] = 1 - curve.risk_at(share)
    if found.set_size is not None and found.in_set is not None:
        figures["set_coverage"] = float(found.in_set.mean())
        figures["set_size"] = float(found.set_size.mean())
    return figures


def by_frequency(found: Confidences) -> list[dict[str, Any]]:
    """Figures of rows by the number of training rows of their label, in bands of about equal size."""
    known = found.n_training > 0
    if not known.any():
        return []
    edges = np.unique(
        np.quantile(found.n_training[known], [0, 0.25, 0.5, 0.75, 1]).astype(np.int64)
    )
    bands = []
    for first, last in zip(edges, [*(edges[1:] - 1)[:-1], edges[-1]], strict=False):
        part = (found.n_training >= first) & (found.n_training <= last)
        if part.any():
            bands.append(_band(found, part, int(first), int(last)))
    return bands


def _band(found: Confidences, part: NDArray[np.bool_], first: int, last: int) -> dict[str, Any]:
    band: dict[str, Any] = {
        "training_rows": f"{first:,}" if first == last else f"{first:,} to {last:,}",
        "rows": int(part.sum()),
        "accuracy": float(found.right[part, 0].mean()),
        "mean_probability": float(found.proba[part, 0].mean()),
    }
    if found.set_size is not None and found.in_set is not None:
        band["set_coverage"] = float(found.in_set[part].mean())
        band["set_size"] = float(found.set_size[part].mean())
    return band
