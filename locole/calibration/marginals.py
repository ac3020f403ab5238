"""Several labels for a row: the probability of each, and how many of them are answered."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, logsumexp

from locole.exceptions import ModelFileError
from locole.io import saved_as
from locole.label_past import Relabelling

__all__ = ["Marginals"]

# The best labels of a row whose scores count: so many, or four times as many as rows have labels.
_CANDIDATES, _TIMES_LABELS = 32, 4
# Penalty of the coefficients of standardised features, beside the mean loss of a row.
_RIDGE = 1e-4
# Thresholds that are tried.
_THRESHOLDS = np.linspace(0.01, 0.9, 90)

# Rows of the mean label that each label's own curve of the F1 is averaged with.
_PSEUDO_ROWS = 10
_STATE = ("coef", "threshold", "n_answers", "n_candidates")

Floats = NDArray[np.float64]


@saved_as("calibration.marginals")
class Marginals:
    r"""Probability that a row has a label, from its score, its rank r and the scores of the row's best.

    .. math:: P(i \in Y \mid x) = \sigma\Big(a + b s_i + c \log \sum_j e^{s_j} + d \log r_i\Big)

    with the sum over the row's best labels, fitted by maximum likelihood to the best labels of
    validation rows. The answer to a row are the labels whose probability is at least a threshold, and
    the best one: the threshold with the largest mean F1 of the validation rows. Without validation rows
    the answer has as many labels as training rows have on average.

    Other thresholds are for other averages of the F1. For the macro average every label has its own: the
    largest of ``(n_i F_i(t) + 10 F(t)) / (n_i + 10)`` with n_i validation rows of the label, F_i(t) its
    F1 and F(t) the mean of all labels, which decides for labels with few rows.

    Parameters
    ----------
    coef, threshold, n_answers, n_candidates : array, float, int and int
        What the attributes of these names become; `fit` finds them.
    others : dict of str to array, optional
        Thresholds for other averages of the F1.
    n_rows : int
        Training rows.

    Attributes
    ----------
    coef_ : array of shape (4,), or of none
        a, b, c and d.
    threshold_ : float
        Probability from which on a label is part of the answer, for the largest mean F1 of rows.
    thresholds_ : dict of str to array
        By average: ``"samples"`` and ``"micro"`` one number, ``"macro"`` one for each label.
    n_rows_ : int
        Training rows; 0 in models that did not count them.
    n_answers_ : int
        Labels of an answer, if there is no threshold.
    n_candidates_ : int
        Labels whose scores count.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> scores = -np.sort(-rng.normal(size=(500, 4)))
    >>> right = rng.random((500, 4)) < expit(2 * scores)
    >>> model = Marginals.fit(scores, right, np.count_nonzero(right, axis=1), n_classes=4)
    >>> p = model.proba(np.array([[3.0, 1.0, -1.0, -3.0]]))
    >>> bool(p[0, 0] > 0.9), bool(p[0, 3] < 0.1)
    (True, True)
    """

    def __init__(
        self,
        coef: Floats,
        *,
        threshold: float,
        n_answers: int,
        n_candidates: int,
        others: dict[str, Floats] | None = None,
        n_rows: int = 0,
    ) -> None:
        self.coef_ = coef
        self.thresholds_ = {"samples": np.array([threshold]), **(others or {})}
        self.n_answers_, self.n_candidates_ = n_answers, n_candidates
        self.n_rows_ = n_rows

    @property
    def threshold_(self) -> float:
        """Probability from which labels are answered, for the largest mean F1 of rows."""
        return float(self.thresholds_["samples"][0])

    @classmethod
    def fit(
        cls,
        scores: NDArray,
        right: NDArray[np.bool_],
        counts: NDArray[np.int64],
        *,
        n_classes: int,
        weight: NDArray | None = None,
        codes: NDArray[np.int64] | None = None,
        label_counts: NDArray | None = None,
    ) -> Self:
        """Fit to validation rows.

        Parameters
        ----------
        scores : array of shape (rows, k)
            Scores of the best labels, falling; −∞ where there are fewer.
        right : array of shape (rows, k)
            Which of them the row has.
        counts : array of shape (rows,)
            How many labels each row has, also of those that are not among the best.
        n_classes : int
            Number of labels.
        weight : array of shape (rows,), optional
            How much each row counts.
        codes : array of shape (rows, k), optional
            The best labels, for thresholds of other averages of the F1.
        label_counts : array of shape (n_classes,), optional
            Weight of the validation rows of each label, which goes with ``codes``.
        """
        made = cls.guess(float(counts.mean()), n_classes)
        k = made.n_candidates_
        scores, right = scores[:, :k].astype(np.float64), right[:, :k]
        weight = np.ones(len(scores)) if weight is None else weight
        made.coef_ = _fit_logistic(_inputs(scores), right, np.isfinite(scores), weight)
        p = made.proba(scores)
        f1 = [weight @ _f1(p >= threshold, right, counts) for threshold in _THRESHOLDS]
        made.thresholds_["samples"] = _THRESHOLDS[[int(np.argmax(f1))]]
        if codes is not None and label_counts is not None:
            found = _Answers(codes[:, :k], p, right, np.broadcast_to(weight[:, None], p.shape))
            made.thresholds_ |= found.thresholds(label_counts)
        return made

    def grown(self, n_classes: int, n_rows: int) -> Self:
        """The same for a model that has learnt more rows, or forgotten some.

        Parameters
        ----------
        n_classes : int
            Number of labels; new ones take the threshold that most have.
        n_rows : int
            Rows more; negative for rows that are forgotten.
        """
        made, macro = copy.copy(self), self.thresholds_.get("macro")
        made.n_rows_ = max(self.n_rows_ + n_rows, 0)
        if macro is not None:
            more = (0, n_classes - macro.size)
            grown = np.pad(macro, more, constant_values=np.median(macro))
            made.thresholds_ = {**self.thresholds_, "macro": grown}
        return made

    @classmethod
    def guess(cls, n_labels: float, n_classes: int) -> Self:
        """Without validation rows: all that is known is how many labels a row has on average.

        Parameters
        ----------
        n_labels : float
            Labels of a row, on average.
        n_classes : int
            Number of labels.
        """
        n_candidates = min(max(_CANDIDATES, int(_TIMES_LABELS * n_labels)), n_classes)
        n_answers = min(max(1, round(n_labels)), n_classes)
        return cls(np.empty(0), threshold=0.0, n_answers=n_answers, n_candidates=n_candidates)

    def relabelled(self, change: Relabelling) -> Self:
        """The same with other codes of labels.

        Parameters
        ----------
        change : Relabelling
            The new codes.
        """
        made, macro = copy.copy(self), self.thresholds_.get("macro")
        made.n_answers_ = min(self.n_answers_, change.n_classes)
        made.n_candidates_ = min(self.n_candidates_, change.n_classes)
        if macro is not None:
            made.thresholds_ = {**self.thresholds_, "macro": macro[change.kept]}
        return made

    def proba(self, scores: NDArray) -> Floats:
        """Probabilities of a row's best labels, whose scores fall; shape as ``scores``.

        Beyond the candidates, ranks and scores go on as they are.

        Parameters
        ----------
        scores : array of shape (rows, k)
            Best scores of each row, falling.
        """
        best = np.asarray(scores, dtype=np.float64)
        return np.where(np.isfinite(best), expit(_inputs(best, self.n_candidates_) @ self.coef_), 0)

    def chosen(
        self, scores: NDArray, codes: NDArray[np.int64] | None = None, *, average: str = "samples"
    ) -> NDArray[np.bool_]:
        """Which of a row's best labels are answered, shape as ``scores``: at least the first.

        Parameters
        ----------
        scores : array of shape (rows, k)
            Best scores of each row, falling.
        codes : array of shape (rows, k), optional
            Their labels; needed where each has a threshold of its own.
        average : {"samples", "micro", "macro"}
            Which F1 the thresholds are for.
        """
        if not self.coef_.size:
            return np.broadcast_to(np.arange(scores.shape[1]) < self.n_answers_, scores.shape)
        threshold = self.thresholds_.get(average, self.thresholds_["samples"])
        taken = self.proba(scores) >= (threshold[codes] if threshold.size > 1 else threshold[0])
        taken[:, 0] = True
        return taken

    def _state(self) -> dict[str, Any]:
        none = np.empty(0)
        return {
            "coef": self.coef_,
            "threshold": self.threshold_,
            "n_answers": self.n_answers_,
            "n_candidates": self.n_candidates_,
            "micro": self.thresholds_.get("micro", none),
            "macro": self.thresholds_.get("macro", none),
            "n_rows": self.n_rows_,
        }

    @classmethod
    def _from_state(cls, values: dict[str, Any]) -> Self:
        # Models of earlier versions have the first four.
        since: dict[str, Any] = {"micro": np.empty(0), "macro": np.empty(0), "n_rows": 0}
        values = since | values
        coef, threshold = values["coef"], values["threshold"]
        counts, n_rows = (values["n_answers"], values["n_candidates"]), values["n_rows"]
        others = {name: values[name] for name in ("micro", "macro")}
        fits = (
            set(values) == {*_STATE, *others, "n_rows"}
            and isinstance(coef, np.ndarray)
            and coef.dtype == np.float64
            and coef.shape in ((0,), (4,))
            and bool(np.isfinite(coef).all())
            and isinstance(threshold, float)
            and 0 <= threshold <= 1
            and all(type(count) is int and 1 <= count < 2**40 for count in counts)
            and all(_are_thresholds(array) for array in others.values())
            and others["micro"].size <= 1
            and type(n_rows) is int
            and 0 <= n_rows < 2**40
        )
        if not fits:
            raise ModelFileError("its probabilities of several labels are invalid")
        return cls(
            coef,
            threshold=threshold,
            n_answers=counts[0],
            n_candidates=counts[1],
            others={name: array for name, array in others.items() if array.size},
            n_rows=n_rows,
        )

    def fits_labels(self, n_classes: int) -> bool:
        """Whether what it knows of each label is known of so many labels.

        Parameters
        ----------
        n_classes : int
            Number of labels.
        """
        macro = self.thresholds_.get("macro")
        return macro is None or macro.size == n_classes


class _Answers(NamedTuple):
    """The best labels of validation rows, all of one shape."""

    codes: NDArray[np.int64]
    proba: Floats
    right: NDArray[np.bool_]
    weight: NDArray

    def thresholds(self, label_counts: NDArray) -> dict[str, Floats]:
        """For the micro and the macro average of the F1."""
        known = np.flatnonzero(label_counts > 0)
        place = np.full(label_counts.size, known.size)
        place[known] = np.arange(known.size)
        places, wanted = place[self.codes], label_counts[known]
        micro, curves = [], np.empty((_THRESHOLDS.size, known.size))
        for i, threshold in enumerate(_THRESHOLDS):
            taken = self.proba >= threshold
            answered, hits = (
                np.bincount(places[some], self.weight[some], known.size + 1)
                for some in (taken, taken & self.right)
            )
            total = answered.sum() + wanted.sum()
            micro.append(2 * hits.sum() / total if total else 1.0)  # nothing is wanted or answered
            curves[i] = 2 * hits[:-1] / (answered[:-1] + wanted)
        mean = curves.mean(axis=1) if known.size else np.zeros(_THRESHOLDS.size)
        macro = np.full(label_counts.size, _THRESHOLDS[mean.argmax()])
        shrunk = (wanted * curves + _PSEUDO_ROWS * mean[:, None]) / (wanted + _PSEUDO_ROWS)
        macro[known] = _THRESHOLDS[shrunk.argmax(axis=0)]
        return {"micro": _THRESHOLDS[[int(np.argmax(micro))]], "macro": macro}


def _are_thresholds(array: Any) -> bool:
    is_flat = isinstance(array, np.ndarray) and array.dtype == np.float64 and array.ndim == 1
    return is_flat and bool(((array >= 0) & (array <= 1)).all())


def _inputs(scores: Floats, n_candidates: int | None = None) -> Floats:
    """One, the score, the logarithm of the sum of exponentials, that of the rank: (rows, k, 4)."""
    finite = np.where(np.isfinite(scores), scores, 0.0)
    total = logsumexp(scores[:, :n_candidates], axis=1, keepdims=True)
    rank = np.log(np.arange(1, scores.shape[1] + 1))
    return np.stack(np.broadcast_arrays(1.0, finite, total, rank), axis=-1)


def _fit_logistic(
    inputs: Floats, right: NDArray[np.bool_], valid: NDArray[np.bool_], weight: NDArray
) -> Floats:
    """Penalised maximum likelihood; the mean is over rows."""
    owners = np.nonzero(valid)[0]
    A, y, share = inputs[valid], right[valid], weight[owners] / weight.sum()
    centre, spread = A.mean(axis=0), A.std(axis=0)
    centre[0], spread[0] = 0.0, 1.0
    spread = np.where(spread > 1e-9 * (1 + np.abs(centre)), spread, np.inf)
    A = (A - centre) / spread
    ridge = np.array([0.0, _RIDGE, _RIDGE, _RIDGE])

    def objective(theta: Floats) -> tuple[float, Floats]:
        z = A @ theta
        loss = share @ (np.logaddexp(0, z) - y * z) + ridge @ theta**2 / 2
        return float(loss), A.T @ (share * (expit(z) - y)) + ridge * theta

    # A larger score never makes a label less probable.
    bounds = [(None, None), (0.0, None), (None, None), (None, 0.0)]
    found = minimize(objective, np.zeros(4), jac=True, method="L-BFGS-B", bounds=bounds).x
    coef = found / spread
    coef[0] = found[0] - coef[1:] @ centre[1:]
    return coef


def _f1(taken: NDArray[np.bool_], right: NDArray[np.bool_], counts: NDArray[np.int64]) -> Floats:
    """F1 of each row's labels, the first of which is taken in any case."""
    taken = taken.copy()
    taken[:, 0] = True
    return 2 * (taken & right).sum(axis=1) / (taken.sum(axis=1) + counts)
