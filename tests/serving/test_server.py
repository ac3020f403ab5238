"""Real processes: a socket, signals, kill -9 and a start after it."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading

import httpx
import pytest
from served_process import Server

from locole.cli import main
from locole.serving.server import _listen


def test_a_server_answers_logs_and_ends_in_order(models, texts):
    server = Server(models / "animals", f"n.2={models / 'numbers'}")
    with httpx.Client(base_url=server.url) as client:
        assert client.get("/readyz").text == "ready\n"
        assert client.get("/healthz").text == "ok\n"
        listed = client.get("/api/models").json()["models"]
        assert [one["id"] for one in listed] == ["animals", "n.2"]
        # A request that is under way is answered before the end.
        found = []
        asked = {"texts": texts * 25, "explain": 2}  # so many that it takes a while

        def ask():
            found.append(client.post("/api/models/animals/predict-batch", json=asked, timeout=60))

        thread = threading.Thread(target=ask)
        thread.start()
        while "locole_waiting_rows 1000.0" not in client.get("/metrics").text:
            assert thread.is_alive()
        server.process.send_signal(signal.SIGTERM)
        thread.join()
    assert found[0].status_code == 200
    assert len(found[0].json()["results"]) == 1000
    assert server.end() == 0
    assert server.log[-1]["event"] == "ended"
    asked = [line["route"] for line in server.log if line["event"] == "request"]
    assert asked[:3] == ["/readyz", "/healthz", "/api/models"]
    assert asked[-1] == "/api/models/{model}/predict-batch"


def test_killed_and_started_again(models, texts):
    server = Server(models / "animals")
    asked = {"text": texts[0]}
    before = httpx.post(f"{server.url}/api/models/animals/predict", json=asked).json()
    assert server.end(kill=True) == -signal.SIGKILL
    server.start()
    assert httpx.post(f"{server.url}/api/models/animals/predict", json=asked).json() == before
    assert server.end() == 0


def test_names_that_are_not_ours_and_broken_requests(server):
    assert httpx.get(server.url, headers={"host": "evil.example"}).status_code == 421
    host, port = server.url.removeprefix("http://").split(":")
    for raw in (
        b"\0\0\0\0\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
    ):
        with socket.create_connection((host, int(port)), timeout=10) as connection:
            connection.sendall(raw)
            connection.shutdown(socket.SHUT_WR)
            assert b" 500 " not in connection.recv(4096)
    assert httpx.get(f"{server.url}/healthz").status_code == 200


def test_a_port_that_is_taken(run_here, models, server):
    port = server.url.rsplit(":", 1)[1]
    code, _, err = run_here("serve", models / "animals", "--port", port)
    assert code == 2
    assert "take another --host or --port" in err


@pytest.fixture
def run_here(capfd):
    def run(*words):
        capfd.readouterr()
        code = main([str(word) for word in words])
        return code, *capfd.readouterr()

    return run


def test_check_says_what_would_be_served(run_here, models):
    code, out, _ = run_here("serve", models / "animals", "--check", "--json")
    assert code == 0
    (model,) = json.loads(out)["models"]
    assert (model["id"], model["labels"]) == ("animals", 10)
    code, out, err = run_here("serve", models / "animals", "--check", "--host", "0.0.0.0")
    assert "animals" in out
    assert "no token is asked for" in err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nowhere"], "there is no model in nowhere"),
        (["--port", "99999", "--check"], "'--port'"),
        (["--timeout", "0"], "longer than 0 seconds"),
        (["--token-file", "token.txt"], "holds no token"),
        (["--max-waiting", "3"], "too few"),
    ],
)
def test_what_cannot_be_served(run_here, models, tmp_path, monkeypatch, words, says):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "token.txt").write_text("\n")
    code, _, err = run_here("serve", models / "animals", *words)
    assert code == 2
    assert says in err


def test_without_the_extra_the_error_names_it():
    code = (
        "import sys; sys.modules['fastapi'] = None; from locole.cli import main;"
        "sys.exit(main(['serve', 'model']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "pip install 'locole[serve]'" in done.stderr


def test_answers_do_not_wait_for_full_packets():
    """asyncio turns that off (TCP_NODELAY) for sockets that say that they are of TCP."""
    with _listen("127.0.0.1", 0) as listener:
        assert listener.proto == socket.IPPROTO_TCP
