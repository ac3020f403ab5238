"""Linear regression with elastic-net penalty over all outputs at once."""

from __future__ import annotations

import numbers
import sys
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from locole.exceptions import LocoleError, ModelFileError
from locole.io import saved_as
from locole.kernels.product import add_dense_product, add_sparse_product
from locole.kernels.simd import WIDTH
from locole.regressors.base import TargetRegressor, TargetsLike, as_targets
from locole.regressors.direct import solve_directly, suits_directly
from locole.regressors.dual import DualSettings, solve_dual
from locole.regressors.penalty import choose_l2
from locole.regressors.problem import Problem, make_problem
from locole.regressors.storage import Storage, Weights, pack, unpack

__all__ = ["RECIPES", "ElasticNetRegressor"]

#: The paper's settings (n = 360 Rademacher outputs): λ1, λ2 and passes.
RECIPES: dict[str, dict[str, float]] = {
    "lshtc1": {"l1": 0.1, "l2": 1.0, "max_passes": 20},
    "dmoz": {"l1": 0.01, "l2": 0.01, "max_passes": 20},
    "odp": {"l1": 0.01, "l2": 0.1, "max_passes": 40},
}


@saved_as("regressor.elastic_net")
class ElasticNetRegressor(TargetRegressor):
    r"""Squared loss with ℓ1 and ℓ2 penalties, solved in the dual for blocks of outputs.

    .. math:: \min_W \|XW - Y\|_F^2 + \lambda_1 \|W\|_{1,1} + \lambda_2 \|W\|_F^2

    One pass over the data serves 64 outputs, each thread owns whole blocks, and no array of
    n_samples × n_outputs exists. Ridge problems with few features or samples are solved directly.

    Parameters
    ----------
    l1 : float
        Penalty λ1 ≥ 0; a positive one gives sparse weights.
    l2 : float or "auto"
        Penalty λ2 > 0; ``"auto"`` takes the one with the smallest error on some rows held out (see
        `locole.regressors.penalty`) and leaves it in ``l2_`` with the reason in ``l2_reason_``.
    max_passes : int
        Passes over the data for each block of outputs, at most.
    tol : float
        A block is done when its duality gap, as estimated on the way, is at most ``tol`` times its
        objective at zero weights.
    fit_intercept : bool or "auto"
        Whether a constant feature is added (penalised like the others). ``"auto"``: if at least a
        quarter of X is not zero, in whatever format; sparse features do better without.
    recipe : {"lshtc1", "dmoz", "odp"}, optional
        The paper's ``l1``, ``l2`` and ``max_passes`` for its three data sets, instead of the above.
    storage : {"float32", "float16", "int8"}
        How dense weights are kept after training: half or a quarter of the memory, at the cost in
        accuracy that docs/regressors.md shows.
    random_state : int
        Seed of the order in which samples are visited.
    n_jobs : int, optional
        Threads; the answer does not depend on it.
    verbose : int
        1 shows progress.

    Attributes
    ----------
    coef_ : array of shape (n_features, n_outputs), or a CSR array if l1 > 0
    intercept_ : array of shape (n_outputs,)
    l2_, l2_reason_ : float, str
        The penalty λ2 in use and where it came from.
    history_ : list of dict
        For each pass the relative duality ``gap`` and dual ``objective``, ``cpu_s`` and
        ``examples_per_s``; empty after a direct solution.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> regressor = ElasticNetRegressor(l2=1e-6, fit_intercept=False)
    >>> regressor.fit(X, X @ np.array([[2.0], [3.0]])).coef_.round(3)
    array([[2.],
           [3.]])
    """

    _learnt: ClassVar = {
        "n_outputs_": int,
        "l2_": float,
        "l2_reason_": str,
        "history_": list,
        "_weights": (np.ndarray, sp.csr_array),
        "_scales": np.ndarray,
        "_constant": np.ndarray,
        "_has_constant": bool,
    }

    def __init__(
        self,
        *,
        l1: float = 0.0,
        l2: float | Literal["auto"] = "auto",
        max_passes: int = 10,
        tol: float = 1e-3,
        fit_intercept: bool | Literal["auto"] = "auto",
        recipe: str | None = None,
        storage: Storage = "float32",
        random_state: int = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.l1 = l1
        self.l2 = l2
        self.max_passes = max_passes
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.recipe = recipe
        self.storage = storage
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(
        self, X: Any, targets: TargetsLike | ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Solve for all outputs."""
        settings = self._settings()
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32])
        constant = _is_dense(X) if self.fit_intercept == "auto" else bool(self.fit_intercept)
        problem = self._problem(X, targets, sample_weight, constant)
        settings = self._chosen(problem, settings)
        if suits_directly(problem, settings.l1):
            W: Any = solve_directly(problem, settings.l2)
            history: list[dict[str, float]] = []
        else:
            W, history = solve_dual(problem, settings)
        self._set_weights(W, problem, constant)
        self.history_ = history
        return self

    def partial_fit(
        self, X: Any, targets: TargetsLike | ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn from more rows, starting where the last call ended.

        The duals of earlier rows stay as they are and those of the new rows are optimised, so every
        call adds its rows to the problem; a row given twice counts twice.
        """
        if not self.__sklearn_is_fitted__():
            return self.fit(X, targets, sample_weight)
        settings = self._settings()._replace(l2=self.l2_)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        problem = self._problem(X, targets, sample_weight, self._has_constant)
        if problem.targets.shape[1] != self.n_outputs_:
            raise LocoleError(
                f"targets have {problem.targets.shape[1]} outputs, the model {self.n_outputs_}."
            )
        W, history = solve_dual(problem, settings, start=self._all_weights())
        self._set_weights(W, problem, self._has_constant)
        self.history_ = self.history_ + history
        return self

    def _chosen(self, problem: Problem, settings: DualSettings) -> DualSettings:
        """Settings with λ2 filled in."""
        if settings.l2 > 0:
            self.l2_, self.l2_reason_ = settings.l2, "l2 as given"
        else:
            self.l2_, self.l2_reason_ = choose_l2(problem, settings)
            if self.verbose:
                print(self.l2_reason_, file=sys.stderr)
        return settings._replace(l2=self.l2_)

    def _problem(
        self, X: Any, targets: Any, sample_weight: ArrayLike | None, constant: bool
    ) -> Problem:
        weight = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
        return make_problem(sp.csr_array(X), as_targets(targets), weight, constant=constant)

    def _set_weights(self, W: Any, problem: Problem, constant: bool) -> None:
        n = W.shape[0] - constant
        last = np.zeros(W.shape[1], dtype=W.dtype)
        if constant:
            last = W[[n]].toarray().ravel() if sp.issparse(W) else W[n].copy()
        self._constant, self._has_constant = last, constant
        self._weights, self._scales = W[:n], np.empty(0, dtype=np.float32)
        if self.storage != "float32" and not sp.issparse(W):
            self._weights, self._scales = pack(W[:n].astype(np.float32), self.storage)
            self._constant = last.astype(np.float32)
        self.n_outputs_ = problem.targets.shape[1]

    def _all_weights(self) -> Any:
        """Weights with the constant feature as the last row, as the solvers have them."""
        W = self._float_weights()
        if not self._has_constant:
            return W
        stack = sp.vstack if sp.issparse(W) else np.vstack
        W = stack([W, self._constant[None, :]])
        return sp.csr_array(W) if sp.issparse(W) else W

    @property
    def coef_(self) -> Any:
        """Weights, shape (n_features, n_outputs)."""
        return self._float_weights()[:, : self.n_outputs_]

    def _float_weights(self) -> Any:
        W = self._weights
        return W if sp.issparse(W) else unpack(Weights(W, self._scales))

    @property
    def intercept_(self) -> NDArray:
        """Constant part, shape (n_outputs,)."""
        return self._constant[: self.n_outputs_]

    def _check_learnt(self) -> None:
        W, constant, scales = self._weights, self._constant, self._scales
        stored = (
            ("float32", "float64") if sp.issparse(W) else ("float32", "float64", "uint16", "int8")
        )
        n_scales = W.shape[0] if W.dtype == np.int8 else 0
        fits = (
            W.dtype in stored
            and W.ndim == 2
            and W.shape[0] == getattr(self, "n_features_in_", None)
            and 1 <= self.n_outputs_ <= W.shape[1]
            and constant.shape == W.shape[1:]
            and constant.dtype == (np.float64 if W.dtype == np.float64 else np.float32)
            and scales.dtype == np.float32
            and scales.shape == (n_scales,)
        )
        if not fits:
            raise ModelFileError("its elastic net has arrays that do not fit together")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_weights")

    def predict(self, X: Any) -> NDArray:
        """Return ``X @ coef_ + intercept_``."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        W = self._weights
        out = np.empty((X.shape[0], W.shape[1]), dtype=self._constant.dtype)
        out[:] = self._constant
        if W.dtype == np.float64:
            out += X @ W
            return out
        if W.shape[1] % WIDTH and not sp.issparse(W):
            out += X @ self._float_weights()  # a direct solution in fewer bits
            return out
        X = sp.csr_array(X)
        data = X.data.astype(np.float32, copy=False)
        if sp.issparse(W):
            add_sparse_product(X.indptr, X.indices, data, W.indptr, W.indices, W.data, 0, out)
        else:
            width = W.shape[1]
            numbers = W.reshape(-1)
            add_dense_product(
                X.indptr, X.indices, data, numbers, self._scales, width, 0, out.ravel()
            )
        return out[:, : self.n_outputs_]

    def _settings(self) -> DualSettings:
        values: dict[str, Any] = {"l1": self.l1, "l2": self.l2, "max_passes": self.max_passes}
        if self.recipe is not None:
            if self.recipe not in RECIPES:
                names = ", ".join(RECIPES)
                raise LocoleError(f"unknown recipe {self.recipe!r}: take one of {names}.")
            values = dict(RECIPES[self.recipe])
        if self.storage not in get_args(Storage):
            names = ", ".join(get_args(Storage))
            raise LocoleError(f"unknown storage {self.storage!r}: take one of {names}.")
        auto = values["l2"] == "auto"
        if auto:
            values["l2"] = 1.0
        for name, value in (*values.items(), ("tol", self.tol)):
            if not isinstance(value, numbers.Real) or not 0 <= float(value) < np.inf:
                raise LocoleError(f"{name} must be a number of at least 0, not {value!r}.")
        if values["l2"] == 0:
            raise LocoleError("l2 must be positive: the dual needs it; take 1e-6 for nearly none.")
        if not isinstance(values["max_passes"], numbers.Integral) or values["max_passes"] < 1:
            raise LocoleError(
                f"max_passes must be a whole number of at least 1, not {values['max_passes']!r}."
            )
        return DualSettings(
            l1=float(values["l1"]),
            l2=0.0 if auto else float(values["l2"]),  # 0: still to be chosen
            max_passes=int(values["max_passes"]),
            tol=float(self.tol),
            seed=int(self.random_state),
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        )


def _is_dense(X: Any) -> bool:
    """Whether at least a quarter of the entries are not zero."""
    filled = X.count_nonzero() if sp.issparse(X) else np.count_nonzero(X)
    return bool(4 * filled >= X.shape[0] * X.shape[1])
