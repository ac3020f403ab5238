"""Linear regression with elastic-net penalty over all outputs at once."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from locole.atomic import all_or_nothing
from locole.exceptions import ModelFileError
from locole.io import saved_as
from locole.parallel import Engine, make_engine
from locole.parameters import (
    ENGINE,
    FOLDER,
    N_JOBS,
    NOT_NEGATIVE,
    PASSES,
    POSITIVE,
    SEED,
    SWITCH_OR_AUTO,
    VERBOSE,
    one_of,
)
from locole.regressors.base import TargetsLike, as_targets, remembered
from locole.regressors.checkpoint import Checkpoints, fingerprint
from locole.regressors.direct import solve_directly, suits_directly
from locole.regressors.dual import DualSettings, solve_dual
from locole.regressors.linear import LinearRegressor
from locole.regressors.penalty import choose_l2, l2_of_stream
from locole.regressors.problem import Problem, make_problem
from locole.regressors.storage import Storage
from locole.samples import checked_rows
from locole.sparse_rows import ROWS

__all__ = ["RECIPES", "ElasticNetRegressor"]

#: The paper's settings (n = 360 Rademacher outputs): λ1, λ2 and passes.
RECIPES: dict[str, dict[str, float]] = {
    "lshtc1": {"l1": 0.1, "l2": 1.0, "max_passes": 20},
    "dmoz": {"l1": 0.01, "l2": 0.01, "max_passes": 20},
    "odp": {"l1": 0.01, "l2": 0.1, "max_passes": 40},
}

# Below this tolerance enough passes are made for short ones between them to pay.
_TIGHT = 1e-3
# How much features are taken to come together, between 0 and 1; see `ElasticNetRegressor._count`.
_TOGETHER = 0.375


@saved_as("regressor.elastic_net")
class ElasticNetRegressor(LinearRegressor):
    r"""Squared loss with ℓ1 and ℓ2 penalties, solved in the dual for blocks of outputs.

    .. math:: \min_W \|XW - Y\|_F^2 + \lambda_1 \|W\|_{1,1} + \lambda_2 \|W\|_F^2

    One pass over the data serves 64 outputs, each thread owns whole blocks, and no array of
    n_samples × n_outputs exists. Ridge problems with few features or samples are solved directly.

    Parameters
    ----------
    l1 : float
        Penalty λ1 ≥ 0; a positive one gives sparse weights.
    l2 : float, "auto" or "stream"
        Penalty λ2 > 0; ``"auto"`` takes the one with the smallest error on some validation rows (see
        ``locole.regressors.penalty``) and leaves it in ``l2_`` with the reason in ``l2_reason_``.
        ``"stream"`` is 0.2 · mean ‖x‖², for the first of many batches, which cannot tell what suits the
        others; `partial_fit` as the first call takes it for ``"auto"``.
    max_passes : int
        Passes over the data for each block of outputs, at most.
    tol : float
        A block is done when its duality gap, as estimated on the way, is at most ``tol`` times its
        objective at zero weights.
    shrinking : bool or "auto"
        Whether, between passes over all samples, a short one visits only those that add more than the
        mean to the gap. The optimum is the same: only a pass over all samples ends the search, and only
        these are counted by ``max_passes``. ``"auto"``: if ``tol`` is positive and below 1e-3, where it
        pays (docs/regressors.md).
    fit_intercept : bool or "auto"
        Whether a constant feature is added (penalised like the others). ``"auto"``: if at least a
        quarter of X is not zero, in whatever format; sparse features do better without.
    recipe : {"lshtc1", "dmoz", "odp"}, optional
        The paper's ``l1``, ``l2`` and ``max_passes`` for its three data sets, instead of the above.
    storage : {"float32", "float16", "int8", "int4"}
        How dense weights are kept after training: in a half to an eighth of the memory, at the cost
        in accuracy that docs/research/elastic_net.md shows. Weights in four bits take a byte each once
        more rows are learnt.
    random_state : int
        Seed of the order in which samples are visited.
    n_jobs : int, optional
        Threads; the answer does not depend on it.
    verbose : int
        1 shows progress.
    checkpoint : path, optional
        Folder in which `fit` keeps blocks of outputs that are solved. A fit of the same data with the
        same settings does not solve them again. Files stay; they take as much room as the weights. Not
        saved with a model.
    engine : {"threads", "ray"} or Engine
        Where blocks of outputs are solved: on threads of this machine, or on a Ray cluster (see
        `locole.parallel`). The answer does not depend on it. Not saved with a model.

    Attributes
    ----------
    coef_ : array of shape (n_outputs, n_features), or a CSR array if l1 > 0
        Weights of each output.
    intercept_ : array of shape (n_outputs,)
        Intercept of each output.
    l2_, l2_reason_ : float, str
        The penalty λ2 in use and where it came from.
    history_ : list of dict
        For each pass the relative duality ``gap`` and dual ``objective``, ``cpu_s`` and
        ``examples_per_s``; empty after a direct solution.
    curvature_ : array of shape (n_features,), one more with an intercept
        How much the rows learnt from resist a move of each feature's weights: what `partial_fit`
        goes by.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> regressor = ElasticNetRegressor(l2=1e-6, fit_intercept=False)
    >>> regressor.fit(X, X @ np.array([[2.0], [3.0]])).coef_.round(3)
    array([[2., 3.]])
    """

    _parameter_constraints: ClassVar = {
        "l1": NOT_NEGATIVE,
        "l2": [*POSITIVE, *one_of("auto", "stream")],
        "max_passes": PASSES,
        "tol": NOT_NEGATIVE,
        "shrinking": SWITCH_OR_AUTO,
        "fit_intercept": SWITCH_OR_AUTO,
        "recipe": [None, *one_of(*RECIPES)],
        "storage": one_of(*get_args(Storage)),
        "random_state": SEED,
        "n_jobs": N_JOBS,
        "verbose": VERBOSE,
        "checkpoint": FOLDER,
        "engine": ENGINE,
    }
    _learnt: ClassVar = {
        **LinearRegressor._learnt,
        "l2_": float,
        "l2_reason_": str,
        "history_": list,
        "curvature_": np.ndarray,
    }
    _unsaved: ClassVar = ("engine", "checkpoint")

    def __init__(
        self,
        *,
        l1: float = 0.0,
        l2: float | Literal["auto", "stream"] = "auto",
        max_passes: int = 10,
        tol: float = 1e-3,
        shrinking: bool | Literal["auto"] = "auto",
        fit_intercept: bool | Literal["auto"] = "auto",
        recipe: str | None = None,
        storage: Storage = "float32",
        random_state: int = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
        checkpoint: Any = None,
        engine: str | Engine = "threads",
    ) -> None:
        self.l1 = l1
        self.l2 = l2
        self.max_passes = max_passes
        self.tol = tol
        self.shrinking = shrinking
        self.fit_intercept = fit_intercept
        self.recipe = recipe
        self.storage = storage
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.checkpoint = checkpoint
        self.engine = engine

    @all_or_nothing
    def fit(
        self, X: Any, targets: TargetsLike | ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Solve for all outputs."""
        return self._solve(X, targets, sample_weight, stream=self.l2 == "stream")

    def _solve(self, X: Any, targets: Any, sample_weight: Any, *, stream: bool) -> Self:
        settings, engine = self._settings(), make_engine(self.engine)
        X = checked_rows(self, X, dtype=[np.float64, np.float32])
        constant = self._wants_constant(X)
        problem = _problem(X, targets, sample_weight, constant)
        settings = self._chosen(problem, settings, stream=stream)
        if suits_directly(problem, settings.l1):
            W: Any = solve_directly(problem, settings.l2)
            history: list[dict[str, float]] = []
        else:
            W, history = solve_dual(
                problem, settings, engine=engine, checkpoints=self._checkpoints(problem, settings)
            )
        self._set_weights(W, problem.targets.shape[1], constant=constant)
        self.compact()
        self.history_ = history
        self.curvature_ = np.zeros(problem.X.shape[1])
        self._count(problem)
        return self

    @all_or_nothing
    def partial_fit(
        self, X: Any, targets: TargetsLike | ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn from more rows, starting where the last call ended.

        The duals of earlier rows stay as they are and those of the new rows are optimised, so every
        call adds its rows to the problem; a row given twice counts twice. Weights of features that
        many earlier rows have move less (not so if l1 > 0).

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
            return self._solve(X, targets, sample_weight, stream=True)
        settings = self._settings()._replace(l2=self.l2_)
        X = checked_rows(self, X, dtype=[np.float64, np.float32], reset=False)
        problem = _problem(X, targets, sample_weight, self._has_constant)
        problem.require_outputs(self.n_outputs_)
        # Weights of features that the rows lack stay where they are, unless some are sparse.
        is_sparse = sp.issparse(self._weights) or settings.l1 > 0
        touched = np.arange(problem.X.shape[1]) if is_sparse else np.unique(problem.X.indices)
        ease = self._ease(settings.l1)[touched]
        packed = self._is_packed and not is_sparse
        W = None if packed else self._all_weights()
        start = self._some_weights(touched) if W is None else W[touched]
        moved, history = solve_dual(
            problem._replace(X=_columns(problem.X, touched, ease)),
            settings,
            start=_scaled(start, 1 / ease),
            engine=make_engine(self.engine),
        )
        moved = _scaled(moved, ease)
        if packed and moved.shape[1] == start.shape[1]:
            # Other numbers for each call, and the same if a call is repeated.
            seed = [self.random_state, problem.n_rows, len(self.history_)]
            self._replace_some(touched, moved, np.random.default_rng(seed))
        else:
            W = _replaced(self._all_weights() if W is None else W, touched, moved)
            self._set_weights(W, self.n_outputs_, constant=self._has_constant)
        self._count(problem)
        self.history_ = remembered([*self.history_, *history])
        return self

    def grow(self, n_features: int, n_outputs: int) -> None:
        """Add features and outputs with weights of zero: the solution for the rows that were learnt."""
        self.curvature_ = self._grown(self.curvature_, n_features)
        super().grow(n_features, n_outputs)

    def forget(
        self, X: Any, targets: TargetsLike, sample_weight: NDArray | None
    ) -> Literal["nearly", "not"]:
        r"""Take rows out: the inverse of their `partial_fit`, where they were learnt in one call.

        With D = λ2 + ``curvature_`` without the rows, that call ends where D (W − W₀) is XᵀR, with R the
        residuals of the rows, so W₀ = W − D⁻¹ Xᵀ R. Of rows that were fitted together with others this
        is the first order: what the others have learnt in their place is not known.
        """
        if self.l1 > 0 or sp.issparse(self._weights) or self.recipe is not None:
            return "not"
        problem = _problem(sp.csr_array(X), targets, sample_weight, self._has_constant)
        residuals = targets.rows(slice(None)) - self._points(X)
        self._count(problem, sign=-1)
        touched = np.unique(problem.X.indices)
        ease = 1 / (self.l2_ + self.curvature_[touched])
        some = _columns(problem.X, touched, np.ones(touched.size))
        step = ease[:, None] * (some.T @ (problem.weight[:, None] * residuals))
        if self._is_packed:
            W = self._some_weights(touched)
            W[:, : self.n_outputs_] -= step
            seed = [self.random_state, problem.n_rows, len(self.history_), 1]
            self._replace_some(touched, W, np.random.default_rng(seed))
        else:
            W = np.array(self._all_weights())
            W[touched, : self.n_outputs_] -= step
            self._set_weights(W, self.n_outputs_, constant=self._has_constant)
        return "nearly"

    def _ease(self, l1: float) -> NDArray:
        """How freely each feature's weights may move: ``sqrt(λ2 / (λ2 + curvature_))``.

        The loss of the earlier rows is no longer at hand; a penalty on the move stands in for its
        curvature XᵀX, which in the dual is a scale of the features.
        """
        if l1 > 0:
            return np.ones_like(self.curvature_)
        return np.sqrt(self.l2_ / (self.l2_ + self.curvature_))

    def _count(self, problem: Problem, sign: int = 1) -> None:
        """Add, or take away, ``Σ_i |x_if|^(2−q) · ‖x_i‖₁^q`` for each feature f, with q = 3/8.

        The diagonal of XᵀX (q = 0) is too little where features come together: new rows then undo
        what old ones taught. What bounds XᵀX from above (q = 1) is too much where they do not: new
        rows then teach little.
        """
        total = self.curvature_.copy()
        # A piece after the other, since all at once would be two more copies of X.
        for start in range(0, problem.n_rows, ROWS):
            rows = slice(start, start + ROWS)
            sizes = abs(problem.X[rows])
            lengths = np.asarray(sizes.sum(axis=1), dtype=np.float64).ravel()
            share = problem.weight[rows] * lengths**_TOGETHER
            total += sign * (sizes.power(2 - _TOGETHER).T @ share)
        self.curvature_ = np.maximum(total, 0)

    def _check_learnt(self) -> None:
        super()._check_learnt()
        curvature = self.curvature_
        n_features = self._weights.shape[0] + self._has_constant
        if curvature.dtype != np.float64 or curvature.shape != (n_features,):
            raise ModelFileError("its elastic net lacks the curvature of its features")
        if not (np.isfinite(curvature).all() and (curvature >= 0).all()):
            raise ModelFileError("its elastic net has an invalid curvature")
        if not 0 < self.l2_ < np.inf:
            raise ModelFileError("its elastic net has a penalty that is not positive")

    def _chosen(self, problem: Problem, settings: DualSettings, *, stream: bool) -> DualSettings:
        """Settings with λ2 filled in."""
        if settings.l2 > 0:
            self.l2_, self.l2_reason_ = settings.l2, "as given"
        else:
            choose = l2_of_stream if stream else choose_l2
            self.l2_, self.l2_reason_ = choose(problem, settings)
        return settings._replace(l2=self.l2_)

    def _checkpoints(self, problem: Problem, settings: DualSettings) -> Checkpoints | None:
        if self.checkpoint is None:
            return None
        # What is learnt depends neither on threads nor on what is shown.
        settings = settings._replace(n_jobs=None, verbose=0)
        return Checkpoints(self.checkpoint, owner=fingerprint(problem, settings))

    def _settings(self) -> DualSettings:
        self.check_parameters()
        values: dict[str, Any] = {"l1": self.l1, "l2": self.l2, "max_passes": self.max_passes}
        if self.recipe is not None:
            values = dict(RECIPES[self.recipe])
        return DualSettings(
            l1=float(values["l1"]),
            l2=0.0
            if values["l2"] in ("auto", "stream")
            else float(values["l2"]),  # 0: still to be chosen
            max_passes=int(values["max_passes"]),
            tol=float(self.tol),
            seed=int(self.random_state),
            n_jobs=self.n_jobs,
            verbose=self.verbose,
            shrinking=self._wants_shrinking(),
        )

    def _wants_shrinking(self) -> bool:
        return 0 < self.tol < _TIGHT if self.shrinking == "auto" else bool(self.shrinking)


def _problem(X: Any, targets: Any, sample_weight: ArrayLike | None, constant: bool) -> Problem:
    return make_problem(X, as_targets(targets), sample_weight, constant=constant).weighted()


def _scaled(W: Any, factors: NDArray) -> Any:
    """Weights with each feature's multiplied by its factor."""
    factors = factors.astype(W.dtype)
    return sp.csr_array(W.multiply(factors[:, None])) if sp.issparse(W) else W * factors[:, None]


def _columns(X: sp.csr_array, columns: NDArray, factors: NDArray) -> sp.csr_array:
    """Return some columns, all that X has entries in, each multiplied by its factor."""
    place = np.zeros(X.shape[1], dtype=X.indices.dtype)
    place[columns] = np.arange(columns.size)
    indices = place[X.indices]
    shape = (X.shape[0], columns.size)
    return sp.csr_array((X.data * factors[indices], indices, X.indptr), shape=shape)


def _replaced(W: Any, rows: NDArray, moved: Any) -> Any:
    """Return weights with these rows moved, in the shape and type that the solver has."""
    if rows.size == W.shape[0]:
        return moved
    out = np.zeros((W.shape[0], moved.shape[1]), dtype=moved.dtype)
    out[:, : W.shape[1]] = W
    out[rows] = moved
    return out
