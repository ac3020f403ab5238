"""The engine on real clusters: the same bits as threads, whatever is killed, and nothing left behind."""

from __future__ import annotations

import pytest
from stage import play

SCENES = "cluster_scenes.py"


@pytest.fixture(scope="module")
def report() -> dict:
    """What happened on three nodes, of which one was killed."""
    return play(SCENES, "three_nodes")


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
    assert report["several_labels"]
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
    report = play(SCENES, "lost_head")
    # The head of the cluster is also the node of this machine: either may be missed first.
    assert report["error"].startswith(("the head of the Ray cluster", "Ray on this machine"))
    assert "start it again and repeat the call" in report["error"]
    assert report["seconds"] < 50  # after 60, Ray would end the process
    assert report["same_model"]
    # Blocks that had come back are kept, and not solved again by the next fit.
    assert 1 <= report["kept"] <= 5
    assert report["same_weights"]


def test_an_interruption_leaves_nothing_running_and_commands_work_afterwards():
    report = play(SCENES, "interrupted")
    assert report["interrupted"]
    assert report["left"]
    assert report["same_afterwards"]
    # The same engine at the command line: the same answers, to the byte.
    files = [f"part-{i}.parquet" for i in range(3)]
    runs = [[0, "done"], [1, "done"]]
    assert report["commands"] == {
        "codes": [0] * 6,
        "runs": runs,
        "files": files,
        "same": [True] * 3,
    }
