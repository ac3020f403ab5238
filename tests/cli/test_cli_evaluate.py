"""evaluate: figures against scikit-learn's, reports, and labels of other types."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import precision_recall_fscore_support

import locole
from locole import LocoleClassifier
from locole.cli.evaluation import Predictions, measure, worst_labels
from locole.datasets import load_libsvm, load_texts

KEYS = [
    "rows", "labels", "unseen_rows", "k", "accuracy", "top_k_accuracy", "macro_precision",
    "macro_recall", "micro_precision", "micro_recall", "macro_f1", "expected_calibration_error",
    "log_loss", "brier_score", "area_under_risk_coverage", "accuracy_at_80_coverage",
    "accuracy_at_90_coverage", "accuracy_at_95_coverage", "set_coverage", "set_size", "seconds",
    "rows_per_s", "by_frequency", "worst",
]  # fmt: skip


def test_figures_are_scikit_learn_s(run, folder):
    noisy = "".join(
        f"{'cat' if i % 5 == 0 else line}\n"
        if "\t" not in line
        else ("cat" if i % 5 == 0 else line.split("\t")[0]) + "\t" + line.split("\t")[1] + "\n"
        for i, line in enumerate((folder / "test.tsv").read_text().splitlines())
    )
    (folder / "noisy.tsv").write_text(noisy)
    found = run("evaluate", "texts", "noisy.tsv", "--json", "-k", "3").json
    assert list(found) == KEYS
    texts, y = load_texts("noisy.tsv")
    model = locole.load("texts")
    best, _ = model.predict_topk(texts, 3)
    assert found["rows"] == 60
    assert found["k"] == 3
    assert found["accuracy"] == (best[:, 0] == y).mean() < 0.9
    assert found["top_k_accuracy"] == (best == y[:, None]).any(axis=1).mean()
    for average in ("macro", "micro"):
        precision, recall, f1, _ = precision_recall_fscore_support(
            y.astype(str), best[:, 0].astype(str), average=average, zero_division=0
        )
        assert found[f"{average}_precision"] == pytest.approx(precision)
        assert found[f"{average}_recall"] == pytest.approx(recall)
        assert average == "micro" or found["macro_f1"] == pytest.approx(f1)


def test_people_see_the_same(run, folder):
    text = run("evaluate", "texts", "test.tsv", "--worst", "2")
    assert text.code == 0
    figures = run("evaluate", "texts", "test.tsv", "--json").json
    lines = [line.split() for line in text.out.splitlines()]
    assert ["accuracy", f"{figures['accuracy']:.4g}"] in lines
    assert ["log", "loss", f"{figures['log_loss']:.4g}"] in lines
    assert ["rows", "60"] in lines
    assert "by the number of training rows of the label" in text.out


def test_unseen_labels_are_counted_and_wrong(run, folder):
    (folder / "odd.tsv").write_text("yak\tcat1 cat2\ncat\tcat1 cat2\n")
    found = run("evaluate", "texts", "odd.tsv", "--json").json
    assert (found["rows"], found["unseen_rows"], found["accuracy"]) == (2, 1, 0.5)
    assert found["worst"] == [
        {"label": "yak", "rows": 1, "wrong": 1, "taken_for": [{"label": "cat", "rows": 1}]}
    ]
    shown = run("evaluate", "texts", "odd.tsv").out
    assert "labels with most mistakes" in shown
    assert shown.splitlines()[-1].split() == ["yak", "1", "1", "cat", "(1)"]


def test_no_label_is_known(run, folder):
    (folder / "odd.tsv").write_text("yak\tcat1 cat2\nemu\tcat1 cat2\n")
    done = run("evaluate", "texts", "odd.tsv", "--json")
    assert (done.code, done.err) == (0, "")
    assert (done.json["unseen_rows"], done.json["log_loss"]) == (2, None)


@pytest.mark.parametrize("kind", ["csv", "tsv"])
def test_report(run, folder, kind):
    run("evaluate", "texts", "test.tsv", "--report", f"labels.{kind}")
    with open(f"labels.{kind}", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="," if kind == "csv" else "\t"))
    texts, y = load_texts("test.tsv")
    y, z = y.astype(str), locole.load("texts").predict(texts).astype(str)
    names = sorted(set(y) | set(z))
    precision, recall, f1, support = precision_recall_fscore_support(
        y, z, labels=names, zero_division=0
    )
    assert [row["label"] for row in rows] == names
    assert [int(row["support"]) for row in rows] == support.tolist()
    for name, values in {"precision": precision, "recall": recall, "f1": f1}.items():
        assert [float(row[name]) for row in rows] == pytest.approx(values.tolist(), rel=1e-6)


def test_labels_of_another_type_are_compared_as_texts(run, folder):
    X, y = load_libsvm("train.svm")
    LocoleClassifier().fit(X, y.astype(str)).save("as-texts")
    LocoleClassifier().fit(X, y).save("as-numbers")
    a = run("evaluate", "as-texts", "test.svm", "--json").json
    b = run("evaluate", "as-numbers", "test.svm", "--json").json
    assert a["accuracy"] == b["accuracy"] > 0.9
    assert a["unseen_rows"] == b["unseen_rows"] == 0
    texts, labels = load_texts("train.tsv")
    codes = np.unique(labels.astype(str), return_inverse=True)[1]
    locole.text.TextClassifier().fit(texts, codes).save("codes")
    lines = (f"{code}\t{text}\n" for code, text in zip(codes[:50], texts, strict=False))
    (folder / "codes.tsv").write_text("".join(lines))
    assert run("evaluate", "codes", "codes.tsv", "--json").json["accuracy"] > 0.9


def test_no_rows(run, folder):
    (folder / "empty.tsv").write_text("")
    done = run("evaluate", "texts", "empty.tsv")
    assert done.code == 2
    assert "no rows" in done.err


labels = st.lists(st.tuples(*[st.sampled_from("abcde")] * 2), min_size=1, max_size=40)


@given(labels, st.integers(0, 6))
def test_worst_labels_by_brute_force(pairs, n):
    true, first = (np.array(part) for part in zip(*pairs, strict=True))
    found = worst_labels(Predictions(true, first[:, None], 0.0), n)
    wrong = {a: sum(x == a != z for x, z in pairs) for a in "abcde"}
    expected = sorted((-count, a) for a, count in wrong.items() if count)[:n]
    assert [(-label["wrong"], label["label"]) for label in found] == expected
    for label in found:
        name = label["label"]
        assert label["rows"] == sum(x == name for x, _ in pairs)
        others = {z: sum(p == (name, z) for p in pairs) for z in "abcde" if z != name}
        best = sorted((-count, z) for z, count in others.items() if count)[:3]
        assert [(-other["rows"], other["label"]) for other in label["taken_for"]] == best


def test_measure_counts_time():
    class Model:
        classes_ = np.array(["a", "b"])

    found = measure(Predictions(np.array(["a", "c"]), np.array([["a"], ["a"]]), 0.5), Model())
    assert found["rows_per_s"] == 4
    assert found["unseen_rows"] == 1


def test_how_sure_it_is(run, folder):
    found = run("evaluate", "texts", "test.tsv", "--json").json
    texts, y = load_texts("test.tsv")
    model = locole.load("texts")
    labels, p = model.predict_topk(texts, 10, proba=True)
    right = labels == y[:, None]
    assert found["log_loss"] == pytest.approx(-np.log((p * right).sum(axis=1)).mean())
    assert found["brier_score"] == pytest.approx(((p - right)[:, :5] ** 2).sum(axis=1).mean())
    sets = model.predict_set(texts, 0.9)
    assert found["set_size"] == pytest.approx(np.mean([len(some) for some in sets]))
    bands = found["by_frequency"]
    assert sum(band["rows"] for band in bands) == 60
    share = [band["rows"] / 60 for band in bands]
    coverage = np.dot(share, [band["set_coverage"] for band in bands])
    assert found["set_coverage"] == pytest.approx(coverage)


def test_a_page(run, folder):
    assert run("evaluate", "texts", "test.tsv", "--plot", "trust.html").code == 0
    page = (folder / "trust.html").read_text()
    assert page.count("<svg") == 2
    assert "http" not in page
    assert "log loss" in page


def test_a_baseline_has_no_sets(run, folder):
    run("fit", "train.tsv", "-o", "plain", "--model", "centroids")
    found = run("evaluate", "plain", "test.tsv", "--json").json
    assert "set_size" not in found
    assert 0 <= found["expected_calibration_error"] <= 1
