"""The nearest training row of a label: rerank the best labels by their cosine similarity to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from locole.delta_rows import DeltaRows
from locole.dense_rows import DenseRows
from locole.exceptions import LocoleError, ModelFileError
from locole.io import saved_as
from locole.io.trust import check_pointers
from locole.kernels.csr import Csr
from locole.kernels.nearest import Lines, nearest_dense_rows, nearest_rows
from locole.label_past import Relabelling
from locole.regressors.storage import pack
from locole.samples import Rows, Samples
from locole.scoring.base import Codes, LabelScorer, ValidationScores, best_of
from locole.scoring.label_table import LabelTable
from locole.scoring.weights import first_is_right, fit_weights
from locole.scoring.whitening import unit
from locole.sparse_rows import row_squares, unit_rows

__all__ = ["KNOTS", "RERANKED", "Evidence", "NearestScorer"]

#: Labels of a row whose training rows are looked at: the best ones by their score.
RERANKED = 8
#: Similarities between which the curve is linear.
KNOTS = np.array([0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0])
#: Rows that are more similar are taken to be equal: rounding leaves cosines this close to 1.
SAME = 1 - 1e-5
# Cosines of dense rows above which they are taken to be equal: those in bytes err by less.
_SAME_IN_BYTES = 0.998
# Largest number that a byte holds with its sign.
_MOST_IN_BYTE = 127
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
    rows_ : DeltaRows or array of shape (n_rows, n_features)
        Training rows, label by label; of each label the last 2,048. A byte for each number.
    row_scales_ : array of shape (n_rows,) or None
        What multiplies the bytes of each row, so that it is of unit length; None for sparse rows of
        float32, in old files.
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
        "rows_": (DeltaRows, sp.csr_array, np.ndarray),
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
        none = np.empty((0, samples.X.shape[1]), dtype=np.int8)
        is_dense = isinstance(samples.X, DenseRows)
        self.rows_: Any = none if is_dense else DeltaRows.of(sp.csr_array(none))
        self.row_scales_: NDArray[np.float32] | None = np.empty(0, dtype=np.float32)
        self.starts_ = np.zeros(1, dtype=np.int64)
        self.scale_, self.curve_ = 1.0, KNOTS.copy()
        return self.partial_fit(samples)

    def partial_fit(self, samples: Samples) -> Self:
        """Keep more rows, which may have more labels; one with several labels is kept for each."""
        samples = samples.positive().single()
        codes = np.concatenate([self._codes(), samples.codes])
        self._keep(codes, samples.n_classes, samples.csr if self.grows else samples.dense)
        return self

    @property
    def grows(self) -> bool:
        """Whether rows are sparse."""
        return isinstance(self.rows_, DeltaRows)

    def grow(self, n_features: int) -> None:
        """Add features that no row has."""
        self.rows_ = self.rows_.widened(n_features)

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
            equal = places(i, np.arange(first, last))
            left = equal[codes[equal] >= 0]
            if left.size == 0 and last - first < _MOST:
                raise LocoleError(
                    f"row {i} of those with a label was not learnt: only what was learnt can be "
                    "forgotten."
                )
            codes[left[:1]] = -1
        self._keep(codes, self.n_classes)
        return {self.name: "exactly"}

    def _equal_places(
        self, samples: Samples
    ) -> Callable[[int, NDArray[np.int64]], NDArray[np.int64]]:
        """Return a function from a sample and places of rows to those of rows that are equal to it."""
        known, known_scales = self._in_bytes()
        if isinstance(known, DeltaRows):
            rows = DeltaRows.of(_packed(samples.csr)[0])
            return lambda i, places: _equal_rows(known, places, rows.take(np.array([i])))
        numbers, scales = pack(unit(samples.dense[:]), "int8")

        def equal(i: int, places: NDArray[np.int64]) -> NDArray[np.int64]:
            same = (known[places] == numbers[i]).all(axis=1) & (known_scales[places] == scales[i])
            return places[same]

        return equal

    def _in_bytes(self) -> tuple[Any, NDArray[np.float32]]:
        """Rows and their scales, also where an old file has rows of float32."""
        if self.row_scales_ is not None:
            return self.rows_, self.row_scales_
        numbers, scales = _packed(self.rows_.csr())
        return DeltaRows.of(numbers), scales

    def _codes(self) -> Codes:
        """Label of each row that is kept."""
        return np.repeat(np.arange(self.n_classes), np.diff(self.starts_))

    def _keep(self, codes: Codes, n_classes: int, more: Any = None) -> None:
        """Keep the last rows of each label, of those there are and of ``more``; −1 is no label."""
        order = np.argsort(codes, kind="stable")[np.count_nonzero(codes < 0) :]
        counts = np.bincount(codes[order], minlength=n_classes)
        order = order[np.arange(order.size) >= np.repeat(np.cumsum(counts) - _MOST, counts)]
        rows, scales = self._in_bytes()
        n_known = rows.shape[0]
        kept = np.sort(order)
        old, new = np.split(kept, [np.searchsorted(kept, n_known)])
        is_sparse = isinstance(rows, DeltaRows)
        rows, scales = rows.take(old) if is_sparse else rows[old], scales[old]
        if more is not None and is_sparse:
            numbers, others = _packed(more[new - n_known])
            rows = DeltaRows.stacked([rows, DeltaRows.of(numbers)])
            scales = np.concatenate([scales, others])
        elif more is not None:
            numbers, others = pack(unit(more[new - n_known]), "int8")
            rows, scales = np.concatenate([rows, numbers]), np.concatenate([scales, others])
        place = np.searchsorted(kept, order)
        self.rows_ = rows.take(place) if is_sparse else rows[place]
        self.row_scales_ = scales[place]
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
        return self.similarity(rows.csr if self.grows else rows.dense, codes)

    def similarity(self, X: Any, codes: Codes) -> NDArray[np.float32]:
        """Cosine of each row and the nearest row of each of its labels ``codes``, at least 0.

        Parameters
        ----------
        X : CSR array, or array if rows are dense
            Rows.
        codes : array of shape (rows, labels)
            Codes of labels for each row.
        """
        codes, known = np.ascontiguousarray(codes), self.rows_
        out = np.empty(codes.shape, dtype=np.float32)
        if not isinstance(known, DeltaRows):
            points = unit(X).ravel()
            nearest_dense_rows(points, self.starts_, known.ravel(), self.row_scales_, codes, out)
            out[out > _SAME_IN_BYTES] = 1
            return out
        if self.row_scales_ is not None:
            rows, scales = _packed(X)
            room, known_scales = np.zeros(X.shape[1], dtype=np.int32), self.row_scales_
        else:
            rows, scales = unit_rows(_canonical(X)), np.ones(X.shape[0], dtype=np.float32)
            room, known_scales = (
                np.zeros(X.shape[1], dtype=np.float32),
                np.ones(known.shape[0], "f4"),
            )
        lines = Lines(self.starts_, known.starts, known.steps, known.values, known_scales)
        nearest_rows(Csr.of(rows), scales, lines, codes, room, out)
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
        if sp.issparse(self.rows_):  # in old files
            self.rows_ = DeltaRows.of(self.rows_)
        rows, starts, curve = self.rows_, self.starts_, self.curve_
        if not _are_sound(rows, self.row_scales_):
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


def _equal_rows(rows: DeltaRows, places: NDArray[np.int64], one: DeltaRows) -> NDArray[np.int64]:
    """Those of some rows that have the same entries as ``one``, a single row."""
    same = places[rows.counts(places) == one.steps.size]
    some, shape = rows.take(same), (same.size, one.steps.size)
    is_same = (some.steps.reshape(shape) == one.steps) & (some.values.reshape(shape) == one.values)
    return same[is_same.all(axis=1)]


def _shares(similarity: NDArray) -> NDArray[np.float64]:
    """How much of each knot but the first is in a similarity: the curve is linear in these."""
    share = np.eye(KNOTS.size)[1:]
    return np.stack([np.interp(similarity, KNOTS, row) for row in share], axis=-1)


def _packed(X: Any) -> tuple[sp.csr_array, NDArray[np.float32]]:
    """Rows in bytes, and what makes them rows of unit length; rows of zeros stay as they are.

    Because the largest number of a row is always 127, rows that differ by a factor have the same bytes,
    and a cosine of exactly 1.
    """
    X = _canonical(X)
    n_entries = np.diff(X.indptr)
    some = np.flatnonzero(n_entries)
    if some.size:
        largest = np.maximum.reduceat(np.abs(X.data), X.indptr[some])
        X.data /= np.repeat(largest, n_entries[some])
    numbers = np.rint(_MOST_IN_BYTE * X.data).astype(np.int8)
    X = sp.csr_array((numbers, X.indices, X.indptr), X.shape)
    lengths = np.sqrt(row_squares(X))
    return X, (1 / np.where(lengths > 0, lengths, 1)).astype(np.float32)


def _canonical(X: Any) -> sp.csr_array:
    """The same rows in float32, sorted, without duplicates and zeros."""
    X = sp.csr_array(X, dtype=np.float32, copy=True)
    X.sum_duplicates()
    X.eliminate_zeros()
    return X


def _are_sound(rows: Any, scales: NDArray | None) -> bool:
    """Whether rows are bytes with a scale for each, or sparse rows of float32 without scales."""
    if not isinstance(rows, DeltaRows):
        return rows.dtype == np.int8 and LabelTable.of(rows, scales).is_sound()
    if scales is None:
        return rows.values.dtype == np.float32 and bool(np.isfinite(rows.values).all())
    fits = scales.dtype == np.float32 and scales.shape == rows.shape[:1]
    return bool(rows.values.dtype == np.int8 and fits and np.isfinite(scales).all())
