"""Nearest rows of labels against brute force, and a problem in which an equal row is bad news."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from same import assert_same_bits
from sklearn.linear_model import Ridge

import locole.neighbours
from locole import LocoleClassifier, load
from locole.datasets import make_topics
from locole.exceptions import LocoleError, ModelFileError
from locole.io import read_model, write_model
from locole.neighbours import EXAMINED, KNOTS, Neighbours, bends

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


def one_of_a_kind(*, seed: int):
    """Laws with forty kinds of sections, each at most once: mostly the kind's words, some of the law's.

    The words of the kind are not the same in all laws: two that have copied from each other have the
    same variant, so the most similar rows are those of other laws.
    """
    rng = np.random.default_rng(seed)
    laws, kinds, variants = 60, 40, 4
    law_words = rng.random((laws, 400)) < 0.02
    kind_words = rng.random((kinds * variants, 400)) < 0.06
    law, kind = np.divmod(rng.permutation(laws * kinds), kinds)
    variant = kind * variants + rng.integers(0, variants, law.size)
    heard = rng.random((law.size, 400)) < 0.4
    rows = 2.0 * kind_words[variant] + law_words[law] * heard + 0.01 * rng.random((law.size, 400))
    return sp.csr_array(rows), law


LAWS, LAW = one_of_a_kind(seed=0)
HALF = LAW.size * 3 // 4


@pytest.fixture(scope="module")
def lawyer():
    return LocoleClassifier().fit(LAWS[:HALF], LAW[:HALF])


# --- likeness ---


@given(problems(), st.integers(0, 2**32 - 1))
def test_likeness_is_the_largest_cosine(problem, seed):
    X, codes, n_classes = problem
    rng = np.random.default_rng(seed)
    asked = rng.integers(0, n_classes, (X.shape[0], 3))
    found = Neighbours().fit(X, codes, n_classes).likeness(X, asked)
    np.testing.assert_allclose(found, by_hand(X, codes, X, asked), atol=1e-6)


@given(problems(), st.data())
def test_rows_added_later_count_as_if_there_from_the_start(problem, data):
    X, codes, n_classes = problem
    cut = data.draw(st.integers(0, len(codes)))
    whole = Neighbours().fit(X, codes, n_classes)
    few = int(codes[:cut].max(initial=0)) + 1
    parts = Neighbours().fit(X[:cut], codes[:cut], few).add(X[cut:], codes[cut:], n_classes)
    assert_same_bits(parts.starts_, whole.starts_)
    np.testing.assert_array_equal(parts.rows_.toarray(), whole.rows_.toarray())


def test_of_frequent_labels_the_last_rows_are_kept(monkeypatch):
    monkeypatch.setattr(locole.neighbours, "_MOST", 2)
    X, codes = sp.csr_array(np.eye(6)), np.array([1, 0, 1, 1, 2, 1])
    neighbours = Neighbours().fit(X, codes, 3)
    assert neighbours.starts_.tolist() == [0, 1, 3, 4]
    assert neighbours.rows_.indices.tolist() == [1, 3, 5, 4]
    neighbours.add(X[:1], np.array([1]), 4)
    assert neighbours.starts_.tolist() == [0, 1, 3, 4, 4]
    assert neighbours.rows_.indices.tolist() == [1, 5, 0, 4]


def test_rows_are_not_changed():
    X = sp.csr_array(np.array([[3.0, 4.0]], dtype=np.float32))
    Neighbours().fit(X, np.zeros(1, dtype=np.int64), 1).likeness(
        X, np.zeros((1, 1), dtype=np.int64)
    )
    assert X.toarray().tolist() == [[3, 4]]


# --- new scores ---


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.integers(0, 2**32 - 1))
def test_a_curve_is_the_sum_of_its_bends(likeness, seed):
    values = np.append(0, np.random.default_rng(seed).standard_normal(KNOTS.size - 1))
    expected = np.interp(likeness, KNOTS, values)
    np.testing.assert_allclose(bends(np.array(likeness)) @ values[1:], expected, atol=1e-12)


@pytest.fixture
def bent():
    """Twelve labels with a row each; what is alike is bad."""
    neighbours = Neighbours().fit(sp.csr_array(np.eye(12, 13)), np.arange(12), 12)
    neighbours.scale_, neighbours.curve_ = 0.5, np.append(np.zeros(KNOTS.size - 1), -4.0)
    return neighbours


def rows(likeness):
    """A row that is as like as that to the first, and to no other that is a label's."""
    return sp.csr_array([[likeness, *[0.0] * 11, np.sqrt(1 - likeness**2)]])


def test_new_scores_are_the_formulas(bent):
    X = sp.csr_array(sp.vstack([rows(0.95), rows(0.95)[:, [11, *range(1, 11), 0, 12]]]))
    codes = np.array([[0, 1, 2], [11, 3, 4]])
    scores = np.array([[3.0, 2.0, 2.0], [9.0, 0.5, 0.25]])
    labels, new = bent.rescored(X, codes, scores)
    assert labels.tolist() == [[1, 2, 0], [11, 3, 4]]
    np.testing.assert_allclose(new, [[1, 1, 1.5 - 2], [4.5 - 2, 0.25, 0.125]], atol=1e-5)


def test_the_very_row_speaks_for_its_label(bent):
    bent.curve_[2] = 1.0
    labels, new = bent.rescored(rows(1.0), np.array([[0, 1, 2]]), np.array([[3.0, 2.0, 1.0]]))
    assert labels.tolist() == [[0, 1, 2]]
    assert new.tolist() == [[1.5 + 1, 1.0, 0.5]]


def test_labels_after_the_eighth_stay_behind_in_their_order(bent):
    X, codes = rows(0.95), np.arange(12)[None]
    scores = np.linspace(1, 0, 12)[None]
    labels, new = bent.rescored(X, codes, scores)
    assert labels[0].tolist() == [1, 2, 3, 4, 5, 6, 7, 0, 8, 9, 10, 11]
    assert (np.diff(new[0]) < 0).all()
    np.testing.assert_allclose(new[0, EXAMINED:], 0.5 * scores[0, EXAMINED:] - 4)


# --- in the classifier ---


def test_a_row_all_but_equal_may_speak_against_its_label(lawyer):
    alone = LocoleClassifier(neighbours=False).fit(LAWS[:HALF], LAW[:HALF])
    assert lawyer.choice_.endswith("new rows right, used")
    assert lawyer.choice_.startswith(alone.choice_)
    gained = lawyer.score(LAWS[HALF:], LAW[HALF:]) - alone.score(LAWS[HALF:], LAW[HALF:])
    assert gained > 0.04
    assert lawyer.neighbours_.curve_[-1] < lawyer.neighbours_.curve_.max() - 1


def test_rows_that_were_learnt_are_known_again(lawyer):
    alone = LocoleClassifier(neighbours=False).fit(LAWS[:HALF], LAW[:HALF])
    assert lawyer.score(LAWS[:HALF], LAW[:HALF]) > alone.score(LAWS[:HALF], LAW[:HALF]) - 0.01


def test_nearest_rows_that_bring_nothing_are_not_kept():
    classifier = LocoleClassifier().fit(TOPICS.X_train, TOPICS.y_train)
    assert classifier.neighbours_ is None
    assert classifier.choice_.endswith("new rows right, not used")
    never = LocoleClassifier(neighbours=False).fit(TOPICS.X_train, TOPICS.y_train)
    assert "nearest" not in never.choice_
    rows = TOPICS.X_test
    assert_same_bits(never.decision_function(rows), classifier.decision_function(rows))


def test_all_rows_are_kept_in_the_end(lawyer):
    kept = Neighbours().fit(LAWS[:HALF], LAW[:HALF], 60)
    assert_same_bits(lawyer.neighbours_.starts_, kept.starts_)
    assert lawyer.neighbours_.rows_.sum() == pytest.approx(kept.rows_.sum())


def test_the_best_labels_are_the_same_however_many_are_asked_for(lawyer):
    X = LAWS[HALF:]
    labels, scores = lawyer.predict_topk(X, k=20)
    np.testing.assert_array_equal(lawyer.predict(X), labels[:, 0])
    for k in (3, 8, 12):
        fewer = lawyer.predict_topk(X, k=k)
        np.testing.assert_array_equal(fewer[0], labels[:, :k])
        np.testing.assert_allclose(fewer[1], scores[:, :k], rtol=1e-9)


def test_scores_of_all_labels_agree_with_the_best_ones(lawyer):
    X = LAWS[HALF:]
    labels, scores = lawyer.predict_topk(X, k=10)
    every = lawyer.decision_function(X)
    np.testing.assert_array_equal(every.argmax(axis=1), labels[:, 0])
    np.testing.assert_allclose(np.take_along_axis(every, labels, 1), scores, rtol=1e-6, atol=1e-6)


def test_threads_make_no_difference(lawyer):
    other = LocoleClassifier(n_jobs=3).fit(LAWS[:HALF], LAW[:HALF])
    assert_same_bits(other.neighbours_, lawyer.neighbours_)
    assert_same_bits(other.decision_function(LAWS[HALF:]), lawyer.decision_function(LAWS[HALF:]))


def test_it_is_saved(lawyer, tmp_path):
    again = load_copy(lawyer, tmp_path / "m")
    assert_same_bits(again.neighbours_, lawyer.neighbours_)
    assert_same_bits(again.decision_function(LAWS), lawyer.decision_function(LAWS))


def test_it_learns_more_rows_and_labels(tmp_path):
    first = LocoleClassifier("kerdock", neighbours=True).fit(LAWS[:HALF], LAW[:HALF])
    again = load_copy(first, tmp_path / "m")
    more = np.append(LAW[HALF:-1], 60)  # a law that is new
    again.partial_fit(LAWS[HALF:], more)
    assert again.neighbours_.starts_.size == 62
    assert again.neighbours_.rows_.shape[0] == LAW.size
    assert again.predict(LAWS).shape == LAW.shape
    assert first.neighbours_.rows_.shape[0] == HALF


def test_one_regressor_may_have_them_too():
    settings = {"regressor": "elastic_net", "neighbours": True}
    one = LocoleClassifier(**settings).fit(LAWS[:HALF], LAW[:HALF])
    plain = LocoleClassifier(regressor="elastic_net").fit(LAWS[:HALF], LAW[:HALF])
    assert one.profiles_ is None
    assert plain.neighbours_ is None
    assert one.score(LAWS[HALF:], LAW[HALF:]) > plain.score(LAWS[HALF:], LAW[HALF:]) + 0.04


def test_negative_features_are_no_obstacle():
    one = LocoleClassifier(neighbours=True).fit(-LAWS, LAW)
    assert one.profiles_ is None
    assert one.neighbours_ is not None


def test_weights_of_rows_are_heard():
    weight = np.ones(HALF)
    weight[::3] = 0
    weighed = LocoleClassifier(neighbours=True).fit(LAWS[:HALF], LAW[:HALF], weight)
    heard = np.count_nonzero(weight)
    assert weighed.neighbours_.rows_.shape[0] == heard
    weighed.partial_fit(LAWS[HALF:], LAW[HALF:], sample_weight=np.arange(LAW.size - HALF) < 7)
    assert weighed.neighbours_.rows_.shape[0] == heard + 7


@pytest.mark.parametrize(
    ("settings", "rows", "message"),
    [
        ({"neighbours": "yes"}, LAWS, "neighbours must be True, False or 'auto', not 'yes'"),
        ({"regressor": Ridge()}, LAWS, "neighbours=True needs a regressor of locole's own"),
        ({}, LAWS[:, :256], "neighbours=True needs 1,000 rows and 257 features: leave it out"),
    ],
    ids=["value", "foreign", "few"],
)
def test_what_cannot_be_had_is_refused(settings, rows, message):
    with pytest.raises(LocoleError, match=message):
        LocoleClassifier(**{"neighbours": True, **settings}).fit(rows, LAW)


# --- files ---


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("starts_", np.array([0, 2, 1, 12]), "do not fit together"),
        ("starts_", np.array([0, 99]), "do not fit together"),
        ("starts_", np.array([0.0, 12.0]), "have no labels"),
        ("rows_", sp.csr_array(np.full((12, 12), np.nan, dtype=np.float32)), "are not numbers"),
        ("rows_", sp.csr_array(np.eye(12)), "are not numbers"),
        ("curve_", np.zeros(3), "is not one"),
        ("curve_", np.full(KNOTS.size, np.inf), "is not one"),
        ("scale_", -1.0, "impossible number"),
    ],
)
def test_a_file_that_lies_is_refused(bent, tmp_path, name, value, message):
    setattr(bent, name, value)
    write_model(tmp_path / "m", bent)
    with pytest.raises(ModelFileError, match=message):
        read_model(tmp_path / "m")


def test_a_model_whose_rows_have_other_features_is_refused(lawyer, tmp_path):
    model = load_copy(lawyer, tmp_path / "a")
    model.neighbours_ = Neighbours().fit(sp.csr_array(np.eye(3)), np.arange(3), 60)
    model.save(tmp_path / "b")
    with pytest.raises(ModelFileError, match="do not fit together"):
        load(tmp_path / "b")


def load_copy(model, path):
    model.save(path)
    return load(path)
