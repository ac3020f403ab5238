"""Decoding at the size of real problems: the same answer, little memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator

import numpy as np
import pytest

from locole.decoders import decode
from locole.embeddings import (
    Embedding,
    Gold,
    Kerdock,
    Nelson,
    Rademacher,
    ReedSolomonSimplex,
    group_columns,
)

N_CLASSES = 103_361
K = 5


def noisy_points(embedding: Embedding, n_rows: int, dtype: type = np.float32) -> np.ndarray:
    """Points between two labels, with noise: what a regressor returns."""
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, embedding.n_classes, (2, n_rows))
    Z = embedding.real_rows(first, np.float64) + 0.8 * embedding.real_rows(second, np.float64)
    return (Z + rng.standard_normal(Z.shape) / embedding.real_dim).astype(dtype)


def dense_best(embedding: Embedding, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Best labels by a plain double-precision product, block by block."""
    parts = list(blocks_of_scores(embedding, Z.astype(np.float64)))
    codes = np.concatenate([codes for codes, _ in parts], axis=1)
    scores = np.concatenate([scores for _, scores in parts], axis=1)
    order = np.lexsort((codes, -scores), axis=1)[:, :K]
    return np.take_along_axis(codes, order, axis=1), np.take_along_axis(scores, order, axis=1)


def blocks_of_scores(embedding: Embedding, Z: np.ndarray) -> Iterator[tuple]:
    for start in range(0, embedding.n_classes, 8192):
        labels = np.arange(start, min(start + 8192, embedding.n_classes))
        scores = Z @ embedding.real_rows(labels, np.float64).T
        best = np.argsort(-scores, axis=1, kind="stable")[:, :K]
        yield labels[best], np.take_along_axis(scores, best, axis=1)


def peak_of(function) -> int:
    tracemalloc.start()
    function()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


LARGE = [
    Kerdock(N_CLASSES, dim=1024),
    Nelson(N_CLASSES, dim=509),
    Nelson(20_011, dim=101, r=3, assignment="random"),
    Gold(12_046, dim=512, assignment="random"),
    ReedSolomonSimplex(12_046, dim=528),
    Rademacher(12_046, dim=360),
]


@pytest.mark.parametrize("embedding", LARGE, ids=repr)
def test_large_codes_decode_as_a_dense_product_does(embedding):
    Z = noisy_points(embedding, 64)
    Z[5] = 0  # every label ties
    codes, scores = decode(embedding, Z, k=K)
    expected_codes, expected_scores = dense_best(embedding, Z)
    np.testing.assert_array_equal(codes, expected_codes)
    np.testing.assert_allclose(scores, expected_scores, rtol=1e-5, atol=1e-7)
    assert codes[5].tolist() == list(range(K))


def test_gaps_in_a_large_code():
    clusters = np.random.default_rng(0).integers(0, 90, 60_000)
    columns = group_columns(clusters, basis=1024, capacity=1024**2 // 2)
    embedding = Kerdock(60_000, dim=1024, assignment=columns)
    assert embedding.n_columns > embedding.n_classes
    Z = noisy_points(embedding, 20)
    np.testing.assert_array_equal(decode(embedding, Z, k=K)[0], dense_best(embedding, Z)[0])


@pytest.mark.parametrize("embedding", LARGE[:2], ids=repr)
def test_decoding_needs_little_memory(embedding):
    Z = noisy_points(embedding, 64)
    decode(embedding, Z, k=K)
    assert peak_of(lambda: decode(embedding, Z, k=K)) < 64 << 20


@pytest.mark.parametrize(
    ("few", "many", "decoder"),
    [
        (Kerdock(270_000, dim=1024), Kerdock(524_288, dim=1024), "auto"),
        (Nelson(90_000, dim=509), Nelson(259_081, dim=509), "auto"),
        (ReedSolomonSimplex(5_000, dim=528), ReedSolomonSimplex(12_167, dim=528), "auto"),
        (
            Rademacher(20_000, dim=256, cache_bytes=0),
            Rademacher(100_000, dim=256, cache_bytes=0),
            "auto",
        ),
        (Kerdock(20_000, dim=256), Kerdock(32_768, dim=256), "dense"),
    ],
    ids=repr,
)
def test_memory_does_not_depend_on_the_number_of_labels(few, many, decoder):
    Z = noisy_points(few, 8)
    peaks = []
    for embedding in (few, many):
        decode(embedding, Z, decoder=decoder)
        peaks.append(peak_of(lambda e=embedding: decode(e, Z, decoder=decoder)))
    assert peaks[1] < 1.2 * peaks[0] + (1 << 18)


def test_ties_at_every_label_need_little_memory_too():
    embedding = Kerdock(N_CLASSES, dim=1024)
    Z = np.zeros((300, 1024), dtype=np.float32)
    assert peak_of(lambda: decode(embedding, Z, k=K)) < 128 << 20
