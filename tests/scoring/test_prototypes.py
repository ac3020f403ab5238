"""Prototypes against independent answers: discriminant analysis, brute force, plain numpy."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import scipy.sparse as sp
from same import assert_same_bits
from scipy.special import log_softmax
from sklearn.covariance import EmpiricalCovariance

from locole.dense_rows import DenseRows
from locole.exceptions import LocoleError, ModelFileError
from locole.kernels.prototypes import adagrad_rows
from locole.samples import Rows, Samples
from locole.scoring import PrototypeScorer, label_descent, prototypes
from locole.scoring.whitening import Whitening, label_sums, leave_one_out, unit


def rows_of(n_rows, n_classes, n_numbers=24, noise=0.6, seed=0):
    rng = np.random.default_rng(seed)
    codes = np.arange(n_rows) % n_classes
    spread = np.linspace(0.2, 2, n_numbers)  # numbers differ in how much they vary within labels
    centres = rng.normal(size=(n_classes, n_numbers))
    X = centres[codes] + noise * spread * rng.normal(size=(n_rows, n_numbers))
    return X.astype(np.float32), codes


X, CODES = rows_of(600, 40)
NEW, NEW_CODES = rows_of(1200, 40)
NEW, NEW_CODES = NEW[600:], NEW_CODES[600:]


def loss(scorer, X, codes):
    scores = scorer.all_scores(Rows(X))
    return -log_softmax(scores, axis=1)[np.arange(codes.size), codes].mean()


def accuracy(scorer, X, codes):
    return (scorer.candidates(Rows(X), 1)[0][:, 0] == codes).mean()


# --- whitening ---


def test_whitened_rows_have_unit_covariance_within_labels():
    found = Whitening.fit(DenseRows(X), CODES, np.ones(600), ridge=1e-6, n_jobs=None)
    Z = (unit(X) - found.mean) @ found.matrix
    means = np.stack([Z[c == CODES].mean(axis=0) for c in range(40)])
    within = EmpiricalCovariance(assume_centered=True).fit(Z - means[CODES]).covariance_
    np.testing.assert_allclose(within * 600 / 560, np.eye(24), atol=2e-3)


def test_a_ridge_shrinks_towards_rows_as_they_are():
    def cosines(ridge):
        found = Whitening.fit(DenseRows(X), CODES, np.ones(600), ridge=ridge, n_jobs=None)
        Z = found.points(X[:50])
        return Z @ Z.T

    np.testing.assert_allclose(cosines(1e5), cosines(None), atol=1e-3)
    assert abs(cosines(0.01) - cosines(None)).max() > 0.1


def test_weights_are_repetitions():
    weights = np.random.default_rng(0).integers(1, 4, 600)
    again = np.repeat(np.arange(600), weights)
    one = Whitening.fit(DenseRows(X), CODES, weights.astype(float), ridge=0.1, n_jobs=None)
    other = Whitening.fit(
        DenseRows(X[again]), CODES[again], np.ones(again.size), ridge=0.1, n_jobs=None
    )
    np.testing.assert_allclose(one.points(NEW), other.points(NEW), atol=1e-3)


def test_leaving_one_out_is_taking_the_mean_without_it():
    Z, weights = unit(X[:81]), np.linspace(0.5, 2, 81)
    codes = CODES[:81].copy()
    codes[80] = 40  # alone
    sums = label_sums(Z, codes, weights, 41)
    own, apart = leave_one_out(Z, sums[codes], weights)
    for i in range(81):
        others = (codes == codes[i]) & (np.arange(81) != i)
        mean = weights[others] @ Z[others]
        expected = 0 if not others.any() else Z[i] @ mean / np.linalg.norm(mean)
        np.testing.assert_allclose(apart[i], expected, atol=1e-5)
        whole = mean + weights[i] * Z[i]
        np.testing.assert_allclose(own[i], Z[i] @ whole / np.linalg.norm(whole), atol=1e-5)


@pytest.mark.parametrize("views", [1, 2])
def test_zeros_stay_zeros(views):
    scorer = PrototypeScorer(ridge=0.3, views=views).fit(Samples(X, CODES, 40))
    assert not scorer.all_scores(Rows(np.zeros((2, 24)))).any()


def test_cosines_of_two_views_are_means_of_those_of_either():
    def cosines(**settings):
        found = Whitening.fit(DenseRows(X), CODES, np.ones(600), n_jobs=None, **settings)
        Z = found.points(NEW[:50])
        return Z @ Z.T

    both = cosines(ridge=0.3, n_views=2)
    np.testing.assert_allclose(both, (cosines(ridge=None) + cosines(ridge=0.3)) / 2, atol=1e-5)
    np.testing.assert_array_equal(cosines(ridge=None, n_views=2), cosines(ridge=None))


@pytest.mark.parametrize(("ridge", "views"), [(None, 1), (0.3, 1), (0.3, 2)])
def test_vectors_pulled_back_have_the_same_products(ridge, views):
    found = Whitening.fit(
        DenseRows(X), CODES, np.ones(600), ridge=ridge, n_views=views, n_jobs=None
    )
    vectors = np.random.default_rng(0).normal(size=(3, found.width))
    row = unit(NEW[:1])[0].astype(np.float64)
    products = found.pulled_back(row, vectors) @ (row - found.mean)
    np.testing.assert_allclose(products, vectors @ found.points(NEW[:1])[0], rtol=1e-4, atol=1e-5)


# --- descent ---


def test_adagrad_as_in_numpy():
    rng = np.random.default_rng(0)
    for dim in (3, 16, 37):
        vectors, squares = rng.normal(size=(9, dim)).astype("f"), np.full(9, 0.1, dtype="f")
        slopes, codes = rng.normal(size=(4, dim)).astype("f"), np.array([7, 0, 3, 8])
        slopes[2] = 0
        expected, sums = vectors.copy(), squares.copy()
        sums[codes] += (slopes**2).mean(axis=1)
        expected[codes] -= 0.3 * slopes / np.sqrt(sums[codes])[:, None]
        adagrad_rows(vectors, codes, squares, slopes, np.float32(0.3))
        np.testing.assert_allclose(vectors, expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(squares, sums, rtol=1e-5)


@pytest.mark.parametrize("several", [False, True])
def test_a_step_follows_the_slope_of_the_cross_entropy(monkeypatch, several):
    monkeypatch.setattr(label_descent, "_BLOCK", 16)  # three blocks
    Z, weights = unit(X[:64]), np.linspace(0.5, 1.5, 64, dtype=np.float32)
    apart = np.linspace(-1, 0, 64, dtype=np.float32)
    vectors = np.random.default_rng(1).normal(size=(40, 24)).astype(np.float32)
    others = np.zeros((64, 40), dtype=np.int8)
    others[np.arange(64), (CODES[:64] + 3) % 40] = several
    given = sp.csr_array(others) if several else None
    rows = label_descent.Rows(Z, CODES[:64], weights, apart, given)

    def objective(V):
        scores = Z.astype(float) @ V.T
        scores[np.arange(64), CODES[:64]] += apart
        scores[others > 0] = -1e9
        return -(weights * log_softmax(scores, axis=1)[np.arange(64), CODES[:64]]).sum()

    moved, squares = vectors.copy(), np.full(40, 1e8, dtype=np.float32)
    label_descent._step(rows, np.arange(64), np.arange(40), moved, squares, np.float32(1), map)
    slopes = (vectors - moved) * 1e4
    for c, j in ((0, 0), (13, 5), (39, 23)):
        step = np.zeros((40, 24))
        step[c, j] = 1e-4
        V = vectors.astype(float)
        expected = (objective(V + step) - objective(V - step)) / 2e-4
        np.testing.assert_allclose(slopes[c, j], expected, atol=2e-3)


def test_groups_are_of_similar_labels(monkeypatch):
    monkeypatch.setattr(label_descent, "_SIMILAR", 8)
    kinds = np.repeat(np.eye(8), 8, axis=0) * 10
    vectors = (kinds + np.random.default_rng(0).normal(size=(64, 8))).astype(np.float32)
    group = label_descent._similar(vectors, np.random.default_rng(0))
    assert np.bincount(group).tolist() == [8] * 8
    together = (group[:, None] == group) & ~np.eye(64, dtype=bool)
    same_kind = (np.arange(64) // 8)[:, None] == np.arange(64) // 8
    assert together[same_kind].mean() > 5 * together[~same_kind].mean()


def test_batches_meet_every_row_once(monkeypatch):
    monkeypatch.setattr(label_descent, "_ALL", 16)
    monkeypatch.setattr(label_descent, "_SIMILAR", 12)
    monkeypatch.setattr(label_descent, "_DRAWN", 6)
    vectors = np.random.default_rng(0).normal(size=(41, 8)).astype(np.float32)
    batches = list(label_descent._batches(CODES, vectors, np.random.default_rng(0)))
    np.testing.assert_array_equal(
        np.sort(np.concatenate([rows for rows, _ in batches])), range(600)
    )
    for rows, labels in batches:
        assert np.isin(CODES[rows], labels).all()
        assert (np.diff(labels) > 0).all()


# --- the scorer ---


def test_refining_helps_and_so_does_whitening():
    means = PrototypeScorer(epochs=0, ridge=None).fit(Samples(X, CODES, 40))
    whitened = PrototypeScorer(epochs=0, ridge=0.3).fit(Samples(X, CODES, 40))
    refined = PrototypeScorer().fit(Samples(X, CODES, 40))
    losses = [loss(scorer, NEW, NEW_CODES) for scorer in (means, whitened, refined)]
    assert losses[1] < losses[0]
    assert losses[2] < losses[0]
    assert accuracy(refined, NEW, NEW_CODES) > accuracy(means, NEW, NEW_CODES)


def test_without_passes_they_are_label_means():
    scorer = PrototypeScorer(epochs=0, ridge=None).fit(Samples(X, CODES, 40))
    Z = unit(unit(X) - unit(X).mean(axis=0))
    means = np.stack([Z[c == CODES].mean(axis=0) for c in range(40)])
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    vectors = scorer.vectors_ * scorer.vector_scales_[:, None]  # bytes, of at most 127
    largest = np.abs(means).max(axis=1, keepdims=True)
    assert (np.abs(vectors / scorer.scale_ - means) <= largest / 253).all()


def test_the_scale_makes_new_rows_likely():
    scorer = PrototypeScorer(epochs=0, ridge=None).fit(Samples(X, CODES, 40))
    best = loss(scorer, NEW, NEW_CODES)
    for factor in (0.5, 2.0):
        other = copy.copy(scorer)
        other.vector_scales_ = np.float32(factor) * scorer.vector_scales_
        assert best < loss(other, NEW, NEW_CODES)


@pytest.mark.parametrize("most", [4096, 16])
def test_threads_do_not_change_a_bit(monkeypatch, most):
    monkeypatch.setattr(label_descent, "_ALL", most)
    monkeypatch.setattr(label_descent, "_SIMILAR", 16)
    monkeypatch.setattr(label_descent, "_BLOCK", 8)
    one, three = (PrototypeScorer(n_jobs=n).fit(Samples(X, CODES, 40)) for n in (1, 3))
    assert_same_bits(one.vectors_, three.vectors_)
    assert accuracy(one, NEW, NEW_CODES) > 0.6


def test_rows_in_two_parts_are_nearly_rows_at_once():
    once = PrototypeScorer().fit(Samples(X, CODES, 40))
    part = PrototypeScorer().fit(Samples(X[:480], CODES[:480] % 38, 38))
    part.partial_fit(Samples(X[480:], CODES[480:], 40))
    np.testing.assert_allclose(part.counts_.sum(), 600)
    assert accuracy(part, NEW, NEW_CODES) > accuracy(once, NEW, NEW_CODES) - 0.1


@pytest.mark.parametrize("n_rest", [20, 120])  # by themselves, and by learning all rows again
def test_rows_put_aside_are_learnt(n_rest):
    every, known = Samples(X, CODES, 40), slice(0, 600 - n_rest)
    scorer = PrototypeScorer(ridge=0.3).fit(Samples(X[known], CODES[known], 40))
    before = loss(scorer, NEW, NEW_CODES)
    scorer.learn_rest(every.take(np.arange(600 - n_rest, 600)), every)
    np.testing.assert_allclose(scorer.counts_, 15)
    assert scorer.vectors_.dtype == np.int8
    assert loss(scorer, NEW, NEW_CODES) < before


def test_many_rows_put_aside_are_learnt_as_if_they_had_never_been():
    every = Samples(X, CODES, 40)
    scorer = PrototypeScorer(ridge=0.3).fit(every.take(np.arange(480)))
    scorer.learn_rest(every.take(np.arange(480, 600)), every)
    assert_same_bits(scorer.vectors_, PrototypeScorer(ridge=0.3).fit(every).vectors_)


def test_a_label_with_one_row_does_not_recognise_itself():
    rng = np.random.default_rng(3)
    # Noise: whoever looks at training rows as new ones believes that every one of them is right.
    noise = rng.normal(size=(300, 24)).astype(np.float32)
    scorer = PrototypeScorer(epochs=2).fit(Samples(noise, np.arange(300) // 2, 150))
    assert loss(scorer, rng.normal(size=(200, 24)), rng.integers(150, size=200)) < 8


def test_weights_of_rows():
    weights = np.where(CODES == 5, 0.0, 1.0)
    scorer = PrototypeScorer().fit(Samples(X, CODES, 40, weights))
    assert scorer.counts_[5] == 0
    assert not scorer.sums_[5].any()


def test_memory_is_checked_before(monkeypatch):
    monkeypatch.setattr(prototypes, "available_bytes", lambda: 1000)
    with pytest.raises(LocoleError, match="prototypes of 40 labels with 24 numbers each take"):
        PrototypeScorer().fit(Samples(X, CODES, 40))


@pytest.mark.parametrize(
    "parameters", [{"ridge": 0}, {"ridge": "some"}, {"views": 3}, {"epochs": -1}]
)
def test_parameters(parameters):
    with pytest.raises(LocoleError, match=next(iter(parameters))):
        PrototypeScorer(**parameters).fit(Samples(X, CODES, 40))


# --- several labels ---


def test_labels_of_the_same_row_do_not_compete():
    """Every row has its label and its parent: both are to be found, though they never occur apart."""
    parents = 40 + CODES // 10
    codes = np.column_stack([CODES, parents]).ravel()
    several = Samples(X, codes, 44, starts=np.arange(0, 1201, 2))

    def right(scorer):
        found = scorer.candidates(Rows(NEW), 2)[0]
        both = np.column_stack([NEW_CODES, 40 + NEW_CODES // 10])
        return (found[:, :, None] == both[:, None, :]).any(axis=1).mean()

    scorer = PrototypeScorer().fit(several)
    assert right(scorer) > 0.8
    scorer.partial_fit(several.take(np.arange(50)))
    assert scorer.counts_.sum() == 1300


def test_one_label_each_in_either_form():
    one = PrototypeScorer().fit(Samples(X, CODES, 40))
    other = PrototypeScorer().fit(Samples(X, CODES, 40, starts=np.arange(601)))
    assert_same_bits(one.vectors_, other.vectors_)


def test_bytes_answer_like_floats(monkeypatch):
    packed = PrototypeScorer().fit(Samples(X, CODES, 40))
    monkeypatch.setattr(PrototypeScorer, "_pack", lambda self, dither=None: None)
    plain = PrototypeScorer().fit(Samples(X, CODES, 40))
    assert packed.vectors_.dtype == packed.sums_.dtype == np.int8
    assert plain.vectors_.dtype == np.float32
    scores, expected = (scorer.all_scores(Rows(NEW)) for scorer in (packed, plain))
    assert np.abs(scores - expected).max() < 0.02 * np.abs(expected).max()
    assert (scores.argmax(axis=1) == expected.argmax(axis=1)).mean() > 0.98


def test_many_small_changes_of_bytes_add_up():
    """Every change is far less than what a byte can tell; rounding to the nearest would undo it."""
    scorer = PrototypeScorer(epochs=0, ridge=None).fit(Samples(X, CODES, 40))
    first = scorer.sums_[5] * scorer.sum_scales_[5]
    row = unit(NEW[:1])
    for _ in range(100):
        scorer.partial_fit(Samples(row, np.array([5]), 40))
    moved = scorer.sums_[5] * scorer.sum_scales_[5] - first
    np.testing.assert_allclose(moved / 100, Whitening(scorer.mean_, None).points(row)[0], atol=0.06)


def test_labels_with_one_row_each():
    """Nothing varies within labels, but for rounding errors."""
    rows, _ = rows_of(300, 40, seed=5)
    codes = np.arange(300)
    codes[-1] = 0
    for ridge in (0.03, "auto"):
        scorer = PrototypeScorer(ridge=ridge).fit(Samples(rows, codes, 299))
        assert np.isfinite(scorer.vectors_).all()
        assert accuracy(scorer, rows[1:-1], codes[1:-1]) > 0.9


def test_counts_whose_sum_is_infinite_are_refused():
    rng = np.random.default_rng(0)
    scorer = PrototypeScorer().fit(Samples(rng.normal(size=(60, 32)), np.arange(60) % 3, 3))
    scorer._check_learnt()
    scorer.counts_ = np.full(3, 1e308)
    with pytest.raises(ModelFileError, match="are not numbers"):
        scorer._check_learnt()
