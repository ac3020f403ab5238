"""Figures from labels and predictions, for very many labels: never a table of rows or label pairs."""

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
    "accuracy",
    "coverage_at_k",
    "f1_at_k",
    "f1_score",
    "ndcg_at_k",
    "per_label_report",
    "precision_at_k",
    "precision_recall",
    "ps_ndcg_at_k",
    "ps_precision_at_k",
    "ranking_report",
    "recall_at_k",
    "top_k_accuracy",
]
