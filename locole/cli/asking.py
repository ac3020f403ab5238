"""What is asked of a model for each row: scores, probabilities, only sure answers, or label sets."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from locole.cli.answers import Answers
from locole.cli.examples import is_multilabel

__all__ = ["Asking"]


class Asking(NamedTuple):
    """How the rows of a file are answered."""

    k: int
    proba: bool = False
    """Whether probabilities stand in place of scores."""
    least: float | None = None
    """Probability below which an answer is held back."""
    coverage: float | None = None
    """Coverage of the label set of each row, if sets are asked for."""

    @property
    def value(self) -> str:
        """What stands beside each label."""
        return "probability" if self.proba or self.least is not None else "score"

    def answers(self, model: Any, rows: Any) -> Answers:
        """Answer some rows."""
        if self.coverage is not None:
            return Answers(np.empty(0), np.empty(0), sets=model.predict_set(rows, self.coverage))
        if self.value == "score":
            return Answers(*model.predict_topk(rows, k=self.k))
        labels, proba = model.predict_topk(rows, k=self.k, proba=True)
        if self.least is not None:
            labels = labels.astype(object)
            # Labels of a row that has several are answers of their own.
            sure = proba if is_multilabel(model) else proba[:, :1]
            labels[np.broadcast_to(sure < self.least, labels.shape)] = None
        return Answers(labels, proba, value=self.value)
