"""Scenes of networks that learn on real Ray clusters; see `cluster_scenes`."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from cluster_scenes import cluster, comes_true, play_one, problem, processes, said, when

import locole.parallel.cluster as watching
from locole import LocoleClassifier
from locole.exceptions import LocoleError
from locole.io import read_model
from locole.parallel import RayEngine
from locole.regressors import MLPRegressor

#: Everything that a network can have, in two fits; the second by two workers.
NETWORKS = {
    "softmax": {
        "hidden": (96, 33), "epochs": 2, "batch_size": 150, "loss": "softmax", "dropout": 0.2,
        "feature_dropout": 0.2, "batch_norm": True, "validation": 0.1, "first_layer": "float16",
        "skip": True, "start": "linear", "n_jobs": -1,
    },
    "vectors": {
        "hidden": 80, "epochs": 2, "batch_size": 200, "start": "random", "embedding_rate": 0.5,
        "n_jobs": 2,
    },
}  # fmt: skip
#: One that learns for some seconds, so that something can happen to it.
LONG = {"hidden": 32, "epochs": 600, "batch_size": 100, "validation": 0.1, "patience": 600}


def learnt(engine, settings, *, scale=1.0, **more):
    X, y = problem()
    X *= np.float32(scale)
    network = MLPRegressor(**settings, **more)
    return LocoleClassifier("rademacher", dim=50, regressor=network, engine=engine).fit(X, y)


def is_same(one, other) -> bool:
    """Whether two networks have the same bits and the same history of losses."""
    a, b = one.regressor_, other.regressor_
    losses = [[(h["loss"], h.get("validation_loss")) for h in r.history_] for r in (a, b)]
    layers = all(np.array_equal(array, b.layers_[name]) for name, array in a.layers_.items())
    return layers and np.array_equal(a.first_, b.first_) and losses[0] == losses[1]


def busy() -> list[int]:
    return processes(b"ray::_Worker.run")


def when_saved(folder: str, action) -> threading.Thread:
    """Act as soon as there is a checkpoint and work goes on."""
    return when(lambda: Path(folder, "manifest.json").exists() and busy(), action)


def three_nodes() -> dict[str, object]:
    report: dict[str, object] = {}
    with cluster(3) as (made, nodes):
        engine = RayEngine(made.address)
        with engine.running():
            report["same"] = {
                name: is_same(learnt("threads", settings), learnt(engine, settings))
                for name, settings in NETWORKS.items()
            }
            try:
                huge = {"hidden": 16, "normalise": False, "start": "random", "learning_rate": 1e5}
                learnt(engine, huge, scale=1e14)
            except LocoleError as error:
                report["overflow"] = str(error)
            when(lambda: len(busy()) == 3, interrupt)
            try:
                learnt(engine, {**LONG, "epochs": 10_000})
            except KeyboardInterrupt:
                report["interrupted"] = comes_true(lambda: not busy())
            report["deaths"], report["said"] = survives(engine, made, nodes[0])
    return report


def survives(engine, made, node) -> tuple[bool, list[str]]:
    """Whether a fit in which a worker dies, then a node, ends with the network of one machine."""
    killed: list[int] = []

    def kill_worker():
        killed.extend(busy())
        when(lambda: busy() and not set(busy()) & set(killed), kill_node)
        os.kill(killed[-1], signal.SIGKILL)

    def kill_node():
        made.remove_node(node, allow_graceful=False)
        killed.append(0)

    with tempfile.TemporaryDirectory() as folder:
        when_saved(folder, kill_worker)
        saved = {"checkpoint": folder, "checkpoint_every_s": 0.2}
        other, lines = said(lambda: learnt(engine, LONG, **saved))
    return killed[-1] == 0 and is_same(learnt("threads", LONG), other), lines


def interrupt() -> None:
    time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGINT)


def lost_head() -> dict[str, object]:
    """The head dies; learning resumes from the last checkpoint, on one machine."""
    report: dict[str, object] = {}
    watching._PATIENCE_S = 4.0
    one = learnt("threads", LONG)
    with tempfile.TemporaryDirectory() as folder:
        saved = {"checkpoint": folder, "checkpoint_every_s": 0.2}
        with cluster(2) as (made, _):

            def kill_head():
                for started in made.head_node.all_processes.values():
                    for process in started:
                        process.process.kill()

            killer = when_saved(folder, kill_head)
            try:
                learnt(RayEngine(made.address), LONG, **saved)
            except LocoleError as error:
                report["error"] = str(error)
            killer.join()
        report["epochs_before"] = len(read_model(folder).state["history"])
        again = learnt("threads", LONG, **saved)
        report["epochs"] = len(again.regressor_.history_)
        report["same"] = is_same(one, again)
    return report


if __name__ == "__main__":
    play_one({"three_nodes": three_nodes, "lost_head": lost_head})
