"""What every step does to all weights, at the price of the rows it touches.

Weights are ``factor · W``. A step changes the rows of W whose features it meets; the rest is idle. An
ℓ2 penalty changes the factor only. `Shrinkage` does as much for an ℓ1 penalty, and is exact, as if every
step had gone through all weights.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from locole.kernels.shrink import shrink_rows
from locole.parallel.blocks import slices

__all__ = ["Shrinkage"]

# Rows of weights that one task takes.
_FEATURES = 512


class Shrinkage:
    """Soft thresholds that rows pay when they are next used.

    Two thresholds after one another are one by their sum, so a row owes what has fallen due since it
    last paid. Amounts are in the unit of W.

    Parameters
    ----------
    W : array of shape (n_features, width)
        Weights, changed in place.
    """

    def __init__(self, W: NDArray[np.float32]) -> None:
        self.W = W
        self.due = 0.0
        self.paid = np.zeros(W.shape[0])

    def add(self, amount: float) -> None:
        """All rows owe so much more."""
        self.due += amount

    def pay(self, features: NDArray[np.integer], apply: Any = map) -> None:
        """Bring these rows up to date."""
        owed = self.due - self.paid[features]
        self.paid[features] = self.due
        features, owed = features[owed > 0], owed[owed > 0].astype(np.float32)

        def shrink(part: slice) -> None:
            shrink_rows(features[part], owed[part], self.W.shape[1], self.W.reshape(-1))

        list(apply(shrink, slices(features.size, _FEATURES)))

    def pay_all(self) -> None:
        """Bring all rows up to date."""
        self.pay(np.arange(self.W.shape[0]))
