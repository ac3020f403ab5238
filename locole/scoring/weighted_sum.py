"""The score of several scorers: a weighted sum of theirs, over the candidates of all of them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from locole.dense_rows import PairedRows, sparse_view
from locole.parallel.blocks import slices
from locole.samples import Rows, take
from locole.scoring.base import Codes, Contributions, LabelScorer, best_of
from locole.scoring.frequencies import FrequencyWeights
from locole.scoring.names import UNSEEN
from locole.scoring.nearest import RERANKED, NearestScorer
from locole.scoring.trial import CANDIDATES, repeated
from locole.scoring.unseen import UnseenCalibration, best_mean
from locole.sparse_rows import unit_rows

__all__ = ["WeightedSum"]

# More labels of a row than these are taken from a table of all scores, of so many numbers at most.
_LONGEST_LIST, _TABLE = 1_024, 2**23


class WeightedSum(LabelScorer):
    """Weighted sum of fitted scorers, for `locole.scoring.Ensemble`, which fits them and the weights."""

    scorers_: list[LabelScorer]
    weights_: list[float]
    reranker_: NearestScorer | None
    frequencies_: FrequencyWeights | None = None
    unseen_: UnseenCalibration | None = None
    unit_rows: bool

    def __getitem__(self, name: str) -> LabelScorer:
        """Return the scorer of that name."""
        for scorer in self.scorers_:
            if scorer.name == name:
                return scorer
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        return any(scorer.name == name for scorer in self.scorers_)

    @property
    def n_classes(self) -> int:
        """Number of labels."""
        return self.scorers_[0].n_classes

    @property
    def n_features(self) -> int | None:
        """Number of features, if a scorer knows it."""
        known = (scorer.n_features for scorer in self.scorers_)
        return next((n for n in known if n is not None), None)

    @property
    def n_beside(self) -> int | None:
        """Dense numbers beside each row, if a scorer looks at them."""
        known = (scorer.n_beside for scorer in self.scorers_)
        return next((n for n in known if n is not None), None)

    def _parts(self) -> list[LabelScorer]:
        return [*self.scorers_, *([] if self.reranker_ is None else [self.reranker_])]

    def _change(self, what: Callable[[LabelScorer], Any]) -> None:
        """Change copies of all scorers."""
        self.scorers_ = [copy.copy(scorer) for scorer in self.scorers_]
        self.reranker_ = copy.copy(self.reranker_)
        for part in self._parts():
            what(part)

    # Score --------------------------------------------------------------------------------------

    def candidates(self, rows: Rows, k: int) -> tuple[Codes, NDArray]:
        """Best labels by the weighted sum, reranked if there is a reranker."""
        if k > _LONGEST_LIST:
            return self._best_of_all(rows, k)
        rows = self._seen(rows)
        if self.reranker_ is None:
            return self._best(rows, k)
        wanted = min(max(k, RERANKED), self.n_classes)
        codes, scores = self.reranker_.rerank(rows, *self._best(rows, wanted))
        return codes[:, :k], scores[:, :k]

    def _best_of_all(self, rows: Rows, k: int) -> tuple[Codes, NDArray]:
        """Best labels by a table of all scores, a few rows at a time.

        Lists of candidates are kept in order by insertion, which is slow where nearly all are taken.
        """
        parts = slices(len(rows), max(1, _TABLE // self.n_classes))
        tables = (self.all_scores(Rows(take(rows.X, part))) for part in parts)
        codes, scores = zip(*(best_of(table, k) for table in tables), strict=True)
        return np.concatenate(codes), np.concatenate(scores)

    def scores_at(self, rows: Rows, codes: Codes) -> NDArray:
        """Weighted sums of these labels, reranked if they are among the best."""
        rows = self._seen(rows)
        total: Any = sum(
            weight.times(scorer.scores_at(rows, codes), codes)
            for scorer, weight in self._speaking()
        )
        if self.unseen_ is not None:
            total = self.unseen_.applied(total, self._is_unseen[codes], self._level(rows))
        if self.reranker_ is None:
            return np.asarray(total)
        return self.reranker_.scale_ * total + self._said_by_nearest(rows, codes)

    def all_scores(self, rows: Rows) -> NDArray:
        """Weighted sums of all labels; those of the best are reranked."""
        rows = self._seen(rows)
        total = np.zeros((len(rows), self.n_classes))
        for scorer, weight in self._speaking():
            total += weight.times(scorer.all_scores(rows), slice(None))
        if self.unseen_ is not None:
            total = self.unseen_.applied(total, self._is_unseen)
        if self.reranker_ is None:
            return total
        best, scores = best_of(total, min(RERANKED, self.n_classes))
        codes, new = self.reranker_.rerank(rows, best, scores)
        total = self.reranker_.scale_ * total + self.reranker_.curve_.min()
        np.put_along_axis(total, codes, new, 1)
        return total

    def _said_by_nearest(self, rows: Rows, codes: Codes) -> NDArray[np.float64]:
        """What the reranker adds to the weighted sums of these labels."""
        reranker: Any = self.reranker_
        best, _ = self._best(rows, min(RERANKED, self.n_classes))
        is_best = (codes[:, :, None] == best[:, None, :]).any(axis=2)
        return np.where(is_best, reranker.scores_at(rows, codes), reranker.curve_.min())

    def explain(self, rows: Rows, codes: Codes) -> Contributions:
        """Weighted sum of what the scorers say, and what reranking adds."""
        rows = self._seen(rows)
        one = np.ones(codes.shape)
        parts = [
            scorer.explain(rows, codes).weighed(weight.times(one, codes), rows.csr)
            for scorer, weight in self._speaking()
        ]
        total = reduce(Contributions.plus, parts)
        if self.unseen_ is not None:
            is_unseen = self._is_unseen[codes]
            total = total.weighed(self.unseen_.factors(is_unseen), rows.csr)
            total = total.plus(
                _others(total, UNSEEN, self.unseen_.added(is_unseen, self._level(rows)))
            )
        if self.reranker_ is None:
            return total
        total = total.times(self.reranker_.scale_)
        said = self._said_by_nearest(rows, codes)
        return total.plus(_others(total, NearestScorer.name, said))

    def _seen(self, rows: Rows) -> Rows:
        """Rows as the scorers are given them."""
        if not self.unit_rows:
            return rows
        return rows.once(self, lambda: Rows(self._scaled(rows.X)), "seen")

    def _scaled(self, X: Any) -> Any:
        if not self.unit_rows:
            return X
        # Who explains a score counts on every entry that a row has.
        unit = unit_rows(sparse_view(X), stored_zeros=True)
        return PairedRows(unit, X.dense) if isinstance(X, PairedRows) else unit

    def _speaking(self) -> Iterator[tuple[LabelScorer, _Weight]]:
        for i, (scorer, weight) in enumerate(zip(self.scorers_, self.weights_, strict=True)):
            known = self.frequencies_
            yield scorer, _Weight(weight, None if known is None else known.of(i))

    @property
    def _has_text(self) -> NDArray[np.bool_]:
        """Of which labels a scorer can say anything without a row of theirs."""
        return np.logical_or.reduce([scorer.has_text for scorer in self.scorers_])

    @property
    def _is_unseen(self) -> NDArray[np.bool_]:
        """Which labels have a text, but no rows."""
        known: Any = self.frequencies_
        return self._has_text & (known.rows == 0)

    def _level(self, rows: Rows) -> NDArray[np.float64]:
        """Mean of the best scores of labels with rows."""
        codes, totals = self._candidates(rows, min(CANDIDATES, self.n_classes))
        return best_mean(totals, self._is_unseen[codes])

    def _best(self, rows: Rows, k: int) -> tuple[Codes, NDArray]:
        """Best labels by the weighted sum, among the candidates of all scorers."""
        speaking = self._heard(rows)
        if len(speaking) == 1 and speaking[0][1].factors is None and self.unseen_ is None:
            first, weight = speaking[0]
            codes, scores = first.candidates(rows, k)
            return codes, weight.times(scores.astype(np.float64), codes)
        codes, totals = self._candidates(rows, min(max(2 * k, CANDIDATES), self.n_classes))
        if self.unseen_ is not None:
            totals = self.unseen_.applied(totals, self._is_unseen[codes])
        order = np.lexsort((codes, -totals), axis=1)[:, :k]
        return np.take_along_axis(codes, order, 1), np.take_along_axis(totals, order, 1)

    def _candidates(self, rows: Rows, wanted: int) -> tuple[Codes, NDArray]:
        """So many labels of each scorer, and their weighted sums: −∞ where one comes again."""
        (first, weight), *others = speaking = self._heard(rows)
        codes, scores = first.candidates(rows, wanted)
        totals = weight.times(scores, codes)
        for i, (scorer, weight) in enumerate(others, start=1):
            own, scores, at = scorer.candidates_and_scores(rows, wanted, codes)
            mine = weight.times(scores, own)
            for other, its_weight in speaking[:i]:
                mine = its_weight.times(other.scores_at(rows, own), own) + mine
            totals = np.hstack([totals + weight.times(at, codes), mine])
            codes = np.hstack([codes, own])
        totals[repeated(codes)] = -np.inf
        return codes, totals

    def _heard(self, rows: Rows) -> list[tuple[LabelScorer, _Weight]]:
        """Scorers that say anything of these rows, or the first one."""
        speaking = [pair for pair in self._speaking() if not pair[0].is_silent(rows)]
        return speaking or list(self._speaking())[:1]


def _others(total: Contributions, name: str, said: NDArray) -> Contributions:
    """What is added by nothing of a row."""
    return Contributions(np.zeros_like(total.features), {name: said})


class _Weight(NamedTuple):
    """Weight of a scorer, with a factor for each label if they differ."""

    weight: float
    factors: NDArray[np.float64] | None

    def times(self, scores: NDArray, codes: Codes | slice) -> NDArray:
        """Scores of these labels, weighed."""
        weighed = scores if self.weight == 1 else self.weight * scores
        return weighed if self.factors is None else self.factors[codes] * weighed
