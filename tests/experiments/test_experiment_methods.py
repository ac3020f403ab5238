"""Methods, and one real run from its request to its record."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import f1_score, precision_score, recall_score
from stubs import Watched

import locole.baselines
from locole.exceptions import LocoleError
from locole.experiments import Run, read, run_spec
from locole.experiments.board import Board
from locole.experiments.data import load_set
from locole.experiments.measure import measure, scores
from locole.experiments.methods import make_estimator
from locole.experiments.spec import load_spec
from locole.experiments.tsne import draw
from locole.methods import METHODS
from locole.theory import coherence

SMALL = {"n_samples": 300, "n_features": 120, "n_classes": 12, "noise": 0.3}


@pytest.fixture(scope="module")
def rows():
    return load_set("topics", SMALL, None)


def make(method, threads=2, **fields):
    if METHODS[method].embedded:
        fields = {"embedding": "rademacher", "dim": 32, **fields}
    return make_estimator(Run("mine", "topics", method, seed=5, **fields), threads=threads)


def test_every_baseline_and_regressor_has_a_name():
    made = {method.made for method in METHODS.values() if method.made}
    baselines = set(locole.baselines.__all__) - {"Baseline"}
    regressors = {name for name in locole.regressors.__all__ if name.endswith("Regressor")}
    assert made == baselines | regressors - {"TargetRegressor"}


@pytest.mark.parametrize("method", METHODS)
def test_seeds_and_threads_are_passed_on(method):
    parameters = make(method).get_params()
    assert parameters["n_jobs"] == 2
    assert parameters.get("random_state", 5) == 5
    assert METHODS[method].seeded == ("random_state" in parameters)
    if METHODS[method].embedded:
        assert parameters["regressor__random_state"] == 5


def test_settings_reach_the_part_that_has_them():
    assert make("parabel", settings='{"n_trees":1}').n_trees == 1
    assert make("elastic_net", settings='{"l2":0.5}').regressor.l2 == 0.5
    for method, known in (("parabel", "n_trees"), ("elastic_net", "l2")):
        with pytest.raises(LocoleError, match=f"has no setting 'depth'; it has .*{known}"):
            make(method, settings='{"depth":1}')
    with pytest.raises(LocoleError, match="has no setting 'random_state'"):
        make("wltls", settings='{"random_state":1}')
    with pytest.raises(LocoleError, match="auto has no settings but profiles"):
        make("auto", settings='{"l2":1}')


def test_an_engine_that_a_method_cannot_use_is_an_error():
    with pytest.raises(LocoleError, match="cannot be fitted on ray"):
        make("parabel", engine="ray")
    with pytest.raises(LocoleError, match="cannot be fitted on ray"):
        make("softmax", engine="ray")


@pytest.mark.parametrize("method", ["elastic_net", "mlp", "ppd_sparse"])
def test_an_engine_is_passed_on_where_there_is_one(method):
    assert make(method, engine="ray").engine == "ray"


def test_figures_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    y, best = rng.integers(6, size=200), rng.integers(6, size=(200, 5))
    best[:120, 0] = y[:120]
    found = scores(y, best)
    first = best[:, 0]
    for average in ("macro", "micro"):
        wanted = [f(y, first, average=average) for f in (precision_score, recall_score)]
        assert [found[f"{average}_{name}"] for name in ("precision", "recall")] == pytest.approx(
            wanted, abs=1e-6
        )
    assert found["macro_f1"] == pytest.approx(f1_score(y, first, average="macro"), abs=1e-6)
    assert found["accuracy"] == pytest.approx((y == first).mean(), abs=1e-6)
    assert found["accuracy_at_5"] == pytest.approx((best == y[:, None]).any(1).mean(), abs=1e-6)


def test_a_run_measures_what_its_record_says(rows, tmp_path):
    run = Run("mine", "topics", "elastic_net", embedding="gaussian", dim=32)
    found = measure(run, rows, threads=1, work=str(tmp_path))
    model = make_estimator(run, threads=1).fit(rows.X_train, rows.y_train)
    assert found["status"] == "done"
    assert found["accuracy"] == pytest.approx(model.score(rows.X_test, rows.y_test), abs=1e-6)
    assert found["coherence"] == pytest.approx(coherence(model.embedding_).coherence, abs=1e-6)
    assert (found["outputs"], found["rows"], found["labels"]) == (32, 300, 12)
    assert found["peak_memory_mb"] > 10
    model.save(tmp_path / "model")
    size = sum(file.stat().st_size for file in (tmp_path / "model").iterdir())
    assert found["model_mb"] == pytest.approx(size / 1e6, abs=0.05)
    again = measure(run, rows, threads=2, coherence=0.25)
    timed = {key for key in found if key.endswith(("_s", "_memory_mb"))}
    assert {k: v for k, v in again.items() if k not in timed} == {
        **{k: v for k, v in found.items() if k not in timed}, "coherence": 0.25,
    }  # fmt: skip


def test_pictures_are_the_same_every_time(tmp_path):
    run = Run("tsne", "", "tsne", embedding="nelson", dim=11, data_options='{"vectors":60}')
    found = draw(run, tmp_path)
    content = (tmp_path / "tsne_nelson.csv").read_text()
    lines = content.splitlines()
    assert lines[0] == "x,y,label"
    assert [int(line.split(",")[2]) for line in lines[1:]] == list(range(60))
    assert found["points"] == "tsne_nelson.csv"
    assert found["outputs"] == 22
    draw(run, tmp_path)
    assert (tmp_path / "tsne_nelson.csv").read_text() == content


SPEC = """
name = "mine"
data = ["topics"]
[data_options]
topics = { n_samples = 300, n_features = 120, n_classes = 12, noise = 0.3 }
[[methods]]
method = "centroids"
[[methods]]
method = "elastic_net"
embeddings = { gold = [32] }
"""
BENCH = "import sys; from locole.cli import main; sys.exit(main(sys.argv[1:]))"


def test_real_runs_killed_and_resumed(tmp_path):
    """The bench is killed after its first record; its run ends by itself, and the next goes on."""
    path = tmp_path / "mine.toml"
    path.write_text(SPEC)
    out = tmp_path / "killed"
    words = ["bench", str(path), "--out", str(out), "-j", "1"]
    bench = subprocess.Popen([sys.executable, "-c", BENCH, *words], stderr=subprocess.DEVNULL)
    file, listed = out / "mine.jsonl", Path(f"/proc/{bench.pid}/task/{bench.pid}/children")
    wait_for(lambda: file.exists() and file.stat().st_size)
    wait_for(lambda: listed.read_text().split())
    (child,) = map(int, listed.read_text().split())
    bench.send_signal(signal.SIGKILL)
    bench.wait()
    wait_for(lambda: not running(child))
    assert len(read(out)) == 1
    watched = Watched()
    records = run_spec(load_spec(str(path)), out, watcher=watched, threads=1)
    assert len(watched.began) == 1
    assert [record["status"] for record in records] == ["done", "done"]
    for record in records:
        run = Run(**{k: record[k] for k in Run.__dataclass_fields__ if k in record})
        expected = measure(run, load_set("topics", SMALL, None), threads=1)
        for key in ("accuracy", "accuracy_at_5", "macro_f1", "coherence", "outputs", "model_mb"):
            assert record[key] == expected[key], key
    assert [item.name for item in out.iterdir()] == ["mine.jsonl"]


def wait_for(condition):
    for _ in range(1200):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("nothing happened for a minute")


def running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()


def test_the_board_tells_each_run(capsys):
    runs = [Run("mine", "topics", "mach", seed=seed) for seed in (0, 1)]
    with Board("mine", 2) as board:
        board.note("a note")
        board.planned(runs)
        for run, status in zip(runs, ("done", "failed: no rows [bold]"), strict=True):
            board.started(run)
            figures = {"accuracy": 0.5, "fit_wall_s": 1.0, "peak_memory_mb": 10.0}
            board.ended(run, {"status": status, **(figures if status == "done" else {})})
    said = capsys.readouterr().err.splitlines()
    assert said == [
        "a note",
        "[1/2] topics mach seed 0: accuracy 50.00 %, fit 1.0 s, 10 MB",
        "[2/2] topics mach seed 1: failed: no rows [bold]",
    ]


def test_the_table_on_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "150")
    runs = [Run("mine", "topics", "mach", seed=seed) for seed in range(3)]
    with Board("mine: a title", 3) as board:
        for run in runs[:2]:
            board.started(run)
            board.ended(run, json.loads('{"status": "timeout"}'))
        board.note("a [note]")
        board.started(runs[2])
        board._live.refresh()
    shown = capsys.readouterr().err
    for words in ("mine: a title", "timeout", "running …", "2 of 3", "2 timeout", "a [note]"):
        assert words in shown
