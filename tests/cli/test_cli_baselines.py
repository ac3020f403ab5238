"""Baselines on the command line: trained by name, and as good as locole's own models afterwards."""

from __future__ import annotations

import numpy as np
import pytest

import locole
from locole.baselines import Centroids
from locole.cli.baselines import make_baseline
from locole.datasets import load_libsvm, load_texts
from locole.exceptions import LocoleError, ModelFileError
from locole.methods import METHODS, Method
from locole.text import TextClassifier, TextFeatures


class Settings(Centroids):
    """A baseline with parameters, which keeps what it is given."""

    def __init__(self, passes=3, how="well", tree=None, random_state=0, n_jobs=None, verbose=0):
        self.passes, self.how, self.tree = passes, how, tree
        self.random_state, self.n_jobs, self.verbose = random_state, n_jobs, verbose


@pytest.fixture
def settings(monkeypatch):
    monkeypatch.setitem(METHODS, "settings", Method("settings", "baseline", "Settings"))
    monkeypatch.setattr(locole.baselines, "Settings", Settings, raising=False)


# --- files to models to answers ---


def test_texts(run, folder):
    done = run("fit", "train.tsv", "-o", "model", "--model", "centroids", "--test", "test.tsv")
    assert done.code == 0, done.err
    assert "model Centroids" in done.out
    model = locole.load("model")
    assert type(model) is TextClassifier
    assert type(model.classifier_) is Centroids
    expected = TextClassifier(TextFeatures(), Centroids()).fit(*load_texts("train.tsv"))
    new = (folder / "new.txt").read_text().splitlines()
    for ours, theirs in zip(model.predict_topk(new, 3), expected.predict_topk(new, 3), strict=True):
        assert ours.tolist() == theirs.tolist()
    lines = run("predict", "model", "new.txt", "-k", "1").out.splitlines()
    assert [line.split("\t")[0] for line in lines] == model.predict(new).tolist()
    found = run("evaluate", "model", "test.tsv", "--json").json
    assert found["accuracy"] == model.score(*load_texts("test.tsv")) > 0.9


def test_numbers(run, folder):
    done = run("fit", "train.svm", "-o", "model", "--model", "centroids", "--json")
    step = next(step for step in done.json["steps"] if step["step"] == "train")
    assert step["chosen"] == {"model": "Centroids"}
    model = locole.load("model")
    assert type(model) is Centroids
    X, y = load_libsvm("test.svm", n_features=model.n_features_in_, zero_based=False)
    found = run("evaluate", "model", "test.svm", "--json").json
    assert found["accuracy"] == model.score(X, y) > 0.9
    lines = run("predict", "model", "test.svm", "-k", "1", "--jobs", "2").out.splitlines()
    assert [int(line.split("\t")[0]) for line in lines] == model.predict(X).tolist()


@pytest.mark.parametrize("file", ["train.tsv", "train.svm"])
def test_inspect_says_what_it_is(run, folder, file):
    assert run("fit", file, "-o", "model", "--model", "centroids").code == 0
    found = run("inspect", "model", "--json", "--verify").json
    assert found["kind"] == ("TextClassifier" if file.endswith("tsv") else "Centroids")
    is_text = file.endswith("tsv")
    part = found["parts"]["classifier_"] if is_text else found["parts"]
    arrays = found["arrays"].items()
    assert part.pop("bytes") > sum(entry["bytes"] for name, entry in arrays if "centroids_" in name)
    assert part.pop("calibration_")["class"] == "Calibration"
    assert part.pop("multilabel_") is part.pop("marginals_") is None
    assert part == {"class": "Centroids", "n_jobs": -1, "n_features_in_": found["features"]}
    assert found["labels"] == 10
    assert not {"outputs", "room_for_labels", "choice"} & set(found)
    shown = run("inspect", "model").out
    assert f"{'classifier_' if is_text else 'model'}: Centroids, " in shown
    assert "centroids_.indices" in shown
    assert ("\n  features_: TextFeatures, " in shown) is is_text


# --- what is typed ---


def test_settings_are_json_or_texts(settings):
    typed = ["passes=7", "how=very well", "tree=[1, null]"]
    made = make_baseline("settings", typed, {"embedding": "auto", "l1": None}, seed=5, jobs=2)
    assert (made.passes, made.how, made.tree) == (7, "very well", [1, None])
    assert (made.random_state, made.n_jobs, made.verbose) == (5, 2, 1)
    again = make_baseline("settings", ["how=", "passes=" + "[" * 10_000], {}, seed=0, jobs=1)
    assert (again.how, again.passes) == ("", "[" * 10_000)


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--model", "forest"], "unknown model 'forest': take locole or one of"),
        (["--set", "passes=3"], "--set is for a baseline or a regressor: name one by --model or"),
        (["--regressor", "mlp", "--set", "depth=3"], "the regressor mlp has no setting 'depth'"),
        (
            ["--regressor", "mlp", "--set", "hidden=0"],
            "hidden must be None, a whole number of at least",
        ),
        (["--model", "centroids", "--profiles"], "the model centroids has no --profiles"),
        (["--model", "centroids", "--set", "passes"], "NAME=VALUE, not 'passes'"),
        (["--model", "centroids", "--set", "depth=3"], "no setting 'depth'; it has none"),
        (["--model", "centroids", "--set", "n_jobs=3"], "there are --seed and --jobs for it"),
        (["--model", "centroids", "--l2", "0.5"], "the model centroids has no --l2"),
        (["--model", "centroids", "--embedding", "gold"], "centroids has no --embedding"),
        (["--model", "centroids", "--dim", "64"], "centroids has no --dim"),
        (["--model", "centroids", "--seed", "-1"], "--seed"),
        (["--model", "centroids", "--jobs", "0"], "--jobs must be None, a whole number"),
    ],
)
def test_bad_words_are_one_line(run, folder, words, part):
    done = run("fit", "train.tsv", "-o", "model", *words)
    assert done.code == 2
    *started, line = done.err.splitlines()
    assert started == ([] if "--seed" in words else ["starting …"])
    assert part in line
    assert not (folder / "model").exists()


# --- texts with a baseline behind them ---


def test_a_baseline_learns_no_more_texts(folder):
    texts, labels = load_texts("train.tsv")
    model = TextClassifier(classifier=Centroids())
    with pytest.raises(LocoleError, match="Centroids cannot learn more rows: fit again"):
        model.partial_fit(texts, labels)
    model.fit(texts, labels)
    before = model.predict_topk(texts)[1]
    with pytest.raises(LocoleError, match="Centroids cannot learn more rows: fit again"):
        model.partial_fit(texts, labels)
    assert np.array_equal(model.predict_topk(texts)[1], before)


@pytest.mark.parametrize("strange", ["unfitted", "other features", "text", "tokens"])
def test_a_text_model_with_something_else_behind_it_is_refused(folder, tmp_path, strange):
    model = TextClassifier(classifier=Centroids()).fit(*load_texts("train.tsv"))
    model.classifier_ = {
        "unfitted": Centroids(),
        "other features": Centroids().fit(np.eye(3), [0, 1, 1]),
        "text": TextClassifier(classifier=Centroids()).fit(["a", "b"], [0, 1]),
        "tokens": model.features_,
    }[strange]
    model.save(tmp_path / "m")
    with pytest.raises(ModelFileError, match=r"do not fit together|is a TextFeatures"):
        locole.load(tmp_path / "m")
