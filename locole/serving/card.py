"""A model's card: what it is, what it was trained on, and how far its answers can be trusted."""

from __future__ import annotations

from typing import Any

import numpy as np

from locole.exceptions import LocoleError
from locole.metrics import calibration_bins, expected_calibration_error, risk_coverage
from locole.serving.served import ServedModel

__all__ = ["card", "summary"]

# Groups of validation rows in the calibration plot, and shares of errors that a threshold is shown for.
_BINS, _ERRORS = 10, (0.01, 0.02, 0.05, 0.1, 0.2)
_COVERAGES = (0.5, 0.7, 0.8, 0.9, 1.0)


def summary(served: ServedModel) -> dict[str, Any]:
    """What a list of models says of each."""
    return {
        "id": served.id,
        "version": served.version,
        "takes": "texts" if served.takes_texts else "rows",
        "labels": served.n_labels,
        "several_labels": served.has_several,
        "probabilities": served.has_probabilities,
    }


def card(served: ServedModel) -> dict[str, Any]:
    """All that is known of a model."""
    classifier = served.classifier
    choice = getattr(classifier, "choice_", None)
    return {
        **summary(served),
        "kind": type(classifier).__name__,
        "features": served.n_features,
        "first_index": served.first_index,
        "bytes": served.n_bytes,
        "modified": served.modified.isoformat(),
        "made_by": served.notes,
        "choice": str(choice) if choice else None,
        **_evidence(served),
    }


def _evidence(served: ServedModel) -> dict[str, Any]:
    """Training rows, and how right the model was on its validation rows."""
    calibration = getattr(served.model, "calibration_", None)
    if calibration is None:
        return {"training_rows": None, "validation": None}
    found: dict[str, Any] = {"training_rows": int(calibration.counts_.sum())}
    if not calibration.n_rows:
        return {**found, "validation": None}
    sure, _, before, _ = calibration.evidence_.T
    right = before == 0
    proba, accuracy, rows = calibration_bins(np.minimum(sure, 1), right, n_bins=_BINS)
    curve = risk_coverage(np.minimum(sure, 1), right)
    found["validation"] = {
        "rows": calibration.n_rows,
        "accuracy": float(right.mean()),
        "calibration_error": expected_calibration_error(np.minimum(sure, 1), right),
        "calibration": [
            {"probability": p, "accuracy": a, "rows": n}
            for p, a, n in zip(proba.tolist(), accuracy.tolist(), rows.tolist(), strict=True)
        ],
        "errors": [{"answered": c, "error": curve.risk_at(c)} for c in _COVERAGES],
        "thresholds": list(filter(None, (_threshold(served, error) for error in _ERRORS))),
    }
    return found


def _threshold(served: ServedModel, max_error: float) -> dict[str, Any] | None:
    try:
        least = served.model.threshold(max_error=max_error)
    except LocoleError:
        return None
    return {"max_error": max_error, "min_proba": least.min_proba, "answered": least.coverage}
