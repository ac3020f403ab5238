"""``locole bench``."""

from __future__ import annotations

import json

import pytest

from locole.experiments import children, shipped_specs


@pytest.fixture
def spec(tmp_path, monkeypatch):
    """A spec in the current folder whose runs are done at once."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LOCOLE_DATA", raising=False)
    monkeypatch.setattr(
        children.Children, "run", lambda self, request: {"status": "done", "accuracy": 0.5}
    )
    (tmp_path / "mine.toml").write_text(
        'title = "A title"\ndata = ["topics"]\nseeds = [0, 1, 2]\n'
        "data_options = { topics = { n_samples = 60, n_classes = 5, n_features = 50 } }\n"
        '[[methods]]\nmethod = "wltls"\n[[methods]]\nmethod = "mach"\nseeds = [4, 5]\n'
    )
    return "mine.toml"


def test_the_list(run):
    shown = run("bench", "--list")
    assert shown.code == 0
    assert all(name in shown.out for name in shipped_specs())
    assert run("bench", "--list", "--json").json["table3"].startswith("Time and accuracy")


def test_what_is_left_and_what_was_run(run, spec):
    left = run("bench", spec, "--dry-run")
    assert left.out.splitlines()[-1] == "5 of 5 runs are left."
    done = run("bench", spec, "--method", "mach")
    assert done.code == 0, done.err
    assert "[2/2] topics mach seed 5: accuracy 50.00 %" in done.err
    left = run("bench", spec, "--dry-run", "--json").json
    assert [r["seed"] for r in left["left"]] == [0, 1, 2]
    figures = run("bench", spec, "--json").json
    assert figures == {
        "experiment": "mine", "records": 5, "done": 5, "failed": 0, "timeout": 0,
        "file": "locole_results/mine.jsonl",
    }  # fmt: skip
    with open("locole_results/mine.jsonl") as lines:
        assert len([json.loads(line) for line in lines]) == 5
    assert run("bench", spec, "--dry-run").out.splitlines()[-1] == "0 of 5 runs are left."


def test_options_narrow_a_spec(run, spec):
    left = run("bench", spec, "--dry-run", "--json", "--seeds", 1).json["left"]
    assert [(r["method"], r["seed"]) for r in left] == [("wltls", 0), ("mach", 4)]
    left = run("bench", spec, "--dry-run", "--json", "--set", "a", "--set", "b").json["left"]
    assert {r["data"] for r in left} == {"a", "b"}
    left = run("bench", "table2", "--quick", "--dry-run", "--json", "--set", "mine").json["left"]
    assert {(r["data"], r["quick"]) for r in left} == {("mine", True)}


def test_a_set_that_is_asked_for_by_name_fails_by_name(run, spec):
    done = run("bench", spec, "--set", "absent", "--json")
    assert done.json["failed"] == 5
    assert "failed: data not found" in done.err


@pytest.fixture
def sets(spec, tmp_path):
    """A folder with a data set of one's own."""
    folder = tmp_path / "sets" / "mine"
    folder.mkdir(parents=True)
    for part in ("train", "test"):
        (folder / f"{part}.csv").write_text("title,category\n" + "a cat,x\na dog,y\n" * 5)
    return folder


COLUMNS = ["--text-column", "title", "--label-column", "category"]


def test_own_data_is_run_on_with_columns_of_any_name(run, sets):
    done = run("bench", "table2", "--data", "sets", "--dry-run", "--json", *COLUMNS).json
    assert {r["data"] for r in done["left"]} == {"mine"}
    assert done["left"][0]["data_options"] == '{"label":"category","text":["title"]}'
    words = ["--method", "centroids", "--json", *COLUMNS]
    assert run("bench", "table2", "--data", "sets", *words).json["done"] == 1
    assert run("bench", "table2", "--data", "sets", "--quick", *words).json["done"] == 2


def test_failures_are_repeated_when_their_data_has_changed(run, sets):
    words = ["bench", "table2", "--data", "sets", "--method", "centroids"]
    done = run(*words)
    assert "failed: " in done.err
    told = "runs without figures: 1; --retry repeats them, and so does a change of their data."
    assert done.err.splitlines()[-1] == told
    assert run(*words, "--dry-run").out.splitlines()[-1] == "0 of 1 runs are left."
    for path in sets.iterdir():
        path.write_text(path.read_text().replace("title,category", "text,label"))
    assert run(*words, "--dry-run").out.splitlines()[-1] == "1 of 1 runs are left."
    done = run(*words)
    assert "--retry" not in done.err
    assert run(*words, "--dry-run").out.splitlines()[-1] == "0 of 1 runs are left."


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "name an experiment"),
        (["tabel2"], "did you mean 'table2'"),
        (["absent.toml"], "absent.toml: there is no such file."),
        (["mine.toml", "--method", "parabel"], "mine has no method 'parabel': it has wltls, mach."),
        (["mine.toml", "--seeds", "0"], "--seeds must be above 0"),
        (["mine.toml", "--limit", "-1"], "--limit must be above 0"),
        (["mine.toml", "--jobs", "0"], "--jobs must not be 0"),
        (["mine.toml", "--out", "mine.toml"], "mine.toml"),
    ],
)
def test_bad_input_is_one_line(run, spec, words, message):
    found = run("bench", *words)
    assert found.code == 2
    assert len(found.err.splitlines()) == 1
    assert message in found.err
