"""The comparison with peers: time limits, several seeds, and a run from end to end."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from locole import LocoleClassifier

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


# --- search ---


@pytest.fixture(scope="module")
def search(bench):
    return bench.search


def test_the_rows_of_a_search_are_the_training_rows_once_each(bench, search):
    X = sp.csr_matrix(np.arange(50.0, dtype=np.float32)[:, None] + 1)
    texts = [str(i) for i in range(50)]
    rows = bench.Rows(X, np.arange(50), X[:3], np.arange(3), texts, texts[:3])
    found, again = search.divided(rows), search.divided(rows)
    assert (found.X_train.shape, found.X_test.shape) == ((40, 1), (10, 1))
    assert sorted([*found.y_train, *found.y_test]) == list(range(50))
    assert found.X_test.data.tolist() == [i + 1 for i in found.y_test]
    assert found.text_train == [str(i) for i in found.y_train]
    assert again.y_test.tolist() == found.y_test.tolist()


def scripted(bench, search, monkeypatch, accuracies, *, seconds=1.0, settings=3, limit_s=100):
    """Search with runs that end like this, each after so many seconds; return it and what was run."""
    clock = [0.0]
    monkeypatch.setattr(search.time, "perf_counter", lambda: clock[0])
    calls = []

    def run(system, folder, *, limit_s):
        calls.append((system.options, folder, limit_s))
        clock[0] += seconds
        accuracy = accuracies[len(calls) - 1]
        if accuracy is None:
            return {"status": "timeout: not done"}
        return {**DONE, "accuracy_1": accuracy, "predict_cpu_s": 0.5}

    tried = [{"C": i} for i in range(1, settings + 1)]
    found = search.searched(bench.SYSTEMS["omikuji"], tried, run, ("some", "all"), limit_s=limit_s)
    return found, calls


def test_the_best_setting_is_fitted_to_all_rows(bench, search, monkeypatch):
    found, calls = scripted(bench, search, monkeypatch, [0.5, None, 0.7, 0.7, 0.9])
    assert [options for options, *_ in calls] == ["{}", *(f'{{"C": {i}}}' for i in (1, 2, 3, 2))]
    assert [folder for _, folder, _ in calls] == ["some"] * 4 + ["all"]
    assert [left for *_, left in calls] == [100, 99, 98, 97, 100]
    assert (found["options"], found["accuracy_1"]) == ({"C": 2}, 0.9)
    assert found["search"]["cpu_s"] == 3 * 2.5 + 1
    assert [one["status"] for one in found["search"]["tried"]] == [
        "done", "timeout: not done", "done", "done",
    ]  # fmt: skip


def test_a_search_ends_when_its_time_is_up(bench, search, monkeypatch):
    found, calls = scripted(bench, search, monkeypatch, [0.5, 0.4, 0.6], seconds=60)
    assert len(calls) == 3
    assert found["options"] == {}
    statuses = [one["status"] for one in found["search"]["tried"]]
    assert statuses == ["done", "done", *["left out: no time"] * 2]


def test_a_search_without_a_result_says_why(bench, search, monkeypatch):
    found, _ = scripted(bench, search, monkeypatch, [None], seconds=200, settings=1)
    assert found["status"] == "timeout: not done"
    assert len(found["search"]["tried"]) == 2


def test_every_peer_is_searched_as_we_are(bench, search):
    assert set(search.SETTINGS) <= set(bench.SYSTEMS)
    peers = {key for key, system in bench.SYSTEMS.items() if system.package}
    assert {*peers, "locole", "output_code"} == set(search.SETTINGS)
    assert all(3 <= len(settings) <= 5 for settings in search.SETTINGS.values())


def test_our_settings_are_parameters(search):
    for options in search.SETTINGS["locole"]:
        LocoleClassifier(**options).check_parameters()


def test_the_table_of_a_search(tables):
    tried = [{"status": "done"}, {"status": "left out: no time"}]
    run = {"set": "s", "label": "x", "status": "done", "options": {"C": 2}, "model_bytes": 1e6}
    run |= {"accuracy_1": 0.5, "accuracy_5": 0.75, "train_cpu_s": 2.0}
    run["search"] = {"tried": tried, "cpu_s": 7.5}
    shown = tables.searched({"runs": [run, {**run, "status": "failed: why"}]})
    assert "| x | `C=2` | 1 of 2 | 7.5 | 50.0% | 75.0% | 2.0 | 1.0 |" in shown
    assert "| x: failed: why |" in shown


# --- from end to end ---


def test_options_reach_the_system(bench, search, data):
    system = search.with_options(bench.SYSTEMS["output_code"], {"alpha": 1e9})
    assert bench.run(system, data, limit_s=300)["accuracy_1"] < 1


def test_output_code_from_end_to_end(bench, data):
    """With four labels some of the bits are the same for all of them."""
    system = bench.System("output code", "run_output_code.py", "40")
    found = bench.run(system, data, limit_s=300, seed=1)
    assert found["status"] == "done"
    assert found["limit_s"] == 300
    assert found["accuracy_1"] == found["accuracy_5"] == 1
    assert 40 * 4 * 8 < found["model_bytes"] <= 40 * 4 * 8 + 40 * (4 + 1) * 8
    assert found["package"].startswith("scikit-learn ")
