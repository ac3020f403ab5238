"""Linear regression by cross-entropy over all labels: the points are logits in disguise."""

from __future__ import annotations

import numbers
import time
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import _check_sample_weight, validate_data

from locole.exceptions import LocoleError
from locole.io import saved_as
from locole.kernels.simd import WIDTH
from locole.regressors.base import LabelTargets, TargetsLike, all_or_nothing
from locole.regressors.descent import Descent, Rows
from locole.regressors.linear import LinearRegressor
from locole.regressors.storage import Storage

__all__ = ["SoftmaxRegressor"]


@saved_as("regressor.softmax")
class SoftmaxRegressor(LinearRegressor):
    r"""Cross-entropy over all labels of a linear model, by stochastic gradient descent.

    .. math:: \min_W \frac1N \sum_i \Big[\log \sum_c e^{s_{ic}} - s_{i y_i}\Big]
              + \frac{\lambda}{2} \|W\|_F^2, \qquad s_{ic} = \mathrm{Re}\langle W^T x_i, g_c\rangle

    Logits of all labels and the gradient back to the point are fast transforms where the embedding
    has them (`locole.softmax`), so a row costs O(n_classes · log dim), and no matrix of
    n_classes × n_outputs exists.

    Parameters
    ----------
    epochs : int
        Passes over the rows. The learning rate falls linearly to zero at their end.
    learning_rate : float
        How far one visit may move a row's own logits: a step is ``learning_rate / (mean ‖x‖²)``
        along the gradient, divided further where the rows of a batch overlap much.
    batch_size : int
        Rows between two updates.
    l2 : float
        Penalty λ ≥ 0. It is exact: a decay of all weights is one number.
    label_smoothing : float
        Part of each target that is spread over all labels.
    fit_intercept : bool or "auto"
        Whether a constant feature is added. ``"auto"``: if at least a quarter of X is not zero.
    storage : {"float32", "float16", "int8"}
        How weights are kept after training.
    random_state : int
        Seed of the order of rows.
    n_jobs : int, optional
        Threads; the answer does not depend on it.
    verbose : int
        1 shows progress.

    Attributes
    ----------
    coef_ : array of shape (n_features, n_outputs)
    intercept_ : array of shape (n_outputs,)
    history_ : list of dict
        For each epoch the mean ``loss`` of the rows as they were met, ``wall_s`` and
        ``examples_per_s``.
    rows_seen_ : int
        Rows learnt from so far.

    Examples
    --------
    >>> import numpy as np
    >>> from locole import LocoleClassifier
    >>> X, y = np.eye(6), np.arange(6)
    >>> classifier = LocoleClassifier(regressor=SoftmaxRegressor(epochs=20, batch_size=2))
    >>> classifier.fit(X, y).predict(X)
    array([0, 1, 2, 3, 4, 5])
    """

    _learnt: ClassVar = {**LinearRegressor._learnt, "history_": list, "rows_seen_": int}

    def __init__(
        self,
        *,
        epochs: int = 3,
        learning_rate: float = 10.0,
        batch_size: int = 256,
        l2: float = 0.0,
        label_smoothing: float = 0.3,
        fit_intercept: bool | Literal["auto"] = "auto",
        storage: Storage = "float32",
        random_state: int = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.l2 = l2
        self.label_smoothing = label_smoothing
        self.fit_intercept = fit_intercept
        self.storage = storage
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @all_or_nothing
    def fit(
        self, X: Any, targets: TargetsLike | ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn from scratch."""
        self._check_settings()
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float32)
        constant = self._wants_constant(X)
        rows = self._rows(X, targets, sample_weight, constant)
        width = -(-rows.targets.shape[1] // WIDTH) * WIDTH
        self.history_: list[dict[str, float]] = []
        self.rows_seen_ = 0
        W = np.zeros((rows.X.shape[1], width), dtype=np.float32)
        self._learn(rows, W, constant, rate=self.learning_rate)
        return self

    @all_or_nothing
    def partial_fit(
        self, X: Any, targets: TargetsLike | ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn from more rows, starting from the weights as they are.

        The learning rate is that of `fit` times the part of all rows seen that are new, so that a few
        rows do not undo what many have taught.
        """
        if not self.__sklearn_is_fitted__():
            return self.fit(X, targets, sample_weight)
        self._check_settings()
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float32, reset=False)
        rows = self._rows(X, targets, sample_weight, self._has_constant)
        if rows.targets.shape[1] != self.n_outputs_:
            raise LocoleError(
                f"targets have {rows.targets.shape[1]} outputs, the model {self.n_outputs_}."
            )
        W = np.array(self._all_weights(), dtype=np.float32, order="C")
        share = rows.X.shape[0] / (self.rows_seen_ + rows.X.shape[0])
        self._learn(rows, W, self._has_constant, rate=share * self.learning_rate)
        return self

    def _rows(self, X: Any, targets: Any, sample_weight: Any, constant: bool) -> Rows:
        if not isinstance(targets, LabelTargets):
            raise LocoleError(
                "SoftmaxRegressor learns from labels and their vectors, not from an array of "
                "targets: use it as LocoleClassifier(regressor=...)."
            )
        X = sp.csr_array(X)
        if X.shape[0] != targets.shape[0]:
            raise LocoleError(f"X has {X.shape[0]} rows but there are {targets.shape[0]} targets.")
        codes, weight = targets.codes, None
        if sample_weight is not None:
            weight = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
            kept = np.flatnonzero(weight > 0)
            if kept.size == 0:
                raise LocoleError("all sample weights are zero: give some a positive weight.")
            X, codes, weight = X[kept], codes[kept], weight[kept]
            weight = (weight / weight.mean()).astype(np.float32)
        if constant:
            ones = sp.csr_array(np.ones((X.shape[0], 1), dtype=np.float32))
            X = sp.csr_array(sp.hstack([X, ones], format="csr"))
        return Rows(X, codes, weight, targets)

    def _learn(self, rows: Rows, W: NDArray[np.float32], constant: bool, *, rate: float) -> None:
        descent = Descent(
            rows,
            W,
            epochs=self.epochs,
            learning_rate=rate,
            batch_size=self.batch_size,
            l2=self.l2,
            label_smoothing=self.label_smoothing,
            seed=self.random_state,
            n_jobs=self.n_jobs,
            description="learning" if self.verbose else None,
        )
        n = rows.X.shape[0]
        start = time.perf_counter()
        for loss in descent.run():
            now = time.perf_counter()
            wall = max(now - start, 1e-9)
            self.history_ = [
                *self.history_,
                {"loss": loss, "wall_s": wall, "examples_per_s": n / wall},
            ]
            start = now
        self._set_weights(W, rows.targets.shape[1], constant=constant)
        self.rows_seen_ += n

    def _check_settings(self) -> None:
        self._check_storage()
        for name in ("epochs", "batch_size"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
                raise LocoleError(f"{name} must be a whole number of at least 1, not {value!r}.")
        for name in ("learning_rate", "l2", "label_smoothing"):
            value = getattr(self, name)
            if not isinstance(value, numbers.Real) or not 0 <= float(value) < np.inf:
                raise LocoleError(f"{name} must be a number of at least 0, not {value!r}.")
        if self.label_smoothing >= 1:
            raise LocoleError("label_smoothing must be below 1: it is the part spread over labels.")
