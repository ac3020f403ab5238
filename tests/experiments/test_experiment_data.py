"""Data by name, and what is kept of it for runs."""

from __future__ import annotations

import lzma

import numpy as np
import pytest
import scipy.sparse as sp

from locole.exceptions import LocoleError
from locole.experiments.data import (
    TrainTest,
    choose_sets,
    has_texts,
    keep,
    load_set,
    open_kept,
    version_of,
    where_missing,
)
from locole.experiments.measure import measure
from locole.experiments.runs import Run

SMALL = {"n_samples": 200, "n_features": 100, "n_classes": 20}


@pytest.fixture
def folder(tmp_path):
    """Data sets as files: numbers, texts, one of the paper's names, and one that is not complete."""
    for name, kind in (("numbers", "svm.xz"), ("words", "tsv"), ("lshtc1", "libsvm")):
        (tmp_path / name).mkdir()
        for part in ("train", "test"):
            lines = "".join(
                f"{label}\tword{label} other{i}\n"
                if kind == "tsv"
                else f"{label} {1 + label}:1 {10 + i}:0.5\n"
                for i in range(3)
                for label in (0, 1, 2)
            )
            path = tmp_path / name / f"{part}.{kind}"
            path.write_bytes(lzma.compress(lines.encode()) if kind == "svm.xz" else lines.encode())
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "train.svm").write_text("1 1:1\n")
    return tmp_path


@pytest.mark.parametrize("name", ["numbers", "words"])
def test_files(folder, name):
    rows = load_set(name, {}, folder)
    assert rows.X_train.shape == rows.X_test.shape
    assert rows.X_train.shape[0] == 9
    assert len(set(rows.y_train.tolist())) == 3


def test_the_papers_sets_are_loaded_by_their_loaders(folder):
    with pytest.raises(LocoleError, match="LSHTC1 has 83,805 training"):
        load_set("lshtc1", {}, folder)
    assert load_set("lshtc1", {"check": False}, folder).X_train.shape[0] == 9


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("half", {}, "data not found.*train and test files"),
        ("absent", {}, "data not found: there is no folder"),
        ("numbers", {"n_classes": 3}, "there is no option 'n_classes'"),
        ("topics", {"labels": 3}, "data_options of topics.*labels"),
        ("topics", {**SMALL, "part": "all"}, "part must be 'test' or 'validation'"),
        ("topics", {**SMALL, "n_samples": 3}, "n_samples"),
    ],
)
def test_errors(folder, name, options, words):
    with pytest.raises(LocoleError, match=words):
        load_set(name, options, folder)


def test_auto_takes_the_sets_that_are_there(folder, monkeypatch):
    (folder / ".hidden").mkdir()
    (folder / "notes").mkdir()
    for name in ("auto", "small"):
        found, notes = choose_sets([name, "topics"], folder)
        assert found == ["lshtc1", "numbers", "words", "topics"]
        assert notes == ["half is left out: it has no file test.*"]
        assert choose_sets([name], None) == (["city_names"], [])
    found, notes = choose_sets(["auto"], folder / "notes")
    assert (found, notes) == (
        ["city_names"],
        [f"{folder / 'notes'} has no folder with train and test files."],
    )
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert choose_sets(["auto"], None)[0] == choose_sets(["small"], None)[0] == ["topics"]
    assert "locole[data]" in where_missing("city_names", None)


def test_folders_that_hold_no_sets(folder):
    with pytest.raises(
        LocoleError, match="has a train and a test file itself: put them into a folder"
    ):
        choose_sets(["auto"], folder / "words")
    with pytest.raises(
        LocoleError, match="absent is no folder: name one that has a folder for each"
    ):
        choose_sets(["auto"], folder / "absent")


def test_columns_of_tables_can_be_named(folder):
    (folder / "table").mkdir()
    for part in ("train", "test"):
        path = folder / "table" / f"{part}.csv"
        path.write_text("name|kind|more\n" + "caf\xe9|x|y\nrobin|z|y\n" * 3, encoding="latin-1")
    options = {"text": ["name", "more"], "label": "kind", "delimiter": "|", "encoding": "latin-1"}
    rows = load_set("table", options, folder)
    assert set(rows.y_train.tolist()) == {"x", "z"}
    assert has_texts("table", folder)
    assert not has_texts("numbers", folder)
    with pytest.raises(LocoleError, match="no column 'text' among"):
        load_set("table", {"encoding": "latin-1"}, folder)
    with pytest.raises(LocoleError, match="data_options of numbers: there is no option 'text'"):
        load_set("numbers", {"text": "name"}, folder)


def test_the_version_of_a_set_changes_with_its_files(folder):
    before = version_of("words", folder)
    assert version_of("words", folder) == before
    path = folder / "words" / "train.tsv"
    path.write_text(path.read_text() + "4\tword4\n")
    assert version_of("words", folder) != before
    assert version_of("topics", folder) is None
    assert version_of("words", None) is None
    assert version_of("", folder) is None


def test_fewer_rows_are_always_the_same_ones():
    whole = load_set("topics", SMALL, None)
    some = load_set("topics", {**SMALL, "max_rows": 50, "max_test_rows": 7}, None)
    again = load_set("topics", {**SMALL, "max_rows": 50, "max_test_rows": 7}, None)
    assert some.X_train.shape == (50, 100)
    assert len(some.y_test) == 7
    assert (some.y_train == again.y_train).all()
    rows = {tuple(row) for row in whole.X_train.toarray()}
    assert all(tuple(row) in rows for row in some.X_train.toarray())
    more = load_set("topics", {**SMALL, "max_rows": 10**6}, None)
    assert more.X_train.shape == whole.X_train.shape


def test_validation_rows_are_training_rows_that_are_not_learnt():
    whole = load_set("topics", SMALL, None)
    part = load_set("topics", {**SMALL, "part": "validation"}, None)
    assert part.X_train.shape[0] == 180
    assert part.X_test.shape[0] == 20
    both = sp.vstack([part.X_train, part.X_test]).toarray()
    assert sorted(map(tuple, both)) == sorted(map(tuple, whole.X_train.toarray()))


def test_kept_rows_come_back(tmp_path):
    X = sp.csr_matrix(np.array([[1.0, 0, 2], [0, 3, 0]], dtype=np.float32))
    y = np.array(["b", "a"], dtype=object)
    keep(TrainTest(X, y, X[:1], np.array(["c"], dtype=object)), tmp_path / "kept")
    rows = open_kept(tmp_path / "kept")
    assert (rows.X_train != X).nnz == 0
    assert rows.X_train.dtype == np.float32
    assert rows.y_train.tolist() == [1, 0]
    assert rows.y_test.tolist() == [2]  # never learnt, so always a mistake
    with pytest.raises(LocoleError, match="one label"):
        keep(TrainTest(X, y[[0, 0]], X[:1], y[:1]), tmp_path / "other")


SETS = [(0, 1), (2,), (1, 2), (0, 2), (1,)] * 3


@pytest.fixture
def several(tmp_path):
    """The same labels in a table and in the format of XMC; the last test row has a new one."""
    for part, sets in {"train": SETS, "test": [*SETS[:4], (7,)]}.items():
        for name in ("words", "numbers"):
            (tmp_path / name).mkdir(exist_ok=True)
        lines = [f"{'|'.join(map(str, own))}\t{' '.join(f'word{i}' for i in own)}" for own in sets]
        (tmp_path / "words" / f"{part}.tsv").write_text("\n".join(lines) + "\n")
        rows = [f"{','.join(map(str, own))} {' '.join(f'{i}:1' for i in own)}" for own in sets]
        head = f"{len(sets)} 8 8"
        (tmp_path / "numbers" / f"{part}.xmc").write_text("\n".join([head, *rows]) + "\n")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "options"), [("words", {"label_separator": "|"}), ("numbers", {})]
)
def test_several_labels(several, tmp_path, name, options):
    rows = load_set(name, options, several)
    expected = np.zeros((15, 3))
    for row, own in zip(expected, SETS, strict=True):
        row[list(own)] = 1
    np.testing.assert_array_equal(rows.y_train.toarray(), expected)
    np.testing.assert_array_equal(rows.y_test.toarray(), expected[:4])
    assert rows.X_test.shape[0] == 4
    fewer = load_set(name, {**options, "max_rows": 9, "part": "validation"}, several)
    assert fewer.y_train.shape == (9, 3)
    assert fewer.X_test.shape[0] == fewer.y_test.shape[0] == 2
    keep(rows, tmp_path / "kept")
    for kept, given in zip(open_kept(tmp_path / "kept"), rows, strict=True):
        assert (kept != sp.csr_matrix(given)).nnz == 0


def test_runs_with_several_labels(several):
    rows = load_set("numbers", {}, several)
    found = measure(Run("mine", "numbers", "centroids"), rows, threads=1)
    assert found["accuracy"] == found["precision_at_1"] == 1
    assert found["recall_at_3"] == found["psp_at_1"] == 1
    assert found["precision_at_3"] == pytest.approx(7 / 12, abs=1e-6)
    assert "precision_at_5" not in found  # there are three labels
    with pytest.raises(LocoleError, match="MACH does not learn"):
        measure(Run("mine", "numbers", "mach"), rows, threads=1)
