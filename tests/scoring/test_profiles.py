"""Label profiles against their formula; rows added later count as if there from the start."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from problems import words
from same import assert_same_bits

from locole.exceptions import LocoleError, ModelFileError
from locole.io import read_model, write_model
from locole.samples import Rows, Samples
from locole.scoring import ProfileScorer

X_WORDS, Y_WORDS = words(n_samples=200, n_features=80)
X_WORDS = X_WORDS.astype(np.float32)


def by_formula(X, codes, n_classes, new, weight=None):
    """Σ_f x_f log(1 + P(f | label) / P(f)), written down label by label."""
    X, new = X.toarray().astype(np.float64), new.toarray().astype(np.float64)
    weight = np.ones(len(codes)) if weight is None else weight
    common = weight @ X
    common = common / common.sum() if common.sum() > 0 else common
    scores = np.zeros((len(new), n_classes))
    for label in range(n_classes):
        mine = (weight * (codes == label)) @ X
        if mine.sum() == 0:
            continue
        known = common > 0
        ratio = mine[known] / mine.sum() / common[known]
        scores[:, label] = new[:, known] @ np.log1p(ratio)
    return scores


def untuned(X, codes, n_classes, weight=None):
    """A scorer for which all features count alike."""
    return ProfileScorer(tune=False).fit(Samples(X, codes, n_classes, weight))


def all_scores(scorer, X):
    return scorer.all_scores(Rows(X))


def best_scores(scorer, X, k=5):
    return scorer.candidates(Rows(X), k)[1]


@st.composite
def problems(draw):
    """A few rows with gaps everywhere: empty rows, unused features, labels without a row."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d, c = draw(st.integers(1, 30)), draw(st.integers(1, 12)), draw(st.integers(1, 8))
    size = draw(st.sampled_from([1e-6, 1.0, 1e6]))
    X = rng.random((n, d)) * (rng.random((n, d)) < 0.4) * size
    codes = rng.integers(0, draw(st.integers(1, c)), n)
    weight = rng.integers(0, 3, n) * 0.5 if draw(st.booleans()) else None
    return sp.csr_array(X.astype(np.float32)), codes, c, weight


# --- the formula ---


@given(problems())
def test_scores_are_the_formula(problem):
    X, codes, n_classes, weight = problem
    scorer = untuned(X, codes, n_classes, weight)
    expected = by_formula(X, codes, n_classes, X, weight)
    size = max(1e-30, np.abs(expected).max())
    scores = all_scores(scorer, X)
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-5 * size)
    found, best = scorer.candidates(Rows(X), n_classes)
    sorted_scores = -np.sort(-expected, axis=1)
    np.testing.assert_allclose(best, sorted_scores, rtol=1e-4, atol=1e-5 * size)
    np.testing.assert_array_equal(np.sort(found, axis=1)[0], np.arange(n_classes))
    np.testing.assert_array_equal(np.take_along_axis(scores, found, 1), best)


@given(problems(), st.integers(0, 30))
def test_rows_may_come_later(problem, first):
    X, codes, n_classes, weight = problem
    first = min(first, X.shape[0])
    parts = [None, None] if weight is None else [weight[:first], weight[first:]]
    whole = untuned(X, codes, n_classes, weight)
    grown = untuned(X[:first], codes[:first], n_classes, parts[0])
    if first:
        grown.candidates(Rows(X), 1)  # what was computed on the way must not stay
    grown.partial_fit(Samples(X[first:], codes[first:], n_classes, parts[1]))
    np.testing.assert_allclose(grown.sums_.toarray(), whole.sums_.toarray(), rtol=1e-5)
    size = max(1e-30, np.abs(all_scores(whole, X)).max())
    np.testing.assert_allclose(all_scores(grown, X), all_scores(whole, X), atol=1e-5 * size)


@given(problems())
def test_a_weight_is_a_number_of_copies(problem):
    X, codes, n_classes, _ = problem
    times = np.random.default_rng(0).integers(0, 4, codes.size)
    weighted = untuned(X, codes, n_classes, times.astype(float))
    copies = np.repeat(np.arange(codes.size), times)
    copied = untuned(X[copies], codes[copies], n_classes)
    np.testing.assert_allclose(weighted.sums_.toarray(), copied.sums_.toarray(), rtol=1e-5)


@given(problems(), st.sampled_from([1e-3, 7.0, 1e3]))
def test_the_unit_of_the_training_features_does_not_matter(problem, unit):
    X, codes, n_classes, weight = problem
    plain = all_scores(untuned(X, codes, n_classes, weight), X)
    scaled = all_scores(untuned(X * unit, codes, n_classes, weight), X)
    np.testing.assert_allclose(scaled, plain, rtol=1e-4, atol=1e-5 * max(1e-30, plain.max()))


def test_features_of_all_labels_and_of_a_few():
    """From one that every row has to some that a single row has, with labels past a full vector."""
    rng = np.random.default_rng(0)
    share = np.concatenate([[1.0, 0.9, 0.5], np.full(20, 0.1), np.full(60, 0.004)])
    X = sp.csr_array((rng.random((300, 83)) * (rng.random((300, 83)) < share)).astype(np.float32))
    codes = rng.integers(0, 101, 300)
    scorer = untuned(X, codes, 101)
    expected = by_formula(X, codes, 101, X)
    np.testing.assert_allclose(all_scores(scorer, X), expected, rtol=1e-4, atol=1e-4)
    found, best = scorer.candidates(Rows(X), 101)
    np.testing.assert_allclose(best, -np.sort(-expected, axis=1), rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(np.sort(found, axis=1), [np.arange(101)] * 300)


def test_scores_are_never_negative_and_zero_without_a_common_feature():
    scorer = untuned(X_WORDS, Y_WORDS, 41)
    scores = all_scores(scorer, X_WORDS)
    assert (scores >= 0).all()
    assert (scores[:, 40] == 0).all()  # a label without a row
    empty = Rows(sp.csr_array((2, 80), dtype=np.float32))
    found, best, at = scorer.candidates_and_scores(empty, 3, np.zeros((2, 2), dtype=np.int64))
    np.testing.assert_array_equal(found, [[0, 1, 2]] * 2)  # ties go to the smaller code
    assert (best == 0).all()
    assert (at == 0).all()


def test_labels_that_are_alike_tie_and_the_smaller_comes_first():
    X = sp.csr_array(np.array([[1, 0], [0, 1], [1, 0]], dtype=np.float32))
    codes, _ = untuned(X, np.array([2, 0, 1]), 3).candidates(Rows(X), 3)
    np.testing.assert_array_equal(codes, [[1, 2, 0], [0, 1, 2], [1, 2, 0]])


# --- more labels, odd forms ---


def test_new_labels():
    old = Y_WORDS < 25
    scorer = untuned(X_WORDS[old], Y_WORDS[old], 25)
    sums = scorer.sums_.toarray()
    scorer.partial_fit(Samples(X_WORDS[~old], Y_WORDS[~old], 40))
    whole = untuned(X_WORDS, Y_WORDS, 40)
    assert scorer.n_classes == 40
    assert_same_bits(scorer.sums_.toarray()[:, :25], sums)
    np.testing.assert_allclose(scorer.sums_.toarray(), whole.sums_.toarray(), rtol=1e-6)
    found, expected = (each.candidates(Rows(X_WORDS), 3)[0] for each in (scorer, whole))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "form", ["dense", "float64", "int64 indices", "unsorted", "stored zeros", "frozen"]
)
def test_forms_of_x(form):
    expected = untuned(X_WORDS, Y_WORDS, 40)
    X = X_WORDS.copy()
    if form == "dense":
        X = X.toarray()
    elif form == "float64":
        X = X.astype(np.float64)
    elif form == "int64 indices":
        X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    elif form == "unsorted":
        order = np.concatenate(
            [np.arange(a, b)[::-1] for a, b in zip(X.indptr, X.indptr[1:], strict=False)]
        )
        X = sp.csr_array((X.data[order], X.indices[order], X.indptr), shape=X.shape)
    elif form == "stored zeros":
        X = sp.csr_array(sp.hstack([X, sp.csr_array(([0.0], ([0], [0])), shape=(200, 1))]))[:, :80]
    else:
        for array in (X.data, X.indices, X.indptr):
            array.flags.writeable = False
    scorer = untuned(X, Y_WORDS, 40)
    np.testing.assert_allclose(scorer.sums_.toarray(), expected.sums_.toarray(), rtol=1e-6)
    np.testing.assert_allclose(best_scores(scorer, X), best_scores(expected, X_WORDS), rtol=1e-5)


def test_only_what_occurs_is_stored():
    X = sp.csr_array(np.array([[1, 0, 2], [0, 0, 1]], dtype=np.float32))
    scorer = untuned(X, np.array([0, 1]), 5, np.array([0.0, 1.0]))
    assert scorer.sums_.steps.size == 1
    assert scorer.sums_.shape == (3, 5)


def test_negative_features_are_refused_and_nothing_is_added():
    scorer = untuned(X_WORDS, Y_WORDS, 40)
    before = scorer.sums_.toarray()
    with pytest.raises(LocoleError, match="features that are not negative: fit again"):
        scorer.partial_fit(Samples(-X_WORDS, Y_WORDS, 40))
    assert_same_bits(scorer.sums_.toarray(), before)


# --- how much each feature counts ---


def tuned(**settings):
    return ProfileScorer(**settings).fit(Samples(X_WORDS, Y_WORDS, 40))


def test_feature_weights_multiply_the_evidence():
    scorer = untuned(X_WORDS, Y_WORDS, 40)
    all_scores(scorer, X_WORDS)  # what was computed on the way must not stay
    beta = np.random.default_rng(0).random(80).astype(np.float32)
    scorer.set_feature_weights(beta)
    expected = by_formula(X_WORDS, Y_WORDS, 40, X_WORDS.multiply(beta[None, :]).tocsr())
    np.testing.assert_allclose(all_scores(scorer, X_WORDS), expected, rtol=1e-4, atol=1e-4)


def test_tuning_changes_nothing_but_the_feature_weights():
    plain, scorer = untuned(X_WORDS, Y_WORDS, 40), tuned()
    assert_same_bits(scorer.sums_, plain.sums_)
    assert_same_bits(plain.feature_weights_, np.ones(80, dtype=np.float32))
    beta = scorer.feature_weights_
    expected = by_formula(X_WORDS, Y_WORDS, 40, X_WORDS.multiply(beta[None, :]).tocsr())
    np.testing.assert_allclose(all_scores(scorer, X_WORDS), expected, rtol=1e-4, atol=1e-4)


def test_tuning_is_the_same_for_any_number_of_threads():
    one = tuned().feature_weights_
    assert (one >= 0).all()
    assert np.isfinite(one).all()
    assert one.dtype == np.float32
    for n_jobs in (2, 4):
        assert_same_bits(tuned(n_jobs=n_jobs).feature_weights_, one)
    assert not np.array_equal(tuned(random_state=1).feature_weights_, one)


def test_words_of_no_meaning_count_less_after_tuning():
    rng = np.random.default_rng(0)
    y = np.arange(600) % 30
    own = np.eye(30)[y]
    noise = (rng.random((600, 40)) < 0.3).astype(float)
    X = sp.csr_array(np.hstack([own, noise]).astype(np.float32))
    beta = ProfileScorer().fit(Samples(X, y, 30)).feature_weights_
    assert beta[30:].mean() < 0.8 * beta[:30].mean()


def test_nothing_to_tune_by():
    """Labels with one row each, or rows without features."""
    X = X_WORDS[:40]
    scorer = ProfileScorer().fit(Samples(X, np.arange(40), 40))
    np.testing.assert_array_equal(scorer.feature_weights_, np.ones(80))
    empty = sp.csr_array((6, 80), dtype=np.float32)
    scorer = ProfileScorer().fit(Samples(empty, np.zeros(6, dtype=np.int64), 2))
    np.testing.assert_array_equal(scorer.feature_weights_, np.ones(80))


# --- plain and tuned as two sources ---


def test_sources_are_the_scores_without_and_with_the_feature_weights():
    scorer = tuned()
    assert scorer.sources == ["profiles", "tuned profiles"]
    codes = np.random.default_rng(0).integers(0, 40, (200, 7))
    found = scorer.source_scores(Rows(X_WORDS), codes)
    for i, each in enumerate([untuned(X_WORDS, Y_WORDS, 40), scorer]):
        assert_same_bits(found[..., i].copy(), each.scores_at(Rows(X_WORDS), codes))
    alone = untuned(X_WORDS, Y_WORDS, 40)
    assert alone.sources == ["profiles"]
    assert alone.source_scores(Rows(X_WORDS), codes).shape == (200, 7, 1)


@pytest.mark.parametrize("weights", [[1.0, 0.0], [0.0, 2.0], [0.3, 0.9]])
def test_the_weighted_sum_of_both_sources_is_one_profile(weights):
    weights, scorer = np.array(weights), tuned()
    codes = np.broadcast_to(np.arange(40), (200, 40))
    expected = scorer.source_scores(Rows(X_WORDS), codes) @ weights
    factor = scorer.set_source_weights(weights)
    assert factor == weights.sum()
    found = factor * scorer.scores_at(Rows(X_WORDS), codes)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    assert scorer.feature_weights_.dtype == np.float32


def test_two_weights_of_zero_leave_the_plain_profile():
    scorer = tuned()
    assert scorer.set_source_weights(np.zeros(2)) == 0
    np.testing.assert_array_equal(scorer.feature_weights_, np.ones(80))


# --- copies and files ---


@pytest.mark.parametrize(
    "remake", [copy.copy, copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p))]
)
def test_copies_learn_apart(remake):
    scorer = tuned()
    before = best_scores(scorer, X_WORDS)
    twin = remake(scorer)
    assert_same_bits(best_scores(twin, X_WORDS), before)
    twin.partial_fit(Samples(X_WORDS, Y_WORDS[::-1], 40))
    assert not np.array_equal(best_scores(twin, X_WORDS), before)
    assert_same_bits(best_scores(scorer, X_WORDS), before)


def test_files_hold_them_to_the_bit(tmp_path):
    scorer = tuned()
    write_model(tmp_path / "m", scorer)
    back = read_model(tmp_path / "m")
    assert_same_bits(best_scores(back, X_WORDS), best_scores(scorer, X_WORDS))
    for each in (back, scorer):
        each.partial_fit(Samples(X_WORDS[:50], Y_WORDS[:50], 45))
    assert_same_bits(back.sums_, scorer.sums_)
    assert_same_bits(best_scores(back, X_WORDS), best_scores(scorer, X_WORDS))


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf])
def test_files_with_impossible_sums_are_refused(bad, tmp_path):
    scorer = untuned(X_WORDS, Y_WORDS, 40)
    scorer.sums_.values[3] = bad
    write_model(tmp_path / "m", scorer)
    with pytest.raises(ModelFileError, match="not sums of features"):
        read_model(tmp_path / "m")


def test_weights_are_made_when_a_row_asks_for_them():
    """A model that has answered a few rows answers others as one that made all weights at once."""
    scorer = ProfileScorer(tune=False).fit(Samples(X_WORDS, Y_WORDS, Y_WORDS.max() + 1))
    whole = copy.copy(scorer)
    expected = whole.candidates(Rows(X_WORDS), 3)
    made = []
    for i in range(0, 200, 10):
        codes, scores = scorer.candidates(Rows(X_WORDS[i : i + 1]), 3)
        assert_same_bits(codes, expected[0][i : i + 1])
        assert_same_bits(scores, expected[1][i : i + 1])
        made.append(int(scorer._log_odds()._is_made.sum()))
    assert made == sorted(made)
    assert made[0] == np.unique(X_WORDS[:1].indices).size < made[-1]


@pytest.mark.parametrize("name", ["label_totals_", "feature_totals_"])
def test_totals_that_lie_are_refused_and_may_be_missing(name, tmp_path):
    scorer = ProfileScorer(tune=False).fit(Samples(X_WORDS, Y_WORDS, Y_WORDS.max() + 1))
    before = scorer.candidates(Rows(X_WORDS), 3)
    right = getattr(scorer, name)
    for value in (right[1:], right.astype(np.float64), np.full_like(right, np.nan), -right - 1):
        setattr(scorer, name, value)
        write_model(tmp_path / "m", scorer)
        with pytest.raises(ModelFileError, match="impossible totals"):
            read_model(tmp_path / "m")
    setattr(scorer, name, None)
    write_model(tmp_path / "m", scorer)
    after = read_model(tmp_path / "m").candidates(Rows(X_WORDS), 3)
    assert_same_bits(after[1], before[1])
