"""Delta-coded rows against scipy's, and files of them that lie."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from same import assert_same_bits

from locole.delta_rows import DeltaRows
from locole.exceptions import ModelFileError
from locole.io import read_model, write_model


@st.composite
def matrices(draw, most_columns=300_000):
    """Few entries among many columns, so that some are further apart than two bytes can say."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_rows, n_columns = draw(st.integers(0, 12)), draw(st.integers(1, most_columns))
    n_entries = draw(st.integers(0, 60)) if n_rows else 0
    places = rng.integers(n_rows or 1, size=n_entries), rng.integers(n_columns, size=n_entries)
    X = sp.csr_array((rng.integers(-3, 4, n_entries), places), shape=(n_rows, n_columns))
    X.sum_duplicates()
    return X.astype(draw(st.sampled_from([np.float32, np.int8])))


@given(matrices())
def test_rows_are_what_they_were(X):
    before = X.copy()
    rows = DeltaRows.of(X)
    assert_same_bits(X, before)
    assert (rows.shape, rows.steps.dtype, rows.values.dtype) == (X.shape, np.uint16, X.dtype)
    again = rows.csr()
    again.indices = again.indices.astype(X.indices.dtype)
    X.eliminate_zeros()
    np.testing.assert_array_equal(again.indptr, X.indptr)
    assert_same_bits(again.indices, X.indices)
    assert_same_bits(again.data, X.data)


@given(matrices(), st.data())
def test_some_rows_and_more_rows_are_those_of_scipy(X, data):
    rows, n_rows = DeltaRows.of(X), X.shape[0]
    some = data.draw(st.lists(st.integers(0, n_rows - 1), max_size=9) if n_rows else st.just([]))
    found = rows.take(np.array(some, dtype=np.int64))
    assert (found.csr() != X[some]).nnz == 0
    twice = DeltaRows.stacked([rows, found, rows.widened(X.shape[1])])
    assert (twice.csr() != sp.vstack([X, X[some], X])).nnz == 0
    doubled = rows.with_values(2 * rows.values)
    assert (doubled.csr() != 2 * X).nnz == 0


def test_entries_far_apart_take_entries_between():
    X = sp.csr_array((np.ones(3), ([0, 0, 0], [65_535, 65_536, 200_000])), shape=(1, 200_001))
    rows = DeltaRows.of(X)
    assert rows.steps.tolist() == [65_535, 1, 65_535, 65_535, 3_394]
    assert rows.values.tolist() == [1, 1, 0, 0, 1]
    assert rows.columns.tolist() == [65_535, 65_536, 131_071, 196_606, 200_000]


@given(matrices())
def test_they_are_saved(tmp_path_factory, X):
    folder = tmp_path_factory.mktemp("rows") / "m"
    rows = DeltaRows.of(X)
    write_model(folder, rows)
    assert_same_bits(read_model(folder), rows)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("starts", np.array([0, 2, 1, 3]), "do not rise"),
        ("starts", np.array([0, 1, 2]), "do not rise"),
        ("starts", np.array([0.0, 1.0, 2.0, 3.0]), "have no beginnings"),
        ("steps", np.array([0, 2, 1], dtype=np.int16), "not a step and a value"),
        ("steps", np.array([[0, 2, 1]], dtype=np.uint16), "not a step and a value"),
        ("steps", np.array([0, 3, 1], dtype=np.uint16), "outside their columns"),
        ("values", np.ones(2, dtype=np.float32), "not a step and a value"),
        ("n_columns", 2, "outside their columns"),
        ("n_columns", -1, "impossible number"),
        ("n_columns", 3.0, "impossible number"),
        ("n_columns", 1 << 60, "impossible number"),
    ],
)
def test_a_file_that_lies_is_refused(name, value, message):
    honest = DeltaRows.of(sp.csr_array(np.array([[1.0, 0, 0], [0, 0, 2], [0, 3, 0]])))
    assert_same_bits(DeltaRows._from_state(honest._state()), honest)
    with pytest.raises(ModelFileError, match=message):
        DeltaRows._from_state({**honest._state(), name: value})
