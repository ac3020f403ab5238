"""Bad and hostile LIBSVM files: an error with file, line and reason, never a crash or a full memory."""

from __future__ import annotations

import bz2
import gzip
import lzma
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locole.datasets import growing, iter_libsvm, load_libsvm, load_xmc, sources
from locole.exceptions import LocoleError

PACKERS = {".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress}
GOOD = b"3 1:0.5 7:1\n4 2:0.25\n"


def write(folder, data, name="data.svm"):
    path = folder / name
    path.write_bytes(data)
    return path


def attempt(load, path, **options):
    """The matrix, or the message of the one kind of error that is allowed."""
    try:
        return load(path, **options)[0], None
    except LocoleError as error:
        return None, str(error)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"3 1:0.5 x", "'x' is not index:value"),
        (b"3 1:0.5 7", "'7' is not index:value, as in 17:0.25"),
        (b"3 10 4", "'10' is not index:value.*load_xmc"),
        (b"3 :5", "':5' is not index:value"),
        (b"3 -1:5", "'-1:5' is not index:value"),
        (b"3 1.5:5", "'1.5:5' is not index:value"),
        (b"3 1 :5", "'1' is not index:value"),
        (b"3 quid:5", "'quid:5' is not index:value"),
        (b"3 1:", "'1:' does not have a finite number"),
        (b"3 1: 5", "'1:' does not have a finite number"),
        (b"3 1:nan", "'1:nan' does not have a finite number"),
        (b"3 1:-inf", "'1:-inf' does not have a finite number"),
        (b"3 1:1e", "'1:1e' does not have"),
        (b"3 1:1e+ 2:1", r"'1:1e\+' does not have"),
        (b"3 1:.", r"'1:\.' does not have"),
        (b"3 1:0x1p3", "'1:0x1p3' does not have"),
        (b"3 1:1,5", "'1:1,5' does not have"),
        (b"3 1:1:1", "'1:1:1' does not have"),
        (b"3 1:--1", "'1:--1' does not have"),
        (b"3 1:1_0", "'1:1_0' does not have"),
        (b"3 1:1\x00", r"'1:1\\x00' does not have"),
        (b"3 \x00", r"'\\x00' is not index:value"),
        (b"3 1:1e400", "the value of '1:1e400' is too large for float32: scale"),
        (b"3 1:1 2:3.5e38", "the value of '2:3.5e38' is too large for float32"),
        (b"3 2147483648:1", "feature '2147483648' is not between 0 and 100,000,000: .* larger"),
        (b"3 100000001:1", "feature '100000001' is not between"),
        (b"3 99999999999999999999999999:1", "feature '99999999999999999999999999' is not between"),
        (b"3,4 1:1", "'3,4' are several labels: keep one, or pass multilabel=True"),
        (b"1:1 2:1", "there is no label"),
        (b"x 1:1", "label 'x' is not a whole number.*labels=\"text\""),
        (b"3.5 1:1", "label '3.5' is not a whole number"),
        (b"1e3 1:1", "label '1e3' is not a whole number"),
        (b"- 1:1", "label '-' is not a whole number"),
        (b"12345678901234567890 1:1", "label '12345678901234567890' is not a whole number"),
        (b"\xff\xfe3 1:1", r"label '\\xff\\xfe3' is not a whole number"),
        (b"3 " + b"z" * 500, f"'{'z' * 39}…' is not index:value"),
        (b"3 1:3e38 1:3e38", "after line 1: values of a repeated feature add up to more"),
    ],
    ids=lambda value: repr(value)[:24],
)
def test_bad_lines(tmp_path, line, reason):
    path = write(tmp_path, b"3 1:1\n# comment\n\n" + line + b"\n5 1:1\n")
    where = r"data\.svm, " if reason.startswith("after") else r"data\.svm, line 4: "
    with pytest.raises(LocoleError, match=where + reason):
        load_libsvm(path)
    with pytest.raises(LocoleError, match=where + reason):
        list(iter_libsvm(path, n_features=10**8, zero_based="auto"))


@pytest.mark.parametrize(
    ("line", "options", "reason"),
    [
        (
            b"3 0:1",
            {"zero_based": False},
            "feature '0' is not between 1 and 100,000,000: check zero_b",
        ),
        (b"3 5:1", {"zero_based": True, "max_features": 5}, "feature '5' is not between 0 and 4"),
        (
            b"3 6:1",
            {"max_features": 5},
            "feature '6' is not between 0 and 5: .*larger max_features",
        ),
        (b"-3,1 1:1", {"multilabel": True}, "label '-3' is not between 0 and"),
        (b"3,,1 1:1", {"multilabel": True}, "label '' is not a whole number"),
        (b"3,x 1:1", {"multilabel": True}, "label 'x' is not a whole number"),
        (b"\xff 1:1", {"labels": "text"}, r"label '\\xff' is not UTF-8"),
        (b"x 1:1", {"labels": "int"}, "label 'x' is not a whole number"),
    ],
    ids=str,
)
def test_lines_that_are_bad_for_these_options(tmp_path, line, options, reason):
    path = write(tmp_path, b"3 1:1\n" + line)
    with pytest.raises(LocoleError, match="line 2: " + reason):
        load_libsvm(path, **options)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"zero_based": 2}, "zero_based must be"),
        ({"n_features": 0}, "n_features must be between 1 and"),
        ({"max_features": 2**31}, "max_features must be between 1 and"),
        ({"unknown": "drop"}, "needs n_features"),
        ({"unknown": "x", "n_features": 1}, "unknown must be 'error' or 'drop'"),
        ({"labels": "float"}, "labels must be"),
        ({"labels": "text", "multilabel": True}, "multilabel needs labels that are whole numbers"),
    ],
    ids=str,
)
def test_bad_options(tmp_path, options, reason):
    with pytest.raises(LocoleError, match=reason):
        load_libsvm(write(tmp_path, GOOD), **options)


def test_bad_batches(tmp_path):
    with pytest.raises(LocoleError, match="batch_rows must be at least 1, not 0"):
        iter_libsvm(write(tmp_path, GOOD), batch_rows=0)


@pytest.mark.parametrize("data", [b"", b"\n\n", b"# only a comment", b"\xef\xbb\xbf"], ids=repr)
def test_files_without_rows(tmp_path, data):
    path = write(tmp_path, data)
    with pytest.raises(LocoleError, match=r"data\.svm has no rows"):
        load_libsvm(path)
    assert list(iter_libsvm(path)) == []


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no\.svm"):
        load_libsvm(tmp_path / "no.svm")
    with pytest.raises(IsADirectoryError):
        load_libsvm(tmp_path)


def test_the_line_number_is_right_beyond_the_first_chunk(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "CHUNK_BYTES", 64)
    path = write(tmp_path, b"1 1:1\n\n# x\n" * 100 + b"2 x:1\n")
    with pytest.raises(LocoleError, match="line 301: 'x:1'"):
        load_libsvm(path)


# --- any bytes at all ---

near_misses = st.lists(
    st.sampled_from([*b"0123456789 :,.#-+eE\n\r\t", 0, 255, ord("q"), ord("i"), ord("d")]),
    max_size=60,
).map(bytes)
good_lines = st.sampled_from([GOOD, b"", b"1 qid:3 1:1\n", b"+1,2 0:1e-3 # x\n"])


@settings(max_examples=250)
@given(st.one_of(st.binary(max_size=80), near_misses), good_lines)
def test_any_bytes_give_rows_or_a_clear_error(tmp_path_factory, data, before):
    path = write(tmp_path_factory.getbasetemp(), before + data)
    for options in ({}, {"multilabel": True}, {"labels": None}, {"labels": "text"}):
        X, error = attempt(load_libsvm, path, **options)
        assert error is None or "data.svm" in error
        if error is None:
            X.check_format(full_check=True)
            assert np.isfinite(X.data).all()
            assert X.has_canonical_format
    for labels in ("all", None):
        _, error = attempt(load_xmc, path, labels=labels)
        assert error is None or "data.svm" in error


# --- packed files ---


@pytest.mark.parametrize("suffix", PACKERS)
def test_every_truncation_of_a_packed_file(tmp_path, suffix):
    data = PACKERS[suffix](GOOD * 20)
    for length in range(len(data)):
        path = write(tmp_path, data[:length], f"data.svm{suffix}")
        with pytest.raises(LocoleError, match=r"cut short.*get it again"):
            load_libsvm(path)


@pytest.mark.parametrize("suffix", PACKERS)
def test_flipped_bits_of_a_packed_file(tmp_path, suffix):
    expected, _ = load_libsvm(write(tmp_path, GOOD * 20))
    data = PACKERS[suffix](GOOD * 20)
    for place in range(len(data)):
        flipped = data[:place] + bytes([data[place] ^ 1 << place % 8]) + data[place + 1 :]
        found, error = attempt(load_libsvm, write(tmp_path, flipped, f"data.svm{suffix}"))
        assert error is None or f"data.svm{suffix}" in error
        if error is None:
            # Some bits of the frame, such as the time in a gzip header, mean nothing for the content.
            assert found.indices.tolist() == expected.indices.tolist()
            assert found.data.tolist() == expected.data.tolist()


def test_what_follows_a_packed_file(tmp_path):
    for suffix, pack in PACKERS.items():
        with pytest.raises(LocoleError, match="damaged or cut short"):
            load_libsvm(write(tmp_path, pack(GOOD) + b"rubbish", f"data.svm{suffix}"))


def test_a_name_that_promises_a_packed_file(tmp_path):
    with pytest.raises(LocoleError, match=r"data\.svm\.gz is not a \.gz file"):
        load_libsvm(write(tmp_path, GOOD, "data.svm.gz"))
    with pytest.raises(LocoleError, match=r"data\.svm\.gz is not a \.gz file"):
        load_libsvm(write(tmp_path, lzma.compress(GOOD), "data.svm.gz"))


@pytest.mark.parametrize("suffix", PACKERS)
@pytest.mark.parametrize("content", [b"\n", b"1 1:1\n", b"1"], ids=["empty", "rows", "one line"])
def test_a_file_made_to_fill_the_memory(tmp_path, monkeypatch, suffix, content):
    monkeypatch.setattr(sources, "MAX_RATIO_FROM_BYTES", 1 << 18)
    path = write(tmp_path, PACKERS[suffix](content * (3_000_000 // len(content))), f"a.svm{suffix}")
    load_libsvm(write(tmp_path, GOOD))  # compiles
    tracemalloc.start()
    with pytest.raises(LocoleError, match=r"unpacks to more than 200 times its size|cut short"):
        load_libsvm(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 30e6


def test_an_xz_file_that_needs_much_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "XZ_MEMORY_BYTES", 1 << 16)
    with pytest.raises(LocoleError, match=r"damaged or cut short \(Memory usage limit exceeded\)"):
        load_libsvm(write(tmp_path, lzma.compress(GOOD), "data.svm.xz"))


# --- memory ---


def test_an_endless_line(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "MAX_LINE_BYTES", 1 << 21)
    path = write(tmp_path, b"1 1:1\n2 1:" + b"1" * (1 << 24))
    tracemalloc.start()
    with pytest.raises(LocoleError, match=r"line 2: longer than 2 MiB"):
        load_libsvm(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 24


def test_a_long_line_is_fine(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "CHUNK_BYTES", 32)
    X, _ = load_libsvm(write(tmp_path, b"1 " + b" ".join(b"%d:1" % i for i in range(1, 5001))))
    assert X.nnz == 5000


def test_a_file_that_does_not_fit(tmp_path, monkeypatch):
    path = write(tmp_path, b"1 1:1 2:1\n" * 1000)
    monkeypatch.setattr(growing, "available_bytes", lambda: 5_000)
    with pytest.raises(
        LocoleError, match=r"data\.svm does not fit into memory: read it in batches"
    ):
        load_libsvm(path)
    monkeypatch.setattr(growing, "available_bytes", lambda: None)
    assert load_libsvm(path)[0].nnz == 2000


def test_an_array_that_the_system_refuses():
    numbers = growing.Growing(np.int64, "data.svm")
    with pytest.raises(LocoleError, match=r"data\.svm does not fit into memory"):
        numbers._resize(1 << 60)
