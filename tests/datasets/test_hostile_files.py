"""Files that crashed a reader, took gigabytes or raised what is not ours: one sentence each."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

from locole.datasets import load_npz, load_texts
from locole.exceptions import LocoleError


def npz(path, **members):
    np.savez(path, **members)
    return path


def csr(n=3, **changes):
    X = sp.random_array((n, 5), density=0.5, rng=np.random.default_rng(0), format="csr")
    parts = {"format": b"csr", "shape": X.shape, "data": X.data, "indices": X.indices,
             "indptr": X.indptr}  # fmt: skip
    return {**parts, **changes}


def test_pointers_that_wrap_around_in_int32(tmp_path):
    """scipy's own check takes differences, which wrap around; its next step was a segmentation fault."""
    top, nnz = 2**30, csr()["data"].size
    indptr = np.array([0, top + top // 2, -top, nnz], dtype=np.int32)
    path = npz(tmp_path / "a.npz", **csr(indptr=indptr))
    with pytest.raises(LocoleError, match="rows of a sparse matrix do not rise from 0 to the end"):
        load_npz(path, labelled=False)


def test_many_rows_of_nothing(tmp_path):
    one = np.zeros(1, dtype=np.int32)
    path = npz(
        tmp_path / "a.npz", format=b"csc", shape=(10**9, 1), data=one, indices=one,
        indptr=np.array([0, 1], dtype=np.int32),
    )  # fmt: skip
    with pytest.raises(LocoleError, match=r"its rows would take 8\.0 GB"):
        load_npz(path, labelled=False)


def test_a_header_that_is_no_python(tmp_path):
    """numpy takes headers to pieces by tokenize, which has an error of its own."""
    path = npz(tmp_path / "a.npz", **csr())
    with zipfile.ZipFile(path) as members:
        raw = {name: members.read(name) for name in members.namelist()}
    raw["data.npy"] = raw["data.npy"].replace(b"{'descr'", b"{'''escr")
    with zipfile.ZipFile(path, "w") as members:
        for name, data in raw.items():
            members.writestr(name, data)
    with pytest.raises(LocoleError, match="is no sparse matrix in CSR or CSC format, or damaged"):
        load_npz(path, labelled=False)
    np.save(tmp_path / "b_y.npy", np.arange(3))
    labels = (tmp_path / "b_y.npy").read_bytes().replace(b"{'descr'", b"{'''escr")
    (tmp_path / "b_y.npy").write_bytes(labels)
    with pytest.raises(LocoleError, match="is no array of whole numbers or texts"):
        load_npz(npz(tmp_path / "b.npz", **csr()))


def test_places_of_other_types(tmp_path):
    for dtype in (">i4", ">i8", "u2", "u8"):
        honest = csr()
        other = {name: honest[name].astype(dtype) for name in ("indices", "indptr")}
        X, _ = load_npz(npz(tmp_path / "a.npz", **{**honest, **other}), labelled=False)
        expected, _ = load_npz(npz(tmp_path / "b.npz", **honest), labelled=False)
        assert (expected != X).nnz == 0


def parquet(path, texts, labels, **options):
    pq.write_table(pa.table({"text": texts, "label": labels}), path, **options)
    return path


def test_texts_that_are_not_utf8(tmp_path):
    offsets, raw = pa.py_buffer(np.array([0, 2], np.int32)), pa.py_buffer(b"\xff\xfe")
    bad = pa.StringArray.from_buffers(1, offsets, raw)
    for texts in (bad, bad.cast(pa.large_string())):
        with pytest.raises(LocoleError, match=r"not UTF-8|Invalid UTF8"):
            load_texts(parquet(tmp_path / "a.parquet", texts, ["x"]))


@pytest.mark.parametrize("kind", ["string", "large_string"])
def test_a_long_text_of_a_dictionary_is_made_once(tmp_path, kind):
    """Some hundred bytes; 4,096 copies of a million characters took ten gigabytes."""
    texts = pa.array(["a" * 1_000_000], kind)
    long = pa.DictionaryArray.from_arrays(np.zeros(4096, np.int8), texts)
    path = parquet(tmp_path / "a.parquet", long, long, compression="zstd", store_schema=False)
    assert path.stat().st_size < 2000
    texts, labels = load_texts(path)
    assert len(texts) == 4096
    assert len({id(text) for text in texts}) == len({id(label) for label in labels}) == 1
    assert pa.default_memory_pool().max_memory() < 1e8


def test_a_file_that_is_cut_short(tmp_path):
    path = parquet(tmp_path / "a.parquet", ["a", "b"], ["x", "y"])
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(LocoleError, match="is no Parquet file, or damaged"):
        load_texts(path)
    (tmp_path / "a.npz").write_bytes(io.BytesIO(b"PK").getvalue())
    with pytest.raises(LocoleError, match="is no sparse matrix"):
        load_npz(tmp_path / "a.npz", labelled=False)
