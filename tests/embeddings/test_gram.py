"""Coherence as promised: full Gram matrices, and every number of labels of small codes."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from reference import inner_products_of, vectors
from scipy.linalg import hadamard

from locole.embeddings import (
    DelsarteGoethals,
    Embedding,
    Gold,
    Kerdock,
    Nelson,
    OneHot,
    ReedSolomonSimplex,
    Simplex,
)


def full(family: type[Embedding], dim: int, **options: int) -> Embedding:
    capacity = int(family(1, dim, **options).capacity)
    return family(capacity, dim, **options)


def moduli(embedding: Embedding) -> np.ndarray:
    """Return the different |inner products|, rounded."""
    rows = vectors(embedding)
    gram = np.abs(rows @ rows.conj().T)
    return np.unique(gram[~np.eye(len(gram), dtype=bool)].round(10))


# --- the whole code ---


@pytest.mark.parametrize("n", [4, 16, 64])
def test_kerdock_products_are_zero_or_one_over_root_n(n):
    np.testing.assert_allclose(moduli(full(Kerdock, n)), [0, 1 / math.sqrt(n)])


@pytest.mark.parametrize("n", [8, 32])
def test_gold_products_are_zero_or_root_two_over_n(n):
    np.testing.assert_allclose(moduli(full(Gold, n)), [0, math.sqrt(2 / n)])


def test_delsarte_goethals_products_are_at_most_two_over_root_n():
    np.testing.assert_allclose(moduli(full(DelsarteGoethals, 16)), [0, 0.25, 0.5], atol=1e-9)


@pytest.mark.parametrize("n", [3, 5, 7, 11, 13])
def test_nelson_of_degree_two_has_products_zero_or_one_over_root_n(n):
    np.testing.assert_allclose(moduli(full(Nelson, n)), [0, 1 / math.sqrt(n)], atol=1e-9)


@pytest.mark.parametrize(("n", "r"), [(5, 3), (7, 3), (11, 3), (5, 4)])
def test_nelson_obeys_weils_bound(n, r):
    largest = moduli(full(Nelson, n, r=r)).max()
    assert 1 / math.sqrt(n) < largest <= (r - 1) / math.sqrt(n) + 1e-9


@pytest.mark.parametrize("q", [3, 4, 5, 7, 8, 9])
def test_reed_solomon_products_lie_in_the_one_sided_range(q):
    rows = vectors(full(ReedSolomonSimplex, q * q - 1))
    gram = rows @ rows.T
    off = gram[~np.eye(len(gram), dtype=bool)]
    np.testing.assert_allclose([off.min(), off.max()], [-1 / (q - 1), 1 / (q + 1)], atol=1e-9)


# --- larger codes, by transforms: all products of two bases are one Hadamard transform ---


@pytest.mark.parametrize(
    ("family", "n", "expected"),
    [
        (Kerdock, 256, {16}),
        (Kerdock, 4096, {64}),
        (Gold, 512, {0, 32}),
        (DelsarteGoethals, 256, {0, 16, 32}),
    ],
)
def test_products_across_bases(family, n, expected):
    embedding = full(family, n)
    forms = np.random.default_rng(0).choice(int(embedding.capacity) // n, 12, replace=False)
    first = np.rint(embedding.real_rows(forms * n, np.float64) * math.sqrt(n)).astype(np.int64)
    pairs = np.array([first[i] * first[j] for i in range(12) for j in range(i)])
    products = pairs @ hadamard(n) if n <= 512 else transforms(pairs)
    assert set(np.unique(np.abs(products)).tolist()) <= expected
    assert max(expected) in np.abs(products)


def transforms(rows: np.ndarray) -> np.ndarray:
    """Hadamard transform of each row in O(n^1.5): a square of smaller transforms."""
    side = math.isqrt(rows.shape[1])
    small = hadamard(side)
    return small @ rows.reshape(-1, side, side) @ small


@pytest.mark.parametrize(("family", "largest"), [(Kerdock, 1 / 16), (DelsarteGoethals, 2 / 16)])
def test_blocks_of_the_gram_matrix(family, largest):
    embedding = full(family, 256)
    blocks = [
        np.arange(256) + 256 * form for form in (0, 1, 77, int(embedding.capacity) // 256 - 1)
    ]
    rows = [embedding.real_rows(block, np.float64) for block in blocks]
    for i, a in enumerate(rows):
        np.testing.assert_allclose(a @ a.T, np.eye(256), atol=1e-12)
        for b in rows[:i]:
            assert np.abs(a @ b.T).max() <= largest + 1e-12


# --- every number of labels ---


@pytest.mark.parametrize(
    "embedding",
    [
        full(Kerdock, 4),
        full(Kerdock, 16),
        full(DelsarteGoethals, 16),
        full(Gold, 8),
        full(Nelson, 3),
        full(Nelson, 5),
        full(Nelson, 11),
        full(Nelson, 5, r=3),
        full(Nelson, 5, r=4),
        full(ReedSolomonSimplex, 8),
        full(ReedSolomonSimplex, 15),
        full(ReedSolomonSimplex, 24),
        full(OneHot, 6),
        full(Simplex, 6),
    ],
    ids=repr,
)
def test_inner_products_of_every_number_of_labels(embedding):
    rows = vectors(embedding)
    gram = rows @ rows.conj().T
    step = 1 if embedding.n_classes < 130 else 41
    for n_classes in {*range(1, embedding.n_classes, step), embedding.n_classes}:
        told = dataclasses.astuple(embedding.resized(n_classes).inner_products())
        expected = dataclasses.astuple(inner_products_of(gram[:n_classes, :n_classes]))
        np.testing.assert_allclose(told, expected, atol=1e-9, err_msg=f"{n_classes} labels")
