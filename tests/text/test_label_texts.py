"""Texts of labels: similar words, words that come later, files, and bad input."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from same import assert_same_bits

from locole import load
from locole.baselines import Centroids
from locole.exceptions import LocoleError
from locole.text import TextClassifier, TextFeatures
from locole.text.label_texts import LabelTerms

SUBJECTS = ["biometrics", "geology", "robotics", "chemistry", "economics", "linguistics", "optics"]
GERMAN = ["Biometrie", "Geologie", "Robotik", "Chemie", "Ökonomie", "Linguistik", "Optik"]
NOISE = ["und", "die", "in", "the", "of", "Studie", "report", "Band"]
SEEN = 5


def make_texts(places, seed):
    rng = np.random.default_rng(seed)
    return [
        " ".join(
            rng.permutation(
                [GERMAN[i] if rng.random() < 0.5 else SUBJECTS[i], *rng.choice(NOISE, 4)]
            )
        )
        for i in places
    ]


PLACES = np.arange(150) % SEEN
TEXTS = make_texts(PLACES, 0)
LABELS = np.array([f"s{i}" for i in PLACES])
NAMES = {f"s{i}": name for i, name in enumerate(SUBJECTS)}
ASKED = make_texts(np.arange(len(SUBJECTS)).repeat(4), 1)
WANTED = np.array([f"s{i}" for i in np.arange(len(SUBJECTS)).repeat(4)])


@pytest.fixture(scope="module", params=["word", "both"])
def classifier(request):
    # All words of the unseen labels are known from rows that say nothing of them.
    texts = [*TEXTS, *[f"{a} {b}" for a, b in zip(SUBJECTS, GERMAN, strict=True)]]
    labels = [*LABELS, *["other"] * len(SUBJECTS)]
    features = TextFeatures(request.param, word_ngrams=(1, 2))
    return TextClassifier(features, label_texts=NAMES).fit(texts, labels)


def test_labels_without_texts_of_theirs_are_answered(classifier):
    found = classifier.predict_topk(ASKED, k=2)[0]
    is_unseen = np.isin(WANTED, ["s5", "s6"])
    hits = (found == WANTED[:, None]).any(axis=1)
    assert hits[is_unseen].mean() > 0.7
    assert hits[~is_unseen].mean() > 0.9


def test_a_saved_model_answers_and_grows_alike(classifier, tmp_path):
    classifier.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert_same_bits(loaded.decision_function(ASKED), classifier.decision_function(ASKED))
    more = copy.deepcopy(classifier).add_labels({"s9": "Studie report", "s0": "something else"})
    loaded.add_labels({"s9": "Studie report", "s0": "something else"})
    assert_same_bits(loaded.decision_function(ASKED), more.decision_function(ASKED))
    kept = [i for i, label in enumerate(classifier.classes_) if label != "s0"]
    assert_same_bits(
        more.decision_function(ASKED)[:, kept], classifier.decision_function(ASKED)[:, kept]
    )
    assert more.classes_[-1] == "s9"


def test_words_explain(classifier):
    found = classifier.explain(["Optik in Band"], "s6")[0]
    assert max(found.words, key=lambda word: word[1])[0] == "Optik"
    assert found.others["label without rows"] >= 0


def test_similar_words_of_both_languages():
    features = TextFeatures("word").fit(GERMAN)
    terms = LabelTerms().fit(SUBJECTS, features)
    words = list(terms.words_.terms_["word"])
    table = terms.similar(features.terms_["word"]).toarray()
    rows = list(features.terms_["word"])
    assert table[rows.index("biometrie"), words.index("biometrics")] > 0.3
    assert table[rows.index("biometrie"), words.index("geology")] == 0
    assert table.max() <= 1 + 1e-6


def test_the_same_word_is_as_similar_as_can_be_and_pairs_say_nothing():
    features = TextFeatures("word").fit(["red apple", "green apple"])
    terms = LabelTerms().fit(["apple"], features)
    table = terms.similar(features.terms_["word"]).toarray()[:, 0]
    assert dict(zip(features.terms_["word"], table.round(3), strict=True))["apple"] == 1
    assert all(table[i] == 0 for i, term in enumerate(features.terms_["word"]) if " " in term)


def test_new_words_leave_old_columns_as_they_are():
    features = TextFeatures("word").fit(TEXTS)
    terms = LabelTerms().fit(SUBJECTS, features)
    more = terms.grown(["Geology of Studie", "…"])
    old, new = (one.similar(features.terms_["word"]).toarray() for one in (terms, more))
    np.testing.assert_array_equal(new[:, : old.shape[1]], old)
    assert more.words_.terms_["word"][old.shape[1] :].tolist() == ["of", "studie"]
    assert new[list(features.terms_["word"]).index("studie"), -1] == pytest.approx(1, abs=1e-5)
    assert terms.grown(["…"]) is terms
    assert len(terms.words_.terms_["word"]) == len(SUBJECTS)


@pytest.mark.parametrize("features", [TextFeatures(n_features=64), TextFeatures("char")])
def test_other_features_are_the_terms_themselves(features):
    features.fit(TEXTS)
    terms = LabelTerms().fit(SUBJECTS, features)
    named = terms.label_features(np.array(list(NAMES)), SUBJECTS, features)
    assert named.terms is None
    assert named.rows.shape == (len(SUBJECTS), features.n_columns_)


def test_several_labels(tmp_path):
    rng = np.random.default_rng(3)
    sets = [rng.permutation(SEEN)[:2] for _ in range(120)]
    texts = [" ".join(make_texts(own, seed)) for seed, own in enumerate(sets)]
    labels = [[f"s{i}" for i in own] for own in sets]
    model = TextClassifier(TextFeatures("both"), label_texts=NAMES).fit(texts, labels)
    found = model.predict_topk(["optics and geology", "linguistics of chemistry"], k=3)[0]
    assert {"s6", "s1"} <= set(found[0])
    assert {"s5", "s3"} <= set(found[1])
    assert model.predict(["optics"]).shape == (1, len(SUBJECTS))
    model.add_labels({"s9": "Band"})
    assert model.predict(["optics"]).shape == (1, len(SUBJECTS) + 1)


def test_an_encoder_sees_label_texts_too(tmp_path):
    """Names in another language, which only the encoder knows."""
    rng = np.random.default_rng(0)
    meanings = rng.normal(size=(len(SUBJECTS), 16))
    known = {w.lower(): i for words in (SUBJECTS, GERMAN) for i, w in enumerate(words)}
    known |= {f"zz{i}": i for i in range(len(SUBJECTS))}

    def encoder(texts):
        noise = np.random.default_rng(1).normal(size=(len(texts), 16))
        places = [[known[w] for w in text.lower().split() if w in known] for text in texts]
        return 0.1 * noise + np.stack([meanings[own].sum(axis=0) for own in places])

    names = {label: f"zz{i}" for i, label in enumerate(NAMES)}
    del names["s6"]
    model = TextClassifier(TextFeatures("word"), encoder=encoder, label_texts=names)
    model.fit(TEXTS, LABELS)
    assert (model.predict_topk(["Linguistik", "linguistics"], k=2)[0] == "s5").any(axis=1).all()
    model.save(tmp_path / "model")
    with pytest.raises(LocoleError, match="needs the encoder"):
        load(tmp_path / "model").add_labels({"s6": "zz6"})
    back = load(tmp_path / "model", encoder=encoder).add_labels({"s6": "zz6"})
    assert (back.predict_topk(["Optik", "optics"], k=2)[0] == "s6").any(axis=1).all()


@pytest.mark.parametrize(
    ("label_texts", "message"),
    [
        ({}, "one or more"),
        ({"s1": 3}, "not a str"),
        ({"s1": "a", 2: "b"}, "one type"),
        ({1: "a"}, "one type"),
        ({"s1": "…"}, "no term"),
    ],
)
def test_bad_label_texts(label_texts, message):
    with pytest.raises(LocoleError, match=message):
        TextClassifier(TextFeatures("word"), label_texts=label_texts).fit(TEXTS, LABELS)


def test_models_that_know_no_label_texts():
    with pytest.raises(LocoleError, match="LocoleClassifier, not Centroids"):
        TextClassifier(classifier=Centroids(), label_texts=NAMES).fit(TEXTS, LABELS)
    with pytest.raises(LocoleError, match="without label_texts"):
        TextClassifier().fit(TEXTS, LABELS).add_labels(NAMES)


def test_labels_that_are_gone_are_not_added_again(classifier):
    """Rows under their names would be skipped, or count for another label."""
    model = copy.deepcopy(classifier)
    model.retire_labels(["s6"]).merge_labels({"s5": "other"})
    for name in ("s5", "s6"):
        with pytest.raises(LocoleError, match=f"{name} was merged or retired: take a new name"):
            model.add_labels({name: "Optik"})
    assert not np.isin(["s5", "s6"], model.classes_).any()
