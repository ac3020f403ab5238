"""The JSON interface says what the library says, and one clear sentence when it cannot."""

from __future__ import annotations

import json

import numpy as np
import pytest

from locole import load

PROBLEM = "application/problem+json"


@pytest.fixture
def here(client):
    return client("animals", "numbers", "tags")


def best(answer):
    return [(one["label"], one["probability"]) for one in answer["labels"]]


def test_one_text_is_answered_as_by_the_library(here, models, texts):
    model = load(models / "animals")
    for text in texts[:5]:
        labels, proba = model.predict_topk([text], k=3, proba=True)
        found = here.post("/api/models/animals/predict", json={"text": text, "k": 3}).json()
        assert best(found) == list(zip(labels[0].tolist(), proba[0].tolist(), strict=True))
        assert found["answer"] == labels[0, :1].tolist()
        assert found["model"] == "animals"
        assert set(found) == {"model", "version", "labels", "answer"}


def test_a_batch_of_more_than_one_batch(here, models, texts):
    many = texts * 5
    labels, proba = load(models / "animals").predict_topk(many, k=2, proba=True)
    found = here.post("/api/models/animals/predict-batch", json={"texts": many, "k": 2}).json()
    assert [[one["label"] for one in row["labels"]] for row in found["results"]] == labels.tolist()
    values = [[one["probability"] for one in row["labels"]] for row in found["results"]]
    np.testing.assert_allclose(values, proba, rtol=1e-12)


def test_sets_and_answers_that_are_held_back(here, models, texts):
    model = load(models / "animals")
    asked = {"texts": texts, "coverage": 0.8, "max_error": 0.3}
    found = here.post("/api/models/animals/predict-batch", json=asked).json()["results"]
    sets = model.predict_set(texts, coverage=0.8)
    assert [row["set"]["labels"] for row in found] == [labels.tolist() for labels in sets]
    assert [row["set"]["size"] for row in found] == list(map(len, sets))
    given = model.predict(texts, max_error=0.3)
    assert [row["answer"] for row in found] == [[] if x is None else [x] for x in given]
    asked = {"texts": texts, "min_proba": 0.9}
    found = here.post("/api/models/animals/predict-batch", json=asked).json()["results"]
    given = model.predict(texts, min_proba=0.9)
    assert [row["answer"] for row in found] == [[] if x is None else [x] for x in given]
    assert [] in [row["answer"] for row in found]


def test_explanations_are_the_library_s(here, models):
    text = "cat1 common3 dog2"
    found = here.post("/api/models/animals/predict", json={"text": text, "explain": 2}).json()
    model = load(models / "animals")
    for reason, one in zip(found["explanations"], found["labels"], strict=False):
        wanted = model.explain([text], one["label"])[0].to_dict()
        assert reason["words"] == wanted["words"]
        assert reason["features"] == wanted["features"][:12]
        assert reason["score"] == wanted["score"]
    assert [word["word"] for word in reason["words"]] == text.split()
    assert len(found["explanations"]) == 2


def test_rows_of_numbers(here, models):
    model = load(models / "numbers")
    row = np.zeros((1, model.n_features_in_))
    row[0, [3, 40]] = 1, 2.5
    labels, proba = model.predict_topk(row, k=2, proba=True)
    for form in ({"40": 2.5, "3": 1}, row[0].tolist()):
        found = here.post("/api/models/numbers/predict", json={"row": form, "k": 2}).json()
        assert [one["label"] for one in found["labels"]] == labels[0].tolist()
        np.testing.assert_allclose([one["probability"] for one in found["labels"]], proba[0])
    asked = {"row": {"3": 1}, "explain": 1, "coverage": 0.9}
    found = here.post("/api/models/numbers/predict", json=asked).json()
    assert found["explanations"][0]["features"][0]["name"] == "3"


def test_several_labels(here, models, texts):
    model = load(models / "tags")
    found = here.post("/api/models/tags/predict-batch", json={"texts": texts}).json()["results"]
    chosen = model.predict(texts).toarray().astype(bool)
    assert [row["answer"] for row in found] == [model.classes_[row].tolist() for row in chosen]
    asked = {"texts": texts, "min_proba": 0.6}
    found = here.post("/api/models/tags/predict-batch", json=asked).json()["results"]
    for row in found:
        assert row["answer"] == [one["label"] for one in row["labels"] if one["probability"] >= 0.6]
    for name in "coverage", "max_error":
        refused = here.post("/api/models/tags/predict", json={"text": "x", name: 0.9})
        assert refused.status_code == 400
        assert "several labels for each row: take min_proba" in refused.json()["detail"]


@pytest.mark.parametrize(
    ("model", "asked", "status", "says"),
    [
        ("animals", {}, 400, "takes texts"),
        ("animals", {"row": {"1": 1}}, 400, "takes texts"),
        ("animals", {"text": "x", "row": {"1": 1}}, 400, "nothing else"),
        ("animals", {"text": 5}, 400, "text: Input should be a valid string"),
        ("animals", {"text": "x", "k": 0}, 400, "k: "),
        ("animals", {"text": "x", "K": 2}, 400, "K: "),
        ("animals", {"text": "x", "max_error": 0.1, "min_proba": 0.5}, 400, "take one"),
        ("animals", {"text": "x", "max_error": 1e-6}, 400, "larger max_error"),
        ("animals", {"text": "x" * 2001}, 413, "give 2000 at most"),
        ("nobody", {"text": "x"}, 404, "no such model"),
        ("../animals", {"text": "x"}, 404, ""),
        ("numbers", {"text": "x"}, 400, "takes rows of numbers"),
        ("numbers", {"row": {"90": 1}}, 400, "features 0 to 89"),
        ("numbers", {"row": {"-1": 1}}, 400, "features 0 to 89"),
        ("numbers", {"row": {"a": 1}}, 400, "row"),
        ("numbers", {"row": [1.0, 2.0]}, 400, "2 numbers"),
    ],
)
def test_problems_are_one_sentence(client, model, asked, status, says):
    here = client("animals", "numbers", max_chars=2000)
    refused = here.post(f"/api/models/{model}/predict", json=asked)
    assert refused.status_code == status
    assert refused.headers["content-type"] == PROBLEM
    assert refused.json()["status"] == status
    assert says in refused.json()["detail"]


@pytest.mark.parametrize("body", [b"", b"{", b'{"text": NaN}', b"[" * 100_000, b"\xff", b"null"])
def test_bodies_that_are_no_requests(here, body):
    kind = {"content-type": "application/json"}
    refused = here.post("/api/models/animals/predict", content=body, headers=kind)
    assert refused.status_code == 400
    assert refused.headers["content-type"] == PROBLEM
    # What was sent is not sent back.
    assert len(refused.content) < 500


@pytest.mark.parametrize(
    ("path", "body", "kind", "says"),
    [
        ("api/models/animals/predict", b'{"text": }', "application/json", "no JSON from its char"),
        (
            "api/models/animals/predict",
            b'{"text": "x"}',
            "text/plain",
            "an object in JSON, sent as",
        ),
        ("api/models/animals/predict", b"", "application/json", "an object in JSON, sent as"),
        ("api/models/animals/predict", b"[]", "application/json", "an object in JSON, sent as"),
        ("api/nothing", b"{}", "application/json", "/docs describes"),
        ("api/models/animals/labels", b"{}", "application/json", "/docs says which"),
    ],
)
def test_what_was_no_request_is_told_what_one_is(here, path, body, kind, says):
    refused = here.post(f"/{path}", content=body, headers={"content-type": kind})
    assert refused.headers["content-type"] == PROBLEM
    assert says in refused.json()["detail"]


def test_halves_of_characters_are_answered(here):
    """JSON may hold what UTF-8 cannot say."""
    body = b'{"text": "cat1 \\ud800", "explain": 1}'
    kind = {"content-type": "application/json"}
    found = here.post("/api/models/animals/predict", content=body, headers=kind)
    assert found.status_code == 200
    assert found.json()["explanations"][0]["words"][1]["word"] == "\ud800"


def test_too_much_at_a_time(client):
    here = client(max_rows=3, max_body_bytes=2000)
    refused = here.post("/api/models/animals/predict-batch", json={"texts": ["x"] * 4})
    assert refused.status_code == 413
    assert here.post("/api/models/animals/predict", json={"text": "x" * 3000}).status_code == 413

    def chunks():
        yield b'{"text": "'
        for _ in range(100):
            yield b"x" * 100
        yield b'"}'

    kind = {"content-type": "application/json"}
    streamed = here.post("/api/models/animals/predict", content=chunks(), headers=kind)
    assert streamed.status_code == 413
    assert streamed.headers["content-type"] == PROBLEM


def test_labels_are_searched_and_browsed(here, models):
    classes = load(models / "animals").classes_.tolist()
    found = here.get("/api/models/animals/labels", params={"limit": 3, "offset": 2}).json()
    assert found["total"] == len(classes)
    assert [one["label"] for one in found["labels"]] == classes[2:5]
    assert all(one["rows"] > 0 for one in found["labels"])
    found = here.get("/api/models/animals/labels", params={"q": "O"}).json()
    assert [one["label"] for one in found["labels"]] == [x for x in classes if "o" in x]
    found = here.get("/api/models/tags/labels").json()
    assert sum(one["rows"] for one in found["labels"]) > 1200  # rows have several
    found = here.get("/api/models/numbers/labels", params={"q": "9"}).json()
    assert [one["label"] for one in found["labels"]] == [90]
    assert here.get("/api/models/animals/labels", params={"limit": 1000}).status_code == 400


def test_the_card_is_what_the_model_knows(here, models):
    card = here.get("/api/models/animals").json()
    model = load(models / "animals")
    calibration = model.calibration_
    assert card["labels"] == len(model.classes_)
    assert card["training_rows"] == 1200
    assert card["bytes"] == sum(f.stat().st_size for f in (models / "animals").iterdir())
    checked = card["validation"]
    assert checked["rows"] == calibration.n_rows
    assert checked["accuracy"] == pytest.approx((calibration.evidence_[:, 2] == 0).mean())
    assert sum(group["rows"] for group in checked["calibration"]) == calibration.n_rows
    for one in checked["thresholds"]:
        assert one["min_proba"] == float(model.threshold(max_error=one["max_error"]))
    listed = here.get("/api/models").json()["models"]
    assert [one["id"] for one in listed] == ["animals", "numbers", "tags"]
    assert listed[0]["version"] == card["version"]
    assert here.get("/api/models/tags").json()["validation"] is None


def test_openapi_describes_all_of_it(here):
    found = here.get("/openapi.json").json()
    assert "/api/models/{model}/predict" in found["paths"]
    assert "/v1/projects/{project_id}/suggest" in found["paths"]
    text = json.dumps(found)
    assert "422" not in text
    refs = {part.split('"')[0] for part in text.split('"#/components/schemas/')[1:]}
    assert refs <= set(found["components"]["schemas"])
