"""Texts: probabilities and reasons in words."""

from __future__ import annotations

import numpy as np
import pytest
from same import assert_same_bits
from sklearn.feature_extraction.text import CountVectorizer

from locole.baselines import Centroids
from locole.exceptions import LocoleError
from locole.text import TextClassifier, TextFeatures
from locole.text.explaining import _char_ngrams, _word_ngrams
from locole.text.texts import folded, word_pattern

RNG = np.random.default_rng(0)
LABELS = np.array(["cat", "dog", "owl", "cow"])
SOUNDS = {
    "cat": "purrs meows",
    "dog": "barks growls",
    "owl": "hoots screeches",
    "cow": "moos chews",
}
NOISE = ["It,", "at", "night;", "the", "old", "Straße", "(often)", "and", "so", "on"]
Y = RNG.choice(LABELS, 400)
TEXTS = [
    " ".join(RNG.permutation([*RNG.choice(SOUNDS[y].split(), 1), *RNG.choice(NOISE, 4)])) for y in Y
]


@pytest.fixture(
    scope="module",
    params=[
        {"analyzer": "both"},
        {"analyzer": "word", "word_ngrams": (1, 3)},
        {"analyzer": "char", "lowercase": False},
        {"analyzer": "both", "n_features": 2**12},
    ],
    ids=["both", "words", "characters", "hashed"],
)
def model(request):
    return TextClassifier(TextFeatures(**request.param)).fit(TEXTS[:300], Y[:300])


def test_words_add_up_to_what_the_terms_add(model):
    labels, scores = model.predict_topk(TEXTS[300:], k=1)
    for found, text, label, score in zip(
        model.explain(TEXTS[300:]), TEXTS[300:], labels, scores, strict=True
    ):
        assert [word for word, _ in found.words] == text.split()
        terms = sum(value for _, value in found.features)
        assert sum(value for _, value in found.words) == pytest.approx(terms, abs=1e-9)
        assert found.label == label[0]
        assert terms + sum(found.others.values()) == pytest.approx(score[0], abs=1e-5)


def test_the_word_that_decides_adds_most(model):
    found = model.explain(["the old one purrs at night"], "cat")[0]
    assert max(found.words, key=lambda pair: pair[1])[0] == "purrs"
    assert ">purrs</span>" in found._repr_html_()
    assert [word["word"] for word in found.to_dict()["words"]] == [
        "the",
        "old",
        "one",
        "purrs",
        "at",
        "night",
    ]


def test_probabilities_sets_and_abstention_of_texts(model):
    p = model.predict_proba(TEXTS[300:])
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-6)
    labels, best = model.predict_topk(TEXTS[300:], k=2, proba=True)
    np.testing.assert_allclose(best, -np.sort(-p, axis=1)[:, :2])
    np.testing.assert_array_equal(model.predict_log_proba(TEXTS[300:]), np.log(p))
    held = model.predict(TEXTS[300:], min_proba=0.5, reject_label="?")
    np.testing.assert_array_equal(held == "?", best[:, 0] < 0.5)
    assert float(model.threshold(coverage=0.5)) > 0
    sets = model.predict_set(TEXTS[300:], 0.8)
    assert np.mean([y in found for y, found in zip(Y[300:], sets, strict=True)]) > 0.7
    rows = model.calibration_.n_rows
    model.calibrate(TEXTS[300:], Y[300:])
    assert (rows, model.calibration_.n_rows) == (60, 100)
    assert_same_bits(model.predict_topk(TEXTS[300:], k=2)[0], labels)


@pytest.mark.parametrize("text", ["", "a", "A  b\tc d", "x-y z's I Straße ﬁn", "ab " * 3])
def test_terms_are_those_that_are_counted(text):
    words = CountVectorizer(
        ngram_range=(1, 2), preprocessor=folded, token_pattern=word_pattern()
    ).build_analyzer()
    assert [term for term, _ in _word_ngrams(folded(text), 1, 2)] == words(text)
    for shortest, longest in ((2, 4), (1, 1), (3, 6)):
        count = CountVectorizer(
            analyzer="char_wb", ngram_range=(shortest, longest), preprocessor=folded
        ).build_analyzer()
        terms = [term for term, _ in _char_ngrams(folded(text), shortest, longest)]
        assert sorted(terms) == sorted(count(text))


def test_a_baseline_behind_texts():
    model = TextClassifier(TextFeatures("word"), Centroids()).fit(TEXTS[:300], Y[:300])
    assert model.explain(["it purrs"])[0].label == "cat"
    assert model.predict_proba(["it purrs"]).shape == (1, 4)


class Foreign:
    """A classifier of somebody else's."""

    def get_params(self, deep=False):
        return {}

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_topk(self, X, k=5):
        return np.tile(self.classes_[:k], (X.shape[0], 1)), np.zeros((X.shape[0], k))


def test_a_classifier_that_does_not_say_how_sure_it_is():
    model = TextClassifier(TextFeatures("word"), Foreign()).fit(TEXTS, Y)
    assert model.predict(["it purrs"]) == ["cat"]
    with pytest.raises(LocoleError, match="Foreign does not say how sure it is"):
        model.predict_proba(["it purrs"])
