"""The nearest training row of a label: how likely the label is, given how near it is."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.preprocessing import normalize

from locole.exceptions import ModelFileError
from locole.io import SavedEstimator, saved_as
from locole.kernels.nearest import nearest_rows

__all__ = ["EXAMINED", "KNOTS", "SAME", "Neighbours", "bends"]

#: Labels of a row whose training rows are looked at: the best ones by their score.
EXAMINED = 8
#: Likenesses between which the curve is straight.
KNOTS = np.array([0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0])
#: Rows that are more alike are one row: float32 leaves cosines so close to 1.
SAME = 1 - 1e-5
# Rows of a label that are kept: the last. Frequent labels would take most of the time.
_MOST = 2048


def bends(likeness: NDArray) -> NDArray[np.float64]:
    """How much of each knot but the first is in a likeness: the curve's value is linear in these."""
    share = np.eye(KNOTS.size)[1:]
    return np.stack([np.interp(likeness, KNOTS, row) for row in share], axis=-1)


@saved_as("neighbours")
class Neighbours(SavedEstimator, BaseEstimator):
    r"""Score the best labels of a row anew, by how like the nearest row of each is.

    .. math:: s'_i = a s_i + c\Big(\max_{r: y_r = i} \frac{\langle x, x_r \rangle}{\|x\| \|x_r\|}\Big)

    The curve c is linear between `KNOTS`, 0 at likeness 0, and bent by what happens to rows held out:
    it need not rise. Where every label has one row of a kind (laws, and when each comes into force), a
    row that is all but equal speaks *against* its label, which no sum over features can say. A label
    that has the very row gets the curve's largest value: that is what was learnt.

    Attributes
    ----------
    rows_ : CSR array of shape (n_rows, n_features)
        Training rows of unit length, label by label; of each label the last 2,048.
    starts_ : array of shape (n_classes + 1,)
        Where the rows of each label begin.
    scale_ : float
        a.
    curve_ : array of shape (knots,)
        Values of c at the knots.

    Examples
    --------
    >>> X = sp.csr_array(np.array([[1.0, 0, 0], [1, 1, 0], [0, 0, 1]]))
    >>> neighbours = Neighbours().fit(X, np.array([0, 0, 1]), n_classes=2)
    >>> neighbours.likeness(X[:1], np.array([[0, 1]]))
    array([[1., 0.]], dtype=float32)
    """

    _learnt: ClassVar = {
        "rows_": sp.csr_array,
        "starts_": np.ndarray,
        "scale_": float,
        "curve_": np.ndarray,
    }

    def fit(self, X: sp.csr_array, codes: NDArray[np.int64], n_classes: int) -> Self:
        """Keep rows and their labels, with a curve that changes nothing."""
        self.rows_ = sp.csr_array((0, X.shape[1]), dtype=np.float32)
        self.starts_ = np.zeros(1, dtype=np.int64)
        self.scale_, self.curve_ = 1.0, np.zeros(KNOTS.size)
        return self.add(X, codes, n_classes)

    def add(self, X: sp.csr_array, codes: NDArray[np.int64], n_classes: int) -> Self:
        """Keep more rows, which may have more labels."""
        known = np.repeat(np.arange(self.starts_.size - 1), np.diff(self.starts_))
        codes = np.concatenate([known, codes])
        order = np.argsort(codes, kind="stable")
        counts = np.bincount(codes, minlength=n_classes)
        order = order[np.arange(order.size) >= np.repeat(np.cumsum(counts) - _MOST, counts)]
        old, new = np.split(kept := np.sort(order), [np.searchsorted(kept, known.size)])
        rows = sp.vstack([self.rows_[old], _unit(X[new - known.size])], format="csr")
        self.rows_ = sp.csr_array(rows[np.searchsorted(kept, order)])
        self.starts_ = np.append(0, np.cumsum(np.minimum(counts, _MOST)))
        return self

    def likeness(self, X: sp.csr_array, codes: NDArray[np.int64]) -> NDArray[np.float32]:
        """Cosine of each row and the nearest row of each of its labels ``codes``, 0 at least."""
        X, rows = _unit(X), self.rows_
        out = np.empty(codes.shape, dtype=np.float32)
        room = np.zeros(X.shape[1], dtype=np.float32)
        nearest_rows(
            X.indptr, X.indices, X.data, self.starts_, rows.indptr, rows.indices, rows.data,
            codes, room, out,
        )  # fmt: skip
        return out

    def rescored(
        self, X: sp.csr_array, codes: NDArray[np.int64], scores: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Put the labels of each row, given best first, into their new order, with their new scores.

        Labels after the eighth are taken to be where the curve is lowest: they keep their order, and
        stay behind.
        """
        near = self.likeness(X, codes[:, :EXAMINED])
        said = np.full(scores.shape, self.curve_.min())
        said[:, :EXAMINED] = np.interp(near, KNOTS, self.curve_)
        said[:, :EXAMINED][near > SAME] = self.curve_.max()
        new = self.scale_ * scores + said
        order = np.lexsort((codes, -new), axis=1)
        return np.take_along_axis(codes, order, 1), np.take_along_axis(new, order, 1)

    def _check_learnt(self) -> None:
        rows, starts, curve = self.rows_, self.starts_, self.curve_
        if rows.dtype != np.float32 or not np.isfinite(rows.data).all():
            raise ModelFileError("its nearest rows are not numbers")
        if starts.dtype != np.int64 or starts.ndim != 1 or starts.size < 1:
            raise ModelFileError("its nearest rows have no labels")
        if starts[0] != 0 or starts[-1] != rows.shape[0] or (np.diff(starts) < 0).any():
            raise ModelFileError("its nearest rows and their labels do not fit together")
        if curve.shape != KNOTS.shape or curve.dtype != np.float64 or not np.isfinite(curve).all():
            raise ModelFileError("its curve of likeness is not one")
        if not (np.isfinite(self.scale_) and self.scale_ >= 0):
            raise ModelFileError("its scores are multiplied by an impossible number")


def _unit(X: sp.csr_array) -> sp.csr_array:
    """Rows of unit length; rows of zeros stay as they are."""
    X = sp.csr_array(X, dtype=np.float32, copy=True)
    X.sum_duplicates()
    return normalize(X, copy=False) if X.shape[0] else X  # which it would refuse
