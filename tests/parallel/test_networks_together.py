"""Networks on real clusters: the bits of one machine, whatever is killed, and nothing left behind."""

from __future__ import annotations

import numpy as np
import pytest
from stage import play

from locole.exceptions import LocoleError
from locole.parallel import Engine, Threads
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


class OnlyMaps(Engine):
    """An engine that says no more than it must."""

    def map(self, function, tasks, **options):
        raise AssertionError


@pytest.mark.parametrize("engine", [OnlyMaps(), Threads()])
def test_without_other_workers_this_process_is_the_group(engine, monkeypatch, capsys):
    monkeypatch.setattr("locole.parallel.progress._PATIENCE_S", -1.0)
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(40, 6)), rng.normal(size=(40, 3))
    settings = {"hidden": 8, "epochs": 3, "batch_size": 20}
    here = MLPRegressor(**settings).fit(X, Y)
    assert capsys.readouterr().err == ""
    there = MLPRegressor(**settings, engine=engine, n_jobs=2, verbose=1).fit(X, Y)
    np.testing.assert_array_equal(here.predict(X), there.predict(X))
    assert "learning: 6/6 steps (100%)" in capsys.readouterr().err


def test_a_checkpoint_outlives_the_head():
    report = play(SCENES, "lost_head")
    assert report["error"].startswith(("the head of the Ray cluster", "Ray on this machine"))
    # It had not come to its end, and does so on one machine, with the same weights.
    assert 0 < report["epochs_before"] < report["epochs"]
    assert report["same"]
