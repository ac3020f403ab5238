"""What validation rows say of scorers: candidates, scores by every source, weights of sources."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from locole.parallel.blocks import map_blocks
from locole.samples import Rows, Samples, take
from locole.scoring.base import Codes, LabelScorer, ValidationScores
from locole.scoring.nearest import NearestScorer
from locole.scoring.weights import (
    first_is_right,
    fit_curves,
    fit_weights,
    frequency_shares,
    mean_loss,
)

__all__ = ["CANDIDATES", "Trial", "divided", "repeated", "whole_names"]

#: Candidates taken from each scorer, or 2k.
CANDIDATES = 32
# Best labels of each source, and the labels of the row, among which weights are fitted: those behind
# them, half of all, have next to no probability.
_LEADING = 16
# With fewer validation rows, weights are fitted by likelihood, which uses more of what each row says.
_MANY_ROWS = 1_000
# Curves are fitted to the best candidates of a row, if labels differ by that much in the logarithm of
# their rows (a standard deviation of a tenth is 7 %).
_CURVE_CANDIDATES, _MIN_SPREAD = 20, 0.1
# Validation rows scored at a time.
_BLOCK_ROWS = 256


class _Criterion(NamedTuple):
    """How sources are weighed against each other, and what an optional scorer must be worth."""

    power: float
    """Of the generalised cross-entropy; 0 is the likelihood."""
    worth: float
    """What a scorer, or its sketch, must take off the mean loss of a validation row."""


# By likelihood, rows with a wrong label decide (docs/research/default_model.md). On validation rows of
# five sets, factors and the elastic net are worth 0.013 or more where they help and 0.0001 or less where
# they do not; their sketches 0.007 or more and 0.003 or less.
_ROBUST, _LIKELIHOOD = _Criterion(0.5, 0.005), _Criterion(0.0, 0.02)


class Trial(NamedTuple):
    """Candidates of validation rows, and their scores by every source."""

    validation: Samples
    names: list[str]
    codes: Codes
    scores: NDArray[np.float64]
    right: NDArray[np.bool_]
    valid: NDArray[np.bool_]
    counts: NDArray[np.int64]
    """Rows of each candidate that the scorers have learnt."""
    signed: NDArray[np.bool_] | None = None
    """Which sources may have a negative weight."""
    leading: NDArray[np.bool_] | bool = True
    """Candidates among which weights are fitted, beside those that are right."""

    @classmethod
    def of(
        cls,
        scorers: Sequence[LabelScorer],
        validation: Samples,
        counts: NDArray[np.int64],
        *,
        n_jobs: int | None,
    ) -> Self:
        """Score the best candidates of every source by all sources; ``counts`` are of all labels."""
        k = min(CANDIDATES, validation.n_classes)

        def candidates(part: slice) -> tuple[NDArray, NDArray]:
            rows = Rows(validation.X[part])
            found = np.hstack([scorer.source_candidates(rows, k) for scorer in scorers])
            # By rank, so that of a label that several sources propose the best place comes first.
            codes = found.reshape(len(rows), -1, k).swapaxes(1, 2).reshape(found.shape)
            said = [scorer.source_scores(rows, codes) for scorer in scorers]
            return codes, np.concatenate(said, axis=-1, dtype=np.float64)

        parts = map_blocks(candidates, validation.n_rows, block=_BLOCK_ROWS, n_jobs=n_jobs)
        codes, scores = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        names = [name for scorer in scorers for name in scorer.sources]
        signed = np.array([name in s.signed_sources for s in scorers for name in s.sources])
        learnt, right = counts[codes], validation.has(codes)
        if not any(scorer.answers_unseen for scorer in scorers):
            # By accident only, and would teach that labels without rows are better.
            right &= learnt > 0
        leading = np.arange(codes.shape[1]) < _LEADING * (codes.shape[1] // k)
        valid = ~repeated(codes)
        return cls(validation, names, codes, scores, right, valid, learnt, signed, leading)

    @classmethod
    def of_whole(
        cls,
        scorers: Sequence[LabelScorer],
        validation: Samples,
        counts: NDArray[np.int64],
        *,
        n_jobs: int | None,
    ) -> Self:
        """Score the best candidates of every scorer by all scorers, each as one source."""
        k = min(CANDIDATES, scorers[0].n_classes)

        def candidates(part: slice) -> tuple[NDArray, NDArray]:
            rows = Rows(take(validation.X, part))
            codes = np.hstack([scorer.candidates(rows, k)[0] for scorer in scorers])
            said = [scorer.scores_at(rows, codes) for scorer in scorers]
            return codes, np.stack(said, axis=-1).astype(np.float64)

        parts = map_blocks(candidates, validation.n_rows, block=_BLOCK_ROWS, n_jobs=n_jobs)
        codes, scores = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        names, right = whole_names(scorers), validation.has(codes)
        return cls(validation, names, codes, scores, right, ~repeated(codes), counts[codes])

    def by_scorer(self, scorers: Sequence[LabelScorer], weights: NDArray) -> Trial:
        """The same with one source for each scorer, the sum of its sources with these weights."""
        ends = np.cumsum([len(scorer.sources) for scorer in scorers])[:-1]
        parts = zip(np.split(self.scores, ends, axis=-1), np.split(weights, ends), strict=True)
        scores = np.stack([table @ part for table, part in parts], axis=-1)
        return self._replace(names=whole_names(scorers), scores=scores, signed=None)

    def times(self, weights: Sequence[float] | NDArray) -> Trial:
        """The same with weighted scores."""
        return self._replace(scores=self.scores * np.asarray(weights))

    @property
    def criterion(self) -> _Criterion:
        """How sources are weighed."""
        return _ROBUST if len(self.right) >= _MANY_ROWS else _LIKELIHOOD

    @property
    def _weighed(self) -> NDArray[np.bool_]:
        return self.valid & (self.leading | self.right)

    def weights(
        self, use: NDArray[np.bool_] | None = None, start: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """Return a weight for each source, 0 for those not in use; ``start`` are weights near them."""
        scores = self.scores if use is None else self.scores * use
        return fit_weights(
            scores, self.right, self._weighed, self.validation.weight,
            signed=self.signed, power=self.criterion.power, start=start,
        )  # fmt: skip

    def curves(self) -> NDArray[np.float64] | None:
        """Factors of sums, a curve over the rows of a label for each source, as `fit_curves` has them.

        None if there are too few validation rows to tell, or all labels have about as many rows.
        """
        is_label = self.valid & (self.counts > 0)
        spread = np.log2(self.counts[is_label]).std() if is_label.any() else 0.0
        if len(self.right) < _MANY_ROWS or spread < _MIN_SPREAD:
            return None
        total = np.where(self.valid, self.scores.sum(axis=-1), -np.inf)
        order = np.argsort(-total, axis=1, kind="stable")[:, :_CURVE_CANDIDATES]
        tables: Any = (self.counts, self.right, self.valid)
        counts, right, valid = (np.take_along_axis(table, order, 1) for table in tables)
        scores = np.take_along_axis(self.scores, order[..., None], 1)
        same = np.ones(scores.shape[2])
        return fit_curves(scores, counts, right, valid, same, self.validation.weight)

    def totals(self, curves: NDArray[np.float64] | None) -> NDArray[np.float64]:
        """Sums over the sources, with factors by the rows of a label."""
        if curves is None:
            return self.scores.sum(axis=-1)
        factors = frequency_shares(self.counts) @ curves.T
        return np.einsum("rcs,rcs->rc", self.scores, factors)

    def without_idle(
        self, scorers: Sequence[LabelScorer], optional: Sequence[str]
    ) -> tuple[list[int], NDArray[np.float64]]:
        """Leave out optional sources that do not help, asked in the given order.

        Returns the places of the scorers that are left, and the weights of all sources.
        """
        use, weights = np.ones(len(self.names), dtype=bool), self.weights()
        owners = [scorer for scorer in scorers for _ in scorer.sources]
        for name in optional:
            if name not in self.names:
                continue
            i = self.names.index(name)
            scorer, fewer = owners[i], use.copy()
            fewer[i] = False
            other = self.weights(fewer, weights)
            is_worse = name in scorer.optional_sources and not scorer.optional
            is_worse = is_worse and self.accuracy(weights) < self.accuracy(other)
            if is_worse or self.loss(other) - self.loss(weights) < self.criterion.worth:
                use, weights = fewer, other
        parts = divided(use, scorers)
        kept = [i for i, used in enumerate(parts) if used.any() or used.size == 0]
        return kept, weights

    def loss(self, weights: NDArray) -> float:
        """Mean loss of the rows under these weights."""
        total, weight = self.scores @ weights, self.validation.weight
        return mean_loss(total, self.right, self._weighed, weight, power=self.criterion.power)

    def accuracy(self, weights: NDArray) -> float:
        """Part of the rows whose label comes first."""
        return float(first_is_right(self.scores @ weights, self.right, self.valid).mean())

    def choice(
        self, weights: NDArray, totals: NDArray, also: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """What the weights are, and how good each source is alone and all are by their totals."""
        alone = np.eye(len(self.names))
        sources = {
            name: {"accuracy": self.accuracy(row), "weight": float(weight)}
            for name, row, weight in zip(self.names, alone, weights, strict=True)
        }
        return {
            "validation_rows": len(self.right),
            "accuracy": float(first_is_right(totals, self.right, self.valid).mean()),
            "sources": (also or {}) | sources,
        }

    def lost(
        self, scorers: Sequence[LabelScorer], kept: Sequence[int], weights: NDArray
    ) -> dict[str, Any]:
        """What the choice says of the sources of scorers that are not kept."""
        found = self.choice(weights, self.scores @ weights)["sources"]
        gone = [scorer for i, scorer in enumerate(scorers) if i not in kept]
        return {name: found[name] for scorer in gone for name in scorer.sources}

    def ranked(self, totals: NDArray) -> ValidationScores:
        """All candidates by these totals, best first."""
        total = np.where(self.valid, totals, -np.inf)
        order = np.argsort(-total, axis=1, kind="stable")
        codes, total, right = (
            np.take_along_axis(table, order, 1) for table in (self.codes, total, self.right)
        )
        return ValidationScores(codes, total, right & (total > -np.inf), self.validation)

    def similarity(self, codes: Codes, train: Samples, *, n_jobs: int | None) -> NDArray:
        """Cosines of the validation rows and the nearest training row of each of these labels."""
        known = train.owners[np.isin(train.codes, codes)]
        nearest = NearestScorer().fit(train.take(np.unique(known)))

        def similarity(part: slice) -> NDArray:
            return nearest.similarity_of(Rows(self.validation.X[part]), codes[part])

        return np.concatenate(map_blocks(similarity, len(codes), block=_BLOCK_ROWS, n_jobs=n_jobs))


def whole_names(scorers: Sequence[LabelScorer]) -> list[str]:
    """Names of scorers that are one source each: those of their only source, or their own."""
    return [one.sources[0] if len(one.sources) == 1 else one.name for one in scorers]


def divided(weights: NDArray, scorers: Sequence[LabelScorer]) -> list[NDArray]:
    """Weights of the sources of each scorer."""
    return np.split(weights, np.cumsum([len(scorer.sources) for scorer in scorers])[:-1])


def repeated(codes: Codes) -> NDArray[np.bool_]:
    """Which candidates of a row stand further left in it as well."""
    order = np.argsort(codes, axis=1, kind="stable")
    ordered = np.take_along_axis(codes, order, 1)
    again = np.zeros(codes.shape, dtype=bool)
    np.put_along_axis(again, order[:, 1:], ordered[:, 1:] == ordered[:, :-1], 1)
    return again
