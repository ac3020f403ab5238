"""Answers that say how sure they are: probabilities, abstention, label sets, reasons."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import _num_samples, check_is_fitted

from locole.atomic import all_or_nothing, of_one_moment
from locole.calibration import MIN_ROWS, SHORT_LIST, Calibration, Marginals, Threshold, in_sets
from locole.calibration.conformal import Method, SetRule, pseudo_uniform
from locole.exceptions import LocoleError, ModelFileError
from locole.explanations import Explanations, explanations
from locole.labels import as_type_of, check_labels, codes_of, plain_labels
from locole.parallel.memory import available_bytes
from locole.parameters import PROPORTION, SWITCH, check_values, one_of
from locole.samples import Rows, Samples, checked_weight, take
from locole.scoring.base import Codes, Contributions, ValidationScores

__all__ = ["ConfidentAnswers", "check_answers", "with_rejected"]

# Best labels of a validation row that are looked at.
_DEPTH = 64
# Training rows from which the scale of scores is guessed where there are no validation rows.
_GUESS_ROWS = 64
# Arrays of rows × labels that exist while probabilities of all labels are made.
_COPIES = 3


class ConfidentAnswers:
    """What every classifier says of its own answers, by one mechanism: its calibration.

    A class that stands on it has ``classes_``, ``calibration_``, `_best` and `_map_rows`.
    """

    classes_: NDArray
    multilabel_: str | None = None
    marginals_: Marginals | None = None
    calibration_: Calibration | None = None
    _learnt: ClassVar[dict[str, Any]] = {"calibration_": (Calibration, type(None))}

    @abstractmethod
    def _best(self, rows: Rows, k: int) -> tuple[Codes, NDArray]:
        """Codes of the best k labels of each row, best first, and their scores."""

    @abstractmethod
    def _checked_rows(self, X: Any) -> Any:
        """Rows as the model takes them, or an error."""

    @abstractmethod
    def _map_rows(self, X: Any, function: Any) -> list[Any]:
        """Check rows, and apply ``function`` to one block of them after the other."""

    @abstractmethod
    def _map_checked(self, X: Any, function: Any) -> list[Any]:
        """Apply ``function`` to one block after the other of rows that have been checked."""

    # Probabilities ------------------------------------------------------------------------------

    @of_one_moment
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of all labels, shape (rows, n_classes), which sum to one in each row.

        Of several labels for each row, the probability that the row has each of them. With many labels
        prefer ``predict_topk(proba=True)``, which makes no array of this size.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Rows to answer.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Probabilities in the order of ``classes_``.
        """
        check_is_fitted(self)
        n_classes = self.classes_.size
        _check_room(_num_samples(X), n_classes)

        def block(rows: Rows) -> NDArray[np.float64]:
            codes, proba = self._best_proba(rows, n_classes)
            out = np.empty(proba.shape)
            np.put_along_axis(out, codes, proba, 1)
            return out

        return np.concatenate(self._map_rows(X, block))

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Logarithms of `predict_proba`.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Rows to answer.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Natural logarithms, in the order of ``classes_``.
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def _best_proba(self, rows: Rows, k: int) -> tuple[Codes, NDArray[np.float64]]:
        """Codes of the best k labels and their probabilities; of several labels those of each."""
        if self.multilabel_ is not None:
            return self._best_marginals(rows, k)
        wanted = min(max(k, SHORT_LIST), self.classes_.size)
        codes, scores = self._best(rows, wanted)
        return codes[:, :k], np.exp(self._calibration().log_proba(scores))[:, :k]

    def _best_marginals(self, rows: Rows, k: int) -> tuple[Codes, NDArray[np.float64]]:
        """Codes of the best k labels, and how likely the row has each of them."""
        marginals = self.marginals_
        if marginals is None or not marginals.coef_.size:
            raise LocoleError(
                "the model has no validation rows that would say how likely a label is: fit 1,000 rows."
            )
        codes, scores = self._best(rows, min(max(k, marginals.n_candidates_), self.classes_.size))
        return codes[:, :k], marginals.proba(scores)[:, :k]

    @of_one_moment
    def threshold(
        self,
        max_error: float | None = None,
        *,
        coverage: float | None = None,
        confidence: float = 0.95,
    ) -> Threshold:
        """Probability below which answers are held back, from the validation rows.

        Parameters
        ----------
        max_error : float, optional
            Largest share of wrong answers among those that are given. With probability ``confidence``,
            over the draw of the validation rows, the error is not larger; see
            `locole.calibration.error_threshold`.
        coverage : float, optional
            Instead, the smallest share of rows that are answered.
        confidence : float
            Probability with which the bound on the error holds.

        Returns
        -------
        Threshold
            ``float()`` of it is what `predict` takes as ``min_proba``.
        """
        if (max_error is None) is (coverage is None):
            raise LocoleError("threshold needs max_error or coverage, one of the two.")
        given = {"max_error": max_error, "coverage": coverage, "confidence": confidence}
        check_values(
            dict.fromkeys(given, PROPORTION),
            {name: value for name, value in given.items() if value is not None},
        )
        return self._calibration().threshold(
            max_error=max_error, coverage=coverage, confidence=confidence
        )

    def _least_proba(self, min_proba: Any, max_error: float | None) -> float:
        """Probability below which answers are held back."""
        if max_error is not None and min_proba is not None:
            raise LocoleError("min_proba and max_error both say which answers to give: take one.")
        if max_error is not None:
            return float(self.threshold(max_error=max_error))
        try:
            least = float(min_proba)
        except (TypeError, ValueError):
            least = np.nan
        if not 0 <= least <= 1:
            raise LocoleError(f"min_proba must be a number from 0 to 1, not {min_proba!r:.40}.")
        return least

    # Sets ---------------------------------------------------------------------------------------

    @of_one_moment
    def predict_set(
        self,
        X: Any,
        coverage: float = 0.9,
        *,
        method: Method = "lac",
        by_frequency: bool = False,
    ) -> list[NDArray]:
        """Sets of labels that hold the right one with probability ``coverage`` or more.

        Split conformal prediction with the validation rows; see `locole.calibration.set_rule`. A set is
        the beginning of the row's ranking, so memory is that of the sets. It is empty where no label is
        likely enough.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Rows to answer.
        coverage : float
            In (0, 1).
        method : {"lac", "aps"}
            ``"lac"``: all labels above one probability, the smallest sets on average. ``"aps"``: the
            best labels up to one mass, sets that adapt to how hard a row is.
        by_frequency : bool
            Whether coverage is guaranteed for rare and for frequent labels alike: in each of up to four
            bands of labels by their number of training rows, and not only for all rows together.

        Returns
        -------
        list of arrays
            Labels of each row's set, best first.
        """
        check_values(
            {"coverage": PROPORTION, "method": one_of("lac", "aps"), "by_frequency": SWITCH},
            {"coverage": coverage, "method": method, "by_frequency": by_frequency},
        )
        calibration = self._calibration()
        rule = calibration.set_rule(coverage=coverage, method=method, by_frequency=by_frequency)
        parts = self._map_rows(X, lambda rows: self._sets(rows, rule, calibration))
        return [self.classes_[codes] for part in parts for codes in part]

    def _sets(self, rows: Rows, rule: SetRule, calibration: Calibration) -> list[Codes]:
        """Codes of the sets of a block of rows; rows whose sets may go on are ranked further."""
        n_classes = self.classes_.size
        found: list[Codes] = [np.empty(0, dtype=np.int64)] * len(rows)
        left, k = np.arange(len(rows)), min(SHORT_LIST, n_classes)
        while left.size:
            some = rows if k == min(SHORT_LIST, n_classes) else Rows(take(rows.X, left))
            codes, scores = self._best(some, k)
            proba = np.exp(calibration.log_proba(scores))
            uniform, counts = pseudo_uniform(scores), calibration.counts_[codes]
            inside = in_sets(proba, uniform, counts, rule)
            for row, own, is_in in zip(left, codes, inside, strict=True):
                found[row] = own[is_in]
            goes_on = _may_go_on(proba, rule) & (k < n_classes)
            left, k = left[goes_on], min(4 * k, n_classes)
        return found

    # Calibration --------------------------------------------------------------------------------

    @all_or_nothing
    def calibrate(self, X: Any, y: ArrayLike, *, sample_weight: ArrayLike | None = None) -> Self:
        """Fit probabilities, thresholds and sets again, to rows that the model has not learnt.

        For models without validation rows of their own, and where new rows differ from those that the
        model was fitted to. Labels and their scores stay as they are.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Rows that were not learnt.
        y : array of shape (n_samples,)
            Their labels. Rows of labels that the model does not know are left out.
        sample_weight : array of shape (n_samples,), optional
            How much each row counts; by default all alike.
        """
        check_is_fitted(self)
        self._check_one_label()
        y = plain_labels(y)
        check_labels(y)
        codes = codes_of(as_type_of(self.classes_, np.asarray(y)), self.classes_)
        if _num_samples(X) != codes.size:
            raise LocoleError(f"X has {_num_samples(X)} rows but y has {codes.size} labels.")
        weight = None
        if sample_weight is not None:
            weight = checked_weight(sample_weight, X)
        counts = np.zeros(self.classes_.size, dtype=np.int64)
        if self.calibration_ is not None:
            counts = self.calibration_.counts_
        known = np.flatnonzero((codes >= 0) & (True if weight is None else weight > 0))
        if known.size < MIN_ROWS:
            raise LocoleError(
                f"calibrate needs {MIN_ROWS} rows or more whose labels the model knows."
            )
        samples = Samples(self._checked_rows(X), codes, self.classes_.size, weight).take(known)
        self.calibration_ = Calibration().fit(self._scored(samples), counts)
        return self

    def _scored(self, samples: Samples) -> ValidationScores:
        """Best labels of checked rows that were not learnt."""
        k = min(_DEPTH, self.classes_.size)
        parts = self._map_checked(samples.X, lambda rows: self._best(rows, k))
        best = np.concatenate([part[0] for part in parts])
        scores = np.concatenate([part[1] for part in parts]).astype(np.float64)
        return ValidationScores(best, scores, samples.has(best), samples)

    def _calibrated(self, found: ValidationScores | None, samples: Samples) -> Calibration | None:
        """Calibration by validation rows if there are enough, else a guess; None for several labels.

        ``samples`` are all training rows, and the validation rows among them.
        """
        if samples.starts is not None:
            return None
        if found is None:
            return self._guessed(samples)
        counts = np.bincount(samples.codes, minlength=samples.n_classes)
        labels = found.samples.codes
        # A label that is nowhere else could not be known before its row was learnt.
        learnt = counts - np.bincount(labels, minlength=samples.n_classes)
        found = found.take(np.flatnonzero(learnt[labels] > 0))
        if found.samples.n_rows < MIN_ROWS:
            return self._guessed(samples)
        return Calibration().fit(found, counts)

    def _guessed(self, samples: Samples) -> Calibration | None:
        """Calibration without validation rows, by the scores of some training rows."""
        if samples.starts is not None:
            return None
        counts = np.bincount(samples.codes, minlength=samples.n_classes)
        scores, weight = self._scores_to_guess_by(samples)
        return Calibration().guess(scores, counts, weight=weight)

    def _scores_to_guess_by(self, samples: Samples) -> tuple[NDArray, NDArray | None]:
        """Scores of the best labels of some training rows, and the rows' weights."""
        some = samples.positive()
        some = some.take(np.arange(min(_GUESS_ROWS, some.n_rows)))
        return self._best(Rows(some.X), min(SHORT_LIST, self.classes_.size))[1], some.weight

    def _calibration(self) -> Calibration:
        check_is_fitted(self)
        self._check_one_label()
        if self.calibration_ is None:
            raise LocoleError(
                "the model was saved before there were probabilities: call calibrate(X, y) with rows "
                "that it has not learnt, or fit it again."
            )
        return self.calibration_

    def _check_one_label(self) -> None:
        if self.multilabel_ is not None:
            raise LocoleError(
                "this is for one label for each row, and the model's rows have several labels: "
                "predict_topk(proba=True) says how likely each of them is."
            )

    def _check_calibration(self) -> None:
        """Raise ModelFileError if a file gives a calibration of another model."""
        if self.calibration_ is not None and self.calibration_.n_classes != self.classes_.size:
            raise ModelFileError("its calibration and its labels do not fit together")

    # Reasons ------------------------------------------------------------------------------------

    @of_one_moment
    def explain(self, X: Any, label: Any = None, *, against: Any = None) -> Explanations:
        """What each feature of each row adds to the score of a label; the contributions add up to it.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Rows to explain.
        label : label, optional
            The label, for all rows; by default the answer to each row.
        against : label, optional
            Explain the label's lead over this one instead of its score.

        Returns
        -------
        Explanations
            A list of `locole.explanations.Explanation`, one for each row.
        """
        check_is_fitted(self)
        codes = [None if one is None else self._code_of(one) for one in (label, against)]
        names = getattr(self, "feature_names_in_", None)

        def block(rows: Rows) -> list[Any]:
            asked = np.empty((len(rows), 1 if against is None else 2), dtype=np.int64)
            asked[:, 0] = self._best(rows, 1)[0][:, 0] if codes[0] is None else codes[0]
            asked[:, 1:] = -1 if codes[1] is None else codes[1]
            return explanations(rows, self._explained(rows, asked), self.classes_[asked], names)

        return Explanations(one for part in self._map_rows(X, block) for one in part)

    def _explained(self, rows: Rows, codes: Codes) -> Contributions:
        """Contributions to the scores of these labels."""
        raise LocoleError(
            f"scores of {type(self).__name__} are not sums over features: there is nothing to explain."
        )

    def _code_of(self, label: Any) -> int:
        if np.ndim(label):
            raise LocoleError(
                f"label and against are one label each, for all rows, not {label!r:.40}: explain rows "
                "with other labels one after the other."
            )
        code = int(codes_of(as_type_of(self.classes_, np.asarray([label])), self.classes_)[0])
        if code < 0:
            raise LocoleError(f"the model does not know the label {label!r}.")
        return code


def check_answers(has_several: bool, is_held_back: bool, reject_label: Any, average: str) -> None:
    """Refuse options of `predict` that would have no effect.

    Examples
    --------
    >>> check_answers(False, False, None, "macro")
    Traceback (most recent call last):
    locole.exceptions.LocoleError: average='macro' is for models of several labels: leave it out.
    """
    if average not in ("samples", "micro", "macro"):
        raise LocoleError(f"average must be 'samples', 'micro' or 'macro', not {average!r}.")
    if average != "samples" and not has_several:
        raise LocoleError(f"average={average!r} is for models of several labels: leave it out.")
    if average != "samples" and is_held_back:
        raise LocoleError(
            f"average={average!r} chooses fitted thresholds, and min_proba replaces them: give one of "
            "the two."
        )
    if reject_label is not None and has_several:
        raise LocoleError(
            "reject_label is for one label for each row: of several, those that are held back are just "
            "missing."
        )
    if reject_label is not None and not is_held_back:
        raise LocoleError(
            "reject_label stands for answers that are held back: give min_proba or max_error too."
        )


def with_rejected(labels: NDArray, is_given: NDArray[np.bool_], reject_label: Any) -> NDArray:
    """Labels, with another one in place of answers that are not given.

    Examples
    --------
    >>> with_rejected(np.array(["a", "b"]), np.array([True, False]), None)
    array(['a', None], dtype=object)
    >>> with_rejected(np.array([3, 4]), np.array([True, False]), -1)
    array([ 3, -1])
    """
    other = np.asarray([reject_label])
    is_alike = other.dtype.kind == labels.dtype.kind and other.dtype.kind in "iuUf"
    kind = np.result_type(labels, other) if is_alike else np.dtype(object)
    out = labels.astype(kind)
    out[~is_given] = reject_label
    return out


def _may_go_on(proba: NDArray, rule: SetRule) -> NDArray[np.bool_]:
    """Whether a label behind the last could be in the set, by the widest of the limits."""
    if rule.method == "lac":
        return proba[:, -1] >= rule.limits.min()
    # The next label has at most the probability of the last.
    return proba.sum(axis=1) <= rule.limits.max()


def _check_room(n_rows: int, n_classes: int) -> None:
    """Refuse an array of rows × labels that memory has no room for."""
    needed, free = 8 * _COPIES * n_rows * n_classes, available_bytes()
    if free is not None and needed > free:
        raise LocoleError(
            f"probabilities of {n_classes:,} labels for {n_rows:,} rows take {needed / 1e9:.1f} GB, and "
            f"{free / 1e9:.1f} GB are free: take predict_topk(X, k=5, proba=True)."
        )
