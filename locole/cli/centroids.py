"""The baseline of the demonstration: cosine to the mean row of each label."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from locole.parallel.progress import track

__all__ = ["Centroids"]

# Rows whose scores for all labels exist at a time.
_BLOCK_ROWS = 256


class Centroids:
    """Class centroids: the answer is the label whose mean row has the largest cosine to the row.

    Parameters
    ----------
    X : sparse matrix of shape (rows, n_features)
        Training rows.
    y : array of shape (rows,)
        Their labels.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> X = sp.csr_matrix([[1.0, 0, 0], [1, 1, 0], [0, 0, 1]])
    >>> Centroids(X, np.array(["a", "a", "b"])).predict_topk(sp.csr_matrix([[0.0, 0, 3]]), k=2)
    array([['b', 'a']], dtype='<U1')
    """

    def __init__(self, X: Any, y: NDArray) -> None:
        self.classes_, codes = np.unique(y, return_inverse=True)
        members = sp.csr_array((np.ones(len(y), np.float32), (codes, np.arange(len(y)))))
        sums = sp.csr_array(members @ sp.csr_array(X))
        lengths = np.sqrt(np.asarray(sums.multiply(sums).sum(axis=1)).ravel())
        scaled = sp.diags_array(1 / np.maximum(lengths, 1e-12).astype(np.float32)) @ sums
        # Features by labels, for products with rows.
        self._centroids = sp.csr_array(scaled.T)

    @property
    def nbytes(self) -> int:
        """Memory of the centroids."""
        parts = (self._centroids.data, self._centroids.indices, self._centroids.indptr)
        return sum(part.nbytes for part in parts)

    def predict_topk(self, X: Any, k: int) -> NDArray:
        """Return the best ``k`` labels of each row, best first; ties go to the smaller label."""
        X, best = sp.csr_array(X), []
        starts = range(0, X.shape[0], _BLOCK_ROWS)
        for start in track(starts, "centroids", unit="blocks"):
            scores = (X[start : start + _BLOCK_ROWS] @ self._centroids).toarray()
            best.append(_largest(scores, k))
        return self.classes_[np.concatenate(best)]


def _largest(scores: NDArray, k: int) -> NDArray[np.int64]:
    """Places of the k largest of each row, in order."""
    top = np.sort(np.argpartition(-scores, k - 1, axis=1)[:, :k], axis=1)
    order = np.argsort(-np.take_along_axis(scores, top, axis=1), axis=1, kind="stable")
    return np.take_along_axis(top, order, axis=1)
