"""Sparse rows against the same rows as dense arrays."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from locole import sparse_rows
from locole.samples import spare_rows, split_rows
from locole.sparse_rows import compact, label_sums, row_squares, unit_rows, with_constant

SIZES = (st.integers(1, 30), st.integers(1, 12), st.floats(0, 0.6))


def drawn(n_rows, n_features, density):
    rng = np.random.default_rng(n_rows)
    return rng.normal(size=(n_rows, n_features)) * (rng.random((n_rows, n_features)) < density)


@given(*SIZES, st.integers(1, 40))
def test_row_squares_by_any_piece(n_rows, n_features, density, piece):
    X = drawn(n_rows, n_features, density)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sparse_rows, "ROWS", piece)
        found = row_squares(sp.csr_array(X))
    np.testing.assert_allclose(found, np.square(X).sum(axis=1), rtol=1e-12)


def test_row_squares_where_all_rows_are_empty():
    assert (row_squares(sp.csr_array((5, 3))) == 0).all()


def test_large_and_small_numbers_neither_overflow_nor_vanish():
    X = sp.csr_array(np.array([[1e30, 0], [1e-30, 1e-30], [0, 0]], dtype=np.float32))
    np.testing.assert_allclose(row_squares(X), [1e60, 2e-60, 0], rtol=1e-6)
    np.testing.assert_allclose(row_squares(unit_rows(X)), [1, 1, 0], rtol=1e-6)


@given(*SIZES)
def test_unit_rows_have_unit_length_and_leave_the_rows_alone(n_rows, n_features, density):
    X = sp.csr_array(drawn(n_rows, n_features, density))
    before = X.copy()
    found, lengths = unit_rows(X), np.linalg.norm(X.toarray(), axis=1)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found.toarray() * lengths[:, None], X.toarray(), rtol=1e-6)
    assert (before != X).nnz == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_constant_is_the_last_feature(dtype):
    X = sp.csr_array(drawn(7, 3, 0.5).astype(dtype))
    found = with_constant(X)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found.toarray(), np.hstack([X.toarray(), np.ones((7, 1))]))


@given(*SIZES, st.integers(1, 6))
def test_sums_of_labels_also_of_those_without_rows(n_rows, n_features, density, n_classes):
    X = drawn(n_rows, n_features, density)
    codes = np.random.default_rng(n_rows).integers(n_classes, size=n_rows)
    found = label_sums(sp.csr_array(X), codes, n_classes + 1).toarray()
    expected = [X[codes == label].sum(axis=0) for label in range(n_classes + 1)]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_indices_are_short_where_they_can_be():
    X = sp.csr_array(drawn(7, 3, 0.5))
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    found = compact(X)
    assert found.indices.dtype == found.indptr.dtype == np.int32
    assert (found != X).nnz == 0
    assert compact(found) is found


@given(st.integers(1, 60), st.integers(1, 20), st.integers(0, 70), st.integers(0, 9))
def test_spare_rows_leave_a_row_of_every_label(n_rows, n_labels, n_validation, seed):
    codes = np.random.default_rng(seed).integers(n_labels, size=n_rows)
    found = spare_rows(codes, n_validation, seed=[seed])
    assert found.size == min(n_validation, n_rows - np.unique(codes).size)
    assert (np.diff(found) > 0).all()
    assert np.unique(np.delete(codes, found)).size == np.unique(codes).size


@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 9))
def test_a_split_is_all_rows_and_the_same_for_the_same_seed(n_rows, n_validation, seed):
    train, validation = split_rows(n_rows, n_validation, seed=[seed, n_rows])
    assert validation.size == min(n_validation, n_rows)
    assert sorted([*train, *validation]) == list(range(n_rows))
    again = split_rows(n_rows, n_validation, seed=np.random.default_rng([seed, n_rows]))
    np.testing.assert_array_equal(again[1], validation)
