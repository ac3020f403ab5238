"""Texts seen twice: by their words and by the vectors of an encoder."""

from __future__ import annotations

import json

import numpy as np
import pytest
from same import assert_same_bits

from locole import LocoleClassifier, load
from locole.baselines import Centroids
from locole.cli import main
from locole.exceptions import LocoleError, ModelFileError
from locole.text import TextClassifier
from locole.text.encoding import encode, name_of

# A text begins with one of many words for its label, which only the encoder knows to mean the same.
rng = np.random.default_rng(1)
TABLE = rng.normal(size=(512, 48)).astype(np.float32)
WORDS = ["".join(rng.choice(list("bcdfgklmnprstvaeiou"), 6)) for _ in range(1200)]
MEANING = {word: i % 12 for i, word in enumerate(WORDS)}
FIRST = rng.integers(1200, size=700)
CODES = FIRST % 12
TEXTS = [
    f"{WORDS[first]} and {WORDS[rng.integers(1200)]} {'label' + str(first % 12) if i % 2 else ''}"
    for i, first in enumerate(FIRST)
]
LABELS = np.array([f"label {c}" for c in CODES])


def meanings(texts):
    """Vector of what the first word of a text means, with some noise."""
    places = [sum(map(ord, text)) % 500 + 12 for text in texts]
    codes = [
        MEANING.get(text.split(" ")[0], place) for text, place in zip(texts, places, strict=True)
    ]
    return TABLE[codes] + 0.5 * TABLE[places]


def backwards(texts):
    return meanings(texts)[:, ::-1]


@pytest.fixture(scope="module")
def model():
    return TextClassifier(encoder=meanings).fit(TEXTS[:500], LABELS[:500])


def test_both_are_better_than_words(model):
    words = TextClassifier().fit(TEXTS[:500], LABELS[:500])
    found = (model.predict(TEXTS[500:]) == LABELS[500:]).mean()
    assert found > (words.predict(TEXTS[500:]) == LABELS[500:]).mean() + 0.05
    assert found > 0.95
    assert "prototypes" in model.classifier_.choice_["sources"]
    assert model.encoder_name_.endswith("test_text_encoder:meanings")


def test_files_recognise_the_encoder(model, tmp_path):
    model.save(tmp_path / "m")
    back = load(tmp_path / "m", encoder=meanings)
    assert_same_bits(back.predict_topk(TEXTS[500:], k=3), model.predict_topk(TEXTS[500:], k=3))
    alone = load(tmp_path / "m")
    with pytest.raises(LocoleError, match="needs the encoder that it was trained"):
        alone.predict(TEXTS[500:])
    with pytest.raises(LocoleError, match=r"backwards is not the one .* trained with, .*meanings"):
        load(tmp_path / "m", encoder=backwards)
    with pytest.raises(LocoleError, match="gives 40 numbers for a text, and the model was trained"):
        load(tmp_path / "m", encoder=lambda texts: meanings(texts)[:, :40])


def test_no_encoder_for_who_takes_none(tmp_path):
    TextClassifier().fit(TEXTS[:100], LABELS[:100]).save(tmp_path / "words")
    with pytest.raises(LocoleError, match="was trained without an encoder: leave it out"):
        load(tmp_path / "words", encoder=meanings)
    with pytest.raises(LocoleError, match="Centroids takes one kind of features"):
        TextClassifier(classifier=Centroids(), encoder=meanings).fit(TEXTS[:100], LABELS[:100])


def test_more_texts_and_labels(tmp_path):
    model = TextClassifier(classifier=LocoleClassifier("kerdock", dim=16), encoder=meanings)
    model.fit(TEXTS[:500], LABELS[:500]).save(tmp_path / "m")
    grown = load(tmp_path / "m", encoder=meanings)
    grown.partial_fit(TEXTS[500:600], np.where(CODES[500:600] == 3, "new", LABELS[500:600]))
    assert "new" in grown.classes_
    assert "new" not in model.classes_
    is_new = CODES[600:] == 3
    labels, _ = grown.predict_topk(
        [t for t, new in zip(TEXTS[600:], is_new, strict=True) if new], k=2
    )
    assert (labels == "new").any(axis=1).mean() > 0.8


@pytest.mark.parametrize(
    ("encoder", "message"),
    [
        (
            lambda texts: np.ones(len(texts)),
            r"must give an array of shape \(3, numbers\) for 3 texts",
        ),
        (lambda texts: np.ones((1, 4)), r"must give an array of shape \(3, numbers\)"),
        (lambda texts: [["a"] * 3] * len(texts), "gives no array of numbers"),
        (lambda texts: np.full((len(texts), 2), np.nan), "infinite or not a number"),
    ],
)
def test_encoders_that_are_none(encoder, message):
    with pytest.raises(LocoleError, match=message):
        encode(encoder, ["a", "b", "c"])


def test_names():
    assert name_of(json.dumps) == "json:dumps"
    assert name_of(json.JSONEncoder().encode) == "json.encoder:JSONEncoder.encode"
    assert name_of(np.vectorize(len)).endswith(":vectorize")


def test_forged_files(model, tmp_path):
    for name, value in {"encoder_probe_": None, "encoder_name_": None}.items():
        forged = TextClassifier()
        vars(forged).update({**vars(model), name: value, "encoder": None})
        with pytest.raises(ModelFileError, match="knows its encoder by half"):
            forged._check_learnt()


def test_command_line(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    lines = [f"{label}\t{text}\n" for label, text in zip(LABELS, TEXTS, strict=True)]
    (tmp_path / "train.tsv").write_text("".join(lines[:300]))
    (tmp_path / "test.tsv").write_text("".join(lines[300:400]))
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "my_encoder.py").write_text("from test_text_encoder import meanings as f\nn = 3\n")
    monkeypatch.syspath_prepend(str(__file__).rpartition("/")[0])
    assert main(["fit", "train.tsv", "-o", "m", "--encoder", "my_encoder:f"]) == 0
    capfd.readouterr()
    assert main(["evaluate", "m", "test.tsv", "--encoder", "my_encoder:f", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["accuracy"] > 0.9
    assert main(["evaluate", "m", "test.tsv"]) == 2
    assert "give --encoder test_text_encoder:meanings" in capfd.readouterr().err
    wrong = {
        "my_encoder": "must be module:function",
        "my_encoder:g": "attribute 'g'",
        "no_such:f": "No module named",
        "my_encoder:n": "int, not a func",
    }
    for name, said in wrong.items():
        assert main(["predict", "m", "test.tsv", "--encoder", name]) == 2
        assert said in capfd.readouterr().err
