"""Answers for a folder of files, on threads; and the options of engines at the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1]))

from samples import write_samples

from locole.cli import main
from locole.cli.shards import shards_of
from locole.exceptions import LocoleError


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    folder = tmp_path_factory.mktemp("samples")
    write_samples(folder)
    assert main(["fit", str(folder / "train.svm"), "-o", str(folder / "model"), "-j", "1"]) == 0
    shards = folder / "shards"
    shards.mkdir()
    lines = (folder / "test.svm").read_text().splitlines(keepends=True)
    for part in range(3):
        (shards / f"part-{part}.svm").write_text("".join(lines[part::3]))
    (shards / ".hidden").write_text("not a shard")
    return folder


@pytest.fixture
def run(samples, tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run_here(*words):
        capfd.readouterr()
        code = main([str(word) for word in words])
        out, err = capfd.readouterr()
        return code, out, err

    return run_here


def test_every_file_gets_the_answers_it_would_get_alone(samples, run):
    shards, model = samples / "shards", samples / "model"
    words = ["predict", model, shards, "-o", "out", "--output-format", "tsv", "-k", 2, "-j", 2]
    code, out, _ = run(*words, "--json")
    assert code == 0
    figures = json.loads(out)
    assert figures["files"] == 3
    assert figures["rows"] == len((samples / "test.svm").read_text().splitlines())
    assert sorted(path.name for path in Path("out").iterdir()) == [
        f"part-{part}.tsv" for part in range(3)
    ]
    for part in range(3):
        assert run("predict", model, shards / f"part-{part}.svm", "-k", 2, "-o", "one.tsv")[0] == 0
        assert Path("one.tsv").read_bytes() == Path("out", f"part-{part}.tsv").read_bytes()


def test_answers_are_parquet_unless_told_otherwise(samples, run):
    from pyarrow import parquet

    code, _, err = run("predict", samples / "model", samples / "shards", "-o", "out")
    assert code == 0
    assert "out: " in err
    table = parquet.read_table("out/part-0.parquet")
    assert table.column_names[:2] == ["label_1", "score_1"]


def test_what_is_there_is_kept_or_refused(samples, run):
    words = ["predict", samples / "model", samples / "shards", "-o", "out"]
    assert run(*words)[0] == 0
    kept = Path("out/part-1.parquet")
    Path("out/part-2.parquet").unlink()
    kept.write_bytes(b"kept")
    code, _, err = run(*words)
    assert (code, "--resume" in err) == (2, True)
    code, out, _ = run(*words, "--resume", "--json")
    assert (code, json.loads(out)["files"]) == (0, 1)
    assert kept.read_bytes() == b"kept"
    code, out, _ = run(*words, "--resume", "--json")
    assert (code, json.loads(out)["files"]) == (0, 0)


def test_a_broken_file_is_named_and_leaves_no_answers(samples, run, tmp_path):
    folder = tmp_path / "broken"
    folder.mkdir()
    (folder / "a.svm").write_text("1 1:1\n")
    (folder / "b.svm").write_text("1 1:x\n")
    code, _, err = run("predict", samples / "model", folder, "-o", "out", "-j", 1)
    assert code == 2
    assert "b.svm" in err
    assert sorted(path.name for path in Path("out").iterdir()) == ["a.parquet"]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ([], "give a folder for the answers"),
        (["-o", "{shards}"], "has the rows in it"),
        (["-o", "{file}"], "is a file"),
        (["-o", "out", "--output-format", "xml"], "unknown output format"),
        (["-o", "out", "--engine", "spark"], "unknown engine"),
        (["-o", "out", "--address", "1.2.3.4:5"], "needs --engine ray"),
    ],
)
def test_bad_wishes_are_refused(samples, run, words, complaint):
    names = {"shards": samples / "shards", "file": samples / "test.svm"}
    words = [word.format(**names) for word in words]
    code, _, err = run("predict", samples / "model", samples / "shards", *words)
    assert code == 2
    assert complaint in err
    assert err.count("\n") == 1


def test_folders_that_make_no_sense_are_refused(tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(LocoleError, match="no files in it"):
        shards_of(str(empty), str(tmp_path / "out"), "tsv", resume=False)
    for name in ("a.svm", "a.svm.gz"):
        (empty / name).touch()
    with pytest.raises(LocoleError, match="differ in their suffix only"):
        shards_of(str(empty), str(tmp_path / "out"), "tsv", resume=False)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--engine", "spark"], "unknown engine"),
        (["--address", "local"], "needs --engine ray"),
        (["--engine", "ray", "--regressor", "softmax"], "learns on one machine only"),
        (["--engine", "ray", "--model", "centroids"], "learns on one machine only"),
    ],
)
def test_fit_refuses_before_it_reads(run, tmp_path, words, complaint):
    (tmp_path / "no_rows.svm").touch()
    code, _, err = run("fit", tmp_path / "no_rows.svm", "-o", tmp_path / "model", *words)
    assert code == 2
    assert complaint in err


def test_engines_for_a_single_file_are_refused(samples, run):
    code, _, err = run("predict", samples / "model", samples / "test.svm", "--engine", "ray")
    assert code == 2
    assert "for a folder of files" in err
