"""Classifying raw texts, and keeping the whole of it in one folder."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from problems import texts as animals
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.utils import estimator_checks as checks

from locole import LocoleClassifier, load
from locole.baselines import Centroids
from locole.exceptions import LocoleError, ModelFileError
from locole.regressors import ElasticNetRegressor, SoftmaxRegressor
from locole.text import TextClassifier, TextFeatures
from locole.text import classifier as module

TEXTS, ANIMALS = animals()
NEW = ["what purrs?", "it barks and wags", "gills", "feathers and a beak", "рыба", ""]


def test_it_is_features_and_classifier():
    ours = TextClassifier(TextFeatures("word"), LocoleClassifier(random_state=3))
    ours.fit(TEXTS, ANIMALS)
    features = TextFeatures("word")
    classifier = LocoleClassifier(random_state=3).fit(features.fit_transform(TEXTS), ANIMALS)
    labels, scores = ours.predict_topk(NEW, k=3)
    expected = classifier.predict_topk(features.transform(NEW), k=3)
    np.testing.assert_array_equal(labels, expected[0])
    np.testing.assert_array_equal(scores, expected[1])
    np.testing.assert_array_equal(
        ours.decision_function(NEW), classifier.decision_function(features.transform(NEW))
    )
    assert ours.classes_.tolist() == ["bird", "cat", "dog", "fish"]


def test_it_learns():
    model = TextClassifier().fit(TEXTS, ANIMALS)
    assert model.score(TEXTS, ANIMALS) == 1
    assert model.predict(NEW[:4]).tolist() == ["cat", "dog", "fish", "bird"]


def test_texts_in_blocks_give_the_same_answers(monkeypatch):
    model = TextClassifier().fit(TEXTS, ANIMALS)
    whole = model.predict_topk(NEW * 5, k=2)
    scores = model.decision_function(NEW * 5)
    monkeypatch.setattr(module, "_BLOCK_TEXTS", 7)
    for a, b in zip(whole, model.predict_topk(NEW * 5, k=2), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(scores, model.decision_function(pd.Series(NEW * 5)))


@pytest.mark.parametrize("n_features", [None, 256])
@pytest.mark.parametrize("storage", ["float32", "int8"])
def test_saved_and_loaded(tmp_path, n_features, storage):
    before = TextClassifier(
        TextFeatures("both", n_features=n_features),
        LocoleClassifier("kerdock", dim=16, regressor=ElasticNetRegressor(storage=storage)),
    ).fit(TEXTS, ANIMALS)
    before.save(tmp_path / "m")
    after = load(tmp_path / "m")
    assert repr(before) == repr(after)
    more, labels = (
        [*NEW, "moos in the stable"],
        ["cat", "dog", "fish", "bird", "fish", "cat", "cow"],
    )
    for _ in range(2):
        for a, b in zip(before.predict_topk(NEW, 4), after.predict_topk(NEW, 4), strict=True):
            assert a.tobytes() == b.tobytes()
            assert a.dtype == b.dtype
        for model in (before, after):
            model.partial_fit(more, labels)
    assert "cow" in after.classes_


def test_partial_fit_takes_new_labels_and_new_terms():
    model = TextClassifier().partial_fit(TEXTS[:4], ANIMALS[:4])
    terms = model.features_.get_feature_names_out()
    idf = dict(model.features_.idf_)
    model.partial_fit(TEXTS[4:], ANIMALS[4:])
    grown = model.features_.get_feature_names_out()
    np.testing.assert_array_equal(grown[: terms.size], terms)
    assert {"word__gills", "word__feathers", "char__gil"} <= set(grown[terms.size :])
    for block, old in idf.items():
        np.testing.assert_array_equal(model.features_.idf_[block][: old.size], old)
    assert set(model.classes_) == set(ANIMALS)
    assert model.predict(["gills and fins", "feathers"]).tolist() == ["fish", "bird"]
    words = dict(model.explain(["feathers purrs"], "bird")[0].words)
    assert words["feathers"] > words["purrs"]


class Fixed(SoftmaxRegressor):
    grows = False


def test_a_classifier_that_cannot_grow_passes_over_new_terms():
    model = TextClassifier(classifier=LocoleClassifier(regressor=Fixed()))
    model.partial_fit(TEXTS[:4], ANIMALS[:4], classes=ANIMALS)
    terms = model.features_.get_feature_names_out()
    model.partial_fit(TEXTS[4:], ANIMALS[4:])
    np.testing.assert_array_equal(model.features_.get_feature_names_out(), terms)


def test_labels_of_texts_live(tmp_path):
    model = TextClassifier().fit(TEXTS, ANIMALS)
    model.rename_labels({"cat": "feline"}).merge_labels({"bird": "fish"})
    assert model.predict(["purrs", "feathers"]).tolist() == ["feline", "fish"]
    model.partial_fit(["moos on the pasture", "pasture, moos"], ["cow", "cow"])
    model.retire_labels(["dog"])
    model.save(tmp_path / "model")
    back = load(tmp_path / "model")
    for each in (model, back):
        assert set(each.predict_topk([*TEXTS, "moos"], k=3)[0].ravel()) == {"feline", "fish", "cow"}
        assert each.predict(["moos"]).tolist() == ["cow"]
    did = [entry["did"] for entry in back.past_.journal_]
    assert did == ["rename", "merge", "learn", "retire"]
    before = model.decision_function(["moos"])
    model.partial_fit(["moos, purrs"], ["feline"]).forget(["moos, purrs"], ["feline"])
    learnt = back.partial_fit(["moos, purrs"], ["feline"]).decision_function(["moos"])
    after = model.decision_function(["moos"])
    assert np.abs(after - before).max() < 0.2 * np.abs(learnt - before).max()
    with pytest.raises(LocoleError, match="labels of Centroids cannot be changed"):
        TextClassifier(classifier=Centroids()).fit(TEXTS, ANIMALS).retire_labels(["dog"])


def test_hashing_learns_words_that_come_later():
    features = TextFeatures("word", n_features=2**12)
    model = TextClassifier(features).partial_fit(TEXTS[:4], ANIMALS[:4], classes=ANIMALS)
    model.partial_fit(TEXTS[4:], ANIMALS[4:])
    assert model.predict(["gills and fins", "feathers"]).tolist() == ["fish", "bird"]


def test_weights_of_texts():
    twice = TextClassifier().fit([*TEXTS, TEXTS[0]], [*ANIMALS, ANIMALS[0]])
    weight = np.ones(len(TEXTS))
    weight[0] = 0
    without = TextClassifier(classifier=LocoleClassifier("one_hot")).fit(
        TEXTS, ANIMALS, sample_weight=weight
    )
    assert without.classifier_.scorer_.weight_seen_ == len(TEXTS) - 1
    assert twice.classifier_.scorer_.weight_seen_ == len(TEXTS) + 1


def test_a_failed_fit_leaves_the_model_as_it_was():
    model = TextClassifier().fit(TEXTS, ANIMALS)
    expected = model.predict(NEW).tolist()
    for bad in (["a", None], "text", []):
        with pytest.raises(LocoleError):
            model.fit(bad, ["x", "y"])
        with pytest.raises(LocoleError):
            model.partial_fit(bad, ["x", "y"])
    with pytest.raises(ValueError, match="inconsistent"):
        model.fit(TEXTS, ANIMALS[:-1])
    assert model.predict(NEW).tolist() == expected


@pytest.mark.parametrize("bad", ["text", [b"a"], [None], [1], []])
def test_predict_refuses_what_is_no_text(bad):
    model = TextClassifier().fit(TEXTS, ANIMALS)
    for method in (model.predict, model.predict_topk, model.decision_function):
        with pytest.raises(LocoleError, match="text"):
            method(bad)


def test_an_unfitted_model_says_so(tmp_path):
    with pytest.raises(NotFittedError):
        TextClassifier().predict(TEXTS)
    with pytest.raises(NotFittedError):
        TextClassifier().save(tmp_path / "m")


def test_parameters_reach_the_parts():
    model = TextClassifier(TextFeatures(), LocoleClassifier())
    model.set_params(features__analyzer="char", classifier__dim=64)
    assert clone(model).get_params()["features__analyzer"] == "char"
    assert clone(model).fit(TEXTS, ANIMALS).classifier_.embedding_.dim == 64
    assert model.features is not clone(model).fit(TEXTS, ANIMALS).features_


@pytest.mark.parametrize("name", ["features__min_df", "classifier__dim"])
def test_parameters_of_parts_that_are_not_given(name):
    with pytest.raises(LocoleError, match=rf"{name} cannot be set: .* is None\. Give .*\(\)\."):
        TextClassifier().set_params(**{name: 2})
    model = TextClassifier().set_params(features=TextFeatures(), features__min_df=2)
    assert model.features.min_df == 2


@pytest.mark.parametrize(
    "model",
    [
        TextClassifier(TfidfVectorizer()),
        TextClassifier(classifier=LogisticRegression()),
    ],
)
def test_parts_of_others_work_but_are_not_saved(model, tmp_path):
    model.fit(TEXTS, ANIMALS)
    if not isinstance(model.classifier, LogisticRegression):
        assert model.score(TEXTS, ANIMALS) == 1
    with pytest.raises(ModelFileError, match="need pickle"):
        model.save(tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_the_score_of_many_labels_and_of_several():
    """Numbers as labels, nearly as many as texts, give no warning; sets of labels are compared whole."""
    texts = [f"word{i} other{i % 7}" for i in range(60)]
    numbers = np.arange(60) % 40
    model = TextClassifier().fit(texts, numbers)
    right = model.predict(texts[:30]) == numbers[:30]
    assert model.score(texts[:30], numbers[:30]) == right.mean()
    weights = np.arange(30.0)
    expected = pytest.approx(np.average(right, weights=weights))
    assert model.score(texts[:30], numbers[:30], sample_weight=weights) == expected
    sets = [[f"a{i % 5}", f"b{i % 3}"] for i in range(60)]
    several = TextClassifier().fit(texts, sets)
    X = several.features_.transform(texts)
    assert several.score(texts, sets) == several.classifier_.score(X, sets)


@pytest.mark.parametrize(
    "check",
    [
        checks.check_no_attributes_set_in_init,
        checks.check_parameters_default_constructible,
        checks.check_get_params_invariance,
        checks.check_set_params,
        checks.check_estimator_cloneable,
        checks.check_estimator_repr,
        checks.check_valid_tag_types,
    ],
)
def test_scikit_learns_checks(check):
    """Those that need no data: scikit-learn has none for estimators of texts."""
    check("TextClassifier", TextClassifier())
