"""Labels scored by the vectors of their texts: the formula, what the map learns, hostile files."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from locole import LocoleClassifier
from locole.dense_rows import PairedRows
from locole.exceptions import LocoleError, ModelFileError
from locole.io import read_model, write_model
from locole.labels import LabelFeatures
from locole.samples import Rows, Samples
from locole.scoring import NameVectorScorer

# Rows are the vectors of their label's text, turned and with noise; the last 20 labels have no rows.
N, SEEN, NUMBERS = 120, 100, 24
RNG = np.random.default_rng(0)
VECTORS = RNG.normal(size=(N, NUMBERS)).astype(np.float32)
TURN = np.linalg.qr(RNG.normal(size=(NUMBERS, NUMBERS)))[0]


def make_rows(codes):
    noise = RNG.normal(size=(len(codes), NUMBERS))
    return (VECTORS[codes] @ TURN + 0.3 * noise + 5).astype(np.float32)


CODES = np.arange(1_000) % SEEN
X = make_rows(CODES)
UNSEEN = np.arange(SEEN, N).repeat(5)
ASKED = make_rows(UNSEEN)


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture
def scorer():
    return NameVectorScorer(VECTORS).fit(Samples(X, CODES, N))


@pytest.mark.parametrize("weights", [(2.0, 1.0), (0.0, 3.0)])
def test_scores_are_those_of_the_formula(scorer, weights):
    assert scorer.set_source_weights(np.array(weights)) == sum(weights)
    labels = unit(VECTORS - VECTORS.mean(axis=0))
    Z = unit(X - X.mean(axis=0))
    W = np.linalg.solve(Z.T @ Z + np.eye(NUMBERS), Z.T @ labels[CODES])
    a, b = np.array(weights) / sum(weights)
    factor = a + b / (1 + np.bincount(CODES, minlength=N))
    points = unit(ASKED - X.mean(axis=0))
    wanted = (points + unit(points @ W)) @ labels.T * factor
    np.testing.assert_allclose(scorer.all_scores(Rows(ASKED)), wanted, atol=1e-4)


def test_what_is_learnt_from_labels_with_rows_serves_those_without(scorer):
    found = scorer.candidates(Rows(ASKED), k=1)[0][:, 0]
    assert (found == UNSEEN).mean() > 0.8
    scorer.map_ = np.zeros_like(scorer.map_)
    assert (scorer.candidates(Rows(ASKED), k=1)[0][:, 0] == UNSEEN).mean() < 0.2


def test_labels_without_a_text_say_nothing(scorer):
    vectors = VECTORS.copy()
    vectors[3] = 0
    some = NameVectorScorer(vectors).fit(Samples(X, CODES, N))
    assert not some.all_scores(Rows(ASKED))[:, 3].any()
    assert np.flatnonzero(~some.has_text).tolist() == [3]
    some.add_texts(np.array([3]), LabelFeatures(np.array([3]), None, vectors=VECTORS[[3]]))
    assert some.has_text.all()
    assert some.all_scores(Rows(make_rows([3])))[0].argmax() == 3
    with pytest.raises(LocoleError, match="have vectors of 5 numbers"):
        scorer.add_texts(np.array([3]), LabelFeatures(np.array([3]), None, vectors=VECTORS[:1, :5]))


def test_a_classifier_answers_and_adds_labels_by_vectors_of_their_texts():
    words = sp.csr_array(np.ones((1_000, 2), dtype=np.float32))  # which say nothing
    every = np.arange(N)
    named = LabelFeatures(every[:-1], np.ones((N - 1, 2)), vectors=VECTORS[:-1])
    model = LocoleClassifier(label_features=named).fit(PairedRows(words, X), CODES)
    asked = PairedRows(words[: len(ASKED)], ASKED)
    hits = (model.predict_topk(asked, k=5)[0] == UNSEEN[:, None]).any(axis=1)
    assert hits[UNSEEN < N - 1].mean() > 0.8
    assert not hits[UNSEEN == N - 1].any()
    model.add_labels(LabelFeatures(every[-1:], np.ones((1, 2)), vectors=VECTORS[-1:]))
    hits = (model.predict_topk(asked, k=5)[0] == UNSEEN[:, None]).any(axis=1)
    assert hits[UNSEEN == N - 1].mean() > 0.5
    with pytest.raises(LocoleError, match="a vector for each of its labels"):
        model.add_labels(LabelFeatures(every[-1:], np.ones((1, 2)), vectors=VECTORS))


def test_vectors_of_other_labels_or_numbers_are_refused():
    for wrong in (None, VECTORS[:-1], VECTORS[:, :-1]):
        with pytest.raises(LocoleError, match=r"of shape \(120, 24\)"):
            NameVectorScorer(wrong).fit(Samples(X, CODES, N))


@pytest.mark.parametrize(
    "change",
    [
        {"counts_": np.zeros(N + 1)},
        {"counts_": np.full(N, -1.0)},
        {"mix_": np.zeros(2)},
        {"map_": np.zeros((NUMBERS, 2), dtype=np.float32)},
        {"map_": np.full((NUMBERS, NUMBERS), np.nan, dtype=np.float32)},
        {"row_mean_": np.zeros(NUMBERS)},
        {"label_rows_": VECTORS[0]},
    ],
)
def test_hostile_files_are_refused(scorer, tmp_path, change):
    scorer.__dict__.update(change)
    write_model(tmp_path / "model", scorer)
    with pytest.raises(ModelFileError):
        read_model(tmp_path / "model")
