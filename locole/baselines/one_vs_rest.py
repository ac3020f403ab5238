"""One against the rest: a linear classifier of scikit-learn for every label."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC
from sklearn.utils import get_tags

from locole.baselines.sparse_linear import SparseLinear
from locole.exceptions import LocoleError, ModelFileError
from locole.io import saved_as
from locole.parallel.blocks import map_blocks
from locole.parameters import N_JOBS, NOT_NEGATIVE, SEED, VERBOSE, has
from locole.samples import Samples

__all__ = ["LinearOneVsRest"]

# Labels that a thread learns before it takes the next.
_BLOCK_LABELS = 8

_Column = tuple[NDArray[np.int64], NDArray[np.float32], float]


@saved_as("baseline.one_vs_rest")
class LinearOneVsRest(SparseLinear):
    r"""A binary linear classifier for every label, and the label with the largest margin.

    .. math:: \hat y(x) = \arg\max_i \langle w_i, x\rangle + b_i

    With the default estimator, w_i minimises ½‖w‖² + Σ_j max(0, 1 − s_j⟨w, x_j⟩)², s_j = 1 for rows of
    label i and −1 for all others, and entries below 0.01 become zero. This is DiSMEC of Babbar and
    Schölkopf, "DiSMEC: Distributed Sparse Machines for Extreme Multi-label Classification" (2017).

    Every label looks at every row: training takes n_classes times that of one classifier. At any time
    there is one dense vector of n_features numbers for each thread; the model holds the entries that
    are not zero. It is the anchor for accuracy where there are at most some thousand labels.

    Parameters
    ----------
    estimator : scikit-learn classifier, optional
        Anything that takes sparse rows and leaves ``coef_`` and ``intercept_``; by default
        ``LinearSVC(C=1, tol=0.01)``. If it has a ``random_state`` of None, it gets this model's. Files
        hold the weights and not the estimator: a model that was read has the default again.
    min_weight : float
        Weights of smaller size become zero. Take a smaller one where features are large numbers.
    random_state : int
        Seed of the estimators.
    n_jobs : int, optional
        Threads, which share the labels; the answer does not depend on it.
    verbose : int
        1 shows progress.

    Attributes
    ----------
    coef_ : CSR array of shape (n_classes, n_features)
        Weights of each label.
    intercept_ : array of shape (n_classes,)
        Intercept of each label.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> LinearOneVsRest().fit(X[:1500] / 16, y[:1500]).score(X[1500:] / 16, y[1500:]) > 0.85
    True
    """

    _parameter_constraints: ClassVar = {
        "estimator": [None, *has("fit", "get_params")],
        "min_weight": NOT_NEGATIVE,
        "random_state": SEED,
        "n_jobs": N_JOBS,
        "verbose": VERBOSE,
    }
    _renamed: ClassVar = {"threshold": "min_weight"}
    _learnt: ClassVar = {**SparseLinear._learnt, "intercept_": np.ndarray}

    def __init__(
        self,
        estimator: Any = None,
        *,
        min_weight: float = 0.01,
        random_state: int = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.min_weight = min_weight
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _learn(self, samples: Samples) -> None:
        X, codes = samples.X, samples.codes
        estimator = self._made()
        X = _for_sklearn(X)

        def learn_block(labels: slice) -> list[_Column]:
            # Input has been checked; each thread has a configuration of its own.
            with config_context(assume_finite=True):
                return [self._column(estimator, X, codes == label) for label in _range(labels)]

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            blocks = map_blocks(
                learn_block,
                self.classes_.size,
                block=_BLOCK_LABELS,
                n_jobs=self.n_jobs,
                description="one against the rest" if self.verbose else None,
            )
        _warn_once(caught, self.classes_.size)
        features, weights, constants = zip(*(c for block in blocks for c in block), strict=True)
        indptr = np.concatenate([[0], np.cumsum([part.size for part in features])])
        shape = (X.shape[1], self.classes_.size)
        columns = sp.csc_array(
            (np.concatenate(weights), np.concatenate(features), indptr), shape=shape
        )
        self._weights = sp.csr_array(columns)
        self.intercept_ = np.array(constants, dtype=np.float32)

    def _made(self) -> Any:
        """Estimator that is copied for each label."""
        if self.estimator is None:
            return LinearSVC(tol=0.01, random_state=self.random_state)
        if not isinstance(self.estimator, BaseEstimator):
            raise LocoleError(
                f"estimator must be a classifier of scikit-learn, not {self.estimator!r}."
            )
        if not get_tags(self.estimator).input_tags.sparse:
            name = type(self.estimator).__name__
            raise LocoleError(
                f"estimator {name} takes no sparse rows: take LinearSVC, for instance."
            )
        made = clone(self.estimator)
        if made.get_params(deep=False).get("random_state", 0) is None:
            made.set_params(random_state=self.random_state)
        return made

    def _column(self, estimator: Any, X: sp.csr_array, mine: NDArray[np.bool_]) -> _Column:
        """Features, weights and constant of one label."""
        fitted = clone(estimator).fit(X, mine)
        if not hasattr(fitted, "coef_") or not hasattr(fitted, "intercept_"):
            raise LocoleError(
                f"estimator {type(estimator).__name__} leaves no coef_ and intercept_: take a linear "
                "classifier."
            )
        coef = fitted.coef_.toarray() if sp.issparse(fitted.coef_) else np.asarray(fitted.coef_)
        coef = coef.ravel().astype(np.float32)
        kept = np.flatnonzero((np.abs(coef) >= self.min_weight) & (coef != 0))
        return kept, coef[kept], float(np.ravel(fitted.intercept_)[0])

    def _start(self) -> NDArray[np.float32]:
        return self.intercept_

    def _state(self) -> dict[str, Any]:
        # An estimator of another library could not be written without pickle, nor is it needed.
        state = super()._state()
        return {**state, "params": {**state["params"], "estimator": None}}

    def _check_learnt(self) -> None:
        super()._check_learnt()
        b = self.intercept_
        if b.shape != self.classes_.shape or b.dtype != np.float32 or not np.isfinite(b).all():
            raise ModelFileError("its intercepts do not fit its labels")


def _range(part: slice) -> range:
    return range(part.start, part.stop)


def _for_sklearn(X: sp.csr_array) -> sp.csr_array:
    """Rows as LinearSVC would otherwise copy them for every label; it takes short indices only."""
    X = X.astype(np.float64)
    if X.nnz <= np.iinfo(np.int32).max:
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X


def _warn_once(caught: list[warnings.WarningMessage], n_classes: int) -> None:
    """Repeat what estimators had to say; that some did not converge is said once for all labels."""
    unfinished = [w for w in caught if issubclass(w.category, ConvergenceWarning)]
    for other in caught:
        if other not in unfinished:
            warnings.warn_explicit(other.message, other.category, other.filename, other.lineno)
    if unfinished:
        warnings.warn(
            f"the classifiers of {len(unfinished)} of {n_classes} labels did not converge: scale X, or "
            "pass an estimator with a larger max_iter.",
            ConvergenceWarning,
            stacklevel=5,
        )
