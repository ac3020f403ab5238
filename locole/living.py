"""Changing labels: rename, merge and retire them, forget rows, take more features."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from locole.atomic import all_or_nothing
from locole.calibration import MIN_ROWS, Calibration, Marginals
from locole.exceptions import LocoleError, ModelFileError
from locole.label_past import LabelPast, Relabelling
from locole.samples import Samples
from locole.scoring import LabelScorer
from locole.scoring.base import ValidationScores

__all__ = ["LivingLabels"]


class LivingLabels:
    """What a classifier with a `LabelScorer` can do to its labels after a fit.

    Each of the methods changes the model in one step and undoes nothing else. What is done is kept in
    ``past_.journal_``.

    Attributes
    ----------
    past_ : LabelPast or None
        Names that labels had, and the journal; None if nothing has happened.
    label_rows_ : array of shape (n_classes,), or None
        Rows of each label that were learnt; None in old files.
    """

    _learnt: ClassVar[dict[str, Any]] = {
        "past_": (LabelPast, type(None)),
        "label_rows_": (np.ndarray, type(None)),
    }
    classes_: NDArray
    scorer_: LabelScorer
    calibration_: Calibration | None
    marginals_: Marginals | None
    multilabel_: str | None
    past_: LabelPast | None = None
    label_rows_: NDArray[np.int64] | None = None

    @all_or_nothing
    def rename_labels(self, names: Mapping[Any, Any]) -> Self:
        """Give labels other names; all scores stay as they are.

        Parameters
        ----------
        names : dict of label to label
            Old and new name. Two labels may exchange their names. The old name is free again: rows that
            come under it are those of a new label.

        Returns
        -------
        LocoleClassifier
            Itself.
        """
        check_is_fitted(self)
        self.classes_, self.past_ = self._past().renamed(self.classes_, names)
        return self

    @all_or_nothing
    def merge_labels(self, names: Mapping[Any, Any]) -> Self:
        """Merge labels into others: their rows count as rows of these from now on.

        Profiles and nearest rows are those of a fit to rows with the new labels. The regressors' points
        are mapped so that evidence for the old label counts for the one that is kept; factors are
        averaged. Rows that `partial_fit` gets under the old name count for the label that is kept.

        Parameters
        ----------
        names : dict of label to label
            Label that is merged, and label that is kept.

        Returns
        -------
        LocoleClassifier
            Itself.
        """
        check_is_fitted(self)
        self._relabel(*self._past().merged(self.classes_, names))
        return self

    @all_or_nothing
    def retire_labels(self, labels: Sequence[Any]) -> Self:
        """Never answer with these labels again.

        Their vectors are not given to other labels, and rows that `partial_fit` is given under these
        names are skipped. Profiles and nearest rows are those of a fit without the labels' rows;
        scores by other parts do not change.

        Parameters
        ----------
        labels : sequence of labels
            All of them known.

        Returns
        -------
        LocoleClassifier
            Itself.
        """
        check_is_fitted(self)
        self._relabel(*self._past().without(self.classes_, labels))
        return self

    @all_or_nothing
    def forget(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Take out rows that were learnt.

        How far each part has forgotten them is in the last entry of ``past_.journal_``: profiles
        *exactly* (but for how much each feature counts), nearest rows *exactly*, the elastic net
        *nearly*, prototypes *partly* (their means), factors and networks *not*. Validation rows among
        them are forgotten too.

        Parameters
        ----------
        X, y, sample_weight
            As they were given to `fit` or `partial_fit`.

        Returns
        -------
        LocoleClassifier
            Itself.
        """
        check_is_fitted(self)
        known = self.classes_
        samples, wanted = self._samples(X, y, sample_weight=sample_weight, more=True)  # type: ignore[attr-defined]
        if wanted.size > known.size:
            raise LocoleError(
                f"the model does not know the label {str(wanted[known.size])!r}: only what was learnt "
                "can be forgotten."
            )
        counts = samples.label_counts
        if self.label_rows_ is not None and (counts > self.label_rows_).any():
            short = str(known[np.flatnonzero(counts > self.label_rows_)[0]])
            raise LocoleError(
                f"there are more rows of {short!r} than were learnt: only what was learnt can be "
                "forgotten."
            )
        self.scorer_ = copy.copy(self.scorer_)
        said = self.scorer_.forget(samples)
        self._has_learnt(samples, sign=-1)
        self.past_ = self._past().noted("forget", rows=samples.n_rows, parts=said)
        return self

    @all_or_nothing
    def grow_features(self, n_features: int) -> Self:
        """Take rows with more features from now on, which say nothing until they are learnt.

        Parameters
        ----------
        n_features : int
            How many there are then.

        Returns
        -------
        LocoleClassifier
            Itself.
        """
        check_is_fitted(self)
        known = int(self.n_features_in_)  # type: ignore[has-type]
        if n_features < known:
            raise LocoleError(f"the model has {known} features: n_features must not be less.")
        if n_features > known:
            self.scorer_ = copy.copy(self.scorer_)
            self.scorer_.grow(n_features)
            self.n_features_in_ = n_features
        return self

    @property
    def grows(self) -> bool:
        """Whether `grow_features` can add features."""
        return self.scorer_.grows

    # What all of them need ----------------------------------------------------------------------

    def _past(self) -> LabelPast:
        return LabelPast.none(self.classes_) if self.past_ is None else self.past_

    def _relabel(self, classes: NDArray, change: Relabelling, past: LabelPast) -> None:
        scorer = copy.copy(self.scorer_)
        scorer.relabel(change)
        self.scorer_, self.classes_, self.past_ = scorer, classes, past
        if self.label_rows_ is not None:
            self.label_rows_ = change.added(self.label_rows_)
        if self.calibration_ is not None:
            self.calibration_ = self.calibration_.relabelled(change)
        if self.marginals_ is not None:
            self.marginals_ = self.marginals_.relabelled(change)

    def _has_learnt(self, samples: Samples, *, sign: int = 1) -> None:
        """Count rows, and fit probabilities to the validation rows if the scorer has weighed these."""
        more = sign * samples.label_counts
        if self.label_rows_ is not None:
            known = np.pad(self.label_rows_, (0, more.size - self.label_rows_.size))
            self.label_rows_ = known + more
        if self.marginals_ is not None:
            self.marginals_ = self.marginals_.grown(samples.n_classes, sign * samples.n_rows)
        found = self.scorer_.validation_scores()
        if self.calibration_ is not None:
            self.calibration_ = self.calibration_.grown(more)
            if found is not None and found.samples.n_rows >= MIN_ROWS:
                self.calibration_ = Calibration().fit(found, self.calibration_.counts_)
        elif self.multilabel_ is not None and found is not None:
            self._fit_marginals(found)

    def _fit_marginals(self, validated: ValidationScores) -> None:
        """Decide how many labels are answered, if rows have several and some were put aside."""
        samples, known = validated.samples, self.marginals_
        weight = None if samples.weight is None else samples.weight[samples.owners]
        self.marginals_ = Marginals.fit(
            validated.scores,
            validated.right,
            samples.n_labels,
            n_classes=samples.n_classes,
            weight=samples.weight,
            codes=validated.codes,
            label_counts=np.bincount(samples.codes, weight, samples.n_classes),
        ).grown(samples.n_classes, 0 if known is None else known.n_rows_)

    def _check_past(self) -> None:
        """Raise ModelFileError if a file gives the past of other labels."""
        if self.past_ is not None:
            self.past_.check(self.classes_)
        rows = self.label_rows_
        if rows is not None and not (
            rows.dtype == np.int64 and rows.shape == self.classes_.shape and (rows >= 0).all()
        ):
            raise ModelFileError("its labels have impossible numbers of rows")
