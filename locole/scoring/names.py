"""Labels scored by what they are called: their texts against the features of a row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from locole.exceptions import LocoleError, ModelFileError
from locole.io import saved_as
from locole.label_past import Relabelling
from locole.labels import LabelFeatures
from locole.parallel.blocks import slices
from locole.samples import LARGEST, Rows, Samples
from locole.scoring.base import Codes, Contributions, LabelScorer, best_of, entries_of

__all__ = ["UNSEEN", "NameScorer"]

#: What a label gets for having no rows, among explanations.
UNSEEN = "label without rows"
# Rows whose scores of all labels exist at a time.
_BLOCK_ROWS = 64
_ANY_MATRIX = [None, sp.csr_array, sp.csr_matrix]


@saved_as("scorer.names")
class NameScorer(LabelScorer):
    r"""Similarity of a row and a label's text, also of labels that no row had.

    .. math:: score_i(x) = (a + b\,r_i) \sum_{f,t} x_f L_{ft} n_{it} + c\,u_i,
        \qquad r_i = 1 / (1 + \text{rows of the label})

    with the terms n of the label's text, and what feature f says in these terms, :math:`L_{ft}`: 1 for
    the term itself. :math:`u_i` is 1 for a label with a text that has no rows. In an ensemble a, b and c
    are fitted on validation rows, some of which have labels that were hidden from all scorers. So names
    count more for rare labels, and labels without rows get what the other scorers, which cannot know
    them, withhold (calibrated stacking).

    Parameters
    ----------
    label_rows : sparse array of shape (n_classes, n_terms)
        Terms of each label's text; an empty row for a label without.
    feature_terms : sparse array of shape (n_features, n_terms), optional
        L; by default features are terms.

    Attributes
    ----------
    label_rows_, feature_terms_
        The same.
    counts_ : array of shape (n_classes,)
        Training rows of each label.
    mix_ : array of shape (3,)
        a, b and c.

    Examples
    --------
    >>> X = sp.csr_array(np.eye(3, dtype=np.float32))
    >>> scorer = NameScorer(X).fit(Samples(X[:2], np.array([0, 1]), n_classes=3))
    >>> scorer.candidates(Rows(X[2:]), k=1)[0]
    array([[2]])
    """

    name = "names"
    stage = 0
    answers_unseen = True
    _parameter_constraints: ClassVar = {"label_rows": _ANY_MATRIX, "feature_terms": _ANY_MATRIX}
    _unsaved: ClassVar[tuple[str, ...]] = ("label_rows", "feature_terms")
    _learnt: ClassVar = {
        "label_rows_": sp.csr_array,
        "feature_terms_": (sp.csr_array, type(None)),
        "counts_": np.ndarray,
        "mix_": np.ndarray,
    }
    #: Parts of the score, weighed by a, b and c.
    _parts: ClassVar[tuple[str, ...]] = ("names", "names of rare labels", "unseen labels")
    #: Whether they are still weighed one by one.
    _apart: bool = False

    def __init__(self, label_rows: Any = None, *, feature_terms: Any = None) -> None:
        self.label_rows = label_rows
        self.feature_terms = feature_terms

    @property
    def n_classes(self) -> int:
        """Number of labels."""
        return self.counts_.size

    @property
    def n_features(self) -> int:
        """Number of features."""
        terms = self.feature_terms_
        return self.label_rows_.shape[1] if terms is None else terms.shape[0]

    # Fit ----------------------------------------------------------------------------------------

    def fit(self, samples: Samples, *, before: Sequence[LabelScorer] = ()) -> Self:
        """Count the rows of each label."""
        self.check_parameters()
        if self.label_rows is None:
            raise LocoleError("names need label_rows, with the terms of each label's text.")
        self.counts_, self.mix_ = np.zeros(0), np.array([1.0, 0.0, 0.0])
        self.set_texts(self.label_rows, self.feature_terms)
        if (self.n_classes, self.n_features) != (samples.n_classes, samples.X.shape[1]):
            raise LocoleError(
                f"names are of {self.n_classes} labels and {self.n_features} features, but there are "
                f"{samples.n_classes} labels and {samples.X.shape[1]} features."
            )
        self._apart = True
        return self.partial_fit(samples)

    def partial_fit(self, samples: Samples) -> Self:
        """Count more rows, which may have more labels; those have no text."""
        counted = samples.positive()
        if samples.n_classes > self.n_classes:
            self.add_labels(samples.n_classes)
        self.counts_ = self.counts_ + np.bincount(counted.codes, minlength=self.n_classes)
        return self

    def add_labels(self, n_classes: int) -> Self:
        """Know labels without a text."""
        rows = self.label_rows_.copy()
        rows.resize((n_classes, rows.shape[1]))
        self.set_texts(rows, self.feature_terms_)
        return self

    grows = True

    def grow(self, n_features: int) -> None:
        """Add features that say nothing of any label's text."""
        if self.feature_terms_ is not None:
            terms = self.feature_terms_.copy()
            terms.resize((n_features, terms.shape[1]))
            self.set_texts(self.label_rows_, terms)
        else:
            rows = self.label_rows_.copy()
            rows.resize((self.n_classes, n_features))
            self.set_texts(rows)

    def relabel(self, change: Relabelling) -> None:
        """Add up the rows of merged labels; the one that is kept keeps its text."""
        self.counts_ = change.added(self.counts_)
        self.set_texts(self.label_rows_[change.kept], self.feature_terms_)

    def forget(self, samples: Samples) -> dict[str, str]:
        """Take rows out of the counts."""
        out = np.bincount(samples.positive().codes, minlength=self.n_classes)
        self.counts_ = np.maximum(self.counts_ - out, 0)
        return dict.fromkeys(self.sources, "exactly")

    def set_texts(self, label_rows: Any, feature_terms: Any = None) -> None:
        """Give labels other texts, or more labels a text.

        Parameters
        ----------
        label_rows : sparse array of shape (n_classes, terms)
            Terms of the text of each label.
        feature_terms : sparse array of shape (n_features, terms), optional
            What each feature says in these terms.
        """
        self.label_rows_ = _float_rows(label_rows)
        self.feature_terms_ = None if feature_terms is None else _float_rows(feature_terms)
        self.counts_ = np.pad(self.counts_, (0, self.label_rows_.shape[0] - self.counts_.size))
        self.__dict__.pop("_by_term", None)

    def add_texts(self, codes: Codes, named: LabelFeatures) -> None:
        """Give these labels a text, whose terms may be more than before.

        Parameters
        ----------
        codes : array of int
            Codes of the labels.
        named : LabelFeatures
            Their texts.
        """
        n_terms = named.rows.shape[1]
        rows = self.label_rows_.copy()
        rows.resize((self.n_classes, max(n_terms, rows.shape[1])))
        if rows.shape[1] > n_terms:
            raise LocoleError("label_features lack terms that other labels have: keep all of them.")
        keeps = np.ones(self.n_classes, dtype=np.float32)
        keeps[codes] = 0
        one = np.ones(codes.size, dtype=np.float32)
        place = sp.csr_array((one, (codes, np.arange(codes.size))), (self.n_classes, codes.size))
        new = place @ sp.csr_array(named.rows, dtype=np.float32)
        rows = sp.csr_array(sp.diags_array(keeps) @ rows + new, dtype=np.float32)
        rows.eliminate_zeros()
        self.set_texts(rows, named.terms)

    @property
    def has_text(self) -> NDArray[np.bool_]:
        """Which labels have a text with a known term."""
        return np.diff(self.label_rows_.indptr) > 0

    # Score --------------------------------------------------------------------------------------

    def candidates(self, rows: Rows, k: int) -> tuple[Codes, NDArray]:
        """Labels whose texts are most similar."""
        return self.candidates_and_scores(rows, k, np.empty((len(rows), 0), dtype=np.int64))[:2]

    def scores_at(self, rows: Rows, codes: Codes) -> NDArray:
        """Similarities of these labels' texts."""
        factor, more = self._terms_of_labels()
        said = [
            np.take_along_axis(similar * factor + more, codes[part], 1)
            for part, similar in self._similar(rows)
        ]
        return np.concatenate(said) if said else np.empty(codes.shape)

    def candidates_and_scores(
        self, rows: Rows, k: int, codes: Codes
    ) -> tuple[Codes, NDArray, NDArray]:
        """Both in one pass over the labels."""
        factor, more = self._terms_of_labels()
        found, best = np.empty((len(rows), k), dtype=np.int64), np.empty((len(rows), k))
        at = np.empty(codes.shape)
        for part, similar in self._similar(rows):
            total = similar * factor + more
            found[part], best[part] = best_of(total, k)
            at[part] = np.take_along_axis(total, codes[part], 1)
        return found, best, at

    def explain(self, rows: Rows, codes: Codes) -> Contributions:
        """Similarity of each feature and the label's text."""
        factor, more = self._terms_of_labels()
        X = rows.csr
        found = np.empty((X.nnz, codes.shape[1]))
        for i, part in enumerate(entries_of(X)):
            texts = self.label_rows_[codes[i]].T.tocsr()
            features = X.indices[part]
            if self.feature_terms_ is not None:
                said = (self.feature_terms_[features] @ texts).toarray()
            else:
                said = texts[features].toarray()
            found[part] = X.data[part, None] * said * factor[codes[i]]
        return Contributions(found, {UNSEEN: more[codes]})

    def _similar(self, rows: Rows) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        """Blocks of rows, and their similarities to all labels."""
        if "_by_term" not in self.__dict__:
            self.__dict__["_by_term"] = sp.csr_array(self.label_rows_.T.tocsr())
        by_term, X = self.__dict__["_by_term"], rows.csr
        for part in slices(len(rows), _BLOCK_ROWS):
            said = X[part] if self.feature_terms_ is None else X[part] @ self.feature_terms_
            yield part, (said @ by_term).toarray().astype(np.float64)

    def _terms_of_labels(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """What the similarity of each label is multiplied with, and what is added to it."""
        a, b, c = self.mix_
        return a + b / (1 + self.counts_), c * self._is_unseen

    @property
    def _is_unseen(self) -> NDArray[np.bool_]:
        return self.has_text & (self.counts_ == 0)

    # Sources ------------------------------------------------------------------------------------

    @property
    def sources(self) -> list[str]:
        """After `fit`, the parts of the score; later their weighted sum."""
        return list(self._parts) if self._apart else [self.name]

    def source_candidates(self, rows: Rows, k: int) -> Codes:
        """Most similar labels among all, and among those without rows."""
        found = [best_of(similar, k)[0] for _, similar in self._similar(rows)]
        is_unseen = self._is_unseen
        if self._apart and is_unseen.any():
            rare = [
                best_of(np.where(is_unseen, similar, -1.0), k)[0]
                for _, similar in self._similar(rows)
            ]
            found = [np.hstack(pair) for pair in zip(found, rare, strict=True)]
        return np.concatenate(found)

    def source_scores(self, rows: Rows, codes: Codes) -> NDArray:
        """The parts of these labels' scores."""
        if not self._apart:
            return super().source_scores(rows, codes)
        said = [
            np.take_along_axis(similar, codes[part], 1) for part, similar in self._similar(rows)
        ]
        similar = np.concatenate(said)
        rare = similar / (1 + self.counts_[codes])
        return np.stack([similar, rare, self._is_unseen[codes].astype(float)], axis=-1)

    def set_source_weights(self, weights: NDArray[np.float64]) -> float:
        """Take the weighted mean of the parts; return the sum of the weights."""
        if not self._apart:
            return float(weights[0])
        total = float(weights.sum())
        shares = weights / total if total > 0 else np.array([1.0])
        self.mix_ = np.pad(shares, (0, 3 - shares.size))
        self._apart = False
        return total

    # Save ---------------------------------------------------------------------------------------

    def __getstate__(self) -> Any:
        return {k: v for k, v in super().__getstate__().items() if k not in ("_by_term", "_apart")}

    def _check_learnt(self) -> None:
        rows, terms, counts, mix = self.label_rows_, self.feature_terms_, self.counts_, self.mix_
        for table in (rows, terms):
            if table is not None and not _are_small(table.data, np.float32):
                raise ModelFileError("its label texts have impossible numbers")
        if terms is not None and terms.shape[1] != rows.shape[1]:
            raise ModelFileError("its label texts and its features have different terms")
        if (
            counts.shape != rows.shape[:1]
            or not _are_small(counts, np.float64)
            or (counts < 0).any()
        ):
            raise ModelFileError("its label texts lack the number of rows of each label")
        if mix.shape != (3,) or not _are_small(mix, np.float64):
            raise ModelFileError("its label texts lack their weights")


def _float_rows(table: Any) -> sp.csr_array:
    """Sparse rows in single precision, sorted and without duplicates."""
    rows = sp.csr_array(table, dtype=np.float32)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


def _are_small(values: NDArray, dtype: Any) -> bool:
    is_small = np.abs(values) <= LARGEST if values.dtype == dtype else np.zeros(1, dtype=bool)
    return bool(is_small.all())  # also not if one is not a number
