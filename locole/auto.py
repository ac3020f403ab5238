"""The default model: squared loss, softmax and label profiles, weighed on rows held out."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from locole.decoders import Decoder, decode
from locole.mixing import CANDIDATES, choose_weights, point_scores, union
from locole.profiles import Profiles
from locole.regressors import (
    BlendRegressor,
    ElasticNetRegressor,
    SoftmaxRegressor,
    TargetRegressor,
)
from locole.targets import Targets

__all__ = ["Assembled", "assemble", "is_worth_it"]

_HELD_OUT = 4_000
#: Smaller problems are the elastic net's alone: there are too few rows to weigh anything with.
_MIN_ROWS = 1_000
_MIN_FEATURES = 257
# With fewer rows per label the softmax was never better than squared loss and profiles together
# (cve_product 6, city names 8), and it is the one whose time grows with the number of labels.
_ROWS_FOR_SOFTMAX = 10


class Assembled(NamedTuple):
    """The parts of a fitted model, and why these."""

    regressor: TargetRegressor
    profiles: Profiles | None
    profile_weight: float
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


def is_worth_it(X: Any, weight: NDArray | None) -> bool:
    """Whether there are rows and features enough to weigh several models against each other."""
    n_rows = X.shape[0] if weight is None else np.count_nonzero(weight)
    return bool(n_rows >= _MIN_ROWS and X.shape[1] >= _MIN_FEATURES)


def assemble(
    problem: Problem, decoder: Decoder, *, seed: int, n_jobs: int | None, verbose: int
) -> Assembled:
    """Fit the models on most rows, weigh them on the others, then let them learn those too."""
    if problem.weight is not None:
        # All the rows held out might be of weight zero.
        problem = problem.take(np.flatnonzero(problem.weight))
    n = problem.X.shape[0]
    order = np.random.default_rng([seed, n, 1]).permutation(n)
    held_rows, kept_rows = np.split(order, [min(_HELD_OUT, n // 10)])
    kept, held = problem.take(np.sort(kept_rows)), problem.take(held_rows)
    settings: dict[str, Any] = {"random_state": seed, "n_jobs": n_jobs, "verbose": verbose}
    experts: dict[str, Any] = {"elastic_net": ElasticNetRegressor(**settings)}
    if n >= _ROWS_FOR_SOFTMAX * problem.targets.embedding.n_classes:
        experts["softmax"] = SoftmaxRegressor(**settings)
    for expert in experts.values():
        expert.fit(kept.X, kept.targets, sample_weight=kept.weight)
    profiles = None
    if problem.X.data.size and problem.X.data.min() >= 0:
        profiles = Profiles().fit(kept.X, *_labels(kept))
        profiles.tune(kept.X, kept.targets.codes, kept.weight, seed=seed, n_jobs=n_jobs)
    trial = _Trial(held, decoder, experts, profiles)
    weights = trial.weights()
    reason = trial.reason(weights)
    for expert in experts.values():
        expert.partial_fit(held.X, held.targets, sample_weight=held.weight)
    if profiles is not None:
        profiles.add(held.X, *_labels(held))
    regressor = BlendRegressor(list(experts.values()), weights[: len(experts)].tolist())
    profile_weight = float(weights[-1]) if profiles is not None else 0.0
    return Assembled(regressor, profiles, profile_weight, reason)


def _labels(problem: Problem) -> tuple[NDArray, int, NDArray | None]:
    return problem.targets.codes, problem.targets.embedding.n_classes, problem.weight


class _Trial:
    """Scores of the candidates of the rows held out."""

    def __init__(
        self,
        held: Problem,
        decoder: Decoder,
        experts: dict[str, TargetRegressor],
        profiles: Profiles | None,
    ) -> None:
        embedding = held.targets.embedding
        points = [expert.predict(held.X) for expert in experts.values()]
        k = min(CANDIDATES, embedding.n_classes)
        found = [decode(embedding, Z, k=k, decoder=decoder)[0] for Z in points]
        if profiles is not None:
            found.append(profiles.scan(held.X, k).codes)
        codes, again = union(found)
        scores = [point_scores(embedding, Z, codes) for Z in points]
        if profiles is not None:
            scores.append(profiles.scan(held.X, 1, found=codes).at.astype(np.float64))
        self.names = [*experts, *(["profiles"] if profiles is not None else [])]
        self.scores = np.stack(scores, axis=-1)
        self.right = codes == held.targets.codes[:, None]
        self.valid = ~again

    def weights(self) -> NDArray[np.float64]:
        """Return a weight for each source."""
        return choose_weights(self.scores, self.right, self.valid)

    def accuracy(self, weights: NDArray) -> float:
        """Part of the rows whose label comes first."""
        total = np.where(self.valid, self.scores @ weights, -np.inf)
        first = total.argmax(axis=1)[:, None]
        return float(np.take_along_axis(self.right, first, 1).mean())

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
