"""The nearest training row of a label: rerank the best labels by their cosine similarity to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.preprocessing import normalize

from locole.dense_rows import DenseRows
from locole.exceptions import LocoleError, ModelFileError
from locole.io import saved_as
from locole.io.trust import check_pointers
from locole.kernels.nearest import nearest_dense_rows, nearest_rows
from locole.label_past import Relabelling
from locole.regressors.storage import pack
from locole.samples import Rows, Samples
from locole.scoring.base import Codes, LabelScorer, ValidationScores, best_of
from locole.scoring.label_table import LabelTable
from locole.scoring.weights import first_is_right, fit_weights
from locole.scoring.whitening import unit

__all__ = ["KNOTS", "RERANKED", "Evidence", "NearestScorer"]

#: Labels of a row whose training rows are looked at: the best ones by their score.
RERANKED = 8
#: Similarities between which the curve is linear.
KNOTS = np.array([0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0])
#: Rows that are more similar are taken to be equal: float32 leaves cosines this close to 1.
SAME = 1 - 1e-5
# Cosines of dense rows above which they are taken to be equal: rows in bytes err by less.
_SAME_IN_BYTES = 0.998
# Rows of a label that are kept: the last. Frequent labels would take most of the time.
_MOST = 2048


@saved_as("scorer.nearest")
class NearestScorer(LabelScorer):
    r"""Rerank the best labels of a row by the similarity of the nearest training row of each.

    .. math:: s'_i = a s_i + c\Big(\max_{r: y_r = i} \frac{\langle x, x_r \rangle}{\|x\| \|x_r\|}\Big)

    The curve c is linear between ``KNOTS``, 0 at similarity 0 and fitted to validation rows: it need not
    rise. Where every label has one row of a kind (laws, and when each comes into force), a row that is
    all but equal speaks *against* its label, which no sum over features can say. A label that has the
    very row gets the curve's largest value: that is what was learnt.

    As a scorer of its own it gives each label ``c(similarity)``, before the curve is fitted the
    similarity itself.

    Attributes
    ----------
    rows_ : CSR array or array of shape (n_rows, n_features)
        Training rows of unit length, label by label; of each label the last 2,048. Dense rows are in one
        byte for each number, to be multiplied by ``row_scales_``.
    row_scales_ : array of shape (n_rows,) or None
        Of dense rows; None for sparse ones.
    starts_ : array of shape (n_classes + 1,)
        Where the rows of each label begin.
    scale_ : float
        a.
    curve_ : array of shape (knots,)
        Values of c at the knots.

    Examples
    --------
    >>> X = sp.csr_array(np.array([[1.0, 0, 0], [1, 1, 0], [0, 0, 1]]))
    >>> scorer = NearestScorer().fit(Samples(X, np.array([0, 0, 1]), n_classes=2))
    >>> scorer.similarity(X[:1], np.array([[0, 1]]))
    array([[1., 0.]], dtype=float32)
    """

    name = "nearest rows"
    stage = 2
    _learnt: ClassVar = {
        "rows_": (sp.csr_array, np.ndarray),
        "row_scales_": (np.ndarray, type(None)),
        "starts_": np.ndarray,
        "scale_": float,
        "curve_": np.ndarray,
    }

    @property
    def n_classes(self) -> int:
        """Number of labels."""
        return self.starts_.size - 1

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.rows_.shape[1]

    def fit(self, samples: Samples, *, before: Sequence[LabelScorer] = ()) -> Self:
        """Keep rows and their labels."""
        none = (0, samples.X.shape[1])
        is_dense = isinstance(samples.X, DenseRows)
        self.rows_: Any = np.empty(none, "i1") if is_dense else sp.csr_array(none, dtype=np.float32)
        self.row_scales_ = np.empty(0, dtype=np.float32) if is_dense else None
        self.starts_ = np.zeros(1, dtype=np.int64)
        self.scale_, self.curve_ = 1.0, KNOTS.copy()
        return self.partial_fit(samples)

    def partial_fit(self, samples: Samples) -> Self:
        """Keep more rows, which may have more labels; one with several labels is kept for each."""
        samples = samples.positive().single()
        codes = np.concatenate([self._codes(), samples.codes])
        is_sparse = self.row_scales_ is None
        self._keep(codes, samples.n_classes, samples.csr if is_sparse else samples.dense)
        return self

    @property
    def grows(self) -> bool:
        """Whether rows are sparse."""
        return self.row_scales_ is None

    def grow(self, n_features: int) -> None:
        """Add features that no row has."""
        self.rows_ = self.rows_.copy()
        self.rows_.resize(self.rows_.shape[0], n_features)

    def relabel(self, change: Relabelling) -> None:
        """Give the rows of merged labels to the labels that these became."""
        self._keep(change.codes[self._codes()], change.n_classes)

    def forget(self, samples: Samples) -> dict[str, str]:
        """Leave out one equal row for each; rows that were more than 2,048 ago are gone already."""
        samples = samples.positive().single()
        codes = self._codes()
        places = self._equal_places(samples)
        for i, code in enumerate(samples.codes):
            first, last = self.starts_[code], self.starts_[code + 1]
            equal = first + places(i, slice(first, last))
            left = equal[codes[equal] >= 0]
            if left.size == 0 and last - first < _MOST:
                raise LocoleError(
                    f"row {i} of those with a label was not learnt: only what was learnt can be "
                    "forgotten."
                )
            codes[left[:1]] = -1
        self._keep(codes, self.n_classes)
        return {self.name: "exactly"}

    def _equal_places(self, samples: Samples) -> Callable[[int, slice], NDArray[np.int64]]:
        """Return a function from a sample and a part of the rows to places of those that are equal."""
        if self.row_scales_ is None:
            rows = _unit(samples.csr)
            return lambda i, part: _equal_rows(self.rows_[part], rows[[i]])
        numbers, scales, known = *pack(unit(samples.dense[:]), "int8"), self.row_scales_

        def equal(i: int, part: slice) -> NDArray[np.int64]:
            same = (self.rows_[part] == numbers[i]).all(axis=1) & (known[part] == scales[i])
            return np.flatnonzero(same)

        return equal

    def _codes(self) -> Codes:
        """Label of each row that is kept."""
        return np.repeat(np.arange(self.n_classes), np.diff(self.starts_))

    def _keep(self, codes: Codes, n_classes: int, more: Any = None) -> None:
        """Keep the last rows of each label, of those there are and of ``more``; −1 is no label."""
        order = np.argsort(codes, kind="stable")[np.count_nonzero(codes < 0) :]
        counts = np.bincount(codes[order], minlength=n_classes)
        order = order[np.arange(order.size) >= np.repeat(np.cumsum(counts) - _MOST, counts)]
        n_known = self.rows_.shape[0]
        kept = np.sort(order)
        old, new = np.split(kept, [np.searchsorted(kept, n_known)])
        rows, place = self.rows_[old], np.searchsorted(kept, order)
        if self.row_scales_ is None:
            if more is not None:
                rows = sp.vstack([rows, _unit(more[new - n_known])], format="csr")
            self.rows_ = sp.csr_array(rows[place])
        else:
            scales = self.row_scales_[old]
            if more is not None:
                numbers, others = pack(unit(more[new - n_known]), "int8")
                rows, scales = np.concatenate([rows, numbers]), np.concatenate([scales, others])
            self.rows_, self.row_scales_ = rows[place], scales[place]
        self.starts_ = np.append(0, np.cumsum(np.minimum(counts, _MOST)))

    def add_labels(self, n_classes: int) -> Self:
        """Know labels without rows, which are near to nothing."""
        self.starts_ = np.pad(self.starts_, (0, n_classes - self.n_classes), mode="edge")
        return self

    # Score --------------------------------------------------------------------------------------

    def similarity_of(self, rows: Rows, codes: Codes) -> NDArray[np.float32]:
        """`similarity` of rows in the form in which they are kept here, sparse or dense.

        Parameters
        ----------
        rows : Rows
            Rows to score.
        codes : array of shape (rows, labels)
            Codes of labels for each row.
        """
        return self.similarity(rows.csr if self.row_scales_ is None else rows.dense, codes)

    def similarity(self, X: Any, codes: Codes) -> NDArray[np.float32]:
        """Cosine of each row and the nearest row of each of its labels ``codes``, at least 0.

        Parameters
        ----------
        X : CSR array, or array if dense rows were kept
            Rows.
        codes : array of shape (rows, labels)
            Codes of labels for each row.
        """
        codes, rows = np.ascontiguousarray(codes), self.rows_
        out = np.empty(codes.shape, dtype=np.float32)
        if self.row_scales_ is not None:
            points = unit(X).ravel()
            nearest_dense_rows(points, self.starts_, rows.ravel(), self.row_scales_, codes, out)
            out[out > _SAME_IN_BYTES] = 1
            return out
        X = _unit(X)
        room = np.zeros(X.shape[1], dtype=np.float32)
        nearest_rows(
            X.indptr, X.indices, X.data, self.starts_, rows.indptr, rows.indices, rows.data,
            codes, room, out,
        )  # fmt: skip
        return out

    def candidates(self, rows: Rows, k: int) -> tuple[Codes, NDArray]:
        """Labels with the largest value of the curve, found by looking at all."""
        return best_of(self.all_scores(rows), k)

    def scores_at(self, rows: Rows, codes: Codes) -> NDArray:
        """Values of the curve at the similarity of each label's nearest row."""
        return self.curve_at(self.similarity_of(rows, codes))

    def curve_at(self, similarity: NDArray[np.float32]) -> NDArray[np.float64]:
        """Values of the curve.

        Parameters
        ----------
        similarity : array
            Cosine similarities.
        """
        said = np.interp(similarity, KNOTS, self.curve_)
        said[similarity > SAME] = self.curve_.max()
        return said

    def rerank(
        self, rows: Rows, codes: Codes, scores: NDArray[np.float64]
    ) -> tuple[Codes, NDArray[np.float64]]:
        """Put the labels of each row, given best first, into their new order, with their new scores.

        Labels after the eighth are taken to be where the curve is lowest: they keep their order, and
        stay behind.

        Parameters
        ----------
        rows : Rows
            Rows to score.
        codes : array of shape (rows, labels)
            Labels to rerank, best first.
        scores : array of shape (rows, labels)
            Their scores.
        """
        said = np.full(scores.shape, self.curve_.min())
        said[:, :RERANKED] = self.scores_at(rows, codes[:, :RERANKED])
        new = self.scale_ * scores + said
        order = np.lexsort((codes, -new), axis=1)
        return np.take_along_axis(codes, order, 1), np.take_along_axis(new, order, 1)

    def _check_learnt(self) -> None:
        rows, starts, curve = self.rows_, self.starts_, self.curve_
        is_sound = (
            rows.dtype == np.float32 and bool(np.isfinite(rows.data).all())
            if sp.issparse(rows) and self.row_scales_ is None
            else rows.dtype == np.int8 and LabelTable.of(rows, self.row_scales_).is_sound()
        )
        if not is_sound:
            raise ModelFileError("its nearest rows are not numbers")
        check_pointers(starts, "nearest rows of labels", end=rows.shape[0], dtypes=("int64",))
        if curve.shape != KNOTS.shape or curve.dtype != np.float64 or not np.isfinite(curve).all():
            raise ModelFileError("its curve of similarity is invalid")
        if not (np.isfinite(self.scale_) and self.scale_ >= 0):
            raise ModelFileError("its scores are multiplied by an invalid number")


class Evidence(NamedTuple):
    """The best candidates of validation rows: scores, similarities, and which one is right.

    Validation rows that are also among the training rows are left out: nothing is learnt from them
    about rows that are new.
    """

    inputs: NDArray[np.float64]
    """First-stage score, and the share of each knot but the first; shape (rows, candidates, knots)."""
    right: NDArray[np.bool_]
    valid: NDArray[np.bool_]
    weight: NDArray | None

    @classmethod
    def gather(cls, ranked: ValidationScores, near: NDArray[np.float32]) -> Self:
        """Evidence from the best labels of each row and the similarities of so many of them."""
        k = near.shape[1]
        totals = ranked.scores[:, :k]
        valid = totals > -np.inf
        right = ranked.right[:, :k] & valid
        inputs = np.concatenate([np.where(valid, totals, 0.0)[..., None], _shares(near)], axis=-1)
        new = ~(near > SAME).any(axis=1)
        weight = ranked.samples.weight
        return cls(inputs[new], right[new], valid[new], None if weight is None else weight[new])

    def fit(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Scale and values of the curve that make the labels of these rows most likely."""
        weight = None if self.weight is None else self.weight[rows]
        is_curve = np.arange(KNOTS.size) > 0  # after the scale
        return fit_weights(
            self.inputs[rows], self.right[rows], self.valid[rows], weight, signed=is_curve
        )

    def counts(self) -> tuple[int, int, bool]:
        """Rows right before and after reranking, each half by the curve of the other half.

        Also whether more rows turn right than wrong by two standard deviations of a fair coin.
        """
        half = np.arange(len(self.inputs)) % 2
        total = np.full(self.valid.shape, -np.inf)
        for part in (0, 1):
            weights = self.fit(np.flatnonzero(half != part))
            total[half == part] = self.inputs[half == part] @ weights
        before, after = self.right[:, 0], first_is_right(total, self.right, self.valid)
        gained, lost = (int(np.count_nonzero(rows)) for rows in (after & ~before, before & ~after))
        return int(before.sum()), int(after.sum()), gained - lost > 2 * (gained + lost) ** 0.5

    def fit_curve(self, scorer: NearestScorer) -> None:
        """Give the scorer the scale and the curve that all rows ask for."""
        weights = self.fit(np.arange(len(self.inputs)))
        scorer.scale_ = float(weights[0])
        scorer.curve_ = np.append(0.0, weights[1:])


def _equal_rows(rows: sp.csr_array, one: sp.csr_array) -> NDArray[np.int64]:
    """Places of the rows that have the same entries."""
    counts = np.diff(rows.indptr)
    same = np.flatnonzero(counts == one.nnz)
    if one.nnz == 0:
        return same
    some = sp.csr_array(rows[same])
    shape = (same.size, one.nnz)
    equal = (some.indices.reshape(shape) == one.indices) & (some.data.reshape(shape) == one.data)
    return same[equal.all(axis=1)]


def _shares(similarity: NDArray) -> NDArray[np.float64]:
    """How much of each knot but the first is in a similarity: the curve is linear in these."""
    share = np.eye(KNOTS.size)[1:]
    return np.stack([np.interp(similarity, KNOTS, row) for row in share], axis=-1)


def _unit(X: Any) -> sp.csr_array:
    """Rows of unit length; rows of zeros stay as they are."""
    X = sp.csr_array(X, dtype=np.float32, copy=True)
    X.sum_duplicates()
    return normalize(X, copy=False) if X.shape[0] else X  # which it would refuse
