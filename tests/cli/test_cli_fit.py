"""fit: the model is the library's, whatever the file's format, and what is printed is true."""

from __future__ import annotations

import hashlib
import re
import warnings
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import make_rows, svm_lines

import locole
from locole import LocoleClassifier
from locole.cli.app import main
from locole.cli.examples import FIRST_INDEX, read_training
from locole.cli.reading import Reading
from locole.cli.training import _formula
from locole.datasets import load_libsvm, load_texts, read_examples
from locole.io import read_manifest
from locole.text import TextClassifier, TextFeatures


def test_it_is_the_library_s_model_of_texts(run, folder):
    done = run(
        "fit", "train.tsv", "-o", "model", "--embedding", "gold", "--dim", "128", "--seed", "3"
    )
    assert done.code == 0
    texts, labels = load_texts("train.tsv")
    expected = TextClassifier(
        TextFeatures(), LocoleClassifier("gold", dim=128, random_state=3, n_jobs=1)
    ).fit(texts, labels)
    model = locole.load("model")
    assert type(model) is TextClassifier
    new = (folder / "new.txt").read_text().splitlines()
    for ours, theirs in zip(model.predict_topk(new, 3), expected.predict_topk(new, 3), strict=True):
        assert ours.tolist() == theirs.tolist()


def test_it_is_the_library_s_model_of_numbers(run, folder):
    options = ["--l2", "0.25", "--passes", "7", "--embedding", "kerdock", "--dim", "64"]
    assert run("fit", "train.svm", "-o", "model", *options).code == 0
    model = locole.load("model")
    assert type(model) is LocoleClassifier
    assert (model.regressor_.l2_, model.regressor_.max_passes) == (0.25, 7)
    assert model.classes_.dtype == np.int64
    X, y = load_libsvm("train.svm")
    assert model.n_features_in_ == X.shape[1]
    again = LocoleClassifier("kerdock", dim=64, regressor=model.regressor).fit(X, y)
    assert (again.regressor_.coef_.T == model.regressor_.coef_.T).all()
    assert not model.regressor_.verbose


@pytest.mark.parametrize("name", ["train.csv", "train.jsonl", "train.tsv"])
def test_every_format_of_texts(run, folder, name):
    columns = ["--text-column", "title", "--label-column", "category"] if "csv" in name else []
    done = run("fit", name, "-o", "model", "--min-df", "2", "--analyzer", "word", *columns)
    assert done.code == 0
    model = locole.load("model")
    assert model.features_.analyzer_ == "word"
    assert model.features_._settings["min_df"] == 2
    assert model.score(*load_texts("test.tsv")) > 0.9


def test_columns_by_number_and_other_names(run, folder):
    (folder / "table").write_text("cat,meow meow\ndog,bark bark\ncat,meow\ndog,bark\n")
    options = ["--format", "csv", "--text-column", "1", "--label-column", "0", "--hash", "64"]
    assert run("fit", "table", "-o", "model", *options).code == 0
    model = locole.load("model")
    assert model.features_.n_columns_ == 64
    assert model.predict(["bark"]).tolist() == ["dog"]


def test_what_it_prints(run, folder):
    done = run("fit", "train.tsv", "-o", "model", "--test", "test.tsv", "--l2", "0.5")
    lines = done.out.splitlines()
    steps = [line.split()[0] for line in lines if not line.startswith(" ")]
    assert steps == ["read", "vectorise", "train", "save", "test"]
    assert all(
        re.search(r" \d+\.\d s +\d+(\.\d+)? [MG]B  ", line) for line in lines if line[0] != " "
    )
    assert "300 texts, 10 labels" in done.out
    assert "analyzer both: texts are short" in done.out
    assert "OneHot(n_classes=10, dim=10)" in done.out
    assert "60 rows, accuracy" in done.out
    # What was given was not chosen.
    assert "as given" not in done.out


def test_nothing_is_printed_of_regressors_that_count_for_nothing():
    golden = Path(__file__).parents[1] / "io" / "golden" / "format2"
    names = [
        set(_formula(locole.load(golden / name))) for name in ("default", "default_profiles_bytes")
    ]
    assert names[0] >= {"embedding", "outputs", "regressor"}
    assert names[1] & {"embedding", "outputs", "regressor"} == {"embedding", "outputs"}


def test_json(run, folder):
    found = run("fit", "train.svm", "-o", "model", "--test", "test.svm", "--json").json
    assert set(found) == {"model", "model_bytes", "steps", "test"}
    size = sum(path.stat().st_size for path in (folder / "model").iterdir())
    assert found["model_bytes"] == size
    assert [step["step"] for step in found["steps"]] == ["read", "train", "save", "test"]
    assert all(step["seconds"] >= 0 and step["peak_bytes"] > 1e6 for step in found["steps"])
    read = found["steps"][0]
    X, y = load_libsvm("train.svm")
    assert (read["rows"], read["features"], read["labels"]) == (*X.shape, len(set(y)))
    X, y = load_libsvm("test.svm", n_features=X.shape[1], zero_based=False)
    assert found["test"]["accuracy"] == pytest.approx(locole.load("model").score(X, y))


def test_force_replaces_and_refusal_keeps(run, folder):
    before = read_manifest("texts").arrays_file
    assert run("fit", "train.svm", "-o", "texts").code == 2
    assert read_manifest("texts").arrays_file == before
    assert run("fit", "train.svm", "-o", "texts", "--force").code == 0
    assert type(locole.load("texts")) is LocoleClassifier


def test_an_empty_folder_will_do(run, folder):
    (folder / "empty").mkdir()
    assert run("fit", "train.svm", "-o", "empty").code == 0


def test_a_damaged_model_is_not_replaced(run, folder):
    manifest = folder / "texts" / "manifest.json"
    manifest.write_text("{}")
    done = run("fit", "train.svm", "-o", "texts", "--force")
    assert done.code == 2
    assert manifest.read_text() == "{}"


def test_labels_that_only_begin_as_numbers(run, folder):
    (folder / "mixed.svm").write_text("12 1:1\n12a 2:1\n012 3:1\n" * 3)
    done = run("fit", "mixed.svm", "-o", "model")
    assert done.code == 2
    assert "--labels text" in done.err
    assert run("fit", "mixed.svm", "-o", "model", "--labels", "text").code == 0
    assert set(locole.load("model").classes_) == {"12", "12a", "012"}
    # A test file whose labels all look like numbers is read as the training file was.
    (folder / "test.svm").write_text("012 3:1\n12 1:1\n")
    assert run("evaluate", "model", "test.svm", "--json").json["accuracy"] == 1.0


@pytest.mark.parametrize("first", [0, 1])
def test_where_features_start_is_remembered(run, folder, first):
    train, test = make_rows(200, 5), make_rows(40, 6)
    # The training file may lack its first feature, then it cannot be told; here it has it.
    (folder / "a.svm").write_text(svm_lines(train, first=first))
    assert run("fit", "a.svm", "-o", "model").code == 0
    assert read_manifest("model").made_by[FIRST_INDEX] == str(first)
    # Rows of the test file that would be misread: none has the first feature.
    lines = svm_lines(test, first=first).splitlines(keepends=True)
    kept = [line for line in lines if f" {first}:" not in line]
    (folder / "b.svm").write_text("".join(kept))
    found = run("evaluate", "model", "b.svm", "--json").json
    X, y = load_libsvm("b.svm", zero_based=first == 0, n_features=read_manifest_features())
    assert found["accuracy"] == locole.load("model").score(X, y) > 0.9
    wrong = ["--one-based"] if first == 0 else ["--zero-based"]
    assert run("evaluate", "model", "b.svm", "--json", *wrong).json["accuracy"] < found["accuracy"]


def read_manifest_features() -> int:
    return int(locole.load("model").n_features_in_)


@settings(max_examples=40)
@given(
    rows=st.lists(
        st.dictionaries(st.integers(0, 12), st.integers(1, 9), max_size=4), min_size=1, max_size=6
    )
)
def test_a_file_tells_its_base_as_the_library_finds_it(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("base") / "some.svm"
    path.write_text(
        "".join("1 " + " ".join(f"{k}:{v}" for k, v in sorted(row.items())) + "\n" for row in rows)
    )
    (X, y, _), notes = read_training(str(path), Reading())
    expected, labels = load_libsvm(path)
    assert X.shape == expected.shape
    assert (expected != X).nnz == 0
    assert y.tolist() == labels.tolist()
    has_zero = any(0 in row for row in rows)
    if any(rows):
        assert notes == {FIRST_INDEX: "0" if has_zero else "1"}


def test_a_base_that_is_given(tmp_path):
    path = tmp_path / "some.svm"
    path.write_text("1 1:2 3:1\n2 2:1\n")
    (X, _, _), notes = read_training(str(path), Reading(zero_based=True))
    assert X.shape == (2, 4)
    assert notes == {FIRST_INDEX: "0"}


def test_texts_have_no_notes(folder):
    (texts, labels, _), notes = read_training("train.tsv", Reading())
    expected = read_examples("train.tsv")
    assert texts == expected.features
    assert labels.tolist() == expected.labels.tolist()
    assert notes == {}


def test_softmax_and_fewer_bits(run, folder):
    options = ["--regressor", "softmax", "--passes", "2", "--storage", "float16"]
    assert (
        run("fit", "train.svm", "-o", "model", "--embedding", "gold", "--dim", "32", *options).code
        == 0
    )
    regressor = locole.load("model").regressor_
    assert (regressor.epochs, regressor.storage) == (2, "float16")


def test_parameters_of_a_network(run, folder):
    """Also a checkpoint, which is of the fit and not of the trial of the settings before it."""
    words = ["--set", "hidden=[24, 8]", "--set", "epochs=2", "--set", "checkpoint=state"]
    run("fit", "train.tsv", "-o", "network", "--regressor", "mlp", *words)
    network = locole.load(folder / "network").classifier_.regressor_
    assert network.settings_["hidden"] == (24, 8)
    assert network.settings_["loss"] == "softmax"
    assert len(network.history_) == 2
    assert (folder / "state" / "manifest.json").exists()


def test_a_network_keeps_its_profiles_with_settings_of_its_own(run, folder):
    """And with a checkpoint, which is not in the way of the validation rows."""
    words = [
        f"{label} {label}x{i % 7} {label}y{i % 11} z{i}" for i in range(1200) for label in [i % 30]
    ]
    lines = [f"{i % 30}\t{text}\n" for i, text in enumerate(words)]
    (folder / "many.tsv").write_text("".join(lines))
    options = ["--set", "hidden=8", "--set", "epochs=1", "--set", "checkpoint=state"]
    done = run("fit", "many.tsv", "-o", "many", "--regressor", "mlp", *options)
    assert done.code == 0
    model = locole.load(folder / "many").classifier_
    assert [scorer.name for scorer in model.scorer_.scorers_] == ["vectors", "profiles"]
    assert model.scorer_.weights_[1] > 0
    assert model.regressor_.settings_["hidden"] == (8,)


def test_profiles_on_demand(run, folder):
    done = run("fit", "train.tsv", "-o", "both", "--regressor", "softmax", "--profiles")
    assert done.code == 2
    assert "profiles=True needs 1,000 rows and 257 features" in done.err
    run("fit", "train.tsv", "-o", "alone", "--no-profiles")
    assert locole.load(folder / "alone").classifier_.profiles is False


def test_standard_input(shell, folder):
    done = shell("locole fit - --format tsv -o model < train.tsv")
    assert done.code == 0, done.err
    assert main(["inspect", "model"]) == 0


def test_what_the_model_is_made_of_is_kept_with_it(run, folder):
    assert run("fit", "train.tsv", "-o", "m", "--note", "first\x1b[31m try").code == 0
    notes = read_manifest("m").made_by
    assert notes["data_sha256"] == hashlib.sha256((folder / "train.tsv").read_bytes()).hexdigest()
    assert abs(datetime.fromisoformat(notes["date"]) - datetime.now(UTC)) < timedelta(minutes=5)
    assert notes["note"] == "first\x1b[31m try"
    shown = run("inspect", "m").out
    assert re.search(rf"^data sha256 +{notes['data_sha256']}$", shown, re.MULTILINE)
    assert re.search(r"^note +first\\x1b\[31m try$", shown, re.MULTILINE)
    assert run("inspect", "m", "--json").json["made_by"] == notes
    # Standard input has no hash; an ensemble has validation rows.
    lines = [f"{i % 30}\t{i % 30} x{i % 7} y{i % 11} z{i}\n" for i in range(1200)]
    (folder / "many.tsv").write_text("".join(lines))
    done = run("fit", "many.tsv", "-o", "many")
    notes, choice = read_manifest("many").made_by, locole.load("many").classifier_.choice_
    assert notes["validation_accuracy"] == f"{choice['accuracy']:.4f}"
    # Said once, in words.
    assert (done.out + done.err).count("% of 120 validation rows are right") == 1


def test_an_option_is_given_once(run, folder):
    done = run("fit", "train.tsv", "-o", "m", "--dim", "8", "--dim", "16")
    assert done == (2, "", "locole: --dim is given twice: give it once.\n")
    done = run("fit", "train.tsv", "-o", "m", "--profiles", "--no-profiles")
    assert "is given twice" in done.err


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["train.tsv", "--labels", "first"],
         "train.tsv: --labels is for libsvm, not for tsv: leave it out."),
        (["train.svm", "--labels", "first"],
         'labels must be "auto", "int", "text" or None, not \'first\'.'),
        (["train.svm", "--text-column", "x"],
         "train.svm: --text-column is for tsv, csv, jsonl, parquet, not for libsvm: leave it out."),
    ],
)  # fmt: skip
def test_options_that_a_file_does_not_have(run, folder, words, line):
    done = run("fit", *words, "-o", "m")
    assert done.code == 2
    assert done.err.splitlines()[-1] == f"locole: {line}"


def test_an_id_column_taken_for_labels_is_a_loud_warning(run, folder):
    (folder / "ids.csv").write_text("id,text\n" + "".join(f"{i},a{i} b\n" for i in range(200)))
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        done = run("fit", "ids.csv", "-o", "m", "--label-column", "id", "--text-column", "text")
    assert done.code == 0
    assert "locole: warning: every label has only one row: is y a column of ids" in done.err
