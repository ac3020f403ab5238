"""Points and profiles together against brute force over all labels, and how they are weighed."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from instances import EMBEDDINGS, name_of
from scipy.optimize import minimize

from locole.decoders import choose_decoder, decode
from locole.embeddings import Embedding, Gaussian, Kerdock
from locole.mixing import (
    CANDIDATES,
    Mixture,
    choose_weights,
    point_scores,
    repeated,
)
from locole.profiles import Profiles

SMALL = [e for e in EMBEDDINGS if e.n_classes <= CANDIDATES]
each_small = pytest.mark.parametrize("embedding", SMALL, ids=name_of)


def made(embedding: Embedding, seed: int, n_rows: int = 12):
    """Profiles of some rows, the rows, and points for them."""
    rng = np.random.default_rng(seed)
    n = embedding.n_classes
    X = rng.random((n_rows, 9)) * (rng.random((n_rows, 9)) < 0.5)
    X = sp.csr_array(X.astype(np.float32))
    profiles = Profiles().fit(X, rng.integers(0, n, n_rows), n)
    Z = rng.standard_normal((n_rows, embedding.real_dim)).astype(np.float32)
    return profiles, X, Z


def every_score(embedding, profiles, weight, X, Z):
    n = embedding.n_classes
    every = np.broadcast_to(np.arange(n), (X.shape[0], n))
    G = embedding.real_rows(np.arange(n), np.float64)
    return Z.astype(np.float64) @ G.T + weight * profiles.scan(X, 1, found=every).at


# --- answers ---


@each_small
@settings(max_examples=5)
@given(seed=st.integers(0, 2**32 - 1), weight=st.sampled_from([0.0, 0.3, 50.0]))
def test_all_labels_are_candidates(embedding, seed, weight):
    """Up to 32 labels the answer is that of brute force."""
    profiles, X, Z = made(embedding, seed)
    decoder = choose_decoder(embedding)
    expected = every_score(embedding, profiles, weight, X, Z)
    close = 1e-5 * max(1.0, np.abs(expected).max())
    for k in {1, embedding.n_classes}:
        codes, scores = Mixture(embedding, decoder, profiles, weight).best(X, Z, k)
        assert codes.shape == scores.shape == (12, k)
        assert codes.dtype == np.int64
        assert all(len(set(row)) == k for row in codes)
        np.testing.assert_allclose(scores, -np.sort(-expected, axis=1)[:, :k], atol=close)
        np.testing.assert_allclose(np.take_along_axis(expected, codes, 1), scores, atol=close)
    found = Mixture(embedding, decoder, profiles, weight).every(X, Z)
    np.testing.assert_allclose(found, expected, atol=close)


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32 - 1), k=st.sampled_from([1, 5, 20, 40, 150]))
def test_many_labels(seed, k):
    """Scores are true, and no candidate of either side has a better one that was left out."""
    embedding = Kerdock(301, dim=64)
    profiles, X, Z = made(embedding, seed)
    expected = every_score(embedding, profiles, 0.5, X, Z)
    codes, scores = Mixture(embedding, choose_decoder(embedding), profiles, 0.5).best(X, Z, k)
    np.testing.assert_allclose(np.take_along_axis(expected, codes, 1), scores, atol=1e-4)
    assert (np.diff(scores, axis=1) <= 0).all()
    assert all(len(set(row)) == k for row in codes)
    wanted = min(max(2 * k, CANDIDATES), 301)
    by_point = decode(embedding, Z, k=wanted)[0]
    by_profile = profiles.scan(X, wanted).codes
    for i in range(len(Z)):
        rest = np.setdiff1d(np.union1d(by_point[i], by_profile[i]), codes[i])
        assert expected[i, rest].max(initial=-np.inf) <= scores[i, -1] + 1e-4


def test_either_side_alone_can_bring_the_winner():
    """A label with the best profile and a poor vector wins if profiles count much, and vice versa."""
    embedding = Kerdock(301, dim=64)
    X = sp.csr_array(np.eye(4, dtype=np.float32))
    profiles = Profiles().fit(X, np.array([10, 20, 30, 40]), 301)
    Z = embedding.real_rows(np.array([210, 220, 230, 240])).astype(np.float32)
    decoder = choose_decoder(embedding)
    by_profile = Mixture(embedding, decoder, profiles, 100.0).best(X, Z, 1)[0][:, 0]
    by_point = Mixture(embedding, decoder, profiles, 1e-6).best(X, Z, 1)[0][:, 0]
    np.testing.assert_array_equal(by_profile, [10, 20, 30, 40])
    np.testing.assert_array_equal(by_point, [210, 220, 230, 240])


def test_ties_go_to_the_smaller_label():
    embedding = Kerdock(301, dim=64)
    nothing = sp.csr_array((2, 4), dtype=np.float32)
    profiles = Profiles().fit(sp.csr_array(np.eye(4, dtype=np.float32)), np.arange(4) + 7, 301)
    Z = np.zeros((2, 64), dtype=np.float32)
    codes, scores = Mixture(embedding, choose_decoder(embedding), profiles, 1.0).best(nothing, Z, 5)
    np.testing.assert_array_equal(codes, [np.arange(5)] * 2)
    assert (scores == 0).all()
    # two labels at the same distance, one of them listed by both sides
    Z = embedding.real_rows([3, 9]).sum(axis=0, keepdims=True).astype(np.float32)
    mixture = Mixture(embedding, choose_decoder(embedding), profiles, 1.0)
    codes, scores = mixture.best(nothing[:1], Z, 2)
    np.testing.assert_array_equal(codes, [[3, 9]])
    assert scores[0, 0] == scores[0, 1]


def test_weight_zero_is_plain_decoding():
    embedding = Gaussian(100, dim=20)
    profiles, X, Z = made(embedding, 0)
    codes, scores = Mixture(embedding, choose_decoder(embedding), profiles, 0.0).best(X, Z, 6)
    expected_codes, expected_scores = decode(embedding, Z, k=6)
    np.testing.assert_array_equal(codes, expected_codes)
    np.testing.assert_allclose(scores, expected_scores, rtol=1e-6)


@pytest.mark.parametrize("n_rows", [0, 1, 31, 32, 33, 70])
def test_point_scores(n_rows):
    embedding = Kerdock(301, dim=64)
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((n_rows, 64)).astype(np.float32)
    codes = rng.integers(0, 301, (n_rows, 5))
    expected = np.einsum("ikj,ij->ik", embedding.real_rows(codes.ravel()).reshape(n_rows, 5, 64), Z)
    found = point_scores(embedding, Z, codes)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert found.dtype == np.float64


@given(arrays(np.int64, (3, 7), elements=st.integers(0, 5)))
def test_repeated(codes):
    expected = [[code in row[:j] for j, code in enumerate(row)] for row in codes.tolist()]
    np.testing.assert_array_equal(repeated(codes), expected)


# --- weights ---


def trial(seed: int, n_sources: int = 2, n_rows: int = 60, n_candidates: int = 7):
    """Sources of different quality and scale; a label that is found in most rows."""
    rng = np.random.default_rng(seed)
    right = np.zeros((n_rows, n_candidates), dtype=bool)
    right[np.arange(n_rows), rng.integers(0, n_candidates, n_rows)] = True
    right[::9] = False
    quality = rng.uniform(-0.3, 1.5, n_sources)
    scale = 10.0 ** rng.integers(-3, 4, n_sources)
    noise = rng.standard_normal((n_rows, n_candidates, n_sources))
    valid = rng.random(right.shape) < 0.9
    valid |= right
    return (right[..., None] * quality + noise) * scale, right, valid


def loss_of(weights, scores, right, valid):
    """Mean −log p of the right candidate over the rows that have it, from the definition."""
    total, n = 0.0, 0
    for s, r, v in zip(scores @ np.asarray(weights), right, valid, strict=True):
        if (r & v).any():
            total += np.log(np.exp(s[v] - s[v].max()).sum()) + s[v].max() - s[r & v][0]
            n += 1
    return total / n


@given(seed=st.integers(0, 2**32 - 1), n_sources=st.integers(1, 3))
def test_weights_are_optimal_and_never_negative(seed, n_sources):
    """As good as scipy's best from several places, and as every point of a grid around."""
    scores, right, valid = trial(seed, n_sources)
    weights = choose_weights(scores, right, valid)
    assert weights.shape == (n_sources,)
    assert (weights >= 0).all()
    found = loss_of(weights, scores, right, valid)
    unit = 1 / scores[valid].std(axis=0)
    for start in (0.0, 0.1, 2.0):
        best = minimize(
            lambda w: loss_of(w * unit, scores, right, valid),
            np.full(n_sources, start),
            method="L-BFGS-B",
            bounds=[(0, None)] * n_sources,
        )
        assert found <= best.fun + 1e-4
    for factor in (0.0, 0.5, 0.9, 1.1, 2.0):
        assert found <= loss_of(factor * weights, scores, right, valid) + 1e-5


@given(seed=st.integers(0, 2**32 - 1))
def test_weights_on_a_grid(seed):
    scores, right, valid = trial(seed)
    unit = 1 / scores[valid].std(axis=0)
    found = loss_of(choose_weights(scores, right, valid), scores, right, valid)
    grid = [(a, b) for a in np.linspace(0, 3, 7) for b in np.linspace(0, 3, 7)]
    assert found <= min(loss_of(g * unit, scores, right, valid) for g in grid) + 1e-5


@given(seed=st.integers(0, 2**32 - 1), source=st.integers(0, 1), factor=st.sampled_from([1e-6, 50]))
def test_the_unit_of_a_source_does_not_matter(seed, source, factor):
    scores, right, valid = trial(seed)
    plain = choose_weights(scores, right, valid)
    scores[..., source] *= factor
    scaled = choose_weights(scores, right, valid)
    expected = plain / np.where(np.arange(2) == source, factor, 1.0)
    np.testing.assert_allclose(scaled, expected, rtol=1e-3, atol=1e-3 * expected.max() + 1e-12)


def test_a_source_that_misleads_gets_no_weight():
    scores, right, valid = trial(0)
    scores[..., 0] = 3.0 * right + 0.5 * np.random.default_rng(1).standard_normal(right.shape)
    scores[..., 1] = -1.0 * right + np.random.default_rng(2).standard_normal(right.shape)
    good, bad = choose_weights(scores, right, valid)
    assert good > 0
    assert bad == 0


@given(seed=st.integers(0, 2**32 - 1))
def test_sources_of_either_sign_are_held_back_a_little(seed):
    """The optimum of the mean loss and half a thousandth of their weights' squares."""
    scores, right, valid = trial(seed, 3)
    unit = 1 / scores[valid].std(axis=0)
    found = choose_weights(scores, right, valid, signed=2)
    assert found[0] >= 0

    def objective(weights):
        penalty = 5e-4 * np.square(weights[1:]).sum()
        return loss_of(weights * unit, scores, right, valid) + penalty

    best = minimize(
        objective, np.zeros(3), method="L-BFGS-B", bounds=[(0, None), (None, None), (None, None)]
    )
    assert objective(found / unit) <= best.fun + 1e-4


def test_a_source_that_misleads_may_count_negatively():
    scores, right, valid = trial(0)
    scores[..., 1] = -1.0 * right + np.random.default_rng(2).standard_normal(right.shape)
    good, bad = choose_weights(scores, right, valid, signed=1)
    assert good >= 0
    assert bad < -0.3


def test_no_row_has_its_label_among_the_candidates():
    scores, right, valid = trial(0)
    np.testing.assert_array_equal(choose_weights(scores, right & False, valid), [1, 1])
    np.testing.assert_array_equal(choose_weights(scores, right, valid & ~right), [1, 1])
    np.testing.assert_array_equal(choose_weights(scores, right & False, valid, signed=1), [1, 0])


@pytest.mark.parametrize("constant", [0.0, 5.0])
def test_a_source_that_says_nothing(constant):
    scores, right, valid = trial(3)
    alone = choose_weights(scores[..., :1], right, valid)
    scores[..., 1] = constant
    weights = choose_weights(scores, right, valid)
    assert np.isfinite(weights).all()
    np.testing.assert_allclose(weights[0], alone[0], rtol=1e-3)


def test_labels_that_are_always_first_give_finite_weights():
    """The loss has no minimum: some large weight will do."""
    _, right, valid = trial(4)
    scores = np.stack([right * 1.0, right * 2.0], axis=-1)
    weights = choose_weights(scores, right, valid)
    assert np.isfinite(weights).all()
    assert (weights > 0).any()
    assert loss_of(weights, scores, right, valid) < 1e-2
