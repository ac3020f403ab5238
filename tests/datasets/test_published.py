"""Loaders of the paper's sets, on small files of the same format."""

from __future__ import annotations

import lzma
from dataclasses import replace

import numpy as np
import pytest

from locole.datasets import load_dmoz, load_lshtc1, load_odp, published
from locole.exceptions import LocoleError, LocoleWarning

TRAIN = "12 1:0.5 3:2\n7 2:1\n12 3:1\n"
TEST = "7 2:1 5:1\n99\n"
# What the small files have; the loaders check against the published sets.
SMALL = replace(
    published.LSHTC1,
    n_train=(3,),
    n_test=(2,),
    n_features=(4, 5),
    n_classes=(3,),
    other_split=(9, 8),
)
LOADERS = {"LSHTC1": load_lshtc1, "DMOZ": load_dmoz, "ODP": load_odp}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "LSHTC1.train").write_text(TRAIN)
    (tmp_path / "LSHTC1.test").write_text(TEST)
    (tmp_path / "README").write_text("not data")
    return tmp_path


@pytest.fixture
def small(monkeypatch):
    for name in LOADERS:
        monkeypatch.setattr(published, name, replace(SMALL, name=name))


def rename(folder, train, test):
    (folder / "LSHTC1.train").rename(folder / train)
    (folder / "LSHTC1.test").rename(folder / test)


@pytest.mark.parametrize("name", LOADERS)
def test_parts_share_columns_and_labels(folder, small, name):
    data = LOADERS[name](folder)
    assert data.X_train.shape == (3, 5)
    assert data.X_test.shape == (2, 5)
    assert data.label_names == ["7", "12", "99"]
    assert data.y_train.tolist() == [1, 0, 1]
    assert data.y_test.tolist() == [0, 2]
    assert data.y_train.dtype == np.int64
    assert data.text_train is data.text_test is data.feature_names is None


def test_one_base_for_both_files(folder, small):
    (folder / "LSHTC1.test").write_text("7 0:1 4:1\n7\n")
    data = load_lshtc1(folder)
    assert data.X_train.indices.tolist() == [1, 3, 2, 3]
    assert data.X_test.indices.tolist() == [0, 4]


@pytest.mark.parametrize(
    ("train", "test"),
    [
        ("train.svm", "test.svm"),
        ("lshtc1_TRAIN.txt", "lshtc1-test.txt"),
        ("trn.libsvm", "tst.libsvm"),
        ("LSHTC1_training", "LSHTC1_testing"),
    ],
)
def test_names_of_files(folder, small, train, test):
    rename(folder, train, test)
    assert load_lshtc1(folder).X_train.shape == (3, 5)


def test_packed_files(folder, small):
    for part in ("train", "test"):
        path = folder / f"LSHTC1.{part}"
        path.with_name(f"{path.name}.xz").write_bytes(lzma.compress(path.read_bytes()))
        path.unlink()
    assert load_lshtc1(folder).X_train.shape == (3, 5)


def test_the_name_of_the_set_decides_between_several(folder, small):
    (folder / "other.train").write_text("1 1:1\n")
    assert load_lshtc1(folder).X_train.shape == (3, 5)
    with pytest.raises(LocoleError, match=r"exactly one file with the word train.*DMOZ\.train or"):
        load_dmoz(folder)


def test_folders_without_the_files(folder, tmp_path):
    rename(folder, "constraints", "contest")  # the words must stand alone
    with pytest.raises(LocoleError, match=r"word train .* LSHTC1\.train .* there is README, cons"):
        load_lshtc1(folder)
    with pytest.raises(LocoleError, match="is no folder: name the one that holds ODP"):
        load_odp(folder / "README")


def test_wrong_numbers_of_rows(folder):
    with pytest.raises(
        LocoleError, match="83,805 training and 5,000 test rows, not 3 and 2: is it"
    ):
        load_lshtc1(folder)
    rename(folder, "train", "test")
    with pytest.raises(
        LocoleError, match="335,068 or 345,068 training and 38,340 test rows, not 3"
    ):
        load_dmoz(folder)
    with pytest.raises(LocoleError, match="975,936 training and 493,014 test rows"):
        load_odp(folder)
    for load in LOADERS.values():
        assert load(folder, check=False).X_train.shape == (3, 5)


def test_the_other_split_is_recognised(folder, monkeypatch):
    for split in ((3, 8), (9, 2)):
        monkeypatch.setattr(published, "LSHTC1", replace(SMALL, other_split=split))
        with pytest.raises(
            LocoleError, match=r"3 and 2 rows are another split of LSHTC1.*never compare"
        ):
            load_lshtc1(folder)
        assert load_lshtc1(folder, check=False).X_test.shape == (2, 5)


def test_the_other_split_has_the_counts_that_circulate():
    assert published.LSHTC1.other_split == (126_871, 31_718)


@pytest.mark.parametrize("changed", [{"n_features": (400,)}, {"n_classes": (2,)}], ids=str)
def test_other_numbers_of_columns_are_a_warning(folder, monkeypatch, changed):
    monkeypatch.setattr(published, "LSHTC1", replace(SMALL, **changed))
    with pytest.warns(LocoleWarning, match=r"4 features occur \(ids up to 5\) and 3 labels, but"):
        assert load_lshtc1(folder).X_train.shape == (3, 5)


def test_used_features_or_ids_may_be_what_was_counted(folder, monkeypatch):
    for known in ((4,), (5,), (4, 5)):
        monkeypatch.setattr(published, "LSHTC1", replace(SMALL, n_features=known))
        load_lshtc1(folder)


def test_a_bad_line_names_the_file(folder):
    (folder / "LSHTC1.test").write_text("7 2:1\n7,8 1:1\n")
    with pytest.raises(LocoleError, match=r"LSHTC1\.test, line 2: '7,8' are several labels"):
        load_lshtc1(folder)
