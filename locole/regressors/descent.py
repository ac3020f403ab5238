"""Stochastic gradient descent on the softmax loss of sparse rows, the same on any number of threads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from locole.blocks import slices, workers
from locole.kernels.product import add_dense_product, subtract_outer
from locole.progress import track
from locole.regressors.base import LabelTargets

__all__ = ["Descent", "Rows", "learning_unit"]

# Rows and outputs that one task takes; they do not depend on the number of threads.
_ROWS, _OUTPUTS = 64, 256
# Below this the weights' common factor is multiplied in.
_SMALL = 1e-3
# Rows of a batch may overlap this much before steps are shortened: those of texts do by 3 to 11.
_FREE_OVERLAP = 12.0

_NO_SCALES = np.empty(0, dtype=np.float32)


class Rows(NamedTuple):
    """What is learnt from: rows of positive weight and their labels."""

    X: sp.csr_array
    codes: NDArray[np.int64]
    weight: NDArray[np.float32] | None
    targets: LabelTargets


def learning_unit(X: sp.csr_array) -> float:
    """Mean of ‖x‖², or 1 if all rows are empty."""
    mean = float(np.square(X.data, dtype=np.float64).sum() / max(1, X.shape[0]))
    return mean if mean > 0 else 1.0


class Descent:
    """Batches of rows: points, gradients of the points, one update of the weights.

    Threads share the rows of a batch for the first two and the outputs for the third, so every
    number is computed by one thread, in one order. The weights are ``factor · W``: a decay by the ℓ2
    penalty changes the factor only.
    """

    def __init__(
        self,
        rows: Rows,
        W: NDArray[np.float32],
        *,
        epochs: int,
        learning_rate: float,
        batch_size: int,
        l2: float,
        label_smoothing: float,
        seed: int,
        n_jobs: int | None,
        description: str | None,
    ) -> None:
        self.rows, self.W = rows, W
        self.epochs, self.batch_size, self.l2 = epochs, batch_size, l2
        self.n_jobs, self.description = n_jobs, description
        self.rng = np.random.default_rng([seed, rows.X.shape[0]])
        self.softmax = rows.targets.softmax(label_smoothing=label_smoothing)
        unit = learning_unit(rows.X)
        self.rate = learning_rate / (unit * max(1.0, self._overlap() / unit / _FREE_OVERLAP))
        self.factor = 1.0

    def _overlap(self) -> float:
        """Largest eigenvalue of ``X_Bᵀ X_B`` for one batch, by power iteration."""
        n = self.rows.X.shape[0]
        B = self.rows.X[self.rng.permutation(n)[: self.batch_size]]
        v = np.ones(B.shape[0]) / np.sqrt(B.shape[0])
        value = 0.0
        for _ in range(10):
            v = B @ (B.T @ v)
            value = float(np.linalg.norm(v))
            if value == 0:
                break
            v = v / value
        return value

    def run(self) -> Iterator[float]:
        """Yield the mean loss of each epoch, of rows as they were met."""
        n = self.rows.X.shape[0]
        batches = slices(n, self.batch_size)
        total, done = self.epochs * len(batches), 0
        with workers(self.n_jobs) as apply:
            for epoch in range(self.epochs):
                order = self.rng.permutation(n)
                loss = 0.0
                for part in self._shown(batches, epoch):
                    loss += self._step(order[part], self.rate * (1 - done / total), apply)
                    done += 1
                yield loss / n
        self.W *= np.float32(self.factor)
        self.factor = 1.0

    def _shown(self, batches: list[slice], epoch: int) -> Any:
        if self.description is None:
            return batches
        return track(batches, f"{self.description}, epoch {epoch + 1} of {self.epochs}")

    def _step(self, batch: NDArray[np.int64], rate: float, apply: Any) -> float:
        X, W, width = self.rows.X, self.W, self.W.shape[1]
        n_outputs = self.rows.targets.shape[1]
        G = np.zeros((batch.size, width), dtype=np.float32)
        flat = W.reshape(-1)

        def slope(part: slice) -> float:
            mine = batch[part]
            Z = np.zeros((mine.size, width), dtype=np.float32)
            add_dense_product(
                X.indptr, X.indices, X.data, mine, flat, _NO_SCALES, width, Z.reshape(-1)
            )
            Z = np.ascontiguousarray(Z[:, :n_outputs])
            Z *= np.float32(self.factor)
            loss, gradient = self.softmax(Z, self.rows.codes[mine])
            if self.rows.weight is not None:
                weight = self.rows.weight[mine]
                gradient *= weight[:, None]
                loss = loss * weight
            G[part, :n_outputs] = gradient
            return float(loss.sum(dtype=np.float64))

        loss = sum(apply(slope, slices(batch.size, _ROWS)))
        # The gradient is a sum over rows, so the penalty counts once for each.
        self.factor *= max(1.0 - rate * self.l2 * batch.size, 0.0)
        if self.factor < _SMALL:
            W *= np.float32(self.factor)
            self.factor = 1.0
        step = np.float32(rate / self.factor)

        def move(part: slice) -> None:
            subtract_outer(
                X.indptr, X.indices, X.data, batch, G.reshape(-1), step, width,
                part.start, part.stop, flat,
            )  # fmt: skip

        list(apply(move, slices(width, _OUTPUTS)))
        return loss
