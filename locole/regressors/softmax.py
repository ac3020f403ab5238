"""Linear regression by cross-entropy over all labels: the points are logits in disguise."""

from __future__ import annotations

import time
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from locole.atomic import all_or_nothing
from locole.exceptions import LocoleError, ModelFileError
from locole.io import saved_as
from locole.kernels.simd import WIDTH, padded_width
from locole.label_past import Relabelling
from locole.parameters import (
    COUNT,
    FRACTION,
    N_JOBS,
    NOT_NEGATIVE,
    PASSES,
    SEED,
    SWITCH_OR_AUTO,
    VERBOSE,
    one_of,
)
from locole.regressors.base import LabelTargets, TargetsLike, ValidationRows, remembered
from locole.regressors.descent import Descent, label_counts, learning_unit, softmax_of
from locole.regressors.early_stopping import Watch, split
from locole.regressors.linear import LinearRegressor
from locole.regressors.problem import Problem, make_problem
from locole.regressors.settings import Settings
from locole.regressors.storage import Storage
from locole.samples import checked_rows
from locole.sparse_rows import column_squares, times_columns

__all__ = ["SoftmaxRegressor"]

# A feature learns at least a millionth as fast as one that is new.
_LEAST_SHARE = 1e-12


@saved_as("regressor.softmax")
class SoftmaxRegressor(LinearRegressor):
    r"""Cross-entropy over all labels of a linear model, by stochastic gradient descent.

    .. math:: \min_W \frac1N \sum_i \Big[\log \sum_c e^{s_{ic}} - s_{i y_i}\Big]
              + \lambda_1 \|W\|_{1,1} + \frac{\lambda_2}{2} \|W\|_F^2, \qquad
              s_{ic} = \mathrm{Re}\langle W^T x_i, g_c\rangle + \kappa \log \pi_c

    with π the frequencies of the labels, κ the ``prior``.

    Logits of all labels and the gradient back to the point are fast transforms where the embedding
    has them (``locole.cross_entropy``), so a row costs O(n_classes · log dim), and no matrix of
    n_classes × n_outputs exists.

    What is off by default did not help on all data; docs/default_model.md has the figures.

    Parameters
    ----------
    epochs : int
        Passes over the rows. The learning rate falls linearly to zero at their end.
    learning_rate : float
        How far one visit may move a row's own logits: a step is ``learning_rate / (mean ‖x‖²)``
        along the gradient, divided further where the rows of a batch overlap much.
    batch_size : int
        Rows between two updates.
    label_smoothing : float
        Part of each target that is spread over all labels.
    l1 : float
        Penalty λ1 ≥ 0, by soft thresholds after every step. Weights are then sparse (CSR).
    l2 : float
        Penalty λ2 ≥ 0. It is exact: a decay of all weights is one number.
    prior : float
        This multiple of the logarithm of a label's frequency is added to its logit while learning, and
        not when predicting. With 0 frequent labels are preferred, with 1 rare ones are found as often;
        half-way most rows were right.
    n_sampled : int, optional
        Learn from this many labels for each batch instead of all; inexact, see
        ``locole.cross_entropy.Softmax``.
    validation_fraction : float
        Part of the rows that is not learnt from but watched after each epoch: the weights with the
        fewest of them wrong are kept.
    patience : int
        With rows to watch, learning ends after so many epochs that were no better.
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
    coef_ : array of shape (n_outputs, n_features), or a CSR array if l1 > 0
        Weights of each output.
    intercept_ : array of shape (n_outputs,)
        Intercept of each output.
    history_ : list of dict
        For each epoch the mean ``loss`` of the rows as they were met, ``wall_s``,
        ``examples_per_s``; if rows are watched, their ``validation_loss`` and ``validation_error``,
        the part of them whose label does not come first.
    rows_seen_ : int
        Rows learnt from so far.
    label_counts_ : array of shape (n_classes,)
        Weighted count of each label.
    feature_squares_ : array of shape (n_features,), one more with an intercept
        Σ x² of each feature over the rows learnt from: what `partial_fit` goes by.

    Examples
    --------
    >>> import numpy as np
    >>> from locole import LocoleClassifier
    >>> X, y = np.eye(6), np.arange(6)
    >>> classifier = LocoleClassifier(regressor=SoftmaxRegressor(epochs=20, batch_size=2))
    >>> classifier.fit(X, y).predict(X)
    array([0, 1, 2, 3, 4, 5])
    """

    _parameter_constraints: ClassVar = {
        "epochs": PASSES,
        "learning_rate": NOT_NEGATIVE,
        "batch_size": COUNT,
        "label_smoothing": FRACTION,
        "l1": NOT_NEGATIVE,
        "l2": NOT_NEGATIVE,
        "prior": NOT_NEGATIVE,
        "n_sampled": [None, *COUNT],
        "validation_fraction": FRACTION,
        "patience": COUNT,
        "fit_intercept": SWITCH_OR_AUTO,
        "storage": one_of("float32", "float16", "int8"),
        "random_state": SEED,
        "n_jobs": N_JOBS,
        "verbose": VERBOSE,
    }
    stops_early = True
    _passed_over: ClassVar = ("averaging", "learn_tau", "start")
    _learnt: ClassVar = {
        **LinearRegressor._learnt,
        "history_": list,
        "rows_seen_": int,
        "label_counts_": np.ndarray,
        "feature_squares_": (np.ndarray, type(None)),
    }

    def __init__(
        self,
        *,
        epochs: int = 3,
        learning_rate: float = 10.0,
        batch_size: int = 256,
        label_smoothing: float = 0.3,
        l1: float = 0.0,
        l2: float = 0.0,
        prior: float = 0.5,
        n_sampled: int | None = None,
        validation_fraction: float = 0.0,
        patience: int = 3,
        fit_intercept: bool | Literal["auto"] = "auto",
        storage: Storage = "float32",
        random_state: int = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.label_smoothing = label_smoothing
        self.l1 = l1
        self.l2 = l2
        self.prior = prior
        self.n_sampled = n_sampled
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.fit_intercept = fit_intercept
        self.storage = storage
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @all_or_nothing
    def fit(
        self,
        X: Any,
        targets: TargetsLike | ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        validation_rows: ValidationRows | None = None,
    ) -> Self:
        """Learn from scratch; validation rows take the place of ``validation_fraction``.

        Parameters
        ----------
        validation_rows : ValidationRows, optional
            Rows that decide which epoch's weights are kept.
        """
        settings = self._settings()
        X = checked_rows(self, X, dtype=np.float32)
        constant = self._wants_constant(X)
        self.label_counts_ = np.zeros(0)
        self.feature_squares_: NDArray[np.float64] | None = None
        rows = self._rows(X, targets, sample_weight, constant)
        if validation_rows is None:
            rows, watched = split(rows, settings)
        else:
            watched = self._rows(*validation_rows.checked(self), constant)
        self.history_: list[dict[str, float]] = []
        self.rows_seen_ = 0
        W = np.zeros((rows.X.shape[1], padded_width(rows.targets.shape[1])), dtype=np.float32)
        self._learn(rows, watched, W, settings, constant)
        return self

    @all_or_nothing
    def partial_fit(
        self, X: Any, targets: TargetsLike | ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn from more rows, starting from the weights as they are.

        The learning rate of a feature is that of `fit` times the square root of the new rows' share of
        its ``feature_squares_``. So a few rows do not undo what many have taught, and what is new is
        learnt at once. If l1 > 0 it is the same for all features: that of `fit` times the part of all
        rows seen that are new.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Rows to learn from.
        targets : TargetsLike or array of shape (n_samples, n_outputs)
            Where each row should be mapped to.
        sample_weight : array of shape (n_samples,), optional
            How much each row counts; by default all alike.
        """
        if not self.__sklearn_is_fitted__():
            return self.fit(X, targets, sample_weight)
        settings = self._settings()
        X = checked_rows(self, X, dtype=np.float32, reset=False)
        constant = self._has_constant
        rows, watched = split(self._rows(X, targets, sample_weight, constant), settings)
        rows.require_outputs(self.n_outputs_)
        W = self._all_weights()
        W = W.toarray() if sp.issparse(W) else np.array(W, dtype=np.float32, order="C")
        share = rows.n_rows / (self.rows_seen_ + rows.n_rows)
        if self.l1 > 0:
            settings = settings._replace(learning_rate=share * self.learning_rate)
            self._learn(rows, watched, W, settings, constant)
        else:
            settings = settings._replace(l2=share * self.l2)
            self._learn(rows, watched, W, settings, constant, pace=self._pace(rows, share))
        return self

    def grow(self, n_features: int, n_outputs: int) -> None:
        """Add features and outputs with weights of zero."""
        if self.feature_squares_ is not None:
            self.feature_squares_ = self._grown(self.feature_squares_, n_features)
        super().grow(n_features, n_outputs)

    def relabel(self, change: Relabelling) -> None:
        """Count merged labels as one."""
        counts = np.pad(self.label_counts_, (0, change.codes.size - self.label_counts_.size))
        self.label_counts_ = change.added(counts)

    def _pace(self, rows: Problem, share: float) -> NDArray[np.float32]:
        """Square root of each feature's learning rate, as a part of that of `fit`."""
        new = column_squares(rows.X, rows.weight)
        seen = self.feature_squares_
        if seen is None:  # an old file: the earlier rows are taken to be like the new ones
            self.feature_squares_ = seen = new * (1 / share - 1)
        shares = np.divide(new, seen + new, out=np.ones_like(new), where=new > 0)
        return np.sqrt(np.sqrt(np.maximum(shares, _LEAST_SHARE))).astype(np.float32)

    def _rows(self, X: Any, targets: Any, sample_weight: Any, constant: bool) -> Problem:
        if not isinstance(targets, LabelTargets):
            raise LocoleError(
                "SoftmaxRegressor learns from labels and their vectors, not from an array of "
                "targets: use it as LocoleClassifier(regressor=...)."
            )
        return make_problem(X, targets, sample_weight, constant=constant).relative()

    def _learn(
        self,
        rows: Problem,
        watched: Problem | None,
        W: NDArray[np.float32],
        settings: Settings,
        constant: bool,
        *,
        pace: NDArray[np.float32] | None = None,
    ) -> None:
        counts = label_counts(rows, self.label_counts_)
        softmax = softmax_of(rows.targets, settings, counts)
        unit, squares = learning_unit(rows.X), column_squares(rows.X, rows.weight)
        if pace is not None:
            # Features of another scale move at another rate; their weights are of the inverse scale.
            rows, watched = _scaled(rows, pace), None if watched is None else _scaled(watched, pace)
            touched = np.flatnonzero(pace != 1)
            W[touched] /= pace[touched, None]
        descent = Descent(rows, W, settings, softmax, unit)
        watch = Watch(descent, watched, settings.patience)
        n = rows.n_rows
        start = time.perf_counter()
        for loss in descent.run():
            record = {"loss": loss, **watch.look()}
            wall = max(time.perf_counter() - start, 1e-9)
            record |= {"wall_s": wall, "examples_per_s": n / wall}
            self.history_ = remembered([*self.history_, record])
            if watch.is_over:
                break
            start = time.perf_counter()
        W = watch.best()
        if pace is not None:
            W[touched] *= pace[touched, None]
        n_outputs = rows.targets.shape[1]
        self._set_weights(sp.csr_array(W) if self.l1 > 0 else W, n_outputs, constant=constant)
        self.rows_seen_ += n
        self.label_counts_ = counts
        self.feature_squares_ = (
            squares if self.feature_squares_ is None else squares + self.feature_squares_
        )

    def _settings(self) -> Settings:
        self.check_parameters()
        return Settings(**{name: getattr(self, name) for name in Settings._fields})

    def _check_learnt(self) -> None:
        super()._check_learnt()
        if self._weights.shape[1] % WIDTH:
            raise ModelFileError("its softmax has weights of no whole number of vectors")
        counts = self.label_counts_
        if counts.dtype != np.float64 or counts.ndim != 1:
            raise ModelFileError("its softmax has invalid counts of labels")
        if not (np.isfinite(counts).all() and (counts >= 0).all()):
            raise ModelFileError("its softmax has invalid counts of labels")
        squares = self.feature_squares_
        if squares is None:
            return
        n_features = self._weights.shape[0] + self._has_constant
        if squares.dtype != np.float64 or squares.shape != (n_features,):
            raise ModelFileError("its softmax lacks the squares of its features")
        if not (np.isfinite(squares).all() and (squares >= 0).all()):
            raise ModelFileError("its softmax has invalid squares of features")

    @classmethod
    def _from_state(cls, values: dict[str, Any]) -> Self:
        learnt = values["learnt"]
        if isinstance(learnt, dict) and learnt:
            # What the first files do not have, and a scale that later ones had: weights contain it.
            kept = {name: value for name, value in learnt.items() if name != "tau_"}
            values = {**values, "learnt": {"label_counts_": np.zeros(0), **kept}}
        return super()._from_state(values)


def _scaled(rows: Problem, factors: NDArray[np.float32]) -> Problem:
    return rows._replace(X=times_columns(rows.X, factors))
