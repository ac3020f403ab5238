"""Models that are replaced while they are asked: no request fails, no answer is mixed."""

from __future__ import annotations

import shutil
import threading
import time

import pytest

from locole import load
from locole.exceptions import LocoleError
from locole.serving.registry import Registry, places_of


@pytest.fixture
def place(models, tmp_path):
    shutil.copytree(models / "animals", tmp_path / "animals")
    return tmp_path / "animals"


def opened(path):
    return load(path), {}


def registry_of(place, events):
    registry = Registry(
        {"animals": str(place)}, opened, listener=lambda event, name, about: events.append(event)
    )
    registry.load()
    return registry


def test_a_new_model_is_taken_up_and_a_broken_one_refused(place, models):
    events = []
    registry = registry_of(place, events)
    old = registry.get("animals")
    registry.refresh()
    assert registry.get("animals") is old
    load(models / "beasts").save(place)
    registry.refresh()
    new = registry.get("animals")
    assert new.version != old.version
    assert new.model.classes_[0] == old.model.classes_[0].upper()
    manifest = (place / "manifest.json").read_bytes()
    (place / "manifest.json").write_bytes(manifest[:-40])
    registry.refresh()
    registry.refresh()
    assert registry.get("animals") is new
    shutil.rmtree(place)
    registry.refresh()
    assert registry.get("animals") is new
    shutil.copytree(models / "animals", place)
    registry.refresh()
    assert registry.get("animals").version == old.version
    assert events == ["loaded", "reloaded", "refused", "reloaded"]


def test_the_same_model_has_the_same_version(place, models):
    registry = registry_of(place, [])
    version = registry.get("animals").version
    load(models / "animals").save(place)
    registry.refresh()
    assert registry.get("animals").version == version


def test_replaced_a_hundred_times_under_load(client, place, models, texts):
    """Every answer is that of one version, which says so itself: labels of one are capitals."""
    here = client("animals", folder=place.parent, reload_s=0.002)
    both = [load(models / name) for name in ("animals", "beasts")]
    wanted = {}
    for model, name in zip(both, ("animals", "beasts"), strict=True):
        labels, _ = model.predict_topk(texts, k=2, proba=True)
        wanted[name] = labels.tolist()
    answers, ended = [], threading.Event()

    def ask():
        while not ended.is_set():
            answers.append(
                here.post("/api/models/animals/predict-batch", json={"texts": texts, "k": 2})
            )

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    state = here.app.app.state.serving
    seen = set()
    for i in range(100):
        model = both[(i + 1) % 2]
        model.save(place)
        version = None
        while version is None or version in seen:
            served = state.registry.get("animals")
            version = id(served) if (served.model.classes_[0] == model.classes_[0]) else None
            time.sleep(0.001)
        seen = {version}
    ended.set()
    for thread in threads:
        thread.join()
    assert len(answers) > 20
    versions = {}
    for answer in answers:
        assert answer.status_code == 200
        found = answer.json()
        labels = [[one["label"] for one in row["labels"]] for row in found["results"]]
        name = "animals" if labels == wanted["animals"] else "beasts"
        assert labels == wanted[name]
        assert versions.setdefault(found["version"], name) == name
    assert len(versions) == 2
    text = here.get("/metrics").text
    assert 'locole_reloads_total{model="animals",result="reloaded"} 100.0' in text
    assert text.count('locole_model_loaded_seconds{model="animals"') == 1


def test_names_of_models():
    assert places_of(["/a/b", "x=c/d", "e/"]) == {"b": "/a/b", "x": "c/d", "e": "e/"}
    with pytest.raises(LocoleError, match="two models are called b"):
        places_of(["/a/b", "c/b"])
    with pytest.raises(LocoleError, match="no name for an address"):
        places_of(["/a/my model"])
    assert places_of(["m=/a/my model"]) == {"m": "/a/my model"}
