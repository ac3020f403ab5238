"""The classifier: parameters in, labels and one scorer out."""

from __future__ import annotations

import copy
import warnings
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from locole.atomic import all_or_nothing, of_one_moment
from locole.base import LabelClassifier
from locole.calibration import MIN_ROWS
from locole.choice import Choice
from locole.decoders import DECODERS, Decoder
from locole.embeddings import FAMILIES, Embedding
from locole.exceptions import LocoleError, LocoleWarning, ModelFileError
from locole.io import saved_as
from locole.labels import (
    LabelFeatures,
    as_type_of,
    codes_of,
    extended,
    weights_from_arrays,
    weights_to_arrays,
)
from locole.living import LivingLabels
from locole.parallel import Engine
from locole.parallel.blocks import one_blas_thread
from locole.parameters import COUNT, ENGINE, N_JOBS, SEED, SWITCH_OR_AUTO, VERBOSE, has, one_of
from locole.samples import Rows, Samples
from locole.scoring import Ensemble, LabelScorer, NameScorer, NameVectorScorer, VectorScorer
from locole.scoring.base import Codes, Contributions, ValidationScores
from locole.scoring.default import REGRESSORS, Plan, is_foreign

__all__ = ["LocoleClassifier"]

# Accuracy on validation rows below which something else than the model must be wrong.
_USELESS = 0.005


@saved_as("classifier")
class LocoleClassifier(LivingLabels, LabelClassifier):
    """Classifier for very many labels: predict the label's vector, answer with the nearest label.

    Every label y gets a fixed unit vector ``g_y`` (the *embedding*), a multi-output *regressor*
    learns ``x → g_y`` by squared loss, and the *decoder* returns the labels whose vectors have the
    largest ``Re⟨f(x), g_i⟩``. Time and memory of training do not depend on the number of labels but
    on the number of outputs, ``embedding_.real_dim``. By default this is one of several label scorers
    whose scores are added up; see `locole.scoring`.

    Parameters
    ----------
    embedding : str or Embedding
        Name of a family (see `make_embedding`) or an embedding, of which as many vectors are taken
        as there are labels. ``"auto"``: one-hot up to 256 labels, Gold codes of 512 outputs up to
        262,144, Kerdock codes above; in an ensemble, Kerdock codes of 256 outputs up to 16,384 labels.
    dim : int, optional
        Dimension for an embedding given by name; by default the family's choice.
    regressor : str or estimator
        ``"elastic_net"`` (squared loss, the paper's), ``"softmax"`` (cross-entropy over all labels),
        ``"mlp"`` (a network by softmax; needs torch), or any multi-output regressor of scikit-learn's
        kind, also a Pipeline, which is then given X as it is. ``"auto"`` fits the elastic net, label
        profiles if X has no negative entries, and low-rank factors. Their weights are fitted by maximum
        likelihood on up to 4,000 validation rows, which they learn afterwards; ``choice_`` says what
        came out. With fewer than 1,000 rows or 257 features it is the elastic net alone. Dense rows, 32
        to 8,192 numbers of either sign such as sentence embeddings, get prototypes of labels instead
        (`locole.scoring.PrototypeScorer`) and, with many rows for each label, a kernel regression for
        each (`locole.scoring.LocalKernelScorer`).
    decoder : str or Decoder
        ``"auto"`` picks the fastest exact one; see `locole.decoders.decode`.
    random_state : int, RandomState instance or None
        Seed of random vectors, of the regressor and of the validation split.
    n_jobs : int, optional
        Threads for training and prediction; the answer does not depend on it.
    verbose : int
        0 is silent.
    engine : {"threads", "ray"} or Engine
        Where the elastic net, or a network, is learnt: on threads of this machine, or on the nodes of a
        Ray cluster (see `locole.parallel.RayEngine`). The answer does not depend on it. Not saved with
        the model.
    profiles : bool or "auto"
        Whether label profiles are added to the scores of a regressor of ours, with weights fitted on
        validation rows as with ``regressor="auto"``. ``"auto"``: with that, and with networks. Needs
        1,000 rows and 257 features, none of them negative.
    factors : bool or "auto"
        Whether low-rank factors (`locole.scoring.FactorScorer`) are added in the same way. ``"auto"``:
        with ``regressor="auto"``, up to 262,144 labels. They are left out if the validation rows say
        that they are worth nothing.
    nearest : bool or "auto"
        Whether the eight best labels of a row are reranked by the cosine similarity of the nearest
        training row of each (`locole.scoring.NearestScorer`), which keeps training rows in the model.
        ``"auto"``: in an ensemble, if it puts more validation rows right; not for dense rows. Needs
        1,000 rows and 257 features. False also leaves out the kernel regression, which keeps rows.
    scorers : sequence of LabelScorer
        More scorers for the ensemble.
    label_features : LabelFeatures, optional
        What labels are called, in numbers (`locole.labels.LabelFeatures`), also of labels without
        rows, which are answered as well (`locole.scoring.NameScorer`). Needs 50 rows. Not saved as a
        parameter.
    class_weight : dict of label to float, "balanced", optional
        How much rows of each label count, times ``sample_weight``; labels that are not named count 1.
        ``"balanced"``: ``n_samples / (n_classes · rows of the label)``, not for `partial_fit`.
    calibration : bool or "auto"
        Whether one regressor alone is fitted a second time, to four fifths of the rows, so that
        probabilities can be fitted to up to 4,000 of the others. ``"auto"``: up to 10,000 rows, for
        regressors of ours but networks. An ensemble has validation rows anyway. Without, probabilities
        are a guess until `calibrate` is called.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels, sorted (or as the embedding names them); labels learnt later come after them.
    scorer_ : LabelScorer
        What scores labels: `locole.scoring.VectorScorer` for one regressor, otherwise
        `locole.scoring.Ensemble`.
    embedding_, decoder_ : Embedding, Decoder
        Those of the scorer.
    regressor_ : TargetRegressor
        The regressor, if there is one; several are in ``scorer_["vectors"].regressors_``.
    choice_ : Choice
        What was chosen on validation rows, as a dict with a readable ``str``; empty for one regressor.
    n_features_in_ : int
        Number of features of the rows.

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

    _parameter_constraints: ClassVar = {
        "embedding": [*one_of("auto", *FAMILIES), Embedding],
        "dim": [None, *COUNT],
        "regressor": [*one_of(*REGRESSORS), *has("fit", "predict")],
        "decoder": [*one_of("auto", *DECODERS), Decoder],
        "random_state": [None, *SEED, np.random.RandomState],
        "n_jobs": N_JOBS,
        "verbose": VERBOSE,
        "engine": ENGINE,
        "profiles": SWITCH_OR_AUTO,
        "factors": SWITCH_OR_AUTO,
        "nearest": SWITCH_OR_AUTO,
        "scorers": [list, tuple],
        "label_features": [None, LabelFeatures],
        "class_weight": [None, *one_of("balanced"), dict],
        "calibration": SWITCH_OR_AUTO,
    }
    _learnt: ClassVar = {
        **LabelClassifier._learnt,
        **LivingLabels._learnt,
        "scorer_": LabelScorer,
    }
    scorer_: LabelScorer
    _unsaved: ClassVar = ("engine", "scorers", "label_features")
    _takes_several: ClassVar = True

    def __init__(
        self,
        embedding: str | Embedding = "auto",
        *,
        dim: int | None = None,
        regressor: Any = "auto",
        decoder: str | Decoder = "auto",
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
        engine: str | Engine = "threads",
        profiles: bool | Literal["auto"] = "auto",
        factors: bool | Literal["auto"] = "auto",
        nearest: bool | Literal["auto"] = "auto",
        scorers: Any = (),
        label_features: LabelFeatures | None = None,
        class_weight: dict[Any, float] | Literal["balanced"] | None = None,
        calibration: bool | Literal["auto"] = "auto",
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
        self.factors = factors
        self.nearest = nearest
        self.scorers = scorers
        self.label_features = label_features
        self.class_weight = class_weight
        self.calibration = calibration

    def set_params(self, **params: Any) -> Self:
        """Set parameters, those of a regressor or another part as ``regressor__l2=0.1``."""
        for name in params:
            part, _, inner = name.partition("__")
            value = params.get(part, getattr(self, part, None))
            if inner and isinstance(value, str):
                raise LocoleError(
                    f"{name} cannot be set: {part}={value!r} is a name, which has no parameter "
                    f"{inner!r}. Give {part} an object that has it, such as ElasticNetRegressor() "
                    "for regressor."
                )
        return super().set_params(**params)

    # Fit ----------------------------------------------------------------------------------------

    @all_or_nothing
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from rows X and their labels y.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features), or PairedRows
            Features; `locole.dense_rows.PairedRows` are sparse and dense ones of the same rows. For a
            regressor of your own whatever it takes.
        y : array of shape (n_samples,)
            Labels of any kind that can be sorted. Several for a row: an indicator of shape (n_samples,
            n_labels), sparse or not, with ones at the labels of a row, or a sequence of collections of
            labels. Rows may have none.
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
        ``classes_``; old labels keep theirs. One-hot vectors get more outputs, full Kerdock codes are
        continued by Delsarte–Goethals ones, and another full embedding says so: see `rehash`. The rows
        are added to what was learnt; a row given twice counts twice.

        An ensemble keeps a sample of up to 4,000 rows as it scored them before it learnt them
        (``scorer_.reservoir_``), in which new rows take the place of old ones. Weights and
        probabilities are fitted to it anew.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        classes : array, optional
            Labels to know already, whether or not y has them; those that were retired stay so.
        """
        if not self.__sklearn_is_fitted__():
            return self._fit(X, y, sample_weight, classes=classes, growing=True)
        self._check_values()
        samples, known = self._samples(
            X, y, sample_weight=sample_weight, classes=classes, more=True
        )
        n_new = known.size - self.classes_.size
        self.scorer_ = copy.copy(self.scorer_).partial_fit(samples)
        self.classes_ = known
        self._has_learnt(samples)
        self.past_ = self._past().noted("learn", rows=samples.n_rows, new_labels=n_new)
        return self

    @all_or_nothing
    def add_labels(self, label_features: LabelFeatures) -> Self:
        """Know more labels by what they are called, or give known ones another text.

        They can be answered at once, and come last in ``classes_``; scores of other labels stay as they
        are. A full embedding says so: see `rehash`. Names of labels that were merged or retired are
        refused.

        Parameters
        ----------
        label_features : LabelFeatures
            Of these labels. Its terms begin with those of the first fit.

        Returns
        -------
        LocoleClassifier
            Itself.
        """
        check_is_fitted(self)
        if not (isinstance(self.scorer_, Ensemble) and NameScorer.name in self.scorer_):
            raise LocoleError("the model was trained without label_features: fit it with them.")
        label_features.check(self.n_features_in_)
        labels = as_type_of(self.classes_, np.asarray(label_features.labels))
        self._past().check_free(labels)
        known = extended(self.classes_, labels)
        scorer = copy.copy(self.scorer_).add_labels(known.size)
        names: Any = scorer[NameScorer.name]
        names.add_texts(codes_of(labels, known), label_features)
        if NameVectorScorer.name in scorer and label_features.vectors is not None:
            vectors: Any = scorer[NameVectorScorer.name]
            vectors.add_texts(codes_of(labels, known), label_features)
        n_new = known.size - self.classes_.size
        self.scorer_, self.classes_ = scorer, known
        if self.label_rows_ is not None:
            self.label_rows_ = np.pad(self.label_rows_, (0, n_new))
        if self.calibration_ is not None:
            self.calibration_ = self.calibration_.grown(np.zeros(known.size, dtype=np.int64))
        if self.marginals_ is not None:
            self.marginals_ = self.marginals_.grown(known.size, 0)
        self.past_ = self._past().noted("add", new_labels=n_new, texts=labels.size)
        return self

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
        return hasattr(self, "scorer_")

    def _fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        *,
        classes: ArrayLike | None = None,
        growing: bool = False,
    ) -> Self:
        self.check_parameters()
        plan = self._plan(_seed(self.random_state))
        named = self.label_features
        if named is not None:
            classes = named.labels if classes is None else np.append(classes, named.labels)
        samples, known = self._samples(X, y, sample_weight=sample_weight, classes=classes)
        if named is not None:
            named.check(samples.X.shape[1])
            names: list[LabelScorer] = [NameScorer(named.aligned(known), feature_terms=named.terms)]
            if named.vectors is not None:
                names.append(NameVectorScorer(named.aligned_vectors(known)))
            plan = plan._replace(scorers=(*plan.scorers, *names))
        scorer = plan.scorer(samples, growing=growing).fit(samples)
        if self._takes_any_rows and scorer.n_features is not None:
            self.n_features_in_ = scorer.n_features
        self.classes_, self.scorer_ = known, scorer
        self.past_, self.label_rows_ = None, samples.label_counts
        found = scorer.validation_scores()
        if found is None and plan.cross_fits(samples):
            found = self._cross_fitted(plan, samples, growing=growing)
        with one_blas_thread():
            if self.multilabel_ is None:
                self.calibration_ = self._calibrated(found, samples)
            elif found is not None:
                self._fit_marginals(found)
        self._warn_if_useless(samples)
        return self

    def _cross_fitted(
        self, plan: Plan, samples: Samples, *, growing: bool
    ) -> ValidationScores | None:
        """Scores of some rows by a model that is fitted to the others; None if there are too few."""
        train, validation = plan.cross_fit_split(samples)
        if validation.n_rows < MIN_ROWS:
            return None
        other = copy.copy(self)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # all has been said about the fit to all rows
            other.scorer_ = plan.quiet().scorer(train, growing=growing).fit(train)
        return other._scored(validation)

    def _warn_if_useless(self, samples: Samples) -> None:
        """Warn if almost no validation row is right; if labels have one row each that has been said."""
        accuracy = self.choice_.get("accuracy", 1.0)
        if accuracy < _USELESS and samples.n_rows > samples.n_classes:
            warnings.warn(
                f"only {accuracy:.1%} of {self.choice_['validation_rows']:,} validation rows are right: "
                "is y a column of ids instead of labels, or X without what tells labels apart?",
                LocoleWarning,
                stacklevel=5,
            )

    def _plan(self, seed: int) -> Plan:
        """What the parameters ask for."""
        names = [name for name in Plan._fields if name != "seed"]
        return Plan(**{name: getattr(self, name) for name in names}, seed=seed)

    def _check_means(self) -> None:
        self._plan(seed=0).check()

    @property
    def _takes_any_rows(self) -> bool:
        return is_foreign(self.regressor)

    @property
    def _takes_pairs(self) -> bool:
        return not is_foreign(self.regressor)

    @property
    def _n_beside(self) -> int | None:
        return self.scorer_.n_beside

    def _known_labels(self, y: NDArray) -> NDArray:
        """Labels as the embedding names them, or sorted."""
        named = getattr(self.embedding, "labels", None)
        return super()._known_labels(y) if named is None else named

    # Parts --------------------------------------------------------------------------------------

    @property
    def embedding_(self) -> Embedding:
        """Vectors of the labels."""
        return self._vectors.embedding_

    @property
    def decoder_(self) -> Decoder:
        """From points back to labels."""
        return self._vectors.decoder_

    @property
    def regressor_(self) -> Any:
        """From rows to points; an attribute only if there is one regressor."""
        regressors = self._vectors.regressors_
        if len(regressors) == 1:
            return next(iter(regressors.values()))
        found = f"there are {len(regressors)} regressors" if regressors else "no regressor counts"
        raise AttributeError(f"{found}: see choice_ and scorer_['vectors'].regressors_.")

    @property
    def choice_(self) -> Choice:
        """What was chosen on validation rows."""
        return Choice(getattr(self.scorer_, "choice_", {}))

    @property
    def _vectors(self) -> Any:
        scorer: Any = self.scorer_
        if isinstance(scorer, Ensemble) and VectorScorer.name in scorer:
            scorer = scorer[VectorScorer.name]
        if not isinstance(scorer, VectorScorer):
            raise AttributeError("prototypes have no embedding, decoder or regressor.")
        return scorer

    # Answers ------------------------------------------------------------------------------------

    def predict_topk(self, X: Any, k: int = 5, *, proba: bool = False) -> tuple[NDArray, NDArray]:
        """Return the best ``k`` labels of each row, best first, and their scores or probabilities.

        Memory is one block of rows times ``k`` and ``real_dim``, whatever the number of labels.

        Returns
        -------
        labels : array of shape (rows, k)
            Labels, best first.
        scores : array of shape (rows, k)
            For one regressor ``Re⟨f(x), g⟩``: for squared loss an estimate of the label's probability,
            off by at most the embedding's coherence. For an ensemble logits, among the candidates of all
            its scorers.
        """
        return super().predict_topk(X, k=k, proba=proba)

    @of_one_moment
    def decision_function(self, X: Any) -> NDArray:
        """Scores of all labels, shape (rows, n_classes); of the second minus the first if there are two.

        This is the one method whose memory grows with the number of labels: prefer `predict_topk`.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Rows to score.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Scores in the order of ``classes_``.
        """
        check_is_fitted(self)
        scores = np.concatenate(self._map_rows(X, self.scorer_.all_scores))
        is_binary = self.classes_.size == 2 and self.multilabel_ is None
        return scores[:, 1] - scores[:, 0] if is_binary else scores

    def _best(self, rows: Rows, k: int) -> tuple[NDArray[np.int64], NDArray]:
        return self.scorer_.candidates(rows, k)

    def _scores_to_guess_by(self, samples: Samples) -> tuple[NDArray, NDArray | None]:
        if self._takes_any_rows:
            # Of such rows one cannot always take some. Scores of the best label and the next, about.
            return np.array([[1.0, 0.5]]), None
        return super()._scores_to_guess_by(samples)

    def _explained(self, rows: Rows, codes: Codes) -> Contributions:
        if self._takes_any_rows:
            raise LocoleError(
                "the regressor takes rows as they are: features cannot be told apart to explain a score."
            )
        return self.scorer_.explain(rows, codes)

    # Save ---------------------------------------------------------------------------------------

    def _state(self) -> dict[str, Any]:
        state = super()._state()
        weights = state["params"].pop("class_weight")
        if weights is not None:
            is_dict = isinstance(weights, dict)
            state["params"]["class_weight"] = weights_to_arrays(weights) if is_dict else weights
        return state

    @classmethod
    def _from_state(cls, values: dict[str, Any]) -> Self:
        params = values["params"]
        if isinstance(params, dict) and isinstance(params.get("class_weight"), dict):
            weights = weights_from_arrays(params["class_weight"])
            values = {**values, "params": {**params, "class_weight": weights}}
        return super()._from_state(values)

    def _check_learnt(self) -> None:
        super()._check_learnt()
        scorer, n_features = self.scorer_, self.scorer_.n_features
        if self.classes_.size != scorer.n_classes or self.n_features_in_ != n_features:
            raise ModelFileError("its labels and its scorer do not fit together")
        self._check_past()


def _seed(random_state: Any) -> int:
    """Return a whole number as it is; draw one from a generator or from None."""
    if isinstance(random_state, int | np.integer) and random_state >= 0:
        return int(random_state)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
