"""The contract of a baseline: sparse rows in, the best labels out."""

from __future__ import annotations

import os
import warnings
from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from locole.decoders.choose import checked_k
from locole.exceptions import LocoleError, ModelFileError
from locole.io import SavedEstimator, write_model
from locole.kernels.topk import push_rows
from locole.parallel.blocks import map_blocks, n_threads
from locole.regressors.base import all_or_nothing

__all__ = ["Baseline"]

_BLOCK_ROWS = 1024
# Above that, sorting all scores is faster than keeping a list of the best.
_SHORT_LIST = 64
_EVERY_COLUMN = np.empty(0, dtype=np.int64)


class Baseline(SavedEstimator, ClassifierMixin, BaseEstimator):
    """A method that locole is compared with, as a scikit-learn classifier with `predict_topk`.

    A subclass is decorated with ``saved_as("baseline.<name>")``, adds to ``_learnt`` what it learns and
    has two methods: `_learn`, and `_best`, which must not depend on other rows of the block. Its
    parameters may include ``n_jobs``, ``random_state`` and ``verbose``, which mean what they mean for
    `locole.LocoleClassifier`.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels, sorted.
    n_features_in_ : int
    """

    _learnt: ClassVar = {"classes_": np.ndarray}

    #: Rows that `_best` is given at a time.
    _block_rows: ClassVar[int] = _BLOCK_ROWS

    @abstractmethod
    def _learn(self, X: sp.csr_array, codes: NDArray[np.int64]) -> None:
        """Learn from float32 rows and the codes 0 … n_classes−1 of their labels."""

    @abstractmethod
    def _best(self, X: sp.csr_array, k: int) -> tuple[NDArray[np.int64], NDArray]:
        """Codes of the best k labels of each row, best first, and their scores."""

    @all_or_nothing
    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Learn from rows X and their labels y.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Labels of any kind that can be sorted.
        """
        n_threads(getattr(self, "n_jobs", None))
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float32, np.float64])
        with warnings.catch_warnings():
            # Many labels with one row each are what these methods are for.
            warnings.filterwarnings("ignore", message="The number of unique classes is greater")
            check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if self.classes_.size < 2:
            only = str(self.classes_[0])
            raise LocoleError(
                f"there is only one class, {only!r}: a classifier needs at least two."
            )
        self._learn(_rows(X), codes.astype(np.int64))
        return self

    def predict(self, X: Any) -> NDArray:
        """Most likely label of each row."""
        return self.predict_topk(X, k=1)[0][:, 0]

    def predict_topk(self, X: Any, k: int = 5) -> tuple[NDArray, NDArray]:
        """Return the best ``k`` labels of each row, best first, and their scores.

        Ties go to the label that comes first in ``classes_``.
        """
        check_is_fitted(self)
        k = checked_k(k, self.classes_.size)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float32, np.float64], reset=False)
        X = _rows(X)
        parts = map_blocks(
            lambda rows: self._best(X[rows], k),
            X.shape[0],
            block=self._block_rows,
            n_jobs=getattr(self, "n_jobs", None),
        )
        codes = np.concatenate([codes for codes, _ in parts])
        return self.classes_[codes], np.concatenate([scores for _, scores in parts])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model into a folder, for `locole.load`; see `locole.LocoleClassifier.save`."""
        check_is_fitted(self)
        write_model(path, self)

    def _check_learnt(self) -> None:
        """Labels must be there; what a subclass adds must fit to them and to ``n_features_in_``."""
        if self.classes_.ndim != 1 or self.classes_.size < 2:
            raise ModelFileError("it has fewer than two labels")
        if not hasattr(self, "n_features_in_"):
            raise ModelFileError("it does not say how many features it takes")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _rows(X: Any) -> sp.csr_array:
    """Sorted float32 rows without doubles and without zeros, whatever X is."""
    X = sp.csr_array(X, dtype=np.float32)
    if not X.has_canonical_format or not X.data.all():
        X = X.copy()
        X.sum_duplicates()
        X.eliminate_zeros()
    return X


def best_of(scores: NDArray, k: int) -> tuple[NDArray[np.int64], NDArray]:
    """Codes and scores of the best k of dense scores; ties go to the smaller code."""
    if k <= _SHORT_LIST:
        best = np.full((scores.shape[0], k), -np.inf, dtype=scores.dtype)
        codes = np.full((scores.shape[0], k), -1, dtype=np.int64)
        push_rows(np.ascontiguousarray(scores), 0, _EVERY_COLUMN, best, codes)
        if (codes >= 0).all():  # not if a score is −∞
            return codes, best
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(scores, order, axis=1)
