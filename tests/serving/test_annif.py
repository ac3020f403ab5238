"""Annif's REST interface, asked as Annif's own http backend asks; `make check-annif` asks with Annif."""

from __future__ import annotations

import shutil
from datetime import datetime

import pytest

from locole import load
from locole.serving.labels import label_of, uri_of

SUGGEST = "/v1/projects/animals/suggest"


def test_projects(client, models):
    here = client("animals", "tags")
    found = here.get("/v1/projects").json()["projects"]
    assert [one["project_id"] for one in found] == ["animals", "tags"]
    one = here.get("/v1/projects/animals").json()
    assert one == found[0]
    assert one["is_trained"] is True
    assert {"name", "language", "backend", "modification_time"} <= set(one)
    written = (models / "animals" / "manifest.json").stat().st_mtime
    assert datetime.fromisoformat(one["modification_time"]).timestamp() == pytest.approx(written)
    missing = here.get("/v1/projects/none")
    assert (missing.status_code, missing.json()["title"]) == (404, "Project not found")


def test_suggestions_are_the_library_s(client, models, texts):
    model = load(models / "animals")
    here = client()
    for text in texts[:3]:
        labels, proba = model.predict_topk([text], k=4, proba=True)
        form = {"text": text, "limit": 4, "metadata_title": "x", "project": "animals"}
        found = here.post(SUGGEST, data=form).json()["results"]
        assert [one["label"] for one in found] == labels[0].tolist()
        assert [one["uri"] for one in found] == [uri_of(label) for label in labels[0]]
        assert [one["score"] for one in found] == pytest.approx(proba[0].tolist())
        assert all(one["notation"] is None for one in found)
    found = here.post(SUGGEST, data={"text": texts[0], "threshold": "0.5"}).json()["results"]
    assert all(one["score"] >= 0.5 for one in found)
    assert here.post(SUGGEST, data={"text": texts[0], "limit": 0}).json() == {"results": []}
    everything = here.post(SUGGEST, data={"text": texts[0], "limit": 2**31}).json()["results"]
    assert len(everything) == len(model.classes_)


def test_a_batch(client, texts):
    here = client()
    documents = [{"text": text, "document_id": str(i)} for i, text in enumerate(texts[:3])]
    documents.append({"text": texts[3]})
    found = here.post(f"{SUGGEST}-batch?limit=2", json={"documents": documents}).json()
    assert [one["document_id"] for one in found] == ["0", "1", "2", None]
    for text, one in zip(texts, found, strict=False):
        alone = here.post(SUGGEST, data={"text": text, "limit": 2}).json()["results"]
        assert [x["uri"] for x in one["results"]] == [x["uri"] for x in alone]
        assert [x["score"] for x in one["results"]] == pytest.approx([x["score"] for x in alone])
    assert here.post(f"{SUGGEST}-batch", json={"documents": []}).json() == []
    many = {"documents": documents[:1] * 33}
    assert here.post(f"{SUGGEST}-batch", json=many).status_code == 400


@pytest.mark.parametrize(
    ("content", "kind", "says"),
    [
        (b"limit=3", "application/x-www-form-urlencoded", "text: Field required"),
        (b"text=a&limit=-1", "application/x-www-form-urlencoded", "limit"),
        (b"text=a&threshold=2", "application/x-www-form-urlencoded", "threshold"),
        (b"text=%ff", "application/x-www-form-urlencoded", None),
        (b"text=\xff", "application/x-www-form-urlencoded", "UTF-8"),
        (b"&".join([b"a=1"] * 200), "application/x-www-form-urlencoded", "form"),
        (b'{"text": "a"}', "application/json", "must be a form"),
    ],
)
def test_forms_that_cannot_be_read(client, content, kind, says):
    answer = client().post(SUGGEST, content=content, headers={"content-type": kind})
    if says is None:  # a character that is no UTF-8 is replaced
        assert answer.status_code == 200
        return
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/problem+json"
    assert says in answer.json()["detail"]


def test_models_of_numbers_give_no_suggestions(client):
    refused = client("numbers").post("/v1/projects/numbers/suggest", data={"text": "a"})
    assert refused.status_code == 400
    assert "takes rows of numbers" in refused.json()["detail"]


@pytest.mark.parametrize("label", ["São Paulo (BR)", "http://example.org/a#b", "a b", "ü:x", 7, ""])
def test_uris_lead_back_to_labels(label, models):
    classes = load(models / ("numbers" if label == 7 else "animals")).classes_
    uri = uri_of(label)
    assert ":" in uri
    assert not set(uri) & set(" <>\"'{}")
    assert label_of(uri, classes) == label


def test_the_vocabulary_has_every_label(client, models):
    lines = client().get("/api/models/animals/vocabulary.tsv").text.splitlines()
    labels = load(models / "animals").classes_
    assert lines == [f"<{uri_of(label)}>\t{label}" for label in labels]


def test_learning_is_off_unless_asked_for(client):
    lesson = [{"text": "a", "subjects": [{"uri": uri_of("cat")}]}]
    refused = client().post("/v1/projects/animals/learn", json=lesson)
    assert (refused.status_code, refused.json()["title"]) == (403, "Learning not allowed")


@pytest.fixture
def copies(models, tmp_path):
    for name in ("animals", "tags", "numbers"):
        shutil.copytree(models / name, tmp_path / name)
    return tmp_path


def lesson(text, *labels):
    return {"text": text, "subjects": [{"uri": uri_of(label)} for label in labels]}


def test_a_model_learns_and_is_saved(client, copies):
    here = client("animals", "tags", folder=copies, learn=True)
    before = here.get("/api/models").json()["models"]
    lessons = [lesson("zebra common1 stripes", "zebra")] * 5 + [lesson("cat1 cat2", "cat")]
    assert here.post("/v1/projects/animals/learn", json=lessons).status_code == 204
    lessons = [lesson("zebra cat1", "zebra", "cat")] * 5
    assert here.post("/v1/projects/tags/learn", json=lessons).status_code == 204
    after = here.get("/api/models").json()["models"]
    assert [one["version"] for one in after] != [one["version"] for one in before]
    assert [one["labels"] for one in after] == [one["labels"] + 1 for one in before]
    found = here.get("/api/models/animals/labels", params={"q": "zebra"}).json()
    assert found["total"] == 1
    # What was learnt does not end with the process.
    assert "zebra" in load(copies / "animals").classes_
    assert "zebra" in load(copies / "tags").classes_


@pytest.mark.parametrize(
    ("model", "lessons", "says"),
    [
        ("animals", [lesson("a", "cat", "dog")], "give one subject"),
        ("animals", [lesson("a")], "give one subject"),
        ("animals", [], "nothing"),
        ("animals", [{"text": "a"}], "subjects"),
        ("numbers", [lesson("a", "1")], "takes rows of numbers"),
    ],
)
def test_lessons_that_are_none(client, copies, model, lessons, says):
    here = client(model, folder=copies, learn=True)
    before = here.get(f"/api/models/{model}").json()["version"]
    refused = here.post(f"/v1/projects/{model}/learn", json=lessons)
    assert refused.status_code == 400
    assert says in refused.json()["detail"]
    assert here.get(f"/api/models/{model}").json()["version"] == before
