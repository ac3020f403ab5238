"""The one door: the format by suffix or by name, labels wanted or not, matrices with their labels."""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp

from locole import datasets
from locole.datasets import Examples, files, growing, iter_examples, load_npz, read_examples
from locole.datasets.npz import labels_path
from locole.exceptions import LocoleError

X = sp.csr_matrix(np.float32([[0.5, 0, 2], [0, 1, 0], [0, 0, 0.25]]))
FILES = {
    "data.svm": b"7 1:0.5 3:2\n9 2:1\n7 3:0.25\n",
    "data.libsvm.gz": gzip.compress(b"7 1:0.5 3:2\n9 2:1\n7 3:0.25\n"),
    "data.xmc": b"3 3 10\n7 0:0.5 2:2\n9 1:1\n7 2:0.25\n",
    "data.tsv": b"x\ta\ny\tb\nx\tc\n",
    "data.csv": b"text,label\na,x\nb,y\nc,x\n",
    "data.jsonl": b'{"text":"a","label":"x"}\n{"text":"b","label":"y"}\n{"text":"c","label":"x"}\n',
}


def write(folder, data, name):
    path = folder / name
    path.write_bytes(data)
    return path


def save(folder, X, y=None, name="data.npz"):
    path = folder / name
    sp.save_npz(path, X)
    if y is not None:
        np.save(labels_path(path), y)
    return path


@pytest.fixture(params=[*FILES, "data.npz"])
def path(request, tmp_path):
    if request.param == "data.npz":
        return save(tmp_path, X, [7, 9, 7])
    return write(tmp_path, FILES[request.param], request.param)


def check_part(part, rows, labels):
    assert isinstance(part, Examples)
    if isinstance(part.features, list):
        assert part.features == ["a", "b", "c"][rows]
        names = np.array(["x", "y", "x"], dtype=object)
    else:
        assert part.features.dtype == np.float32
        assert part.features.indices.dtype == np.int32
        np.testing.assert_array_equal(part.features.toarray(), X[rows].toarray())
        names = np.array([7, 9, 7])
    assert (part.labels is not None) == labels
    if labels:
        assert part.labels.dtype == names.dtype
        assert part.labels.tolist() == names[rows].tolist()


@pytest.mark.parametrize("labelled", [True, False])
def test_every_format_whole_and_in_batches(path, labelled):
    check_part(read_examples(path, labelled=labelled), slice(None), labelled)
    first, second = iter_examples(path, labelled=labelled, batch_rows=2)
    check_part(first, slice(0, 2), labelled)
    check_part(second, slice(2, 3), labelled)
    named = files.format_of(path)
    other = path.rename(path.with_name("other.dat"))
    if named != "npz":
        check_part(read_examples(other, format=named, labelled=labelled), slice(None), labelled)


def test_number_of_features(path):
    if isinstance(read_examples(path).features, list):
        assert len(read_examples(path, n_features=9).features) == 3
        return
    assert read_examples(path, n_features=3).features.shape == (3, 3)
    if files.format_of(path) == "libsvm":
        assert read_examples(path, n_features=9).features.shape == (3, 9)
        parts = iter_examples(path, n_features=2, unknown="drop", zero_based=False)
        assert [part.features.shape for part in parts] == [(3, 2)]
    else:
        for read in (read_examples, lambda *a, **k: list(iter_examples(*a, **k))):
            with pytest.raises(LocoleError, match="has 3 features where 9 are needed"):
                read(path, n_features=9)


def test_columns_are_handed_on(tmp_path):
    path = write(tmp_path, b"kind,body\nx,a\n", "data.csv")
    assert read_examples(path, text="body", label="kind").features == ["a"]
    (part,) = iter_examples(path, text="body", labelled=False)
    assert part == (["a"], None)


def test_lines_of_standard_input_are_texts(monkeypatch):
    def feed(data):
        stream = io.TextIOWrapper(io.BufferedReader(io.BytesIO(data)))
        monkeypatch.setattr("sys.stdin", stream)

    feed(b"a\nb\n")
    assert read_examples("-", labelled=False) == (["a", "b"], None)
    feed(b"1 1:1\n")
    (part,) = iter_examples("-", format="libsvm", n_features=2)
    assert part.features.shape == (1, 2)
    for kind in ("npz", "parquet"):
        with pytest.raises(LocoleError, match="standard input"):
            read_examples("-", format=kind)


@pytest.mark.parametrize(
    ("name", "options", "reason"),
    [
        ("data.txt", {}, "texts alone has no labels"),
        (
            "data.doc",
            {},
            r"data\.doc: the suffix is none of \.svm, .* rename the file or give format=, one of libsvm",
        ),
        ("data", {}, "the suffix is none of"),
        ("data.gz", {}, "the suffix is none of"),
        ("data.svm", {"format": "excel"}, "unknown format 'excel': take one of auto, libsvm"),
        ("data.svm", {"text": "a"}, "the format libsvm has no columns: leave out text and label"),
    ],
)
def test_bad_requests(tmp_path, name, options, reason):
    path = write(tmp_path, b"1 1:1\n", name)
    with pytest.raises(LocoleError, match=reason):
        read_examples(path, **options)
    with pytest.raises(LocoleError, match=reason):
        iter_examples(path, **options)


# --- matrices ---


def test_matrices_of_any_type(tmp_path):
    for matrix in (X, X.tocsc(), sp.csr_array(X), X.astype(np.float64), X.astype(bool).astype(int)):
        found, y = load_npz(save(tmp_path, matrix), labelled=False)
        assert type(found) is sp.csr_matrix
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found.toarray(), matrix.toarray())
        assert y is None


def test_labels_beside_a_matrix(tmp_path):
    for given in (["b", "a", "ü"], [3, 1, 2], np.uint8([3, 1, 2])):
        _, y = load_npz(save(tmp_path, X, given))
        assert y.tolist() == list(given)
        assert y.dtype == (object if isinstance(given[0], str) else np.int64)


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        (None, r"there are no labels in data_y\.npy beside it"),
        ([1, 2], "must hold 3 whole numbers or texts"),
        ([[1, 2, 3]], "must hold 3 whole numbers or texts"),
        ([1.0, 2.0, 3.0], "must hold 3 whole numbers or texts"),
        (
            np.array(["a", None, 3], dtype=object),
            r"data_y\.npy is no array of whole numbers or texts",
        ),
        (np.array([2**63, 1, 2], dtype=np.uint64), "too large for int64"),
    ],
    ids=str,
)
def test_bad_labels(tmp_path, labels, reason):
    with pytest.raises(LocoleError, match=reason):
        load_npz(save(tmp_path, X, labels))


def spoilt(name, value):
    """Matrix with a part that scipy itself would not look at."""
    bad = X.copy()
    setattr(bad, name, value)
    return bad


@pytest.mark.parametrize(
    ("matrix", "reason"),
    [
        (spoilt("indices", np.int32([0, 99, 1, 2])), "damaged"),
        (spoilt("indices", np.int32([0, -1, 1, 2])), "damaged"),
        (spoilt("indptr", np.int32([0, 4, 1, 4])), "damaged"),
        (spoilt("data", np.float32([1, np.nan, 1, 1])), "NaN, infinity"),
        (spoilt("data", np.float64([1, 1e39, 1, 1])), "too large for float32"),
        (spoilt("data", np.complex64([1, 1j, 1, 1])), "a matrix of numbers"),
        (sp.csr_matrix((2, 10**9)), "at most 100,000,000 columns"),
        (X.tocoo(), "no sparse matrix in CSR or CSC format"),
        (X.todia(), "no sparse matrix in CSR or CSC format"),
    ],
    ids=["column", "negative", "pointer", "nan", "huge", "complex", "wide", "coo", "dia"],
)
def test_bad_matrices(tmp_path, matrix, reason):
    with pytest.raises(LocoleError, match=r"data\.npz.*" + reason):
        load_npz(save(tmp_path, matrix), labelled=False)


def test_no_pickle_is_ever_loaded(tmp_path):
    path = tmp_path / "data.npz"
    parts = {"format": b"csr", "shape": [1, 1], "indices": [0], "indptr": [0, 1]}
    np.savez(path, data=np.array([{}], dtype=object), **parts)
    with pytest.raises(LocoleError, match=r"damaged.*allow_pickle=False"):
        load_npz(path, labelled=False)


def test_every_truncation_and_flipped_bits_of_a_matrix(tmp_path):
    path = save(tmp_path, X)
    data = path.read_bytes()
    for place in range(0, len(data), 7):
        with pytest.raises(LocoleError, match=r"data\.npz"):
            load_npz(write(tmp_path, data[:place], "data.npz"), labelled=False)
        flipped = data[:place] + bytes([data[place] ^ 1 << place % 8]) + data[place + 1 :]
        try:
            found, _ = load_npz(write(tmp_path, flipped, "data.npz"), labelled=False)
        except LocoleError:
            continue
        np.testing.assert_array_equal(found.toarray(), X.toarray())


def test_a_matrix_that_does_not_fit(tmp_path, monkeypatch):
    path = tmp_path / "data.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as members:
        members.writestr("data.npy", b"\0" * 10_000_000)
    assert path.stat().st_size < 20_000
    monkeypatch.setattr(growing, "available_bytes", lambda: 5_000_000)
    with pytest.raises(LocoleError, match="does not fit into memory"):
        load_npz(path)


# --- the package ---


def test_all_names_exist_and_have_examples():
    assert datasets.__all__ == sorted(datasets.__all__)
    for name in datasets.__all__:
        assert getattr(datasets, name).__doc__


def test_the_import_is_light():
    # scikit-learn takes pandas where it is installed, and pandas takes pyarrow.
    code = (
        "import sys; sys.modules['pandas'] = None\n"
        "import locole.datasets; print('pyarrow' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
