"""The paper's formula as a scorer: regressors hit label vectors, a decoder finds the nearest."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, ClassVar, Self, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from locole.decoders import (
    DECODERS,
    Decoder,
    all_scores,
    choose_decoder,
    decode,
    near_labels,
    recall,
)
from locole.embeddings import Embedding, Explicit, Rademacher
from locole.exceptions import LocoleError, ModelFileError
from locole.io import saved_as
from locole.label_past import Relabelling
from locole.parameters import NOT_NEGATIVE, SWITCH, one_of
from locole.regressors import ElasticNetRegressor, TargetRegressor
from locole.regressors.base import ValidationRows
from locole.regressors.linear import LinearRegressor
from locole.samples import LARGEST, Rows, Samples, take
from locole.scoring.base import SKETCHED_ROWS, Codes, Contributions, LabelScorer, entries_of
from locole.scoring.gone import GoneLabels
from locole.sparse_rows import ROWS, row_squares, times_columns
from locole.targets import Targets

__all__ = ["VectorScorer", "weigh_features"]

# Rows whose candidates' vectors exist at a time.
_ROWS = 32
# Rows on which an inexact decoder is compared with the exact one.
_RECALL_ROWS = 512
# Sketches: random vectors, passes, and λ2 in units of the mean squared length of a row.
_SKETCH_DIM, _SKETCH_PASSES, _SKETCH_L2, _LEAST_L2 = 64, 2, 0.1, 1e-12


@saved_as("scorer.vectors")
class VectorScorer(LabelScorer):
    r"""Score of a label: the inner product of its vector with the point that the row is mapped to.

    .. math:: s_i(x) = \mathrm{Re}\Big\langle \sum_r w_r f_r(D x), g_i \Big\rangle

    with regressors f_r, fitted to the same label vectors g, and weights w_r. Because scores are linear
    in the point, a weighted sum of regressors is decoded once. D weighs the features.

    The target of a row with several labels is the sum of their vectors, so that s_i estimates the
    probability that label i is one of them.

    A row that the regressors map to exactly zero has told them nothing; it is scored by the mean target
    ``prior_point_``, so by how frequent the labels are.

    Parameters
    ----------
    regressors : dict of str to TargetRegressor
        By name, unfitted.
    embedding : Embedding
        Vectors of at least as many labels as there will be.
    decoder : str or Decoder
        See `locole.decoders.choose_decoder`.
    feature_power, feature_floor : float
        In an ensemble, features are weighed by ``max(β, feature_floor) ** feature_power``, with β what a
        scorer of an earlier stage found that each feature counts. A penalised regressor relies more on
        features with larger weights. A power of 0 weighs all alike.
    others_speak : bool
        Whether other scorers say something of rows that have features: then only rows without
        features get the prior.

    Attributes
    ----------
    embedding_, decoder_
        The parts in use. The embedding is another one if a regressor learns the label vectors.
    regressors_ : dict of str to TargetRegressor
        Empty if none is worth its time in an ensemble: then only the prior is left.
    weights_ : list of float
        Weight of each regressor.
    feature_weights_ : array of shape (n_features,) or None
        What features are multiplied by, if by anything.
    prior_point_ : array of shape (real_dim,)
        Weighted mean of the targets.
    weight_seen_ : float
        Number of training rows, or the sum of their weights.
    gone_ : GoneLabels or None
        Vectors of merged and retired labels, which are never used again.
    decoder_recall_ : float
        1 for exact decoders; otherwise the fraction of up to 512 training rows on which the decoder
        finds the exact answer.

    Examples
    --------
    >>> from locole.embeddings import OneHot
    >>> from locole.regressors import ElasticNetRegressor
    >>> samples = Samples(np.eye(4), np.array([0, 1, 2, 2]), n_classes=3)
    >>> scorer = VectorScorer({"elastic_net": ElasticNetRegressor()}, OneHot(3, dim=3)).fit(samples)
    >>> scorer.candidates(Rows(np.eye(4)), k=1)[0].ravel()
    array([0, 1, 2, 2])
    """

    name = "vectors"
    _learnt: ClassVar = {
        "embedding_": Embedding,
        "decoder_": Decoder,
        "regressors_": dict,
        "weights_": list,
        "feature_weights_": (np.ndarray, type(None)),
        "prior_point_": np.ndarray,
        "weight_seen_": float,
        "decoder_recall_": float,
        "gone_": (GoneLabels, type(None)),
    }
    gone_: GoneLabels | None = None
    #: What was learnt says all; the embedding's parameter may be gigabytes of label vectors.
    _parameter_constraints: ClassVar = {
        "regressors": [None, dict],
        "embedding": [None, Embedding],
        "decoder": [*one_of("auto", *DECODERS), Decoder],
        "feature_power": NOT_NEGATIVE,
        "feature_floor": NOT_NEGATIVE,
        "others_speak": SWITCH,
    }
    _unsaved: ClassVar = ("regressors", "embedding", "decoder")

    def __init__(
        self,
        regressors: dict[str, TargetRegressor] | None = None,
        embedding: Embedding | None = None,
        *,
        decoder: str | Decoder = "auto",
        feature_power: float = 0.0,
        feature_floor: float = 0.0,
        others_speak: bool = False,
    ) -> None:
        self.regressors = regressors
        self.embedding = embedding
        self.decoder = decoder
        self.feature_power = feature_power
        self.feature_floor = feature_floor
        self.others_speak = others_speak

    @property
    def n_classes(self) -> int:
        """Number of labels."""
        return self.embedding_.n_classes

    @property
    def n_features(self) -> int | None:
        """Number of features, if the regressors know it."""
        regressor = next(iter(self.regressors_.values()), None)
        return getattr(regressor, "n_features_in_", None)

    # Fit ----------------------------------------------------------------------------------------

    def fit(self, samples: Samples, *, before: Sequence[LabelScorer] = ()) -> Self:
        """Fit every regressor to the labels' vectors."""
        validation = self.__dict__.pop("_validation", None)
        regressors, embedding = self._checked()
        if embedding.n_classes != samples.n_classes:
            embedding = embedding.resized(samples.n_classes)
        if any(regressor.learns_embedding for regressor in regressors.values()):
            if len(regressors) > 1:
                raise LocoleError(
                    "points of several regressors can be added for the same label vectors only: take "
                    "embedding_rate=0 for each of them."
                )
            if samples.starts is not None:
                raise LocoleError(
                    "label vectors are learnt from rows with one label each: take embedding_rate=0."
                )
            # Where the vectors start from; no decoder may count on their structure.
            embedding = Explicit(embedding.real_block(0, samples.n_classes))
        self.decoder_ = choose_decoder(embedding, self.decoder)
        self.feature_weights_ = self._weights_of_features(before)
        X = weigh_features(samples.plain, self.feature_weights_)
        targets = _targets(samples, embedding)
        watched = {} if validation is None else self._validation_rows(validation, embedding)
        self.regressors_ = {
            # A clone would have a copy of its engine, which is not the one that is running.
            name: copy.copy(regressor).fit(
                X, targets, sample_weight=samples.weight, **watched if regressor.stops_early else {}
            )
            for name, regressor in regressors.items()
        }
        self.weights_ = [1.0] * len(regressors)
        self.gone_ = None
        self.embedding_ = self._learnt_embedding(embedding)
        self.prior_point_ = _targets(samples, self.embedding_).mean(samples.weight)
        self.weight_seen_ = samples.total_weight
        self._measure_recall(samples.X)
        return self

    def _validation_rows(self, samples: Samples, embedding: Embedding) -> dict[str, Any]:
        X = weigh_features(samples.plain, self.feature_weights_)
        rows = ValidationRows(X, _targets(samples, embedding), samples.weight)
        return {"validation_rows": rows}

    def sketch(self, samples: Samples) -> VectorScorer | None:
        """The elastic net with a few outputs and passes, if it is all there is: a tenth of the time."""
        regressors, _ = self._checked()
        is_linear = all(type(part) is ElasticNetRegressor for part in regressors.values())
        # A few outputs cannot tell the labels of a sum (delicious).
        has_several = samples.starts is not None
        if not (is_linear and self.others_speak) or samples.n_rows < SKETCHED_ROWS or has_several:
            return None
        some = sp.csr_array(samples.csr[: 4 * ROWS])
        settings = {"l2": max(_SKETCH_L2 * row_squares(some).mean(), _LEAST_L2), "tol": 0.0}
        settings |= {"max_passes": _SKETCH_PASSES, "n_jobs": next(iter(regressors.values())).n_jobs}
        rough = {name: ElasticNetRegressor(**settings) for name in regressors}
        made = copy.copy(self)
        made.regressors = rough
        made.embedding = Rademacher(samples.n_classes, dim=_SKETCH_DIM)
        made.decoder = "auto"
        return made

    def left_out(self, samples: Samples) -> VectorScorer:
        """The prior alone, without a regressor."""
        _, embedding = self._checked()
        made = copy.copy(self)
        made.regressors_, made.weights_ = {}, []
        made.embedding_ = embedding.resized(samples.n_classes)
        made.decoder_ = choose_decoder(made.embedding_, self.decoder)
        made.feature_weights_ = None
        made.prior_point_ = _targets(samples, made.embedding_).mean(samples.weight)
        made.weight_seen_, made.decoder_recall_ = samples.total_weight, 1.0
        return made

    def partial_fit(self, samples: Samples) -> Self:
        """Let the regressors that count learn from more samples; new labels get the next vectors."""
        for regressor in self.regressors_.values():
            if not hasattr(regressor, "partial_fit"):
                name = type(regressor).__name__
                raise LocoleError(f"{name} cannot learn more rows: fit again with all the data.")
        regressors = {name: copy.copy(part) for name, part in self.regressors_.items()}
        embedding = self._grown_embedding(samples.n_classes, regressors)
        targets = _targets(samples, embedding)
        X = weigh_features(samples.plain, self.feature_weights_)
        for regressor, weight in zip(regressors.values(), self.weights_, strict=True):
            if weight != 0:
                regressor.partial_fit(X, targets, sample_weight=samples.weight)
        self.regressors_ = regressors
        self.embedding_ = self._learnt_embedding(embedding)
        added = samples.total_weight
        share = added / (self.weight_seen_ + added)
        mean = _targets(samples, self.embedding_).mean(samples.weight)
        self.prior_point_ = (1 - share) * self.prior_point_ + share * mean
        self.weight_seen_ += added
        self._measure_recall(samples.X)
        return self

    def learn_rest(self, rest: Samples, every: Samples) -> Self:
        """Learn the rows that were kept out; what is learnt is kept in as few bits as before."""
        super().learn_rest(rest, every)
        for regressor in self.regressors_.values():
            if isinstance(regressor, LinearRegressor):
                regressor.compact()
        return self

    def _grown_embedding(self, n_classes: int, regressors: dict[str, TargetRegressor]) -> Embedding:
        """Embedding with room for the labels; regressors get its outputs if it has more."""
        spent = None if self.gone_ is None else self.gone_.spent
        known, embedding = self.embedding_, self.embedding_.grown(n_classes, spent=spent)
        more = embedding.real_dim - known.real_dim
        if more and not all(part.grows for part in regressors.values()):
            return known.resized(n_classes)  # which says that it is full
        if more:
            for part in regressors.values():
                part.grow(int(cast(Any, part).n_features_in_), embedding.real_dim)
            self.prior_point_ = np.pad(self.prior_point_, (0, more))
        if self.gone_ is not None:
            self.gone_ = self.gone_.like(embedding)
        return embedding

    @property
    def grows(self) -> bool:
        """Whether all regressors can take more features."""
        return all(part.grows for part in self.regressors_.values())

    def grow(self, n_features: int) -> None:
        """Let the regressors take more features, which count as much as those that were not weighed."""
        regressors = {name: copy.copy(part) for name, part in self.regressors_.items()}
        for part in regressors.values():
            part.grow(n_features, part.n_outputs_)
        self.regressors_, weights = regressors, self.feature_weights_
        if weights is not None:
            self.feature_weights_ = np.pad(
                weights, (0, n_features - weights.size), constant_values=1
            )

    def relabel(self, change: Relabelling) -> None:
        """Let vectors of merged labels speak for others; what retired ones have learnt is not asked for.

        Scores of labels that are not merged change by no more than a refit of the regressors would, by
        the inner products of label vectors; without a merge they stay as they are.
        """
        if change.n_classes == self.n_classes:
            return
        self.gone_ = GoneLabels.after(self.gone_, self.embedding_, change)
        now = GoneLabels.after(None, self.embedding_, change)
        self.embedding_ = self.embedding_.taken(change.kept)
        self.prior_point_ = now.points(self.prior_point_[None], self.embedding_)[0]
        regressors = {name: copy.copy(part) for name, part in self.regressors_.items()}
        for part in regressors.values():
            part.relabel(change)
        self.regressors_ = regressors

    def forget(self, samples: Samples) -> dict[str, str]:
        """Take rows out of the regressors as far as these can, and exactly out of the prior."""
        samples = samples.positive()
        targets = _targets(samples, self.embedding_)
        X = weigh_features(samples.plain, self.feature_weights_)
        regressors = {name: copy.copy(part) for name, part in self.regressors_.items()}
        said = {
            name: str(part.forget(X, targets, samples.weight)) for name, part in regressors.items()
        }
        self.regressors_ = regressors
        left = self.weight_seen_ - samples.total_weight
        if left > 0:
            out = samples.total_weight * targets.mean(samples.weight)
            self.prior_point_ = (self.weight_seen_ * self.prior_point_ - out) / left
            self.weight_seen_ = left
        return said

    def add_labels(self, n_classes: int) -> Self:
        """Give more labels the next vectors."""
        regressors = {name: copy.copy(part) for name, part in self.regressors_.items()}
        embedding = self._grown_embedding(n_classes, regressors)
        self.regressors_, self.embedding_ = regressors, embedding
        return self

    def _checked(self) -> tuple[dict[str, TargetRegressor], Embedding]:
        self.check_parameters()
        if not self.regressors or self.embedding is None:
            raise LocoleError("VectorScorer needs regressors and an embedding.")
        return self.regressors, self.embedding

    def _weights_of_features(self, before: Sequence[LabelScorer]) -> NDArray[np.float32] | None:
        """How much each feature counts, from the first scorer that knows it."""
        known = [getattr(scorer, "feature_weights_", None) for scorer in before]
        found = next((weights for weights in known if weights is not None), None)
        if found is None or self.feature_power == 0:
            return None
        floor = np.float32(self.feature_floor)
        return np.maximum(found, floor) ** np.float32(self.feature_power)

    def _learnt_embedding(self, embedding: Embedding) -> Embedding:
        """Embedding that points belong to: the one given, or the one that a regressor has learnt."""
        vectors = getattr(next(iter(self.regressors_.values()), None), "vectors_", None)
        return embedding if vectors is None else Explicit(vectors)

    def _measure_recall(self, X: Any) -> None:
        self.decoder_recall_ = 1.0
        if not self.decoder_.exhaustive:
            rows = Rows(X)
            some = np.linspace(0, len(rows) - 1, min(len(rows), _RECALL_ROWS)).astype(np.int64)
            Z = self.points(Rows(take(X, some)))
            self.decoder_recall_ = recall(self.embedding_, Z, decoder=self.decoder_)

    # Score --------------------------------------------------------------------------------------

    def points(self, rows: Rows) -> NDArray:
        """Points of the rows, the prior's where there is nothing to go by; shape (rows, real_dim).

        Parameters
        ----------
        rows : Rows
            Rows to score.
        """
        return rows.once(self, lambda: self._points(rows))

    def candidates(self, rows: Rows, k: int) -> tuple[Codes, NDArray]:
        """Labels whose vectors are nearest to the points."""
        return decode(self.embedding_, self.points(rows), k=k, decoder=self.decoder_)

    def scores_at(self, rows: Rows, codes: Codes) -> NDArray:
        """Inner products of the points with the vectors of these labels."""
        return _products(self.embedding_, self.points(rows), codes)

    def all_scores(self, rows: Rows) -> NDArray:
        """Inner products of the points with all vectors."""
        return all_scores(self.embedding_, self.points(rows), self.decoder_)

    def explain(self, rows: Rows, codes: Codes) -> Contributions:
        """What each feature adds to the points, times the labels' vectors.

        What a regressor that is not linear says is one number, as are intercepts and the prior.
        """
        X = sp.csr_array(weigh_features(rows.csr, self.feature_weights_))
        total = Contributions(np.zeros((X.nnz, codes.shape[1])), {})
        for name, weight in zip(self.regressors_, self.weights_, strict=True):
            if weight != 0:
                total = total.plus(self._explained(name, rows, X, codes).times(weight))
        is_prior = self._has_prior(rows, self._sum_of_points(rows))
        if not is_prior.any():
            return total
        prior = np.where(is_prior[:, None], self.prior_point_, 0.0)
        total.features[np.repeat(is_prior, np.diff(X.indptr))] = 0
        others = {"prior": _products(self.embedding_, prior, codes)}
        for name, part in total.others.items():
            others[name] = np.where(is_prior[:, None], 0.0, part)
        return Contributions(total.features, others)

    def _explained(self, name: str, rows: Rows, X: sp.csr_array, codes: Codes) -> Contributions:
        """What one regressor says."""
        regressor, found = self.regressors_[name], np.zeros((X.nnz, codes.shape[1]))
        if not isinstance(regressor, LinearRegressor):
            Z = regressor.predict_checked(weigh_features(rows.plain, self.feature_weights_))
            said = _products(self.embedding_, self._merged(Z), codes)
            return Contributions(found, {name: said})
        for i, part in enumerate(entries_of(X)):
            G = self._asked(codes[i])
            found[part] = X.data[part, None] * (regressor.weights_of(X.indices[part]) @ G.T)
        if not regressor.intercept_.any():
            return Contributions(found, {})
        Z = self._merged(regressor.intercept_[None])
        Z = np.broadcast_to(Z, (len(rows), regressor.n_outputs_))
        return Contributions(found, {"intercept": _products(self.embedding_, Z, codes)})

    def is_silent(self, rows: Rows) -> bool:
        """Whether all points are zero."""
        return not self.points(rows).any()

    def _points(self, rows: Rows) -> NDArray:
        total = self._sum_of_points(rows)
        is_prior = self._has_prior(rows, total)
        if is_prior.any():
            total = np.where(is_prior[:, None], self.prior_point_.astype(total.dtype), total)
        return total

    def _has_prior(self, rows: Rows, points: NDArray) -> NDArray[np.bool_]:
        """Which rows have told the regressors nothing, so that the prior scores them."""
        silent = np.asarray(~points.any(axis=1))
        return silent & rows.is_empty if self.others_speak else silent

    def _sum_of_points(self, rows: Rows) -> NDArray:
        """Weighted sum of the regressors' points."""
        X = weigh_features(rows.plain, self.feature_weights_)
        total: Any = None
        for regressor, weight in zip(self.regressors_.values(), self.weights_, strict=True):
            if weight != 0:
                Z = regressor.predict_checked(X)
                if weight != 1:
                    Z *= Z.dtype.type(weight)
                total = Z if total is None else total + Z
        if total is None:
            total = np.zeros((len(rows), self.embedding_.real_dim), dtype=np.float32)
        return self._merged(total)

    def _merged(self, Z: NDArray) -> NDArray:
        """Points in which merged labels speak for those that they became."""
        return Z if self.gone_ is None else self.gone_.points(Z, self.embedding_)

    def _asked(self, codes: NDArray[np.int64]) -> NDArray[np.float64]:
        """Vectors whose products with the regressors' own points are the scores of labels."""
        G = self.embedding_.real_rows(codes, np.float64)
        return G if self.gone_ is None else self.gone_.vectors(G, self.embedding_)

    # Sources ------------------------------------------------------------------------------------

    @property
    def sources(self) -> list[str]:
        """Names of the regressors."""
        return list(self.regressors_)

    @property
    def optional_sources(self) -> list[str]:
        """All regressors but the first, which the others have to improve on."""
        return self.sources[1:]

    def source_candidates(self, rows: Rows, k: int) -> Codes:
        """Labels near the points of each regressor, as a scan finds them."""
        found = [near_labels(self.embedding_, Z, k, self.decoder_) for Z in self._each(rows)]
        return np.hstack([np.empty((len(rows), 0), dtype=np.int64), *found])

    def source_scores(self, rows: Rows, codes: Codes) -> NDArray:
        """Scores by each regressor."""
        found = [_products(self.embedding_, Z, codes)[..., None] for Z in self._each(rows)]
        return np.concatenate([np.empty((*codes.shape, 0)), *found], axis=-1)

    def set_source_weights(self, weights: NDArray[np.float64]) -> float:
        """Weigh the regressors; leave out those that count for nothing."""
        pairs = dict(zip(self.regressors_, map(float, weights), strict=True))
        kept = {name: weight for name, weight in pairs.items() if weight > 0}
        self.regressors_ = {name: self.regressors_[name] for name in kept}
        self.weights_ = list(kept.values())
        if not kept:
            self.feature_weights_ = None
        return 1.0

    def _each(self, rows: Rows) -> list[NDArray]:
        """Points by each regressor."""

        def points() -> list[NDArray]:
            X = weigh_features(rows.plain, self.feature_weights_)
            parts = self.regressors_.values()
            return [self._merged(regressor.predict_checked(X)) for regressor in parts]

        return rows.once(self, points, "each")

    # Save ---------------------------------------------------------------------------------------

    def _check_learnt(self) -> None:
        embedding, weights = self.embedding_, self.feature_weights_
        parts = list(self.regressors_.values())
        shapes = {
            (getattr(part, "n_outputs_", None), getattr(part, "n_features_in_", None))
            for part in parts
        }
        n_features = next(iter(shapes), (None, None))[1]
        fits = (
            all(isinstance(part, TargetRegressor) for part in parts)
            and len(parts) == len(self.weights_)
            and all(isinstance(weight, float) and np.isfinite(weight) for weight in self.weights_)
            and len(shapes) <= 1
            and all(n_outputs == embedding.real_dim for n_outputs, _ in shapes)
            and (weights is None or _are_weights(weights, n_features))
            and self.prior_point_.shape == (embedding.real_dim,)
            and self.prior_point_.dtype == np.float64
            and self.decoder_.fits(embedding)
            and (self.gone_ is None or self.gone_.fits(embedding))
        )
        if not fits:
            raise ModelFileError("its embedding, regressors and decoder do not fit together")


def _targets(samples: Samples, embedding: Embedding) -> Targets:
    return Targets(samples.codes, embedding, starts=samples.starts)


def _products(embedding: Embedding, Z: NDArray, codes: Codes) -> NDArray[np.float64]:
    """``Re⟨z_i, g⟩`` for the labels ``codes[i]`` of each row."""
    out = np.empty(codes.shape)
    for first in range(0, len(Z) if codes.size else 0, _ROWS):
        rows = slice(first, first + _ROWS)
        some = codes[rows]
        G = embedding.real_rows(some.ravel()).reshape(*some.shape, -1)
        out[rows] = np.einsum("ikj,ij->ik", G, Z[rows])
    return out


def weigh_features(X: Any, weights: NDArray[np.float32] | None) -> Any:
    """X with its columns multiplied, as a CSR array; X itself without weights."""
    if weights is None:
        return X
    X = sp.csr_array(X)
    if X.shape[1] != weights.size:
        # The regressors say it better.
        return X
    return times_columns(X, weights)


def _are_weights(weights: NDArray, n_features: int | None) -> bool:
    is_flat = weights.dtype == np.float32 and weights.shape == (n_features,)
    # Rows that are multiplied by more could not be squared.
    return bool(is_flat and (np.abs(weights) <= LARGEST).all())
