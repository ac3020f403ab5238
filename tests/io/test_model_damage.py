"""Damaged and hostile files: a clean error, never a wrong answer, a crash or a waste of memory."""

from __future__ import annotations

import copy
import json
import os
import shutil
import tracemalloc
from contextlib import suppress

import numpy as np
import pytest
import scipy.sparse as sp
from bags import STRANGE, Bag, places_of, seal
from hypothesis import given
from hypothesis import strategies as st

from locole.exceptions import ModelFileError
from locole.io import FORMAT, read_manifest, read_model, write_model

BAG = {
    "numbers": np.arange(6, dtype=np.float32).reshape(2, 3),
    "names": np.array(["é", "b"]),
    "sparse": sp.csr_array(np.array([[0, 1.5], [2.5, 0]])),
    "more": {"pair": (1, 2.5), "nothing": None, "rest": [float("inf"), Bag(x=1)]},
}


@pytest.fixture
def model(tmp_path):
    write_model(tmp_path / "model", Bag(**BAG))
    return tmp_path / "model"


def files_of(model):
    return [model / "manifest.json", model / read_manifest(model).arrays_file]


def change(model, edit, *, sealed=True):
    path = model / "manifest.json"
    content = json.loads(path.read_text())
    content = edit(content) or content
    path.write_text(json.dumps(seal(content) if sealed else content))


# --- accidents ---


@pytest.mark.parametrize("which", [0, 1], ids=["manifest", "arrays"])
def test_no_flipped_bit_goes_unnoticed(model, which):
    path = files_of(model)[which]
    good = path.read_bytes()
    for place in range(len(good)):
        bad = bytearray(good)
        bad[place] ^= 1 << (place * 5 % 8)
        path.write_bytes(bad)
        with pytest.raises(ModelFileError, match="cannot be loaded"):
            read_model(model)
    path.write_bytes(good)
    read_model(model)


@pytest.mark.parametrize("which", [0, 1], ids=["manifest", "arrays"])
def test_no_missing_or_added_byte_goes_unnoticed(model, which):
    path = files_of(model)[which]
    good = path.read_bytes()
    # The manifest ends with a line break, which means nothing.
    lengths = range(0, len(good) - 1, 7)
    for bad in [*(good[:n] for n in lengths), good + b"0", good[1:], good + good, b""]:
        path.write_bytes(bad)
        for verify in (True, False, "auto"):
            with pytest.raises(ModelFileError, match="cannot be loaded"):
                read_model(model, verify=verify)


def test_swapped_files_are_noticed(model, tmp_path):
    write_model(tmp_path / "other", Bag(**{**BAG, "numbers": BAG["numbers"] + 1}))
    shutil.copy(files_of(tmp_path / "other")[1], files_of(model)[1])
    with pytest.raises(ModelFileError, match=r"numbers has changed"):
        read_model(model)
    shutil.copy(tmp_path / "other" / "manifest.json", model)
    with pytest.raises(ModelFileError, match="is missing"):
        read_model(model)


@pytest.mark.parametrize("which", [0, 1])
def test_a_lost_file_is_noticed(model, which):
    files_of(model)[which].unlink()
    with pytest.raises(ModelFileError, match=["there is none", "is missing"][which]):
        read_model(model)


def test_where_there_is_no_model(tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "nothing", tmp_path, tmp_path / "file", ""):
        with pytest.raises(ModelFileError, match="cannot be loaded"):
            read_model(path)
    with pytest.raises(ModelFileError, match="there is no model"):
        read_manifest(tmp_path / "nothing")


def test_verify_says_how_much_is_hashed(model, monkeypatch):
    path = files_of(model)[1]
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)
    read_model(model, verify=False)
    for verify in (True, "auto"):
        with pytest.raises(ModelFileError, match="has changed"):
            read_model(model, verify=verify)
    monkeypatch.setattr("locole.io.folder._AUTO_BYTES", 1)
    read_model(model)
    with pytest.raises(ModelFileError, match="verify must be"):
        read_model(model, verify="all")


def test_auto_hashes_the_small_arrays_first(tmp_path, monkeypatch):
    write_model(tmp_path / "m", Bag(large=np.zeros(1000, np.uint8), small=np.zeros(10, np.uint8)))
    monkeypatch.setattr("locole.io.folder._AUTO_BYTES", 999)
    path = files_of(tmp_path / "m")[1]
    raw = path.read_bytes()
    path.write_bytes(raw[:-1] + b"\1")
    with pytest.raises(ModelFileError, match="small has changed"):
        read_model(tmp_path / "m")
    path.write_bytes(raw[:-500] + b"\1" + raw[-499:])
    read_model(tmp_path / "m")


# --- attacks: the hashes are right, the contents are not ---

ARRAY = "model.numbers"


def set_entry(key, value):
    def edit(content):
        content["arrays"][ARRAY][key] = value

    return edit


def set_value(value):
    def edit(content):
        content["model"]["$part"]["values"]["more"] = value

    return edit


def rename(name):
    return lambda content: content.update(arrays_file=name)


HOSTILE = {
    "newer format": (lambda c: c.update(format=FORMAT + 1), f"newer locole .format {FORMAT + 1}"),
    "absurd format": (lambda c: c.update(format=10**40), "made by a newer locole"),
    "old format": (lambda c: c.update(format=0), "other entries"),
    "format is true": (lambda c: c.update(format=True), "no format number"),
    "unknown key": (lambda c: c.update(extra=1), "other entries"),
    "missing key": (lambda c: c.pop("made_by") and None, "other entries"),
    "made by a number": (lambda c: c.update(made_by={"locole": 1}), "what made it"),
    "parent folder": (rename("../x"), "none of a model's"),
    "absolute path": (rename("/etc/passwd"), "none of a model's"),
    "file is a list": (rename(["a"]), "none of a model's"),
    "line break after name": (rename("arrays-" + "0" * 32 + ".safetensors\n"), "none of a model's"),
    "lost arrays": (rename("arrays-" + "0" * 32 + ".safetensors"), "is missing"),
    "huge shape": (set_entry("shape", [2**40, 2**40]), "instead of"),
    "absurd shape": (set_entry("shape", [10**30]), "has the shape"),
    "negative shape": (set_entry("shape", [-2, -3]), "has the shape"),
    "fraction of a shape": (set_entry("shape", [2.0, 3]), "has the shape"),
    "shape of bools": (set_entry("shape", [True, 6]), "has the shape"),
    "many dimensions": (set_entry("shape", [1] * 1000), "has the shape"),
    "empty but wide": (set_entry("shape", [0, 2**47]), "instead of"),
    "wrong shape, right size": (set_entry("shape", [3, 2]), "head of its arrays"),
    "wrong type, right size": (set_entry("dtype", "int32"), "head of its arrays"),
    "unknown type": (set_entry("dtype", "O"), "unknown type"),
    "type is a list": (set_entry("dtype", ["float32"]), "unknown type"),
    "wrong hash": (set_entry("sha256", "0" * 64), "has changed"),
    "short hash": (set_entry("sha256", "0"), "no hash"),
    "extra in entry": (set_entry("more", 1), "wrong entries"),
    "no table": (lambda c: c.update(arrays=[]), "no table of arrays"),
    "array not used": (lambda c: c["model"]["$part"]["values"].pop("numbers") and None, "not use"),
    "array not listed": (set_value({"$array": "model.other"}), "does not list"),
    "array is a list": (set_value({"$array": [ARRAY]}), "does not list"),
    "unknown word": (set_value({"$pickle": "x"}), "unknown word"),
    "two words": (set_value({"$array": ARRAY, "$float": "inf"}), "unknown word"),
    "no number": (set_value({"$float": "1e5"}), "an invalid number"),
    "number is a list": (set_value({"$float": []}), "an invalid number"),
    "no tuple": (set_value({"$tuple": 5}), "an invalid tuple"),
    "no strings": (set_value({"$strings": {"bytes": ARRAY}}), "value without"),
    "strings without type": (
        set_value({"$strings": {"bytes": ARRAY, "offsets": ARRAY, "dtype": 1}}),
        "no type",
    ),
    "numbers as strings": (
        set_value({"$strings": {"bytes": ARRAY, "offsets": ARRAY, "dtype": "object"}}),
        "no bytes and offsets",
    ),
    "unknown kind": (set_value({"$part": {"kind": "os.system", "values": {}}}), "unknown kind"),
    "kind is a list": (set_value({"$part": {"kind": [], "values": {}}}), "kind or values"),
    "values are a list": (set_value({"$part": {"kind": "test.bag", "values": []}}), "kind or val"),
    "a part alone": (lambda c: c.update(model={"$part": {}}), "value without"),
    "no part": (lambda c: c.update(model={"$array": ARRAY}), "describes no model"),
    "a number": (lambda c: c.update(model=1), "describes no model"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_manifest_is_refused(model, name):
    edit, part = HOSTILE[name]
    change(model, edit)
    with pytest.raises(ModelFileError, match=part) as caught:
        read_model(model)
    assert len(str(caught.value)) < 600


SPARSE = {
    "columns outside": ([1.0], [5], [0, 1, 1], [2, 2], "lie outside 0"),
    "negative columns": ([1.0], [-1], [0, 1, 1], [2, 2], "lie outside 0"),
    "rows fall": ([1.0], [0], [0, 2, 1], [2, 2], "do not rise"),
    "rows beyond the end": ([1.0], [0], [0, 1, 9], [2, 2], "do not rise"),
    "too few rows": ([1.0], [0], [0, 1], [2, 2], "1 rows of a sparse matrix instead of 2"),
    "absurd shape": ([1.0], [0], [0, 1, 1], [2**60, 2], "invalid sparse matrix"),
    "shape of three": ([1.0], [0], [0, 1, 1], [2, 2, 2], "invalid sparse matrix"),
    "shape of floats": ([1.0], [0], [0, 1, 1], [2.0, 2], "invalid sparse matrix"),
    "uneven": ([1.0, 2.0], [0], [0, 1, 1], [2, 2], "invalid sparse matrix"),
    "columns are floats": ([1.0], [0.0], [0, 1, 1], [2, 2], "no whole numbers"),
    "rows are bools": ([1.0], [0], [False, True, True], [2, 2], "have no beginnings"),
    "a table": ([[1.0]], [0], [0, 1, 1], [2, 2], "invalid sparse matrix"),
    "rows wrap around": (
        [1.0] * 9,
        [0] * 9,
        [0, 2**62 + 2**61, -(2**62), 9],
        [3, 2],
        "do not rise",
    ),
    "negative shape": ([1.0], [0], [0, 1, 1], [2, -2], "invalid sparse matrix"),
}


@pytest.mark.parametrize("name", SPARSE)
def test_a_hostile_sparse_matrix_is_refused(tmp_path, name):
    *arrays, shape, part = SPARSE[name]
    names = ("data", "indices", "indptr")
    write_model(tmp_path / "m", Bag(**dict(zip(names, map(np.array, arrays), strict=True))))

    def edit(content):
        arrays = {name: f"model.{name}" for name in names}
        content["model"]["$part"]["values"] = {"x": {"$csr": {**arrays, "shape": shape}}}

    change(tmp_path / "m", edit)
    with pytest.raises(ModelFileError, match=part):
        read_model(tmp_path / "m")


@pytest.mark.parametrize(
    ("raw", "part"),
    [
        (b"[" * 200_000, "nested too deeply"),
        (b'{"a":' * 200_000, "nested too deeply"),
        (b'{"format": 1, "format": 1}', "twice"),
        (b'{"format": NaN}', "NaN"),
        (b'{"format": -Infinity}', "Infinity"),
        (b'{"format": ' + b"1" * 100_000 + b"}", "no JSON"),
        (b'{"format": 1e400}', "no format number"),
        (b'{"format": 1}', "other entries"),
        (b"\xff\xfe", "no JSON"),
        (b"\x80\x04K\x01.", "no JSON"),
        (b'{"format": "\x00"}', "no JSON"),
        (b"null", "no format number"),
        (b"[1]", "no format number"),
        (b" " * (1 << 24) + b"{}", "too long"),
    ],
)
def test_hostile_json_is_refused(model, raw, part):
    (model / "manifest.json").write_bytes(raw)
    with pytest.raises(ModelFileError, match=part):
        read_model(model)


def test_a_deep_tree_is_refused(model):
    deep = []
    for _ in range(900):
        deep = [deep]
    change(model, set_value({"$tuple": deep}))
    with pytest.raises(ModelFileError, match="nested too deeply"):
        read_model(model)


@given(st.data())
def test_any_change_of_a_value_gives_an_error_or_a_bag(tmp_path_factory, data):
    """Whatever stands in the tree, reading it ends in one of the two ways."""
    model = tmp_path_factory.mktemp("fuzz") / "model"
    write_model(model, Bag(**BAG))
    tree = json.loads((model / "manifest.json").read_text())
    places = list(places_of(tree))
    node, key = data.draw(st.sampled_from(places))
    others = [n[k] for n, k in places]
    node[key] = copy.deepcopy(data.draw(st.sampled_from([*others, *STRANGE])))
    (model / "manifest.json").write_text(json.dumps(seal(tree)))
    with suppress(ModelFileError):
        assert isinstance(read_model(model).values, dict)


def test_hostile_sizes_take_no_memory(model):
    tracemalloc.start()
    try:
        for shape in ([2**40], [2**47, 1], [0, 2**47]):
            change(model, set_entry("shape", shape))
            with pytest.raises(ModelFileError):
                read_model(model)
        assert tracemalloc.get_traced_memory()[1] < 5e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("which", [0, 1], ids=["manifest", "arrays"])
def test_links_and_pipes_are_not_followed(model, tmp_path, which):
    path = files_of(model)[which]
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ModelFileError, match="is a link"):
        read_model(model)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(ModelFileError, match="no ordinary file"):
        read_model(model)
    path.unlink()
    path.mkdir()
    with pytest.raises(ModelFileError, match="no ordinary file"):
        read_model(model)
