"""Nearest rows of labels against brute force, and a problem in which a near-equal row is bad news."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from same import assert_same_bits
from sklearn.linear_model import Ridge

from locole import LocoleClassifier, load
from locole.datasets import make_topics
from locole.dense_rows import DenseRows
from locole.exceptions import LocoleError, ModelFileError
from locole.io import read_model, write_model
from locole.samples import Rows, Samples
from locole.scoring import NearestScorer, VectorScorer, nearest
from locole.scoring.nearest import KNOTS, RERANKED, _shares

TOPICS = make_topics(1200, 300, 30, nnz_per_row=15, noise=0.5, power=0.5)


@st.composite
def problems(draw):
    """Rows of both signs with gaps everywhere: empty rows, labels without a row."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d, c = draw(st.integers(1, 30)), draw(st.integers(1, 12)), draw(st.integers(1, 8))
    size = draw(st.sampled_from([1e-6, 1.0, 1e6]))
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.4) * size
    return sp.csr_array(X), rng.integers(0, draw(st.integers(1, c)), n), c


def by_hand(X, codes, new, asked):
    """Largest cosine with a row of the label, in double precision, 0 at least."""
    X, new = X.toarray(), new.toarray()
    out = np.zeros(asked.shape)
    for i, row in enumerate(new):
        for j, label in enumerate(asked[i]):
            for other in X[codes == label]:
                sizes = np.linalg.norm(row) * np.linalg.norm(other)
                if sizes > 0:
                    out[i, j] = max(out[i, j], row @ other / sizes)
    return out


@pytest.mark.parametrize("n_features", [5, 16, 37])
def test_dense_rows_in_bytes(n_features):
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(60, n_features)), rng.integers(0, 6, 60)
    new, asked = rng.normal(size=(9, n_features)), np.tile(np.arange(8), (9, 1))
    scorer = NearestScorer().fit(Samples(DenseRows(X[:40]), codes[:40], 7))
    scorer.partial_fit(Samples(X[40:], codes[40:], 8))
    assert scorer.rows_.dtype == np.int8
    found = scorer.similarity_of(Rows(new), asked)
    expected = by_hand(sp.csr_array(X), codes, sp.csr_array(new), asked)
    np.testing.assert_allclose(found, expected, atol=0.01)
    assert not found[:, 6:].any()  # labels without a row
    own = scorer.similarity_of(Rows(X), codes[:, None])
    np.testing.assert_array_equal(own, 1)  # in spite of rounding


@pytest.mark.parametrize("scales", [None, np.ones(39, np.float32), np.full(40, np.nan, np.float32)])
def test_dense_rows_of_a_file_are_checked(scales):
    X = np.random.default_rng(0).normal(size=(40, 6))
    scorer = NearestScorer().fit(Samples(DenseRows(X), np.arange(40) % 4, 4))
    scorer._check_learnt()
    scorer.row_scales_ = scales
    with pytest.raises(ModelFileError, match="nearest rows are not numbers"):
        scorer._check_learnt()


def one_of_a_kind(*, seed: int):
    """Laws with forty kinds of sections, each at most once: the kind's words, and some of the law's.

    So the most similar rows are those of other laws.
    """
    rng = np.random.default_rng(seed)
    law_words = rng.random((N_LAWS, 400)) < 0.02
    kind_words = rng.random((40, 400)) < 0.06
    law, kind = np.divmod(rng.permutation(N_LAWS * 40), 40)
    heard = rng.random((law.size, 400)) < 0.3
    rows = kind_words[kind] + law_words[law] * heard + 0.01 * rng.random((law.size, 400))
    return sp.csr_array(rows), law


N_LAWS = 250
LAWS, LAW = one_of_a_kind(seed=2)
HALF = LAW.size * 3 // 4


@pytest.fixture(scope="module")
def lawyer():
    return LocoleClassifier().fit(LAWS[:HALF], LAW[:HALF])


@pytest.fixture(scope="module")
def alone():
    """The same model without the nearest rows."""
    return LocoleClassifier(nearest=False).fit(LAWS[:HALF], LAW[:HALF])


# --- similarity ---


@given(problems(), st.integers(0, 2**32 - 1))
def test_similarity_is_the_largest_cosine(problem, seed):
    X, codes, n_classes = problem
    rng = np.random.default_rng(seed)
    asked = rng.integers(0, n_classes, (X.shape[0], 3))
    found = NearestScorer().fit(Samples(X, codes, n_classes)).similarity(X, asked)
    # Each of twelve numbers is off by 1/254 of the row's largest one.
    np.testing.assert_allclose(found, by_hand(X, codes, X, asked), atol=2 * 12**0.5 / 254)
    has_entries = abs(X).sum(axis=1) > 0
    own = NearestScorer().fit(Samples(X, codes, n_classes)).similarity(3 * X, codes[:, None])
    np.testing.assert_allclose(own[:, 0], has_entries, atol=1e-6)  # whatever its length


@given(problems(), st.data())
def test_rows_added_later_count_as_if_there_from_the_start(problem, data):
    X, codes, n_classes = problem
    cut = data.draw(st.integers(0, len(codes)))
    whole = NearestScorer().fit(Samples(X, codes, n_classes))
    few = int(codes[:cut].max(initial=0)) + 1
    parts = NearestScorer().fit(Samples(X[:cut], codes[:cut], few))
    parts.partial_fit(Samples(X[cut:], codes[cut:], n_classes))
    assert_same_bits(parts, whole)


def test_of_frequent_labels_the_last_rows_are_kept(monkeypatch):
    monkeypatch.setattr(nearest, "_MOST", 2)
    X, codes = sp.csr_array(np.eye(6)), np.array([1, 0, 1, 1, 2, 1])
    scorer = NearestScorer().fit(Samples(X, codes, 3))
    assert scorer.starts_.tolist() == [0, 1, 3, 4]
    assert scorer.rows_.columns.tolist() == [1, 3, 5, 4]
    scorer.partial_fit(Samples(X[:1], np.array([1]), 4))
    assert scorer.starts_.tolist() == [0, 1, 3, 4, 4]
    assert scorer.rows_.columns.tolist() == [1, 5, 0, 4]


def test_rows_of_weight_zero_are_not_kept():
    X, codes = sp.csr_array(np.eye(4)), np.array([0, 1, 0, 1])
    scorer = NearestScorer().fit(Samples(X, codes, 2, np.array([0.0, 1.0, 0.5, 0.0])))
    assert scorer.starts_.tolist() == [0, 1, 2]
    assert scorer.rows_.columns.tolist() == [2, 1]


def test_rows_are_not_changed():
    X = sp.csr_array(np.array([[3.0, 4.0]], dtype=np.float32))
    scorer = NearestScorer().fit(Samples(X, np.zeros(1, dtype=np.int64), 1))
    scorer.similarity(X, np.zeros((1, 1), dtype=np.int64))
    assert X.toarray().tolist() == [[3, 4]]


# --- the curve, and reranking ---


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.integers(0, 2**32 - 1))
def test_a_curve_is_linear_in_its_values_at_the_knots(similarity, seed):
    values = np.append(0, np.random.default_rng(seed).standard_normal(KNOTS.size - 1))
    expected = np.interp(similarity, KNOTS, values)
    np.testing.assert_allclose(_shares(np.array(similarity)) @ values[1:], expected, atol=1e-12)


@given(problems())
def test_scores_are_the_similarity_before_a_curve_is_fitted(problem):
    X, codes, n_classes = problem
    scorer = NearestScorer().fit(Samples(X, codes, n_classes))
    every = np.broadcast_to(np.arange(n_classes), (X.shape[0], n_classes))
    expected = by_hand(X, codes, X, every)
    found = scorer.all_scores(Rows(X))
    np.testing.assert_allclose(found, expected, atol=2 * 12**0.5 / 254)
    assert_same_bits(scorer.scores_at(Rows(X), every), found)


@pytest.fixture
def falling():
    """Twelve labels with a row each; the curve falls at the end."""
    scorer = NearestScorer().fit(Samples(sp.csr_array(np.eye(12, 13)), np.arange(12), 12))
    scorer.scale_, scorer.curve_ = 0.5, np.append(np.zeros(KNOTS.size - 1), -4.0)
    return scorer


def row(similarity):
    """A row with that cosine to the first label's row, and 0 to those of all other labels."""
    return sp.csr_array([[similarity, *[0.0] * 11, np.sqrt(1 - similarity**2)]])


def test_new_scores_are_the_formulas(falling):
    X = sp.csr_array(sp.vstack([row(0.95), row(0.95)[:, [11, *range(1, 11), 0, 12]]]))
    codes = np.array([[0, 1, 2], [11, 3, 4]])
    scores = np.array([[3.0, 2.0, 2.0], [9.0, 0.5, 0.25]])
    labels, new = falling.rerank(Rows(X), codes, scores)
    assert labels.tolist() == [[1, 2, 0], [11, 3, 4]]
    np.testing.assert_allclose(new, [[1, 1, 1.5 - 2], [4.5 - 2, 0.25, 0.125]], atol=0.05)


def test_the_very_row_speaks_for_its_label(falling):
    falling.curve_[2] = 1.0
    codes, scores = np.array([[0, 1, 2]]), np.array([[3.0, 2.0, 1.0]])
    labels, new = falling.rerank(Rows(row(1.0)), codes, scores)
    assert labels.tolist() == [[0, 1, 2]]
    assert new.tolist() == [[1.5 + 1, 1.0, 0.5]]


def test_labels_after_the_eighth_stay_behind_in_their_order(falling):
    codes = np.arange(12)[None]
    scores = np.linspace(1, 0, 12)[None]
    labels, new = falling.rerank(Rows(row(0.95)), codes, scores)
    assert labels[0].tolist() == [1, 2, 3, 4, 5, 6, 7, 0, 8, 9, 10, 11]
    assert (np.diff(new[0]) < 0).all()
    np.testing.assert_allclose(new[0, RERANKED:], 0.5 * scores[0, RERANKED:] - 4)


# --- in the classifier ---


def test_a_row_all_but_equal_may_speak_against_its_label(lawyer, alone):
    found = lawyer.choice_["nearest"]
    assert found["used"] is True
    assert found["before"] < found["after"] <= found["rows"] <= lawyer.choice_["validation_rows"]
    assert "reranking" in str(lawyer.choice_)
    assert lawyer.choice_ == {**alone.choice_, "nearest": found}
    gained = lawyer.score(LAWS[HALF:], LAW[HALF:]) - alone.score(LAWS[HALF:], LAW[HALF:])
    assert gained > 0.01
    curve = lawyer.scorer_.reranker_.curve_
    assert curve[-1] < curve.max() - 1


def test_rows_that_were_learnt_are_known_again(lawyer, alone):
    assert lawyer.score(LAWS[:HALF], LAW[:HALF]) > alone.score(LAWS[:HALF], LAW[:HALF]) - 0.01


def test_nearest_rows_that_bring_nothing_are_not_kept():
    classifier = LocoleClassifier().fit(TOPICS.X_train, TOPICS.y_train)
    assert classifier.scorer_.reranker_ is None
    assert classifier.choice_["nearest"]["used"] is False
    assert "reranking" in str(classifier.choice_)
    never = LocoleClassifier(nearest=False).fit(TOPICS.X_train, TOPICS.y_train)
    assert "nearest" not in never.choice_
    assert "nearest" not in str(never.choice_)
    rows = TOPICS.X_test
    assert_same_bits(never.decision_function(rows), classifier.decision_function(rows))


def test_all_rows_are_kept_in_the_end(lawyer):
    kept = NearestScorer().fit(Samples(LAWS[:HALF], LAW[:HALF], N_LAWS))
    reranker = lawyer.scorer_.reranker_
    assert_same_bits(reranker.starts_, kept.starts_)
    assert reranker.rows_.values.sum() == kept.rows_.values.sum()


def test_the_best_labels_are_the_same_however_many_are_asked_for(lawyer):
    X = LAWS[HALF:]
    labels, scores = lawyer.predict_topk(X, k=16)  # beyond, there are more candidates
    np.testing.assert_array_equal(lawyer.predict(X), labels[:, 0])
    for k in (3, 8, 12):
        fewer = lawyer.predict_topk(X, k=k)
        np.testing.assert_array_equal(fewer[0], labels[:, :k])
        np.testing.assert_allclose(fewer[1], scores[:, :k], rtol=1e-6)


def test_scores_of_all_labels_agree_with_the_best_ones():
    # So few labels that all are candidates: otherwise one that is none may be the best of all.
    classifier = LocoleClassifier(nearest=True).fit(TOPICS.X_train, TOPICS.y_train)
    labels, scores = classifier.predict_topk(TOPICS.X_test, k=10)
    every = classifier.decision_function(TOPICS.X_test)
    np.testing.assert_array_equal(every.argmax(axis=1), labels[:, 0])
    np.testing.assert_allclose(np.take_along_axis(every, labels, 1), scores, rtol=1e-6, atol=1e-6)


def test_threads_make_no_difference(lawyer):
    other = LocoleClassifier(n_jobs=3).fit(LAWS[:HALF], LAW[:HALF])
    assert_same_bits(other.scorer_.reranker_, lawyer.scorer_.reranker_)
    assert_same_bits(other.decision_function(LAWS[HALF:]), lawyer.decision_function(LAWS[HALF:]))


def test_it_is_saved(lawyer, tmp_path):
    again = load_copy(lawyer, tmp_path / "m")
    assert_same_bits(again.scorer_.reranker_, lawyer.scorer_.reranker_)
    assert_same_bits(again.decision_function(LAWS), lawyer.decision_function(LAWS))


def test_it_learns_more_rows_and_labels(tmp_path):
    first = LocoleClassifier("kerdock", nearest=True).fit(LAWS[:HALF], LAW[:HALF])
    again = load_copy(first, tmp_path / "m")
    more = np.append(LAW[HALF:-1], N_LAWS)  # a law that is new
    again.partial_fit(LAWS[HALF:], more)
    assert again.scorer_.reranker_.n_classes == N_LAWS + 1
    assert again.scorer_.reranker_.rows_.shape[0] == LAW.size
    assert again.predict(LAWS).shape == LAW.shape
    assert first.scorer_.reranker_.rows_.shape[0] == HALF


def names(classifier):
    return [scorer.name for scorer in classifier.scorer_.scorers_]


def test_one_regressor_may_have_them_too():
    settings = {"regressor": "elastic_net", "nearest": True}
    one = LocoleClassifier(**settings).fit(LAWS[:HALF], LAW[:HALF])
    plain = LocoleClassifier(regressor="elastic_net").fit(LAWS[:HALF], LAW[:HALF])
    assert names(one) == ["vectors"]
    assert isinstance(plain.scorer_, VectorScorer)
    assert one.score(LAWS[HALF:], LAW[HALF:]) > plain.score(LAWS[HALF:], LAW[HALF:]) + 0.04


def test_negative_features_are_no_obstacle():
    one = LocoleClassifier(nearest=True).fit(-LAWS, LAW)
    assert "profiles" not in names(one)
    assert one.scorer_.reranker_ is not None


def test_weights_of_rows_are_heard():
    weight = np.ones(HALF)
    weight[::3] = 0
    weighted = LocoleClassifier(nearest=True).fit(LAWS[:HALF], LAW[:HALF], weight)
    heard = np.count_nonzero(weight)
    assert weighted.scorer_.reranker_.rows_.shape[0] == heard
    weighted.partial_fit(LAWS[HALF:], LAW[HALF:], sample_weight=np.arange(LAW.size - HALF) < 7)
    assert weighted.scorer_.reranker_.rows_.shape[0] == heard + 7


@pytest.mark.parametrize(
    ("settings", "rows", "message"),
    [
        ({"nearest": "yes"}, LAWS, "nearest must be True, False or 'auto', not 'yes'"),
        ({"regressor": Ridge()}, LAWS, "nearest=True needs a regressor of locole's own"),
        ({}, LAWS[:, :256], "there are only 256 features: leave it out"),
    ],
    ids=["value", "foreign", "few"],
)
def test_what_cannot_be_had_is_refused(settings, rows, message):
    with pytest.raises(LocoleError, match=message):
        LocoleClassifier(**{"nearest": True, **settings}).fit(rows, LAW)


# --- files ---


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("starts_", np.array([0, 2, 1, 12]), "do not rise from 0"),
        ("starts_", np.array([0, 99]), "do not rise from 0"),
        ("starts_", np.array([0.0, 12.0]), "have no beginnings"),
        ("rows_", sp.csr_array(np.full((12, 12), np.nan, dtype=np.float32)), "are not numbers"),
        ("rows_", sp.csr_array(np.eye(12)), "are not numbers"),
        ("rows_", np.eye(12, dtype=np.int8)[0], "are not numbers"),
        ("row_scales_", np.full(12, np.inf, dtype=np.float32), "are not numbers"),
        ("row_scales_", np.ones(11, dtype=np.float32), "are not numbers"),
        ("row_scales_", None, "are not numbers"),
        ("curve_", np.zeros(3), "is invalid"),
        ("curve_", np.full(KNOTS.size, np.inf), "is invalid"),
        ("scale_", -1.0, "invalid number"),
    ],
)
def test_a_file_that_lies_is_refused(falling, tmp_path, name, value, message):
    setattr(falling, name, value)
    write_model(tmp_path / "m", falling)
    with pytest.raises(ModelFileError, match=message):
        read_model(tmp_path / "m")


def test_a_model_whose_rows_have_other_features_is_refused(lawyer, tmp_path):
    model = load_copy(lawyer, tmp_path / "a")
    other = Samples(sp.csr_array(np.eye(3)), np.arange(3), 60)
    model.scorer_.reranker_ = NearestScorer().fit(other)
    model.save(tmp_path / "b")
    with pytest.raises(ModelFileError, match="do not fit together"):
        load(tmp_path / "b")


def load_copy(model, path):
    model.save(path)
    return load(path)
