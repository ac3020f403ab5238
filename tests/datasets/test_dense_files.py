"""Dense rows out of .npy, .npz and Parquet files."""

from __future__ import annotations

import json
import tracemalloc

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

from locole import LocoleClassifier, dense_rows, load
from locole.cli import main
from locole.datasets import iter_dense, load_dense
from locole.dense_rows import DenseRows, PairedRows, dense_view, room_for, sparse_view
from locole.exceptions import LocoleError
from locole.scoring import prototypes, whitening

rng = np.random.default_rng(0)
Y = np.arange(600) % 20
X = (rng.normal(size=(20, 36))[Y] + 0.8 * rng.normal(size=(600, 36))).astype(np.float32)
NAMES = np.array([f"name {y}" for y in Y])


def write(folder, kind, X=X, y=NAMES):
    path = folder / f"rows.{kind}"
    if kind == "npy":
        np.save(path, X)
        np.save(folder / "rows_y.npy", y)
    elif kind == "npz":
        np.savez(path, X=X, y=y)
    else:
        columns = {"embedding": list(X), "label": list(y)}
        pq.write_table(pa.table(columns), path, row_group_size=100)
    return path


@pytest.mark.parametrize("kind", ["npy", "npz", "parquet"])
@pytest.mark.parametrize("labels", [NAMES, Y])
def test_all_kinds_hold_the_same(tmp_path, kind, labels):
    path = write(tmp_path, kind, y=labels)
    found, y = load_dense(path)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, X)
    np.testing.assert_array_equal(y, labels)
    parts = list(iter_dense(path, batch_rows=250))
    assert [len(part) for part, _ in parts] == [250, 250, 100]
    np.testing.assert_array_equal(np.concatenate([part for part, _ in parts]), X)
    np.testing.assert_array_equal(np.concatenate([part for _, part in parts]), labels)
    assert load_dense(path, labelled=False)[1] is None


def test_names_of_arrays_and_columns(tmp_path):
    np.savez(tmp_path / "a.npz", vectors=X, kind=Y)
    pq.write_table(pa.table({"v": list(X.astype(np.float16)), "k": Y}), tmp_path / "a.parquet")
    for suffix, dense, label in (("npz", "vectors", "kind"), ("parquet", "v", "k")):
        found, y = load_dense(tmp_path / f"a.{suffix}", dense=dense, label=label)
        np.testing.assert_allclose(found, X, atol=2e-3)
        np.testing.assert_array_equal(y, Y)
        with pytest.raises(LocoleError, match=r"has no (array|column) 'other': it has"):
            load_dense(tmp_path / f"a.{suffix}", dense="other", label=label)


def test_an_npy_file_is_mapped_and_taken_in_blocks(tmp_path):
    X_mapped, y = load_dense(write(tmp_path, "npy"))
    assert isinstance(X_mapped, np.memmap)
    mapped = LocoleClassifier().fit(X_mapped, y)
    np.testing.assert_array_equal(
        mapped.decision_function(X_mapped), LocoleClassifier().fit(X, y).decision_function(X)
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_a_mapped_file_is_never_held_whole(tmp_path, monkeypatch, dtype):
    """Neither by a fit nor by a prediction, nor its rows in float32."""
    codes = np.arange(20_000) % 20
    np.save(tmp_path / "rows.npy", (rng.normal(size=(20, 256))[codes] + 1).astype(dtype))
    np.save(tmp_path / "rows_y.npy", codes)
    rows, y = load_dense(tmp_path / "rows.npy")
    monkeypatch.setattr(dense_rows, "available_bytes", lambda: 1000)
    for module, name, n_rows in (
        (dense_rows, "_ROWS", 256), (whitening, "_ROWS", 256), (prototypes, "_BLOCK_ROWS", 8),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, n_rows)
    model = LocoleClassifier(nearest=False).fit(rows[:1100], y[:1100])  # what is compiled, once
    for work in (lambda: model.fit(rows, y), lambda: model.predict(rows)):
        tracemalloc.start()
        work()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 0.8 * 4 * rows.size
    assert (model.predict(rows[:200]) == y[:200]).all()


def test_what_memory_does_not_hold_goes_to_a_file(tmp_path, monkeypatch):
    path = write(tmp_path, "parquet")
    expected = LocoleClassifier().fit(X, NAMES).decision_function(X)
    monkeypatch.setattr(dense_rows, "available_bytes", lambda: 1000)
    found, y = load_dense(path)
    assert isinstance(found, np.memmap)
    np.testing.assert_array_equal(found, X)
    assert isinstance(room_for(1000, 10), np.memmap)
    np.testing.assert_array_equal(LocoleClassifier().fit(found, y).decision_function(X), expected)
    with pytest.raises(LocoleError, match=r"would take 0.0 GB as dense rows"):
        dense_view(sp.csr_array(X))


@pytest.mark.parametrize(
    ("kind", "rows", "labels", "message"),
    [
        ("npy", X[0], NAMES, "rows of numbers are needed"),
        ("npy", X, NAMES[:9], "must hold 600 whole numbers or texts"),
        ("npz", X, Y / 2, "must hold 600 whole numbers or texts"),
        ("npz", X.astype(str), Y, "rows of numbers are needed"),
        ("npz", X[:0], Y[:0], "has no rows"),
        ("parquet", X[:0], Y[:0], "has no rows|must hold a list"),
        ("parquet", X[:, 0], Y, "must hold a list of numbers"),
        ("parquet", X, Y / 2, "must hold whole numbers or texts"),
    ],
)
def test_what_is_none(tmp_path, kind, rows, labels, message):
    with pytest.raises(LocoleError, match=message):
        load_dense(write(tmp_path, kind, rows, labels))


def test_lists_that_differ(tmp_path):
    path = tmp_path / "a.parquet"
    for column in ([[1.0, 2.0], [1.0]], [[1.0], None], [["a"], ["b"]], [[1.0], [None]]):
        pq.write_table(pa.table({"embedding": column, "label": [1, 2]}), path)
        with pytest.raises(
            LocoleError, match=r"lists differ in length|list of numbers in every row"
        ):
            load_dense(path)


def test_damaged_files_and_others(tmp_path):
    for kind in ("npy", "npz", "parquet"):
        path = write(tmp_path, kind)
        path.write_bytes(path.read_bytes()[:100])
        with pytest.raises(LocoleError, match=rf"rows\.{kind}"):
            load_dense(path)
        with pytest.raises(FileNotFoundError):
            load_dense(tmp_path / f"none.{kind}")
    (tmp_path / "rows_y.npy").unlink()
    np.save(tmp_path / "rows.npy", X)
    with pytest.raises(LocoleError, match=r"no labels in rows_y.npy beside it"):
        load_dense(tmp_path / "rows.npy")
    with pytest.raises(LocoleError, match=r"from .npy, .npz and .parquet files"):
        load_dense(tmp_path / "rows.csv")
    with pytest.raises(LocoleError, match="standard input"):
        load_dense("-")
    with pytest.raises(LocoleError, match="batch_rows must be at least 1"):
        list(iter_dense(tmp_path / "rows.npy", batch_rows=0))


@pytest.mark.parametrize("kind", ["npy", "npz", "parquet"])
def test_command_line(tmp_path, monkeypatch, capfd, kind):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, kind)
    names = {"npy": [], "npz": ["--dense", "X"], "parquet": ["--dense", "embedding"]}[kind]
    assert main(["fit", f"rows.{kind}", "-o", "m", *names]) == 0
    assert main(["inspect", "m"]) == 0
    capfd.readouterr()
    assert main(["evaluate", "m", f"rows.{kind}", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["accuracy"] > 0.9
    assert main(["predict", "m", f"rows.{kind}", "-k", "1"]) == 0
    assert len(capfd.readouterr().out.splitlines()) == 600
    assert main(["fit", f"rows.{kind}", "-o", "n", *names, "--encoder", "json:dumps"]) == 2
    assert "--encoder is for texts" in capfd.readouterr().err


@pytest.mark.parametrize("kind", ["npy", "npz", "parquet"])
def test_several_labels(tmp_path, monkeypatch, capfd, kind):
    """Joined by a character, which the model remembers."""
    monkeypatch.chdir(tmp_path)
    joined = np.array([f"name {y}| even" if y % 2 == 0 else f"name {y}" for y in Y])
    path = write(tmp_path, kind, y=joined)
    sets = [("name 0", "even"), ("name 1",)]
    assert load_dense(path, label_separator="|")[1][:2] == sets
    assert next(iter_dense(path, batch_rows=2, label_separator="|"))[1] == sets
    dense = {"npy": [], "npz": ["--dense", "X"], "parquet": ["--dense", "embedding"]}[kind]
    separator = ["--label-separator", "|"]
    assert main(["fit", path.name, "-o", "m", *dense, *separator]) == 0
    assert load("m").multilabel_ == "lists"
    capfd.readouterr()
    assert main(["evaluate", "m", path.name, "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["R@5"] > 0.9
    assert main(["predict", "m", path.name, "-k", "2"]) == 0
    assert main(["update", "m", path.name, "-o", "more"]) == 0
    assert main(["fit", path.name, "-o", "plain", *dense]) == 0
    capfd.readouterr()
    assert main(["evaluate", "plain", path.name, *separator]) == 2
    assert "the model has one label for each row" in capfd.readouterr().err
    LocoleClassifier().fit(X, load_dense(path, label_separator="|")[1]).save("python")
    assert main(["evaluate", "python", path.name, *dense]) == 2
    assert "say by --label-separator" in capfd.readouterr().err


# --- views of rows ---


def test_views():
    sparse, dense = sp.csr_array(np.eye(4)), np.arange(8.0).reshape(4, 2)
    both = PairedRows(sparse, dense)
    some = both.take(np.array([2, 0]))
    np.testing.assert_array_equal(sparse_view(some).toarray(), np.eye(4)[[2, 0]])
    np.testing.assert_array_equal(dense_view(some)[:], dense[[2, 0]])
    np.testing.assert_array_equal(dense_view(some.take(np.array([1])))[:], dense[[0]])
    np.testing.assert_array_equal(sparse_view(DenseRows(dense)).toarray(), dense)
    with pytest.raises(LocoleError, match="4 rows of sparse and 3 of dense"):
        PairedRows(sparse, dense[:3])


def test_the_door_checks_both_views():
    words = sp.csr_array(abs(sp.random_array((600, 300), density=0.05, rng=1)))
    model = LocoleClassifier().fit(PairedRows(words, X), NAMES)
    with pytest.raises(LocoleError, match="trained with 36 dense numbers beside each row"):
        model.predict(words)
    with pytest.raises(LocoleError, match="has 30 dense numbers beside it, and the model was"):
        model.predict(PairedRows(words, X[:, :30]))
    with pytest.raises(ValueError, match="300 features"):
        model.predict(PairedRows(words[:, :200], X))
    broken = X.copy()
    broken[3, 4] = np.nan
    with pytest.raises(LocoleError, match="dense rows have"):
        model.predict(PairedRows(words, broken))
