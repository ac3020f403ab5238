"""Softmax over all labels against a dense layer in double precision, for every family."""

from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import EMBEDDINGS, name_of

import locole.cross_entropy as module
from locole.cross_entropy import Softmax
from locole.embeddings import (
    Embedding,
    Gaussian,
    Gold,
    Kerdock,
    Nelson,
    OneHot,
    Rademacher,
    ReedSolomonSimplex,
)
from locole.exceptions import LocoleError
from locole.targets import Targets

each = pytest.mark.parametrize("embedding", EMBEDDINGS, ids=name_of)
EPS = float(np.finfo(np.float32).eps)


def dense_softmax(
    embedding: Embedding, Z: np.ndarray, codes: np.ndarray, smoothing: float = 0.0, offsets=0.0
):
    """Loss and gradient from the definition: all logits, all probabilities."""
    G = embedding.real_rows(np.arange(embedding.n_classes), np.float64)
    logits = Z.astype(np.float64) @ G.T + offsets
    peak = logits.max(axis=1, keepdims=True)
    log_p = logits - peak - np.log(np.exp(logits - peak).sum(axis=1, keepdims=True))
    target = np.full(log_p.shape, smoothing / embedding.n_classes)
    target[np.arange(len(Z)), codes] += 1 - smoothing
    return -(target * log_p).sum(axis=1), (np.exp(log_p) - target) @ G


def check(
    embedding: Embedding, Z: np.ndarray, codes: np.ndarray, smoothing: float = 0.0, offsets=None
) -> None:
    """Within 1e-5 of the scale of each, and what float32 logits of this size cannot tell."""
    Z = Z.astype(np.float32)
    loss, gradient = Softmax(embedding, label_smoothing=smoothing, offsets=offsets)(Z, codes)
    expected_loss, expected = dense_softmax(
        embedding, Z, codes, smoothing, 0.0 if offsets is None else offsets
    )
    assert loss.shape == (len(Z),)
    assert gradient.shape == Z.shape
    assert gradient.dtype == np.float32
    blur = 4 * EPS * np.linalg.norm(Z.astype(np.float64), axis=1)
    assert (np.abs(loss - expected_loss) <= 1e-5 * np.maximum(1, expected_loss) + blur).all()
    off = np.linalg.norm(gradient - expected, axis=1)
    assert (off <= 1e-5 * np.maximum(1, np.linalg.norm(expected, axis=1)) + blur).all()


def points(embedding: Embedding, rng: np.random.Generator, n_rows: int, scale: float = 1.0):
    """Noise and label vectors, so that some labels stand out, and labels that repeat."""
    codes = rng.integers(0, embedding.n_classes, n_rows)
    codes[n_rows // 2 :] = codes[0]
    near = embedding.real_rows(rng.integers(0, embedding.n_classes, n_rows))
    Z = rng.standard_normal((n_rows, embedding.real_dim)) + 3 * rng.random((n_rows, 1)) * near
    return scale * Z, codes


# --- every family ---


@each
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_equals_the_dense_layer(embedding, smoothing):
    Z, codes = points(embedding, np.random.default_rng(0), 37)
    check(embedding, Z, codes, smoothing)


@each
@settings(max_examples=8)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_rows=st.integers(1, 40),
    scale=st.sampled_from([1e-6, 1e-3, 0.3, 1.0, 5.0, 30.0, 1e3, 1e4]),
    smoothing=st.sampled_from([0.0, 0.1, 0.9]),
)
def test_points_of_every_size(embedding, seed, n_rows, scale, smoothing):
    Z, codes = points(embedding, np.random.default_rng(seed), n_rows, scale)
    check(embedding, Z, codes, smoothing)


@each
def test_one_logit_far_above_all_others(embedding):
    """The peak is the right label's, another's, or the last one's that the loop meets."""
    n = embedding.n_classes
    winners = np.array([0, n // 2, n - 1, n - 1])
    Z = 200 * embedding.real_rows(winners)
    for codes in (winners, np.zeros(4, dtype=np.int64), np.full(4, n - 1)):
        check(embedding, Z, codes)
        check(embedding, -Z, codes)
        check(embedding, Z, codes, 0.3)


@each
def test_all_logits_equal(embedding):
    codes = np.arange(20) % embedding.n_classes
    Z = np.zeros((20, embedding.real_dim), dtype=np.float32)
    loss, gradient = Softmax(embedding)(Z, codes)
    np.testing.assert_allclose(loss, np.log(embedding.n_classes), rtol=1e-6, atol=1e-6)
    every = embedding.real_rows(np.arange(embedding.n_classes), np.float64)
    expected = every.mean(axis=0) - every[codes]
    np.testing.assert_allclose(gradient, expected, atol=2e-6)


@each
def test_the_gradient_is_the_slope_of_the_loss(embedding):
    """Central differences of our own loss along random directions."""
    rng = np.random.default_rng(1)
    Z, codes = points(embedding, rng, 19)
    Z = Z.astype(np.float32)
    softmax = Softmax(embedding, label_smoothing=0.2)
    gradient = softmax(Z, codes)[1].astype(np.float64)
    direction = rng.standard_normal(Z.shape)
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    h = 0.02
    ahead, behind = ((Z + s * h * direction).astype(np.float32) for s in (1, -1))
    slope = (softmax(ahead, codes)[0] - softmax(behind, codes)[0]) / (2 * h)
    np.testing.assert_allclose(slope, (gradient * direction).sum(axis=1), atol=2e-3)


@each
def test_labels_pull_towards_themselves(embedding):
    """A step against the gradient lowers the loss, and every row's loss is its own."""
    rng = np.random.default_rng(2)
    Z, codes = points(embedding, rng, 21)
    Z = Z.astype(np.float32)
    softmax = Softmax(embedding)
    loss, gradient = softmax(Z, codes)
    assert (softmax(Z - np.float32(0.1) * gradient, codes)[0] <= loss + 1e-5).all()
    for i in (0, 15, 16, 20):
        alone_loss, alone = softmax(Z[[i]], codes[[i]])
        np.testing.assert_allclose(alone_loss, loss[[i]], rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(alone, gradient[[i]], atol=1e-5)


@each
def test_offsets_are_added_to_the_logits(embedding):
    rng = np.random.default_rng(3)
    Z, codes = points(embedding, rng, 21)
    offsets = 3 * rng.standard_normal(embedding.n_classes).astype(np.float32)
    check(embedding, Z, codes, 0.0, offsets)
    check(embedding, Z, codes, 0.3, offsets)
    check(embedding, Z, codes, 0.3, np.zeros_like(offsets))


# --- the transforms' own corners ---

TRANSFORMED = [
    Kerdock(3001, dim=256),
    Kerdock(700, dim=64, assignment="random"),
    Gold(1000, dim=128),
    Kerdock(300, dim=64, assignment=np.arange(300) * 6 + 5),
    Nelson(3001, dim=127),
    Nelson(1000, dim=131),
    Nelson(700, dim=67, assignment="random"),
    Nelson(300, dim=61, assignment=np.arange(300) * 6 + 5),
    Nelson(1500, dim=23, r=3),
]
each_transformed = pytest.mark.parametrize("embedding", TRANSFORMED, ids=name_of)


@each_transformed
@pytest.mark.parametrize("n_rows", [1, 15, 16, 17, 33])
def test_rows_that_do_not_fill_the_lanes(embedding, n_rows):
    Z, codes = points(embedding, np.random.default_rng(n_rows), n_rows, 5.0)
    check(embedding, Z, codes)


@each_transformed
def test_blocks_of_bases_change_nothing(embedding, monkeypatch):
    Z, codes = points(embedding, np.random.default_rng(3), 20, 20.0)
    Z = Z.astype(np.float32)
    whole = Softmax(embedding)(Z, codes)
    monkeypatch.setattr(module, "_BLOCK_FLOATS", 2 * embedding.dim)
    parts = Softmax(embedding)
    assert parts._kept is None
    for a, b in zip(whole, parts(Z, codes), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "embedding", [Gaussian(500, dim=24), ReedSolomonSimplex(500, dim=80)], ids=repr
)
def test_blocks_of_labels_change_nothing(embedding, monkeypatch):
    Z, codes = points(embedding, np.random.default_rng(3), 20, 20.0)
    monkeypatch.setattr(module, "_BLOCK_FLOATS", 1)
    check(embedding, Z, codes)
    check(embedding, Z, codes, 0.3)


@each_transformed
def test_peaks_that_rise_from_basis_to_basis(embedding):
    """Every basis moves the peak, in some lanes only; far more than a float32 exponent in all."""
    bases = np.arange(0, embedding.n_classes, embedding.dim)
    rows = np.vstack([np.eye(len(bases)) * 900, np.diag(np.arange(len(bases)) * 120.0)])
    Z = rows @ embedding.real_rows(bases)
    steep = np.arange(1, len(bases) + 1) * 200.0 @ embedding.real_rows(bases)
    Z = np.vstack([Z, steep, np.zeros_like(steep)])
    check(embedding, Z, np.zeros(len(Z), dtype=np.int64))
    check(embedding, Z, np.full(len(Z), embedding.n_classes - 1))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 3e38])
@pytest.mark.parametrize(
    "embedding", [Kerdock(300, dim=64), Nelson(300, dim=31), Gaussian(60, dim=64)], ids=repr
)
@pytest.mark.filterwarnings("ignore:invalid value", "ignore:overflow", "ignore:divide by zero")
def test_points_that_are_no_numbers_end_and_harm_no_other_row(embedding, bad):
    Z, codes = points(embedding, np.random.default_rng(4), 20)
    expected = dense_softmax(embedding, Z.astype(np.float32), codes)
    Z[3, 5] = bad
    loss, gradient = Softmax(embedding)(Z.astype(np.float32), codes)
    others = np.arange(20) != 3
    np.testing.assert_allclose(loss[others], expected[0][others], rtol=1e-5)
    np.testing.assert_allclose(gradient[others], expected[1][others], atol=1e-5)


@pytest.mark.parametrize("embedding", [Kerdock(300, dim=64), Nelson(300, dim=31)], ids=repr)
def test_arguments_are_left_alone(embedding):
    Z, codes = points(embedding, np.random.default_rng(5), 18)
    Z = Z.astype(np.float32)
    Z.flags.writeable = codes.flags.writeable = False
    kept = Z.copy()
    first = Softmax(embedding)(Z, codes)
    second = Softmax(embedding)(Z, codes)
    np.testing.assert_array_equal(Z, kept)
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)


def test_one_hot_is_the_ordinary_softmax():
    rng = np.random.default_rng(6)
    Z, codes = rng.standard_normal((9, 5)).astype(np.float32), rng.integers(0, 5, 9)
    loss, gradient = Softmax(OneHot(5, dim=5))(Z, codes)
    p = np.exp(Z) / np.exp(Z).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(loss, -np.log(p[np.arange(9), codes]), rtol=1e-5)
    np.testing.assert_allclose(gradient, p - np.eye(5)[codes], atol=1e-6)


def test_targets_offer_it():
    targets = Targets(np.array([1, 2]), Kerdock(30, dim=16))
    softmax = targets.softmax(label_smoothing=0.25)
    assert isinstance(softmax, Softmax)
    assert softmax.embedding is targets.embedding
    assert softmax.label_smoothing == 0.25


@pytest.mark.parametrize("offsets", [[1.0], np.zeros((30, 1)), np.full(30, np.nan)])
def test_offsets_must_fit(offsets):
    with pytest.raises(LocoleError, match="offsets must be 30 finite numbers, one for each label"):
        Softmax(Kerdock(30, dim=16), offsets=offsets)


# --- samples of labels ---

SMALL = [Gaussian(7, dim=5), Kerdock(7, dim=16), Nelson(7, dim=3)]
each_small = pytest.mark.parametrize("embedding", SMALL, ids=repr)


class Drawn(Softmax):
    """Takes the labels that it is told."""

    def _sample(self, draw):
        labels = np.array(self.labels)
        return labels, self.embedding.real_rows(labels)


@each_small
@pytest.mark.parametrize("n_sampled", [2, 3, 6])
@pytest.mark.parametrize("shifted", [False, True])
def test_a_sample_has_the_right_expectation(embedding, n_sampled, shifted):
    """Over all subsets: the mean of the sums of exponentials, and of those times vectors."""
    rng = np.random.default_rng(0)
    Z, codes = points(embedding, rng, 14)
    codes[:7] = np.arange(7)
    Z = Z.astype(np.float32)
    offsets = rng.standard_normal(7) if shifted else np.zeros(7)
    softmax = Drawn(embedding, n_sampled=n_sampled, offsets=offsets)
    own = embedding.real_rows(codes)
    sums, pulls = [], []
    for softmax.labels in itertools.combinations(range(7), n_sampled):
        loss, gradient = softmax(Z, codes)
        sums.append(np.exp(loss.astype(np.float64)))
        pulls.append(sums[-1][:, None] * (gradient + own))
    loss, gradient = dense_softmax(embedding, Z, codes, 0.0, offsets)
    np.testing.assert_allclose(np.mean(sums, axis=0), np.exp(loss), rtol=1e-5)
    expected = np.exp(loss)[:, None] * (gradient + own)
    scale = np.exp(loss)[:, None]
    np.testing.assert_allclose(np.mean(pulls, axis=0) / scale, expected / scale, atol=2e-5)


@each
def test_a_sample_of_all_labels_is_exact(embedding):
    """Also where the estimate itself is made with all labels but the row's own."""
    Z, codes = points(embedding, np.random.default_rng(7), 20, 10.0)
    Z, n = Z.astype(np.float32), embedding.n_classes
    exact = Softmax(embedding)(Z, codes)
    for a, b in zip(Softmax(embedding, n_sampled=n + 1)(Z, codes), exact, strict=True):
        np.testing.assert_array_equal(a, b)
    if n < 3:
        return
    whole = Drawn(embedding, n_sampled=2, label_smoothing=0.3)
    whole.labels = np.arange(n)
    expected = dense_softmax(embedding, Z, codes, 0.3)
    np.testing.assert_allclose(whole(Z, codes)[0], expected[0], rtol=2e-5, atol=2e-5)
    np.testing.assert_allclose(whole(Z, codes)[1], expected[1], atol=2e-5)


def test_larger_samples_have_smaller_errors():
    embedding = Rademacher(400, dim=32)
    Z, codes = points(embedding, np.random.default_rng(8), 30)
    Z = Z.astype(np.float32)
    exact = dense_softmax(embedding, Z, codes)[1]

    def error(n_sampled):
        softmax = Softmax(embedding, n_sampled=n_sampled)
        mean = np.mean([softmax(Z, codes, draw=i)[1] for i in range(200)], axis=0)
        return np.linalg.norm(mean - exact)

    errors = [error(n) for n in (5, 50, 350)]
    assert errors[0] > 2 * errors[1] > 4 * errors[2]


def test_samples_depend_on_seed_and_number_only():
    embedding = Gaussian(1000, dim=8)
    first, second = (Softmax(embedding, n_sampled=50, seed=5) for _ in range(2))
    found = {i: first._sample(i)[0] for i in (0, 1, 2, 7)}
    for i in (7, 2, 0, 1):
        labels = second._sample(i)[0]
        np.testing.assert_array_equal(labels, found[i])
        assert np.unique(labels).size == 50
        assert 0 <= labels.min() < labels.max() < 1000
    assert len({labels.tobytes() for labels in found.values()}) == 4
    other = Softmax(embedding, n_sampled=50, seed=6)._sample(0)[0]
    assert not np.array_equal(other, found[0])
    counts = np.bincount(np.concatenate([first._sample(i)[0] for i in range(400)]), minlength=1000)
    assert abs(counts - 20).max() < 6 * np.sqrt(20)


def test_extreme_logits_of_a_sample():
    embedding = Gaussian(300, dim=16)
    codes = np.arange(20)
    for scale in (1e4, -1e4):
        Z = np.float32(scale) * embedding.real_rows(codes)
        loss, gradient = Softmax(embedding, n_sampled=10)(Z, codes)
        assert np.isfinite(loss).all()
        assert np.isfinite(gradient).all()
        assert (loss >= 0).all()


@pytest.mark.parametrize("bad", [1, 0, -3, 2.5, True, "all"])
def test_samples_must_be_whole_numbers(bad):
    with pytest.raises(LocoleError, match="n_sampled must be a whole number of at least 2"):
        Softmax(Kerdock(30, dim=16), n_sampled=bad)


# --- memory ---


def peak_memory(embedding: Embedding) -> int:
    """Bytes at most while one block of rows is done, with all that is made for it."""
    Z = np.ones((64, embedding.real_dim), dtype=np.float32)
    codes = np.arange(64)
    Softmax(embedding)(Z[:1], codes[:1])  # tables of the field, which are made once
    tracemalloc.start()
    try:
        Softmax(embedding)(Z, codes)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("few", "many"),
    [
        (Kerdock(10**4, dim=4096), Kerdock(10**6, dim=4096)),
        (Kerdock(10**5, dim=4096), Kerdock(4 * 10**6, dim=4096)),
        (Nelson(10**4, dim=1021), Nelson(10**6, dim=1021)),
    ],
    ids=["signs once", "signs in each call", "chirps"],
)
def test_memory_does_not_grow_with_the_labels(few, many):
    """Signs of up to a million columns are kept, 4 MB; above they are made block by block."""
    small, large = peak_memory(few), peak_memory(many)
    rows_of_all = 64 * many.n_classes * 4
    assert large - small < 20 * 2**20
    assert large < rows_of_all / 8
