"""Arrays that go through files."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import locole.parallel.shared_folder as module
from locole.exceptions import LocoleError
from locole.parallel.shared_folder import fetched, stored


class Pair(NamedTuple):
    rows: object
    rest: object


@pytest.fixture(autouse=True)
def everything_is_large(monkeypatch):
    monkeypatch.setattr(module, "_LARGE_BYTES", 1)


ARRAYS = hnp.arrays(
    st.sampled_from([np.float32, np.int64, np.int8, np.dtype(">f8")]),
    hnp.array_shapes(min_dims=1, max_dims=2, min_side=0, max_side=5),
)


@given(st.lists(ARRAYS, max_size=3))
def test_what_is_stored_is_fetched(tmp_path_factory, arrays):
    folder = tmp_path_factory.mktemp("arrays")
    value = Pair((1, "a", *arrays), None)
    back = fetched(stored(value, str(folder)))
    assert isinstance(back, Pair)
    assert back.rest is None
    assert back.rows[:2] == (1, "a")
    for array, other in zip(arrays, back.rows[2:], strict=True):
        assert array.dtype == other.dtype
        assert array.tobytes() == other.tobytes()


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_rows_keep_their_types_and_are_read_only(tmp_path, index):
    X = sp.random_array((30, 20), density=0.2, rng=np.random.default_rng(0), format="csr")
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    (back,) = fetched(stored((X,), str(tmp_path)))
    assert (back != X).nnz == 0
    for name in ("data", "indices", "indptr"):
        assert getattr(back, name).dtype == getattr(X, name).dtype
        assert not getattr(back, name).flags.writeable


def test_equal_arrays_are_one_file_and_stay(tmp_path):
    array = np.arange(100)
    stored((array, array.copy()), str(tmp_path))
    (path,) = tmp_path.iterdir()
    before = path.stat().st_mtime_ns
    stored(array, str(tmp_path))
    assert [p.stat().st_mtime_ns for p in tmp_path.iterdir()] == [before]
    stored(array.astype(np.float64), str(tmp_path))
    assert len(list(tmp_path.iterdir())) == 2


def test_a_file_that_a_node_lacks_is_named(tmp_path):
    value = stored(np.arange(100), str(tmp_path))
    Path(value.path).unlink()
    with pytest.raises(LocoleError, match=r"a node cannot read .*\.npy: the folder must be"):
        fetched(value)


def test_a_folder_must_be_there(tmp_path):
    with pytest.raises(LocoleError, match="there is no folder"):
        stored(np.arange(100), str(tmp_path / "none"))
