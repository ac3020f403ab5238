"""Who may ask, how much and how long; and what every answer says to browsers."""

from __future__ import annotations

import json
import re
import threading
import time

import pytest

from locole.serving import answers
from locole.serving.settings import Settings

PREDICT = "/api/models/animals/predict"


def test_a_token_is_asked_for_everywhere_but_at_the_door(client):
    here = client(token="s3cret")
    for path in ("/api/models", "/v1/projects", "/metrics", "/openapi.json"):
        refused = here.get(path)
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"] == "Bearer"
        assert here.get(path, headers={"Authorization": "Bearer wrong"}).status_code == 401
        assert here.get(path, headers={"Authorization": "s3cret"}).status_code == 401
        assert here.get(path, headers={"Authorization": "Bearer s3cret"}).status_code == 200
    for path in ("/healthz", "/readyz", "/", "/docs", "/page/main.js"):
        assert here.get(path).status_code == 200
    assert here.get("/page/../api/models").status_code == 401


def test_every_answer_has_the_headers(client):
    here = client()
    for path in ("/", "/api/models", "/nowhere", "/healthz", "/page/style.css"):
        headers = here.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "access-control-allow-origin" not in headers
        assert headers["cache-control"] == (
            "no-cache" if path in ("/", "/page/style.css") else "no-store"
        )
    asked = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
    assert "access-control-allow-origin" not in here.options(PREDICT, headers=asked).headers


def test_names_of_the_server(client):
    here = client(hosts=Settings.hosts_for("127.0.0.1", ()))
    for host, status in {
        "localhost": 200,
        "127.0.0.1:80": 200,
        "evil.example": 421,
        "": 421,
    }.items():
        assert here.get("/api/models", headers={"host": host}).status_code == status


def test_paths_are_no_file_names(client):
    here = client()
    for path in ("/page/../../pyproject.toml", "/page/%2e%2e/app.py", "/page//etc/passwd", "/page/",
                 "/api/models/..%2f..", "/api/models/%00", "/page/index.html"):  # fmt: skip
        answer = here.get(path)
        assert answer.status_code == 404
        assert "root:" not in answer.text


def test_what_is_sent_never_comes_back_as_html(client):
    here = client()
    script = "<script>alert(1)</script>"
    for answer in (
        here.get(f"/{script}"),
        here.get(f"/api/models/{script}"),
        here.get("/api/models/animals/labels", params={"limit": script}),
        here.post(PREDICT, json={"text": "x", script: 1}),
    ):
        assert answer.headers["content-type"].startswith("application/problem+json")
        assert answer.status_code in (400, 404)


def slowly(monkeypatch):
    """Let answers wait until they are told to go on."""
    go_on = threading.Event()
    answer = answers.answer

    def waiting(question, rows):
        assert go_on.wait(20)
        return answer(question, rows)

    monkeypatch.setattr("locole.serving.app.answer", waiting)
    return go_on


def test_too_many_that_wait_are_refused(client, monkeypatch, texts):
    go_on = slowly(monkeypatch)
    here = client(max_waiting=64)
    found = []
    asked = {"texts": texts}

    def ask():
        found.append(here.post("/api/models/animals/predict-batch", json=asked))

    thread = threading.Thread(target=ask)
    thread.start()
    while "locole_waiting_rows 40.0" not in here.get("/metrics").text:
        time.sleep(0.01)
    refused = here.post("/api/models/animals/predict-batch", json=asked)
    assert refused.status_code == 503
    assert refused.headers["retry-after"] == "1"
    go_on.set()
    thread.join()
    assert found[0].status_code == 200
    assert here.post("/api/models/animals/predict-batch", json=asked).status_code == 200


def test_who_waits_too_long_is_told(client, monkeypatch):
    go_on = slowly(monkeypatch)
    here = client(timeout_s=0.2)
    refused = here.post(PREDICT, json={"text": "x"})
    assert refused.status_code == 503
    assert refused.headers["retry-after"] == "1"
    assert 'locole_rejected_total{reason="timeout"} 1.0' in here.get("/metrics").text
    go_on.set()
    assert here.post(PREDICT, json={"text": "x"}).status_code == 200


def test_a_bug_is_a_problem_and_logged(client, monkeypatch, capsys):
    def broken(question, rows):
        raise ZeroDivisionError("secret")

    monkeypatch.setattr("locole.serving.app.answer", broken)
    answer = client().post(PREDICT, json={"text": "x"})
    assert answer.status_code == 500
    assert answer.headers["content-type"] == "application/problem+json"
    assert "secret" not in answer.text
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert any("ZeroDivisionError" in line.get("error", "") for line in lines)


def test_figures(client, texts):
    here = client("animals", "numbers")
    here.post("/api/models/animals/predict-batch", json={"texts": texts})
    here.post(PREDICT, json={})
    version = here.get("/api/models/animals").json()["version"]
    text = here.get("/metrics").text
    route = "/api/models/{model}/predict"
    assert f'locole_requests_total{{model="animals",route="{route}",status="400"}} 1.0' in text
    assert 'locole_rows_total{model="animals"} 40.0' in text
    assert f'locole_model_loaded_seconds{{model="animals",version="{version}"}}' in text
    assert f'locole_request_seconds_count{{route="{route}"}} 1.0' in text
    assert "locole_batch_rows_sum 40.0" in text
    # Whatever is asked for, there is one line for it.
    for i in range(5):
        here.get(f"/nowhere/{i}")
        here.get(f"/api/models/m{i}")
    assert len(re.findall("nowhere|m3", here.get("/metrics").text)) == 0


@pytest.mark.parametrize("log_texts", [False, True])
def test_the_log_has_no_texts_unless_asked_for(client, capsys, log_texts):
    here = client(log_texts=log_texts)
    here.post(PREDICT, json={"text": "cat1 secretword"})
    here.post("/v1/projects/animals/suggest", data={"text": "cat1 secretword"})
    here.get("/api/models/animals/labels", params={"q": "secretword"})
    log = capsys.readouterr().err
    lines = [json.loads(line) for line in log.splitlines()]
    asked = [line for line in lines if line["event"] == "request"]
    assert [line["status"] for line in asked] == [200] * 3
    assert asked[0]["model"] == "animals"
    assert asked[0]["rows"] == 1
    assert log.count("secretword") == (2 if log_texts else 0)
