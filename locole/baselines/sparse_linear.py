"""Linear scores with sparse weights, as PD-Sparse and PPD-Sparse learn them."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from locole.baselines.base import Baseline
from locole.exceptions import LocoleError, ModelFileError
from locole.kernels.csr import Csr
from locole.kernels.sparse_scan import scan_lists
from locole.samples import Rows
from locole.scoring.base import Codes, Contributions, entries_of

__all__ = ["SparseLinear", "best_by_lists", "linear_contributions"]

_EVERY_COLUMN = np.empty(0, dtype=np.int64)


class SparseLinear(Baseline):
    """A baseline that scores labels by ``X @ coef_.T``, and an intercept if there is one.

    Attributes
    ----------
    coef_ : CSR array of shape (n_classes, n_features)
    """

    _learnt: ClassVar = {**Baseline._learnt, "_weights": sp.csr_array}

    _weights: sp.csr_array

    @property
    def coef_(self) -> sp.csr_array:
        """Weights of each label."""
        return sp.csr_array(self._weights.T)

    def _keep(self, W: sp.csr_array, *others: NDArray) -> None:
        """Take over weights, if they and the other arrays are numbers."""
        if not all(np.isfinite(array).all() for array in (W.data, *others)):
            raise LocoleError(
                "the features are so large that weights overflow: scale the rows to length 1 first."
            )
        self._weights = W

    def _start(self) -> NDArray[np.float32]:
        """Scores of a row without features."""
        return np.zeros(self.classes_.size, dtype=np.float32)

    def _rank(self, X: sp.csr_array, k: int) -> tuple[NDArray[np.int64], NDArray]:
        W = self._weights
        # In double precision, so that huge rows do not overflow.
        return best_by_lists(X, Csr.of(W), self._start(), k, dtype=np.float64)

    def _explained(self, rows: Rows, codes: Codes) -> Contributions:
        found = linear_contributions(rows, codes, self._weights)
        start = self._start()[codes].astype(np.float64)
        return found._replace(others={"intercept": start} if start.any() else {})

    @classmethod
    def _from_state(cls, values: dict[str, Any]) -> Self:
        learnt = values["learnt"]
        if isinstance(learnt, dict) and "coef_" in learnt:  # as the first files call it
            renamed = {"_weights" if name == "coef_" else name: learnt[name] for name in learnt}
            values = {**values, "learnt": renamed}
        return super()._from_state(values)

    def _check_learnt(self) -> None:
        super()._check_learnt()
        W = self._weights
        shape = (self.n_features_in_, self.classes_.size)
        if W.shape != shape or W.dtype != np.float32 or not np.isfinite(W.data).all():
            raise ModelFileError("its weights do not fit its labels and features")


def linear_contributions(rows: Rows, codes: Codes, weights: sp.csr_array) -> Contributions:
    """What each entry adds to ``X @ weights``, for the labels ``codes`` of each row."""
    X = rows.csr
    found = np.empty((X.nnz, codes.shape[1]))
    for i, part in enumerate(entries_of(X)):
        some = weights[X.indices[part]].tocsc()[:, codes[i]].toarray()
        found[part] = X.data[part, None] * some.astype(np.float64)
    return Contributions(found, {})


def best_by_lists(
    X: sp.csr_array,
    weights: Csr,
    start: NDArray[np.float32],
    k: int,
    *,
    dtype: DTypeLike = np.float32,
) -> tuple[NDArray[np.int64], NDArray]:
    """Codes and scores of the best k labels of each row; ties go to the smaller code.

    Row f of ``weights`` has those of feature f, labels being columns.
    """
    scores = np.full((X.shape[0], k), -np.inf, dtype=dtype)
    codes = np.zeros((X.shape[0], k), dtype=np.int64)
    room = np.empty((1, start.size), dtype=dtype)
    scan_lists(Csr.of(X), weights, start, room, _EVERY_COLUMN, scores, codes)
    return codes, scores
