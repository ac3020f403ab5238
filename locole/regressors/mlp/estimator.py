"""A neural network with sparse input, as a regressor."""

from __future__ import annotations

import dataclasses
import importlib.util
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from locole.atomic import all_or_nothing, of_one_moment
from locole.exceptions import LocoleError, ModelFileError
from locole.io import saved_as
from locole.parallel import Engine, make_engine
from locole.parameters import (
    COUNT,
    ENGINE,
    FOLDER,
    FRACTION,
    N_JOBS,
    NOT_NEGATIVE,
    SEED,
    VERBOSE,
    one_of,
)
from locole.regressors.base import (
    LabelTargets,
    TargetRegressor,
    TargetsLike,
    ValidationRows,
    as_targets,
    remembered,
)
from locole.regressors.checkpoint import Checkpoints, fingerprint
from locole.regressors.elastic_net import ElasticNetRegressor
from locole.regressors.mlp.memory_needed import momenta, require_room, training_bytes
from locole.regressors.mlp.recipes import CONSTRAINTS, RECIPES, Settings, resolve
from locole.regressors.mlp.schedule import Schedule
from locole.regressors.mlp.shape import Shape, first_weights, forward, initial, product
from locole.regressors.problem import Problem, make_problem
from locole.samples import checked_rows

__all__ = ["MLPRegressor"]

# Which form the state of a fit has; states of other forms belong to other fits.
_STATE = 3
# Logits of points of unit length begin with this factor.
_FIRST_SCALE = 16.0


@saved_as("regressor.mlp")
class MLPRegressor(TargetRegressor):
    """Neural network from sparse rows to points; needs torch: ``pip install 'locole[mlp]'``.

    Rows of X go into the first layer as they are, non-zero by non-zero, and only weights of features
    that a batch has are touched; what ``torch.optim.Adamax`` would have done to the others is made up
    for when they are next needed. The result is that of dense Adamax, see ``docs/mlp.md``.

    Parameters
    ----------
    recipe : {"default", "labels", "lshtc1", "dmoz", "odp", "odp_code"}
        Settings by name: ours by squared loss, for any targets, and by softmax, which
        ``LocoleClassifier(regressor="mlp")`` takes; or those of the paper for its three data sets
        (``"odp_code"``: the sizes in its authors' code). All parameters below that are None are the
        recipe's.
    hidden : int or sequence of int
        Units of each hidden layer.
    batch_size : int
        Rows of a step.
    epochs : int
        Passes over the rows. Ours are four, or as many as 500 steps take.
    learning_rate : float
        Of Adamax: how far a weight may move in a step, at most.
    schedule : {"constant", "step", "cosine", "linear"}
        How the rate falls; see ``locole.regressors.mlp.schedule.rates``.
    steps_at : sequence of int
        Epochs after which a step schedule divides the rate by ten.
    warm_up : float
        Epochs in which the rate rises from zero.
    loss : {"squared", "softmax"}
        Half the squared distance to the label's vector, or cross-entropy over all labels.
    normalise : bool
        Whether points have unit length.
    learn_scale : bool
        Whether points of unit length are multiplied by a factor that is learnt, with the softmax.
    batch_norm : bool
        Whether each hidden layer normalises its inputs over the batch.
    dropout, feature_dropout : float
        Part of the hidden units, and of the entries of X, that are left out at random.
    label_smoothing : float
        For the softmax: part of each target that is spread over all labels.
    skip : bool
        Whether a linear model from X to the points is added, and learnt together with the network.
    start : {"random", "linear"}
        What the linear part begins with: nothing, or the solution of an `ElasticNetRegressor`. Then
        the network begins as that linear model.
    embedding_rate : float
        Learn the label vectors as well, with this part of the learning rate, starting from those of
        the embedding; 0 leaves them alone. `LocoleClassifier` then decodes by the vectors learnt.
    coherence_penalty : float
        Weight of what keeps learnt vectors apart: by default 1 with the squared loss, without which
        those of labels that the rows do not tell apart become one, and 0 with the softmax.
    validation : float
        Part of the rows that is not learnt from. Learning stops when it has put no more of them right
        for ``patience`` epochs, and the best weights are kept, be it those that it starts from; the
        loss decides between equals. It takes the memory of another copy of the weights.
    patience : int
        See ``validation``.
    first_layer : {"float32", "float16"}
        How the weights of the first layer are kept, during and after training.
    second_moment : {"weight", "row"}
        Whether Adamax keeps a second moment for each weight of the first layer or for each feature.
    checkpoint : path, optional
        Folder in which the state of the fit is kept. A fit of the same data with the same settings
        resumes there, and ends with the same weights as one that was never interrupted.
        `partial_fit` keeps nothing there. Not saved with a model.
    checkpoint_every_s : float
        Seconds between two checkpoints.
    device : {"auto", "cpu", "cuda"}
        ``"auto"`` is cuda where there is one.
    random_state : int
        Seed of the first weights, of the order of rows and of what is left out.
    n_jobs : int, optional
        Threads; the answer does not depend on it.
    engine : {"threads", "ray"} or Engine
        Where to learn: on this machine, or on the nodes of a Ray cluster (see `locole.parallel` and
        ``docs/scaling.md``). The answer does not depend on it. Not saved with a model.
    verbose : int
        1 shows progress.

    Attributes
    ----------
    first_ : array of shape (n_features, width)
        Weights of the first layer and, behind them, of the linear part.
    layers_ : dict of arrays
        Everything else, by name, also label vectors if they were learnt.
    vectors_ : array of shape (n_classes, n_outputs) or None
        Label vectors, if they were learnt. `partial_fit` starts from those of its targets.
    settings_ : dict
        What the recipe and the parameters came to.
    history_ : list of dict
        For each epoch ``loss``, ``wall_s``, ``examples_per_s``, ``learning_rate``, and
        ``validation_loss`` and ``validation_error`` if there are validation rows; the error, the part
        of them whose label does not come first, is 0 where there are no labels to compare.
    rows_seen_ : int
        Rows learnt from so far.

    Examples
    --------
    >>> import numpy as np
    >>> from locole import LocoleClassifier
    >>> X, y = np.eye(6), np.arange(6)
    >>> network = MLPRegressor(hidden=32, epochs=100, batch_size=2, learning_rate=0.01)
    >>> LocoleClassifier(regressor=network).fit(X, y).predict(X)
    array([0, 1, 2, 3, 4, 5])
    """

    _parameter_constraints: ClassVar = {
        "recipe": one_of(*RECIPES),
        **CONSTRAINTS,
        "validation": FRACTION,
        "patience": COUNT,
        "first_layer": one_of("float32", "float16"),
        "second_moment": one_of("weight", "row"),
        "checkpoint": FOLDER,
        "checkpoint_every_s": NOT_NEGATIVE,
        "device": one_of("auto", "cpu", "cuda"),
        "random_state": SEED,
        "n_jobs": N_JOBS,
        "engine": ENGINE,
        "verbose": VERBOSE,
    }
    stops_early = True
    _unsaved: ClassVar = ("engine", "checkpoint")
    _passed_over: ClassVar = ("checkpoint",)
    _learnt: ClassVar = {
        "n_outputs_": int,
        "settings_": dict,
        "first_": np.ndarray,
        "layers_": dict,
        "history_": list,
        "rows_seen_": int,
    }

    def __init__(
        self,
        recipe: str = "default",
        *,
        hidden: Any = None,
        batch_size: int | None = None,
        epochs: int | None = None,
        learning_rate: float | None = None,
        schedule: Schedule | None = None,
        steps_at: Any = None,
        warm_up: float | None = None,
        loss: Literal["squared", "softmax"] | None = None,
        normalise: bool | None = None,
        learn_scale: bool | None = None,
        batch_norm: bool | None = None,
        dropout: float | None = None,
        feature_dropout: float | None = None,
        label_smoothing: float | None = None,
        skip: bool | None = None,
        start: Literal["random", "linear"] | None = None,
        embedding_rate: float | None = None,
        coherence_penalty: float | None = None,
        validation: float = 0.0,
        patience: int = 2,
        first_layer: Literal["float32", "float16"] = "float32",
        second_moment: Literal["weight", "row"] = "weight",
        checkpoint: Any = None,
        checkpoint_every_s: float = 600.0,
        device: Literal["auto", "cpu", "cuda"] = "auto",
        random_state: int = 0,
        n_jobs: int | None = None,
        engine: str | Engine = "threads",
        verbose: int = 0,
    ) -> None:
        self.recipe = recipe
        self.hidden = hidden
        self.batch_size = batch_size
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.steps_at = steps_at
        self.warm_up = warm_up
        self.loss = loss
        self.normalise = normalise
        self.learn_scale = learn_scale
        self.batch_norm = batch_norm
        self.dropout = dropout
        self.feature_dropout = feature_dropout
        self.label_smoothing = label_smoothing
        self.skip = skip
        self.start = start
        self.embedding_rate = embedding_rate
        self.coherence_penalty = coherence_penalty
        self.validation = validation
        self.patience = patience
        self.first_layer = first_layer
        self.second_moment = second_moment
        self.checkpoint = checkpoint
        self.checkpoint_every_s = checkpoint_every_s
        self.device = device
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.engine = engine
        self.verbose = verbose

    # Fit ----------------------------------------------------------------------------------------

    @all_or_nothing
    def fit(
        self,
        X: Any,
        targets: TargetsLike | ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        validation_rows: ValidationRows | None = None,
    ) -> Self:
        """Learn from scratch; validation rows that are given take the place of ``validation``.

        Parameters
        ----------
        validation_rows : ValidationRows, optional
            Rows that decide which epoch's weights are kept.
        """
        settings = self._settings()
        X = checked_rows(self, X, dtype=np.float32)
        rows = self._rows(X, targets, sample_weight, settings)
        if validation_rows is None:
            rows, validation = self._split(rows)
        else:
            validation = self._rows(*validation_rows.checked(self), settings)
        settings = settings.for_rows(rows.n_rows)
        shape = _shape(settings, X.shape[1], rows.targets.shape[1], rows.targets)
        counts = np.bincount(rows.X.indices, minlength=X.shape[1])
        self._require_room(shape, settings, counts, rows.n_rows, copy=validation is not None)
        checkpoints = self._checkpoints(rows, settings, validation_rows)
        has_begun = checkpoints is not None and checkpoints.read() is not None
        W = first_weights(shape, self.random_state)
        arrays = initial(shape, self.random_state, scale=_FIRST_SCALE)
        if shape.n_learnt:
            arrays["vectors"][:] = rows.targets.table(0, shape.n_outputs)
        if settings.start == "linear" and not has_begun:
            self._start_linear(rows, shape, W, arrays)
        # A feature that no row has says nothing.
        W[counts == 0] = 0
        if self.first_layer == "float16":
            W = W.astype(np.float16).view(np.uint16)
        self.history_: list[dict[str, float]] = []
        self.rows_seen_ = 0
        self._learn(rows, validation, settings, shape, W, arrays, checkpoints=checkpoints)
        return self

    def _start_linear(self, rows: Problem, shape: Shape, W: NDArray, arrays: Any) -> None:
        """Fill the linear part with the elastic net's solution; the network adds nothing to it yet."""
        linear = ElasticNetRegressor(
            random_state=self.random_state,
            n_jobs=self.n_jobs,
            engine=self.engine,
            verbose=self.verbose,
        ).fit(rows.X, rows.targets, sample_weight=rows.weight)
        part = slice(shape.hidden[0], shape.first_columns)
        coef = linear.coef_.T
        W[:, part] = coef.toarray() if sp.issparse(coef) else coef
        last = len(shape.hidden)
        arrays[f"weight{last}"][:] = 0
        arrays[f"bias{last}"][:] = linear.intercept_

    @all_or_nothing
    def partial_fit(
        self, X: Any, targets: TargetsLike | ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn from more rows, starting from the weights as they are.

        The learning rate is that of `fit` times the part of all rows seen that are new, so that a few
        rows do not undo what many have taught.

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
        self._settings()
        settings = _settings_from(self.settings_)
        X = checked_rows(self, X, dtype=np.float32, reset=False)
        rows = self._rows(X, targets, sample_weight, settings)
        rows.require_outputs(self.n_outputs_)
        rows, validation = self._split(rows)
        share = rows.n_rows / (self.rows_seen_ + rows.n_rows)
        # Copies: an interrupted fit leaves the old weights.
        arrays = {name: np.array(array) for name, array in self.layers_.items()}
        W = np.array(self.first_)
        shape = _shape(settings, self.n_features_in_, self.n_outputs_, rows.targets)
        if shape.n_learnt:
            arrays["vectors"] = np.array(rows.targets.table(0, shape.n_outputs), dtype=np.float32)
        self._learn(rows, validation, settings, shape, W, arrays, rate=share)
        return self

    def _rows(self, X: Any, targets: Any, sample_weight: Any, settings: Settings) -> Problem:
        if settings.loss == "softmax" and not isinstance(targets, LabelTargets):
            raise LocoleError(
                "the softmax needs labels and their vectors, not an array of targets: take "
                'loss="squared", or use the network as LocoleClassifier(regressor=...).'
            )
        if settings.embedding_rate and not isinstance(targets, LabelTargets):
            raise LocoleError(
                "an array of targets has no label vectors to learn: take embedding_rate=0, or use the "
                "network as LocoleClassifier(regressor=...)."
            )
        return make_problem(X, as_targets(targets), sample_weight).relative()

    def _learn(
        self, rows: Problem, validation: Problem | None, settings: Settings, shape: Shape,
        W: NDArray, arrays: Any, *, rate: float = 1.0, checkpoints: Checkpoints | None = None,
    ) -> None:  # fmt: skip
        from locole.regressors.mlp.job import Job, learn

        job = Job(
            rows, validation, settings, shape, W, arrays,
            seed=self.random_state, rate=rate, patience=self.patience,
            row_moment=self.second_moment == "row", device=self.device,
        )  # fmt: skip
        learnt = learn(
            job, make_engine(self.engine), checkpoints,
            n_jobs=self.n_jobs, description="learning" if self.verbose else None,
        )  # fmt: skip
        self.n_outputs_, self.settings_ = shape.n_outputs, dataclasses.asdict(settings)
        self.first_, self.layers_ = learnt.W, learnt.arrays
        self.history_ = remembered([*self.history_, *learnt.history])
        self.rows_seen_ += rows.n_rows

    def _require_room(
        self,
        shape: Shape,
        settings: Settings,
        counts: NDArray[np.int64],
        n_rows: int,
        *,
        copy: bool,
    ) -> None:
        """Say so before hours of learning, not after, if memory is short."""
        from locole.regressors.mlp.device import choose_device

        if choose_device(self.device) is not None or not make_engine(self.engine).shares_memory:
            return
        n_bytes = training_bytes(
            shape,
            n_met=int(np.count_nonzero(counts)),
            n_momenta=momenta(counts, -(-n_rows // settings.batch_size), settles=copy),
            n_entries=int(counts.sum()),
            batch_size=settings.batch_size,
            half=self.first_layer == "float16",
            row_moment=self.second_moment == "row",
            copy=copy,
        )
        require_room(n_bytes, shape)

    def _split(self, rows: Problem) -> tuple[Problem, Problem | None]:
        """Rows to learn from, and validation rows."""
        n = rows.n_rows
        n_held = round(self.validation * n)
        if n_held == 0:
            return rows, None
        if n_held >= n:
            raise LocoleError(f"validation leaves none of the {n} rows: take a smaller part.")
        return rows.split(n_held, seed=[self.random_state, 3])

    def _checkpoints(
        self, rows: Problem, settings: Settings, given: ValidationRows | None
    ) -> Checkpoints | None:
        if self.checkpoint is None:
            return None
        own = (self.random_state, self.validation, self.patience, self.first_layer)
        owner = fingerprint(rows, settings, *own, self.second_moment, given is None, _STATE)
        return Checkpoints(self.checkpoint, owner=owner, every_s=self.checkpoint_every_s)

    def _settings(self) -> Settings:
        """What the recipe and the parameters come to, once they are checked."""
        self.check_parameters()
        return self._resolved()

    def _resolved(self) -> Settings:
        return resolve(self.recipe, {name: getattr(self, name) for name in CONSTRAINTS})

    def _check_values(self) -> None:
        super()._check_values()
        self._resolved()

    def _check_means(self) -> None:
        if importlib.util.find_spec("torch") is None:
            raise LocoleError("networks need torch: pip install 'locole[mlp]'.")

    @property
    def learns_embedding(self) -> bool:
        """Whether `fit` learns label vectors, which are then in ``vectors_``."""
        return bool(self.embedding_rate)

    @property
    def vectors_(self) -> NDArray[np.float32] | None:
        """Label vectors, if they were learnt."""
        return self.layers_.get("vectors")

    # Predict ------------------------------------------------------------------------------------

    @property
    def _shape(self) -> Shape:
        return _shape(_settings_from(self.settings_), self.n_features_in_, self.n_outputs_)

    @of_one_moment
    def predict(self, X: Any) -> NDArray:
        """Points of shape (rows, n_outputs); torch is not needed.

        With the softmax they are logits in disguise: ``Re⟨z, g_i⟩`` is the logit of label i.
        """
        check_is_fitted(self)
        X = checked_rows(self, X, dtype=np.float32, reset=False)
        return forward(self._shape, self.layers_, product(sp.csr_array(X), self.first_))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "first_")

    def _check_learnt(self) -> None:
        vectors = self.layers_.get("vectors")
        n_learnt = len(vectors) if isinstance(vectors, np.ndarray) and vectors.ndim else 0
        shape = self._shape._replace(n_learnt=n_learnt)
        wanted = shape.arrays()
        fits = (
            bool(n_learnt) == bool(_settings_from(self.settings_).embedding_rate)
            and self.first_.dtype in ("float32", "uint16")
            and self.first_.shape == (shape.n_features, shape.width)
            and set(self.layers_) == set(wanted)
            and all(
                isinstance(array, np.ndarray)
                and array.dtype == np.float32
                and array.shape == wanted[name]
                for name, array in self.layers_.items()
            )
        )
        if not fits:
            raise ModelFileError("its network has arrays that do not fit together")


def _shape(settings: Settings, n_features: int, n_outputs: int, targets: Any = None) -> Shape:
    """Sizes and switches; with targets also those of label vectors that are learnt from them."""
    return Shape(
        n_features,
        settings.hidden,
        n_outputs,
        batch_norm=settings.batch_norm,
        skip=settings.skip,
        normalise=settings.normalise,
        scaled=settings.normalise and settings.learn_scale and settings.loss == "softmax",
        n_learnt=targets.n_classes if targets is not None and settings.embedding_rate else 0,
    )


def _settings_from(values: dict[str, Any]) -> Settings:
    """Settings that a model was made with; a file may say anything."""
    if not set(values) <= set(CONSTRAINTS):
        raise ModelFileError("its network has settings that are unknown: upgrade locole")
    return resolve("default", values)
