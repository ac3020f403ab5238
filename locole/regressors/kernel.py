"""Kernel ridge regression: points from the similarities of a row to training rows."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from locole.atomic import all_or_nothing, of_one_moment
from locole.exceptions import LocoleError, ModelFileError
from locole.io import saved_as
from locole.kernels.csr import Csr
from locole.kernels.product import NO_SCALES, add_dense_product
from locole.kernels.simd import WIDTH
from locole.parallel.blocks import map_blocks, one_blas_thread, slices
from locole.parameters import COUNT, N_JOBS, POSITIVE, SEED, VERBOSE, one_of
from locole.regressors.base import TargetRegressor, TargetsLike, as_targets
from locole.regressors.problem import Problem, make_problem
from locole.regressors.storage import Storage, Weights, pack, unpack
from locole.samples import checked_rows
from locole.sparse_rows import row_squares, unit_rows

__all__ = ["KernelRegressor", "similarities"]

# Up to so many rows all are centres; of more rows, so many are drawn.
_ALL, _DRAWN = 16_384, 4_096
# Rows, and outputs, looked at in one go; and how many numbers a block of dense centres may have.
_ROWS, _OUTPUTS, _ROOM = 4_096, 64, 2**23
# Rows whose similarities exist at a time when points are made.
_PREDICTED = 128
# Rows and outputs by which the penalty is chosen, and the penalties tried.
_TRIED_ROWS, _TRIED_OUTPUTS = 1_024, 256
_PENALTIES = 2.0 ** np.arange(-5, 6)
# Up to so many centres equations are solved in double precision.
_DOUBLE = 4_096
# Later rows that are fewer than this part of all do not change what is known of the others.
_GROWTH = 20
# What is added to the diagonal of equations for drawn centres, as a part of its mean: as much as the
# rounding errors of their sums ask for.
_JITTERS = (1e-6, 1e-5, 1e-4, 1e-3)


@saved_as("regressor.kernel")
class KernelRegressor(TargetRegressor):
    r"""Points by similarity to training rows: what a sum over features cannot say.

    .. math:: f(x) = \bar y + \sum_r k(x, x_r) β_r, \qquad
              k(x, x') = e^{-γ \|u - u'\|^2}, \quad u = x / \|x\|, \qquad
              (K + λ_2 S^{-1}) β = Y - \bar y

    with S the sample weights. Up to 16,384 rows the equations are solved exactly, in N³/3 operations and
    4 N² bytes. Of more rows, 4,096 are drawn as *centres* x_r, and β is the solution of least squares
    over all rows (the Nyström method), in N · 4,096² operations.

    Where there are many rows for few features a linear model is at its limit, and this one is not:
    labels may depend on features that come together.

    Parameters
    ----------
    gamma : float
        γ: the larger, the faster similarity falls with distance, which is at most 2 for unit rows
        of features that are not negative.
    l2 : float or "auto"
        Penalty λ2 > 0; ``"auto"`` takes the one with the smallest leave-one-out error of 1,024 rows,
        which has a closed form, and leaves it in ``l2_``.
    n_centres : int or "auto"
        Rows that others are compared with, if there are more rows.
    storage : {"float32", "float16", "int8"}
        How β is kept.
    random_state : int
        Seed of what is drawn.
    n_jobs : int, optional
        Threads that solve for blocks of outputs; the answer does not depend on it.
    verbose : int
        Ignored; nothing is shown.

    Attributes
    ----------
    centres_ : CSR array of shape (n_centres, n_features)
        Training rows of unit length.
    weight_ : array of shape (n_centres,)
        Weights of the rows, if all of them are centres; otherwise empty.
    intercept_ : array of shape (n_outputs,)
        Mean target.
    l2_ : float
        The penalty in use.
    history_ : list of dict
        Penalties ``l2`` that were tried and the ``loss`` of each, relative to the mean target's.

    Examples
    --------
    >>> X = np.array([[0.0, 1], [1, 0], [1, 1]])  # exclusive or: no linear model has it
    >>> regressor = KernelRegressor(l2=1e-6).fit(X, np.array([1.0, 1, 0]))
    >>> regressor.predict(X).ravel().round(3) + 0
    array([1., 1., 0.], dtype=float32)
    """

    _parameter_constraints: ClassVar = {
        "gamma": POSITIVE,
        "l2": [*POSITIVE, *one_of("auto")],
        "n_centres": [*COUNT, *one_of("auto")],
        "storage": one_of("float32", "float16", "int8"),
        "random_state": SEED,
        "n_jobs": N_JOBS,
        "verbose": VERBOSE,
    }
    _learnt: ClassVar = {
        "n_outputs_": int,
        "centres_": sp.csr_array,
        "_weights": np.ndarray,
        "_scales": np.ndarray,
        "weight_": np.ndarray,
        "intercept_": np.ndarray,
        "l2_": float,
        "history_": list,
    }

    def __init__(
        self,
        *,
        gamma: float = 1.0,
        l2: float | Literal["auto"] = "auto",
        n_centres: int | Literal["auto"] = "auto",
        storage: Storage = "float32",
        random_state: int = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.gamma = gamma
        self.l2 = l2
        self.n_centres = n_centres
        self.storage = storage
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    # Fit ----------------------------------------------------------------------------------------

    @all_or_nothing
    def fit(
        self, X: Any, targets: TargetsLike | ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Solve for all outputs."""
        self.check_parameters()
        X = checked_rows(self, X, dtype=[np.float64, np.float32])
        problem = _problem(X, targets, sample_weight)
        self.intercept_ = _mean(problem)
        self._choose(problem)
        n_centres = self._n_centres(problem.n_rows)
        self.n_outputs_ = problem.targets.shape[1]
        if n_centres == problem.n_rows:
            self._set(problem, self._exact(problem, _less(problem, self.intercept_)))
            return self
        rng = np.random.default_rng([self.random_state, problem.n_rows, 8])
        drawn = np.sort(rng.permutation(problem.n_rows)[:n_centres])
        self.centres_, self.weight_ = sp.csr_array(problem.X[drawn]), np.empty(0)
        self._weights, self._scales = _stored(self._least_squares(problem), self.storage)
        return self

    @all_or_nothing
    def partial_fit(
        self, X: Any, targets: TargetsLike | ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn from more rows, which become centres.

        If all rows are centres, and the new ones are at least a twentieth of them, the equations of all
        rows are solved again: the targets of the old ones are ``f(x) + λ2 S⁻¹ β``, so nothing but the
        model is needed. Otherwise what was learnt stays, and the new rows learn what it gets wrong of
        them: one step of block coordinate descent.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Rows to learn from.
        targets : TargetsLike or array of shape (n_samples, n_outputs)
            Where each row should be mapped to.
        sample_weight : array of shape (n_samples,), optional
            How much each row counts; by default all alike.
        """
        if not hasattr(self, "_weights"):
            return self.fit(X, targets, sample_weight)
        self.check_parameters()
        X = checked_rows(self, X, dtype=[np.float64, np.float32], reset=False)
        whole = _problem(X, targets, sample_weight)
        whole.require_outputs(self.n_outputs_)
        n_rows = self.centres_.shape[0] + whole.n_rows
        if self.weight_.size and n_rows <= _ALL and whole.n_rows * _GROWTH >= n_rows:
            self._solve_again(whole)
            return self
        for part in slices(whole.n_rows, _ROWS):
            problem = whole.take(np.arange(whole.n_rows)[part])
            points = self._points(problem.X)
            self._append(problem, self._exact(problem, _less(problem, points)))
        return self

    grows = True

    def grow(self, n_features: int, n_outputs: int) -> None:
        """Add features that no centre has, and outputs of zero."""
        wider = max(_whole(n_outputs) - self._weights.shape[1], 0)
        if wider:
            self._weights = np.pad(self._weights, [(0, 0), (0, wider)])
        self.intercept_ = np.pad(self.intercept_, (0, n_outputs - self.n_outputs_))
        known = self.centres_
        shape = (known.shape[0], n_features)
        self.centres_ = sp.csr_array((known.data, known.indices, known.indptr), shape=shape)
        self.n_outputs_, self.n_features_in_ = n_outputs, n_features

    def _solve_again(self, new: Problem) -> None:
        """Solve the equations of all rows, those known and the new ones."""
        known = unpack(self._kept)[:, : self.n_outputs_] * (self.l2_ / self.weight_)[:, None]
        known += self._points(self.centres_) - self.intercept_
        X = sp.csr_array(sp.vstack([self.centres_, new.X], format="csr"))
        both = Problem(X, new.targets, np.concatenate([self.weight_, new.weight]))

        def missing(outputs: slice) -> NDArray:
            return np.concatenate([known[:, outputs], _less(new, self.intercept_)(outputs)])

        self._set(both, self._exact(both, missing))

    def _set(self, problem: Problem, found: NDArray[np.float32]) -> None:
        """Keep all rows as centres."""
        self.centres_, self.weight_ = problem.X, problem.weight
        self._weights, self._scales = _stored(found, self.storage)

    def _append(self, problem: Problem, found: NDArray[np.float32]) -> None:
        """Add centres to those known."""
        added = _stored(found, self.storage)
        self.centres_ = sp.csr_array(sp.vstack([self.centres_, problem.X], format="csr"))
        self._weights = np.vstack([self._weights, added.numbers])
        self._scales = np.concatenate([self._scales, added.scales])
        if self.weight_.size:
            self.weight_ = np.concatenate([self.weight_, problem.weight])

    def _n_centres(self, n_rows: int) -> int:
        if self.n_centres == "auto":
            return n_rows if n_rows <= _ALL else _DRAWN
        return min(int(self.n_centres), n_rows)

    def _choose(self, problem: Problem) -> None:
        """Set the penalty: as given, or by the leave-one-out error of some rows."""
        self.history_ = []
        if self.l2 != "auto":
            self.l2_ = float(self.l2)
            return
        rng = np.random.default_rng([self.random_state, problem.n_rows, 9])
        some = problem.take(np.sort(rng.permutation(problem.n_rows)[:_TRIED_ROWS]))
        outputs = slice(0, min(_TRIED_OUTPUTS, problem.targets.shape[1]))
        K = similarities(some.X, some.X, self.gamma)
        losses = leave_one_out(K, _less(some, self.intercept_)(outputs), some.weight, _PENALTIES)
        tried = zip(_PENALTIES.tolist(), losses.tolist(), strict=True)
        self.history_ = [{"l2": l2, "loss": loss} for l2, loss in tried]
        self.l2_ = float(_PENALTIES[losses.argmin()])

    def _exact(self, problem: Problem, missing: Callable[[slice], NDArray]) -> NDArray[np.float32]:
        """β with ``(K + λ2 S⁻¹) β = missing``, all rows being centres."""
        A = similarities(problem.X, problem.X, self.gamma)
        if len(A) <= _DOUBLE:
            A = A.astype(np.float64)
        A[np.diag_indices_from(A)] += (self.l2_ / problem.weight).astype(A.dtype)
        return self._solved(A, missing, problem.targets.shape[1])

    def _least_squares(self, problem: Problem) -> NDArray[np.float32]:
        """β of fewer centres than rows: ``(KᵀSK + λ2 K_mm) β = KᵀS (Y − ȳ)``."""
        n_outputs = problem.targets.shape[1]
        A = self.l2_ * similarities(self.centres_, self.centres_, self.gamma).astype(np.float64)
        right = np.zeros((len(A), n_outputs))
        with one_blas_thread():
            for part in slices(problem.n_rows, _ROWS):
                K = similarities(problem.X[part], self.centres_, self.gamma)
                weighted = (K * problem.weight[part, None]).astype(np.float32)
                A += weighted.T @ K
                right += weighted.T @ (problem.targets.rows(part) - self.intercept_)
        return self._solved(A, lambda outputs: right[:, outputs], n_outputs, jitters=_JITTERS)

    def _solved(
        self,
        A: NDArray,
        right: Callable[[slice], NDArray],
        n_outputs: int,
        *,
        jitters: Sequence[float] = (0.0,),
    ) -> NDArray[np.float32]:
        """Solve for blocks of outputs, with the first jitter that lets them be solved; A is used up."""
        found = np.empty((len(A), n_outputs), dtype=np.float32)
        with one_blas_thread():
            factor = self._factor(A, jitters)

            def solve(outputs: slice) -> None:
                Y = right(outputs).astype(A.dtype)
                found[:, outputs] = scipy.linalg.cho_solve(factor, Y, check_finite=False)

            map_blocks(solve, n_outputs, block=_OUTPUTS, n_jobs=self.n_jobs)
        return found

    def _factor(self, A: NDArray, jitters: Sequence[float]) -> tuple[NDArray, bool]:
        """Cholesky's factor of A with the first jitter for which there is one; A is used up."""
        diagonal, mean = A.diagonal().copy(), A.diagonal().mean()
        for jitter in jitters:
            A[np.diag_indices_from(A)] = diagonal + jitter * mean
            is_last = jitter == jitters[-1]
            with contextlib.suppress(scipy.linalg.LinAlgError):
                return scipy.linalg.cho_factor(
                    A.T, lower=True, overwrite_a=is_last, check_finite=False
                )
        raise LocoleError(f"rows are too similar for the penalty {self.l2_:.3g}: take a larger l2.")

    # Predict ------------------------------------------------------------------------------------

    @of_one_moment
    def predict(self, X: Any) -> NDArray[np.float32]:
        """Return ``intercept_ + Σ_r k(x, centre_r) β_r``."""
        check_is_fitted(self, "_weights")
        X = checked_rows(self, X, dtype=[np.float64, np.float32], reset=False)
        return self._points(unit_rows(sp.csr_array(X)))

    def predict_checked(self, X: Any) -> NDArray[np.float32]:
        """`predict` for rows that have been checked."""
        if X.shape[1] != self.n_features_in_:
            return self.predict(X)  # whose message about features it is
        return self._points(unit_rows(sp.csr_array(X)))

    def _points(self, X: sp.csr_array) -> NDArray[np.float32]:
        """Points of rows of unit length."""
        out = np.zeros((X.shape[0], self._weights.shape[1]), dtype=np.float32)
        out[:, : self.n_outputs_] = self.intercept_
        for part in slices(X.shape[0], _PREDICTED):
            _add_products(similarities(X[part], self.centres_, self.gamma), self._kept, out[part])
        return out[:, : self.n_outputs_]

    @property
    def _kept(self) -> Weights:
        return Weights(self._weights, self._scales)

    # Save ---------------------------------------------------------------------------------------

    def _check_learnt(self) -> None:
        W, scales, centres = self._weights, self._scales, self.centres_
        stored = {"float32": np.float32, "float16": np.uint16, "int8": np.int8}[self.storage]
        fits = (
            W.dtype == stored
            and W.ndim == 2
            and 1 <= self.n_outputs_ <= W.shape[1]
            and W.shape[1] % WIDTH == 0
            and centres.shape == (W.shape[0], getattr(self, "n_features_in_", None))
            and centres.dtype == np.float32
            and scales.dtype == np.float32
            and scales.shape == (W.shape[0] if self.storage == "int8" else 0,)
            and self.weight_.dtype == np.float64
            and self.weight_.shape in ((0,), W.shape[:1])
            and (self.weight_ > 0).all()
            and np.isfinite(self.weight_).all()
            and self.intercept_.dtype == np.float64
            and self.intercept_.shape == (self.n_outputs_,)
        )
        if not fits:
            raise ModelFileError("its kernel regressor has arrays that do not fit together")
        if not (row_squares(centres) <= 1.001).all():  # also if one is not a number
            raise ModelFileError("its centres are not of unit length")
        if not 0 < self.l2_ < np.inf:
            raise ModelFileError("its kernel regressor has a penalty that is not positive")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def similarities(U: sp.csr_array, V: sp.csr_array, gamma: float) -> NDArray[np.float32]:
    """``exp(2γ (⟨u, v⟩ − 1))`` of all rows of unit length, shape (rows of U, rows of V).

    Examples
    --------
    >>> X = sp.csr_array(np.eye(2, dtype=np.float32))
    >>> similarities(X, X, 0.5).round(2)
    array([[1.  , 0.37],
           [0.37, 1.  ]], dtype=float32)
    """
    rows, every = Csr(U.indptr, U.indices, U.data), np.arange(U.shape[0])
    block = int(np.clip(_ROOM // max(V.shape[1], 1), WIDTH, 256)) // WIDTH * WIDTH
    out = np.empty((U.shape[0], V.shape[0]), dtype=np.float32)
    for part in slices(V.shape[0], block):
        n = part.stop - part.start
        dense = np.zeros((V.shape[1], block), dtype=np.float32)
        dense[:, :n] = V[part].T.toarray()
        found = np.zeros((U.shape[0], block), dtype=np.float32)
        add_dense_product(rows, every, dense.ravel(), NO_SCALES, block, 0, block, found.ravel())
        out[:, part] = found[:, :n]
    out -= 1
    out *= np.float32(2 * gamma)
    return np.exp(out, out=out)


def leave_one_out(
    K: NDArray, Y: NDArray, weight: NDArray, penalties: NDArray
) -> NDArray[np.float64]:
    """Squared error of each row predicted from the others, as a part of Σ s‖y‖², for each penalty.

    With A = S^½KS^½ + λI the error of row i, times the root of its weight, is
    ``(A⁻¹ S^½Y)_i / (A⁻¹)_ii``.
    """
    root = np.sqrt(weight)
    with one_blas_thread():
        values, vectors = np.linalg.eigh(root[:, None] * K.astype(np.float64) * root)
        seen = vectors.T @ (root[:, None] * Y)
        losses = np.empty(len(penalties))
        for i, penalty in enumerate(penalties):
            inverse = 1 / (np.maximum(values, 0) + penalty)
            errors = (vectors @ (inverse[:, None] * seen)) / (vectors**2 @ inverse)[:, None]
            losses[i] = np.square(errors).sum()
    return losses / max(float(np.square(seen).sum()), 1e-300)


def _add_products(K: NDArray[np.float32], weights: Weights, out: NDArray[np.float32]) -> None:
    """``out += K @ weights``, with sums in the same order for any number of rows."""
    n, m = K.shape
    places = np.tile(np.arange(m), n)
    rows = Csr(np.arange(0, n * m + 1, m) if m else np.zeros(n + 1, np.int64), places, K.ravel())
    width = out.shape[1]
    numbers = weights.numbers.reshape(-1)
    add_dense_product(rows, np.arange(n), numbers, weights.scales, width, 0, width, out.ravel())


def _stored(found: NDArray[np.float32], storage: Storage) -> Weights:
    """β in the form that kernels take: so many outputs that registers are full."""
    n, n_outputs = found.shape
    wide = np.zeros((n, _whole(n_outputs)), dtype=np.float32)
    wide[:, :n_outputs] = found
    return pack(wide, storage)


def _whole(n_outputs: int) -> int:
    """Outputs in whole registers."""
    return -(-n_outputs // WIDTH) * WIDTH


def _problem(X: Any, targets: Any, sample_weight: ArrayLike | None) -> Problem:
    problem = make_problem(X, as_targets(targets), sample_weight).weighted()
    return problem._replace(X=unit_rows(problem.X))


def _table(problem: Problem, outputs: slice) -> NDArray:
    """Targets of all rows, a block of outputs."""
    return problem.targets.table(outputs.start, outputs.stop)[problem.codes]


def _less(problem: Problem, points: NDArray) -> Callable[[slice], NDArray]:
    """Return a function from a block of outputs to the targets less these points, or this one."""
    return lambda outputs: _table(problem, outputs) - points[..., outputs]


def _mean(problem: Problem) -> NDArray[np.float64]:
    """Weighted mean target."""
    blocks = slices(problem.targets.shape[1], _OUTPUTS)
    share = problem.weight / problem.weight.sum()
    return np.concatenate([share @ _table(problem, part).astype(np.float64) for part in blocks])
