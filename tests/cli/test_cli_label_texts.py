"""Texts of labels on the command line."""

from __future__ import annotations

from samples import write_samples

import locole


def test_labels_are_named_and_added(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_samples(tmp_path)
    assert run("fit", "train.tsv", "-o", "model", "--label-texts", "names.tsv").code == 0
    assert locole.load("model").classes_.size == 11
    (tmp_path / "more.tsv").write_text("emu\tlarge\nemu\tbird\n", encoding="utf-8")
    assert run("labels", "model", "--add", "more.tsv").code == 0
    assert locole.load("model").classes_.tolist()[-1] == "emu"


def test_what_does_not_go_with_label_texts(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_samples(tmp_path)
    assert run("fit", "train.svm", "-o", "numbers", "--label-texts", "names.tsv").code == 2
    assert run("fit", "train.tsv", "-o", "plain", "--model", "centroids").code == 0
    assert run("labels", "plain", "--add", "names.tsv").code == 2


def test_a_file_without_labels_has_no_label_texts(run, folder):
    for words in (
        ["fit", "train.tsv", "-o", "m", "--label-texts", "new.txt"],
        ["labels", "texts", "--add", "new.txt"],
    ):
        done = run(*words)
        assert done.code == 2
        assert done.err.splitlines()[-1] == (
            "locole: new.txt: a file of texts alone has no labels: take .tsv, label tab text."
        )
