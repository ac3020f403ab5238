"""Label profiles: how much more often than usual a feature occurs with a label."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from locole.exceptions import ModelFileError
from locole.io import SavedEstimator, saved_as
from locole.kernels.postings import scan_postings

__all__ = ["Profiles", "Scan"]


class Scan(NamedTuple):
    """What the profiles say about some rows."""

    at: NDArray[np.float32]
    """Scores of the labels asked for."""
    codes: NDArray[np.int64]
    """The best labels by profile, best first."""
    scores: NDArray[np.float32]
    """Their scores."""


@saved_as("profiles")
class Profiles(SavedEstimator, BaseEstimator):
    r"""Score of a label: the features' log-odds in its rows, weighted by the row.

    .. math:: \sum_f x_f \log\Big(1 + \frac{P(f \mid \text{label})}{P(f)}\Big)

    with the shares of feature f in the label's rows and in all rows. This is a naive Bayes rule whose
    label models are mixed half and half with the common one: nothing is optimised, so it does not
    overfit labels with few rows, and it has no noise floor where a row says little.

    Attributes
    ----------
    sums_ : CSR array of shape (n_features, n_classes)
        Sum of each feature over the rows of each label.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> X = sp.csr_array(np.array([[1.0, 0, 0], [1, 1, 0], [0, 1, 1]], dtype=np.float32))
    >>> profiles = Profiles().fit(X, np.array([0, 0, 1]), n_classes=2)
    >>> profiles.scan(X, k=1).codes.ravel()
    array([0, 0, 1])
    """

    _learnt: ClassVar = {"sums_": sp.csr_array}

    def fit(
        self,
        X: sp.csr_array,
        codes: NDArray[np.int64],
        n_classes: int,
        sample_weight: NDArray | None = None,
    ) -> Self:
        """Sum up the rows of each label; X must not have negative entries."""
        self.sums_ = sp.csr_array((X.shape[1], n_classes), dtype=np.float32)
        return self.add(X, codes, n_classes, sample_weight)

    def add(
        self,
        X: sp.csr_array,
        codes: NDArray[np.int64],
        n_classes: int,
        sample_weight: NDArray | None = None,
    ) -> Self:
        """Add more rows, which may have more labels."""
        ones = np.ones(codes.size) if sample_weight is None else sample_weight
        shape = (n_classes, codes.size)
        member = sp.csr_array((ones.astype(np.float32), (codes, np.arange(codes.size))), shape)
        sums = sp.csr_array((member @ sp.csr_array(X, dtype=np.float32)).T)
        old = self.sums_.copy()
        old.resize(sums.shape)
        self.sums_ = sp.csr_array(old + sums)
        self.sums_.sort_indices()
        self.sums_.eliminate_zeros()
        self.__dict__.pop("_weights", None)
        return self

    def scan(self, X: sp.csr_array, k: int, found: NDArray[np.int64] | None = None) -> Scan:
        """Score rows against all labels; return the best k and the scores of the labels ``found``."""
        n_rows, n_classes = X.shape[0], self.sums_.shape[1]
        found = np.empty((n_rows, 0), dtype=np.int64) if found is None else found
        at = np.empty(found.shape, dtype=np.float32)
        scores = np.full((n_rows, k), -np.inf, dtype=np.float32)
        codes = np.zeros((n_rows, k), dtype=np.int64)
        S = self.sums_
        scan_postings(
            X.indptr, X.indices, X.data.astype(np.float32, copy=False), S.indptr, S.indices,
            self._log_odds(), np.empty((1, n_classes), dtype=np.float32),
            np.empty(0, dtype=np.int64), found, at, scores, codes,
        )  # fmt: skip
        return Scan(at, codes, scores)

    def _log_odds(self) -> NDArray[np.float32]:
        """Weights in the order of ``sums_.data``, made when they are first needed."""
        weights = self.__dict__.get("_weights")
        if weights is None:
            S = self.sums_
            by_label = np.asarray(S.sum(axis=0, dtype=np.float64)).ravel()
            by_feature = np.asarray(S.sum(axis=1, dtype=np.float64)).ravel()
            with np.errstate(divide="ignore"):
                scale = (by_label.sum() / by_feature).astype(np.float32)
                share = (1 / by_label).astype(np.float32)
            weights = S.data * share[S.indices]
            weights *= np.repeat(scale, np.diff(S.indptr))
            self.__dict__["_weights"] = np.log1p(weights, out=weights)
        return weights

    def __getstate__(self) -> Any:
        return {k: v for k, v in super().__getstate__().items() if k != "_weights"}

    def _check_learnt(self) -> None:
        data = self.sums_.data
        if data.dtype != np.float32 or not (np.isfinite(data).all() and (data >= 0).all()):
            raise ModelFileError("its label profiles are not sums of features")
