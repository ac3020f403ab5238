"""The engine on real clusters: the same bits as threads, whatever is killed, and nothing left behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

SCENES = Path(__file__).with_name("cluster_scenes.py")


def processes(token: str) -> list[str]:
    """Command lines of all processes whose environment has the token."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if token.encode() in (folder / "environ").read_bytes():
                found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()[:80])
        except OSError:
            continue
    return found


def play(scene: str) -> dict:
    """Report of a scene, after which none of its processes is left."""
    token = f"scene-{uuid.uuid4()}"
    environment = {
        **os.environ,
        "LOCOLE_SCENE": token,
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_AUTH_MODE": "disabled",
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run(
        [sys.executable, str(SCENES), scene],
        env=environment, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    # Killed processes may take a moment to go.
    deadline = time.monotonic() + 10
    while processes(token) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert processes(token) == []
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def report() -> dict:
    """What happened on three nodes, of which one was killed."""
    return play("three_nodes")


def test_three_nodes_give_the_bits_of_one_machine(report):
    assert report["nodes"] == 3
    assert sorted(report["order"]) == list(range(12))
    assert report["order"] != list(range(12))
    assert report["squares"]
    assert report["two_at_a_time"]
    assert report["dense"]
    assert report["sparse"]
    assert report["through_files"]
    assert report["files"] > 3
    assert report["ppd_sparse"]
    # An error of the function is the error, as if it had run here.
    assert report["refused"] == "task 7 is not to be done: leave it out."
    # Who stops reading ends the tasks, also in a connection that stays.
    assert report["cancelled"]
    # A killed worker changes nothing but the time, and is reported.
    assert report["worker"]
    assert any("repeated because of lost workers" in line for line in report["worker_said"])
    # Nor does a killed node.
    assert report["node"]
    assert any("repeated because of the loss of" in line for line in report["node_said"])
    # The cluster was joined: it is left, and stays.
    assert report["left"]
    assert report["stays"] == 2


def test_a_lost_head_is_an_error_and_the_old_model_stays():
    report = play("lost_head")
    assert "the head of the Ray cluster" in report["error"]
    assert "start it again and repeat the call" in report["error"]
    assert report["seconds"] < 50  # after 60, Ray would end the process
    assert report["same_model"]


def test_an_interruption_leaves_nothing_running_and_commands_work_afterwards():
    report = play("interrupted")
    assert report["interrupted"]
    assert report["left"]
    assert report["same_afterwards"]
    # The same engine at the command line: the same answers, to the byte.
    files = [f"part-{i}.parquet" for i in range(3)]
    assert report["commands"] == {"codes": [0] * 5, "files": files, "same": [True] * 3}
