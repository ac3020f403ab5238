"""The contract of a baseline: sparse rows in, the best labels out."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from locole.atomic import all_or_nothing
from locole.base import LabelClassifier
from locole.samples import Rows, Samples

__all__ = ["Baseline"]


class Baseline(LabelClassifier):
    """A method that locole is compared with, as a scikit-learn classifier with ``predict_topk``.

    A subclass is decorated with ``saved_as("baseline.<name>")``, adds to ``_learnt`` what it learns and
    has two methods: ``_learn``, and ``_rank``, which must not depend on other rows of the block. Its
    parameters may include ``n_jobs``, ``random_state`` and ``verbose``, which mean what they mean for
    `locole.LocoleClassifier`.
    """

    _dtypes: ClassVar = (np.float32, np.float64)

    @abstractmethod
    def _learn(self, samples: Samples) -> None:
        """Learn from float32 rows and their labels; several for a row if ``_takes_several``."""

    @abstractmethod
    def _rank(self, X: sp.csr_array, k: int) -> tuple[NDArray[np.int64], NDArray]:
        """Codes of the best k labels of each row, best first, and their scores."""

    @all_or_nothing
    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Learn from rows X and their labels y.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Rows to learn from.
        y : array of shape (n_samples,)
            Labels of any kind that can be sorted. For Centroids, Parabel, Bonsai, PPDSparse and
            AnnexML also several for each row, as for `locole.LocoleClassifier.fit`.
        """
        self.check_parameters()
        samples, self.classes_ = self._samples(X, y)
        samples = samples._replace(X=_canonical(samples.X))
        self._learn(samples)
        self.calibration_ = self._guessed(samples)
        return self

    def _checked_rows(self, X: Any) -> sp.csr_array:
        self._check_values()  # some may have been set after the fit
        return _canonical(super()._checked_rows(X))

    def _best(self, rows: Rows, k: int) -> tuple[NDArray[np.int64], NDArray]:
        return self._rank(rows.csr, k)


def _canonical(X: Any) -> sp.csr_array:
    """Sorted float32 rows without doubles and without zeros, whatever X is."""
    X = sp.csr_array(X, dtype=np.float32)
    if not X.has_canonical_format or not X.data.all():
        X = X.copy()
        X.sum_duplicates()
        X.eliminate_zeros()
    return X
