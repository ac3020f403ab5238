"""Models saved by every format there has been: they load and answer as they did, for ever.

``python tests/io/test_model_golden.py`` makes the folder of the present format, and refuses to touch one
that exists.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from locole import LocoleClassifier, load
from locole.embeddings import Explicit
from locole.io import FORMAT, read_manifest
from locole.regressors import ElasticNetRegressor
from locole.text import TextClassifier, TextFeatures

GOLDEN = Path(__file__).parent / "golden"
FORMATS = range(1, FORMAT + 1)
NAMES = ("texts", "hashed", "numbers", "vectors")

TEXTS = ["it purrs", "it barks", "кошка мурлычет", "собака лает", "猫 meows", "犬 barks"]
LABELS = ["cat", "dog", "кошка", "собака", "猫", "犬"]
QUESTIONS = ["who barks?", "мурлычет", "Purrs & meows", "猫", "12345"]


def rows() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((12, 5))


def make_models() -> dict:
    X = rows()
    linear = ElasticNetRegressor(l2=0.5, storage="int8")
    sparse = ElasticNetRegressor(l1=0.1, l2=0.5)
    vectors = np.random.default_rng(1).standard_normal((3, 4))
    return {
        "texts": TextClassifier().fit(TEXTS, LABELS),
        "hashed": TextClassifier(
            TextFeatures("char", n_features=64), LocoleClassifier(regressor=sparse)
        ).fit(TEXTS, LABELS),
        "numbers": LocoleClassifier("kerdock", dim=4, regressor=linear).fit(X, np.arange(12) % 4),
        "vectors": LocoleClassifier(
            Explicit(vectors, labels=[2.0, 3.0, 1.0]), regressor=ElasticNetRegressor(l2=0.5)
        ).fit(X, np.arange(12) % 3 + 1.0),
    }


def ask(name: str, model) -> dict:
    X = rows() if isinstance(model, LocoleClassifier) else QUESTIONS
    labels, scores = model.predict_topk(X, k=2)
    return {"labels": labels.tolist(), "scores": scores.tolist()}


@pytest.mark.parametrize("number", FORMATS)
@pytest.mark.parametrize("name", NAMES)
def test_a_golden_model_answers_as_ever(number, name):
    folder = GOLDEN / f"format{number}"
    expected = json.loads((folder / "answers.json").read_text())[name]
    found = ask(name, load(folder / name, verify=True))
    assert found["labels"] == expected["labels"]
    # Another processor may add up in another order.
    np.testing.assert_allclose(found["scores"], expected["scores"], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("number", FORMATS)
@pytest.mark.parametrize("name", NAMES)
def test_a_golden_model_is_of_its_format(number, name):
    folder = GOLDEN / f"format{number}" / name
    assert json.loads((folder / "manifest.json").read_text())["format"] == number
    assert read_manifest(folder).made_by["locole"]
    assert sum(file.stat().st_size for file in folder.iterdir()) < 40_000


if __name__ == "__main__":
    folder = GOLDEN / f"format{FORMAT}"
    folder.mkdir(parents=True)
    models = make_models()
    for name, model in models.items():
        model.save(folder / name)
    answers = {name: ask(name, model) for name, model in models.items()}
    (folder / "answers.json").write_text(json.dumps(answers, indent=1, ensure_ascii=False))
