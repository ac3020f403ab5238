"""Vectors of labels in bytes or float32 against plain products of matrices."""

from __future__ import annotations

import numpy as np
import pytest

from locole.regressors.storage import pack
from locole.scoring import label_table
from locole.scoring.label_table import LabelTable


def table_of(n_classes, dim, storage, seed=0):
    vectors = np.random.default_rng(seed).normal(size=(n_classes, dim)).astype(np.float32)
    return LabelTable.of(*pack(vectors, storage))


@pytest.mark.parametrize("storage", ["float32", "int8"])
@pytest.mark.parametrize("n_points", [1, 40])  # by a scan of all labels, by a product of matrices
@pytest.mark.parametrize("dim", [5, 16, 37])
def test_best_labels(monkeypatch, storage, n_points, dim):
    monkeypatch.setattr(label_table, "_BLOCK_LABELS", 17)  # several blocks
    table = table_of(50, dim, storage)
    points = np.random.default_rng(1).normal(size=(n_points, dim)).astype(np.float32)
    expected = points.astype(float) @ table.unpacked().astype(float).T
    codes, scores = table.best(points, 3)
    np.testing.assert_array_equal(codes, np.argsort(-expected, axis=1)[:, :3])
    np.testing.assert_allclose(scores, -np.sort(-expected, axis=1)[:, :3], rtol=1e-5)
    np.testing.assert_allclose(table.products(points), expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(table.products_at(points, codes), scores)


def test_ties_go_to_the_smaller_code():
    table = LabelTable.of(np.ones((30, 4), dtype=np.float32), None)
    codes, _ = table.best(np.ones((2, 4), dtype=np.float32), 5)
    np.testing.assert_array_equal(codes, [[0, 1, 2, 3, 4]] * 2)


@pytest.mark.parametrize(
    "table",
    [
        LabelTable.of(np.ones((3, 2), dtype=np.float64), None),
        LabelTable.of(np.full((3, 2), np.nan, dtype=np.float32), None),
        LabelTable.of(np.ones((3, 2), dtype=np.int8), None),
        LabelTable.of(np.ones((3, 2), dtype=np.int8), np.ones(2, dtype=np.float32)),
        LabelTable.of(np.ones((3, 2), dtype=np.int8), np.full(3, np.inf, dtype=np.float32)),
        LabelTable.of(np.ones((3, 2), dtype=np.float32), np.ones(3, dtype=np.float32)),
    ],
)
def test_unsound_tables(table):
    assert not table.is_sound()
