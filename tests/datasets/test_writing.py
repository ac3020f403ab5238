"""LIBSVM files written and read back: the same bits, and never half a file."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file

from locole.datasets import load_libsvm, save_libsvm, writing
from locole.exceptions import LocoleError

numbers = st.floats(width=32, allow_nan=False, allow_infinity=False)
text_labels = st.text(
    st.characters(codec="utf-8", exclude_characters=" \t\r\n,:"), min_size=1, max_size=8
).filter(lambda label: label[0] not in "#\ufeff")


@st.composite
def matrices(draw):
    n_rows, n_features = draw(st.integers(1, 7)), draw(st.integers(1, 9))
    rows = [
        draw(st.dictionaries(st.integers(0, n_features - 1), numbers, max_size=n_features))
        for _ in range(n_rows)
    ]
    X = sp.csr_matrix((n_rows, n_features), dtype=np.float32)
    ordered = [sorted(row.items()) for row in rows]
    X.data = np.array([value for row in ordered for _, value in row], dtype=np.float32)
    X.indices = np.array([index for row in ordered for index, _ in row], dtype=np.int32)
    X.indptr = np.cumsum([0, *map(len, ordered)], dtype=np.int32)
    return X


def same(X, other):
    return (
        X.shape == other.shape
        and np.array_equal(X.indices, other.indices)
        and np.array_equal(X.indptr, other.indptr)
        and np.array_equal(X.data.view(np.uint32), other.data.view(np.uint32))
    )


@settings(max_examples=60)
@given(
    matrices(),
    st.data(),
    st.booleans(),
    st.sampled_from([".svm", ".svm.gz", ".svm.xz", ".svm.bz2"]),
)
def test_round_trip(tmp_path_factory, X, data, zero_based, suffix):
    path = tmp_path_factory.getbasetemp() / f"round{suffix}"
    labels = data.draw(
        st.one_of(
            *(
                st.lists(kind, min_size=X.shape[0], max_size=X.shape[0])
                for kind in (st.integers(-(10**17), 10**17), text_labels)
            )
        )
    )
    save_libsvm(path, X, labels, zero_based=zero_based)
    kind = "text" if isinstance(labels[0], str) else "int"
    found, y = load_libsvm(path, n_features=X.shape[1], zero_based=zero_based, labels=kind)
    assert same(found, X)
    assert y.tolist() == labels


def test_round_trip_of_many_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(writing, "_BLOCK_ROWS", 7)
    rng = np.random.default_rng(0)
    X = sp.random_array((100, 50), density=0.1, rng=rng, format="csr", dtype=np.float32)
    save_libsvm(tmp_path / "many.svm", X, np.arange(100))
    found, y = load_libsvm(tmp_path / "many.svm", n_features=50)
    assert same(found, sp.csr_matrix(X))
    assert y.tolist() == list(range(100))
    theirs, _ = load_svmlight_file(str(tmp_path / "many.svm"), dtype=np.float32, n_features=50)
    assert (theirs != X).nnz == 0


def test_several_labels(tmp_path):
    Y = sp.csr_matrix([[0, 1, 1], [0, 0, 0], [1, 0, 0]])
    save_libsvm(tmp_path / "a.svm", sp.eye_array(3), Y)
    assert (tmp_path / "a.svm").read_text() == "1,2 1:1.0\n 2:1.0\n0 3:1.0\n"
    X, found = load_libsvm(tmp_path / "a.svm", multilabel=True)
    assert X.toarray().tolist() == np.eye(3).tolist()
    assert found.toarray().tolist() == Y.toarray().tolist()


def test_rows_without_labels(tmp_path):
    save_libsvm(tmp_path / "a.svm", np.float64([[0, 0.1], [0, 0]]))
    assert (tmp_path / "a.svm").read_text() == "0 2:0.1\n0\n"


@pytest.mark.parametrize(
    ("X", "y", "reason"),
    [
        ([[np.nan]], [1], "NaN, infinity"),
        ([[np.inf]], [1], "NaN, infinity"),
        ([[1e39]], [1], "too large for float32"),
        ([[1.0]], [1, 2], "X has 1 rows but y has 2"),
        ([[1.0]], [[1]], "y must be"),
        ([[1.0]], [1.5], "y must be"),
        ([[1.0]], ["a b"], "label 'a b' cannot be written"),
        ([[1.0]], ["a:b"], "cannot be written"),
        ([[1.0]], ["a,b"], "cannot be written"),
        ([[1.0]], [""], "cannot be written"),
        ([[1.0]], ["#a"], "# would start a comment"),
        ([[1.0]], np.array([None]), "label None cannot be written"),
        ([[0.0]], sp.csr_matrix([[0]]), "neither labels nor features"),
    ],
    ids=str,
)
def test_what_cannot_be_written(tmp_path, X, y, reason):
    path = tmp_path / "a.svm"
    path.write_text("old")
    with pytest.raises(LocoleError, match=reason):
        save_libsvm(path, X, y)
    assert [p.name for p in tmp_path.iterdir()] == ["a.svm"]
    assert path.read_text() == "old"


@pytest.mark.parametrize("suffix", [".svm", ".svm.xz"])
def test_an_interrupted_call_leaves_the_old_file(tmp_path, monkeypatch, suffix):
    path = tmp_path / f"a{suffix}"
    save_libsvm(path, np.eye(2), [1, 2])
    before = path.read_bytes()
    for victim in ("_lines", "os.fsync", "os.replace"):
        with monkeypatch.context() as patch:

            def interrupt(*_):
                raise KeyboardInterrupt

            patch.setattr(f"locole.datasets.writing.{victim}", interrupt)
            with pytest.raises(KeyboardInterrupt):
                save_libsvm(path, np.eye(3), [3, 4, 5])
        assert path.read_bytes() == before
        assert [p.name for p in tmp_path.iterdir()] == [path.name]
