"""What is run, what is recorded, and what is left."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from stubs import SMALL, method

from locole.exceptions import LocoleError
from locole.experiments import read
from locole.experiments.children import Children
from locole.experiments.records import KEYS, Store
from locole.experiments.runner import Bench
from locole.experiments.spec import parse_spec
from locole.parallel import Threads

STORM = Path(__file__).with_name("kill_storm.py")
# What differs from one time to the next.
VOLATILE = {
    "started",
    "fit_wall_s",
    "fit_cpu_s",
    "predict_wall_s",
    "predict_cpu_s",
    "peak_memory_mb",
}


def stable(records):
    return [{k: v for k, v in record.items() if k not in VOLATILE} for record in records]


def test_each_run_leaves_one_record_with_all_keys(bench, tmp_path):
    records, watched = bench({"methods": [method()], "seeds": [3, 4]})
    assert [record["seed"] for record in records] == [3, 4]
    assert all(set(record) == set(KEYS) for record in records)
    assert [r["status"] for r in records] == ["done", "done"]
    first = records[0]
    assert (first["experiment"], first["data"], first["method"]) == ("mine", "topics", "wltls")
    assert first["engine"] == "threads"
    assert first["threads"] == len(os.sched_getaffinity(0))
    assert all(first[key] for key in ("locole", "python", "numpy", "scipy", "numba", "machine"))
    assert read(tmp_path / "out") == records
    assert len(watched.began) == len(watched.records) == 2


def test_a_second_call_runs_nothing(bench):
    spec = {"methods": [method(), method("fails"), method("killed")], "seeds": [0, 1]}
    records, _ = bench(spec)
    again, watched = bench(spec)
    assert again == records
    assert watched.began == []


def test_what_was_added_to_a_spec_is_run(bench):
    bench({"methods": [method()], "seeds": [0]})
    records, watched = bench({"methods": [method()], "seeds": [0, 7]})
    assert [run.seed for run in watched.began] == [7]
    assert len(records) == 2


@pytest.mark.parametrize(
    ("act", "status"),
    [
        ("fails", "failed: there are no rows"),
        ("killed", "failed: the process was killed, most likely because memory ran out"),
        ("crash", "failed: the process ended by SIGSEGV"),
        ("exit", "failed: the process ended with code 1: the last line says why"),
        ("garbage", "failed: the process ended with code 0: nothing was said"),
    ],
)
def test_a_run_that_fails_says_why_and_stops_nobody(bench, act, status):
    records, _ = bench({"methods": [method(act), method()]})
    assert [record["status"] for record in records] == [status, "done"]
    assert records[0]["accuracy"] is None


def test_a_run_out_of_time_is_ended_and_other_seeds_are_not_tried(bench, tmp_path):
    entry = method("hang", time_limit_s=0.3)
    records, _ = bench({"methods": [entry], "seeds": [0, 1]})
    assert records[0]["status"] == "timeout"
    assert records[1]["status"].startswith("failed: another seed ran out of time")
    assert not any(map(alive, pids(tmp_path / "out")))


def test_retry_repeats_what_failed_and_keeps_what_is_done(bench):
    bench({"methods": [method("fails"), method()]})
    records, watched = bench({"methods": [method("fails"), method()]}, retry=True)
    assert [run.settings for run in watched.began] == ['{"act":"fails"}']
    assert len(records) == 2


def test_data_that_is_missing_is_a_failure_until_it_is_there(bench, tmp_path):
    spec = {"methods": [method()], "data": ["mine"]}
    folder = tmp_path / "data"
    records, _ = bench(spec, data=folder)
    assert records[0]["status"].startswith("failed: data not found")
    bench(spec, data=folder)
    assert len((tmp_path / "out" / "mine.jsonl").read_text().splitlines()) == 1  # said once
    (folder / "mine").mkdir(parents=True)
    for part in ("train", "test"):
        (folder / "mine" / f"{part}.svm").write_text("1 1:1\n2 2:1\n")
    records, _ = bench(spec, data=folder)
    assert [record["status"] for record in records] == ["done"]


def test_a_file_that_cannot_be_read_is_a_failure(bench, tmp_path):
    folder = tmp_path / "data" / "mine"
    folder.mkdir(parents=True)
    for part in ("train", "test"):
        (folder / f"{part}.svm").write_text("1 1:one\n")
    spec = {"methods": [method()], "data": ["mine"], "seeds": [0, 1]}
    records, _ = bench(spec, data=tmp_path / "data")
    for record in records:
        assert record["status"].startswith("failed: ")
        assert "train.svm" in record["status"]


def test_packages_that_are_missing_are_named(bench, monkeypatch):
    find = importlib.util.find_spec
    absent = {"torch", "ray"}
    monkeypatch.setattr(importlib.util, "find_spec", lambda x: None if x in absent else find(x))
    entries = [
        {"method": "mlp", "embeddings": {"rademacher": [32]}},
        {"method": "elastic_net", "engine": "ray", "embeddings": {"rademacher": [32]}},
    ]
    records, _ = bench({"methods": entries})
    assert records[0]["status"].startswith("failed: install locole[mlp]")
    assert records[1]["status"].startswith("failed: install locole[ray]")
    assert records[1]["engine"] == "ray"


def test_the_same_run_of_another_experiment_is_taken_over(bench, tmp_path):
    first, _ = bench({"methods": [method()], "seeds": [0, 1]})
    second, _ = bench({"name": "other", "methods": [method()], "seeds": [0]})
    assert len(pids(tmp_path / "out")) == 2
    (copied,) = second
    assert copied["copied_from"] == "mine"
    assert {**copied, "experiment": "mine", "copied_from": None} == first[0]
    third, _ = bench({"name": "third", "methods": [method()], "seeds": [0]}, threads=1)
    assert third[0]["copied_from"] is None  # another number of threads: other seconds


def test_dims_grow_until_the_gain_stops(bench):
    entry = {
        "method": "elastic_net", "settings": {"act": "grow"},
        "embeddings": {"rademacher": [32, 64, 128, 256]},
    }  # fmt: skip
    spec = {"kind": "dimension", "methods": [entry], "min_gain": 0.01}
    records, watched = bench(spec)
    tried = [(r["dim"], "validation" in r["data_options"]) for r in records]
    assert tried == [(32, True), (64, True), (128, True), (64, False)]
    assert [len(plan) for plan in watched.plans] == [1, 1, 1, 1]
    assert bench(spec)[1].began == []


def test_growing_ends_with_the_last_dim(bench):
    entry = {
        "method": "elastic_net", "settings": {"act": "grow"}, "embeddings": {"gaussian": [32, 64]},
    }  # fmt: skip
    records, _ = bench({"kind": "dimension", "methods": [entry]})
    assert [r["dim"] for r in records] == [32, 64, 64]


def test_runs_side_by_side_give_the_same_records(bench, tmp_path):
    spec = {"methods": [method(), method("fails")], "seeds": [0, 1, 2]}
    alone, _ = bench({"name": "alone", **spec})
    together, _ = bench({"name": "together", **spec}, at_once=3, threads=1)

    def ordered(records):
        ignored = {"experiment", "threads", "copied_from"}
        found = [{k: v for k, v in r.items() if k not in ignored} for r in stable(records)]
        return sorted(found, key=lambda r: (r["settings"], r["seed"]))

    assert ordered(alone) == ordered(together)


def test_an_engine_may_do_the_runs(bench):
    class Backwards(Threads):
        def map(self, function, tasks, *, shared, **options):
            for place, result in reversed(list(super().map(function, tasks, shared=shared))):
                yield place, {**result, "machine": "another"}

    records, _ = bench({"methods": [method()], "seeds": [0, 1]}, engine=Backwards())
    assert [record["seed"] for record in records] == [1, 0]
    # A record is of the node that has done the run.
    assert {record["machine"] for record in records} == {"another"}
    assert all(record["status"] == "done" for record in records)


def test_two_writers_are_one_too_many(bench, tmp_path):
    with (
        Store(tmp_path / "out", "mine"),
        pytest.raises(LocoleError, match="written by another process"),
    ):
        bench({"methods": [method()]})


def test_an_experiment_without_runs_is_an_error():
    spec = parse_spec({"name": "mine", "methods": [method(data=["dmoz"])], "data": ["topics"]})
    with pytest.raises(LocoleError, match="has no run on topics"):
        Bench(spec, "nowhere")


def test_sets_of_auto_that_lack_a_file_are_noted_and_not_recorded(bench, tmp_path):
    (tmp_path / "data" / "half").mkdir(parents=True)
    (tmp_path / "data" / "half" / "test.tsv").touch()
    folder = tmp_path / "data" / "clinc150"
    folder.mkdir(parents=True)
    for part in ("train", "test"):
        (folder / f"{part}.svm").write_text("1 1:1\n2 2:1\n")
    records, watched = bench({"methods": [method()], "data": ["auto"]}, data=tmp_path / "data")
    assert [record["data"] for record in records] == ["clinc150"]
    assert watched.notes == ["half is left out: it has no file train.*"]


def test_no_run_starts_after_the_end():
    children = Children()
    with children:
        pass
    with pytest.raises(RuntimeError):
        children.run({"limit_s": 1})


# Killed at random points ------------------------------------------------------------------------


def test_killed_at_random_points_and_resumed_gives_the_same_records(tmp_path):
    """A driver that has imported everything forks benches and kills them; see kill_storm.py."""
    found = subprocess.run(
        [sys.executable, STORM, tmp_path, json.dumps(SMALL)],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    outcome = json.loads(found.stdout)
    undisturbed, *disturbed = (read(tmp_path / name) for name in outcome["folders"])
    assert outcome["kills"] >= 10
    assert len(undisturbed) == 12
    for records in disturbed:
        by_run = sorted(stable(records), key=str)
        assert by_run == sorted(stable(undisturbed), key=str)
    assert outcome["interrupted"] == 130
    assert not any(map(alive, outcome["left"]))


def pids(folder: Path) -> list[int]:
    return [int(file.name.removeprefix("pid-")) for file in folder.glob("pid-*")]


def alive(pid: int) -> bool:
    """Whether a process is there, after a moment to end in."""
    for _ in range(50):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return False
        if state == "Z":
            return False
        time.sleep(0.05)
    return True
