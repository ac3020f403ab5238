"""Sums of label vectors: recovered where the coherence allows it, by scores and by pursuit."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from locole.decoders import decode, pursue
from locole.embeddings import ComplexGaussian, Kerdock, Nelson, OneHot, Rademacher, Simplex
from locole.exceptions import LocoleError
from locole.theory import coherence, recovered_labels, recovery_coherence

FAMILIES = [
    Kerdock(2000, dim=64),
    Kerdock(8000, dim=256),
    Nelson(3000, dim=61),
    OneHot(50, dim=50),
    Simplex(40, dim=39),
]


@pytest.mark.parametrize("embedding", FAMILIES, ids=repr)
@given(seed=st.integers(0, 2**32 - 1))
def test_sums_are_recovered_where_the_coherence_allows_it(embedding, seed):
    rng = np.random.default_rng(seed)
    found = coherence(embedding)
    n_labels = int(
        min(recovered_labels(low=found.low, high=found.high), 12, embedding.n_classes - 1)
    )
    k = int(rng.integers(1, n_labels + 1))
    labels = rng.choice(embedding.n_classes, k, replace=False)
    point = embedding.real_rows(labels).sum(axis=0, dtype=np.float64)[None]
    assert sorted(decode(embedding, point, k=k)[0][0]) == sorted(labels)
    codes, weights = pursue(embedding, point, k=k)
    assert sorted(codes[0]) == sorted(labels)
    np.testing.assert_allclose(weights, 1, atol=1e-5)


@given(seed=st.integers(0, 2**32 - 1), k=st.integers(1, 4))
def test_pursuit_recovers_sums_with_any_weights(seed, k):
    """Up to 4 labels for a coherence of 1/8; the largest scores would miss small weights."""
    embedding = Kerdock(2000, dim=64)
    assert k <= recovered_labels(1 / 8)
    rng = np.random.default_rng(seed)
    labels, sizes = rng.choice(2000, k, replace=False), 10.0 ** rng.uniform(-2, 2, k)
    codes, weights = pursue(embedding, sizes[None] @ embedding.real_rows(labels), k=k)
    assert dict(zip(codes[0], weights[0], strict=True)) == pytest.approx(
        dict(zip(labels, sizes, strict=True)), rel=1e-4
    )


@given(seed=st.integers(0, 2**32 - 1))
def test_pursuit_is_the_textbooks(seed):
    """Greedy choice and least squares, written down with all vectors at hand; any point."""
    rng = np.random.default_rng(seed)
    embedding = [Rademacher(60, dim=32), ComplexGaussian(60, dim=16)][seed % 2]
    G = embedding.real_block(0, 60).astype(np.float64)
    points = rng.standard_normal((3, embedding.real_dim))
    codes, _ = pursue(embedding, points, k=5)
    for point, row in zip(points, codes, strict=True):
        chosen: list[int] = []
        for _ in range(5):
            fit = np.linalg.lstsq(G[chosen].T, point, rcond=None)[0] if chosen else np.zeros(0)
            scores = G @ (point - fit @ G[chosen])
            scores[chosen] = -np.inf
            chosen.append(int(np.argmax(scores)))
        assert row.tolist() == chosen


@given(st.floats(1e-4, 0.99))
def test_the_number_of_labels_is_the_largest(value):
    k = recovered_labels(value)
    assert k == 1 or value < recovery_coherence(k)
    assert value >= recovery_coherence(k + 1) * (1 - 1e-9)


def test_the_bound_is_sharp():
    """At 1/(2k − 1) there are vectors for which a label that is not in the sum ties."""
    k = 2
    gram = np.full((3, 3), 1 / 3)
    gram[0, 1] = gram[1, 0] = -1 / 3
    np.fill_diagonal(gram, 1)
    G = np.linalg.cholesky(gram)
    scores = G @ G[:k].sum(axis=0)
    assert scores[2] == pytest.approx(scores[0])
    assert recovery_coherence(k) == pytest.approx(1 / 3)


def test_ends():
    assert recovered_labels(0.0) == math.inf
    assert recovered_labels(0.5) == 1
    assert recovered_labels(1 / 3) == 1
    for bad in (0, 1.5, True):
        with pytest.raises(LocoleError, match="whole number of at least 1"):
            recovery_coherence(bad)
    with pytest.raises(LocoleError):
        recovered_labels()
