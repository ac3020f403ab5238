"""What a model keeps of its validation rows: probabilities fitted to them, and how right they were."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from locole.calibration.conformal import Method, SetRule, pseudo_uniform, set_rule
from locole.calibration.probabilities import Probabilities, places_of
from locole.calibration.thresholds import Threshold, coverage_threshold, error_threshold
from locole.exceptions import LocoleError, ModelFileError
from locole.io import SavedEstimator, saved_as
from locole.label_past import Relabelling
from locole.parallel.blocks import one_blas_thread
from locole.scoring.base import ValidationScores

__all__ = ["MIN_ROWS", "Calibration"]

# Parts of the validation rows, each of which is judged by what was fitted to the others.
_FOLDS = 5
#: Fewer validation rows fit nothing.
MIN_ROWS = 20


@saved_as("calibration")
class Calibration(SavedEstimator, BaseEstimator):
    """Probabilities of labels, fitted to validation rows, and a table of these rows.

    Rows of labels that the model could not know when they were scored are left out: probabilities are
    those of a row whose label is known. The table is made by cross-fitting: each row's probabilities
    are those that the other rows give, so that thresholds and sets are not judged by what was fitted
    to them.

    Attributes
    ----------
    scale_, knots_, coef_, others_ : float and arrays
        Of `Probabilities`.
    evidence_ : array of shape (rows, 4)
        Of each validation row: probability of the answer, probability of the right label, mass of the
        labels before it, and a number in [0, 1) for ties. Without rows probabilities are a guess.
    labels_ : array of shape (rows,)
        Codes of the right labels.
    counts_ : array of shape (n_classes,)
        Training rows of each label.
    """

    _learnt: ClassVar = {
        "scale_": float,
        "knots_": np.ndarray,
        "coef_": np.ndarray,
        "others_": np.ndarray,
        "evidence_": np.ndarray,
        "labels_": np.ndarray,
        "counts_": np.ndarray,
    }

    # Make ---------------------------------------------------------------------------------------

    def fit(self, found: ValidationScores, counts: NDArray[np.int64]) -> Self:
        """Fit to the scores of validation rows.

        Parameters
        ----------
        found : ValidationScores
            The best labels of the validation rows, and their scores.
        counts : array of shape (n_classes,)
            Training rows of each label.
        """
        with one_blas_thread():  # others would only wait for each other in such small products
            self._fit(found, counts)
        return self

    def _fit(self, found: ValidationScores, counts: NDArray[np.int64]) -> None:
        n_classes = counts.size
        # Candidates of several scorers repeat; the places after all labels are empty.
        places, scores = places_of(found.right), found.scores[:, :n_classes]
        weight = found.samples.weight
        whole = Probabilities.fit(scores, places, n_classes=n_classes, weight=weight)
        self._set(whole)
        proba, before = np.empty((2, len(scores)))
        sure = np.empty(len(scores))
        for fold in range(_FOLDS):
            mine = np.arange(len(scores)) % _FOLDS == fold
            part = None if weight is None else weight[~mine]
            other = Probabilities.fit(
                scores[~mine], places[~mine], n_classes=n_classes, weight=part
            )
            sure[mine], proba[mine], before[mine] = _judged(
                other, scores[mine], places[mine], n_classes
            )
        self.evidence_ = np.column_stack([sure, proba, before, pseudo_uniform(scores)])
        self.labels_, self.counts_ = found.samples.codes.copy(), counts

    def guess(
        self, scores: NDArray, counts: NDArray[np.int64], *, weight: NDArray | None = None
    ) -> Self:
        """Without validation rows, by scores of any rows.

        Parameters
        ----------
        scores : array of shape (rows, k)
            Best scores of some rows, falling.
        counts : array of shape (n_classes,)
            Training rows of each label.
        weight : array of shape (rows,), optional
            How much each row counts.
        """
        self._set(Probabilities.guess(scores, n_classes=counts.size, weight=weight))
        self.evidence_, self.labels_ = np.empty((0, 4)), np.empty(0, dtype=np.int64)
        self.counts_ = counts
        return self

    def grown(self, more: NDArray[np.int64]) -> Calibration:
        """The same for a model that has learnt more rows, ``more`` of each label.

        Parameters
        ----------
        more : array of shape (n_classes,)
            New training rows of each label.
        """
        other = Calibration()
        other.__dict__.update(vars(self))
        known = np.pad(self.counts_, (0, more.size - self.counts_.size))
        other.counts_ = np.maximum(known + more, 0)
        return other

    def relabelled(self, change: Relabelling) -> Calibration:
        """The same with other codes of labels; validation rows of labels that are gone are left out.

        Parameters
        ----------
        change : Relabelling
            The new codes.
        """
        other = Calibration()
        other.__dict__.update(vars(self))
        labels = change.codes[self.labels_]
        other.evidence_, other.labels_ = self.evidence_[labels >= 0], labels[labels >= 0]
        other.counts_ = change.added(self.counts_)
        return other

    def _set(self, found: Probabilities) -> None:
        self.scale_, self.knots_, self.coef_, self.others_ = found

    # Ask ----------------------------------------------------------------------------------------

    @property
    def n_rows(self) -> int:
        """Number of validation rows; 0 if probabilities are a guess."""
        return len(self.evidence_)

    @property
    def n_classes(self) -> int:
        """Number of labels."""
        return self.counts_.size

    @property
    def probabilities(self) -> Probabilities:
        """From scores to probabilities."""
        return Probabilities(self.scale_, self.knots_, self.coef_, self.others_)

    def log_proba(self, scores: NDArray) -> NDArray[np.float64]:
        """Logarithms of the probabilities of the best labels, given `SHORT_LIST` scores or more.

        Parameters
        ----------
        scores : array of shape (rows, k)
            Best scores of each row, falling.
        """
        return self.probabilities.log_proba(scores, n_classes=self.n_classes)

    def threshold(
        self, *, max_error: float | None, coverage: float | None, confidence: float
    ) -> Threshold:
        """Threshold for one of the two.

        Parameters
        ----------
        max_error : float, optional
            Largest share of wrong answers among those that are given.
        coverage : float, optional
            Smallest share of rows that are answered.
        confidence : float
            Probability with which the bound on the error holds.
        """
        self._needs_rows()
        sure, _, before, _ = self.evidence_.T
        if max_error is not None:
            return error_threshold(sure, before == 0, max_error=max_error, confidence=confidence)
        return coverage_threshold(
            sure, before == 0, coverage=coverage or 0.0, confidence=confidence
        )

    def set_rule(self, *, coverage: float, method: Method, by_frequency: bool) -> SetRule:
        """Rule for label sets.

        Parameters
        ----------
        coverage : float
            Smallest probability with which a set holds the right label.
        method : {"lac", "aps"}
            How sets are made; see `locole.calibration.set_rule`.
        by_frequency : bool
            Whether coverage is guaranteed in each band of labels by frequency.
        """
        self._needs_rows()
        _, proba, before, uniform = self.evidence_.T
        return set_rule(
            proba, before, uniform, self.counts_[self.labels_],
            coverage=coverage, method=method, by_frequency=by_frequency,
        )  # fmt: skip

    def _needs_rows(self) -> None:
        if self.n_rows < MIN_ROWS:
            raise LocoleError(
                "the model has no validation rows that would say how right it is: call calibrate(X, y) "
                "with rows that it has not learnt."
            )

    # Save ---------------------------------------------------------------------------------------

    def _check_learnt(self) -> None:
        knots, coef, others = self.knots_, self.coef_, self.others_
        evidence, labels, counts = self.evidence_, self.labels_, self.counts_
        floats = (knots, coef, others, evidence)
        fits = (
            0 < self.scale_ < np.inf
            and all(array.dtype == np.float64 and np.isfinite(array).all() for array in floats)
            and knots.ndim == 2
            and knots.shape[0] == 2
            and coef.shape == (2 * knots.shape[1] + 3,)
            and others.shape == (3,)
            and others[0] >= 0
            and evidence.ndim == 2
            and evidence.shape[1] == 4
            and bool(((evidence >= 0) & (evidence <= 1 + 1e-9)).all())
            and labels.dtype == counts.dtype == np.int64
            and labels.shape == (len(evidence),)
            and counts.ndim == 1
            and bool((counts >= 0).all())
            and bool(((labels >= 0) & (labels < counts.size)).all())
        )
        if not fits:
            raise ModelFileError("its probabilities and validation rows do not fit together")


def _judged(
    found: Probabilities, scores: NDArray, places: NDArray[np.int64], n_classes: int
) -> tuple[NDArray, NDArray, NDArray]:
    """Probability of the answer, of the right label, and of all labels before it."""
    proba = np.exp(found.log_proba(scores, n_classes=n_classes))
    before = np.cumsum(proba, axis=1) - proba
    at = np.maximum(places, 0)[:, None]
    is_found = places >= 0
    own = np.where(is_found, np.take_along_axis(proba, at, 1)[:, 0], 0.0)
    ahead = np.where(is_found, np.take_along_axis(before, at, 1)[:, 0], 1.0)
    return proba[:, 0], own, np.clip(ahead, 0.0, 1.0)
