"""The loop over epochs and batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from locole.parallel.blocks import map_blocks, n_threads, workers
from locole.regressors.base import LabelTargets
from locole.regressors.early_stopping import not_first
from locole.regressors.mlp.batches import Batch, Foresight, Grouper, Orders, ahead
from locole.regressors.mlp.device import DeviceLayer, DeviceNetwork, choose_device
from locole.regressors.mlp.group import ALONE, Alone
from locole.regressors.mlp.network import Network, one_thread
from locole.regressors.mlp.recipes import Settings
from locole.regressors.mlp.schedule import rates
from locole.regressors.mlp.shape import Shape, forward, product
from locole.regressors.mlp.sparse_layer import SparseLayer
from locole.regressors.mlp.vectors import JointLoss
from locole.regressors.problem import Problem

__all__ = ["LossOverflowError", "Training", "joint_of", "losses_of"]

_VALIDATION_ROWS = 512


class LossOverflowError(ArithmeticError):
    """The loss of a batch, or its gradient, is no finite number."""


def losses_of(rows: Problem, settings: Settings) -> Callable[[NDArray, NDArray], tuple]:
    """Return the function from points and numbers of rows to losses and their gradients."""
    targets = rows.targets
    if settings.loss == "softmax":
        softmax = targets.softmax(label_smoothing=settings.label_smoothing)

    def losses(Z: NDArray, some: NDArray) -> tuple[NDArray, NDArray]:
        if settings.loss == "softmax":
            loss, slope = softmax(np.ascontiguousarray(Z), rows.codes[some])
        else:
            slope = Z - targets.rows(some).astype(np.float32, copy=False)
            loss = np.square(slope).sum(axis=1) / 2
        if rows.weight is None:
            return loss, slope
        weight = rows.weight[some]
        return loss * weight, slope * weight[:, None]

    return losses


def joint_of(rows: Problem, settings: Settings) -> JointLoss | None:
    """Losses of rows whose label vectors are learnt with the network, if they are."""
    if not settings.embedding_rate:
        return None
    return JointLoss(settings, rows.codes, rows.weight)


class Training:
    """Everything that changes while a network learns, and the steps that change it.

    Randomness is a function of the seed and the number of the step, so the state is arrays and counts.
    In a group, W has the process's own columns of the first layer; everything else is everybody's.
    """

    def __init__(
        self,
        rows: Problem,
        settings: Settings,
        shape: Shape,
        W: NDArray,
        arrays: dict[str, NDArray[np.float32]],
        *,
        seed: int,
        row_moment: bool = False,
        rate: float = 1.0,
        device: str = "cpu",
        group: Alone = ALONE,
    ) -> None:
        self.rows, self.settings, self.shape, self.seed = rows, settings, shape, seed
        self.group = group
        self.orders = Orders(rows.n_rows, settings.batch_size, seed)
        settings = settings.for_rows(rows.n_rows)
        self.n_epochs = settings.epochs or 0
        self.rates = rate * rates(
            settings.schedule,
            settings.learning_rate,
            n_epochs=self.n_epochs,
            n_batches=self.orders.n_batches,
            steps_at=settings.steps_at,
            warm_up=settings.warm_up,
        )
        self.arrays = arrays
        #: Whether weights are those of an epoch at its end, also if rows are met again in the next.
        self.settles = True
        self._place(W, losses_of(rows, settings), row_moment, choose_device(device))
        self.loss = 0.0

    def _place(self, W: NDArray, losses: Any, row_moment: bool, device: str | None) -> None:
        layer: dict[str, Any] = {"rates": self.rates, "row_moment": row_moment}
        options: dict[str, Any] = {
            "dropout": self.settings.dropout, "joint": joint_of(self.rows, self.settings),
            "group": self.group,
        }  # fmt: skip
        self.layer: SparseLayer | DeviceLayer
        if device is None:
            self.layer = SparseLayer(W, **layer)
            self.network = Network(self.shape, self.arrays, losses, **options)
        else:
            self.layer = DeviceLayer(W, **layer, device=device)
            self.network = DeviceNetwork(self.shape, self.arrays, losses, **options, device=device)

    @property
    def done(self) -> int:
        """Steps so far."""
        return self.layer.idle.done

    def run(self, *, n_jobs: int | None) -> Iterator[float | None]:
        """Go on to the end; yields None after each step and the mean loss after each epoch."""
        n_batches, n = self.orders.n_batches, self.rows.n_rows
        foresight = Foresight(self.rows.X, self.orders, self.n_epochs)
        with workers(n_jobs) as apply, one_thread():
            for epoch in range(self.done // n_batches, self.n_epochs):
                grouper = Grouper(self.rows.X, foresight.epoch(epoch))
                horizon = (epoch + 1) * n_batches if self.settles else self.rates.size
                batches = self.orders.epoch(epoch, start=self.done % n_batches)
                numbered = list(enumerate(batches, start=self.done))
                made = ahead(
                    partial(self._batch, grouper), numbered,
                    threaded=n_threads(n_jobs) > 1,
                )  # fmt: skip
                for batch, rng in made:
                    self._step(batch, rng, apply, horizon)
                    if self.done % n_batches:
                        yield None
                loss, self.loss = self.loss / n, 0.0
                self.layer.settle(apply)
                self.network.pull()
                yield loss

    def _batch(
        self, grouper: Grouper, numbered: tuple[int, NDArray[np.int64]]
    ) -> tuple[Batch, np.random.Generator]:
        step, rows = numbered
        rng = np.random.default_rng([self.seed, 2, step])
        return grouper(rows, drop=self.settings.feature_dropout, rng=rng), rng

    def _step(self, batch: Batch, rng: np.random.Generator, apply: Any, horizon: int) -> None:
        A = self.group.wide(self.layer.product(batch, apply))
        outcome = self.network.learn(A, batch.rows, rng, apply)
        if not outcome.is_finite:
            raise LossOverflowError
        pace = self.layer.update(batch, self.group.part(outcome.first), apply, horizon=horizon)
        self.network.update(outcome.dense, pace, apply)
        self.loss += outcome.loss

    def judge(self, rows: Problem, *, n_jobs: int | None) -> tuple[float, float]:
        """Share of validation rows that are wrong, and their mean loss, at the end of an epoch.

        Without labels to compare, as with an array of targets, the share is 0.
        """
        losses, wrong = self._losses_on(rows), self._errors_on(rows)

        @np.errstate(over="ignore", invalid="ignore")
        def judged(part: slice) -> NDArray[np.float64]:
            A = self.group.wide(product(rows.X[part], self.layer.W))
            Z = forward(self.shape, self.arrays, A)
            some = np.arange(part.start, part.stop)
            return np.array([f(Z, some).sum(dtype=np.float64) for f in (wrong, losses)])

        # Processes must ask each other in the same order.
        n_jobs = n_jobs if self.group.size == 1 else 1
        blocks = map_blocks(judged, rows.n_rows, block=_VALIDATION_ROWS, n_jobs=n_jobs)
        error, loss = np.sum(blocks, axis=0) / rows.n_rows
        return float(error), float(loss)

    def _errors_on(self, rows: Problem) -> Callable[[NDArray, NDArray], NDArray]:
        targets = rows.targets
        has_labels = isinstance(targets, LabelTargets) and getattr(targets, "sets", None) is None
        if self.settings.embedding_rate or not has_labels:
            return lambda Z, some: np.zeros(len(some))
        softmax, weight = targets.softmax(), rows.weight

        def errors(Z: NDArray, some: NDArray) -> NDArray:
            wrong = not_first(softmax, Z, rows.codes[some])
            return wrong if weight is None else wrong * weight[some]

        return errors

    def _losses_on(self, rows: Problem) -> Callable[[NDArray, NDArray], NDArray]:
        joint = joint_of(rows, self.settings)
        if joint is None:
            losses = losses_of(rows, self.settings)
            return lambda Z, some: losses(Z, some)[0]
        G = torch.from_numpy(self.arrays["vectors"])
        return lambda Z, some: joint.losses(torch.from_numpy(Z), G, some, _plain_product).numpy()


def _plain_product(left: Any, right: Any) -> Any:
    return left @ right.T
