"""Several scorers as one: candidates of all, and a weighted sum fitted to validation rows."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from itertools import groupby
from math import ceil
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from locole.dense_rows import PairedRows
from locole.exceptions import LocoleError, ModelFileError
from locole.io import saved_as
from locole.label_past import Relabelling
from locole.parallel import Engine, make_engine
from locole.parallel.blocks import one_blas_thread
from locole.parameters import COUNT, ENGINE, N_JOBS, SEED, SWITCH, SWITCH_OR_AUTO
from locole.samples import Rows, Samples
from locole.scoring.base import Codes, LabelScorer, ValidationScores
from locole.scoring.frequencies import FrequencyWeights, rows_of_labels
from locole.scoring.nearest import RERANKED, Evidence, NearestScorer
from locole.scoring.reservoir import Reservoir, Said, row_keys
from locole.scoring.trial import Trial, divided, whole_names
from locole.scoring.unseen import UnseenCalibration
from locole.scoring.weighted_sum import WeightedSum

__all__ = ["Ensemble"]

# With fewer rows in the reservoir weights stay as they are.
_MIN_ROWS = 50
# Share of the validation rows whose label is hidden from scorers, if one of them can answer such labels.
_LEAST_HIDDEN, _MOST_HIDDEN = 0.05, 0.5
# Validation rows that are enough to tell from sketches whether a scorer is worth a fit.
_SKETCH_ROWS = 2_000


class _Nearest(NamedTuple):
    """How similar validation rows are to the training rows of their best labels."""

    codes: Codes
    similarity: NDArray


@saved_as("scorer.ensemble")
class Ensemble(WeightedSum):
    r"""Weighted sum of scorers, with weights fitted to validation rows.

    .. math:: s_i(x) = \sum_j w_j s_{ji}(x), \qquad
              p_y(x) = \frac{e^{s_y(x)}}{\sum_{i \in K(x)} e^{s_i(x)}}, \qquad
              \min_{w \ge 0} \sum_{x, y} \frac{1 - p_y(x)^q}{q}

    with K(x) the best 32 labels of each scorer and q = ½, a loss that rows with a wrong label cannot
    dominate (with fewer than 1,000 validation rows q → 0, the likelihood). The scale of the sum is then
    fitted by maximum likelihood, so that the scores are logits, and with it a factor of each weight that
    depends on how many rows a label has (``FrequencyWeights``): labels with few rows would otherwise be
    scored too low by some scorers and too high by others. Scorers are fitted without the
    validation rows, weighed on them, and then learn them by `partial_fit`. An optional source that makes
    the labels of the validation rows hardly more likely is left out, as is a regressor beside another
    one if fewer of the rows are right with it; where a fit takes long, a `sketch` of the scorer decides
    that first.

    The answer to a row is the best of the candidates of all scorers: a label can only be missed if it is
    not among the best 32 (or 2k) of any scorer.

    Parameters
    ----------
    scorers : list of LabelScorer
        Unfitted, with different names.
    nearest : bool or "auto"
        Whether the best eight labels are reranked by `NearestScorer`. ``"auto"``: if that puts more
        validation rows right, by two standard deviations.
    n_validation : int
        Validation rows, and at most a tenth of all rows.
    random_state : int
        Seed of the split.
    n_jobs : int, optional
        Threads; the answer does not depend on it.
    engine : {"threads", "ray"} or Engine
        Kept running while scorers are fitted. Not saved.
    unit_rows : bool
        Whether scorers are given rows of unit length.

    Attributes
    ----------
    scorers_ : list of LabelScorer
        The fitted scorers.
    weights_ : list of float
        Weight of each scorer.
    reranker_ : NearestScorer or None
        What reranks the best eight labels, if anything does.
    frequencies_ : FrequencyWeights or None
        Factors of the weights by how many rows a label has; None in old files.
    unseen_ : UnseenCalibration or None
        What makes scores of labels without rows comparable, if a scorer can answer these.
    reservoir_ : Reservoir or None
        What the scorers said of rows before they learnt these; None in old files.
    choice_ : dict
        ``validation_rows``; their ``accuracy``; for each of the ``sources`` its ``accuracy`` alone (that
        of its sketch if it was left out after that) and its ``weight``; for ``nearest`` how many of the
        ``rows`` are right ``before`` and ``after``, and whether it is ``used``.

    Examples
    --------
    >>> from locole.datasets import make_topics
    >>> from locole.samples import Rows, Samples
    >>> from locole.scoring import FactorScorer, ProfileScorer
    >>> data = make_topics(2_000, 500, 20, test_size=100)
    >>> model = Ensemble([ProfileScorer(), FactorScorer(n_blocks=1)])
    >>> model = model.fit(Samples(data.X_train, data.y_train, n_classes=20))
    >>> codes, scores = model.candidates(Rows(data.X_test), k=1)
    >>> bool((codes.ravel() == data.y_test).mean() > 0.5), len(model.weights_)
    (True, 2)
    """

    name = "ensemble"
    _learnt: ClassVar = {
        "scorers_": list,
        "weights_": list,
        "reranker_": (NearestScorer, type(None)),
        "choice_": dict,
        "reservoir_": (Reservoir, type(None)),
        "frequencies_": (FrequencyWeights, type(None)),
        "unseen_": (UnseenCalibration, type(None)),
    }
    reservoir_: Reservoir | None
    _parameter_constraints: ClassVar = {
        "scorers": [list, tuple],
        "nearest": SWITCH_OR_AUTO,
        "n_validation": COUNT,
        "random_state": SEED,
        "n_jobs": N_JOBS,
        "engine": ENGINE,
        "unit_rows": SWITCH,
    }
    _unsaved: ClassVar = ("scorers", "engine")

    def __init__(
        self,
        scorers: Sequence[LabelScorer] = (),
        *,
        nearest: bool | Literal["auto"] = "auto",
        n_validation: int = 4_000,
        random_state: int = 0,
        n_jobs: int | None = None,
        engine: str | Engine = "threads",
        unit_rows: bool = False,
    ) -> None:
        self.scorers = scorers
        self.nearest = nearest
        self.n_validation = n_validation
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.engine = engine
        self.unit_rows = unit_rows

    # Fit ----------------------------------------------------------------------------------------

    def fit(self, samples: Samples, *, before: Sequence[LabelScorer] = ()) -> Self:
        """Fit the scorers to most samples, weigh them on the others, then let them learn those too."""
        self.check_parameters()
        self._check_scorers()
        samples = samples._replace(X=self._scaled(self._rows(samples))).positive()
        n_validation = min(self.n_validation, samples.n_rows // 10)
        if n_validation < 1:
            raise LocoleError(
                f"an ensemble needs at least 10 rows to fit its weights, not {samples.n_rows}: take one "
                "scorer alone."
            )
        train, validation, later = self._split(samples, n_validation)
        # A cluster is joined or started once for all scorers. In the many small products threads of BLAS
        # only wait for each other, and blocks of rows or labels have threads of their own.
        with one_blas_thread(), make_engine(self.engine).running(self.n_jobs):
            fitted, lost = self._fitted(train, validation, before)
            # Filled in later: sources are listed in the order of scorers, also those that go.
            lost |= dict.fromkeys(name for scorer in fitted for name in scorer.sources)
            counts = rows_of_labels(train)
            self.scorers_, trial, weights = self._weighed(fitted, validation, counts, lost)
            sums = trial.by_scorer(self.scorers_, weights)
            self.frequencies_ = FrequencyWeights(counts, sums.curves())
            totals = sums.totals(self.frequencies_.curves)
            self.unseen_ = self._unseen_calibration(sums, totals, samples)
            totals = self._calibrated(sums, totals)
            self.choice_ = trial.choice(weights, totals, also=lost)
            ranked = trial.ranked(totals)
            self.reranker_, ranked, nearest = self._reranker(trial, ranked, train, samples)
            self._validated = ranked
            parts = divided(weights, self.scorers_)
            self.weights_ = [
                scorer.set_source_weights(part)
                for scorer, part in zip(self.scorers_, parts, strict=True)
            ]
            self.reservoir_ = self._first_reservoir(sums, nearest, train, samples.n_rows)
            for scorer in self.scorers_:
                scorer.learn_rest(later, samples)
            self.frequencies_ = self.frequencies_.with_rows(later)
        return self

    def _first_reservoir(
        self, sums: Trial, nearest: _Nearest | None, train: Samples, n_rows: int
    ) -> Reservoir:
        """The validation rows whose labels were known without them, as they were scored."""
        factors = [1 / weight if weight > 0 else 0.0 for weight in self.weights_]
        whole = sums._replace(scores=sums.scores * factors)
        samples = whole.validation
        is_known = np.zeros(samples.n_rows, dtype=bool)
        is_known[samples.owners[np.isin(samples.codes, train.codes)]] = True
        known = np.flatnonzero(is_known | (samples.n_labels == 0))

        def similarity(best: Codes) -> NDArray:
            if nearest is not None and np.array_equal(best, nearest.codes):
                return nearest.similarity
            return whole.similarity(best, train, n_jobs=self.n_jobs)

        said = self._said(whole, similarity).take(known)
        labels = samples.take(known)._replace(X=np.empty((known.size, 0)), weight=None)
        return Reservoir(self.n_validation, n_rows, said, labels)

    def _split(self, samples: Samples, n_validation: int) -> tuple[Samples, Samples, Samples]:
        """Rows to learn from, validation rows, and rows to be learnt later, those among them.

        Some validation rows have new labels if a scorer can answer those.
        """
        seed = [self.random_state, samples.n_rows, 1]
        if not any(scorer.answers_unseen for scorer in self.scorers):
            train, validation = samples.split(n_validation, seed=seed)
            return train, validation, validation
        # As if labels without rows were to be met as often as others.
        unseen = 1 - np.unique(samples.codes).size / samples.n_classes
        share = min(max(unseen, _LEAST_HIDDEN), _MOST_HIDDEN)
        return samples.split_hiding(n_validation, n_hidden=ceil(share * n_validation), seed=seed)

    def _rows(self, samples: Samples) -> Any:
        """Rows in the form that most scorers want, of which few copies are made."""
        if isinstance(samples.X, PairedRows):
            return samples.X
        return samples.dense if any(s.takes_dense for s in self.scorers) else samples.csr

    def _check_scorers(self) -> None:
        names = [scorer.name for scorer in self.scorers]
        if not names:
            raise LocoleError("an ensemble needs at least one scorer.")
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise LocoleError(
                f"there are two scorers named {twice!r}: leave one out, or give it another name."
            )

    def _fitted(
        self, train: Samples, validation: Samples, before: Sequence[LabelScorer]
    ) -> tuple[list[LabelScorer], dict[str, Any]]:
        """Scorers in the given order, and the sources of those that a sketch has spoken against."""
        fitted: dict[int, LabelScorer] = {}
        stages = [scorer.stage for scorer in self.scorers]

        def fit(scorers: dict[int, LabelScorer]) -> None:
            for i in sorted(scorers, key=lambda i: stages[i]):
                earlier = [fitted[j] for j in fitted if stages[j] < stages[i]]
                scorer = scorers[i].watching(validation)
                fitted[i] = scorer.fit(train, before=(*before, *earlier))

        unfitted = {i: copy.copy(scorer) for i, scorer in enumerate(self.scorers)}
        asked = {i: scorer.sketch(train) for i, scorer in unfitted.items()}
        sketches = {i: sketch for i, sketch in asked.items() if sketch is not None}
        lost: dict[str, Any] = {}
        if sketches:
            last = max(stages[i] for i in sketches)
            fit({i: asked[i] or scorer for i, scorer in unfitted.items() if stages[i] <= last})
            # Without names: beside these a rough version shows little of what a fit is worth.
            places = [i for i in sorted(fitted) if not fitted[i].answers_unseen]
            rough = [fitted[i] for i in places]
            n_rows = min(validation.n_rows, _SKETCH_ROWS)
            some = validation.take(np.arange(n_rows) * validation.n_rows // n_rows)
            trial = Trial.of(rough, some, rows_of_labels(train), n_jobs=self.n_jobs)
            optional = [name for sketch in sketches.values() for name in sketch.sources]
            kept, weights = trial.without_idle(rough, optional)
            lost = trial.lost(rough, kept, weights)
            for i in sketches:
                del fitted[i]
            for i in sketches.keys() - {places[j] for j in kept}:
                remains = unfitted.pop(i).left_out(train)
                if remains is not None:
                    fitted[i] = remains
        fit({i: scorer for i, scorer in unfitted.items() if i not in fitted})
        return [fitted[i] for i in sorted(fitted)], lost

    def _weighed(
        self,
        scorers: list[LabelScorer],
        validation: Samples,
        counts: NDArray[np.int64],
        lost: dict[str, Any],
    ) -> tuple[list[LabelScorer], Trial, NDArray[np.float64]]:
        """Scorers that are worth their place, a trial of them, and the weights of their sources.

        Those of late stages are asked first: if they go, the others are weighed as if they had never
        been there. The sources of all that go are added to ``lost``.
        """
        trial = Trial.of(scorers, validation, counts, n_jobs=self.n_jobs)
        optional: list[str] = []
        late_first = sorted((s for s in scorers if s.optional_sources), key=lambda s: -s.stage)
        stages = [list(group) for _, group in groupby(late_first, lambda s: s.stage)] or [[]]
        for group in stages:
            optional += [name for scorer in group for name in scorer.optional_sources]
            kept, weights = trial.without_idle(scorers, optional)
            while len(kept) < len(scorers):
                # What goes proposes no candidates.
                lost |= trial.lost(scorers, kept, weights)
                scorers = [scorers[i] for i in kept]
                trial = Trial.of(scorers, validation, counts, n_jobs=self.n_jobs)
                kept, weights = trial.without_idle(scorers, optional)
        return scorers, trial, weights

    def _reranker(
        self, trial: Trial, ranked: ValidationScores, train: Samples, samples: Samples
    ) -> tuple[NearestScorer | None, ValidationScores, _Nearest | None]:
        """Reranker, if there is to be one, the validation rows' labels as it ranks them, and why."""
        if self.nearest is False:
            return None, ranked, None
        best = ranked.codes[:, :RERANKED]
        near = trial.similarity(best, train, n_jobs=self.n_jobs)
        evidence = Evidence.gather(ranked, near)
        before, after, is_better = evidence.counts()
        used = self.nearest is True or is_better
        found = {"rows": len(evidence.right), "before": before, "after": after, "used": used}
        self.choice_["nearest"] = found
        if not used:
            return None, ranked, None
        reranker = NearestScorer().fit(samples)
        evidence.fit_curve(reranker)
        said = np.full(ranked.scores.shape, reranker.curve_.min())
        said[:, :RERANKED] = reranker.curve_at(near)
        return reranker, _reranked(ranked, reranker.scale_, said), _Nearest(best, near)

    def partial_fit(self, samples: Samples) -> Self:
        """Let every scorer learn from more samples, some of which become validation rows before."""
        samples = samples._replace(X=self._scaled(samples.X)).positive()
        if samples.n_rows == 0:
            return self
        with one_blas_thread():
            n_met = self._meet(samples)
            self.scorers_ = [copy.copy(scorer).partial_fit(samples) for scorer in self.scorers_]
            if self.reranker_ is not None:
                self.reranker_ = copy.copy(self.reranker_).partial_fit(samples)
            if self.frequencies_ is not None:
                self.frequencies_ = self.frequencies_.with_rows(samples)
            if n_met and self.reservoir_ is not None:
                self._fit_weights(self.reservoir_)
        return self

    def _meet(self, samples: Samples) -> int:
        """Let rows enter the reservoir as they are scored before they are learnt; how many did."""
        if self.reservoir_ is None or self.frequencies_ is None:  # in files of before
            return 0
        is_known = samples.n_labels == 0
        is_known[samples.owners[samples.codes < self.n_classes]] = True
        met = samples.take(np.flatnonzero(is_known))
        rows, places = self.reservoir_.drawn(met.n_rows, seed=self.random_state)
        self.reservoir_ = self.reservoir_.grown(samples.n_classes)
        if rows.size == 0:
            self.reservoir_.n_seen += met.n_rows
            return 0
        some = met.take(rows)
        whole = Trial.of_whole(self.scorers_, some, self.frequencies_.rows, n_jobs=self.n_jobs)
        nearest: Any = self.reranker_
        said = self._said(whole, lambda best: nearest.similarity_of(Rows(some.X), best))
        labels = some._replace(X=np.empty((rows.size, 0)), weight=None)
        self.reservoir_ = self.reservoir_.entered(said, labels, places, met.n_rows)
        return int(rows.size)

    def _said(self, whole: Trial, similarity: Callable[[Codes], NDArray]) -> Said:
        """What is kept of a trial; ``similarity`` is asked if there is a reranker."""
        totals, near = self._totals(whole), None
        if self.reranker_ is not None:
            near = similarity(whole.ranked(totals).codes[:, :RERANKED])
        return Said.of(whole, totals, near, row_keys(whole.validation))

    def _totals(self, whole: Trial) -> NDArray[np.float64]:
        """Scores of the candidates of a trial, without a reranker."""
        curves = None if self.frequencies_ is None else self.frequencies_.curves
        return self._calibrated(whole, whole.times(self.weights_).totals(curves))

    def _calibrated(self, trial: Trial, totals: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scores of the candidates of a trial, with those of labels without rows calibrated."""
        if self.unseen_ is None:
            return totals
        valid = np.where(trial.valid, totals, -np.inf)
        return self.unseen_.applied(valid, self._are_unseen(trial))

    def _are_unseen(self, trial: Trial) -> NDArray[np.bool_]:
        """Which candidates have a text, but no rows that had been learnt."""
        return self._has_text[trial.codes] & (trial.counts == 0)

    def _unseen_calibration(
        self, trial: Trial, totals: NDArray[np.float64], samples: Samples
    ) -> UnseenCalibration | None:
        """Calibration of labels without rows, if a scorer can answer these and validation rows tell."""
        has_text, known = self._has_text, self.frequencies_
        if known is None or not has_text.any():
            return None
        counts = (known.rows, rows_of_labels(samples))
        now, later = (int((has_text & (rows == 0)).sum()) for rows in counts)
        return UnseenCalibration.fit(
            totals, trial.right, trial.valid, self._are_unseen(trial),
            competing=(now, later), sample_weight=trial.validation.weight,
        )  # fmt: skip

    def _fit_weights(self, reservoir: Reservoir) -> None:
        """Fit weights, and the curve of the reranker, to the reservoir."""
        trial = reservoir.trial(whole_names(self.scorers_))
        # A scorer that says nothing of any candidate, such as a prior alone, keeps its weight.
        speaks = np.asarray(trial.scores.any(axis=(0, 1)))
        weights = np.where(speaks, trial.weights(speaks), self.weights_)
        if reservoir.n_rows < _MIN_ROWS or not (weights[speaks] > 0).any():
            return
        self.weights_ = [float(weight) for weight in weights]
        if self.frequencies_ is not None:
            curves = trial.times(weights).curves()
            self.frequencies_ = self.frequencies_.with_curves(curves)
        totals = self._totals(trial)
        old = self.choice_.get("sources", {})
        also = {n: part for n, part in old.items() if not part["weight"] and n not in trial.names}
        self.choice_ = {**self.choice_, **trial.choice(weights, totals, also=also)}
        if self.reranker_ is not None:
            self.reranker_ = copy.copy(self.reranker_)
            reservoir.evidence(trial, totals).fit_curve(self.reranker_)
        self._validated = self._ranked(reservoir)

    def _ranked(self, reservoir: Reservoir) -> ValidationScores:
        """Candidates of the reservoir's rows as the ensemble ranks them."""
        trial = reservoir.trial(whole_names(self.scorers_))
        totals = self._totals(trial)
        ranked = trial.ranked(totals)
        if self.reranker_ is None:
            return ranked
        order = np.argsort(-np.where(trial.valid, totals, -np.inf), axis=1, kind="stable")
        near = np.take_along_axis(reservoir.said.near, order, 1)
        said = np.where(near >= 0, self.reranker_.curve_at(near), self.reranker_.curve_.min())
        return _reranked(ranked, self.reranker_.scale_, said)

    # Labels and features that change ------------------------------------------------------------

    @property
    def grows(self) -> bool:
        """Whether all scorers can take more features."""
        return all(part.grows for part in self._parts())

    def grow(self, n_features: int) -> None:
        """Let all scorers take more features."""
        self._change(lambda part: part.grow(n_features))

    def relabel(self, change: Relabelling) -> None:
        """Change the labels of all scorers and of the reservoir; the weights stay."""
        self._change(lambda part: part.relabel(change))
        if self.reservoir_ is not None:
            self.reservoir_ = self.reservoir_.relabelled(change)
        if self.frequencies_ is not None:
            self.frequencies_ = self.frequencies_.relabelled(change)

    def forget(self, samples: Samples) -> dict[str, str]:
        """Take samples out of all scorers and of the reservoir, and fit weights to what is left."""
        samples = samples._replace(X=self._scaled(samples.X)).positive()
        said: dict[str, str] = {}
        self._change(lambda part: said.update(part.forget(samples)))
        if self.frequencies_ is not None:
            self.frequencies_ = self.frequencies_.with_rows(samples, -1)
        if self.reservoir_ is not None:
            self.reservoir_ = self.reservoir_.without(row_keys(samples))
            self._fit_weights(self.reservoir_)
        return said

    def add_labels(self, n_classes: int) -> Self:
        """Let every scorer know more labels; the weights stay."""
        self._change(lambda part: part.add_labels(n_classes))
        if self.frequencies_ is not None:
            self.frequencies_ = self.frequencies_.with_labels(n_classes)
        if self.reservoir_ is not None:
            self.reservoir_ = self.reservoir_.grown(n_classes)
        return self

    def validation_scores(self) -> ValidationScores | None:
        """Candidates of the validation rows."""
        return self.__dict__.pop("_validated", None)

    # Save ---------------------------------------------------------------------------------------

    def _check_learnt(self) -> None:
        scorers, weights = self.scorers_, self.weights_
        parts = [*scorers, *([] if self.reranker_ is None else [self.reranker_])]
        fits = (
            1 <= len(scorers) == len(weights)
            and all(isinstance(scorer, LabelScorer) for scorer in scorers)
            and all(isinstance(weight, float) and np.isfinite(weight) for weight in weights)
            and len({part.n_classes for part in parts}) == 1
            and len({part.n_features for part in parts} - {None}) <= 1
            and len({part.n_beside for part in parts} - {None}) <= 1
        )
        frequencies, reservoir = self.frequencies_, self.reservoir_
        fits = fits and (self.unseen_ is None or frequencies is not None)
        if frequencies is not None:
            curves = frequencies.curves
            fits = fits and frequencies.rows.size == self.n_classes
            fits = fits and (curves is None or len(curves) == len(scorers))
        if reservoir is not None:
            n_classes = reservoir.samples.n_classes
            fits = fits and (n_classes, reservoir.n_scorers) == (self.n_classes, len(scorers))
            sources = self.choice_.get("sources", {})
            parts_of = list(sources.values()) if isinstance(sources, dict) else [sources]
            fits = fits and all(
                isinstance(part, dict) and isinstance(part.get("weight"), float)
                for part in parts_of
            )
        if not fits:
            raise ModelFileError("its scorers do not fit together")


def _reranked(ranked: ValidationScores, scale: float, said: NDArray) -> ValidationScores:
    """Labels in the order of their scaled scores and what the reranker says."""
    is_label = ranked.scores > -np.inf
    scaled = scale * np.where(is_label, ranked.scores, 0.0)
    return ranked.rescored(np.where(is_label, scaled + said, -np.inf))
