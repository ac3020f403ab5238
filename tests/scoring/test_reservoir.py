"""Validation rows for as long as a model learns: which rows enter, what is kept, what is refused."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import scipy.sparse as sp
from problems import words
from same import assert_same_bits

from locole import LocoleClassifier, load
from locole.exceptions import ModelFileError
from locole.io import read_model, write_model
from locole.label_past import Relabelling
from locole.samples import Samples
from locole.scoring.reservoir import Reservoir, Said, row_keys

K = 64


def made(n_rows, size=20, n_seen=None, n_classes=5, several=False):
    """A reservoir whose rows say their number."""
    codes = np.full((n_rows, K), -1, dtype=np.int32)
    codes[:, :3] = [0, 1, 2]
    scores = np.zeros((n_rows, 2 * K), dtype=np.float32)
    scores[:, 0] = np.arange(n_rows)
    numbers = np.arange(n_rows)
    near = np.full((n_rows, K), -1, dtype=np.float32)
    counts = np.ones((n_rows, K), dtype=np.int32)
    said = Said(codes, counts, scores, near, np.ones(n_rows), numbers.astype(np.uint64))
    labels, starts = numbers % 3, None
    if several:
        labels, starts = np.tile([0, 2], n_rows), 2 * np.arange(n_rows + 1)
    samples = Samples(np.empty((n_rows, 0)), labels, n_classes, None, starts)
    return Reservoir(size, n_rows if n_seen is None else n_seen, said, samples)


def test_every_row_enters_and_old_ones_fade_away():
    """A line is still there after n rows with probability (1 − 1/size)^n."""
    ages = np.zeros(200)
    source = made(200)
    for seed in range(60):
        reservoir = made(0, size=20)
        for first in range(0, 200, 8):
            rows, places = reservoir.drawn(8, seed=seed)
            assert np.unique(places).size == places.size == rows.size
            more, labels = source.said.take(first + rows), source.samples.take(first + rows)
            reservoir = reservoir.entered(more, labels, places, 8)
        assert reservoir.n_rows == 20
        assert reservoir.n_seen == 200
        keys = reservoir.said.keys.astype(int)
        assert np.unique(keys).size == 20
        ages[199 - keys] += 1
    expected = 60 * (1 - 1 / 20) ** np.arange(180)
    assert np.abs(ages[:180] - expected).max() < 5 * np.sqrt(15)  # standard deviations, at most
    assert ages[0] == 60  # the last row of all


def test_rows_are_recognised_by_their_entries():
    X = sp.csr_array(np.array([[0, 1.0, 2], [0, 1, 2], [1, 0, 2], [0, 0, 0]], dtype=np.float32))
    keys = row_keys(Samples(X, np.arange(4), 4))
    assert keys[0] == keys[1]
    assert np.unique(keys).size == 3
    wide = sp.csr_array((X.data.astype(np.float64), X.indices, X.indptr), shape=(4, 9))
    np.testing.assert_array_equal(row_keys(Samples(wide, np.arange(4), 4)), keys)
    left = made(10).without(np.array([3, 7], dtype=np.uint64))
    assert left.said.keys.tolist() == [0, 1, 2, 4, 5, 6, 8, 9]
    assert left.n_seen == 8


@pytest.mark.parametrize("several", [False, True])
def test_labels_that_change(several):
    reservoir = made(6, several=several)
    reservoir.said.scores[:, 2:4] = 7  # of candidate 1
    merged = reservoir.relabelled(Relabelling.of(5, merged={1: 0}))
    assert merged.said.codes[0, :3].tolist() == [0, -1, 1]
    assert merged.said.scores[0, :2].tolist() == [7, 7]
    assert merged.samples.codes[:2].tolist() == ([0, 1] if several else [0, 0])
    retired = reservoir.relabelled(Relabelling.of(5, retired=[0]))
    assert retired.said.codes[0, :3].tolist() == [-1, 0, 1]
    assert retired.n_rows == (6 if several else 4)
    trial = retired.trial(["a", "b"])
    assert not trial.right[~trial.valid].any()


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("codes", lambda a: a + 100),
        ("codes", lambda a: a.astype(np.int64)),
        ("codes", lambda a: a[:, :10]),
        ("counts", lambda a: a - 2),
        ("scores", lambda a: a * np.float32(np.nan)),
        ("scores", lambda a: a[:, :-1]),
        ("near", lambda a: np.full((6, 3), 5, dtype=np.float32)),
        ("near", lambda a: np.zeros((6, K + 1), dtype=np.float32)),
        ("weight", lambda a: -a),
        ("keys", lambda a: a[1:]),
        ("labels", lambda a: a + 50),
        ("labels", lambda a: a[1:]),
        ("size", lambda a: 3),
        ("size", lambda a: 1 << 40),
        ("n_seen", lambda a: -1),
        ("n_classes", lambda a: 1),
        ("starts", lambda a: np.array([0, 99])),
    ],
)
def test_files_that_lie_are_refused(tmp_path, name, wrong):
    honest = made(6)
    write_model(tmp_path / "m", honest)
    assert_same_bits(read_model(tmp_path / "m")._state(), honest._state())
    values = {**honest._state(), name: wrong(honest._state()[name])}
    with pytest.raises(ModelFileError):
        Reservoir._from_state(values)


# --- in a model ---


@pytest.fixture(scope="module")
def stream():
    X, y = words(40, n_samples=2000, n_features=300)
    return sp.csr_array(X, dtype=np.float32), y


def test_rows_are_scored_before_they_are_learnt(stream):
    """The lines that enter are what a copy of the model, which has not learnt the rows, says of them."""
    X, y = stream
    model = LocoleClassifier(factors=False, nearest=True).fit(X[:1200], y[:1200])
    before = copy.copy(model)
    model.partial_fit(X[1200:1400], y[1200:1400])
    reservoir = model.scorer_.reservoir_
    keys = row_keys(Samples(X[1200:1400], y[1200:1400], 40))
    rows = np.flatnonzero(np.isin(keys, reservoir.said.keys))
    assert rows.size > 100  # the reservoir was not full
    from locole.samples import Rows

    for row in rows[:10]:
        place = int(np.flatnonzero(reservoir.said.keys == keys[row])[0])
        codes = reservoir.said.codes[place]
        codes = codes[codes >= 0].astype(np.int64)
        said = reservoir.said.scores[place].reshape(K, -1)[: codes.size]
        for number, scorer in enumerate(before.scorer_.scorers_):
            expected = scorer.scores_at(Rows(X[[1200 + row]]), codes[None])[0]
            np.testing.assert_allclose(said[:, number], expected, rtol=1e-4, atol=1e-4)
    assert model.calibration_.n_rows == reservoir.n_rows


def test_many_updates_keep_the_size_and_the_bits(stream, tmp_path):
    """A small form of the thousand updates of benchmarks/bench_growing.py, with a load in the middle."""
    X, y = stream
    is_new = y >= 36
    first = np.flatnonzero(~is_new & (np.arange(y.size) < 1200))
    later = np.setdiff1d(np.arange(y.size), first)
    model = LocoleClassifier(factors=False, nearest=False).fit(X[first], y[first])
    twin, vectors = copy.copy(model), model.embedding_.rows(np.arange(36))
    sums = model.scorer_["profiles"].sums_.toarray()[:, 3]
    for number, rows in enumerate(np.array_split(later[y[later] != 3], 20)):
        for each in (model, twin):
            each.partial_fit(X[rows], y[rows])
        if number == 10:
            twin.save(tmp_path / "model")
            twin = load(tmp_path / "model")
    assert_same_bits(twin.decision_function(X), model.decision_function(X))
    assert_same_bits(twin.predict_topk(X, proba=True), model.predict_topk(X, proba=True))
    assert_same_bits(twin.scorer_.reservoir_, model.scorer_.reservoir_)
    assert model.classes_.size == 40
    assert model.score(X[later], y[later]) > 0.8
    reservoir = model.scorer_.reservoir_
    assert reservoir.n_rows <= 2000
    # nothing of a label that had no rows has moved
    np.testing.assert_array_equal(model.embedding_.rows(np.arange(36))[:, :36], vectors)
    np.testing.assert_array_equal(model.scorer_["profiles"].sums_.toarray()[:, 3], sums)


def test_a_model_without_a_reservoir_keeps_its_weights(stream):
    X, y = stream
    model = LocoleClassifier(factors=False).fit(X[:1200], y[:1200])
    old = copy.copy(model.scorer_)
    old.reservoir_ = None
    weights = old.weights_
    old.partial_fit(Samples(X[1200:], y[1200:], 40))
    assert old.weights_ == weights


@pytest.mark.parametrize("part", [7, {}, {"weight": "1"}, {"weight": np.ones(2)}], ids=repr)
def test_a_model_whose_choice_lies_beside_its_reservoir_is_refused(stream, tmp_path, part):
    X, y = stream
    scorer = LocoleClassifier(factors=False).fit(X[:1200], y[:1200]).scorer_
    scorer.choice_ = {**scorer.choice_, "sources": {"profiles": part}}
    with pytest.raises(ModelFileError, match="do not fit together"):
        scorer._check_learnt()
