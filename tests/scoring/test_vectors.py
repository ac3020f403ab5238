"""Scores by regressors and label vectors: sums of regressors, weights of features, the prior."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import scipy.sparse as sp
from problems import words
from same import assert_same_bits
from sklearn.base import clone
from sklearn.linear_model import Ridge

from locole import LocoleClassifier
from locole.embeddings import Kerdock
from locole.exceptions import LocoleError, ModelFileError
from locole.io import read_model, write_model
from locole.regressors import (
    ElasticNetRegressor,
    MLPRegressor,
    RegressorAdapter,
    SoftmaxRegressor,
)
from locole.samples import Rows, Samples
from locole.scoring import LabelScorer, VectorScorer
from locole.scoring.vectors import _products
from locole.targets import Targets

X, y = words()
EMBEDDING = Kerdock(40, dim=64)
TARGETS = Targets(y, EMBEDDING)
SAMPLES = Samples(X, y, 40)
MORE = Samples(X[:50], y[:50], 40)


def parts():
    return {"elastic_net": ElasticNetRegressor(l2=1.0), "softmax": SoftmaxRegressor(epochs=1)}


def scorer_of(regressors, weights, samples=SAMPLES, **settings):
    scorer = VectorScorer(regressors, EMBEDDING, **settings).fit(samples)
    scorer.set_source_weights(np.array(weights))
    return scorer


@pytest.fixture
def both():
    return scorer_of(parts(), [2.0, 0.25])


def points(scorer, rows=X):
    return scorer.points(Rows(rows))


def test_points_are_the_weighted_sum(both):
    first, second = (part.fit(X, TARGETS).predict(X) for part in parts().values())
    np.testing.assert_allclose(points(both), 2 * first + second / 4, rtol=1e-6, atol=1e-6)
    assert both.weights_ == [2.0, 0.25]
    assert points(both).shape == (400, 64)
    assert both.n_features == 300
    assert both.n_classes == 40


def test_regressors_count_one_until_they_are_weighed():
    scorer = VectorScorer(parts(), EMBEDDING).fit(SAMPLES)
    first, second = (part.fit(X, TARGETS).predict(X) for part in parts().values())
    assert scorer.weights_ == [1.0, 1.0]
    np.testing.assert_allclose(points(scorer), first + second, rtol=1e-6, atol=1e-6)


def test_one_regressor_of_weight_one_is_that_regressor():
    alone = ElasticNetRegressor(l2=1.0).fit(X, TARGETS)
    scorer = scorer_of({"elastic_net": ElasticNetRegressor(l2=1.0)}, [1.0])
    np.testing.assert_array_equal(points(scorer), alone.predict(X))


def test_single_precision_is_kept():
    part = SoftmaxRegressor(epochs=1)
    assert points(scorer_of({"a": part, "b": part}, [0.3, 0.7])).dtype == np.float32


def test_every_regressor_learns_more(both):
    expected = [
        part.fit(X, TARGETS).partial_fit(X[:50], Targets(y[:50], EMBEDDING))
        for part in parts().values()
    ]
    twin, before = copy.copy(both), points(both)
    both.partial_fit(MORE)
    for part, other in zip(both.regressors_.values(), expected, strict=True):
        np.testing.assert_array_equal(part.predict(X), other.predict(X))
    # the regressors it had are as they were
    np.testing.assert_array_equal(points(twin), before)


def test_a_regressor_that_cannot_learn_more_is_named():
    class Fixed(SoftmaxRegressor):
        partial_fit = property()  # as if there were none

    scorer = scorer_of({"a": ElasticNetRegressor(l2=1.0), "b": Fixed(epochs=1)}, [1.0, 1.0])
    before = points(scorer)
    with pytest.raises(LocoleError, match="Fixed cannot learn more rows: fit again"):
        scorer.partial_fit(SAMPLES)
    np.testing.assert_array_equal(points(scorer), before)
    adapted = scorer_of({"ridge": RegressorAdapter(Ridge())}, [1.0])
    with pytest.raises(LocoleError, match="Ridge cannot learn more rows"):
        adapted.partial_fit(SAMPLES)


def test_the_regressors_given_are_not_the_ones_fitted():
    given = parts()
    VectorScorer(given, EMBEDDING).fit(SAMPLES)
    assert not any(hasattr(part, "n_outputs_") for part in given.values())


def test_learnt_vectors_are_those_of_one_regressor():
    network = MLPRegressor(hidden=8, epochs=1, embedding_rate=0.1)
    with pytest.raises(LocoleError, match="same label vectors only: take embedding_rate=0"):
        VectorScorer({"a": network, "b": SoftmaxRegressor(epochs=1)}, EMBEDDING).fit(SAMPLES)


@pytest.mark.parametrize("settings", [{}, {"regressors": {}}, {"regressors": parts()}], ids=repr)
def test_what_is_missing_is_named(settings):
    with pytest.raises(LocoleError, match="needs regressors and an embedding"):
        VectorScorer(**settings).fit(SAMPLES)


def test_adding_points_adds_the_scores_of_classifiers(tmp_path):
    scorer = scorer_of(parts(), [1.0, 0.1])
    scores = scorer.all_scores(Rows(X))
    by_part = [
        LocoleClassifier("kerdock", dim=64, regressor=part).fit(X, y).decision_function(X)
        for part in parts().values()
    ]
    np.testing.assert_allclose(scores, by_part[0] + by_part[1] / 10, atol=1e-5)
    assert repr(clone(scorer)) == repr(scorer)
    write_model(tmp_path / "m", scorer)
    np.testing.assert_array_equal(read_model(tmp_path / "m").all_scores(Rows(X)), scores)


@pytest.mark.parametrize("n_rows", [0, 1, 31, 32, 33, 70])
def test_products(n_rows):
    embedding = Kerdock(301, dim=64)
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((n_rows, 64)).astype(np.float32)
    codes = rng.integers(0, 301, (n_rows, 5))
    expected = np.einsum("ikj,ij->ik", embedding.real_rows(codes.ravel()).reshape(n_rows, 5, 64), Z)
    found = _products(embedding, Z, codes)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert found.dtype == np.float64


# --- regressors as sources ---


def test_sources_are_the_regressors(both):
    assert both.sources == list(both.regressors_) == ["elastic_net", "softmax"]
    codes = np.random.default_rng(0).integers(0, 40, (400, 5))
    found = both.source_scores(Rows(X), codes)
    for i, part in enumerate(parts().values()):
        alone = part.fit(X, TARGETS).predict(X)
        np.testing.assert_allclose(found[..., i], _products(EMBEDDING, alone, codes), atol=1e-6)
    near = both.source_candidates(Rows(X), 3)
    assert near.shape == (400, 6)
    for i, name in enumerate(both.sources):
        scores = both.regressors_[name].predict(X) @ EMBEDDING.real_rows(np.arange(40)).T
        own = np.take_along_axis(scores, near[:, 3 * i : 3 * i + 3], 1)
        np.testing.assert_allclose(own, -np.sort(-scores, axis=1)[:, :3], atol=1e-4)


def test_a_regressor_without_weight_is_left_out():
    scorer = scorer_of(parts(), [0.0, 0.5])
    assert list(scorer.regressors_) == scorer.sources == ["softmax"]
    assert scorer.weights_ == [0.5]
    alone = SoftmaxRegressor(epochs=1).fit(X, TARGETS).predict(X)
    np.testing.assert_allclose(points(scorer), alone / 2, rtol=1e-6)


def test_no_regressor_counts(tmp_path):
    """None stays, and rows have the prior unless others speak."""
    scorer = scorer_of(parts(), [0.0, 0.0])
    assert scorer.regressors_ == {}
    assert scorer.weights_ == []
    np.testing.assert_allclose(points(scorer), [scorer.prior_point_] * 400, rtol=1e-6)
    scorer.others_speak = True
    assert scorer.is_silent(Rows(X))
    scorer.partial_fit(Samples(X[:50], y[:50] + 3, 43))
    assert scorer.n_classes == 43
    assert scorer.is_silent(Rows(X))
    write_model(tmp_path / "m", scorer)
    assert_same_bits(read_model(tmp_path / "m").all_scores(Rows(X)), scorer.all_scores(Rows(X)))


# --- the prior ---


def test_the_prior_is_the_weighted_mean_of_the_targets():
    weight = np.random.default_rng(0).random(400)
    scorer = VectorScorer(parts(), EMBEDDING).fit(Samples(X, y, 40, weight))
    G = EMBEDDING.real_rows(y, np.float64)
    np.testing.assert_allclose(scorer.prior_point_, weight @ G / weight.sum(), atol=1e-12)
    scorer.partial_fit(MORE)
    mean = (weight @ G + G[:50].sum(axis=0)) / (weight.sum() + 50)
    np.testing.assert_allclose(scorer.prior_point_, mean, atol=1e-12)
    assert scorer.weight_seen_ == pytest.approx(weight.sum() + 50)


@pytest.mark.parametrize("others_speak", [False, True])
def test_rows_that_say_nothing_get_the_prior(others_speak):
    """With other scorers, only those without features."""
    regressor = ElasticNetRegressor(l2=1.0, fit_intercept=False)
    wide = sp.csr_array(sp.hstack([X, sp.csr_array((400, 1))]))
    scorer = VectorScorer({"a": regressor}, EMBEDDING, others_speak=others_speak)
    scorer.fit(Samples(wide, y, 40))
    new = np.zeros((3, 301))
    new[1, 300] = 1.0  # a feature that no row had
    new[2] = wide[[0]].toarray()
    found = points(scorer, sp.csr_array(new))
    prior = scorer.prior_point_.astype(found.dtype)
    np.testing.assert_array_equal(found[0], prior)
    np.testing.assert_array_equal(found[1], 0 * prior if others_speak else prior)
    np.testing.assert_array_equal(found[2], points(scorer, wide[[0]])[0])


# --- features that count differently ---

FACTORS = np.linspace(0.1, 2, X.shape[1], dtype=np.float32)


class Weighed(LabelScorer):
    """An earlier scorer that knows how much each feature counts."""

    name = "weighed"
    n_classes = 40
    feature_weights_ = FACTORS
    fit = partial_fit = candidates = scores_at = None


def weighed(**settings):
    scorer = VectorScorer(parts(), EMBEDDING, **settings).fit(SAMPLES, before=[Weighed()])
    scorer.set_source_weights(np.array([2.0, 0.25]))
    return scorer


def test_features_are_multiplied_before_the_regressors_see_them(tmp_path):
    scorer = weighed(feature_power=1.0)
    scaled = sp.csr_array(X @ sp.dia_array((FACTORS[None], [0]), shape=(300, 300)))
    plain = scorer_of(parts(), [2.0, 0.25], Samples(scaled, y, 40))
    np.testing.assert_array_equal(scorer.feature_weights_, FACTORS)
    np.testing.assert_allclose(points(scorer), points(plain, scaled), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(points(scorer, X.toarray()), points(scorer))
    scorer.partial_fit(MORE)
    plain.partial_fit(Samples(scaled[:50], y[:50], 40))
    np.testing.assert_allclose(points(scorer), points(plain, scaled), rtol=1e-5, atol=1e-5)
    write_model(tmp_path / "m", scorer)
    np.testing.assert_array_equal(points(read_model(tmp_path / "m")), points(scorer))


def test_the_power_and_the_floor_of_feature_weights(both):
    found = weighed(feature_power=0.25, feature_floor=0.5).feature_weights_
    np.testing.assert_allclose(found, np.maximum(FACTORS, 0.5) ** 0.25, rtol=1e-6)
    assert found.dtype == np.float32
    assert weighed(feature_floor=0.5).feature_weights_ is None  # a power of 0
    assert both.feature_weights_ is None


def test_x_of_another_width_gets_the_regressors_own_message():
    with pytest.raises(ValueError, match="200 features"):
        points(weighed(feature_power=1.0), X[:, :200])


@pytest.mark.parametrize(
    "factors",
    [FACTORS[:-1], FACTORS.astype(float), FACTORS * np.float32(np.nan), "ab", [1.0]],
    ids=["short", "double", "nan", "text", "list"],
)
def test_files_with_other_factors_are_refused(both, factors, tmp_path):
    both.feature_weights_ = factors
    write_model(tmp_path / "m", both)
    with pytest.raises(ModelFileError, match=r"do not fit together|feature_weights_ is a"):
        read_model(tmp_path / "m")


# --- files that lie ---


@pytest.mark.parametrize(
    "change",
    [
        {"weights_": [1.0]},
        {"weights_": [1.0, np.nan]},
        {"weights_": [1.0, np.inf]},
        {"weights_": [1, 2]},
        {"weights_": "ab"},
        {"weights_": {"a": 1.0, "b": 2.0}},
        {"regressors_": {}},
        {"regressors_": []},
        {"regressors_": 3},
        {"regressors_": {"a": 1, "b": 2}},
        {"regressors_": {}, "weights_": [1.0]},
        {"prior_point_": np.zeros(63)},
        {"prior_point_": np.zeros(64, dtype=np.float32)},
        {"embedding_": Kerdock(40, dim=16)},
    ],
    ids=str,
)
def test_regressors_and_weights_that_do_not_fit_are_refused(both, change, tmp_path):
    vars(both).update(change)
    write_model(tmp_path / "m", both)
    with pytest.raises(ModelFileError, match=r"do not fit together|s_ is a (str|dict|list|int)"):
        read_model(tmp_path / "m")


@pytest.mark.parametrize(
    "other",
    [
        ElasticNetRegressor(l2=1.0).fit(X, Targets(y, Kerdock(40, dim=16))),
        ElasticNetRegressor(l2=1.0).fit(X[:, :200], TARGETS),
        ElasticNetRegressor(l2=1.0),
    ],
    ids=["outputs", "features", "not fitted"],
)
def test_regressors_of_different_shapes_are_refused(both, other, tmp_path):
    both.regressors_["softmax"] = other
    write_model(tmp_path / "m", both)
    with pytest.raises(ModelFileError, match="do not fit together"):
        read_model(tmp_path / "m")
