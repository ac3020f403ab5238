"""The contract of everything that scores labels."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from locole.exceptions import LocoleError
from locole.io import SavedEstimator
from locole.kernels.topk import push_rows
from locole.label_past import Relabelling
from locole.samples import Rows, Samples

__all__ = [
    "SKETCHED_ROWS",
    "Codes",
    "Contributions",
    "LabelScorer",
    "ValidationScores",
    "best_of",
    "entries_of",
    "every_code",
]

Codes = NDArray[np.int64]

#: With fewer rows a fit takes hardly longer than a sketch.
SKETCHED_ROWS = 10_000

# Above that, sorting all scores is faster than keeping a list of the best.
_SHORT_LIST = 64
_EVERY_COLUMN = np.empty(0, dtype=np.int64)


class ValidationScores(NamedTuple):
    """The best labels of validation rows, by a scorer that had not learnt these rows."""

    codes: Codes
    """Labels, best first, shape (rows, k)."""
    scores: NDArray[np.float64]
    """Their scores; −∞ at places without a label."""
    right: NDArray[np.bool_]
    """Which of them the row has."""
    samples: Samples
    """The validation rows."""

    def rescored(self, scores: NDArray[np.float64]) -> ValidationScores:
        """The same labels in the order of other scores."""
        order = np.lexsort((self.codes, -scores), axis=1)
        codes = np.take_along_axis(self.codes, order, 1)
        right = np.take_along_axis(self.right, order, 1)
        return ValidationScores(codes, np.take_along_axis(scores, order, 1), right, self.samples)

    def take(self, rows: NDArray[np.int64]) -> ValidationScores:
        """Some of the rows."""
        samples = self.samples.take(rows)
        return ValidationScores(self.codes[rows], self.scores[rows], self.right[rows], samples)


class Contributions(NamedTuple):
    """What each feature of a row adds to the scores of labels, and what is added by nothing of it."""

    features: NDArray[np.float64]
    """Of every entry of ``rows.csr``, in the order of its data; shape (entries, labels)."""
    others: dict[str, NDArray[np.float64]]
    """By name, such as an intercept; shape (rows, labels)."""

    def times(self, factor: float) -> Contributions:
        """All of them multiplied."""
        return Contributions(
            factor * self.features, {name: factor * part for name, part in self.others.items()}
        )

    def weighed(self, factors: NDArray[np.float64], X: sp.csr_array) -> Contributions:
        """Those of each label of a row, of which X has the entries, multiplied by a factor."""
        each = np.repeat(factors, np.diff(X.indptr), axis=0)
        others = {name: factors * part for name, part in self.others.items()}
        return Contributions(each * self.features, others)

    def plus(self, more: Contributions) -> Contributions:
        """The sum; what has the same name is added up."""
        others = dict(self.others)
        for name, part in more.others.items():
            others[name] = others[name] + part if name in others else part
        return Contributions(self.features + more.features, others)


class LabelScorer(SavedEstimator, BaseEstimator, ABC):
    """Gives every label of a row a score; the largest is the answer.

    A scorer is decorated with ``saved_as("scorer.<name>")``, lists in ``_learnt`` what `fit` leaves
    behind, and has the five abstract members below. All others have defaults, which a scorer overrides
    where it can do better: what it says of all labels in one pass, or that it is a sum of several
    sources, whose weights an ensemble should fit separately.

    Labels are codes 0 … n_classes−1. Scores of a row must not depend on other rows.
    """

    #: Name in an ensemble, and of its only source.
    name: ClassVar[str]
    #: Scorers of an ensemble are fitted by rising stage, so that later ones can learn from earlier ones.
    stage: ClassVar[int] = 1
    #: Whether an ensemble leaves the scorer out if it does not help on the validation rows.
    optional: ClassVar[bool] = False
    #: Whether it looks at rows as dense ones; others see them as sparse ones.
    takes_dense: ClassVar[bool] = False
    #: Whether it can say anything of labels without rows, for which an ensemble hides some labels.
    answers_unseen: ClassVar[bool] = False

    @property
    @abstractmethod
    def n_classes(self) -> int:
        """Number of labels."""

    @property
    def n_features(self) -> int | None:
        """Number of features; None for a scorer that takes rows of any kind."""
        return None

    @property
    def has_text(self) -> NDArray[np.bool_]:
        """Of which labels it can say anything without a row of theirs."""
        return np.full(self.n_classes, self.answers_unseen)

    @property
    def n_beside(self) -> int | None:
        """Dense numbers beside each row; None for a scorer that looks at one kind of features only."""
        return None

    @abstractmethod
    def fit(self, samples: Samples, *, before: Sequence[LabelScorer] = ()) -> Self:
        """Learn from samples.

        Parameters
        ----------
        samples : Samples
            Rows with their labels and weights.
        before : sequence of LabelScorer
            In an ensemble, the scorers of earlier stages, fitted to the same samples.
        """

    @abstractmethod
    def partial_fit(self, samples: Samples) -> Self:
        """Learn from more samples, which may have more labels.

        What ``copy.copy`` shares with a copy of the scorer must stay as it is.

        Parameters
        ----------
        samples : Samples
            Rows with their labels and weights.
        """

    def learn_rest(self, rest: Samples, every: Samples) -> Self:
        """Learn the rows that an ensemble kept out of `fit`; by default by `partial_fit`.

        Parameters
        ----------
        rest : Samples
            The rows that were kept out.
        every : Samples
            All rows, these among them.
        """
        return self.partial_fit(rest)

    # Labels and features that change; as with `partial_fit`, what a copy shares must stay as it is ---

    @property
    def grows(self) -> bool:
        """Whether `grow` can add features."""
        return self.n_features is None

    def grow(self, n_features: int) -> None:
        """Make room for more features, which say nothing until they are learnt.

        Parameters
        ----------
        n_features : int
            How many there are then.
        """
        if self.n_features is not None:
            raise LocoleError(
                f"the scorer {self.name!r} cannot take more features: fit again with all the data."
            )

    def relabel(self, change: Relabelling) -> None:
        """Let labels have other codes: some become others, to which they are added, some are gone.

        Parameters
        ----------
        change : Relabelling
            The new codes.
        """
        raise LocoleError(
            f"the scorer {self.name!r} cannot merge or retire labels: fit again with all the data."
        )

    def forget(self, samples: Samples) -> dict[str, str]:
        """Take out samples that were learnt, as far as that can be.

        Parameters
        ----------
        samples : Samples
            As they were learnt.

        Returns
        -------
        dict of str to str
            How far each source has: exactly, nearly, partly or not.
        """
        return dict.fromkeys(self.sources, "not")

    def add_labels(self, n_classes: int) -> Self:
        """Know more labels, of which there are no rows yet; all others are scored as before.

        Parameters
        ----------
        n_classes : int
            How many labels there are then.

        Returns
        -------
        LabelScorer
            Itself.
        """
        raise LocoleError(
            f"the scorer {self.name!r} cannot know labels without rows: fit again with all the data."
        )

    @abstractmethod
    def candidates(self, rows: Rows, k: int) -> tuple[Codes, NDArray]:
        """Codes of the best ``k`` labels of each row, best first, and their scores.

        Ties go to the smaller code.

        Parameters
        ----------
        rows : Rows
            Rows to score.
        k : int
            Number of labels for each row.
        """

    @abstractmethod
    def scores_at(self, rows: Rows, codes: Codes) -> NDArray:
        """Scores of the labels ``codes[i]`` of each row i.

        Parameters
        ----------
        rows : Rows
            Rows to score.
        codes : array of shape (rows, labels)
            Codes of labels for each row.
        """

    def candidates_and_scores(
        self, rows: Rows, k: int, codes: Codes
    ) -> tuple[Codes, NDArray, NDArray]:
        """`candidates`, and `scores_at` of labels that others have proposed.

        Parameters
        ----------
        rows : Rows
            Rows to score.
        k : int
            Number of labels for each row.
        codes : array of shape (rows, labels)
            Codes of labels for each row.
        """
        return (*self.candidates(rows, k), self.scores_at(rows, codes))

    def all_scores(self, rows: Rows) -> NDArray:
        """Scores of all labels, shape (rows, n_classes).

        Parameters
        ----------
        rows : Rows
            Rows to score.
        """
        return self.scores_at(rows, every_code(len(rows), self.n_classes))

    def is_silent(self, rows: Rows) -> bool:
        """Whether all labels have the score 0 for each of these rows.

        Parameters
        ----------
        rows : Rows
            Rows to score.
        """
        return False

    def explain(self, rows: Rows, codes: Codes) -> Contributions:
        """What adds up to `scores_at`: a sum over features, or a single number for any other scorer.

        Parameters
        ----------
        rows : Rows
            Rows to score.
        codes : array of shape (rows, labels)
            Codes of labels for each row.
        """
        nothing = np.zeros((rows.csr.nnz, codes.shape[1]))
        return Contributions(nothing, {self.name: self.scores_at(rows, codes).astype(np.float64)})

    # Whether to fit: what an ensemble asks before it spends much time ----------------------------

    def sketch(self, samples: Samples) -> LabelScorer | None:
        """A rough version of itself, unfitted, that shows for little time whether a fit is worth it.

        None: fit it as it is.

        Parameters
        ----------
        samples : Samples
            Rows with their labels and weights.
        """
        return None

    def watching(self, validation: Samples) -> Self:
        """Itself, with validation rows by which the next `fit` decides when to stop, if it needs to.

        Parameters
        ----------
        validation : Samples
            Validation rows, which are not learnt.
        """
        return self

    def left_out(self, samples: Samples) -> LabelScorer | None:
        """What remains, fitted, of a scorer that is not worth a fit; None: nothing.

        Parameters
        ----------
        samples : Samples
            Rows with their labels and weights.
        """
        return None

    def validation_scores(self) -> ValidationScores | None:
        """Scores of rows that `fit` put aside, as they were before these rows were learnt, if any.

        They are handed out once after `fit`, because they take memory.
        """
        return None

    # Sources: parts of the score that an ensemble weighs separately -------------------------------

    @property
    def sources(self) -> list[str]:
        """Names of the parts of the score."""
        return [self.name]

    @property
    def optional_sources(self) -> list[str]:
        """Sources that an ensemble leaves out if they do not help on the validation rows."""
        return self.sources if self.optional else []

    @property
    def signed_sources(self) -> list[str]:
        """Sources whose weight may be negative, because they correct others."""
        return []

    def source_candidates(self, rows: Rows, k: int) -> Codes:
        """Best ``k`` labels by every source that has proposals, side by side; they may repeat.

        Parameters
        ----------
        rows : Rows
            Rows to score.
        k : int
            Number of labels for each row.
        """
        return self.candidates(rows, k)[0]

    def source_scores(self, rows: Rows, codes: Codes) -> NDArray:
        """Scores of these labels by each source, shape (rows, labels, sources).

        Parameters
        ----------
        rows : Rows
            Rows to score.
        codes : array of shape (rows, labels)
            Codes of labels for each row.
        """
        return self.scores_at(rows, codes)[..., None]

    def set_source_weights(self, weights: NDArray[np.float64]) -> float:
        """Add up the sources with these weights from now on; return the weight of their sum.

        Parameters
        ----------
        weights : array of shape (sources,)
            Weight of each source.
        """
        return float(weights[0])


def every_code(n_rows: int, n_classes: int) -> Codes:
    """All codes for each row, without taking memory for them."""
    return np.broadcast_to(np.arange(n_classes), (n_rows, n_classes))


def entries_of(X: sp.csr_array) -> list[slice]:
    """Where the entries of each row are."""
    return [slice(*ends) for ends in itertools.pairwise(X.indptr)]


def best_of(scores: NDArray, k: int) -> tuple[Codes, NDArray]:
    """Codes and scores of the best k of dense scores; ties go to the smaller code."""
    if k <= _SHORT_LIST:
        best = np.full((scores.shape[0], k), -np.inf, dtype=scores.dtype)
        codes = np.full((scores.shape[0], k), -1, dtype=np.int64)
        push_rows(np.ascontiguousarray(scores), 0, _EVERY_COLUMN, best, codes)
        if (codes >= 0).all():  # not if a score is −∞
            return codes, best
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(scores, order, axis=1)
