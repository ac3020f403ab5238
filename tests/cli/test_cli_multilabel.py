"""Several labels for a row on the command line: every format, and what does not go together."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp
from samples import ANIMALS, svm_lines, tagged_rows

import locole
from locole.datasets import load_texts
from locole.metrics import Propensities, f1_score, precision_at_k, ps_precision_at_k

TRAIN, TEST = tagged_rows(300, 4), tagged_rows(60, 5)


def write(folder, name, content):
    (folder / name).write_text(content, encoding="utf-8")


def numbers(rows, *, zero_based):
    """Lines with labels joined by commas, in LIBSVM's form or that of XMC."""
    lines = []
    for labels, text in rows:
        features = svm_lines([(ANIMALS[0], text)], first=0 if zero_based else 1).split(" ", 1)[1]
        lines.append(",".join(str(ANIMALS.index(label)) for label in labels) + " " + features)
    return "".join(lines)


@pytest.fixture(scope="module")
def tagged(tmp_path_factory):
    """Folder with a model of texts, learnt from lines like ``cat|dog<TAB>text``."""
    folder = tmp_path_factory.mktemp("tagged")
    for name, rows in {"train": TRAIN, "test": TEST}.items():
        lines = [("|".join(labels), text) for labels, text in rows]
        write(folder, f"{name}.tsv", "".join(f"{labels}\t{text}\n" for labels, text in lines))
        table = "".join(f'{labels},"{text}"\n' for labels, text in lines)
        write(folder, f"{name}.csv", "label,text\n" + table)
        objects = (json.dumps({"label": labels, "text": text}) for labels, text in rows)
        write(folder, f"{name}.jsonl", "".join(f"{line}\n" for line in objects))
        write(folder, f"{name}.svm", numbers(rows, zero_based=False))
        write(folder, f"{name}.xmc", f"{len(rows)} 90 10\n" + numbers(rows, zero_based=True))
    command = ["fit", folder / "train.tsv", "-o", folder / "model", "--label-separator", "|"]
    assert locole.cli.main([*map(str, command), "-j", "1"]) == 0
    return folder


@pytest.fixture(autouse=True)
def within(tagged, monkeypatch):
    monkeypatch.chdir(tagged)


def test_a_separator_that_separates_nothing_is_a_warning(run):
    done = run("fit", "train.tsv", "-o", "wrong", "--label-separator", ";", "-j", "1")
    assert done.code == 0
    assert "no row of train.tsv has more than one label: is ';' what separates them?" in done.err
    note = run("inspect", "wrong", "--json").json["made_by"]["reading"]
    assert note == {"format": "tsv", "label_separator": ";"}


def test_figures_are_those_of_the_library(run):
    found = run("evaluate", "model", "test.tsv", "--json").json
    texts, sets = load_texts("test.tsv", label_separator="|")
    assert [list(own) for own in sets] == [labels for labels, _ in TEST]
    model = locole.load("model")
    best = model.predict_topk(texts, k=5)[0]
    predicted = sp.csr_array(model.predict(texts))
    names = [model.classes_[row.indices].tolist() for row in predicted]
    assert found["rows"] == 60
    assert found["P@3"] == precision_at_k(sets, best, k=3)
    assert found["micro_f1"] == pytest.approx(f1_score(sets, names))
    propensities = Propensities([labels for labels, _ in TRAIN])
    assert found["PSP@3"] == pytest.approx(ps_precision_at_k(sets, best, propensities, k=3))
    assert "PSnDCG@5" in found
    assert found["P@1"] > 0.9


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_tables_are_read_alike(run, suffix):
    options = ["--label-separator", "|"] if suffix == "csv" else []
    fitted = run(
        "fit", f"train.{suffix}", "-o", suffix, *options, "--test", f"test.{suffix}", "--json"
    )
    assert fitted.code == 0
    expected = run("evaluate", "model", "test.tsv", "--json").json
    found = fitted.json["test"]
    assert {k: found[k] for k in ("P@1", "R@5", "macro_f1")} == {
        k: expected[k] for k in ("P@1", "R@5", "macro_f1")
    }


def test_numbers_with_several_labels(run):
    figures = {}
    for suffix, options in {"svm": ["--label-separator", ","], "xmc": []}.items():
        assert run("fit", f"train.{suffix}", "-o", suffix, *options).code == 0
        figures[suffix] = run("evaluate", suffix, f"test.{suffix}", "--json").json
        assert locole.load(suffix).multilabel_ == "sparse"
    for name in ("rows", "labels", "P@1", "R@5"):
        assert figures["svm"][name] == figures["xmc"][name]
    assert figures["svm"]["P@1"] > 0.9


def test_answers_are_ranked_as_ever(run):
    lines = run("predict", "model", "test.tsv", "-k", "2").out.splitlines()
    expected = locole.load("model").predict_topk([text for _, text in TEST], k=2)[0]
    assert [line.split("\t")[::2] for line in lines] == expected.tolist()


def test_labels_are_held_back_one_by_one(run):
    rows = tagged_rows(1_000, 6)  # enough for probabilities
    classifier = locole.text.TextClassifier().fit([t for _, t in rows], [own for own, _ in rows])
    classifier.save("sure")
    texts = [text for _, text in TEST]
    labels, p = locole.load("sure").predict_topk(texts, k=3, proba=True)
    least = float(np.median(p))
    assert ((p[:, 0] >= least) & (p[:, 2] < least)).any()
    lines = run("predict", "sure", "test.tsv", "-k", "3", "--min-proba", least).out.splitlines()
    expected = np.where(p < least, "", labels)
    assert [line.split("\t")[::2] for line in lines] == expected.tolist()


def test_people_read_figures(run):
    told = run("evaluate", "model", "test.tsv")
    assert told.code == 0
    assert "P@1" in told.out
    assert "samples f1" in told.out


def test_unknown_and_missing_labels_are_counted(run, tagged):
    write(tagged, "odd.tsv", "yak\tcat1 cat2\n\tcat1 cat3\ncat|yak\tcat1 cat2\n")
    found = run("evaluate", "model", "odd.tsv", "--json").json
    assert (found["unseen_rows"], found["unlabelled_rows"], found["labels"]) == (1, 1, 2)
    assert found["P@1"] == pytest.approx(1 / 3)


def test_one_label_for_each_row_of_xmc_is_a_plain_model(run, tagged):
    rows = [(labels[:1], text) for labels, text in tagged_rows(300, 4)]
    write(tagged, "one.xmc", f"{len(rows)} 90 10\n" + numbers(rows, zero_based=True))
    assert run("fit", "one.xmc", "-o", "one").code == 0
    model = locole.load("one")
    assert model.multilabel_ is None
    assert np.array_equal(model.classes_, np.arange(10))


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (
            ["evaluate", "model", "test.tsv", "--report", "r.csv"],
            "--report is for rows with one label",
        ),
        (
            ["evaluate", "model", "test.tsv", "--plot", "p.html"],
            "--plot is for rows with one label each",
        ),
        (["predict", "model", "test.tsv", "--max-error", "0.1"], "--proba says how likely"),
        (["predict", "model", "test.tsv", "--set", "0.9"], "--proba says how likely"),
        (["evaluate", "model", "test.tsv", "--label-separator", ""], "at least a character"),
        (
            ["evaluate", "plain", "test.tsv", "--label-separator", "|"],
            "the model has one label for each",
        ),
        (
            ["evaluate", "plain", "test.jsonl"],
            "has several labels for a row, but the model has learnt",
        ),
        (["evaluate", "python", "test.tsv"], "say by --label-separator"),
        (["fit", "train.svm", "-o", "x"], "are several labels: keep one"),
        (["fit", "train.svm", "-o", "x", "--label-separator", "|"], "must be ',' for LIBSVM"),
        (["fit", "train.xmc", "-o", "x", "--label-separator", "|"], "is for tsv, csv"),
        (
            ["fit", "train.tsv", "-o", "x", "--label-separator", "|", "--model", "mach"],
            "MACH does not",
        ),
    ],
)
def test_what_does_not_go_together(run, tagged, words, part):
    if not (tagged / "plain").exists():
        assert run("fit", "train.tsv", "-o", "plain").code == 0
        texts, sets = load_texts("train.tsv", label_separator="|")
        locole.text.TextClassifier().fit(texts, sets).save("python")
    told = run(*words)
    assert told.code == 2
    assert part in told.err
