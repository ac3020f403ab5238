"""The golden cases: one model of every kind, the data it learns from and what it is asked.

A golden folder is named after its case, with a word behind if there was a folder of the case already.

All data is drawn here by `numpy.random.default_rng`, so that every version of locole can fit the same
models again. Only public methods are used: constructors, ``fit``, ``partial_fit``, ``predict_topk``,
``decision_function``; one case sets an attribute that would take many rows to fit.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache, partial
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp

import locole.baselines
from locole import LocoleClassifier
from locole.embeddings import Explicit
from locole.regressors import ElasticNetRegressor, MLPRegressor, SoftmaxRegressor
from locole.scoring import NameVectorScorer
from locole.scoring.unseen import UnseenCalibration
from locole.text import TextClassifier, TextFeatures

#: Every name that a parameter of `LocoleClassifier` has had, newest first.
NAMES = {"nearest": ("nearest", "neighbours")}


class Data(NamedTuple):
    """Training rows and their labels, and the rows that a model is asked about."""

    X: Any
    y: Any
    questions: Any


class Case(NamedTuple):
    """One golden model."""

    model: Callable[[], Any]
    """Makes the model, not fitted yet."""
    data: Callable[[], Data]
    learn: Callable[[Any, Data], Any] = lambda model, data: model.fit(data.X, data.y)
    """Fits it."""
    k: int = 3
    has_all_scores: bool = False
    """Whether ``decision_function`` is asked too."""
    has_proba: bool = False
    """Whether probabilities are asked for too."""
    has_file: bool = True
    """Whether a saved model is kept beside the answers; not if it would be large."""
    max_bytes: int = 400_000
    """The saved folder is smaller."""

    def fitted(self) -> Any:
        """Fit the model."""
        return self.learn(self.model(), self.data())

    def ask(self, model: Any) -> dict[str, np.ndarray]:
        """Return the labels and scores that a model answers with."""
        questions = self.data().questions
        labels, scores = model.predict_topk(questions, k=self.k)
        answers = {"labels": np.asarray(labels), "scores": np.asarray(scores)}
        if self.has_all_scores:
            answers["all_scores"] = np.asarray(model.decision_function(questions))
        if self.has_proba:
            answers["proba"] = model.predict_topk(questions, k=self.k, proba=True)[1]
        return answers


# Data ---------------------------------------------------------------------------------------------


@cache
def numbers(n_classes: int, *, first: float = 0) -> Data:
    """Twelve rows of five numbers."""
    X = np.random.default_rng(0).standard_normal((12, 5))
    return Data(X, np.arange(12) % n_classes + first, X)


@cache
def phrases() -> Data:
    """Six texts in several scripts."""
    texts = ["it purrs", "it barks", "кошка мурлычет", "собака лает", "猫 meows", "犬 barks"]
    labels = ["cat", "dog", "кошка", "собака", "猫", "犬"]
    return Data(texts, labels, ["who barks?", "мурлычет", "Purrs & meows", "猫", "12345"])


@cache
def dense(n_classes: int = 12, *, n_samples: int = 240, n_features: int = 24) -> Data:
    """Noisy copies of a random vector for each label, as floats of either sign."""
    rng = np.random.default_rng(2)
    centres = rng.standard_normal((n_classes, n_features))
    y = np.arange(n_samples + 24) % n_classes
    X = centres[y] + 0.7 * rng.standard_normal((y.size, n_features))
    return Data(X[:n_samples], 10 * y[:n_samples], X[n_samples:])


@cache
def dense_groups(n_classes: int = 24, *, n_samples: int = 1060, n_features: int = 32) -> Data:
    """Noisy copies of one of two random vectors for each label, which no linear score tells apart."""
    rng = np.random.default_rng(3)
    centres = rng.standard_normal((2, n_classes, n_features))
    places = np.arange(n_samples + 24)
    X = centres[places // n_classes % 2, places % n_classes]
    X = X + 1.2 * rng.standard_normal(X.shape)
    return Data(X[:n_samples], 10 * (places % n_classes)[:n_samples], X[n_samples:])


@cache
def words(
    n_classes: int,
    *,
    n_samples: int = 1040,
    n_features: int = 264,
    own: int = 2,
    common: int = 2,
    signed: bool = False,
    shuffled: bool = False,
    seed: int = 1,
) -> Data:
    """Sparse rows: some of the label's eight words and some of all; ``shuffled`` labels mean nothing."""
    rng = np.random.default_rng(seed)
    vocabulary = rng.integers(0, n_features, (n_classes, 8))
    y = np.arange(n_samples + 24) % n_classes
    picked = np.take_along_axis(vocabulary[y], rng.integers(0, 8, (y.size, own)), axis=1)
    columns = np.hstack([picked, rng.integers(0, n_features, (y.size, common))])
    rows = np.repeat(np.arange(y.size), own + common)
    values = rng.uniform(0.5, 2, columns.size)
    if signed:
        values *= rng.choice([-1.0, 1.0], columns.size, p=[0.1, 0.9])
    shape = (y.size, n_features)
    X = sp.csr_array((values, (rows, columns.ravel())), shape=shape, dtype=np.float32)
    X.sum_duplicates()
    if shuffled:
        y = rng.permutation(y)
    return Data(X[:n_samples], y[:n_samples], X[n_samples:])


@cache
def sums(n: int = 4) -> Data:
    """One of n words, one of n others, and some that mean nothing; the label is their sum modulo n.

    Each word occurs with every label alike, so that no sum over words can tell it.
    """
    rng = np.random.default_rng(10)
    pair = rng.integers(0, n, (1064, 2))
    noise = rng.integers(2 * n, 264, (1064, 2))
    columns = np.hstack([pair + np.array([0, n]), noise])
    rows = np.repeat(np.arange(1064), 4)
    X = sp.csr_array((np.ones(columns.size), (rows, columns.ravel())), shape=(1064, 264))
    return Data(X[:1040], pair.sum(axis=1)[:1040] % n, X[1040:])


@cache
def paired() -> Data:
    """Sparse rows with dense ones of the same labels beside them."""
    sparse, vectors = words(20, seed=9), dense(20, n_samples=1040, n_features=20)
    # Imported here: earlier versions have none, and need none for the other cases.
    from locole.dense_rows import PairedRows

    return Data(
        PairedRows(sparse.X, vectors.X),
        sparse.y,
        PairedRows(sparse.questions, vectors.questions),
    )


@cache
def one_of_a_kind() -> Data:
    """Laws of forty kinds of sections, each at most once: the most similar rows are of other laws.

    Mostly the words of the kind, in one of four variants, and some of the law's.
    """
    rng = np.random.default_rng(0)
    laws, kinds, variants = 60, 40, 4
    law_words = rng.random((laws, 400)) < 0.02
    kind_words = rng.random((kinds * variants, 400)) < 0.06
    law, kind = np.divmod(rng.permutation(laws * kinds), kinds)
    variant = kind * variants + rng.integers(0, variants, law.size)
    is_said = rng.random((law.size, 400)) < 0.4
    X = sp.csr_array(2.0 * kind_words[variant] + law_words[law] * is_said)
    return Data(X[:1800], law[:1800], X[1800:1824])


@cache
def tagged(n_classes: int = 30) -> Data:
    """Rows with up to three labels, each of which adds words of its own; labels are strings."""
    rng = np.random.default_rng(6)
    own = rng.integers(0, 280, (n_classes, 4))
    sets = [rng.choice(n_classes, rng.integers(0, 4), replace=False) for _ in range(1064)]
    X = np.zeros((1064, 280))
    for row, labels in zip(X, sets, strict=True):
        row[own[labels].ravel()] += 1
        row[rng.integers(0, 280, 2)] += 1
    names = [[f"label {code}" for code in labels] for labels in sets]
    return Data(sp.csr_array(X[:1040]), names[:1040], sp.csr_array(X[1040:]))


@cache
def sentences(n_classes: int = 16) -> Data:
    """Texts of a few made-up words, and labels that are strings."""
    rng = np.random.default_rng(4)
    syllables = [a + b for a in "bdgklmnprst" for b in "aeiouäó"]
    terms = ["".join(rng.choice(syllables, 2)) for _ in range(280)]
    data = words(n_classes, n_features=280)
    both = sp.vstack([data.X, data.questions], format="csr")
    texts = [" ".join(terms[i] for i in row) for row in np.split(both.indices, both.indptr[1:-1])]
    n_samples = data.X.shape[0]
    names = np.array([f"{terms[code]} {code}" for code in range(n_classes)])
    return Data(texts[:n_samples], names[data.y], texts[n_samples:])


# Models -------------------------------------------------------------------------------------------


def classifier(embedding: Any = "kerdock", dim: int | None = 16, **parameters: Any) -> Any:
    """Make a classifier by the names that this version has for its parameters."""
    known = inspect.signature(LocoleClassifier).parameters
    if "factors" in known:  # which would make every file large
        parameters = {"factors": False, **parameters}
    named = {
        next(name for name in NAMES.get(newest, (newest,)) if name in known): value
        for newest, value in parameters.items()
    }
    return LocoleClassifier(embedding, dim=dim, **named)


def elastic_net(embedding: Any, dim: int | None = None, **parameters: Any) -> Any:
    return classifier(embedding, dim, regressor=ElasticNetRegressor(l2=0.1, **parameters))


def network(**parameters: Any) -> MLPRegressor:
    given = {"recipe": "labels", "hidden": 8, "batch_size": 32, "epochs": 2, **parameters}
    return MLPRegressor(device="cpu", **given)


def with_network() -> Any:
    # Imported here: earlier versions have none, and need none for the other cases.
    from locole.embeddings import OneHot
    from locole.scoring import NetworkScorer

    made = network(hidden=32, epochs=20, learning_rate=0.02, feature_dropout=0.0)
    return classifier(nearest=False, scorers=[NetworkScorer({"mlp": made}, OneHot(4, dim=4))])


def weighted(model: Any, data: Data) -> Any:
    """Fit with weights, of which some are zero."""
    weights = np.random.default_rng(5).integers(0, 4, len(data.y)) / 2
    return model.fit(data.X, data.y, sample_weight=weights)


def in_parts(model: Any, data: Data, *, first: Callable[[Any], Any]) -> Any:
    """Fit most of the labels; add half the rows of the others, then the rest and some old rows."""
    known = np.sort(np.unique(data.y))
    is_old = data.y < known[known.size * 7 // 8]
    (old,), (new,) = np.nonzero(is_old), np.nonzero(~is_old)
    first(model)(data.X[old], data.y[old])
    for rows in (new[::2], np.concatenate([new[1::2], old[:40]])):
        model.partial_fit(data.X[rows], data.y[rows])
    return model


def lived(model: Any, data: Data) -> Any:
    """Fit most labels, learn the others, and change labels of all kinds."""
    grown(model, data).merge_labels({3: 4}).retire_labels([7, 31]).rename_labels({5: 105})
    kept = np.flatnonzero(~np.isin(data.y, (7, 31)))[:10]
    y = np.where(data.y[kept] == 5, 105, data.y[kept])
    return model.forget(data.X[kept], y).partial_fit(data.X[kept], y)


def calibrated(model: Any, data: Data) -> Any:
    """Fit most rows, and calibrate by the others."""
    n_rows = len(data.y) * 3 // 4
    return model.fit(data.X[:n_rows], data.y[:n_rows]).calibrate(data.X[n_rows:], data.y[n_rows:])


grown = partial(in_parts, first=lambda model: model.fit)
always_grown = partial(in_parts, first=lambda model: model.partial_fit)


def explicit_vectors() -> Any:
    vectors = np.random.default_rng(1).standard_normal((3, 4))
    embedding = Explicit(vectors, labels=[2.0, 3.0, 1.0])
    return LocoleClassifier(embedding, regressor=ElasticNetRegressor(l2=0.5))


#: Parameters that make a baseline small, by the name of its class; defaults where there is no entry.
SMALL: dict[str, dict[str, Any]] = {
    "AnnexML": {"n_learners": 2, "dim": 16},
    "Bonsai": {"n_trees": 1, "n_children": 4, "max_leaf": 5},
    "MACH": {"n_buckets": 8, "n_repetitions": 5},
    "MLPCrossEntropy": {"hidden": 32, "batch_size": 16, "epochs": 3, "learning_rate": 0.1},
    "MLPSquaredError": {"hidden": 32, "batch_size": 16, "epochs": 3, "learning_rate": 0.03},
    "Parabel": {"n_trees": 1, "max_leaf": 5},
}
#: Families of embeddings, and a small dim of each.
FAMILIES = {
    "rademacher": 16,
    "gaussian": 8,
    "complex_gaussian": 8,
    "nelson": 11,
    "kerdock": 16,
    "delsarte_goethals": 16,
    "gold": 8,
    "reed_solomon": None,
    "one_hot": None,
    "simplex": None,
}
BASELINES = tuple(name for name in locole.baselines.__all__ if name != "Baseline")
_few_words = partial(words, 20, n_samples=240, n_features=150)


def baseline(name: str) -> Any:
    return getattr(locole.baselines, name)(**SMALL.get(name, {}))


#: From a golden model's name to how it is made.
CASES: dict[str, Case] = {
    "texts": Case(TextClassifier, phrases, k=2),
    "hashed": Case(
        lambda: TextClassifier(
            TextFeatures("char", n_features=64),
            LocoleClassifier(regressor=ElasticNetRegressor(l1=0.1, l2=0.5)),
        ),
        phrases,
        k=2,
    ),
    "numbers": Case(
        lambda: classifier(dim=4, regressor=ElasticNetRegressor(l2=0.5, storage="int8")),
        partial(numbers, 4),
        k=2,
    ),
    "vectors": Case(explicit_vectors, partial(numbers, 3, first=1.0), k=2),
    # The default model: with all of its parts, then with some of them only.
    "default": Case(partial(classifier, nearest=True), partial(words, 40), has_all_scores=True),
    "default_factors": Case(
        partial(classifier, nearest=False, factors=True),
        partial(words, 40, seed=4),
        has_all_scores=True,
    ),
    "default_one_hot": Case(
        partial(classifier, "auto", None, nearest=False),
        partial(words, 12, own=3, common=4, seed=5),
        has_all_scores=True,
    ),
    "default_softmax_profiles": Case(
        partial(classifier, regressor="softmax", profiles=True),
        partial(words, 10),
        has_all_scores=True,
    ),
    "default_elastic_net_profiles": Case(
        partial(classifier, nearest=False), partial(words, 120), has_all_scores=True
    ),
    "default_profiles": Case(
        partial(classifier, nearest=False), partial(words, 16, own=3, seed=3), has_all_scores=True
    ),
    "default_nothing": Case(
        partial(classifier, nearest=False),
        partial(words, 16, shuffled=True, seed=8),
        has_all_scores=True,
    ),
    "default_signed": Case(
        partial(classifier, nearest=False),
        partial(words, 40, signed=True, seed=5),
        has_all_scores=True,
    ),
    "default_weighted": Case(
        partial(classifier, nearest=True),
        partial(words, 40, n_samples=1400, seed=6),
        weighted,
        has_file=False,
    ),
    "default_grown": Case(
        partial(classifier, nearest=True), partial(words, 32, n_samples=1160, seed=6), grown
    ),
    "default_texts": Case(
        lambda: TextClassifier(TextFeatures("word", word_ngrams=(1, 1)), classifier(nearest=False)),
        sentences,
        has_all_scores=True,
    ),
    "default_several_labels": Case(partial(classifier, nearest=True), tagged, has_all_scores=True),
    "default_several_labels_grown": Case(
        partial(classifier, nearest=False),
        tagged,
        lambda model, data: model.fit(data.X[:1010], data.y[:1010]).partial_fit(
            data.X[1010:], data.y[1010:]
        ),
    ),
    "default_dense": Case(
        partial(classifier, "auto", None),
        partial(dense, 40, n_samples=1040, n_features=32),
        has_all_scores=True,
    ),
    "default_dense_grown": Case(
        partial(classifier, "auto", None), partial(dense, 32, n_samples=1160, n_features=36), grown
    ),
    "default_dense_kernel": Case(
        partial(classifier, "auto", None), dense_groups, has_all_scores=True
    ),
    "default_paired": Case(partial(classifier, nearest=False), paired, has_all_scores=True),
    "default_many_labels": Case(
        partial(classifier, "auto", None),
        partial(words, 300, own=4, common=8, n_samples=2400, n_features=400, seed=0),
        has_file=False,
    ),
    "default_nearest_chosen": Case(
        partial(classifier, "auto", None), one_of_a_kind, has_all_scores=True, has_file=False
    ),
    "default_network": Case(with_network, sums, has_all_scores=True),
    "elastic_net_profiles": Case(
        lambda: classifier(regressor=ElasticNetRegressor(storage="float16"), profiles=True),
        partial(words, 40),
    ),
    # One regressor alone, with every family of embeddings.
    **{
        f"elastic_net_{family}": Case(partial(elastic_net, family, dim), dense)
        for family, dim in FAMILIES.items()
    },
    "elastic_net_l1": Case(partial(elastic_net, "kerdock", 16, l1=0.01), _few_words),
    "elastic_net_many_features": Case(
        partial(elastic_net, "gold", None, l1=0.001),
        partial(words, 300, n_samples=900, n_features=2000),
        has_file=False,
    ),
    "elastic_net_weighted": Case(partial(elastic_net, "kerdock", 16), dense, weighted),
    "elastic_net_grown": Case(partial(elastic_net, "kerdock", 16), dense, grown),
    "elastic_net_always_grown": Case(
        partial(elastic_net, "rademacher", 16), _few_words, always_grown
    ),
    "candidates": Case(
        partial(classifier, regressor="elastic_net", decoder="candidates"),
        partial(words, 100, n_samples=400, n_features=150),
    ),
    "kernel": Case(partial(classifier, regressor="kernel"), _few_words, has_all_scores=True),
    "softmax": Case(partial(classifier, regressor="softmax"), _few_words, has_all_scores=True),
    "softmax_sampled": Case(
        lambda: classifier("auto", None, regressor=SoftmaxRegressor(n_sampled=32)),
        partial(words, 300, n_samples=900, n_features=500),
        has_file=False,
    ),
    "softmax_grown": Case(partial(classifier, regressor="softmax"), _few_words, grown),
    "network": Case(lambda: classifier(regressor=network()), _few_words, has_all_scores=True),
    "network_squared": Case(
        lambda: classifier(
            regressor=network(recipe="default", hidden=(8, 4), batch_norm=True, dropout=0.1)
        ),
        dense,
    ),
    "network_vectors": Case(
        lambda: classifier("gaussian", 8, regressor=network(embedding_rate=1.0)), _few_words
    ),
    # With dropout, gradients that ought to cancel leave rounding errors that Adamax makes steps of.
    "network_profiles": Case(
        lambda: classifier(regressor=network(feature_dropout=0.0)), partial(words, 40)
    ),
    "network_profiles_nearest": Case(
        lambda: classifier(regressor=network(feature_dropout=0.0), profiles=True, nearest=True),
        partial(words, 40),
        has_file=False,
    ),
    # Labels that live: learnt later with a reservoir, merged, retired, renamed, and rows forgotten.
    "default_living": Case(
        partial(classifier, nearest=True),
        partial(words, 32, n_samples=1160, seed=6),
        lambda model, data: lived(model, data),
    ),
    # What locole is compared with.
    **{f"baseline_{name.lower()}": Case(partial(baseline, name), _few_words) for name in BASELINES},
    "baseline_calibrated": Case(
        partial(baseline, "Centroids"), _few_words, calibrated, has_proba=True
    ),
    "elastic_net_calibrated": Case(
        partial(elastic_net, "kerdock", 16), _few_words, calibrated, has_proba=True
    ),
    "baseline_texts": Case(
        lambda: TextClassifier(TextFeatures("word", word_ngrams=(1, 1)), baseline("Centroids")),
        phrases,
    ),
}


@cache
def named() -> Data:
    """Sixty texts of five words, one of them the label's name."""
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 6
    words = [[NAMED[f"n{label}"], *rng.choice(["on", "at", "by", "in"], 4)] for label in labels]
    texts = [" ".join(rng.permutation(own)) for own in words]
    return Data(texts, [f"n{label}" for label in labels], [*NAMED.values(), "walnuts", "by apples"])


#: What labels are called; the last two have no rows.
NAMED = {
    f"n{i}": name
    for i, name in enumerate(
        ("apple", "banana", "cherry", "damson", "elderberry", "fig", "grape", "hazelnut")
    )
}


def label_texts() -> TextClassifier:
    """A small model with texts of labels."""
    features = TextFeatures("both", word_ngrams=(1, 1), char_ngrams=(3, 3))
    return TextClassifier(
        features, LocoleClassifier(factors=False, dim=16, embedding="kerdock"), label_texts=NAMED
    )


CASES["default_label_texts"] = Case(
    label_texts,
    named,
    learn=lambda model, data: model.fit(data.X, data.y).add_labels({"n8": "walnut"}),
    k=1,
)


def with_calibration(model: Any, data: Data) -> Any:
    """As if it had been fitted: that takes 10,000 rows, and a reservoir that is a large file."""
    model.fit(data.X, data.y)
    model.classifier_.scorer_.unseen_ = UnseenCalibration(np.array([1.1, 0.8, -0.3, 0.2]))
    return model


CASES["default_label_texts_calibrated"] = Case(
    label_texts, named, learn=with_calibration, k=2, has_all_scores=True
)


def name_vectors(factors: bool | Literal["auto"] = "auto") -> LocoleClassifier:
    """Dense rows, and a vector for the text of each label."""
    vectors = np.random.default_rng(5).standard_normal((12, 24), dtype=np.float32)
    return LocoleClassifier(factors=factors, scorers=[NameVectorScorer(vectors)])


CASES["default_name_vectors"] = Case(name_vectors, dense)
# Factors of a few rows of noise are others on other processors.
CASES["default_name_vectors_alone"] = Case(partial(name_vectors, False), dense, has_file=False)
CASES["four_bits"] = Case(
    lambda: classifier(dim=4, regressor=ElasticNetRegressor(l2=0.5, storage="int4")),
    partial(numbers, 4),
    k=2,
)


def case_of(folder: str) -> Case:
    """The case that a golden folder is of: the longest name that its own begins with."""
    return CASES[max((name for name in CASES if folder.startswith(name)), key=len)]
