"""Softmax over all labels against a dense layer in double precision, for every family."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import EMBEDDINGS, name_of

import locole.softmax as module
from locole.embeddings import Embedding, Gaussian, Gold, Kerdock, Nelson, OneHot
from locole.softmax import Softmax
from locole.targets import Targets

each = pytest.mark.parametrize("embedding", EMBEDDINGS, ids=name_of)
EPS = float(np.finfo(np.float32).eps)


def dense_softmax(embedding: Embedding, Z: np.ndarray, codes: np.ndarray, smoothing: float = 0.0):
    """Loss and gradient from the definition: all logits, all probabilities."""
    G = embedding.real_rows(np.arange(embedding.n_classes), np.float64)
    logits = Z.astype(np.float64) @ G.T
    peak = logits.max(axis=1, keepdims=True)
    log_p = logits - peak - np.log(np.exp(logits - peak).sum(axis=1, keepdims=True))
    target = np.full(log_p.shape, smoothing / embedding.n_classes)
    target[np.arange(len(Z)), codes] += 1 - smoothing
    return -(target * log_p).sum(axis=1), (np.exp(log_p) - target) @ G


def check(embedding: Embedding, Z: np.ndarray, codes: np.ndarray, smoothing: float = 0.0) -> None:
    """Within 1e-5 of the scale of each, and what float32 logits of this size cannot tell."""
    Z = Z.astype(np.float32)
    loss, gradient = Softmax(embedding, label_smoothing=smoothing)(Z, codes)
    expected_loss, expected = dense_softmax(embedding, Z, codes, smoothing)
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


# --- the transforms' own corners ---

SIGNED = [
    Kerdock(3001, dim=256),
    Kerdock(700, dim=64, assignment="random"),
    Gold(1000, dim=128),
    Kerdock(300, dim=64, assignment=np.arange(300) * 6 + 5),
]
each_signed = pytest.mark.parametrize("embedding", SIGNED, ids=name_of)


@each_signed
@pytest.mark.parametrize("n_rows", [1, 15, 16, 17, 33])
def test_rows_that_do_not_fill_the_lanes(embedding, n_rows):
    Z, codes = points(embedding, np.random.default_rng(n_rows), n_rows, 5.0)
    check(embedding, Z, codes)


@each_signed
def test_blocks_of_bases_change_nothing(embedding, monkeypatch):
    Z, codes = points(embedding, np.random.default_rng(3), 20, 20.0)
    Z = Z.astype(np.float32)
    whole = Softmax(embedding)(Z, codes)
    monkeypatch.setattr(module, "_BLOCK_FLOATS", 2 * embedding.dim)
    parts = Softmax(embedding)
    assert parts._signs is None
    for a, b in zip(whole, parts(Z, codes), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("embedding", [Gaussian(500, dim=24), Nelson(500, dim=23)], ids=repr)
def test_blocks_of_labels_change_nothing(embedding, monkeypatch):
    Z, codes = points(embedding, np.random.default_rng(3), 20, 20.0)
    monkeypatch.setattr(module, "_BLOCK_FLOATS", 1)
    check(embedding, Z, codes)
    check(embedding, Z, codes, 0.3)


@each_signed
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
@pytest.mark.parametrize("embedding", [Kerdock(300, dim=64), Gaussian(60, dim=64)], ids=repr)
@pytest.mark.filterwarnings("ignore:invalid value", "ignore:overflow", "ignore:divide by zero")
def test_points_that_are_no_numbers_end_and_harm_no_other_row(embedding, bad):
    Z, codes = points(embedding, np.random.default_rng(4), 20)
    expected = dense_softmax(embedding, Z.astype(np.float32), codes)
    Z[3, 5] = bad
    loss, gradient = Softmax(embedding)(Z.astype(np.float32), codes)
    others = np.arange(20) != 3
    np.testing.assert_allclose(loss[others], expected[0][others], rtol=1e-5)
    np.testing.assert_allclose(gradient[others], expected[1][others], atol=1e-5)


def test_arguments_are_left_alone():
    embedding = Kerdock(300, dim=64)
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
    ],
    ids=["once", "in each call"],
)
def test_memory_does_not_grow_with_the_labels(few, many):
    """Signs of up to a million columns are kept, 4 MB; above they are made block by block."""
    small, large = peak_memory(few), peak_memory(many)
    rows_of_all = 64 * many.n_classes * 4
    assert large - small < 20 * 2**20
    assert large < rows_of_all / 8
