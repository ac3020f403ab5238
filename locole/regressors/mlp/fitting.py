"""A whole fit: epochs, validation, the best weights, checkpoints, and what happens on overflow."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from locole.exceptions import LocoleError, LocoleWarning, ModelFileError
from locole.io.trust import check_like
from locole.regressors.checkpoint import Checkpoints
from locole.regressors.early_stopping import EarlyStopping
from locole.regressors.mlp.training import LossOverflowError, Training
from locole.regressors.problem import Problem

__all__ = ["Fit"]

# Weights of the last epoch are kept as well if they take no more than this.
_SPARE_BYTES = 1 << 30


class Fit:
    """Runs a training to its end, or to where it should stop.

    Parameters
    ----------
    training : Training
        What is run.
    validation : Problem, optional
        Rows that are not learnt: the weights that are best for them are kept, be it the first ones.
    patience : int
        See `EarlyStopping`.
    checkpoints : Checkpoints, optional
        Where the state is kept, by the first process of a group.

    Attributes
    ----------
    history : list of dict
        For each epoch ``loss``, ``wall_s``, ``examples_per_s``, ``learning_rate`` and, with
        validation rows, ``validation_loss`` and ``validation_error``.
    """

    def __init__(
        self,
        training: Training,
        *,
        validation: Problem | None = None,
        patience: int = 2,
        checkpoints: Checkpoints | None = None,
    ) -> None:
        self.training, self.validation = training, validation
        self.stopping = EarlyStopping(patience)
        self.checkpoints = checkpoints
        self.history: list[dict[str, float]] = []
        self.kept: dict[str, Any] = {}
        self.stopped = False
        training.settles = self._keeps

    def run(
        self,
        *,
        n_jobs: int | None = None,
        tell: Callable[[int], None] = lambda done: None,
    ) -> None:
        """Learn; the training then has the weights to be used. ``tell`` is told of the steps done."""
        self._tell = tell
        try:
            # Not again after a checkpoint from within the first epoch.
            if self.validation is not None and not self.kept:
                self._judge(n_jobs)
            self._epochs(n_jobs)
        except LossOverflowError:
            self._recover()
        if self.validation is not None and self.kept:
            self._use_kept()
        self._save(always=True)

    def _epochs(self, n_jobs: int | None) -> None:
        start, n = time.perf_counter(), self.training.rows.n_rows
        if self.stopped:
            return
        for loss in self.training.run(n_jobs=n_jobs):
            if loss is not None:
                now = time.perf_counter()
                wall = max(now - start, 1e-9)
                rate = float(self.training.rates[self.training.done - 1])
                record = {"loss": loss, "wall_s": wall, "examples_per_s": n / wall}
                self.history.append({**record, "learning_rate": rate})
                self.history[-1] |= self._judge(n_jobs)
                start = time.perf_counter()
            self._save()
            self._tell(self.training.done)
            if self.stopped:
                return

    def _judge(self, n_jobs: int | None) -> dict[str, float]:
        """Keep the weights if they are the best so far, and stop if they have long not been."""
        if self.validation is None:
            if self._keeps:
                self._keep(0.0, 0.0)
            return {}
        error, loss = self.training.judge(self.validation, n_jobs=n_jobs)
        if self.stopping.improves(error, loss) or not self.kept:
            self._keep(error, loss)
        self.stopped = self.stopping.is_over
        return {"validation_loss": loss, "validation_error": error}

    @property
    def _keeps(self) -> bool:
        """Whether weights are kept after each epoch."""
        shape, item = self.training.shape, self.training.layer.W.itemsize
        first = shape.n_features * shape.width * item
        size = first + sum(array.nbytes for array in self.training.arrays.values())
        return self.validation is not None or size <= _SPARE_BYTES

    def _keep(self, error: float, loss: float) -> None:
        if not self.kept:
            arrays = {name: array.copy() for name, array in self.training.arrays.items()}
            self.kept = {"first": self.training.layer.W.copy(), "arrays": arrays}
        else:
            self.kept["first"][:] = self.training.layer.W
            for name, array in self.training.arrays.items():
                self.kept["arrays"][name][:] = array
        self.kept |= {"error": error, "loss": loss, "epoch": len(self.history)}

    def _use_kept(self) -> None:
        self.training.layer.W[:] = self.kept["first"]
        for name, array in self.training.arrays.items():
            array[:] = self.kept["arrays"][name]

    def _recover(self) -> None:
        """Go back to weights that were good, and say so."""
        epoch = len(self.history) + 1
        if not self.history:
            raise LocoleError(
                "the loss overflows in the first epoch: take a smaller learning_rate, or scale the "
                "rows of X to unit length."
            ) from None
        if self.kept:
            self._use_kept()
        self.stopped = True
        kept = f"the end of epoch {self.kept['epoch']}" if self.kept else "just before"
        warnings.warn(
            f"the loss overflows in epoch {epoch}: learning has stopped, and the weights are those of "
            f"{kept}. Take a smaller learning_rate.",
            LocoleWarning,
            stacklevel=6,
        )

    # State --------------------------------------------------------------------------------------

    def _save(self, *, always: bool = False) -> None:
        if self.checkpoints is None:
            return
        group = self.training.group
        if group.agree(always or self.checkpoints.is_due):
            state = self.state()
            if group.rank == 0:
                self.checkpoints.write(state)

    def state(self) -> dict[str, Any]:
        """All that the rest of the fit depends on; arrays are not copied.

        In a group all must ask for it, and the first gets it. It does not say how many they are.
        """
        training = self.training
        training.network.pull()
        kept = self.kept
        if kept:
            kept = {**kept, "first": training.group.whole(kept["first"])}
        return {
            "layer": _with_columns(training.layer.state(), training.group.whole),
            "arrays": training.arrays,
            "moments": training.network.moments,
            "loss": training.loss,
            "history": self.history,
            "kept": kept,
            "stopped": self.stopped,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a state, whose arrays are copied; it is trusted no more than any other file."""
        try:
            self._restore(state)
        except (ModelFileError, LookupError, TypeError, ValueError, AttributeError) as error:
            reason = str(error).rstrip(".")[:200]
            raise ModelFileError(
                f"the checkpoint cannot be resumed: {reason}. Take another folder, or remove it."
            ) from error

    def _restore(self, state: dict[str, Any]) -> None:
        training, part = self.training, self.training.group.part
        layer, kept = _with_columns(state["layer"], part), state["kept"]
        own: dict[str, Any] = {"arrays": training.arrays, "loss": 0.0}
        if kept:
            kept = {**_copied(kept), "first": np.array(part(kept["first"]))}
            like = {**own, "first": training.layer.W, "error": 0.0, "epoch": 0}
            check_like(kept, like, "kept weights")
        own |= {"moments": training.network.moments, "history": [], "stopped": False}
        check_like({**state, "layer": 0, "kept": 0}, {**own, "layer": 0, "kept": 0}, "state")
        training.layer.restore(layer)
        for name, array in training.arrays.items():
            array[:] = state["arrays"][name]
        for name, moments in training.network.moments.items():
            moments[:] = state["moments"][name]
        training.network.push()
        training.loss, self.history = state["loss"], list(state["history"])
        self.kept, self.stopped = kept, state["stopped"]
        if self.validation is not None and kept:
            best, in_vain = (kept["error"], kept["loss"]), len(self.history) - kept["epoch"]
            self.stopping = EarlyStopping(self.stopping.patience, best, in_vain)


def _with_columns(layer: dict[str, Any], change: Callable[[NDArray], NDArray]) -> dict[str, Any]:
    """State of a first layer with what has its columns changed."""
    wide = {"W", "M", "U"} if layer["U"].ndim > 1 else {"W", "M"}
    return {name: change(array) if name in wide else array for name, array in layer.items()}


def _copied(kept: dict[str, Any]) -> dict[str, Any]:
    def copy(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: copy(item) for name, item in value.items()}
        return np.array(value) if isinstance(value, np.ndarray) else value

    result: dict[str, NDArray | Any] = copy(kept)
    return result
