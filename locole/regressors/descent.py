"""Stochastic gradient descent on the softmax loss of sparse rows, the same on any number of threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from locole.kernels.csr import Csr
from locole.kernels.product import NO_SCALES, add_dense_product, subtract_outer
from locole.parallel.blocks import slices, workers
from locole.parallel.progress import track
from locole.regressors.base import LabelTargets
from locole.regressors.lazy_updates import Shrinkage
from locole.regressors.problem import Problem
from locole.regressors.settings import Settings

__all__ = ["Descent", "label_counts", "learning_unit", "points", "softmax_of"]

# Rows and outputs that one task takes; they do not depend on the number of threads.
_ROWS, _OUTPUTS = 64, 256
# Below this the weights' common factor is multiplied in.
_SMALL = 1e-3
# Rows of a batch may overlap this much before steps are shortened: those of texts do by 3 to 11.
_FREE_OVERLAP = 12.0


def label_counts(problem: Problem, seen: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rows of each label so far: these, and those of earlier rows, as far as there were labels."""
    n = problem.targets.n_classes
    counts = np.bincount(problem.codes, problem.weight, minlength=n).astype(np.float64)
    seen = seen[:n]
    counts[: seen.size] += seen
    return counts


def softmax_of(
    targets: LabelTargets, settings: Settings, counts: NDArray[np.float64]
) -> Callable[..., tuple[NDArray, NDArray]]:
    """Return the function from points and codes to losses and their gradients.

    The prior of a label is its share of all rows, as if each label had been met once more.
    """
    counts = counts + 1
    return targets.softmax(
        label_smoothing=settings.label_smoothing,
        offsets=settings.prior * np.log(counts / counts.sum()) if settings.prior > 0 else None,
        n_sampled=settings.n_sampled,
        seed=settings.random_state,
    )


def learning_unit(X: sp.csr_array) -> float:
    """Mean of ‖x‖², or 1 if all rows are empty."""
    mean = float(np.square(X.data, dtype=np.float64).sum() / max(1, X.shape[0]))
    return mean if mean > 0 else 1.0


def points(
    X: sp.csr_array, rows: NDArray[np.int64], W: NDArray[np.float32], n_outputs: int
) -> NDArray[np.float32]:
    """``X[rows] @ W``, the first ``n_outputs`` columns."""
    width = W.shape[1]
    Z = np.zeros((rows.size, width), dtype=np.float32)
    add_dense_product(Csr.of(X), rows, W.reshape(-1), NO_SCALES, width, 0, width, Z.reshape(-1))
    return np.ascontiguousarray(Z[:, :n_outputs])


class Descent:
    """Batches of rows: points, gradients of the points, one update of the weights.

    Threads share the rows of a batch for the first two and the outputs for the third, so every
    number is computed by one thread, in one order. The weights are ``factor · W``: a decay by the ℓ2
    penalty changes the factor only. ``unit`` is the squared length of rows that the rate is for.
    """

    def __init__(
        self,
        rows: Problem,
        W: NDArray[np.float32],
        settings: Settings,
        softmax: Callable[..., tuple[NDArray, NDArray]],
        unit: float,
    ) -> None:
        self.rows, self.W, self.settings = rows, W, settings
        self.rng = np.random.default_rng([settings.random_state, rows.n_rows])
        self.softmax = softmax
        overlap = max(1.0, self._overlap() / unit / _FREE_OVERLAP)
        self.rate = settings.learning_rate / (unit * overlap)
        self.factor, self.done = 1.0, 0
        self.shrinkage = Shrinkage(W) if settings.l1 > 0 else None

    def _overlap(self) -> float:
        """Largest eigenvalue of ``X_Bᵀ X_B`` for one batch, by power iteration."""
        n = self.rows.n_rows
        B = self.rows.X[self.rng.permutation(n)[: self.settings.batch_size]]
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
        n, epochs = self.rows.n_rows, self.settings.epochs
        batches = slices(n, self.settings.batch_size)
        total = epochs * len(batches)
        with workers(self.settings.n_jobs) as apply:
            for epoch in range(epochs):
                order = self.rng.permutation(n)
                loss = 0.0
                for part in self._shown(batches, epoch):
                    loss += self._step(order[part], 1 - self.done / total, apply)
                    self.done += 1
                yield loss / n

    def weights(self) -> NDArray[np.float32]:
        """Weights as they stand; the descent can continue with the same ones."""
        if self.shrinkage is not None:
            self.shrinkage.pay_all()
        return np.float32(self.factor) * self.W

    def finish(self) -> NDArray[np.float32]:
        """Return `weights` in the room of W."""
        self._set_unit()
        return self.W

    def mean_loss(self, rows: Problem, W: NDArray[np.float32]) -> float:
        """Mean loss of other rows, with the weights of their logits."""
        n_outputs = rows.targets.shape[1]

        def loss(part: slice) -> float:
            mine = np.arange(part.start, part.stop)
            found, _ = self._loss(rows, mine, points(rows.X, mine, W, n_outputs), draw=0)
            return float(found.sum(dtype=np.float64))

        n = rows.n_rows
        with workers(self.settings.n_jobs) as apply:
            return sum(apply(loss, slices(n, _ROWS))) / n

    def _loss(
        self, rows: Problem, mine: NDArray[np.int64], Z: NDArray[np.float32], *, draw: int
    ) -> tuple[NDArray, NDArray[np.float32]]:
        """Losses and gradients of points, times the rows' weights."""
        loss, gradient = self.softmax(Z, rows.codes[mine], draw=draw)
        if rows.weight is not None:
            weight = rows.weight[mine]
            gradient *= weight[:, None]
            loss = loss * weight
        return loss, gradient

    def _shown(self, batches: list[slice], epoch: int) -> Any:
        if not self.settings.verbose:
            return batches
        return track(batches, f"learning, epoch {epoch + 1} of {self.settings.epochs}")

    def _step(self, batch: NDArray[np.int64], remaining: float, apply: Any) -> float:
        """Learn from a batch, at so much of the rate."""
        settings, rate = self.settings, self.rate * remaining
        if self.shrinkage is not None:
            self.shrinkage.pay(np.unique(self.rows.X[batch].indices), apply)
        G = np.zeros((batch.size, self.W.shape[1]), dtype=np.float32)
        loss = self._fill_slopes(batch, G, apply)
        # The gradient is a sum over rows, so the penalties count once for each.
        self.factor *= max(1.0 - rate * settings.l2 * batch.size, 0.0)
        if self.factor < _SMALL:
            self._set_unit()
        self._move(batch, G, rate / self.factor, apply)
        if self.shrinkage is not None:
            self.shrinkage.add(rate * settings.l1 * batch.size / self.factor)
        return loss

    def _fill_slopes(self, batch: NDArray[np.int64], G: NDArray[np.float32], apply: Any) -> float:
        """Fill G with the gradients of the points; sum of the losses."""
        n_outputs = self.rows.targets.shape[1]

        def slope(part: slice) -> float:
            mine = batch[part]
            Z = points(self.rows.X, mine, self.W, n_outputs)
            Z *= np.float32(self.factor)
            loss, gradient = self._loss(self.rows, mine, Z, draw=self.done)
            G[part, :n_outputs] = gradient
            return float(loss.sum(dtype=np.float64))

        return sum(apply(slope, slices(batch.size, _ROWS)))

    def _set_unit(self) -> None:
        """Multiply the factor into the weights."""
        if self.shrinkage is not None:
            self.shrinkage.pay_all()
        self.W *= np.float32(self.factor)
        self.factor = 1.0

    def _move(
        self, batch: NDArray[np.int64], G: NDArray[np.float32], step: float, apply: Any
    ) -> None:
        X, width = self.rows.X, self.W.shape[1]

        def move(part: slice) -> None:
            rows = (Csr.of(X), batch, G.reshape(-1))
            where = (width, part.start, part.stop)
            subtract_outer(*rows, np.float32(step), *where, self.W.reshape(-1))

        list(apply(move, slices(width, _OUTPUTS)))
