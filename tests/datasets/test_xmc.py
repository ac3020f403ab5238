"""Files of the extreme-classification repository: header, empty label fields, several labels."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from locole.datasets import iter_xmc, load_xmc, sources
from locole.exceptions import LocoleError

TEXT = "4 6 5\n3,0 0:0.5 5:1\n 2:1\n\n1 4:2\n"


def write(folder, text, name="data.xmc"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_all_labels(tmp_path):
    X, Y = load_xmc(write(tmp_path, TEXT))
    assert X.toarray().tolist() == [
        [0.5, 0, 0, 0, 0, 1],
        [0, 0, 1, 0, 0, 0],
        [0] * 6,
        [0, 0, 0, 0, 2, 0],
    ]
    assert Y.toarray().tolist() == [[1, 0, 0, 1, 0], [0] * 5, [0] * 5, [0, 1, 0, 0, 0]]
    assert X.dtype == Y.dtype == np.float32
    assert X.indices.dtype == Y.indices.dtype == np.int32


def test_one_label_for_each_row(tmp_path):
    path = write(tmp_path, TEXT)
    X, y = load_xmc(path, labels="first")
    assert X.indices.tolist() == [0, 5, 4]
    assert y.tolist() == [3, 1]
    X, y = load_xmc(path, labels="repeat")
    assert X.indices.tolist() == [0, 5, 0, 5, 4]
    assert y.tolist() == [3, 0, 1]
    X, y = load_xmc(path, labels=None)
    assert X.shape == (4, 6)
    assert y is None
    with pytest.raises(LocoleError, match="line 2: '3,0' are several labels"):
        load_xmc(path, labels="error")
    X, y = load_xmc(write(tmp_path, "2 2 3\n2 0:1\n0 1:1\n\n"), labels="error")
    assert y.tolist() == [2, 0]
    assert X.toarray().tolist() == [[1, 0], [0, 1]]


rows = st.lists(
    st.tuples(
        st.lists(st.integers(0, 6), max_size=3, unique=True),
        st.lists(st.integers(0, 8), max_size=4, unique=True).map(sorted),
    ),
    max_size=12,
)


@settings(max_examples=60)
@given(rows, st.sampled_from(["", "\n", "\n\n \n"]), st.sampled_from([9, 1 << 20]))
def test_any_rows(tmp_path_factory, rows, end, chunk_bytes):
    lines = [f"{','.join(map(str, names))} {' '.join(f'{f}:1' for f in fs)}" for names, fs in rows]
    path = write(
        tmp_path_factory.getbasetemp(), "\n".join([f"{len(rows)} 9 7", *lines]) + "\n" + end
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sources, "CHUNK_BYTES", chunk_bytes)
        X, Y = load_xmc(path)
        batches = list(iter_xmc(path, batch_rows=5, labels=None))
    for matrix, width, part in ((X, 9, 1), (Y, 7, 0)):
        expected = np.zeros((len(rows), width))
        for i, row in enumerate(rows):
            expected[i, row[part]] = 1
        np.testing.assert_array_equal(matrix.toarray(), expected)
    assert sum(part.shape[0] for part, _ in batches) == len(rows)
    if batches:
        np.testing.assert_array_equal(
            sp.vstack([part for part, _ in batches]).toarray(), X.toarray()
        )


def test_batches_of_rows_with_one_label(tmp_path):
    text = "5 9 40\n" + "".join(f"{3 * i} {i}:1\n" for i in range(5)) + "\n"
    path = write(tmp_path, gzip.compress(text.encode()), "data.xmc.gz")
    parts = list(iter_xmc(path, batch_rows=2))
    assert [X.shape for X, _ in parts] == [(2, 9), (2, 9), (1, 9)]
    assert np.concatenate([y for _, y in parts]).tolist() == [0, 3, 6, 9, 12]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is empty: the first line must be the header"),
        ("4 6\n", "line 1: the header must be three whole numbers"),
        ("a b c\n", "line 1: the header must be"),
        ("1 0:1\n", "line 1: the header must be"),
        ("-1 2 3\n", "line 1: the header must be"),
        ("1" * 300 + " 2 3\n", "line 1: the header must be"),
        ("1 999999999999 3\n", "line 1: more than 100,000,000 features or labels"),
        ("1 3 999999999999\n", "line 1: more than 100,000,000 features or labels"),
        ("2 3 3\n1 0:1\n", "has 1 rows instead of the 2 of its header: is it cut short"),
        ("999999999999999999 3 3\n1 0:1\n", "has 1 rows instead of the 999,999,999,999,999,999"),
        ("1 3 3\n1 0:1\n2 0:1\n", "more rows than the 1 of its header"),
        ("1 3 3\n1 0:1\n2\n", "more rows than the 1 of its header"),
        ("1 3 3\n1 3:1\n", "line 2: feature '3' is not between 0 and 2: the header says"),
        ("1 3 3\n3 0:1\n", "line 2: label '3' is not between 0 and 2"),
        ("1 3 3\n-1 0:1\n", "line 2: label '-1' is not between 0 and 2"),
        ("1 3 3\n1.5 0:1\n", "line 2: label '1.5' is not a whole number"),
        ("2 3 3\n1 0:1\n1 0:x\n", "line 3: '0:x' does not have"),
        ("1 0 3\n1 0:1\n", "line 2: feature '0' is not between 0 and -1"),
    ],
    ids=lambda text: repr(text)[:24],
)
def test_bad_files(tmp_path, text, reason):
    with pytest.raises(LocoleError, match=r"data\.xmc.*" + reason):
        load_xmc(write(tmp_path, text))


def test_bad_options(tmp_path):
    path = write(tmp_path, TEXT)
    with pytest.raises(LocoleError, match="labels must be one of"):
        load_xmc(path, labels="last")
    with pytest.raises(LocoleError, match="labels must be one of"):
        iter_xmc(path, labels="first")
    with pytest.raises(LocoleError, match="batch_rows must be at least 1"):
        iter_xmc(path, batch_rows=0)
