"""LIBSVM files against an obvious parser and scikit-learn's; batches, packed files, standard input."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import threading
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
import svm_reference
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from locole.datasets import base, iter_libsvm, load_libsvm, load_libsvm_files, sources
from locole.exceptions import LocoleError

PACKERS = {".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress}
TEXT = "7 1:0.5 3:2\n-9 2:1e-3  # a comment\n\n# nothing\n+7 qid:3 1:-1 4:0.25\n"


def same(X, other):
    return X.shape == other.shape and all(
        np.array_equal(getattr(X, part), getattr(other, part))
        for part in ("data", "indices", "indptr")
    )


def write(folder, text, name="data.svm"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_file_with_a_bit_of_everything(tmp_path):
    X, y = load_libsvm(write(tmp_path, TEXT))
    assert y.dtype == np.int64
    assert y.tolist() == [7, -9, 7]
    expected = [[0.5, 0, 2, 0], [0, 1e-3, 0, 0], [-1, 0, 0, 0.25]]
    np.testing.assert_array_equal(X.toarray(), np.float32(expected))


def test_arrays_are_compact(tmp_path):
    X, _ = load_libsvm(write(tmp_path, TEXT))
    assert type(X) is sp.csr_matrix
    assert X.dtype == np.float32
    assert X.indices.dtype == X.indptr.dtype == np.int32
    assert X.has_sorted_indices
    X.check_format(full_check=True)


# --- any file ---

blanks = st.sampled_from([" ", "  ", "\t", " \t "])
values = st.floats(-1e6, 1e6, width=32).map(str) | st.sampled_from(["0", "1", "-.5", "1e-3"])
labels = st.integers(-(10**6), 10**6).map(str) | st.integers(0, 9).map("+{}.00".format)


@st.composite
def lines(draw, first):
    """A row with blanks, comments and a query id anywhere they may be, or no row at all."""
    kind = draw(st.integers(0, 9))
    if kind == 0:
        return draw(st.sampled_from(["", "   ", "# 3 4:5", "\t# x"]))
    indices = draw(st.lists(st.integers(first, 40), max_size=8, unique=kind != 1))
    if kind > 2:
        indices.sort()
    pairs = [f"{i}:{draw(values)}" for i in indices]
    if kind == 3:
        pairs.insert(0, "qid:12")
    line = draw(blanks).join([draw(labels), *pairs])
    return (
        draw(st.sampled_from(["", " "])) + line + draw(st.sampled_from(["", " ", " # 1:2", "\t"]))
    )


@st.composite
def files(draw):
    first = draw(st.sampled_from([0, 1]))
    rows = draw(st.lists(lines(first), min_size=1, max_size=12))
    # A row that settles the base, and the columns.
    rows.append(f"3 {first}:1 41:1")
    end = draw(st.sampled_from(["\n", "\r\n"]))
    return end.join(rows) + draw(st.sampled_from(["", end])), first == 0


@settings(max_examples=80)
@given(files(), st.sampled_from([2, 7, 64, 1 << 20]))
def test_any_file_in_chunks_of_any_size(tmp_path_factory, file, chunk_bytes):
    text, zero_based = file
    path = write(tmp_path_factory.getbasetemp(), text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sources, "CHUNK_BYTES", chunk_bytes)
        X, y = load_libsvm(path)
    expected, fields = svm_reference.parse(text, zero_based=zero_based)
    assert y.tolist() == [int(float(field)) for field in fields]
    assert X.shape == expected.shape
    np.testing.assert_array_equal(X.toarray(), expected.toarray())
    assert all(np.all(np.diff(row.indices) > 0) for row in X)


@settings(max_examples=80)
@given(files(), st.integers(1, 9), st.sampled_from([5, 1 << 20]))
def test_batches_are_the_file_cut_up(tmp_path_factory, file, batch_rows, chunk_bytes):
    path = write(tmp_path_factory.getbasetemp(), file[0])
    X, y = load_libsvm(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sources, "CHUNK_BYTES", chunk_bytes)
        parts = list(iter_libsvm(path, batch_rows=batch_rows))
    assert [part.shape[0] for part, _ in parts[:-1]] == [batch_rows] * (len(parts) - 1)
    assert same(sp.csr_matrix(sp.vstack([part for part, _ in parts])), X)
    np.testing.assert_array_equal(np.concatenate([part for _, part in parts]), y)


@pytest.mark.parametrize("zero_based", [True, False])
def test_the_same_as_scikit_learn(tmp_path, zero_based):
    rng = np.random.default_rng(0)
    X = sp.random_array((300, 1000), density=0.02, rng=rng, format="lil")
    X[0, 0] = 1
    path = str(tmp_path / "data.svm")
    dump_svmlight_file(X.tocsr(), rng.integers(50, size=300), path, zero_based=zero_based)
    expected, y_expected = load_svmlight_file(path, n_features=1000, dtype=np.float32)
    found, y = load_libsvm(path, n_features=1000)
    assert same(found, expected)
    np.testing.assert_array_equal(y, y_expected)


# --- columns ---


def test_base_of_the_indices(tmp_path):
    path = write(tmp_path, "1 1:1 2:2\n")
    assert load_libsvm(path)[0].indices.tolist() == [0, 1]
    assert load_libsvm(path, zero_based=False)[0].indices.tolist() == [0, 1]
    X, _ = load_libsvm(path, zero_based=True)
    assert X.indices.tolist() == [1, 2]
    assert X.shape == (1, 3)
    path = write(tmp_path, "1 5:1\n2 0:1\n")
    assert load_libsvm(path)[0].indices.tolist() == [5, 0]


def test_files_that_belong_together_have_one_base(tmp_path):
    paths = [write(tmp_path, "1 1:1 9:1\n", "a.svm"), write(tmp_path, "x 0:1 2:1\n", "b.svm")]
    (X, y), (X_test, y_test) = load_libsvm_files(paths)
    assert X.indices.tolist() == [1, 9]
    assert X_test.indices.tolist() == [0, 2]
    assert X.shape == X_test.shape == (1, 10)
    assert y.tolist() == [1]
    assert y_test.tolist() == ["x"]


def test_number_of_columns(tmp_path):
    path = write(tmp_path, "1 1:1 5:1\n2 3:1\n3\n")
    assert load_libsvm(path)[0].shape == (3, 5)
    assert load_libsvm(path, n_features=9)[0].shape == (3, 9)
    for zero_based in (False, "auto"):
        with pytest.raises(
            LocoleError, match=r"line 1: feature '5' is not between \d and 4: .*drop"
        ):
            load_libsvm(path, n_features=4, zero_based=zero_based)
    X, _ = load_libsvm(path, n_features=3, unknown="drop")
    assert X.toarray().tolist() == [[1, 0, 0], [0, 0, 1], [0, 0, 0]]
    assert load_libsvm(path, n_features=2, unknown="drop")[0].nnz == 1


def test_one_feature_too_many_once_the_base_is_known(tmp_path):
    path = write(tmp_path, "1 4:1\n2 0:1\n")
    with pytest.raises(
        LocoleError, match="feature 4, with features counted from 0, is beyond the 4"
    ):
        load_libsvm(path, n_features=4)
    X, _ = load_libsvm(path, n_features=4, unknown="drop")
    assert X.toarray().tolist() == [[0, 0, 0, 0], [1, 0, 0, 0]]


def test_rows_without_any_feature(tmp_path):
    X, y = load_libsvm(write(tmp_path, "1\n2\n"))
    assert X.shape == (2, 0)
    assert y.tolist() == [1, 2]


def test_places_that_int32_cannot_count_are_int64(monkeypatch):
    monkeypatch.setattr(base, "_MAX_INT32", 1)
    X = base.compact_csr(np.ones(2), np.array([0, 1]), np.array([0, 1, 2]), (2, 2))
    assert X.indptr.dtype == np.int64
    assert X.indices.dtype == np.int32
    assert (X @ np.eye(2)).tolist() == [[1, 0], [0, 1]]


def test_repeated_features_add_up(tmp_path):
    X, _ = load_libsvm(write(tmp_path, "1 5:1 2:4 5:0.25\n2 5:1\n"))
    assert X.toarray().tolist() == [[0, 4, 0, 0, 1.25], [0, 0, 0, 0, 1]]


# --- labels ---


def test_labels_that_are_texts(tmp_path):
    path = write(tmp_path, "café 1:1\nc# 2:1\n12 1:1\nx\xadé 1:1\n")
    X, y = load_libsvm(path)
    assert y.dtype == object
    assert y.tolist() == ["café", "c#", "12", "x\xadé"]
    assert X.nnz == 4
    assert load_libsvm(write(tmp_path, "1 1:1\n"), labels="text")[1].tolist() == ["1"]


def test_lines_without_labels(tmp_path):
    path = write(tmp_path, "1:1 2:1\n3 2:1\n4,5 qid:7 1:1\nqid:3 2:1\n")
    X, y = load_libsvm(path, labels=None)
    assert y is None
    assert X.toarray().tolist() == [[1, 1], [0, 1], [1, 0], [0, 1]]
    assert [y for _, y in iter_libsvm(path, labels=None)] == [None]


def test_several_labels(tmp_path):
    path = write(tmp_path, "3,0 1:1\n 1:1 2:1\n2,2,1\n4\n")
    X, Y = load_libsvm(path, multilabel=True)
    assert X.toarray().tolist() == [[1, 0], [1, 1], [0, 0], [0, 0]]
    assert Y.toarray().tolist() == [[1, 0, 0, 1, 0], [0] * 5, [0, 1, 1, 0, 0], [0, 0, 0, 0, 1]]
    assert Y.dtype == np.float32
    assert Y.indices.dtype == np.int32


# --- where the bytes come from ---


@pytest.mark.parametrize("suffix", PACKERS)
@pytest.mark.parametrize("chunk_bytes", [11, 1 << 20])
def test_packed_files(tmp_path, monkeypatch, suffix, chunk_bytes):
    monkeypatch.setattr(sources, "CHUNK_BYTES", chunk_bytes)
    pack, plain = PACKERS[suffix], load_libsvm(write(tmp_path, TEXT))
    half = len(TEXT) // 2
    packed = {
        f"a.svm{suffix}": pack(TEXT.encode()),
        "a.svm": pack(TEXT.encode()),  # known by its first bytes
        f"b.svm{suffix}": pack(TEXT[:half].encode()) + pack(b"") + pack(TEXT[half:].encode()),
        f"c.SVM{suffix.upper()}": pack(TEXT.encode()) + b"\0" * 8,
    }
    for name, data in packed.items():
        X, y = load_libsvm(write(tmp_path, data, name))
        assert same(X, plain[0]), name
        assert y.tolist() == plain[1].tolist()


def feed(monkeypatch, data):
    stream = io.TextIOWrapper(io.BufferedReader(io.BytesIO(data)))
    monkeypatch.setattr("sys.stdin", stream)
    return stream


def test_standard_input(tmp_path, monkeypatch):
    expected, _ = load_libsvm(write(tmp_path, TEXT))
    stream = feed(monkeypatch, TEXT.encode())
    assert same(load_libsvm("-")[0], expected)
    assert not stream.closed
    feed(monkeypatch, gzip.compress(TEXT.encode()))
    (part,) = iter_libsvm("-", n_features=4)
    assert same(part[0], expected)
    feed(monkeypatch, b"1 0:1\n")
    with pytest.raises(LocoleError, match=r"standard input, line 1: feature '0' .*zero_based"):
        list(iter_libsvm("-", n_features=4))
    with pytest.raises(LocoleError, match="only once: give n_features"):
        iter_libsvm("-")


def test_a_named_pipe_is_read_once(tmp_path):
    pipe = tmp_path / "pipe.svm"
    os.mkfifo(pipe)
    with pytest.raises(LocoleError, match=r"pipe\.svm can be read only once: give n_features"):
        iter_libsvm(pipe)
    for read in (lambda: load_libsvm(pipe), lambda: next(iter_libsvm(pipe, n_features=4))):
        writer = threading.Thread(target=pipe.write_text, args=(TEXT,))
        writer.start()
        assert read()[0].shape == (3, 4)
        writer.join()


def test_a_byte_order_mark_is_skipped(tmp_path):
    _, y = load_libsvm(write(tmp_path, b"\xef\xbb\xbf" + TEXT.encode()))
    assert y.dtype == np.int64


def test_memory_is_less_than_twice_the_result(tmp_path):
    path = write(tmp_path, ("3 " + " ".join(f"{i}:0.5" for i in range(1, 201)) + "\n") * 15_000)
    load_libsvm(write(tmp_path, TEXT, "small.svm"))  # compiles
    tracemalloc.start()
    X, y = load_libsvm(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    result = sum(part.nbytes for part in (X.data, X.indices, X.indptr, y))
    assert X.nnz == 3_000_000
    assert peak < 1.7 * result


def test_batches_need_no_more_memory_for_a_longer_file(tmp_path):
    peaks = []
    for n_rows in (100, 6_000, 24_000):  # the first one compiles
        line = "3 " + " ".join(f"{i}:0.5" for i in range(1, 201)) + "\n"
        path = write(tmp_path, line * n_rows)
        tracemalloc.start()
        parts = iter_libsvm(path, batch_rows=500, n_features=200, zero_based=False)
        assert sum(X.shape[0] for X, _ in parts) == n_rows
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] < 1.2 * peaks[1] < path.stat().st_size / 2
