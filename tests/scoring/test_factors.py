"""Low-rank factors: steps against the formula, what labels learn from each other, files."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from same import assert_same_bits
from scipy.special import softmax

from locole.exceptions import ModelFileError
from locole.io import read_model, write_model
from locole.kernels.factors import Batches, Factors, descend
from locole.regressors.storage import pack, unpack
from locole.samples import Rows, Samples
from locole.scoring import FactorScorer


def languages(*, n_rows=6000, words=150, n_classes=200):
    """Labels are five meanings, and a row says them all in one language or the other.

    Labels of odd numbers have rows in both languages, those of even numbers in the first only.
    """
    rng = np.random.default_rng(0)
    codes = rng.integers(0, n_classes, n_rows)
    meanings = np.array([rng.choice(words, 5, replace=False) for _ in range(n_classes)])
    second = np.where(codes % 2, rng.integers(0, 2, n_rows), 0)
    X = bags(meanings[codes] + words * second[:, None], 2 * words)
    even = np.arange(0, n_classes, 2)
    return Samples(X, codes, n_classes), bags(meanings[even] + words, 2 * words), even


def bags(columns, n_features):
    rows = np.repeat(np.arange(len(columns)), columns.shape[1])
    ones = np.ones(columns.size, dtype=np.float32)
    return sp.csr_array((ones, (rows, columns.ravel())), shape=(len(columns), n_features))


def test_words_that_mean_the_same_are_learnt_from_other_labels():
    samples, X, codes = languages()
    found = FactorScorer(n_blocks=1).fit(samples).candidates(Rows(X), 10)[0]
    assert (found == codes[:, None]).any(axis=1).mean() > 0.8


def problem(*, n_rows=90, n_features=12, n_classes=7, seed=0):
    rng = np.random.default_rng(seed)
    X = sp.random_array((n_rows, n_features), density=0.4, rng=rng, format="csr", dtype=np.float32)
    return Samples(sp.csr_array(X), rng.integers(0, n_classes, n_rows), n_classes)


@pytest.mark.parametrize("starts", [[0, 1, 2, 3, 4, 5], [0, 2, 3, 6, 7, 9]], ids=["one", "several"])
def test_a_step_is_the_formulas(starts):
    rng = np.random.default_rng(1)
    samples = problem(n_rows=5)
    starts = np.array(starts)
    codes = np.concatenate([rng.choice(7, n, replace=False) for n in np.diff(starts)])
    E, V = (rng.standard_normal((n, 64)).astype(np.float32) / 8 for n in (12, 7))
    squares = rng.random(12, dtype=np.float32) + 1, rng.random(7, dtype=np.float32) + 1
    weight, negatives = rng.random(5, dtype=np.float32) + 0.5, np.array([[6, 0, 6]])
    factors = Factors(E.copy(), V.copy(), squares[0].copy(), squares[1].copy())
    order, rate = np.array([3, 1, 4, 0, 2]), np.array([0.3], dtype=np.float32)
    X = samples.X
    slots = np.full(7, -1)
    batches = Batches(5, order, codes, starts, weight, negatives, rate)
    loss = descend(X.indptr, X.indices, X.data, batches, factors, slots)

    there = np.unique(np.append(codes, negatives))
    dense = X.toarray().astype(np.float64)
    p = np.zeros((5, 7))
    p[:, there] = softmax(dense @ E @ V[there].T, axis=1)
    target = np.zeros((5, 7))
    for i, own in enumerate(np.split(codes, starts[1:-1])):
        target[i, own] = 1 / own.size
    logs = np.log(p, where=p > 0, out=np.zeros_like(p))
    assert loss == pytest.approx(-(weight * (target * logs).sum(axis=1)).sum(), rel=1e-5)
    G = weight[:, None] * (p - target)
    slopes = G.T @ dense @ E
    sums = squares[1] + (slopes**2).mean(axis=1)
    np.testing.assert_allclose(factors.label_squares, sums, rtol=1e-5)
    expected = V - 0.3 * slopes / np.sqrt(sums)[:, None]
    np.testing.assert_allclose(factors.labels, expected, atol=1e-5)
    sums, expected = squares[0].astype(np.float64), E.astype(np.float64)
    for i in order:
        slope = G[i] @ V
        for f in np.flatnonzero(dense[i]):
            sums[f] += (dense[i, f] * slope) @ (dense[i, f] * slope) / 64
            expected[f] -= 0.3 * dense[i, f] * slope / np.sqrt(sums[f])
    np.testing.assert_allclose(factors.features, expected, atol=1e-5)
    assert (slots == -1).all()


def test_threads_change_no_bit():
    samples = problem()
    one = FactorScorer(n_blocks=2, n_jobs=1).fit(samples)
    other = FactorScorer(n_blocks=2, n_jobs=3).fit(samples)
    assert_same_bits(other.feature_vectors_, one.feature_vectors_)
    assert_same_bits(other.label_vectors_, one.label_vectors_)


def test_blocks_are_learnt_independently():
    samples = problem()
    one, two = (FactorScorer(n_blocks=n).fit(samples) for n in (1, 2))
    features, both = unpack(one._features), unpack(two._features)
    # A byte is a part of the largest number of its vector, also in the other block.
    np.testing.assert_allclose(both[:, :64], features, atol=np.abs(both).max() / 127)
    assert not np.allclose(both[:, 64:], features, atol=np.abs(both).max() / 12)


def test_new_labels_are_learnt_and_old_features_kept():
    samples = problem(n_rows=400)
    scorer = FactorScorer(n_blocks=1).fit(samples)
    new = sp.csr_array(np.eye(12, dtype=np.float32)[[11] * 60])
    rows = Rows(new[:1])
    assert scorer.n_classes == 7
    for _ in range(5):
        scorer.partial_fit(Samples(new, np.full(60, 8), 9))
    assert scorer.n_classes == 9
    assert scorer.candidates(rows, 1)[0].item() == 8


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("feature_vectors_", np.full((12, 64), np.nan, dtype=np.float32), "are not numbers"),
        ("label_vectors_", np.zeros((7, 64)), "are not numbers"),
        ("label_vectors_", np.zeros((7, 64), dtype=np.float32), "are not numbers"),
        ("label_vectors_", np.zeros((7, 32), dtype=np.int8), "do not fit together"),
        ("label_scales_", None, "are not numbers"),
        ("label_scales_", np.ones(6, dtype=np.float32), "are not numbers"),
        ("feature_scales_", np.full(12, np.inf, dtype=np.float32), "are not numbers"),
        ("feature_squares_", np.ones((1, 5), dtype=np.float32), "do not fit together"),
        ("label_squares_", np.zeros((1, 7), dtype=np.float32), "do not fit together"),
    ],
)
def test_a_file_that_lies_is_refused(tmp_path, name, value, message):
    scorer = FactorScorer(n_blocks=1).fit(problem())
    setattr(scorer, name, value)
    write_model(tmp_path / "m", scorer)
    with pytest.raises(ModelFileError, match=message):
        read_model(tmp_path / "m")


def test_few_rows_and_many_are_scored_alike():
    scorer = FactorScorer().fit(problem(n_rows=400))
    X = problem(n_rows=50).X
    codes, scores = scorer.candidates(Rows(X), 3)
    for i in range(X.shape[0]):
        one = scorer.candidates(Rows(X[i : i + 1]), 3)
        assert_same_bits(one[0][0], codes[i])
        assert_same_bits(one[1][0], scores[i])


def test_many_small_steps_are_not_rounded_away():
    """Rounding to the nearest byte would lose each of them."""
    rng = np.random.default_rng(0)
    W = np.full((1, 64), 0.3, dtype=np.float32)
    W[0, 0] = 127
    for _ in range(400):
        W = unpack(pack(W + np.float32(0.05) * (W < 100), "int8", rng))
    assert W[0, 1:].mean() == pytest.approx(0.3 + 400 * 0.05, rel=0.2)


def test_squares_whose_sum_is_beyond_single_precision():
    samples = problem()
    scorer = FactorScorer(n_blocks=1).fit(samples)
    scorer.label_squares_[:] = 3e38
    assert np.isfinite(unpack(scorer.partial_fit(samples)._labels)).all()


# --- features of one row ---


def test_what_a_single_row_has_is_not_learnt():
    samples = problem()
    own = sp.eye_array(samples.n_rows, dtype=np.float32, format="csr") * 5
    X = sp.csr_array(sp.hstack([samples.X, own], format="csr"))
    scorer = FactorScorer(n_blocks=1).fit(samples._replace(X=X))
    n = samples.X.shape[1]
    assert not scorer.feature_vectors_[n:].any()

    # The others as if they had been alone, at the length of the whole rows.
    lengths = [np.sqrt((rows.power(2)).sum(axis=1)) for rows in (X, samples.X)]
    scaled = sp.csr_array(sp.diags_array(lengths[0] / lengths[1]) @ samples.X, dtype=np.float32)
    alone = FactorScorer(n_blocks=1).fit(samples._replace(X=scaled))
    np.testing.assert_allclose(
        scorer.all_scores(Rows(X)), alone.all_scores(Rows(samples.X)), rtol=2e-2, atol=2e-2
    )


def test_rows_without_a_common_feature():
    X = sp.eye_array(40, dtype=np.float32, format="csr")
    scorer = FactorScorer(n_blocks=1).fit(Samples(sp.csr_array(X), np.arange(40) % 3, 3))
    assert not scorer.all_scores(Rows(sp.csr_array(X))).any()
    later = scorer.partial_fit(Samples(sp.csr_array(X), np.arange(40) % 3, 3))
    assert np.isfinite(later.all_scores(Rows(sp.csr_array(X)))).all()
