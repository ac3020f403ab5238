"""The default model: squared loss, softmax and label profiles, weighed on rows held out."""

from __future__ import annotations

import copy
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from locole.decoders import Decoder, near_labels
from locole.embeddings import Embedding
from locole.mixing import CANDIDATES, choose_weights, point_scores, repeated
from locole.neighbours import EXAMINED, SAME, Neighbours, bends
from locole.parallel import Engine
from locole.parallel.blocks import map_blocks
from locole.profiles import Profiles
from locole.regressors import (
    BlendRegressor,
    ElasticNetRegressor,
    SoftmaxRegressor,
    TargetRegressor,
    weigh_features,
)
from locole.targets import Targets, learnt_embedding

__all__ = [
    "Assembled",
    "Problem",
    "assemble",
    "few_outputs",
    "is_worth_it",
    "linear_experts",
    "suit_profiles",
]

_HELD_OUT = 2_000
_BLOCK_ROWS = 256
#: Smaller problems are the elastic net's alone: there are too few rows to weigh anything with.
_MIN_ROWS = 1_000
_MIN_FEATURES = 257
# With fewer rows per label the softmax was never better than squared loss and profiles together
# (cve_product 6, city names 8), and it is the one whose time grows with the number of labels.
_ROWS_FOR_SOFTMAX = 10
# With so many rows per label, and features as texts have them, squared loss adds nothing to softmax and
# profiles (clinc150 120).
_ROWS_WITHOUT_SQUARES, _DENSE = 100, 0.1


# A part of a sum need not be solved as closely as a model of its own.
_TOL = 5e-3
# A third epoch of the softmax takes its time and adds nothing beside the elastic net (gesetze_de).
_EPOCHS = 2


# Where several models are added up, half the outputs of one alone lose a tenth to a third of a point
# (cve_product, gesetze_de) and take half the time and memory. There is room for twice these labels.
_OUTPUTS, _LABELS = 256, 16_384


# Features count in the linear models by a root of what they count in the profiles: by that itself they
# overfit the few that count most, and with all alike they lose 0.2 points (cve_product, clinc150).
_POWER, _LEAST = 0.25, 0.02


class Assembled(NamedTuple):
    """The parts of a fitted model, and why these."""

    regressor: TargetRegressor
    profiles: Profiles | None
    profile_weight: float
    neighbours: Neighbours | None
    reason: str


class Problem(NamedTuple):
    """What is learnt from."""

    X: sp.csr_array
    targets: Targets
    weight: NDArray | None

    def take(self, rows: NDArray[np.int64]) -> Problem:
        """Some of the rows."""
        weight = None if self.weight is None else self.weight[rows]
        targets = Targets(self.targets.codes[rows], self.targets.embedding)
        return Problem(self.X[rows], targets, weight)

    def hitting(self, embedding: Embedding) -> Problem:
        """Return the same rows and labels with other vectors."""
        return self._replace(targets=Targets(self.targets.codes, embedding))


def is_worth_it(X: Any, weight: NDArray | None) -> bool:
    """Whether there are rows and features enough to weigh several models against each other."""
    n_rows = X.shape[0] if weight is None else np.count_nonzero(weight)
    return bool(n_rows >= _MIN_ROWS and X.shape[1] >= _MIN_FEATURES)


def few_outputs(n_classes: int) -> int | None:
    """Dim for so many labels if none was asked for; None where the embedding's own choice stands."""
    return _OUTPUTS if _OUTPUTS < n_classes <= _LABELS else None


def linear_experts(
    X: sp.csr_array,
    n_rows: int,
    n_classes: int,
    *,
    seed: int,
    n_jobs: int | None,
    verbose: int,
    engine: str | Engine = "threads",
) -> dict[str, TargetRegressor]:
    """Return the regressors of the default model for such features, so many rows and labels."""
    settings: dict[str, Any] = {"random_state": seed, "n_jobs": n_jobs, "verbose": verbose}
    if n_rows >= _ROWS_WITHOUT_SQUARES * n_classes and _is_text(X):
        return {"softmax": SoftmaxRegressor(**settings)}
    experts: dict[str, TargetRegressor] = {
        "elastic_net": ElasticNetRegressor(tol=_TOL, engine=engine, **settings)
    }
    if n_rows >= _ROWS_FOR_SOFTMAX * n_classes:
        experts["softmax"] = SoftmaxRegressor(epochs=_EPOCHS, **settings)
    return experts


def _is_text(X: sp.csr_array) -> bool:
    """Whether features are as those of texts: most are absent, none is negative."""
    return suit_profiles(X) and X.nnz < _DENSE * X.shape[0] * X.shape[1]


def assemble(
    problem: Problem,
    decoder: Decoder,
    experts: dict[str, TargetRegressor],
    *,
    profiled: bool = True,
    neighboured: bool | Literal["auto"] = "auto",
    seed: int,
    n_jobs: int | None,
    verbose: int,
) -> Assembled:
    """Fit the models on most rows, weigh them on the others, then let them learn those too.

    Profiles are made if ``profiled``; nearest rows are looked at if ``neighboured``, by ``"auto"`` only
    if that puts more rows held out right than chance would.
    """
    if problem.weight is not None:
        # All the rows held out might be of weight zero.
        problem = problem.take(np.flatnonzero(problem.weight))
    n = problem.X.shape[0]
    order = np.random.default_rng([seed, n, 1]).permutation(n)
    held_rows, kept_rows = np.split(order, [min(_HELD_OUT, n // 10)])
    kept, held = problem.take(np.sort(kept_rows)), problem.take(held_rows)
    profiles = {}
    if profiled and suit_profiles(problem.X):
        profiles = _profiles(kept, seed=seed, n_jobs=n_jobs, verbose=verbose)
    relied_on = _reliance(profiles)
    X = weigh_features(kept.X, relied_on)
    for expert in experts.values():
        expert.fit(X, kept.targets, sample_weight=kept.weight)
        held = held.hitting(learnt_embedding(expert, held.targets.embedding))
    trial = _Trial(held, decoder, experts, profiles, relied_on, n_jobs)
    weights = trial.weights()
    reason = trial.reason(weights)
    neighbours = None
    if neighboured is not False:
        near = trial.examine(weights, kept)
        neighbours, said = near.choose(problem, asked=neighboured is True)
        reason += f"; {said}"
    regressor = _blend(experts, weights, relied_on)
    if not any(regressor.weights):
        regressor.clear()
    else:
        regressor.partial_fit(held.X, held.targets, sample_weight=held.weight)
    if not profiles:
        return Assembled(regressor, None, 0.0, neighbours, reason)
    profile_weight, joined = _joined(list(profiles.values()), weights[len(experts) :])
    joined.add(held.X, *_labels(held))
    return Assembled(regressor, joined, profile_weight, neighbours, reason)


def _blend(
    experts: dict[str, Any], weights: NDArray, relied_on: NDArray[np.float32] | None
) -> BlendRegressor:
    """Leave out what counts for nothing, but for one that says how many outputs there are."""
    pairs = [(part, float(weight)) for part, weight in zip(experts.values(), weights, strict=False)]
    kept = [pair for pair in pairs if pair[1] > 0] or pairs[:1]
    parts, shares = (list(column) for column in zip(*kept, strict=True))
    return BlendRegressor(parts, shares, feature_weights=relied_on)


def _reliance(profiles: dict[str, Profiles]) -> NDArray[np.float32] | None:
    """How much the linear models are to rely on each feature, from how much it counts in profiles."""
    if not profiles:
        return None
    tuned = profiles["tuned profiles"].feature_weights_
    return np.maximum(tuned, _LEAST) ** np.float32(_POWER)


def suit_profiles(X: sp.csr_array) -> bool:
    """Whether there are features, none of them negative."""
    return bool(X.data.size and X.data.min() >= 0)


def _profiles(kept: Problem, *, seed: int, n_jobs: int | None, verbose: int) -> dict[str, Profiles]:
    """Profiles with all features alike, and with features weighted."""
    plain = Profiles().fit(kept.X, *_labels(kept))
    tuned = copy.copy(plain)
    settings: dict[str, Any] = {"seed": seed, "n_jobs": n_jobs, "verbose": verbose}
    tuned.tune(kept.X, kept.targets.codes, kept.weight, **settings)
    return {"profiles": plain, "tuned profiles": tuned}


def _joined(profiles: list[Profiles], weights: NDArray) -> tuple[float, Profiles]:
    """One profile in place of a weighted sum: scores are linear in the features' weights."""
    total = float(weights.sum())
    joined = copy.copy(profiles[0])
    if total > 0:
        rows = [part.feature_weights_ for part in profiles]
        joined.set_feature_weights((weights / total @ np.stack(rows)).astype(np.float32))
    return total, joined


def _labels(problem: Problem) -> tuple[NDArray, int, NDArray | None]:
    return problem.targets.codes, problem.targets.embedding.n_classes, problem.weight


class _Trial:
    """Scores of the candidates of the rows held out."""

    def __init__(
        self,
        held: Problem,
        decoder: Decoder,
        experts: dict[str, TargetRegressor],
        profiles: dict[str, Profiles],
        relied_on: NDArray[np.float32] | None,
        n_jobs: int | None,
    ) -> None:
        embedding = held.targets.embedding
        k = min(CANDIDATES, embedding.n_classes)

        def candidates(rows: slice) -> tuple[NDArray, NDArray]:
            X = held.X[rows]
            weighed = weigh_features(X, relied_on)
            points = [expert.predict(weighed) for expert in experts.values()]
            codes = np.hstack([near_labels(embedding, Z, k, decoder) for Z in points])
            for part in list(profiles.values())[-1:]:
                codes = np.hstack([codes, part.scan(X, k).codes])
            said = [part.scan(X, 1, found=codes).at for part in profiles.values()]
            scores = [point_scores(embedding, Z, codes) for Z in points] + said
            return codes, np.stack(scores, axis=-1)

        parts = map_blocks(candidates, held.X.shape[0], block=_BLOCK_ROWS, n_jobs=n_jobs)
        self.codes, self.scores = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        self.held, self.n_jobs = held, n_jobs
        self.names = [*experts, *profiles]
        self.right = self.codes == held.targets.codes[:, None]
        self.valid = ~repeated(self.codes)

    def weights(self) -> NDArray[np.float64]:
        """Return a weight for each source."""
        return choose_weights(self.scores, self.right, self.valid, self.held.weight)

    def accuracy(self, weights: NDArray) -> float:
        """Part of the rows whose label comes first."""
        return float(_first(self._total(weights), self.right).mean())

    def _total(self, weights: NDArray) -> NDArray[np.float64]:
        return np.where(self.valid, self.scores @ weights, -np.inf)

    def examine(self, weights: NDArray, kept: Problem) -> _Near:
        """Look at the nearest rows of the best candidates, among those that were not held out."""
        total = self._total(weights)
        best = np.argsort(-total, axis=1, kind="stable")[:, :EXAMINED]
        total, codes, right, valid = (
            np.take_along_axis(table, best, 1)
            for table in (total, self.codes, self.right, self.valid)
        )
        known = kept.take(np.flatnonzero(np.isin(kept.targets.codes, codes)))
        neighbours = Neighbours().fit(known.X, *_labels(known)[:2])

        def likeness(rows: slice) -> NDArray:
            return neighbours.likeness(self.held.X[rows], codes[rows])

        parts = map_blocks(likeness, len(codes), block=_BLOCK_ROWS, n_jobs=self.n_jobs)
        near = np.concatenate(parts)
        # Of rows that are among the others too nothing is learnt about those that are new.
        new = ~(near > SAME).any(axis=1)
        total[~valid] = 0  # minus infinity before
        scores = np.concatenate([total[..., None], bends(near)], axis=-1)
        weight = None if self.held.weight is None else self.held.weight[new]
        return _Near(scores[new], (right & valid)[new], valid[new], weight)

    def reason(self, weights: NDArray) -> str:
        """Say what was chosen and why, in one line."""
        alone = [
            f"{name} {100 * self.accuracy(row):.1f} %"
            for name, row in zip(self.names, np.eye(len(self.names)), strict=True)
        ]
        shares = ", ".join(f"{w:.3g}" for w in weights)
        return (
            f"{', '.join(alone)} of {len(self.right):,} rows held out; together "
            f"{100 * self.accuracy(weights):.1f} % with weights {shares}"
        )


class _Near(NamedTuple):
    """Scores of the best candidates of new rows, and where on the curve each is."""

    scores: NDArray[np.float64]
    right: NDArray[np.bool_]
    valid: NDArray[np.bool_]
    weight: NDArray | None

    def _weights(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        weight = None if self.weight is None else self.weight[rows]
        signed = self.scores.shape[2] - 1
        return choose_weights(
            self.scores[rows], self.right[rows], self.valid[rows], weight, signed=signed
        )

    def _hits(self) -> NDArray[np.bool_]:
        """Which rows are right, each half of them by the curve of the other."""
        half = np.arange(len(self.scores)) % 2
        total = np.full(self.valid.shape, -np.inf)
        for part in (0, 1):
            weights = self._weights(np.flatnonzero(half != part))
            total[half == part] = self.scores[half == part] @ weights
        return _first(np.where(self.valid, total, -np.inf), self.right)

    def choose(self, problem: Problem, *, asked: bool) -> tuple[Neighbours | None, str]:
        """Nearest rows with the curve that all of these rows ask for, and what they would bring.

        None unless they are asked for, or more rows turn right than wrong by two standard deviations
        of a fair coin.
        """
        before, after = self.right[:, 0], self._hits()
        gained, lost = (int(np.count_nonzero(rows)) for rows in (after & ~before, before & ~after))
        used = asked or gained - lost > 2 * (gained + lost) ** 0.5
        reason = (
            f"nearest rows put {after.sum():,} instead of {before.sum():,} new rows right, "
            f"{'used' if used else 'not used'}"
        )
        if not used:
            return None, reason
        neighbours = Neighbours().fit(problem.X, *_labels(problem)[:2])
        weights = self._weights(np.arange(len(self.scores)))
        neighbours.scale_ = float(weights[0])
        neighbours.curve_ = np.append(0.0, weights[1:])
        return neighbours, reason


def _first(total: NDArray, right: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether the candidate with the largest total is right, for each row."""
    return np.take_along_axis(right, total.argmax(axis=1)[:, None], 1)[:, 0]
