"""``locole update`` and ``locole labels``: what they print, what they leave, and what they refuse."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cli_server import ENVIRONMENT

from locole import load
from locole.io import read_manifest

STORM = Path(__file__).with_name("update_storm.py")


def test_an_update_learns_labels_and_words_and_says_what_has_changed(folder, run):
    before = load("texts")
    done = run("update", "texts", "monday.tsv", "--json", "-j", "1")
    assert done.code == 0, done.err
    found = done.json
    assert found["new_rows"]["rows"] == 26
    assert found["new_rows"]["unseen_rows"] == 6
    assert 0.5 < found["new_rows"]["accuracy"] <= 20 / 26
    assert 0 <= found["new_rows"]["calibration_error"] <= 1
    assert (found["labels"], found["new_labels"], found["first_new"]) == (11, 1, ["llama"])
    assert found["labels_with_few_rows"] == 0
    assert [step["step"] for step in found["steps"]] == ["read", "ask", "learn", "save"]
    model = load("texts")
    assert "llama" not in before.classes_
    assert model.predict(["spits llama1"]).tolist() == ["llama"]
    assert "word__spits" in model.features_.get_feature_names_out()
    notes = read_manifest("texts").made_by
    assert notes["updated"] == model.past_.journal_[-1]["date"]
    assert notes["data_sha256"]  # of the first file, as before
    shown = run("inspect", "texts")
    assert "rows 26, new labels 1" in shown.out
    assert run("inspect", "texts", "--json").json["journal"][0]["did"] == "learn"


def test_people_see_a_table(folder, run):
    done = run("update", "texts", "monday.tsv", "-o", "updated", "-j", "1")
    assert done.code == 0, done.err
    assert "new rows, before" in done.out
    assert "first new" in done.out
    assert load("texts").classes_.size == 10
    assert load("updated").classes_.size == 11
    again = run("update", "texts", "monday.tsv", "-o", "updated")
    assert again.code == 2
    assert "there is a model in updated" in again.err


def test_numbers_and_several_labels(folder, run):
    done = run("update", "numbers", "test.svm", "--json", "-j", "1")
    assert done.code == 0, done.err
    assert done.json["new_rows"]["accuracy"] > 0.8
    assert run("fit", "tagged.tsv", "-o", "tags", "--label-separator", "|", "-j", "1").code == 0
    Path("more.tsv").write_text("cat|llama\tcat1 llama2 spits\nllama\tspits llama1\n", "utf-8")
    done = run("update", "tags", "more.tsv", "--json", "-j", "1")
    assert done.code == 0, done.err
    assert done.json["new_rows"]["unseen_rows"] == 1
    assert "precision_at_1" in done.json["new_rows"]
    assert "llama" in load("tags").classes_


def test_columns_are_those_of_the_training_file(folder, run):
    words = ("--text-column", "title", "--label-column", "category")
    assert run("fit", "train.csv", "-o", "table", *words, "-j", "1").code == 0
    done = run("update", "table", "test.csv", "--json", "-j", "1")
    assert done.code == 0, done.err
    assert done.json["new_rows"]["accuracy"] > 0.8


def test_what_cannot_be_updated_stays(folder, run):
    assert run("fit", "train.tsv", "-o", "other", "--model", "centroids", "-j", "1").code == 0
    before = {path: path.read_bytes() for path in Path("other").iterdir()}
    for model, rows, message in [
        ("other", "monday.tsv", "Centroids cannot learn more rows"),
        ("texts", "test.svm", "has numbers but the model takes texts"),
        ("texts", "new.txt", "has no labels"),
        ("texts", "missing.tsv", "missing.tsv"),
        ("nothing", "monday.tsv", "nothing"),
    ]:
        done = run("update", model, rows)
        assert done.code == 2, done
        assert message in done.err
    done = run("update", "texts", "monday.tsv", "-o", "other")
    assert (done.code, "or leave --output out to change" in done.err) == (2, True)
    assert {path: path.read_bytes() for path in Path("other").iterdir()} == before


def test_of_two_updates_at_once_the_second_is_refused(folder, run):
    os.mkfifo("tuesday.tsv")
    words = [sys.executable, "-m", "locole", "update", "texts", "tuesday.tsv", "-j", "1"]
    with subprocess.Popen(words, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True) as slow:
        with open("tuesday.tsv", "w") as rows:  # waits until it has read the model, and wants rows
            assert run("update", "texts", "monday.tsv", "-j", "1").code == 0
            rows.write(Path("monday.tsv").read_text())
        _, errors = slow.communicate(timeout=60)
    assert slow.returncode == 2
    assert "somebody else has replaced it meanwhile: make the change again" in errors
    assert len(load("texts").past_.journal_) == 1


def test_labels_are_listed_and_changed(folder, run):
    shown = run("labels", "texts")
    pairs = [line.split("\t") for line in shown.out.splitlines()]
    assert [name for name, _ in pairs] == load("texts").classes_.tolist()
    assert sum(int(count) for _, count in pairs) == 300
    changes = ("--rename", "cat=a=b", "--merge", "goose=duck", "--retire", "hen")
    done = run("labels", "texts", *changes, "--json")
    assert done.code == 0, done.err
    assert done.json["merged"] == {"goose": "duck"}
    assert done.json["retired"] == ["hen"]
    assert [entry["did"] for entry in done.json["journal"]] == ["merge", "rename", "retire"]
    model = load("texts")
    assert model.classes_.size == 8
    assert model.predict(["cat1 cat2", "goose1 goose2"]).tolist() == ["a=b", "duck"]
    assert run("labels", "texts", "--rename", "a=b=cat").code == 0
    assert "cat" in load("texts").classes_
    assert run("labels", "numbers", "--retire", "90", "-o", "fewer").code == 0
    np.testing.assert_array_equal(load("fewer").classes_, np.arange(0, 90, 10))
    assert "is no number, and the labels" in run("labels", "numbers", "--retire", "9" * 30).err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--rename", "cat"), "give a known label"),
        (("--rename", "cat="), "there is no label after the =: give one"),
        (("--rename", "cat= "), "there is no label after the =: give one"),
        (("--merge", "unicorn=cat"), "give a known label"),
        (("--rename", "cat=dog"), "another label dog: take a new name, or --merge."),
        (("--merge", "cat=unicorn"), "the label unicorn: locole labels lists what it knows."),
        (("--retire", "unicorn"), "the label unicorn: locole labels lists what it knows."),
        (("--add", "names.tsv"), "trained without --label-texts"),
        (("--retire", "cat", "-o", "numbers"), "take another path, or leave --output out"),
        (("-o", "there"), "--output is for a changed model"),
    ],
)
def test_labels_that_are_not_there(folder, run, words, message):
    before = {path: path.read_bytes() for path in Path("texts").iterdir()}
    done = run("labels", "texts", *words)
    assert done.code == 2
    assert message in done.err
    assert {path: path.read_bytes() for path in Path("texts").iterdir()} == before


def test_a_killed_update_leaves_the_old_or_the_new_model(tmp_path):
    """A few times; a hundred times by ``python tests/cli/update_storm.py FOLDER 100``."""
    done = subprocess.run(
        [sys.executable, STORM, tmp_path, "6"], capture_output=True, text=True, check=True
    )
    seen = ast.literal_eval(done.stdout.splitlines()[-1])
    assert seen["old"] + seen["new"] == 6
