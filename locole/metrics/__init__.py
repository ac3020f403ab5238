"""Figures from labels and predictions, for very many labels: never a table of rows or label pairs."""

from locole.metrics.calibration import (
    RiskCoverage,
    brier_score,
    calibration_bins,
    expected_calibration_error,
    log_loss,
    risk_coverage,
)
from locole.metrics.one_label import (
    accuracy,
    per_label_report,
    precision_recall,
    top_k_accuracy,
)
from locole.metrics.several_labels import (
    Propensities,
    coverage_at_k,
    f1_at_k,
    f1_score,
    ndcg_at_k,
    precision_at_k,
    ps_ndcg_at_k,
    ps_precision_at_k,
    ranking_report,
    recall_at_k,
)

__all__ = [
    "Propensities",
    "RiskCoverage",
    "accuracy",
    "brier_score",
    "calibration_bins",
    "coverage_at_k",
    "expected_calibration_error",
    "f1_at_k",
    "f1_score",
    "log_loss",
    "ndcg_at_k",
    "per_label_report",
    "precision_at_k",
    "precision_recall",
    "ps_ndcg_at_k",
    "ps_precision_at_k",
    "ranking_report",
    "recall_at_k",
    "risk_coverage",
    "top_k_accuracy",
]
