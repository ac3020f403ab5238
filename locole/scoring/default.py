"""Which scorers a classifier takes for which data: all thresholds of the default model, with evidence.

docs/research/default_model.md has the figures and commands.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from locole import regressors
from locole.decoders import Decoder, choose_decoder
from locole.dense_rows import PairedRows
from locole.embeddings import Embedding, make_embedding
from locole.exceptions import LocoleError
from locole.methods import METHODS, names_of
from locole.parallel import Engine, make_engine
from locole.regressors import (
    ElasticNetRegressor,
    KernelRegressor,
    MLPRegressor,
    RegressorAdapter,
    TargetRegressor,
)
from locole.regressors.storage import Storage
from locole.samples import Samples, spare_rows
from locole.scoring.base import LabelScorer
from locole.scoring.ensemble import Ensemble
from locole.scoring.factors import FactorScorer
from locole.scoring.local_kernel import LocalKernelScorer
from locole.scoring.network import NetworkScorer
from locole.scoring.profiles import ProfileScorer, suit_profiles
from locole.scoring.prototypes import PrototypeScorer
from locole.scoring.vectors import VectorScorer

__all__ = ["REGRESSORS", "Plan", "is_foreign"]

# Smaller problems are the elastic net's alone: there are too few rows to fit weights to.
_MIN_ROWS, _MIN_FEATURES = 1_000, 257
# Validation rows, and at most a tenth of all. Half of them would do for weights, which are a handful of
# numbers; probabilities are off by 1.7 % on gesetze_de with 2,000 rows and by 1.2 % with these.
_VALIDATION = 4_000
# Labels up to which low-rank factors are learnt: a prediction takes labels × 128 products. They gain 30
# points on city names, 2 on gesetze_de and 0.8 on clinc150, and are left out on cve_product.
_LABELS_FOR_FACTORS = 262_144
# Labels with so many rows each are known after two passes: with 80 for each label clinc150 has 94.9 %
# after two or four, with 40 it loses 0.1 points, and gesetze_de, with 17, 0.7.
_ROWS_FOR_TWO_PASSES = 64
# A part of a sum need not be solved as closely as a model of its own.
_TOL = 2e-2
# A quarter of the memory, for 0.01 points; with many features, whose rounding errors cancel out, an
# eighth (docs/research/elastic_net.md). With 300 features four bits lost two points on generated rows.
_STORAGE: Storage = "int8"
_STORAGE_OF_MANY: Storage = "int4"
_MANY_FEATURES = 65_536
# In an ensemble half the outputs lose a tenth to a third of a point (cve_product, gesetze_de) and take
# half the time and memory. There is room for twice these labels.
_OUTPUTS, _LABELS = 256, 16_384
# The same outputs have room for 4,194,304 labels in another family, with twice the coherence.
_MANY_LABELS_FAMILY, _MOST_LABELS = "delsarte_goethals", 262_144
# Dense rows, such as sentence embeddings: so many numbers, of either sign, of which most are not zero.
# No linear map of so few numbers to fixed label vectors can tell many labels apart, prototypes can; to
# these, neither nearest rows nor random features add anything (docs/research/dense.md).
_MIN_NUMBERS, _MOST_NUMBERS, _MOSTLY = 32, 8_192, 0.5
# Sparse rows with dense ones beside them are weighed from here on: one view alone would be a waste.
_MIN_PAIRED = 50
# Fewer of them are the prototypes' alone: there are too few rows to fit a weight to.
_FEW_DENSE_ROWS = 200
# With so many rows for each label, dense rows are seen in two views, which needs no choice of a ridge
# and gains a tenth of a point on clinc150 by MiniLM. There a kernel regression for each label, which
# keeps the rows, gains three. With few rows for each label, two views lose a point
# (docs/research/dense.md). Rows up to which they are kept.
_ROWS_PER_LABEL, _RIDGE, _ROWS_TO_KEEP = 20, 0.3, 100_000
# Outputs of a model that starts with partial_fit: room for 262,144 labels.
_GROWING_DIM = 512
# Features count in the linear models by a root of what they count in the profiles: by that itself they
# overfit the few that count most, and with all alike they lose 0.2 points (cve_product, clinc150).
_POWER, _FLOOR = 0.25, 0.02

# Several labels for a row: the sum of their vectors needs more outputs (tibkat_gnd: 1 point at 1,024
# instead of 512). Rows of unit length gain 1 to 2 points where they are not, mostly by the factors
# (bibtex, delicious).
_SEVERAL_OUTPUTS, _SEVERAL_LABELS = 1_024, 524_288
# With so many rows for each feature there is an intercept, and features have no weights (delicious: 3
# points).
_ROWS_PER_FEATURE = 8

# Up to so many rows with several labels each, similarity to training rows is a regressor too
# (docs/research/multilabel.md); its time grows with the cube of the rows.
_KERNEL_ROWS = 16_384

# Up to so many rows with several labels each the best labels are reranked in any case: a tenth of them
# says too little about it, and it gains 1.4 to 1.5 points at 1 (bibtex, delicious).
_SEVERAL_RERANKED = 20_000

# One regressor alone is fitted twice, to have validation rows for probabilities, up to so many rows; and
# one row in so many is left out of the second fit, up to the validation rows of an ensemble.
_ROWS_TO_FIT_TWICE, _LEFT_OUT = 10_000, 5

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
    calibration: bool | Literal["auto"]

    def scorer(self, samples: Samples, *, growing: bool = False) -> LabelScorer:
        """Return an unfitted scorer for such samples.

        Parameters
        ----------
        samples : Samples
        growing : bool
            Whether they are the first of a stream: more labels are to come, so the embedding must have
            room, and no part of the rows can speak for those to come.
        """
        if self._is_for_prototypes(samples):
            return self._prototypes(samples, growing=growing)
        if not self._takes_several(samples, growing=growing):
            embedding = self._embedding(samples.n_classes, _GROWING_DIM if growing else None)
            name = self.regressor if isinstance(self.regressor, str) else "regressor"
            regressor = self.make_regressor()
            if growing and isinstance(regressor, ElasticNetRegressor) and regressor.l2 == "auto":
                regressor.set_params(l2="stream")
            parts = {name if name != "auto" else "elastic_net": regressor}
            return VectorScorer(parts, embedding, decoder=self.decoder)
        is_profiled = self._wants_profiles() and suit_profiles(samples.plain)
        has_several = samples.starts is not None
        is_tall = has_several and samples.n_rows >= _ROWS_PER_FEATURE * samples.X.shape[1]
        behind: dict[str, Any] = {
            "embedding": self._ensemble_embedding(samples.n_classes, several=has_several),
            "decoder": self.decoder,
            "feature_power": 0.0 if is_tall else _POWER,
            "feature_floor": _FLOOR,
            "others_speak": is_profiled or bool(self.scorers),
        }
        linear: dict[str, Any] = {"fit_intercept": True if is_tall else "auto"}
        linear["storage"] = _STORAGE
        if samples.X.shape[1] >= _MANY_FEATURES:
            linear["storage"] = _STORAGE_OF_MANY
        regressors = self._regressors(**linear)
        if has_several and self.regressor == "auto" and samples.n_positive <= _KERNEL_ROWS:
            regressors["kernel"] = KernelRegressor(
                storage="float16", random_state=self.seed, n_jobs=self.n_jobs
            )
        vectors = VectorScorer(regressors, **behind)
        settings: dict[str, Any] = {"random_state": self.seed, "n_jobs": self.n_jobs}
        more: list[LabelScorer] = []
        if is_profiled:
            more.append(ProfileScorer(verbose=self.verbose, **settings))
        if self._wants_factors(samples.n_classes):
            is_quick = samples.codes.size >= _ROWS_FOR_TWO_PASSES * samples.n_classes
            more.append(FactorScorer(**settings, **{"epochs": 2} if is_quick else {}))
        if isinstance(samples.X, PairedRows):
            more.append(self._prototype_scorer(samples))
        if self.regressor == "mlp":
            more.append(NetworkScorer({"mlp": self.make_regressor()}, **behind))
        is_reranked = has_several and samples.n_rows <= _SEVERAL_RERANKED
        return Ensemble(
            [vectors, *more, *self.scorers],
            nearest=True if is_reranked and self.nearest == "auto" else self.nearest,
            n_validation=_VALIDATION,
            engine=self.engine,
            unit_rows=has_several,
            **settings,
        )

    def _is_for_prototypes(self, samples: Samples) -> bool:
        """Whether rows are dense, and the parameters ask for nothing but the default."""
        is_default = all(
            isinstance(value, str) and value == "auto"
            for value in (self.regressor, self.embedding, self.decoder)
        )
        asked = self.profiles is True or self.factors is True or self.dim is not None
        return is_default and not asked and are_dense(samples.X)

    def _prototypes(self, samples: Samples, *, growing: bool) -> LabelScorer:
        """Prototypes, with a weight that makes their scores logits if there are rows to fit it to."""
        prototypes = self._prototype_scorer(samples)
        if not self.scorers and (growing or samples.n_positive < _MIN_ROWS):
            return prototypes
        is_small = _is_well_known(samples) and samples.n_rows <= _ROWS_TO_KEEP
        keeps_rows = is_small and self.nearest is not False
        kernel = [LocalKernelScorer(n_jobs=self.n_jobs)] if keeps_rows else []
        return Ensemble(
            [prototypes, *kernel, *self.scorers],
            nearest=self.nearest is True,
            n_validation=_VALIDATION,
            engine=self.engine,
            random_state=self.seed,
            n_jobs=self.n_jobs,
        )

    def _prototype_scorer(self, samples: Samples) -> PrototypeScorer:
        views: dict[str, Any] = {"views": 2, "ridge": _RIDGE} if _is_well_known(samples) else {}
        return PrototypeScorer(random_state=self.seed, n_jobs=self.n_jobs, **views)

    def cross_fits(self, samples: Samples) -> bool:
        """Whether one regressor is fitted again without some rows, which then say how right it is."""
        if self.calibration != "auto" or samples.starts is not None:
            return samples.starts is None and bool(self.calibration)
        regressor = self.make_regressor()
        is_quick = not (is_foreign(regressor) or isinstance(regressor, MLPRegressor))
        stays_here = make_engine(self.engine).shares_memory
        return is_quick and stays_here and samples.n_rows <= _ROWS_TO_FIT_TWICE

    def cross_fit_split(self, samples: Samples) -> tuple[Samples, Samples]:
        """Rows for the second fit, with every label among them, and those left out."""
        samples = samples.positive()
        wanted = min(_VALIDATION, samples.n_rows // _LEFT_OUT)
        left_out = spare_rows(samples.codes, wanted, seed=[self.seed, samples.n_rows, 7])
        train = np.delete(np.arange(samples.n_rows), left_out)
        return samples.take(train), samples.take(left_out)

    def quiet(self) -> Plan:
        """The same without display of progress and without checkpoints."""
        regressor = self.regressor
        if getattr(regressor, "checkpoint", None) is not None:
            regressor = clone(regressor).set_params(checkpoint=None)
        return self._replace(regressor=regressor, verbose=0)

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
            asked.append("label_texts" if self._has_texts else "scorers")
        if not asked:
            is_wanted = self.regressor == "auto" or (
                self._wants_profiles() and suit_profiles(samples.plain)
            )
            return is_wanted and not growing and self._is_large(samples)
        if growing or is_foreign(self.regressor):
            raise LocoleError(
                f"{asked[0]} needs a regressor of locole's own and a first fit with all labels: "
                "leave it out."
            )
        if not self._is_large(samples):
            if self._has_texts:
                raise LocoleError(
                    f"texts of labels need {_MIN_PAIRED} rows, to fit their weight, and there are only "
                    f"{samples.n_positive}: leave them out."
                )
            n_rows, n_features = samples.n_positive, samples.X.shape[1]
            few = f"{n_rows:,} rows" if n_rows < _MIN_ROWS else f"{n_features} features"
            raise LocoleError(
                f"{asked[0]} needs {_MIN_ROWS:,} rows and {_MIN_FEATURES} features, and there are only "
                f"{few}: leave it out."
            )
        if self.profiles is True and not suit_profiles(samples.plain):
            raise LocoleError("profiles=True needs features that are not negative: leave it out.")
        return True

    @property
    def _has_texts(self) -> bool:
        """Whether labels have texts."""
        return any(scorer.answers_unseen for scorer in self.scorers)

    def _is_large(self, samples: Samples) -> bool:
        """Whether there are rows and features enough to weigh several scorers."""
        if self._has_texts or isinstance(samples.X, PairedRows):
            return samples.n_positive >= _MIN_PAIRED
        return bool(samples.n_positive >= _MIN_ROWS and samples.X.shape[1] >= _MIN_FEATURES)

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

    def _regressors(self, **linear: Any) -> dict[str, TargetRegressor]:
        """Regressors whose points are added up, by name; with parameters of the linear ones."""
        if not isinstance(self.regressor, str):
            return {type(self.regressor).__name__: self.make_regressor()}
        asked = self.make_regressor()  # refuses an engine that cannot be used
        if self.regressor in ("auto", "mlp"):
            return self._linear(**linear)
        return {self.regressor: asked}

    def _linear(self, **parameters: Any) -> dict[str, TargetRegressor]:
        """Linear regressors of the default model."""
        made = ElasticNetRegressor(
            tol=_TOL,
            engine=self.engine,
            random_state=self.seed,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
            **parameters,
        )
        return {"elastic_net": made}

    def _ensemble_embedding(self, n_classes: int, *, several: bool = False) -> Embedding:
        """Embedding for regressors that are not alone; ``"auto"`` then needs fewer outputs."""
        is_free = self.embedding == "auto" and self.dim is None
        if several and is_free and _OUTPUTS < n_classes <= _SEVERAL_LABELS:
            return make_embedding("kerdock", n_classes, dim=_SEVERAL_OUTPUTS)
        if n_classes > _MOST_LABELS and self.embedding == "auto" and self.dim is None:
            return make_embedding(_MANY_LABELS_FAMILY, n_classes, dim=_OUTPUTS)
        # Labels that have texts are added without rows, and need room.
        is_kerdock = (self._has_texts or n_classes > _OUTPUTS) and n_classes <= _LABELS
        return self._embedding(n_classes, _OUTPUTS if is_kerdock else None)

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


def _is_well_known(samples: Samples) -> bool:
    """Whether labels have many rows each, and a row one label."""
    return samples.starts is None and samples.n_rows >= _ROWS_PER_LABEL * samples.n_classes


def are_dense(X: Any) -> bool:
    """Whether rows are dense vectors of signed numbers, such as sentence embeddings.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> are_dense(rng.normal(size=(200, 32))), are_dense(rng.random(size=(200, 32)))
    (True, False)
    """
    if isinstance(X, PairedRows):
        return False
    n_rows, n_features = X.shape
    if n_rows < _FEW_DENSE_ROWS or not _MIN_NUMBERS <= n_features <= _MOST_NUMBERS:
        return False
    values = X.data if sp.issparse(X) else X
    return bool(np.count_nonzero(values) > _MOSTLY * n_rows * n_features and values.min() < 0)
