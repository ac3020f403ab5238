"""The comparison with peers: time limits, several seeds, and a run from end to end."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def bench():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        yield importlib.import_module("bench_linear")


@pytest.fixture(scope="module")
def tables():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        yield importlib.import_module("tables")


@pytest.fixture(scope="module")
def data(bench, tmp_path_factory):
    """Four labels, each with words of its own."""
    y = np.arange(80) % 4
    X = sp.csr_matrix(np.eye(4, dtype=np.float32)[y] + 0.01)
    folder = tmp_path_factory.mktemp("bench") / "data"
    bench.convert(bench.Rows(X[:60], y[:60], X[60:], y[60:]), folder, limit=None)
    return folder


# --- limits ---


def test_every_system_has_the_default_limit(bench):
    assert bench.limits([]) == dict.fromkeys(bench.SYSTEMS, 1800)


def test_one_limit_for_all_and_one_for_a_system(bench):
    found = bench.limits(["150", "omikuji=420.5"])
    assert found.pop("omikuji") == 420.5
    assert set(found.values()) == {150}


def test_the_later_limit_holds(bench):
    assert bench.limits(["omikuji=420", "150"])["omikuji"] == 150


@pytest.mark.parametrize("word", ["", "x", "-5", "0", "omikuji=", "omikuji=nan", "inf", "=5s"])
def test_no_time(bench, word):
    with pytest.raises(ValueError, match="is not a time: write seconds or system=seconds"):
        bench.limits([word])


def test_no_system(bench):
    with pytest.raises(ValueError, match="unknown system 'parabel': take one of centroids"):
        bench.limits(["parabel=3"])


def test_a_run_that_takes_too_long_is_stopped_and_recorded(bench, data):
    found = bench.run(bench.SYSTEMS["centroids"], data, limit_s=0.01)
    assert found == {"status": "timeout: not done after 0.01 s", "limit_s": 0.01}


# --- seeds ---


def answers(bench, monkeypatch, *runs):
    """Let runs end like this, one after the other; return the seeds they were given."""
    seeds = []

    def run(system, data, *, limit_s, seed=0):
        seeds.append(seed)
        return runs[seed]

    monkeypatch.setattr(bench, "run", run)
    return seeds


DONE = {"status": "done", "accuracy_1": 0.5, "train_cpu_s": 2.0, "model_bytes": 100, "nnz": 7}


def test_mean_and_deviation_over_seeds(bench, monkeypatch, data):
    other = {**DONE, "accuracy_1": 0.7, "train_cpu_s": 3.0}
    seeds = answers(bench, monkeypatch, DONE, other)
    found = bench.run_seeds(bench.SYSTEMS["locole"], data, limit_s=9, seeds=2)
    assert seeds == [0, 1]
    assert found["seeds"] == 2
    assert (found["accuracy_1"], found["train_cpu_s"]) == pytest.approx((0.6, 2.5))
    assert found["std"]["accuracy_1"] == pytest.approx(np.std([0.5, 0.7], ddof=1))
    assert found["std"]["model_bytes"] == 0
    assert (found["nnz"], found["status"]) == (7, "done")


def test_one_seed_is_a_plain_record(bench, monkeypatch, data):
    answers(bench, monkeypatch, DONE)
    assert bench.run_seeds(bench.SYSTEMS["locole"], data, limit_s=9, seeds=1) == DONE


def test_a_system_without_seeds_runs_once(bench, monkeypatch, data):
    seeds = answers(bench, monkeypatch, DONE, DONE)
    assert bench.run_seeds(bench.SYSTEMS["omikuji"], data, limit_s=9, seeds=2) == DONE
    assert seeds == [0]


def test_a_seed_that_fails_is_told(bench, monkeypatch, data):
    failed = {"status": "failed: no memory"}
    seeds = answers(bench, monkeypatch, DONE, failed, DONE)
    assert bench.run_seeds(bench.SYSTEMS["locole"], data, limit_s=9, seeds=3) == failed
    assert seeds == [0, 1]


def test_our_own_systems_take_seeds(bench):
    seeded = {key for key, system in bench.SYSTEMS.items() if system.seeded}
    assert {key for key in bench.SYSTEMS if key.startswith("locole")} <= seeded
    assert not any(bench.SYSTEMS[key].package for key in seeded)


def test_tables_show_the_deviation(tables):
    figures = ("train_wall_s", "train_cpu_s", "predict_wall_s", "predict_cpu_s")
    run = {"set": "s", "system": "locole", "label": "ours", "status": "done"}
    run |= {"accuracy_1": 0.5, "accuracy_5": 0.75, **dict.fromkeys(figures, 2.0)}
    run |= {"memory_training_bytes": 3e6, "model_bytes": 1e6}
    std = {"accuracy_1": 0.012, "accuracy_5": 0.0, **dict.fromkeys(figures, 0.25)}
    plain = tables.linear({"runs": [run]})
    assert "| ours | 50.0% | 75.0% | 2.00 |" in plain
    several = tables.linear({"runs": [{**run, "seeds": 3, "std": std}]})
    assert "| ours | 50.0 ± 1.2% | 75.0 ± 0.0% | 2.00 ± 0.25 |" in several
    assert "50.0 ± 1.2% (2.0\N{NO-BREAK SPACE}s)" in tables.parts(
        {"runs": [{**run, "seeds": 3, "std": std}]}
    )


# --- from end to end ---


def test_output_code_from_end_to_end(bench, data):
    """With four labels some of the bits are the same for all of them."""
    system = bench.System("output code", "run_output_code.py", "40")
    found = bench.run(system, data, limit_s=300, seed=1)
    assert found["status"] == "done"
    assert found["limit_s"] == 300
    assert found["accuracy_1"] == found["accuracy_5"] == 1
    assert 40 * 4 * 8 < found["model_bytes"] <= 40 * 4 * 8 + 40 * (4 + 1) * 8
    assert found["package"].startswith("scikit-learn ")
