"""Which scorers a classifier takes for which data: all thresholds of the default model, with evidence.

docs/research/default_model.md has the figures and commands.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import scipy.sparse as sp
from sklearn.base import clone

from locole import regressors
from locole.decoders import Decoder, choose_decoder
from locole.embeddings import Embedding, make_embedding
from locole.exceptions import LocoleError, LocoleWarning
from locole.methods import METHODS, names_of
from locole.parallel import Engine, make_engine
from locole.regressors import (
    ElasticNetRegressor,
    MLPRegressor,
    RegressorAdapter,
    TargetRegressor,
)
from locole.samples import Samples
from locole.scoring.base import LabelScorer
from locole.scoring.ensemble import Ensemble
from locole.scoring.factors import FactorScorer
from locole.scoring.profiles import ProfileScorer, suit_profiles
from locole.scoring.vectors import VectorScorer

__all__ = ["REGRESSORS", "Plan", "is_foreign"]

# Smaller problems are the elastic net's alone: there are too few rows to fit weights to.
_MIN_ROWS, _MIN_FEATURES = 1_000, 257
# Validation rows, and at most a tenth of all. Weights are a handful of numbers.
_VALIDATION = 2_000
# Labels up to which low-rank factors are learnt: a prediction takes labels × 128 products. They gain 30
# points on city names, 2 on gesetze_de and 0.8 on clinc150, and are left out on cve_product.
_LABELS_FOR_FACTORS = 262_144
# A part of a sum need not be solved as closely as a model of its own.
_TOL = 5e-3
# In an ensemble half the outputs lose a tenth to a third of a point (cve_product, gesetze_de) and take
# half the time and memory. There is room for twice these labels.
_OUTPUTS, _LABELS = 256, 16_384
# The same outputs have room for 4,194,304 labels in another family, with twice the coherence.
_MANY_LABELS_FAMILY, _MOST_LABELS = "delsarte_goethals", 262_144
# Dense rows of signed numbers with more labels than features: no linear map of so few numbers can tell
# the labels apart (51.1 % where class centroids have 72.0 %, with 384 features and 3,007 labels).
_MANY_LABELS, _MOSTLY = 256, 0.5
# Outputs of a model that starts with partial_fit: room for 262,144 labels.
_GROWING_DIM = 512
# Features count in the linear models by a root of what they count in the profiles: by that itself they
# overfit the few that count most, and with all alike they lose 0.2 points (cve_product, clinc150).
_POWER, _FLOOR = 0.25, 0.02

# Parameters that ask for a part of the ensemble.
_PARTS = ("profiles", "factors", "nearest")

#: Regressors by name.
REGRESSORS: dict[str, Any] = {
    "auto": ElasticNetRegressor,  # for small problems; otherwise an ensemble
    **{
        name: partial(getattr(regressors, METHODS[name].made), **METHODS[name].preset)
        for name in names_of("regressor")
    },
}


def is_foreign(regressor: Any) -> bool:
    """Whether a regressor is another library's, so that rows go to it as they are."""
    is_ours = isinstance(regressor, str | TargetRegressor)
    return isinstance(regressor, RegressorAdapter) or not is_ours


class Plan(NamedTuple):
    """What a user asks for: the parameters of `locole.LocoleClassifier` that decide about its scorer."""

    embedding: str | Embedding
    dim: int | None
    regressor: Any
    decoder: str | Decoder
    profiles: bool | Literal["auto"]
    factors: bool | Literal["auto"]
    nearest: bool | Literal["auto"]
    scorers: Sequence[LabelScorer]
    seed: int
    n_jobs: int | None
    verbose: int
    engine: str | Engine

    def scorer(self, samples: Samples, *, growing: bool = False) -> LabelScorer:
        """Return an unfitted scorer for such samples.

        Parameters
        ----------
        samples : Samples
        growing : bool
            Whether they are the first of a stream: more labels are to come, so the embedding must have
            room, and no part of the rows can speak for those to come.
        """
        if self.regressor == "auto" and _defies_linear(samples):
            warnings.warn(
                f"X is dense with {samples.X.shape[1]:,} features for {samples.n_classes:,} labels, and "
                "the default model, which is linear, loses accuracy on such rows: compare with "
                "locole.baselines.Centroids, or take regressor='mlp'.",
                LocoleWarning,
                stacklevel=6,
            )
        if not self._takes_several(samples, growing=growing):
            embedding = self._embedding(samples.n_classes, _GROWING_DIM if growing else None)
            name = self.regressor if isinstance(self.regressor, str) else "regressor"
            parts = {name if name != "auto" else "elastic_net": self.make_regressor()}
            return VectorScorer(parts, embedding, decoder=self.decoder)
        is_profiled = self._wants_profiles() and suit_profiles(samples.X)
        vectors = VectorScorer(
            self._regressors(),
            self._ensemble_embedding(samples.n_classes),
            decoder=self.decoder,
            feature_power=_POWER,
            feature_floor=_FLOOR,
            others_speak=is_profiled or bool(self.scorers),
        )
        settings: dict[str, Any] = {"random_state": self.seed, "n_jobs": self.n_jobs}
        more: list[LabelScorer] = []
        if is_profiled:
            more.append(ProfileScorer(verbose=self.verbose, **settings))
        if self._wants_factors(samples.n_classes):
            more.append(FactorScorer(**settings))
        return Ensemble(
            [vectors, *more, *self.scorers],
            nearest=self.nearest,
            n_validation=_VALIDATION,
            engine=self.engine,
            **settings,
        )

    def check(self) -> None:
        """Raise LocoleError if there is a part that cannot be made, whatever the samples."""
        self.make_regressor().check_parameters()
        if self.embedding != "auto":  # which depends on the number of labels
            embedding = self.embedding
            made = self._embedding(2, None) if isinstance(embedding, str) else embedding
            choose_decoder(made, self.decoder)

    def make_regressor(self) -> TargetRegressor:
        """Return the regressor that is named or given, which learns where it is told to."""
        regressor = self.regressor
        if isinstance(regressor, str):
            made = REGRESSORS[regressor](
                random_state=self.seed, n_jobs=self.n_jobs, verbose=self.verbose
            )
        elif isinstance(regressor, TargetRegressor):
            made = clone(regressor)
            if getattr(made, "n_jobs", 0) is None:
                made.set_params(n_jobs=self.n_jobs)
        else:
            made = RegressorAdapter(regressor)
        return self._with_engine(made)

    def _takes_several(self, samples: Samples, *, growing: bool) -> bool:
        """Whether scorers are weighed on validation rows, by default or because parts ask for it."""
        asked = [f"{name}=True" for name in _PARTS if getattr(self, name) is True]
        if self.scorers:
            asked.append("scorers")
        if not asked:
            is_wanted = self.regressor == "auto" or (
                self._wants_profiles() and suit_profiles(samples.X)
            )
            return is_wanted and not growing and _is_large(samples)
        if growing or is_foreign(self.regressor):
            raise LocoleError(
                f"{asked[0]} needs a regressor of locole's own and a first fit with all labels: "
                "leave it out."
            )
        if not _is_large(samples):
            n_rows, n_features = samples.n_positive, samples.X.shape[1]
            few = f"{n_rows:,} rows" if n_rows < _MIN_ROWS else f"{n_features} features"
            raise LocoleError(
                f"{asked[0]} needs {_MIN_ROWS:,} rows and {_MIN_FEATURES} features, and there are only "
                f"{few}: leave it out."
            )
        if self.profiles is True and not suit_profiles(samples.X):
            raise LocoleError("profiles=True needs features that are not negative: leave it out.")
        return True

    def _wants_profiles(self) -> bool:
        """Whether label profiles are made where features suit them."""
        if self.profiles != "auto":
            return bool(self.profiles)
        # Networks gain 1.3 points by profiles on cve_product and 6 on gesetze_de.
        is_network = isinstance(self.regressor, MLPRegressor)
        return is_network or (isinstance(self.regressor, str) and self.regressor in ("auto", "mlp"))

    def _wants_factors(self, n_classes: int) -> bool:
        """Whether low-rank factors are learnt."""
        if self.factors != "auto":
            return bool(self.factors)
        is_default = isinstance(self.regressor, str) and self.regressor in ("auto", "mlp")
        return is_default and n_classes <= _LABELS_FOR_FACTORS

    def _regressors(self) -> dict[str, TargetRegressor]:
        """Regressors whose points are added up, by name."""
        if not isinstance(self.regressor, str):
            return {type(self.regressor).__name__: self.make_regressor()}
        asked = self.make_regressor()  # refuses an engine that cannot be used
        if self.regressor == "mlp":
            # Its weight beside what it starts from is fitted too: the sum is not worse for it.
            return {**self._linear(), "mlp": asked}
        if self.regressor != "auto":
            return {self.regressor: asked}
        return self._linear()

    def _linear(self) -> dict[str, TargetRegressor]:
        """Linear regressors of the default model."""
        made = ElasticNetRegressor(
            tol=_TOL,
            engine=self.engine,
            random_state=self.seed,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        )
        return {"elastic_net": made}

    def _ensemble_embedding(self, n_classes: int) -> Embedding:
        """Embedding for regressors that are not alone; ``"auto"`` then needs fewer outputs."""
        if n_classes > _MOST_LABELS and self.embedding == "auto" and self.dim is None:
            return make_embedding(_MANY_LABELS_FAMILY, n_classes, dim=_OUTPUTS)
        return self._embedding(n_classes, _OUTPUTS if _OUTPUTS < n_classes <= _LABELS else None)

    def _embedding(self, n_classes: int, dim: int | None) -> Embedding:
        """Embedding that is named or given; ``dim`` is for ``"auto"``, if none was asked for."""
        if isinstance(self.embedding, Embedding):
            if self.dim is not None and self.dim != self.embedding.dim:
                raise LocoleError("dim is the embedding's own: leave it out, or give a name.")
            return self.embedding.resized(n_classes)
        wanted = dim if self.embedding == "auto" and self.dim is None else self.dim
        return make_embedding(self.embedding, n_classes, dim=wanted, random_state=self.seed)

    def _with_engine(self, regressor: TargetRegressor) -> TargetRegressor:
        """Regressor that learns where the user says, unless it has an engine of its own."""
        engine, own = make_engine(self.engine), getattr(regressor, "engine", None)
        if own is None and not engine.shares_memory:
            name = type(getattr(regressor, "regressor", regressor)).__name__
            raise LocoleError(
                f"{name} learns on one machine only: take 'elastic_net' or 'mlp', or engine='threads'."
            )
        return regressor.set_params(engine=self.engine) if own == "threads" else regressor


def _is_large(samples: Samples) -> bool:
    """Whether there are rows and features enough to weigh several scorers."""
    return bool(samples.n_positive >= _MIN_ROWS and samples.X.shape[1] >= _MIN_FEATURES)


def _defies_linear(samples: Samples) -> bool:
    """Whether rows are dense vectors of signed numbers that are too short for so many labels."""
    n_rows, n_features = samples.X.shape
    if samples.n_classes <= max(n_features, _MANY_LABELS):
        return False
    X = sp.csr_array(samples.X)
    return bool(X.nnz > _MOSTLY * n_rows * n_features and X.data.min() < 0)
