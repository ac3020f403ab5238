"""Early stopping: validation rows say which epoch's weights are the best."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from locole.exceptions import LocoleError
from locole.parallel.blocks import map_blocks
from locole.regressors.descent import Descent, points
from locole.regressors.problem import Problem
from locole.regressors.settings import Settings

__all__ = ["EarlyStopping", "Watch", "not_first", "share_wrong", "split"]

# Logits times this are so steep that the best label has all of the probability.
_STEEP = np.float32(1000)
# Rows that one task takes.
_ROWS = 64


def split(rows: Problem, settings: Settings) -> tuple[Problem, Problem | None]:
    """Rows to learn from and, if a fraction is given, validation rows: at least one of each."""
    if settings.validation_fraction == 0:
        return rows, None
    n = rows.n_rows
    if n < 2:
        raise LocoleError("a row alone cannot be split: set validation_fraction to 0.")
    n_watched = min(max(1, round(settings.validation_fraction * n)), n - 1)
    # The last number: rows that choose a penalty do not also choose when to stop.
    return rows.split(n_watched, seed=[settings.random_state, n, 2])


def not_first(softmax: Any, Z: NDArray[np.float32], codes: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether the label of each row is not the first by the logits ``Re⟨z, g⟩``.

    No decoder is needed: with steep logits a label that comes first has more than half of the
    probability, and a loss below log 2.
    """
    loss, _ = softmax(_STEEP * Z, codes)
    wrong: NDArray[np.bool_] = ~(loss < math.log(2))
    return wrong


def share_wrong(rows: Problem, W: NDArray[np.float32], *, n_jobs: int | None = None) -> float:
    """Weighted part of the rows whose label does not come first."""
    softmax = rows.targets.softmax()
    n, n_outputs = rows.n_rows, rows.targets.shape[1]

    def wrong(part: slice) -> NDArray[np.bool_]:
        mine = np.arange(part.start, part.stop)
        return not_first(softmax, points(rows.X, mine, W, n_outputs), rows.codes[mine])

    found = np.concatenate(map_blocks(wrong, n, block=_ROWS, n_jobs=n_jobs))
    return float(np.average(found, weights=rows.weight))


class EarlyStopping:
    """Which epoch is the best: the one with the fewest validation rows wrong.

    The loss decides between equals only: it may rise while more and more rows are right.

    Parameters
    ----------
    patience : int
        Learning is over after so many epochs that were no better.
    best : tuple of (error, loss)
        Of the best epoch so far.
    in_vain : int
        Epochs since then.

    Examples
    --------
    >>> watch = EarlyStopping(patience=2)
    >>> [watch.improves(error, loss) for error, loss in [(0.3, 1.0), (0.2, 2.0), (0.2, 2.5), (0.4, 0.5)]]
    [True, True, False, False]
    >>> watch.is_over
    True
    """

    def __init__(
        self, patience: int, best: tuple[float, float] = (np.inf, np.inf), in_vain: int = 0
    ) -> None:
        self.patience, self.best, self.in_vain = patience, best, in_vain

    def improves(self, error: float, loss: float) -> bool:
        """Whether this epoch is the best so far."""
        self.in_vain += 1
        if not (error, loss) < self.best:
            return False
        self.best, self.in_vain = (error, loss), 0
        return True

    @property
    def is_over(self) -> bool:
        """Whether patience has run out."""
        return self.in_vain >= self.patience


class Watch:
    """Keeps the best weights of a descent; without validation rows, the last ones.

    Parameters
    ----------
    descent : Descent
        What makes the weights.
    rows : Problem, optional
        Validation rows.
    patience : int
        See `EarlyStopping`.
    """

    def __init__(self, descent: Descent, rows: Problem | None, patience: int) -> None:
        self.descent, self.rows = descent, rows
        self.stopping = EarlyStopping(patience)
        self.kept: NDArray[np.float32] | None = None

    @property
    def is_over(self) -> bool:
        """Whether patience has run out."""
        return self.stopping.is_over

    def look(self) -> dict[str, float]:
        """Weigh the descent's weights as they stand; what there is to note."""
        if self.rows is None:
            return {}
        W = self.descent.weights()
        error = share_wrong(self.rows, W, n_jobs=self.descent.settings.n_jobs)
        loss = self.descent.mean_loss(self.rows, W)
        if self.stopping.improves(error, loss):
            self.kept = W
        return {"validation_loss": loss, "validation_error": error}

    def best(self) -> NDArray[np.float32]:
        """Weights that are to be used."""
        return self.descent.finish() if self.kept is None else self.kept
