"""Networks on real clusters: the bits of one machine, whatever is killed, and nothing left behind."""

from __future__ import annotations

import numpy as np
import pytest
from stage import play

from locole.exceptions import LocoleError
from locole.regressors import MLPRegressor

SCENES = "network_scenes.py"


@pytest.fixture(scope="module")
def report() -> dict:
    """What happened on three nodes, of which one was killed."""
    return play(SCENES, "three_nodes")


def test_three_nodes_learn_the_network_of_one_machine(report):
    assert report["same"] == {"softmax": True, "vectors": True}


def test_what_one_cannot_do_is_said_as_on_one_machine(report):
    assert "the loss overflows in the first epoch" in report["overflow"]


def test_an_interruption_ends_all_workers(report):
    assert report["interrupted"]


def test_a_worker_and_a_node_that_die_change_nothing_but_the_time(report):
    assert report["deaths"]
    assert any("taken up again" in line and "the loss of" in line for line in report["said"])


def test_what_is_for_one_machine_says_so_before_anything_starts():
    network = MLPRegressor(hidden=8, second_moment="row", engine="ray")
    with pytest.raises(LocoleError, match='second_moment="row" is for one machine'):
        network.fit(np.eye(4), np.eye(4))
    network = MLPRegressor(hidden=8, engine=Own())
    with pytest.raises(LocoleError, match="networks cannot be learnt by"):
        network.fit(np.eye(4), np.eye(4))


class Own:
    """An engine that can only map."""

    shares_memory = False

    def running(self, n_jobs=None):
        raise AssertionError

    def map(self, function, tasks, **options):
        raise AssertionError


def test_a_checkpoint_outlives_the_head():
    report = play(SCENES, "lost_head")
    assert report["error"].startswith(("the head of the Ray cluster", "Ray on this machine"))
    # It had not come to its end, and does so on one machine, with the same weights.
    assert 0 < report["epochs_before"] < report["epochs"]
    assert report["same"]
