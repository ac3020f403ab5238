"""Targets by pieces are the pieces of the whole."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from instances import EMBEDDINGS, name_of

from locole import targets as module
from locole.embeddings import Kerdock
from locole.targets import Targets

each = pytest.mark.parametrize("embedding", EMBEDDINGS, ids=name_of)


def make(embedding, n_samples: int = 50) -> tuple[Targets, np.ndarray]:
    codes = np.random.default_rng(0).integers(0, embedding.n_classes, n_samples)
    return Targets(codes, embedding), embedding.real_rows(codes)


@each
def test_rows_and_tables_are_parts_of_the_target_array(embedding):
    targets, Y = make(embedding)
    assert targets.shape == Y.shape
    np.testing.assert_array_equal(targets.rows(slice(None)), Y)
    np.testing.assert_array_equal(targets.rows(slice(3, 20, 2)), Y[3:20:2])
    np.testing.assert_array_equal(targets.rows(np.array([7, 0, 7])), Y[[7, 0, 7]])
    for start, stop in {(0, Y.shape[1]), (0, 1), (Y.shape[1] // 2, Y.shape[1])}:
        table = targets.table(start, stop)
        assert table.shape == (embedding.n_classes, stop - start)
        assert table.dtype == np.float32
        np.testing.assert_array_equal(table[targets.codes], Y[:, start:stop])


@each
def test_the_mean_is_the_mean_of_the_rows(embedding):
    targets, Y = make(embedding)
    Y = Y.astype(np.float64)
    weight = np.random.default_rng(1).random(len(Y))
    np.testing.assert_allclose(targets.mean(), Y.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(targets.mean(weight), weight @ Y / weight.sum(), atol=1e-12)
    assert targets.mean().dtype == np.float64


@given(st.integers(1, 500))
def test_blocks_of_labels_change_nothing(block_floats):
    embedding = Kerdock(53, dim=16)
    expected = embedding.real_rows(np.arange(53))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK_FLOATS", block_floats)
        targets, Y = make(embedding)
        np.testing.assert_array_equal(targets.table(2, 9), expected[:, 2:9])
        np.testing.assert_allclose(targets.mean(), Y.mean(axis=0), atol=1e-7)


def test_many_samples_need_no_array_of_targets():
    targets = Targets(np.zeros(200_000, dtype=np.int64), Kerdock(30_000, dim=256))
    tracemalloc.start()
    targets.table(0, 16)
    targets.mean()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100 << 20  # the array would take 205 MB
