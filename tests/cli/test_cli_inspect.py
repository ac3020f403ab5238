"""inspect: what it says is what the model is."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from forgery import Forgery

import locole
from locole.choice import Choice
from locole.embeddings import OneHot
from locole.io import write_model
from locole.regressors.checkpoint import Checkpoints

GOLDEN = Path(__file__).parents[1] / "io" / "golden" / "format2"


def test_json_of_a_model_of_texts(run, folder):
    found = run("inspect", "texts", "--json", "--verify").json
    model = locole.load("texts")
    assert found["kind"] == "TextClassifier"
    assert set(found["made_by"]) == {"locole", "date", "data_sha256"}
    assert found["made_by"]["locole"] == locole.__version__
    assert found["labels"] == found["room_for_labels"] == 10
    assert found["first_labels"] == model.classes_[:5].tolist()
    assert found["features"] == model.features_.n_columns_
    assert found["outputs"] == 10
    assert "choice" not in found
    assert found["bytes"] == sum(path.stat().st_size for path in (folder / "texts").iterdir())
    assert found["parts"]["class"] == "TextClassifier"
    assert found["parts"]["features_"]["analyzer_"] == "both"
    scorer = found["parts"]["classifier_"]["scorer_"]
    assert scorer["class"] == "VectorScorer"
    assert scorer["weight_seen_"] == 300
    embedding = scorer["embedding_"]
    assert (embedding["class"], embedding["n_classes"], embedding["dim"]) == ("OneHot", 10, 10)
    assert scorer["decoder_"]["class"] == type(model.classifier_.decoder_).__name__
    regressor = scorer["regressors_[elastic_net]"]
    assert regressor["class"] == "ElasticNetRegressor"
    assert regressor["l2_"] == model.classifier_.regressor_.l2_
    weights = found["arrays"]["model.classifier_.scorer_.regressors_.elastic_net._weights"]
    assert weights["shape"][0] == found["features"]
    assert weights["bytes"] == 4 * weights["shape"][0] * weights["shape"][1]
    assert weights["bytes"] < regressor["bytes"] <= scorer["bytes"] < found["parts"]["bytes"]
    assert found["parts"]["bytes"] < found["bytes"]


def test_people_see_parts_and_arrays(run, folder):
    shown = run("inspect", "numbers").out
    assert re.search(rf"^made by +locole {re.escape(locole.__version__)}$", shown, re.MULTILINE)
    assert re.search(r"^libsvm first index +1$", shown, re.MULTILINE)
    assert "\nmodel: LocoleClassifier, " in shown
    assert "\n    regressors_[elastic_net]: ElasticNetRegressor, " in shown
    assert "model.scorer_.regressors_.elastic_net._weights" in shown
    assert "features_: TextFeatures" not in shown


def test_parts_of_an_ensemble(run, folder):
    rows = (folder / "train.tsv").read_text() * 4
    (folder / "more.tsv").write_text(rows)
    assert run("fit", "more.tsv", "-o", "ensemble").code == 0
    found = run("inspect", "ensemble", "--json").json
    choice = locole.load("ensemble").classifier_.choice_
    assert found["choice"] == choice
    assert list(choice["sources"]) == ["elastic_net", "profiles", "tuned profiles", "factors"]
    scorers = locole.load("ensemble").classifier_.scorer_.scorers_
    scorer = found["parts"]["classifier_"]["scorer_"]
    assert scorer["class"] == "Ensemble"
    classes = [scorer[f"scorers_[{i}]"]["class"] for i in range(len(scorers))]
    assert classes == [type(part).__name__ for part in scorers]
    regressor = scorer["scorers_[0]"]["regressors_[elastic_net]"]
    assert regressor["class"] == "ElasticNetRegressor"
    assert 0 < regressor["bytes"] < scorer["scorers_[0]"]["bytes"] < scorer["bytes"]
    shown = run("inspect", "ensemble").out
    assert re.search(rf"^choice +{re.escape(str(choice))}$", shown, re.MULTILINE)
    assert " % of 120 validation rows are right (alone: elastic net " in shown
    assert "\n        regressors_[elastic_net]: ElasticNetRegressor, " in shown


def test_a_damaged_model_is_bad_input(run, folder):
    (arrays,) = (folder / "texts").glob("*.safetensors")
    content = bytearray(arrays.read_bytes())
    content[-1] ^= 1
    arrays.write_bytes(content)
    done = run("inspect", "texts")
    assert done.code == 2
    assert "has changed" in done.err


def test_a_model_does_not_steer_the_terminal(run, folder):
    """Labels, names of parts and of arrays may be anything."""
    forged = Forgery.of(folder / "texts")
    text = json.dumps(forged.content).replace('"elastic_net"', '"\\u001b[31m\\u009b2J\\u007f"')
    forged.content = json.loads(text.replace('"analyzer as given"', '"\\u001b]0;x\\u0007"'))
    forged.write(folder / "forged")
    for words in (["forged"], ["forged", "--json"]):
        done = run("inspect", *words)
        assert done.code == 0, done.err
        assert all(c.isprintable() or c == "\n" for c in done.out)
    assert "regressors_[\\x1b[31m" in run("inspect", "forged").out


def test_a_model_cannot_pass_off_notes_as_parts(run, folder):
    """Or as what was found in it; and what it chose may be anything."""
    forged = Forgery.of(GOLDEN / "default")
    learnt = forged.content["model"]["$part"]["values"]["learnt"]["scorer_"]["$part"]["values"]
    learnt["learnt"]["choice_"] = {"class": "\u001b]0;x\u0007", "bytes": "x", "sources": 7}
    forged.content["made_by"] |= {"bytes": "x", "labels": "many", "note": "mine"}
    forged.write(folder / "forged")
    done = run("inspect", "forged")
    assert done.code == 0, done.err
    assert all(c.isprintable() or c == "\n" for c in done.out)
    assert re.search("^choice +unknown: the file says nothing that makes sense$", done.out, re.M)
    assert re.search("^note +mine$", done.out, re.M)
    assert "many" not in done.out
    assert run("inspect", "forged", "--json").code == 0


def test_what_is_no_model_is_said_in_one_sentence(run, folder):
    write_model(folder / "code", OneHot(3, dim=3))
    Checkpoints(folder / "state", owner="me").write({"done": 3})
    write_model(folder / "unfitted", locole.LocoleClassifier())
    for verb, *words in (["inspect"], ["predict", "test.tsv"], ["evaluate", "test.tsv"]):
        for name, said in (
            ("code", "code holds no model but a part of one: OneHot. Give a whole model."),
            ("state", "state holds no model but a part of one: Checkpoint. Give a whole model."),
            ("unfitted", "the model in unfitted has learnt nothing: fit it first."),
        ):
            done = run(verb, name, *words)
            assert (done.code, done.err) == (2, f"locole: {said}\n")


@pytest.mark.parametrize(
    "sources", [7, {"a": [1]}, {"a": np.ones(3)}, {"a": {"accuracy": "x"}}, {"a": {}}], ids=repr
)
def test_whatever_a_choice_holds(sources):
    found = Choice(validation_rows=1, accuracy=0.5, sources=sources)
    assert str(found) == "unknown: the file says nothing that makes sense"
