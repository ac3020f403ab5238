"""``locole report``: what it writes, what it says, and what goes wrong."""

from __future__ import annotations

import builtins
import json

import pytest
from samples import write_samples


@pytest.fixture
def place(tmp_path, monkeypatch):
    write_samples(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_page_and_its_files(run, place):
    done = run("report", "records")
    assert done.code == 0, done.err
    assert done.err == ""
    assert done.out.splitlines() == [
        "6 of 7 runs have figures.",
        "report.html is the page; report_files beside it has figures and tables as files.",
    ]
    text = (place / "report.html").read_text(encoding="utf-8")
    assert "76.00 ± 1.00" in text
    assert "failed: no torch." in text
    assert (place / "report_files" / "table2.csv").read_text().count("\n") == 4


def test_tables_as_latex(run, place):
    run("report", "records")
    assert not list((place / "report_files").glob("*.tex"))
    assert run("report", "records", "--latex").code == 0
    files = sorted(path.name for path in (place / "report_files").glob("*.tex"))
    assert files == ["pareto_1.tex", "setting_1.tex", "table2_1.tex", "trouble_1.tex"]
    text = (place / "report_files" / "table2_1.tex").read_text()
    assert "\\textbf{76.00 $\\pm$ 1.00}" in text
    assert text.count("\\begin{tabular}") == text.count("\\end{tabular}") == 1


def test_for_machines(run, place):
    found = run("report", "records", "-o", "other.html", "--json").json
    assert found["runs"] == 7
    assert found["done"] == 6
    assert found["page"] == str(place / "other.html")
    assert found["files"] == str(place / "other_files")
    assert found["sections"][0] == "table2"


def test_the_folder_of_bench_is_the_default(run, place):
    (place / "records").rename(place / "locole_results")
    assert run("report").code == 0
    assert (place / "report.html").exists()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["nowhere"], "nowhere"),
        (["empty"], "there are no records: make some by locole bench table2 --quick."),
        (["records", "--out", "no/report.html"], "there is no folder"),
        (["records", "--out", "empty"], "empty is a folder"),
        (["records", "--out", "report.txt"], "ends in .html"),
    ],
)
def test_bad_input_is_one_line(run, place, words, reason):
    (place / "empty").mkdir()
    done = run("report", *words)
    assert done.code == 2
    assert done.out == ""
    assert len(done.err.splitlines()) == 1
    assert reason in done.err


def test_a_torn_last_line_is_no_record(run, place):
    path = place / "records" / "table2.jsonl"
    whole = path.read_text()
    path.write_text(whole + whole.splitlines()[0][:30])
    assert run("report", "records", "--json").json["runs"] == 7


def test_without_matplotlib_the_extra_is_named(run, place, monkeypatch):
    path = place / "records" / "table2.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    more = [line | {"dim": 64, "outputs": 64} for line in lines if line.get("dim")]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines + more))
    really = builtins.__import__

    def without(name, *rest):
        if name.partition(".")[0] == "matplotlib":
            raise ImportError(name)
        return really(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    done = run("report", "records")
    assert done.code == 2
    assert done.err == "locole: figures need the package matplotlib: pip install locole[plots]\n"
    assert not (place / "report.html").exists()


@pytest.mark.parametrize("found", [True, False])
def test_the_page_is_opened_when_asked_for(run, place, monkeypatch, found):
    opened = []
    monkeypatch.setattr("webbrowser.open", lambda address: opened.append(address) or found)
    done = run("report", "records", "--open")
    assert done.code == 0
    assert opened == [(place / "report.html").as_uri()]
    assert ("no browser was found" in done.err) == (not found)
