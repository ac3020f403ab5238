"""Linear regression with elastic-net penalty over all outputs at once."""

from __future__ import annotations

import numbers
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from locole.blocks import map_row_blocks
from locole.exceptions import LocoleError
from locole.kernels.dual import BLOCK, dual_pass
from locole.regressors.base import TargetRegressor, TargetsLike, as_targets

__all__ = ["ElasticNetRegressor"]

# Up to this many features or samples the normal equations are cheaper than any iteration.
_SMALL = 256


class _Problem(NamedTuple):
    """Samples with positive weight, as the kernels want them."""

    X: sp.csr_array
    weight: NDArray[np.float64]
    targets: TargetsLike
    codes: NDArray[np.int64]


class ElasticNetRegressor(TargetRegressor):
    r"""Squared loss with ℓ1 and ℓ2 penalties, solved in the dual for blocks of outputs.

    .. math:: \min_W \|XW - Y\|_F^2 + \lambda_1 \|W\|_{1,1} + \lambda_2 \|W\|_F^2

    One pass over the data serves 64 outputs, each thread owns whole blocks, and no array of
    n_samples × n_outputs exists. Ridge problems with few features or samples are solved directly.

    Parameters
    ----------
    l1, l2 : float
        Penalties λ1 ≥ 0 and λ2 > 0.
    passes : int
        Passes over the data for each block of outputs.
    fit_intercept : bool
        Whether a constant feature is added (penalised like the others).
    random_state : int
        Seed of the order in which samples are visited.
    n_jobs : int, optional
        Threads; the answer does not depend on it.
    verbose : int
        Not used yet.

    Attributes
    ----------
    coef_ : array of shape (n_features, n_outputs)
    intercept_ : array of shape (n_outputs,)

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> regressor = ElasticNetRegressor(l2=1e-6, fit_intercept=False)
    >>> regressor.fit(X, X @ np.array([[2.0], [3.0]])).coef_.round(3)
    array([[2.],
           [3.]])
    """

    def __init__(
        self,
        *,
        l1: float = 0.0,
        l2: float = 0.1,
        passes: int = 10,
        fit_intercept: bool = True,
        random_state: int = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.l1 = l1
        self.l2 = l2
        self.passes = passes
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(
        self, X: Any, targets: TargetsLike | ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Solve for all outputs."""
        self._check_parameters()
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32])
        problem = self._problem(X, as_targets(targets), sample_weight)
        small = min(problem.X.shape) <= _SMALL and self.l1 == 0
        W = self._solve_directly(problem) if small else self._solve_dual(problem)
        self.coef_ = W[: X.shape[1]]
        self.intercept_ = W[X.shape[1]] if self.fit_intercept else np.zeros(W.shape[1], W.dtype)
        return self

    def predict(self, X: Any) -> NDArray:
        """Return ``X @ coef_ + intercept_``."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        return np.asarray(X @ self.coef_) + self.intercept_

    def _check_parameters(self) -> None:
        for name, value in (("l1", self.l1), ("l2", self.l2)):
            if not isinstance(value, numbers.Real) or not np.isfinite(value) or value < 0:
                raise LocoleError(f"{name} must be a number of at least 0, not {value!r}.")
        if self.l2 == 0:
            raise LocoleError("l2 must be positive: the dual needs it; take 1e-6 for nearly none.")
        if not isinstance(self.passes, numbers.Integral) or self.passes < 1:
            raise LocoleError(f"passes must be a whole number of at least 1, not {self.passes!r}.")

    def _problem(self, X: Any, targets: TargetsLike, sample_weight: ArrayLike | None) -> _Problem:
        if X.shape[0] != targets.shape[0]:
            raise LocoleError(f"X has {X.shape[0]} rows but there are {targets.shape[0]} targets.")
        weight = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
        X = sp.csr_array(X)
        if self.fit_intercept:
            ones = sp.csr_array(np.ones((X.shape[0], 1), dtype=X.dtype))
            X = sp.csr_array(sp.hstack([X, ones], format="csr"))
        kept = np.flatnonzero(weight > 0)
        if kept.size == 0:
            raise LocoleError("all sample weights are zero: give some samples a positive weight.")
        if kept.size < X.shape[0]:
            X = X[kept]
        return _Problem(X, weight[kept].astype(np.float64), targets, targets.codes[kept])

    def _solve_directly(self, problem: _Problem) -> NDArray:
        """Normal equations of the ridge problem, of the smaller of both sizes."""
        X = problem.X.astype(np.float64)
        root = np.sqrt(problem.weight)
        X = sp.csr_array(X.multiply(root[:, None]))
        if X.shape[1] <= X.shape[0]:
            gram = (X.T @ X).toarray() + self.l2 * np.eye(X.shape[1])
            # Targets depend on the code only: sum the features of each code first.
            n, table = X.shape[0], problem.targets.table(0, problem.targets.shape[1])
            member = sp.csr_array(
                (root, problem.codes, np.arange(n + 1)), shape=(n, table.shape[0])
            )
            right = np.asarray((X.T @ member) @ table.astype(np.float64))
            return scipy.linalg.solve(gram, right, assume_a="pos")
        gram = (X @ X.T).toarray() + self.l2 * np.eye(X.shape[0])
        table = problem.targets.table(0, problem.targets.shape[1])
        Y = table[problem.codes].astype(np.float64) * root[:, None]
        return np.asarray(X.T @ scipy.linalg.solve(gram, Y, assume_a="pos"))

    def _solve_dual(self, problem: _Problem) -> NDArray:
        """Dual coordinate ascent, one block of outputs after the other or side by side."""
        X = problem.X.astype(np.float32)
        squares = np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
        scale = 1 / (2 * self.l2)
        slopes = 1 / (2 * problem.weight)
        sizes = 1 / (slopes + squares * scale)
        rng = np.random.default_rng(self.random_state)
        orders = [rng.permutation(X.shape[0]) for _ in range(self.passes)]
        n_outputs = problem.targets.shape[1]
        W = np.empty((X.shape[1], n_outputs), dtype=np.float32)

        def solve_block(outputs: slice) -> None:
            width = outputs.stop - outputs.start
            table = problem.targets.table(outputs.start, outputs.stop).astype(np.float32)
            padded = np.zeros((table.shape[0], BLOCK), dtype=np.float32)
            padded[:, :width] = table
            alpha = np.zeros(X.shape[0] * BLOCK, dtype=np.float32)
            V = np.zeros(X.shape[1] * BLOCK, dtype=np.float32)
            for order in orders:
                dual_pass(
                    X.indptr,
                    X.indices,
                    X.data,
                    order,
                    slopes.astype(np.float32),
                    sizes.astype(np.float32),
                    padded.ravel(),
                    problem.codes,
                    alpha,
                    V,
                    np.float32(self.l1),
                    np.float32(scale),
                )
            v = V.reshape(-1, BLOCK)[:, :width]
            W[:, outputs] = np.sign(v) * np.maximum(np.abs(v) - self.l1, 0) * scale

        map_row_blocks(solve_block, n_outputs, block=BLOCK, n_jobs=self.n_jobs)
        return W
