"""The classifier as a whole: what it learns, and that its methods agree."""

from __future__ import annotations

import numpy as np
import pytest
from problems import prototypes, texts, words
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LinearRegression, MultiTaskElasticNet, Ridge, RidgeClassifier
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.validation import check_is_fitted

from locole import LocoleClassifier
from locole.embeddings import FAMILIES, Explicit, Kerdock, Rademacher
from locole.regressors import ElasticNetRegressor

X, y = prototypes()
NAMES = ["auto", *FAMILIES]


# --- it learns ---


@pytest.mark.parametrize("embedding", NAMES)
def test_every_embedding_learns(embedding):
    classifier = LocoleClassifier(embedding).fit(X[:240], y[:240])
    assert classifier.score(X[240:], y[240:]) > 0.9


@pytest.mark.parametrize(
    "regressor",
    [
        "auto",
        "elastic_net",
        ElasticNetRegressor(l1=0.01, l2=0.5, max_passes=20),
        Ridge(),
        LinearRegression(),
        MultiTaskElasticNet(alpha=0.001),
        KNeighborsRegressor(),
        DecisionTreeRegressor(random_state=0),
        make_pipeline(Ridge()),
    ],
    ids=repr,
)
@pytest.mark.parametrize("embedding", ["kerdock", "nelson"])
def test_every_regressor_learns(embedding, regressor):
    classifier = LocoleClassifier(embedding, dim=64 if embedding == "kerdock" else 31)
    classifier.set_params(regressor=regressor).fit(X, y)
    assert classifier.score(X, y) > 0.9


@pytest.mark.parametrize("embedding", ["one_hot", "simplex"])
def test_one_hot_ridge_is_the_ridge_classifier(embedding):
    noisy, labels = prototypes(noise=3.0)
    ours = LocoleClassifier(embedding, regressor=Ridge(alpha=2.0)).fit(noisy, labels)
    theirs = RidgeClassifier(alpha=2.0).fit(noisy, labels)
    np.testing.assert_array_equal(ours.predict(noisy), theirs.predict(noisy))
    assert 0.3 < ours.score(noisy, labels) < 1


@pytest.mark.parametrize("embedding", ["one_hot", "kerdock"])
def test_nearest_neighbours_vote_as_they_always_did(embedding):
    # All 30 labels lie in one orthonormal basis and their entries are powers of two: the votes
    # arrive as they are, ties included.
    noisy, labels = prototypes(noise=3.0)
    dim = {"kerdock": 64}.get(embedding)
    ours = LocoleClassifier(embedding, dim=dim, regressor=KNeighborsRegressor(6))
    theirs = KNeighborsClassifier(6).fit(noisy, labels)
    new = noisy + 0.1
    np.testing.assert_array_equal(ours.fit(noisy, labels).predict(new), theirs.predict(new))


def test_texts_go_to_the_pipeline_as_they_are():
    X_text, animals = texts()
    regressor = make_pipeline(TfidfVectorizer(), Ridge(alpha=0.1))
    classifier = LocoleClassifier("kerdock", regressor=regressor).fit(X_text, animals)
    assert classifier.predict(["it purrs", "it barks", "it swims"]).tolist() == [
        "cat",
        "dog",
        "fish",
    ]
    assert classifier.predict(np.array(X_text)).tolist() == animals


# --- methods agree ---


@pytest.fixture(scope="module", params=["one_hot", "kerdock", "nelson", "reed_solomon", "gaussian"])
def fitted(request):
    return LocoleClassifier(request.param).fit(X, y)


def test_prediction_is_the_first_of_the_best(fitted):
    labels, scores = fitted.predict_topk(X, k=4)
    assert labels.shape == scores.shape == (300, 4)
    np.testing.assert_array_equal(fitted.predict(X), labels[:, 0])
    assert (np.diff(scores, axis=1) <= 0).all()


def test_decision_function_ranks_as_topk_does(fitted):
    decisions = fitted.decision_function(X)
    assert decisions.shape == (300, 30)
    labels, scores = fitted.predict_topk(X, k=30)
    order = np.argsort(-decisions, axis=1, kind="stable")
    np.testing.assert_array_equal(labels, fitted.classes_[order])
    np.testing.assert_allclose(scores, -np.sort(-decisions, axis=1), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(fitted.predict(X), fitted.classes_[decisions.argmax(axis=1)])


@pytest.mark.parametrize("embedding", ["one_hot", "kerdock", "gold", "nelson", "reed_solomon"])
def test_decision_function_agrees_on_ties_too(embedding):
    noisy, labels = prototypes(noise=3.0)
    classifier = LocoleClassifier(embedding, regressor=KNeighborsRegressor(6)).fit(noisy, labels)
    best = classifier.decision_function(noisy + 0.1).argmax(axis=1)
    np.testing.assert_array_equal(classifier.predict(noisy + 0.1), classifier.classes_[best])


def test_scores_are_products_of_points_and_vectors(fitted):
    points = fitted.regressor_.predict(X)
    rows = fitted.embedding_.real_rows(np.arange(30), np.float64)
    np.testing.assert_allclose(fitted.decision_function(X), points @ rows.T, atol=1e-10)


def test_two_classes_have_one_decision():
    two = np.where(y < 15, "left", "right")
    classifier = LocoleClassifier("kerdock").fit(X, two)
    decisions = classifier.decision_function(X)
    assert decisions.shape == (300,)
    expected = np.where(decisions > 0, "right", "left")
    np.testing.assert_array_equal(classifier.predict(X), expected)


def test_rows_do_not_influence_each_other(fitted):
    many = np.tile(X, (5, 1))  # more rows than one block
    expected = fitted.predict(X)
    np.testing.assert_array_equal(fitted.predict(many), np.tile(expected, 5))
    one_by_one = np.concatenate([fitted.predict(X[i : i + 1]) for i in range(20)])
    np.testing.assert_array_equal(one_by_one, expected[:20])


@pytest.mark.parametrize("embedding", ["kerdock", "nelson", "reed_solomon", "one_hot"])
def test_every_exact_decoder_gives_the_same_labels(embedding):
    fast, dense = (
        LocoleClassifier(embedding, decoder=decoder).fit(X, y).predict_topk(X, k=5)[0]
        for decoder in ("auto", "dense")
    )
    np.testing.assert_array_equal(fast, dense)


def test_the_prior_is_the_mean_target(fitted):
    expected = fitted.embedding_.real_rows(y, np.float64).mean(axis=0)
    np.testing.assert_allclose(fitted.scorer_.prior_point_, expected, atol=1e-7)


# --- rows about which the regressor says nothing ---


@pytest.mark.parametrize("embedding", ["one_hot", "kerdock", "nelson", "rademacher"])
def test_rows_without_features_get_the_most_frequent_label(embedding):
    labels = np.where(np.arange(300) % 3 == 0, 17, y)
    regressor = ElasticNetRegressor(fit_intercept=False)
    classifier = LocoleClassifier(embedding, regressor=regressor).fit(X, labels)
    silent = np.zeros((2, 64))
    assert classifier.predict(silent).tolist() == [17, 17]
    assert classifier.classes_[classifier.decision_function(silent).argmax(axis=1)].tolist() == [
        17,
        17,
    ]
    weight = np.where(labels == 4, 50.0, 1.0)
    weighted = clone(classifier).fit(X, labels, sample_weight=weight)
    assert weighted.predict(silent).tolist() == [4, 4]


# --- the same answer ---


def test_threads_change_no_bit():
    X_words, labels = words(n_samples=2100, n_features=400)
    answers = []
    for n_jobs in (1, 2, 4):
        classifier = LocoleClassifier("kerdock", dim=256, n_jobs=n_jobs).fit(X_words, labels)
        regressors = classifier.scorer_["vectors"].regressors_
        parts = [regressor.coef_.T for regressor in regressors.values()]
        answers.append([*parts, *classifier.predict_topk(X_words, k=3)])
        answers[-1].append(classifier.decision_function(X_words))
    assert answers[0][0].dtype == np.float32  # the iterative path
    for other in answers[1:]:
        for a, b in zip(answers[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "random_state", [7, np.int64(7), np.uint8(7), np.random.RandomState(7), None]
)
def test_kinds_of_random_state(random_state):
    classifier = LocoleClassifier("rademacher", dim=64, random_state=random_state).fit(X, y)
    assert classifier.score(X, y) > 0.9


def test_the_seed_decides():
    def vectors(random_state):
        classifier = LocoleClassifier("rademacher", dim=64, random_state=random_state).fit(X, y)
        return classifier.embedding_.rows(range(30))

    np.testing.assert_array_equal(vectors(3), vectors(np.int32(3)))
    np.testing.assert_array_equal(
        vectors(np.random.RandomState(3)), vectors(np.random.RandomState(3))
    )
    assert not np.array_equal(vectors(3), vectors(4))


def test_fitting_twice_is_fitting_once():
    classifier = LocoleClassifier("gaussian").fit(X[:, :9], y % 3)
    classifier.fit(X, y)
    fresh = LocoleClassifier("gaussian").fit(X, y)
    np.testing.assert_array_equal(classifier.decision_function(X), fresh.decision_function(X))


def test_parameters_and_data_are_left_alone():
    embedding, regressor = Kerdock(4, dim=64), Ridge()
    kept_X, kept_y = X.copy(), y.copy()
    classifier = LocoleClassifier(embedding, regressor=regressor).fit(X, y)
    classifier.predict(X)
    assert classifier.embedding is embedding
    assert embedding == Kerdock(4, dim=64)
    with pytest.raises(NotFittedError):
        check_is_fitted(regressor)
    np.testing.assert_array_equal(X, kept_X)
    np.testing.assert_array_equal(y, kept_y)


# --- embeddings of one's own ---


@pytest.mark.parametrize("n_classes", [2, 30, 500])
def test_an_embedding_is_resized_to_the_labels(n_classes):
    embedding = Rademacher(n_classes, dim=64, random_state=5)
    classifier = LocoleClassifier(embedding).fit(X, y)
    assert classifier.embedding_ == Rademacher(30, dim=64, random_state=5)
    assert classifier.score(X, y) > 0.9


def test_a_placed_embedding_keeps_its_places():
    columns = np.random.default_rng(0).permutation(2048)[:30]
    classifier = LocoleClassifier(Kerdock(30, dim=64, assignment=columns)).fit(X, y)
    np.testing.assert_array_equal(classifier.embedding_.columns(range(30)), columns)
    assert classifier.score(X, y) > 0.9


def animals() -> tuple[Explicit, np.ndarray]:
    """Attributes: stripes, hooves, wings, paws, feathers, size."""
    vectors = np.array(
        [
            [1, 0, 0, 1, 0, 1],
            [0, 1, 0, 0, 0, 1],
            [0, 0, 1, 0, 1, 0],
            [0, 0, 0, 1, 0, 0],
            [1, 1, 0, 0, 0, 1],
        ],
        dtype=float,
    )
    return Explicit(vectors, labels=["tiger", "horse", "crow", "cat", "zebra"]), vectors


def test_a_label_without_training_rows_is_recognised_by_its_vector():
    embedding, vectors = animals()
    rng = np.random.default_rng(0)
    mix = rng.standard_normal((6, 20))
    code = np.repeat(np.arange(4), 30)
    X_train = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True))[code] @ mix
    X_zebra = vectors[[4, 4]] / np.sqrt(3) @ mix
    labels = np.array(["tiger", "horse", "crow", "cat"])[code]
    classifier = LocoleClassifier(embedding, regressor=Ridge(alpha=1e-6)).fit(X_train, labels)
    assert classifier.classes_.tolist() == ["tiger", "horse", "crow", "cat", "zebra"]
    assert classifier.predict(X_zebra).tolist() == ["zebra", "zebra"]
    assert classifier.score(X_train, labels) == 1


def test_vectors_without_names_follow_the_sorted_labels():
    vectors = np.random.default_rng(0).standard_normal((30, 40))
    classifier = LocoleClassifier(Explicit(vectors)).fit(X, y[::-1])
    np.testing.assert_array_equal(classifier.classes_, np.arange(30))
    np.testing.assert_array_equal(
        classifier.embedding_.rows(range(30)), Explicit(vectors).rows(range(30))
    )


class Silent(BaseEstimator):
    """A regressor that says nothing, in an array that cannot be written to."""

    def fit(self, X, Y):
        self.n_outputs_ = Y.shape[1]
        return self

    def predict(self, X):
        answer = np.zeros((len(X), self.n_outputs_), dtype=np.float32)
        answer.flags.writeable = False
        return answer


def test_a_regressors_own_array_is_not_written_to():
    classifier = LocoleClassifier("kerdock", regressor=Silent()).fit(X, np.maximum(y - 10, 0))
    assert classifier.predict(X[:3]).tolist() == [0, 0, 0]
