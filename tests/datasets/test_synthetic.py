"""Generated topics: shapes, laws, seeds, and that they can be learnt."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import norm

from locole.datasets import make_topics, synthetic
from locole.exceptions import LocoleError


@pytest.fixture(scope="module")
def data():
    return make_topics(20_000, 5_000, 400, random_state=3)


def parts(data):
    return (data.X_train, data.y_train), (data.X_test, data.y_test)


def test_shapes_and_types(data):
    assert data.X_train.shape == (20_000, 5_000)
    assert data.X_test.shape == (2_000, 5_000)
    for X, y in parts(data):
        assert X.dtype == np.float32
        assert X.indices.dtype == X.indptr.dtype == np.int32
        X.check_format(full_check=True)
        assert X.has_canonical_format
        assert y.dtype == np.int64
        np.testing.assert_allclose(norm(X, axis=1), 1, atol=1e-5)
        assert np.diff(X.indptr).max() <= 30
        assert 15 < X.nnz / X.shape[0] < 30
    assert len(data.label_names) == len(set(data.label_names)) == 400


def test_labels_follow_the_power_law(data):
    counts = np.bincount(data.y_train, minlength=400)
    assert counts.min() >= 1
    expected = (20_000 - 400) / np.arange(1, 401) / np.sum(1 / np.arange(1, 401)) + 1
    np.testing.assert_allclose(counts[:20], expected[:20], rtol=0.15)
    flat = np.bincount(make_topics(20_000, 100, 20, nnz_per_row=2, power=0).y_train)
    np.testing.assert_allclose(flat, 1000, rtol=0.15)


def test_few_features_are_frequent_and_most_are_rare(data):
    counts = np.sort(np.bincount(data.X_train.indices, minlength=5_000))[::-1]
    assert counts[:50].sum() > 0.1 * counts.sum()
    assert counts[2_500:].sum() < 0.2 * counts.sum()


def accuracy_of_centroids(data):
    one = np.ones(len(data.y_train))
    sums = sp.csr_matrix((one, (data.y_train, np.arange(len(one))))) @ data.X_train
    centroids = sums.toarray() / norm(sums, axis=1)[:, None]
    return np.mean((data.X_test @ centroids.T).argmax(axis=1) == data.y_test)


def test_noise_makes_topics_hard_to_tell_apart():
    easy, hard, hopeless = (
        accuracy_of_centroids(make_topics(4_000, 2_000, 100, noise=noise))
        for noise in (0.3, 0.9, 1)
    )
    assert easy > 0.95
    assert 0.2 < hard < easy - 0.1
    assert hopeless < 0.25


def test_a_seed_is_a_data_set():
    first, again, other = (make_topics(500, 300, 20, random_state=seed) for seed in (1, 1, 2))
    for (X, y), (X2, y2) in zip(parts(first), parts(again), strict=True):
        assert (X != X2).nnz == 0
        np.testing.assert_array_equal(y, y2)
    assert first.y_train.tolist() != other.y_train.tolist()
    assert set(first.X_train[first.y_train == 0].indices) != set(
        other.X_train[other.y_train == 0].indices
    )


def test_the_data_of_a_seed_never_change():
    data = make_topics(300, 1_000, 20, random_state=7)
    golden = hashlib.sha256()
    for X, y in parts(data):
        for array in (X.indices, X.indptr, y.astype(np.int32)):
            golden.update(array.astype("<i4").tobytes())
    assert golden.hexdigest()[:16] == "4d9bed9d29f3cb13"
    assert round(float(data.X_train.data.sum())) == 1551


def test_blocks_of_rows_fit_together(monkeypatch):
    data = make_topics(1_000, 200, 10, nnz_per_row=5)
    monkeypatch.setattr(synthetic, "_BLOCK_ROWS", 64)
    small = make_topics(1_000, 200, 10, nnz_per_row=5)
    small.X_train.check_format(full_check=True)
    assert small.X_train.shape == data.X_train.shape
    np.testing.assert_allclose(norm(small.X_train, axis=1), 1, atol=1e-5)


def test_the_smallest_data():
    data = make_topics(1, 1, 1, nnz_per_row=1, test_size=1)
    assert data.X_train.toarray().tolist() == data.X_test.toarray().tolist() == [[1]]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ({"n_samples": 5}, "n_samples must be at least n_classes, 10"),
        ({"n_features": 0}, "must be at least 1"),
        ({"nnz_per_row": 0}, "must be at least 1"),
        ({"test_size": 0}, "must be at least 1"),
        ({"noise": 1.5}, "noise must be between 0 and 1"),
        ({"power": -1}, "power and random_state not negative"),
        ({"random_state": -1}, "power and random_state not negative"),
    ],
    ids=str,
)
def test_bad_parameters(bad, reason):
    with pytest.raises(LocoleError, match=reason):
        make_topics(**{"n_samples": 100, "n_features": 50, "n_classes": 10, **bad})
