"""Labels scored by their texts: the formula, labels without rows, hostile files."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from same import assert_same_bits

from locole import LocoleClassifier, load
from locole.exceptions import LocoleError, ModelFileError
from locole.io import read_model, write_model
from locole.labels import LabelFeatures
from locole.samples import Rows, Samples
from locole.scoring import Ensemble, NameScorer, ProfileScorer
from locole.scoring.base import every_code

# Label i is called by terms 3i to 3i+2, and so are its rows; labels 10 and 11 have no rows.
N, SEEN, TERMS = 12, 10, 36
NAMES = sp.csr_array(np.kron(np.eye(N), np.ones(3)) / np.sqrt(3), dtype=np.float32)


def make_rows(labels, seed=0):
    """One or two terms of the label's text, and two terms of anything."""
    rng = np.random.default_rng(seed)
    X = np.zeros((len(labels), TERMS), dtype=np.float32)
    for row, label in zip(X, labels, strict=True):
        row[3 * label + rng.permutation(3)[: rng.integers(1, 3)]] = 1
        row[rng.integers(0, TERMS, 2)] += 0.5
    return sp.csr_array(X)


Y = np.arange(200) % SEEN
X = make_rows(Y)
SAMPLES = Samples(X, Y, N)
EVERY = np.arange(N)


def formula(scorer, X, L=None):
    a, b, c = scorer.mix_
    said = X.toarray() @ (np.eye(TERMS) if L is None else L.toarray())
    counts = np.bincount(Y, minlength=N)
    return (said @ scorer.label_rows_.toarray().T) * (a + b / (1 + counts)) + c * (counts == 0)


@pytest.mark.parametrize("weights", [(2.0, 1.0, 0.5), (0.0, 0.0, 3.0), (1.0, 4.0, 0.0)])
@pytest.mark.parametrize("has_terms", [False, True])
def test_scores_are_those_of_the_formula(weights, has_terms):
    L = sp.csr_array(sp.random_array((TERMS, TERMS), density=0.1, rng=np.random.default_rng(1)))
    scorer = NameScorer(NAMES, feature_terms=L if has_terms else None).fit(SAMPLES)
    total = scorer.set_source_weights(np.array(weights))
    wanted = formula(scorer, X, L if has_terms else None)
    np.testing.assert_allclose(scorer.all_scores(Rows(X)), wanted, atol=1e-5)
    assert total == sum(weights)
    np.testing.assert_allclose(total * scorer.mix_, weights)


def test_weights_of_nothing_leave_the_similarity():
    scorer = NameScorer(NAMES).fit(SAMPLES)
    assert scorer.set_source_weights(np.zeros(3)) == 0
    assert scorer.mix_.tolist() == [1, 0, 0]


def test_more_rows_count():
    scorer = NameScorer(NAMES).fit(SAMPLES)
    kept = copy.copy(scorer)
    scorer.partial_fit(Samples(X[:2], np.array([N - 1, N + 1]), N + 2, np.array([0.0, 2.0])))
    assert scorer.counts_.tolist() == [20] * SEEN + [0, 0, 0, 1]
    assert scorer.has_text.tolist() == [True] * N + [False] * 2
    assert kept.n_classes == N


def test_unseen_labels_are_proposed_even_if_others_are_as_similar():
    same = sp.csr_array(np.ones((N, TERMS), dtype=np.float32))
    scorer = NameScorer(same).fit(SAMPLES)
    found = scorer.source_candidates(Rows(X), k=2)
    assert found[0].tolist() == [0, 1, 10, 11]


def test_texts_may_be_added_with_further_terms():
    scorer = NameScorer(NAMES, feature_terms=sp.eye_array(TERMS, format="csr")).fit(SAMPLES)
    before = scorer.all_scores(Rows(X))
    terms = sp.csr_array(np.hstack([np.eye(TERMS), np.ones((TERMS, 1))]))
    new = sp.csr_array(([1.0], ([0], [TERMS])), shape=(1, TERMS + 1))
    scorer.add_labels(N + 1).add_texts(np.array([N]), LabelFeatures(np.array([N]), new, terms))
    after = scorer.all_scores(Rows(X))
    np.testing.assert_array_equal(after[:, :N], before)
    np.testing.assert_allclose(after[:, N], X.sum(axis=1), rtol=1e-6)
    with pytest.raises(LocoleError, match="keep all of them"):
        scorer.add_texts(np.array([N]), LabelFeatures(np.array([N]), new[:, :4], terms[:, :4]))


def test_a_scorer_without_texts_says_what_it_needs():
    with pytest.raises(LocoleError, match="label_rows"):
        NameScorer().fit(SAMPLES)
    with pytest.raises(LocoleError, match="12 labels and 36 features"):
        NameScorer(NAMES).fit(Samples(X[:, :9], Y, N))


# In an ensemble ---------------------------------------------------------------------------------


@given(
    st.lists(st.integers(0, 6), min_size=12, max_size=60),
    st.integers(1, 6),
    st.integers(0, 3),
)
@settings(max_examples=25, deadline=None)
def test_hidden_labels_are_in_no_training_row(codes, n_validation, seed):
    codes = np.array(codes)
    samples = Samples(np.arange(codes.size)[:, None], codes, 7)
    train, validation, later = samples.split_hiding(n_validation, n_hidden=1, seed=[seed])
    assert sorted([*train.X[:, 0], *later.X[:, 0]]) == list(range(codes.size))
    assert set(validation.X[:, 0]) <= set(later.X[:, 0])
    assert train.n_rows >= 1
    assert validation.n_rows >= 1
    if np.unique(codes).size > 2:
        assert np.setdiff1d(validation.codes, train.codes).size >= 1
        assert np.unique(train.codes).size >= 1


def test_rows_with_several_labels_are_hidden_with_all_of_them():
    starts = np.arange(0, 81, 2)
    codes = np.sort(np.stack([np.arange(40) % 5, 5 + np.arange(40) % 4], axis=1)).ravel()
    samples = Samples(np.arange(40)[:, None], codes, 9, starts=starts)
    train, validation, later = samples.split_hiding(12, n_hidden=3, seed=[0])
    hidden = np.setdiff1d(validation.codes, train.codes)
    assert hidden.size >= 1
    assert (
        validation.has(np.broadcast_to(hidden, (validation.n_rows, hidden.size))).any(1).sum() >= 3
    )
    assert train.n_rows + later.n_rows == 40


def test_unseen_labels_are_answered_and_seen_ones_no_worse():
    test = make_rows(np.repeat(EVERY, 10), seed=1)
    wanted = np.repeat(EVERY, 10)
    right = {}
    for named in (False, True):
        more = [NameScorer(NAMES)] if named else []
        scorer = Ensemble([ProfileScorer(), *more], nearest=False).fit(SAMPLES)
        right[named] = scorer.candidates(Rows(test), 1)[0][:, 0] == wanted
    assert not right[False][wanted >= SEEN].any()
    assert right[True][wanted >= SEEN].mean() > 0.8
    assert right[True][wanted < SEEN].mean() >= right[False][wanted < SEEN].mean()


# As a classifier --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def classifier():
    labels = np.array([f"label {i}" for i in EVERY])
    named = LabelFeatures(labels[::-1], NAMES[::-1])
    return LocoleClassifier(label_features=named, factors=False).fit(X, labels[Y])


def test_a_classifier_takes_rows_of_labels(classifier):
    asked = make_rows(EVERY, seed=3)
    assert classifier.classes_.size == N
    assert (classifier.predict(asked) == [f"label {i}" for i in EVERY]).mean() > 0.8


def test_labels_are_added_by_their_texts_alone(classifier):
    more = copy.deepcopy(classifier)
    asked = make_rows([0, 11], seed=5)
    before = classifier.decision_function(asked)
    new = sp.csr_array(asked[1:] / sp.linalg.norm(asked[1:]))
    more.add_labels(LabelFeatures(np.array(["new"]), new))
    assert more.classes_[-1] == "new"
    assert more.predict(asked[1:]) == ["new"]
    assert_same_bits(more.decision_function(asked)[:, :N], before)
    assert more.predict_topk(asked, k=2, proba=True)[1].max() <= 1
    # And can be learnt like any other.
    more.partial_fit(asked, ["label 0", "new"])
    assert more.scorer_["names"].counts_[-1] == 1


def test_the_answer_does_not_depend_on_threads(classifier):
    other = copy.deepcopy(classifier).set_params(n_jobs=3)
    asked = make_rows(np.arange(2000) % N, seed=4)
    for one, two in zip(classifier.predict_topk(asked), other.predict_topk(asked), strict=True):
        np.testing.assert_array_equal(one, two)


def test_a_saved_classifier_goes_on(classifier, tmp_path):
    classifier.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    new = LabelFeatures(np.array(["new"]), NAMES[:1])
    asked = make_rows(EVERY, seed=6)
    added = copy.deepcopy(classifier).add_labels(new)
    assert_same_bits(
        loaded.add_labels(new).decision_function(asked), added.decision_function(asked)
    )


def test_errors_say_what_to_do(classifier):
    plain = LocoleClassifier().fit(X, Y)
    with pytest.raises(LocoleError, match="without label_features"):
        plain.add_labels(LabelFeatures(np.array([77]), NAMES[:1]))
    with pytest.raises(LocoleError, match="columns for 36"):
        classifier.add_labels(LabelFeatures(np.array(["a"]), NAMES[:1, :5]))
    with pytest.raises(LocoleError, match="texts of labels need 50 rows"):
        LocoleClassifier(label_features=LabelFeatures(EVERY, NAMES)).fit(X[:30], Y[:30])
    with pytest.raises(LocoleError, match="label_texts needs"):
        LocoleClassifier(label_features=LabelFeatures(EVERY, NAMES)).partial_fit(X, Y)


# Files ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"counts_": np.zeros(N + 1)},
        {"counts_": np.full(N, -1.0)},
        {"counts_": np.full(N, np.nan)},
        {"mix_": np.zeros(2)},
        {"mix_": np.array([1.0, np.inf, 0.0])},
        {"label_rows_": NAMES * np.float32(np.nan)},
        {"feature_terms_": sp.csr_array(np.ones((TERMS, 5), dtype=np.float32))},
    ],
)
def test_hostile_files_are_refused(tmp_path, change):
    scorer = NameScorer(NAMES).fit(SAMPLES)
    scorer.__dict__.update(change)
    write_model(tmp_path / "model", scorer)
    with pytest.raises(ModelFileError):
        read_model(tmp_path / "model")


def test_every_code_has_a_score():
    scorer = NameScorer(NAMES).fit(SAMPLES)
    assert scorer.scores_at(Rows(X[:0]), every_code(0, N)).shape == (0, N)
