"""Nearest class centroid: the anchor of every comparison."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from locole.baselines.base import Baseline
from locole.baselines.sparse_linear import linear_contributions
from locole.exceptions import ModelFileError
from locole.io import saved_as
from locole.parameters import N_JOBS
from locole.samples import Rows, Samples
from locole.scoring.base import Codes, Contributions, best_of
from locole.sparse_rows import label_sums, unit_rows

__all__ = ["Centroids"]


@saved_as("baseline.centroids")
class Centroids(Baseline):
    r"""Answer with the label whose mean row has the largest cosine with the row.

    .. math:: \hat y(x) = \arg\max_i \frac{\langle x, c_i\rangle}{\|c_i\|},
              \qquad c_i = \sum_{j: i \in y_j} x_j

    Training is one sparse product. It needs memory of the order of the data, and is hard to beat where
    labels have a handful of rows each.

    Parameters
    ----------
    n_jobs : int, optional
        Threads for prediction.

    Attributes
    ----------
    centroids_ : CSR array of shape (n_features, n_classes)
        Unit columns.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> Centroids().fit(X[:1500], y[:1500]).score(X[1500:], y[1500:]) > 0.8
    True
    """

    _parameter_constraints: ClassVar = {"n_jobs": N_JOBS}
    _learnt: ClassVar = {**Baseline._learnt, "centroids_": sp.csr_array}
    _block_rows: ClassVar[int] = 128
    _takes_several: ClassVar = True

    def __init__(self, *, n_jobs: int | None = None) -> None:
        self.n_jobs = n_jobs

    def _learn(self, samples: Samples) -> None:
        sums = label_sums(samples.X, samples.codes, self.classes_.size, owners=samples.owners)
        sums.sort_indices()
        self.centroids_ = sp.csr_array(unit_rows(sums).T)

    def _rank(self, X: sp.csr_array, k: int) -> tuple[NDArray[np.int64], NDArray]:
        return best_of((X @ self.centroids_).toarray(), k)

    def _explained(self, rows: Rows, codes: Codes) -> Contributions:
        return linear_contributions(rows, codes, self.centroids_)

    def _check_learnt(self) -> None:
        super()._check_learnt()
        C = self.centroids_
        shape = (self.n_features_in_, self.classes_.size)
        if C.shape != shape or C.dtype != np.float32 or not np.isfinite(C.data).all():
            raise ModelFileError("its centroids do not fit its labels and features")
