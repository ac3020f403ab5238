"""Every kind of value comes back from a file as it was, to the bit."""

from __future__ import annotations

import itertools
import json
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
import scipy.sparse as sp
from bags import Bag, assert_same
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from locole.exceptions import ModelFileError
from locole.io import FORMAT, read_manifest, read_model, write_model
from locole.io.strings import Strings, pack_strings, unpack_strings

TYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
TYPES += ["float16", "float32", "float64"]

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
keys = texts.filter(lambda text: not text.startswith("$"))
scalars = st.none() | st.booleans() | st.integers() | st.floats() | texts
arrays = hnp.arrays(
    st.sampled_from(TYPES), hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=4)
)
objects = st.lists(texts, max_size=4).map(lambda items: np.array(items, dtype=object))
strings = st.lists(texts, max_size=4).map(lambda items: np.array(items, dtype=str))
values = st.recursive(
    scalars | arrays | objects | strings,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(keys, inner, max_size=3)
        | st.dictionaries(st.sampled_from("abc"), inner).map(lambda kwargs: Bag(**kwargs))
    ),
    max_leaves=8,
)


def there_and_back(value, **options):
    folder = Path(tempfile.mkdtemp())
    try:
        write_model(folder, Bag(value=value))
        return read_model(folder, **options).values["value"]
    finally:
        shutil.rmtree(folder)


@given(values)
def test_all_values_survive(value):
    assert_same(value, there_and_back(value))


@pytest.mark.parametrize("dtype", TYPES)
def test_all_types_of_arrays(dtype):
    rng = np.random.default_rng(0)
    size = np.dtype(dtype).itemsize
    raw = rng.integers(0, 2 if dtype == "bool" else 256, 24 * size, dtype=np.uint8)
    array = raw.view(dtype)[:24].reshape(4, 6)
    assert_same(array, there_and_back(array))
    assert_same(np.ascontiguousarray(array[:, ::2]), there_and_back(array[:, ::2]))
    assert_same(array.T.copy(), there_and_back(np.asfortranarray(array.T)))


def test_foreign_byte_order_keeps_the_numbers():
    back = there_and_back(np.arange(5, dtype=">i4"))
    assert back.dtype == "<i4"
    np.testing.assert_array_equal(back, np.arange(5))
    assert there_and_back(np.array(["ab"], dtype=">U2")).tolist() == ["ab"]


@pytest.mark.parametrize("value", [np.float32(1.1), np.float64(0.1), np.int8(-3), np.bool_(True)])
def test_numpy_numbers_become_python_numbers(value):
    back = there_and_back(value)
    assert type(back) is type(value.item())
    assert back == value


@pytest.mark.parametrize("index_type", [np.int32, np.int64])
def test_sparse_arrays(index_type):
    matrix = sp.random_array((30, 20), density=0.2, rng=np.random.default_rng(0), format="csr")
    matrix.indices = matrix.indices.astype(index_type)
    matrix.indptr = matrix.indptr.astype(index_type)
    assert_same(matrix, there_and_back(matrix))
    empty = sp.csr_array((3, 0))
    assert there_and_back(empty).shape == (3, 0)


def test_a_foreign_reader_understands_the_arrays(tmp_path):
    """The file is what the safetensors library reads, and its header says where everything is."""
    rng = np.random.default_rng(0)
    given = {dtype: rng.integers(0, 2, (3, 5)).astype(dtype) for dtype in TYPES}
    write_model(tmp_path / "m", Bag(**given))
    manifest = read_manifest(tmp_path / "m")
    found = safetensors.numpy.load_file(tmp_path / "m" / manifest.arrays_file)
    assert {name: entry.shape for name, entry in manifest.arrays.items()} == {
        name: array.shape for name, array in found.items()
    }
    for array in given.values():
        same = [f for f in found.values() if f.dtype == array.dtype]
        assert any(np.array_equal(array, f) for f in same)


def test_arrays_are_aligned_and_plain(tmp_path):
    given = {
        "bytes": np.ones(3, np.uint8),
        "odd": np.ones(5, np.float64),
        "half": np.ones(7, np.float16),
        "lines": np.ones((4, 16), np.float32),
        "more": np.zeros((64, 3), np.int8),
    }
    write_model(tmp_path / "m", Bag(**given))
    for name, array in read_model(tmp_path / "m").values.items():
        address = array.__array_interface__["data"][0]
        assert type(array) is np.ndarray
        assert address % array.itemsize == 0
        assert name not in ("lines", "more") or address % 64 == 0


def test_writing_to_a_loaded_array_leaves_the_file_alone(tmp_path):
    write_model(tmp_path / "m", Bag(x=np.arange(5)))
    read_model(tmp_path / "m").values["x"][:] = 7
    assert read_model(tmp_path / "m", verify=True).values["x"].tolist() == [0, 1, 2, 3, 4]


def test_equal_arrays_are_kept_once(tmp_path):
    x = np.arange(1000)
    write_model(tmp_path / "m", Bag(a=x, b=[x.copy()], c=x.astype(np.int32), d=x.reshape(10, 100)))
    assert len(read_manifest(tmp_path / "m").arrays) == 3
    assert_same(x, read_model(tmp_path / "m").values["b"][0])


def test_names_that_meet_are_kept_apart():
    value = {"a.b": np.arange(3), "a": {"b": np.arange(4)}}
    assert_same(value, there_and_back(value))


def test_the_same_model_gives_the_same_files(tmp_path):
    for name in ("a", "b"):
        write_model(tmp_path / name, Bag(x=np.arange(5), y="é", z=[1.5, None]))
    files = [sorted((tmp_path / name).iterdir()) for name in ("a", "b")]
    assert [f.name for f in files[0]] == [f.name for f in files[1]]
    assert [f.read_bytes() for f in files[0]] == [f.read_bytes() for f in files[1]]


def test_the_manifest_is_plain_json(tmp_path):
    write_model(tmp_path / "m", Bag(text='quote " and \n é', number=0.1))
    content = json.loads((tmp_path / "m" / "manifest.json").read_text(encoding="ascii"))
    assert content["format"] == FORMAT == 2
    assert content["model"]["$part"]["values"]["number"] == 0.1


# --- strings ---


@given(st.lists(texts, max_size=6))
def test_strings_are_bytes_and_offsets(items):
    packed = pack_strings(np.array(items, dtype=object))
    raw, offsets = packed.bytes.tobytes(), packed.offsets
    assert [raw[a:b].decode() for a, b in itertools.pairwise(offsets)] == items
    assert unpack_strings(packed).tolist() == items


def test_a_million_strings_are_quick_and_small(tmp_path):
    names = np.array([f"label {i}" for i in range(200_000)])
    write_model(tmp_path / "m", Bag(names=names))
    assert_same(names, read_model(tmp_path / "m").values["names"])
    assert (tmp_path / "m" / "manifest.json").stat().st_size < 2000


def test_strings_padded_beyond_reason_come_back_unpadded(monkeypatch):
    monkeypatch.setattr("locole.io.strings._ROOM_BYTES", 1000)
    back = there_and_back(np.array(["a", "b" * 400] + ["c"] * 50))
    assert back.dtype == object
    assert back.tolist() == ["a", "b" * 400] + ["c"] * 50


B, O = np.frombuffer("añb".encode(), np.uint8), np.array  # noqa: E741


@pytest.mark.parametrize(
    ("raw", "offsets", "dtype", "part"),
    [
        (B, O([0, 2, 4]), "object", "within characters"),
        (B, O([0, 1, 3]), "object", "do not rise"),
        (B, O([1, 4]), "object", "do not rise"),
        (B, O([0, 3, 1, 4]), "object", "do not rise"),
        (B, O([0, 2**62, 4]), "object", "do not rise"),
        (B, O([0, -1, 4]), "object", "do not rise"),
        (B, O([0, 2**62 + 2**61, -(2**62), 4]), "object", "do not rise"),
        (B, np.empty(0, np.int64), "object", "no beginnings"),
        (B, O([0, 4], np.int32), "object", "no bytes and offsets"),
        (B.view(np.int8), O([0, 4]), "object", "no bytes and offsets"),
        (B, O([[0, 4]]), "object", "no bytes and offsets"),
        (B[:2], O([0, 2]), "object", "not UTF-8"),
        (B, O([0, 4]), "<U2", "longer than their type"),
        (B, O([0, 4]), "<i4", "unknown type"),
        (B, O([0, 4]), "<U" + "9" * 5000, "unknown type"),
    ],
)
def test_bad_strings_are_refused(raw, offsets, dtype, part):
    with pytest.raises(ModelFileError, match=part):
        unpack_strings(Strings(raw, offsets, dtype))


def test_an_absurd_width_takes_no_memory():
    packed = Strings(np.full(10, 97, np.uint8), np.arange(11), "<U2000000000")
    assert unpack_strings(packed).tolist() == ["a"] * 10


# --- what a file cannot hold ---


@pytest.mark.parametrize(
    ("value", "part"),
    [
        (np.ones(2, np.complex64), "complex64"),
        (np.ones(2, np.longdouble), "cannot hold exactly"),
        (np.array(["2020-01-01"], "M8[D]"), "cannot hold exactly"),
        (np.array([b"ab"]), "cannot hold exactly"),
        (np.ones((1, 1, 1)), "3-d array"),
        (np.array(["a", 1], dtype=object), "mixes in the int 1"),
        (np.array(["a", None], dtype=object), "mixes in the NoneType"),
        (np.array(["\ud800"]), "half a character"),
        (np.array([["a"]]), "table of strings"),
        (sp.csc_array((2, 2)), "csc_array"),
        (object(), "need pickle"),
        (len, "need pickle"),
        ({1: 2}, "keys must be words"),
        ({"$array": 1}, "keys must be words"),
        (np.random.RandomState(0), "RandomState"),
        ("x" * (1 << 24), "more than the"),
    ],
)
def test_what_cannot_be_held_is_refused_before_anything_is_written(tmp_path, value, part):
    with pytest.raises(ModelFileError, match=part):
        write_model(tmp_path / "m", Bag(good=np.arange(3), value=value))
    assert not (tmp_path / "m").exists()


def test_what_is_nested_too_deeply_is_refused(tmp_path):
    deep = []
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(ModelFileError, match="nested too deeply"):
        write_model(tmp_path / "m", Bag(value=deep))


def test_a_subclass_is_not_mistaken_for_its_parent(tmp_path):
    class Sack(Bag):
        pass

    with pytest.raises(ModelFileError, match="Sack"):
        write_model(tmp_path / "m", Sack())
