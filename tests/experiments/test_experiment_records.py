"""The file of records: it only grows, and what a killed writer leaves does no harm."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locole.exceptions import LocoleError
from locole.experiments import Run, read
from locole.experiments.records import IDENTITY, KEYS, Store, identity, latest

RECORD = {"experiment": "mine", "data": "topics", "method": "mach", "seed": 3, "status": "done"}


def written(folder, *records):
    with Store(folder, "mine") as store:
        for record in records:
            store.append(record)
    return folder / "mine.jsonl"


def test_records_come_back_with_all_keys(tmp_path):
    written(tmp_path, RECORD, {**RECORD, "seed": 4, "status": "failed: café\nor\u2028so"})
    found = read(tmp_path)
    assert [record["seed"] for record in found] == [3, 4]
    assert found[1]["status"] == "failed: café\nor\u2028so"
    assert all(set(record) == set(KEYS) for record in found)
    assert found[0]["accuracy"] is None


@given(st.data())
def test_a_file_cut_anywhere_loses_the_last_line_alone(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("cut")
    path = written(folder, *({**RECORD, "seed": seed} for seed in range(3)))
    raw = path.read_bytes()
    size = data.draw(st.integers(0, len(raw)))
    path.write_bytes(raw[:size])
    whole = raw[:size].count(b"\n")
    assert [record["seed"] for record in read(folder)] == list(range(whole))
    with Store(folder, "mine") as store:
        assert len(store.records) == whole
        for seed in range(whole, 3):
            store.append({**RECORD, "seed": seed})
    assert path.read_bytes() == raw


def test_the_last_record_of_a_run_counts(tmp_path):
    written(tmp_path, {**RECORD, "status": "timeout"}, {**RECORD, "seed": 4}, RECORD)
    assert [(r["seed"], r["status"]) for r in read(tmp_path)] == [(3, "done"), (4, "done")]


@pytest.mark.parametrize("line", ["nonsense", "[1]", "null", '{"a": ', "[" * 100_000])
def test_a_damaged_line_is_named(tmp_path, line):
    path = written(tmp_path, RECORD)
    with open(path, "a") as file:
        file.write(f"{line}\n")
    with pytest.raises(LocoleError, match=r"mine\.jsonl, line 2"):
        read(tmp_path)


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(LocoleError, match="no folder of records"):
        read(tmp_path / "absent")
    assert read(tmp_path) == []


def test_numbers_that_json_lacks_are_refused(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        written(tmp_path, {**RECORD, "accuracy": float("nan")})
    assert read(tmp_path) == []


def test_the_order_of_the_files_is_that_of_their_names(tmp_path):
    for name in ("b", "a"):
        with Store(tmp_path, name) as store:
            store.append({**RECORD, "experiment": name})
    assert [record["experiment"] for record in read(tmp_path)] == ["a", "b"]


def test_a_run_and_its_record_have_one_identity():
    run = Run("mine", "topics", "elastic_net", embedding="gold", dim=128, seed=2, quick=True)
    assert identity(json.loads(json.dumps(run.record()))) == run.key
    assert set(run.record()) == set(IDENTITY)
    other = Run("mine", "topics", "elastic_net", embedding="gold", dim=128, seed=2)
    assert other.key != run.key
    assert len(latest([run.record(), other.record(), run.record()])) == 2


def test_the_limit_is_no_part_of_a_run():
    runs = [Run("mine", "topics", "mach", time_limit_s=limit) for limit in (1, 2)]
    assert runs[0] == runs[1]
    assert len(set(runs)) == 1
