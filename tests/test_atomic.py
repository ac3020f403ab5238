"""Answers while the same object learns: those of the old model or of the new one, never of both."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from problems import prototypes, texts
from sklearn.base import clone

from locole import LocoleClassifier, load
from locole.baselines import Centroids
from locole.regressors import ElasticNetRegressor
from locole.text import TextClassifier

X, y = prototypes(30, n_samples=300, n_features=64)
OLD = (X, np.array([f"old {code}" for code in y]))
NEW = (-X[:, ::-1], np.array([f"new label {code % 7}" for code in y]))

MODELS = {
    "classifier": LocoleClassifier("kerdock"),
    "other numbers of outputs": LocoleClassifier("one_hot"),
    "baseline": Centroids(),
}


@pytest.fixture(params=MODELS)
def model(request, monkeypatch):
    made = clone(MODELS[request.param])
    monkeypatch.setattr(type(made), "_block_rows", 64)
    return made


@pytest.fixture
def hasty():
    """Threads take turns as often as possible."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def answers(model):
    return tuple(array.tobytes() for array in model.predict_topk(X, k=3))


def test_a_fit_between_two_blocks_of_rows(model, monkeypatch):
    """The model is fitted again, by another owner, after the first block of an answer."""
    expected = answers(model.fit(*OLD))
    best, calls = type(model)._best, []

    def best_and_fit(self, rows, k):
        calls.append(rows)
        if len(calls) == 1:
            model.fit(*NEW)
        return best(self, rows, k)

    monkeypatch.setattr(type(model), "_best", best_and_fit)
    model.set_params(n_jobs=1)
    assert answers(model) == expected
    assert len(calls) > 1
    assert model.classes_[0].startswith("new")


def test_answers_while_another_thread_fits(model, hasty):
    known = {answers(clone(model).fit(*data)) for data in (NEW, OLD)}
    model.fit(*OLD)
    done = threading.Event()

    def ask():
        found = set()
        while not done.is_set():
            found.add(answers(model))
        return found

    with ThreadPoolExecutor(3) as pool:
        asked = [pool.submit(ask) for _ in range(3)]
        try:
            for _ in range(6):
                model.fit(*NEW)
                model.fit(*OLD)
        finally:
            done.set()
        assert set().union(*(task.result() for task in asked)) <= known


def test_files_written_while_another_thread_fits(model, hasty, tmp_path):
    known = {answers(clone(model).fit(*data)) for data in (NEW, OLD)}
    model.fit(*OLD)
    with ThreadPoolExecutor(1) as pool:
        fits = pool.submit(lambda: [model.fit(*data) for _ in range(2) for data in (NEW, OLD)])
        while not fits.done():
            model.save(tmp_path / "m")
            assert answers(load(tmp_path / "m")) in known
        fits.result()


def test_regressors_answer_while_they_learn(hasty):
    model = ElasticNetRegressor(l2=1.0)
    problems = [(X, X[:, :5]), (X, X[:, 5:30])]
    known = {clone(model).fit(*data).predict(X).tobytes() for data in problems}
    model.fit(*problems[0])
    with ThreadPoolExecutor(1) as pool:
        fits = pool.submit(lambda: [model.fit(*data) for _ in range(6) for data in problems])
        while not fits.done():
            assert model.predict(X).tobytes() in known
        fits.result()


def test_texts_are_answered_by_one_model(monkeypatch):
    monkeypatch.setattr("locole.text.classifier._BLOCK_TEXTS", 2)
    lines, animals = texts()
    model = TextClassifier(classifier=LocoleClassifier("kerdock")).fit(lines, animals)
    expected = model.predict(lines)
    transform, calls = type(model.features_).transform, []

    def transform_and_learn(self, some):
        calls.append(some)
        if len(calls) == 1:
            model.partial_fit(lines, ["unknown"] * len(lines), classes=["unheard of"])
        return transform(self, some)

    monkeypatch.setattr(type(model.features_), "transform", transform_and_learn)
    np.testing.assert_array_equal(model.predict(lines), expected)
    assert len(calls) > 2
    assert "unknown" in model.classes_
