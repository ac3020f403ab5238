"""Rows that are watched and not learnt from: which epoch's weights are the best."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from locole.exceptions import LocoleError
from locole.parallel.blocks import map_blocks
from locole.regressors.descent import Descent, points
from locole.regressors.problem import Problem
from locole.regressors.settings import Settings

__all__ = ["Watch", "share_wrong", "split"]

# Logits times this are so steep that the best label has all of the probability.
_STEEP = np.float32(1000)
# Rows that one task takes.
_ROWS = 64


def split(rows: Problem, settings: Settings) -> tuple[Problem, Problem | None]:
    """Rows to learn from and, if a fraction is given, rows to watch: at least one of each."""
    if settings.validation_fraction == 0:
        return rows, None
    n = rows.n_rows
    if n < 2:
        raise LocoleError("a row alone cannot be split: set validation_fraction to 0.")
    n_watched = min(max(1, round(settings.validation_fraction * n)), n - 1)
    # The last number: rows that choose a penalty do not also choose when to stop.
    return rows.split(n_watched, seed=[settings.random_state, n, 2])


def share_wrong(rows: Problem, W: NDArray[np.float32], *, n_jobs: int | None = None) -> float:
    """Weighted part of the rows whose label does not come first.

    No decoder is needed: with steep logits a label that comes first has more than half of the
    probability, and a loss below log 2.
    """
    softmax = rows.targets.softmax()
    n, n_outputs = rows.n_rows, rows.targets.shape[1]

    def wrong(part: slice) -> NDArray[np.bool_]:
        mine = np.arange(part.start, part.stop)
        loss, _ = softmax(_STEEP * points(rows.X, mine, W, n_outputs), rows.codes[mine])
        return ~(loss < math.log(2))

    found = np.concatenate(map_blocks(wrong, n, block=_ROWS, n_jobs=n_jobs))
    return float(np.average(found, weights=rows.weight))


class Watch:
    """Keeps the weights with the fewest rows wrong; without rows to watch, the last ones.

    The loss decides between equals only: it may rise while more and more rows are right.

    Parameters
    ----------
    descent : Descent
        What makes the weights.
    rows : Problem, optional
        Rows to watch.
    patience : int
        It is over after so many looks that saw nothing better.
    """

    def __init__(self, descent: Descent, rows: Problem | None, patience: int) -> None:
        self.descent, self.rows, self.patience = descent, rows, patience
        self.smallest, self.in_vain = (np.inf, np.inf), 0
        self.kept: NDArray[np.float32] | None = None

    @property
    def is_over(self) -> bool:
        """Whether patience has run out."""
        return self.in_vain >= self.patience

    def look(self) -> dict[str, float]:
        """Weigh the descent's weights as they stand; what there is to note."""
        if self.rows is None:
            return {}
        W = self.descent.weights()
        error = share_wrong(self.rows, W, n_jobs=self.descent.settings.n_jobs)
        loss = self.descent.mean_loss(self.rows, W)
        self.in_vain += 1
        if (error, loss) < self.smallest:
            self.smallest, self.in_vain = (error, loss), 0
            self.kept = W
        return {"validation_loss": loss, "validation_error": error}

    def best(self) -> NDArray[np.float32]:
        """Weights that are to be used."""
        return self.descent.finish() if self.kept is None else self.kept
