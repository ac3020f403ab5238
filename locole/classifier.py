"""The joint: embedding + regressor + decoder as a scikit-learn classifier."""

from __future__ import annotations

import copy
import os
import sys
import warnings
from functools import partial
from types import NoneType
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    _num_samples,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from locole.auto import (
    Assembled,
    Problem,
    assemble,
    few_outputs,
    is_worth_it,
    linear_experts,
    suit_profiles,
)
from locole.decoders import Decoder, choose_decoder, recall
from locole.decoders.choose import checked_k
from locole.embeddings import Embedding, Explicit, make_embedding
from locole.exceptions import LocoleError, ModelFileError
from locole.io import SavedEstimator, saved_as, write_model
from locole.labels import codes_of, extended
from locole.mixing import Mixture
from locole.neighbours import Neighbours
from locole.parallel import Engine, Threads, make_engine
from locole.parallel.blocks import map_blocks, n_threads
from locole.profiles import Profiles
from locole.regressors import (
    ElasticNetRegressor,
    MLPRegressor,
    RegressorAdapter,
    SoftmaxRegressor,
    TargetRegressor,
)
from locole.regressors.base import all_or_nothing
from locole.rows import sliceable, take
from locole.targets import Targets, learnt_embedding

__all__ = ["REGRESSORS", "LocoleClassifier"]

# Rows whose points exist at a time.
_BLOCK_ROWS = 1024
# Outputs of a model that starts with partial_fit: room for 262,144 labels.
_GROWING_DIM = 512
# Rows on which an inexact decoder is compared with the exact one.
_RECALL_ROWS = 512

#: Regressors by name.
REGRESSORS: dict[str, Any] = {
    "auto": ElasticNetRegressor,  # for small problems; otherwise see `locole.auto`
    "elastic_net": ElasticNetRegressor,
    "mlp": partial(MLPRegressor, recipe="labels"),
    "softmax": SoftmaxRegressor,
}


@saved_as("classifier")
class LocoleClassifier(SavedEstimator, ClassifierMixin, BaseEstimator):
    """Classifier for very many labels: learn to hit the label's vector, answer with the nearest.

    Every label y gets a fixed unit vector ``g_y`` (the *embedding*), a multi-output *regressor*
    learns ``x → g_y`` by squared loss, and the *decoder* returns the labels whose vectors have the
    largest ``Re⟨f(x), g_i⟩``. Time and memory of training do not depend on the number of labels but
    on the number of outputs, ``embedding_.real_dim``.

    Parameters
    ----------
    embedding : str or Embedding
        Name of a family (see `make_embedding`) or an embedding, of which as many vectors are taken
        as there are labels. ``"auto"``: one-hot up to 256 labels, Gold codes of 512 outputs up to
        262,144, Kerdock codes above; where ``regressor="auto"`` adds up several models, Kerdock codes
        of 256 outputs up to 16,384 labels.
    dim : int, optional
        Dimension for an embedding given by name; by default the family's choice.
    regressor : str or estimator
        ``"elastic_net"`` (squared loss, the paper's), ``"softmax"`` (cross-entropy over all labels),
        ``"mlp"`` (a network by softmax; needs torch), or any multi-output regressor of scikit-learn's
        kind, also a Pipeline, which is then given X as it is. ``"auto"`` fits the elastic net, the
        softmax if there are ten rows for each label (alone from a hundred on, for features of texts),
        and label profiles if X has no negative entries, and weighs them by how likely they make the
        labels of up to 2,000 rows held out, which they learn afterwards; ``choice_`` says what came
        out. With fewer than 1,000 rows or 257 features it is the elastic net alone.
    decoder : str or Decoder
        ``"auto"`` picks the fastest exact one; see `locole.decoders.decode`.
    random_state : int, RandomState instance or None
        Seed of random vectors and of the regressor.
    n_jobs : int, optional
        Threads for training and prediction; the answer does not depend on it.
    verbose : int
        0 is silent.
    engine : {"threads", "ray"} or Engine
        Where the elastic net, or a network, is learnt: on threads of this machine, or on the nodes of a
        Ray cluster (see `locole.parallel.RayEngine`). The answer does not depend on it. Not saved with
        the model.
    profiles : bool or "auto"
        Whether label profiles are added to the scores of a regressor of ours, weighed on rows held out
        as with ``regressor="auto"``. ``"auto"``: with that, and with networks by the recipe ``labels``,
        which is ``"mlp"``. Needs 1,000 rows and 257 features, none of them negative.
    neighbours : bool or "auto"
        Whether the eight best labels of a row are scored anew by how like the nearest training row of
        each is (`locole.neighbours.Neighbours`), which keeps the training rows in the model. ``"auto"``:
        where models are weighed on rows held out, if it puts more of those right. Needs 1,000 rows and
        257 features.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels, sorted (or as the embedding names them).
    embedding_, regressor_, decoder_
        The parts in use.
    profiles_ : Profiles or None
        Label profiles, which ``regressor="auto"`` adds to the scores with weight ``profile_weight_``.
    neighbours_ : Neighbours or None
        Training rows that the best labels are compared with.
    choice_ : str
        What ``"auto"`` chose and why, in one line; empty otherwise.
    decoder_recall_ : float
        1 for exact decoders; for ``decoder="candidates"`` the fraction of training rows (up to 512)
        on which it agrees with the exact answer.
    prior_point_ : array of shape (real_dim,)
        Mean target: the answer for rows about which the regressor says nothing.
    weight_seen_ : float
        Number of training rows, or the sum of their weights.
    n_features_in_ : int

    Notes
    -----
    A row without any known feature gets the regressor's intercept. A regressor that returns exactly
    zero for a row (no intercept, no known feature) has said nothing; such a row is decoded from
    ``prior_point_``, so it gets the labels that are most frequent in the training data.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> classifier = LocoleClassifier().fit(X[:1500], y[:1500])
    >>> classifier.score(X[1500:], y[1500:]) > 0.85
    True
    >>> labels, scores = classifier.predict_topk(X[1500:], k=3)
    >>> labels.shape
    (297, 3)
    """

    _learnt: ClassVar = {
        "classes_": np.ndarray,
        "embedding_": Embedding,
        "regressor_": TargetRegressor,
        "profiles_": (Profiles, NoneType),
        "profile_weight_": float,
        "neighbours_": (Neighbours, NoneType),
        "choice_": str,
        "decoder_": Decoder,
        "decoder_recall_": float,
        "prior_point_": np.ndarray,
        "weight_seen_": float,
    }
    _unsaved: ClassVar = ("engine",)

    def __init__(
        self,
        embedding: str | Embedding = "auto",
        dim: int | None = None,
        regressor: Any = "auto",
        decoder: str | Decoder = "auto",
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
        engine: str | Engine = "threads",
        profiles: bool | Literal["auto"] = "auto",
        neighbours: bool | Literal["auto"] = "auto",
    ) -> None:
        self.embedding = embedding
        self.dim = dim
        self.regressor = regressor
        self.decoder = decoder
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.engine = engine
        self.profiles = profiles
        self.neighbours = neighbours

    # Fit ----------------------------------------------------------------------------------------

    @all_or_nothing
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from rows X and their labels y.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Features; for a regressor of your own whatever it takes.
        y : array of shape (n_samples,)
            Labels of any kind that can be sorted.
        sample_weight : array of shape (n_samples,), optional
            For regressors that take it.

        Returns
        -------
        LocoleClassifier
            Itself.
        """
        return self._fit(X, y, sample_weight)

    @all_or_nothing
    def partial_fit(
        self,
        X: Any,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn from more rows, which may have new labels.

        New labels get the next vectors of the embedding and come after the known ones in
        ``classes_``; old labels keep theirs. A full embedding says so: see `rehash`. The rows are
        added to what was learnt; a row given twice counts twice.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        classes : array, optional
            Labels to know already, whether or not y has them.
        """
        if not self.__sklearn_is_fitted__():
            return self._fit(X, y, sample_weight, classes=classes, growing=True)
        return self._fit_more(X, y, classes, sample_weight)

    @all_or_nothing
    def rehash(
        self,
        X: Any,
        y: ArrayLike,
        *,
        dim: int | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Give every label a new vector with room for more labels, and learn again from all data.

        Parameters
        ----------
        X, y, sample_weight
            All the data: what was learnt for the old vectors is of no use for the new ones.
        dim : int, optional
            The new dim; by default the family's choice for twice the labels. Becomes a parameter of
            the classifier, as does the embedding's name.
        """
        check_is_fitted(self)
        family = type(self.embedding_)
        if dim is None:
            dim = family.default_dim(2 * self.embedding_.n_classes)
        self.set_params(embedding=family.name, dim=dim)
        return self._fit(X, y, sample_weight)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "regressor_")

    def _fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        *,
        classes: ArrayLike | None = None,
        growing: bool = False,
    ) -> Self:
        n_threads(self.n_jobs)
        seed = _seed(self.random_state)
        regressor = self._make_regressor(seed)
        X, y = self._validated_training_data(X, y, regressor)
        weight = None
        if sample_weight is not None:
            weight = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
        known, codes = self._encode(y, classes)
        several = self._adds_up(X, weight, regressor, growing=growing)
        embedding = self._make_embedding(known.size, seed, growing=growing, several=several)
        if regressor.learns_embedding:
            # Where vectors start from; no decoder may count on their structure.
            embedding = Explicit(embedding.real_block(0, known.size))
        decoder = choose_decoder(embedding, self.decoder)
        targets = Targets(codes, embedding)
        made = Assembled(regressor, None, 0.0, None, "")
        if several:
            n_rows = codes.size if weight is None else int(np.count_nonzero(weight))
            # Several models are learnt, one after the other: a cluster is joined or started once.
            with make_engine(self.engine).running(self.n_jobs):
                made = assemble(
                    Problem(sp.csr_array(X), targets, weight),
                    decoder,
                    self._experts(regressor, X, n_rows, known.size, seed),
                    profiled=self._is_profiled(regressor),
                    neighboured=self.neighbours,
                    seed=seed,
                    n_jobs=self.n_jobs,
                    verbose=self.verbose,
                )
            if self.verbose:
                print(made.reason, file=sys.stderr)
        else:
            regressor.fit(X, targets, sample_weight=weight)
        embedding = learnt_embedding(made.regressor, embedding)
        targets = Targets(codes, embedding)
        self.classes_ = known
        self.embedding_ = embedding
        self.decoder_ = decoder
        self.regressor_ = regressor = made.regressor
        self.profiles_, self.profile_weight_ = made.profiles, made.profile_weight
        self.neighbours_, self.choice_ = made.neighbours, made.reason
        if isinstance(regressor, RegressorAdapter) and hasattr(regressor, "n_features_in_"):
            self.n_features_in_ = regressor.n_features_in_
        self.prior_point_ = targets.mean(weight)
        self.weight_seen_ = float(codes.size if weight is None else weight.sum())
        self.decoder_recall_ = 1.0 if decoder.exhaustive else self._measured_recall(X)
        return self

    def _fit_more(
        self, X: Any, y: ArrayLike, classes: ArrayLike | None, sample_weight: ArrayLike | None
    ) -> Self:
        if not hasattr(self.regressor_, "partial_fit"):
            name = type(self.regressor_).__name__
            raise LocoleError(f"{name} cannot learn more rows: fit again with all the data.")
        X, y = self._validated_training_data(X, y, self.regressor_, reset=False)
        weight = None
        if sample_weight is not None:
            weight = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
        known = extended(self.classes_, y if classes is None else np.append(classes, y))
        embedding = self.embedding_.resized(known.size)
        targets = Targets(codes_of(y, known), embedding)
        regressor = copy.copy(self.regressor_)
        regressor.partial_fit(X, targets, sample_weight=weight)
        embedding = learnt_embedding(regressor, embedding)
        targets = Targets(targets.codes, embedding)
        if self.profiles_ is not None:
            profiles = copy.copy(self.profiles_)
            self.profiles_ = profiles.add(sp.csr_array(X), targets.codes, known.size, weight)
        if self.neighbours_ is not None:
            heard = np.flatnonzero(np.ones(targets.codes.size) if weight is None else weight)
            neighbours = copy.copy(self.neighbours_)
            neighbours.add(sp.csr_array(X)[heard], targets.codes[heard], known.size)
            self.neighbours_ = neighbours
        self.classes_, self.embedding_, self.regressor_ = known, embedding, regressor
        added = float(targets.codes.size if weight is None else weight.sum())
        share = added / (self.weight_seen_ + added)
        self.prior_point_ = (1 - share) * self.prior_point_ + share * targets.mean(weight)
        self.weight_seen_ += added
        return self

    def _measured_recall(self, X: Any) -> float:
        """Recall of an inexact decoder on some training rows."""
        n = _num_samples(X)
        rows = np.linspace(0, n - 1, min(n, _RECALL_ROWS)).astype(np.int64)
        Z = self._points(take(X, rows))
        return recall(self.embedding_, Z, decoder=self.decoder_)

    def _validated_training_data(
        self, X: Any, y: ArrayLike, regressor: TargetRegressor, *, reset: bool = True
    ) -> tuple[Any, NDArray]:
        if isinstance(regressor, RegressorAdapter):
            if y is None:
                raise LocoleError("y is missing: give a label for each row of X.")
            if _num_samples(X) != _num_samples(y):
                raise LocoleError(
                    f"X has {_num_samples(X)} rows but y has {_num_samples(y)} labels."
                )
            if _num_samples(X) == 0:
                raise LocoleError(
                    "there are 0 samples: give at least one row for each of two classes."
                )
            y = column_or_1d(y, warn=True)
        else:
            X, y = validate_data(
                self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], reset=reset
            )
        with warnings.catch_warnings():
            # Many labels with one row each are what this classifier is for.
            warnings.filterwarnings("ignore", message="The number of unique classes is greater")
            check_classification_targets(y)
        return sliceable(X), np.asarray(y)

    def _encode(self, y: NDArray, classes: ArrayLike | None) -> tuple[NDArray, NDArray[np.int64]]:
        """Labels to know, and the code of each row's."""
        known = getattr(self.embedding, "labels", None)
        if known is None:
            known = np.unique(y if classes is None else np.append(classes, y))
        codes = codes_of(y, known)
        if (codes < 0).any():
            missing = str(y[codes < 0][0])
            raise LocoleError(f"the embedding names no vector for class {missing!r}.")
        if known.size < 2:
            only = str(known[0])
            raise LocoleError(
                f"there is only one class, {only!r}: a classifier needs at least two."
            )
        return known, codes

    def _make_embedding(
        self, n_classes: int, seed: int, *, growing: bool, several: bool
    ) -> Embedding:
        if isinstance(self.embedding, Embedding):
            if self.dim is not None and self.dim != self.embedding.dim:
                raise LocoleError("dim is the embedding's own: leave it out, or give a name.")
            return self.embedding.resized(n_classes)
        if not isinstance(self.embedding, str):
            raise LocoleError(f"embedding must be a name or an Embedding, not {self.embedding!r}.")
        dim = self.dim
        if self.embedding == "auto" and dim is None:
            # One-hot, the choice for few labels, cannot take more.
            dim = _GROWING_DIM if growing else few_outputs(n_classes) if several else None
        return make_embedding(self.embedding, n_classes, dim=dim, random_state=seed)

    def _make_regressor(self, seed: int) -> TargetRegressor:
        regressor = self.regressor
        if isinstance(regressor, TargetRegressor):
            regressor = clone(regressor)
            if getattr(regressor, "n_jobs", 0) is None:
                regressor.set_params(n_jobs=self.n_jobs)
            return self._with_engine(regressor)
        if isinstance(regressor, str):
            if regressor in REGRESSORS:
                kind = REGRESSORS[regressor]
                settings = {"n_jobs": self.n_jobs, "verbose": self.verbose}
                return self._with_engine(kind(random_state=seed, **settings))
            names = ", ".join(REGRESSORS)
            raise LocoleError(f"unknown regressor {regressor!r}: take {names} or an estimator.")
        if hasattr(regressor, "fit") and hasattr(regressor, "predict"):
            return self._with_engine(RegressorAdapter(regressor))
        raise LocoleError(f"regressor must be a name or have fit and predict, not {regressor!r}.")

    def _adds_up(
        self, X: Any, weight: NDArray | None, regressor: TargetRegressor, *, growing: bool
    ) -> bool:
        """Whether models are weighed on rows held out, by default or because parts ask for it."""
        asked = []
        for name in ("profiles", "neighbours"):
            value = getattr(self, name)
            if value not in (True, False, "auto"):
                raise LocoleError(f"{name} must be True, False or 'auto', not {value!r}.")
            if value is True:
                asked.append(f"{name}=True")
        if not asked:
            is_wanted = self.regressor == "auto" or (
                self._is_profiled(regressor) and suit_profiles(sp.csr_array(X))
            )
            return is_wanted and not growing and is_worth_it(X, weight)
        if growing or isinstance(regressor, RegressorAdapter):
            raise LocoleError(
                f"{asked[0]} needs a regressor of locole's own and a first fit with all labels: "
                "leave it out."
            )
        if not is_worth_it(X, weight):
            raise LocoleError(f"{asked[0]} needs 1,000 rows and 257 features: leave it out.")
        if self.profiles is True and not suit_profiles(sp.csr_array(X)):
            raise LocoleError("profiles=True needs features that are not negative: leave it out.")
        return True

    def _is_profiled(self, regressor: TargetRegressor) -> bool:
        """Whether label profiles are made where features suit them."""
        if self.profiles != "auto":
            return self.profiles
        return self.regressor == "auto" or regressor.wants_profiles

    def _experts(
        self, regressor: TargetRegressor, X: Any, n_rows: int, n_classes: int, seed: int
    ) -> dict[str, TargetRegressor]:
        """Regressors whose points are added up, by name."""
        if self.regressor != "auto":
            name = self.regressor if isinstance(self.regressor, str) else type(regressor).__name__
            return {name: regressor}
        settings: dict[str, Any] = {"n_jobs": self.n_jobs, "verbose": self.verbose}
        return linear_experts(
            sp.csr_array(X), n_rows, n_classes, seed=seed, engine=self.engine, **settings
        )

    def _with_engine(self, regressor: TargetRegressor) -> TargetRegressor:
        """Regressor that learns where the classifier is told to, unless it has an engine of its own."""
        engine, own = make_engine(self.engine), getattr(regressor, "engine", None)
        if own is None and not isinstance(engine, Threads):
            name = type(getattr(regressor, "regressor", regressor)).__name__
            raise LocoleError(
                f"{name} learns on one machine only: take 'elastic_net' or 'mlp', or engine='threads'."
            )
        return regressor.set_params(engine=self.engine) if own == "threads" else regressor

    # Predict ------------------------------------------------------------------------------------

    def predict(self, X: Any) -> NDArray:
        """Most likely label of each row."""
        return self.predict_topk(X, k=1)[0][:, 0]

    def predict_topk(self, X: Any, k: int = 5) -> tuple[NDArray, NDArray]:
        """Return the best ``k`` labels of each row, best first, and their scores.

        Memory is one block of rows times ``k`` and ``real_dim``, whatever the number of labels.

        Returns
        -------
        labels : array of shape (rows, k)
        scores : array of shape (rows, k)
            ``Re⟨f(x), g⟩``: for squared loss an estimate of the label's probability, off by at most
            the embedding's coherence. With ``regressor="auto"`` logits, to which the label profiles
            add their part; the labels are then the best of the candidates of both. Nearest rows, if
            there are ``neighbours_``, change scores and order of the first eight.
        """
        check_is_fitted(self)
        k = checked_k(k, self.embedding_.n_classes)
        mixture = self._mixture
        parts = self._map_points(X, lambda X, Z: mixture.best(X, Z, k))
        codes = np.concatenate([codes for codes, _ in parts])
        return self.classes_[codes], np.concatenate([scores for _, scores in parts])

    def decision_function(self, X: Any) -> NDArray:
        """Scores of all labels, shape (rows, n_classes); of the second minus the first if there are two.

        This is the one method whose memory grows with the number of labels: prefer `predict_topk`.
        """
        check_is_fitted(self)
        scores = np.concatenate(self._map_points(X, self._mixture.every))
        return scores[:, 1] - scores[:, 0] if self.classes_.size == 2 else scores

    @property
    def _mixture(self) -> Mixture:
        return Mixture(
            self.embedding_, self.decoder_, self.profiles_, self.profile_weight_, self.neighbours_
        )

    def _map_points(self, X: Any, function: Any) -> list[Any]:
        """Apply ``function`` to one block of rows and their points after the other."""
        if not isinstance(self.regressor_, RegressorAdapter):
            X = validate_data(
                self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False
            )
        X = sliceable(X)
        n_rows = _num_samples(X)
        if n_rows == 0:
            raise LocoleError("there are 0 samples to predict: give at least one row.")

        def on_block(rows: slice) -> Any:
            some = take(X, rows)
            return function(some, self._points(some))

        return map_blocks(on_block, n_rows, block=_BLOCK_ROWS, n_jobs=self.n_jobs)

    def _points(self, X: Any) -> NDArray:
        Z = self.regressor_.predict(X)
        silent = np.asarray(~Z.any(axis=1))
        if self.profiles_ is not None:
            # Where the points count for nothing, profiles still speak of rows with features.
            silent &= np.diff(sp.csr_array(X).indptr) == 0
        if silent.any():
            Z = np.where(silent[:, None], self.prior_point_.astype(Z.dtype), Z)
        return Z

    # Save ---------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model into a folder, for `locole.load`.

        A model that is there already is replaced in one step: who reads the folder, or finds it after
        a crash, gets the old model or the new one. Only models whose parts are locole's own can be
        saved, because a regressor of another library would need pickle.

        Parameters
        ----------
        path : str or path
            The folder; its parent must exist.
        """
        check_is_fitted(self)
        write_model(path, self)

    def _check_learnt(self) -> None:
        embedding, regressor = self.embedding_, self.regressor_
        n_features = getattr(regressor, "n_features_in_", None)
        fits = (
            self.classes_.shape == (embedding.n_classes,)
            and regressor.n_outputs_ == embedding.real_dim
            and getattr(self, "n_features_in_", n_features) == n_features
            and self.prior_point_.shape == (embedding.real_dim,)
            and self.prior_point_.dtype == np.float64
            and self.decoder_.fits(embedding)
            and (
                self.profiles_ is None
                or self.profiles_.sums_.shape == (n_features, embedding.n_classes)
            )
            and (
                self.neighbours_ is None
                or (self.neighbours_.rows_.shape[1], self.neighbours_.starts_.size - 1)
                == (n_features, embedding.n_classes)
            )
        )
        if not fits:
            raise ModelFileError("its labels, embedding, regressor and decoder do not fit together")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _seed(random_state: Any) -> int:
    """Return a whole number as it is; draw one from a generator or from None."""
    if isinstance(random_state, int | np.integer) and random_state >= 0:
        return int(random_state)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
