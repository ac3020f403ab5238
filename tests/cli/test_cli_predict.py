"""predict: the library's answers in every format, streamed, and nothing half-written."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import signal
import stat
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from cli_server import ENVIRONMENT
from hypothesis import given
from hypothesis import strategies as st

import locole
from locole.cli.answers import Answers, answers_to, output_format, table_lines
from locole.cli.reading import Reading
from locole.datasets import load_libsvm
from locole.exceptions import LocoleError


def expected(model: str, texts: list[str], k: int) -> tuple[list, list]:
    labels, scores = locole.load(model).predict_topk(texts, k=k)
    return labels.tolist(), scores.astype(np.float32).tolist()


@pytest.fixture
def new(folder) -> list[str]:
    return (folder / "new.txt").read_text().splitlines()


def split_row(cells: list[str]) -> tuple[list[str], list[float]]:
    return cells[0::2], [float(np.float32(cell)) for cell in cells[1::2]]


def test_tsv_on_standard_output(run, new):
    done = run("predict", "texts", "new.txt", "-k", "3")
    assert done.code == 0
    assert done.err == ""
    rows = [split_row(line.split("\t")) for line in done.out.splitlines()]
    labels, scores = expected("texts", new, 3)
    assert [row[0] for row in rows] == labels
    assert [row[1] for row in rows] == scores


def test_csv(run, folder, new):
    done = run("predict", "texts", "new.csv", "--text-column", "title", "-o", "a.csv")
    assert done.out == ""
    assert "a.csv: 12 rows in" in done.err
    header, *rows = csv.reader(io.StringIO((folder / "a.csv").read_text()))
    assert header == [f"{what}_{i}" for i in range(1, 6) for what in ("label", "score")]
    labels, scores = expected("texts", new, 5)
    assert [split_row(row) for row in rows] == list(zip(labels, scores, strict=True))


def test_json_lines(run, new):
    done = run("predict", "texts", "new.txt", "-k", "2", "--output-format", "jsonl")
    rows = [json.loads(line) for line in done.out.splitlines()]
    labels, scores = expected("texts", new, 2)
    assert [row["labels"] for row in rows] == labels
    assert [[float(np.float32(s)) for s in row["scores"]] for row in rows] == scores


def test_parquet(run, folder, new):
    found = run("predict", "texts", "new.txt", "-k", "2", "-o", "a.parquet", "--json").json
    assert {name: found[name] for name in ("output", "format", "k", "rows")} == {
        "output": "a.parquet", "format": "parquet", "k": 2, "rows": 12,
    }  # fmt: skip
    assert set(found) == {
        "output", "format", "k", "rows", "empty_rows", "seconds", "rows_per_s"
    }  # fmt: skip
    table = pq.read_table("a.parquet").to_pydict()
    labels, scores = expected("texts", new, 2)
    assert [list(row) for row in zip(table["label_1"], table["label_2"], strict=True)] == labels
    assert [list(row) for row in zip(table["score_1"], table["score_2"], strict=True)] == scores


def test_numbers_packed(run, folder):
    assert run("predict", "numbers", "test.svm", "-k", "1", "-o", "a.tsv.gz").code == 0
    with gzip.open("a.tsv.gz", "rt") as file:
        labels = [int(line.split("\t")[0]) for line in file]
    model = locole.load("numbers")
    X, _ = load_libsvm("test.svm", n_features=model.n_features_in_, zero_based=False)
    assert labels == model.predict(X).tolist()
    run("predict", "numbers", "test.svm", "-k", "1", "-o", "a.parquet")
    assert pq.read_table("a.parquet")["label_1"].to_pylist() == labels


def test_dense_rows_that_a_model_cannot_take(run, folder):
    X = np.random.default_rng(0).normal(size=(40, 3))
    X[20:] += 9
    y = np.repeat(["a", "b"], 20)
    np.savez("good.npz", X=X, y=y)
    assert run("fit", "good.npz", "-o", "dense", "--dense", "X").code == 0
    X[6, 1] = np.nan
    np.savez("nan.npz", X=X, y=y)
    np.savez("wide.npz", X=np.ones((2, 4)), y=y[:2])
    line = "nan.npz, row 7: a number is missing, infinite or too large for float32"
    for words in ["fit", "nan.npz", "-o", "m", "--dense", "X"], ["evaluate", "dense", "nan.npz"]:
        done = run(*words)
        assert done.code == 2
        assert line in done.err.splitlines()[-1]
    done = run("predict", "dense", "nan.npz", "--batch", "4")
    assert (done.code, done.err.startswith(f"locole: {line}")) == (2, True)
    done = run("predict", "dense", "wide.npz")
    assert done.code == 2
    assert "has 4 numbers a row where the model takes 3" in done.err


def test_features_never_seen_are_left_out(run, folder):
    (folder / "some.svm").write_text("0 1:1 5:1\n0 1:1 5:1 99999:7\n")
    first, second = run("predict", "numbers", "some.svm", "-k", "2").out.splitlines()
    assert first == second


def test_batches_of_any_size_give_the_same(run, new):
    answers = {run("predict", "texts", "new.txt", "--batch", b).out for b in (1, 5, 12, 8192)}
    assert len(answers) == 1
    assert len(answers.pop().splitlines()) == len(new)


def test_standard_input(shell, folder):
    (folder / "numbers").rename("n")
    done = shell(
        "cat new.txt | locole predict texts > a\nlocole predict texts - < new.txt > b\n"
        "locole predict texts new.txt > c\ncmp a b\ncmp b c\n"
        "locole predict n < test.svm > d\nlocole predict n test.svm > e\ncmp d e\n"
        "locole predict texts - --format jsonl -k 1 < test.jsonl | wc -l\n"
        "printf '' | locole predict texts\n"
    )
    assert done == (0, "60\n", "")


def test_a_reader_that_has_enough(shell, folder):
    text = (folder / "new.txt").read_text()
    (folder / "many.txt").write_text(text * 4000)
    done = shell("locole predict texts many.txt --batch 512 | head -n 1 | wc -l")
    assert done == (0, "1\n", "")
    assert shell("locole predict texts --help | head -n 1").code == 0


def test_blank_lines_are_texts(run, folder):
    (folder / "blank.txt").write_text("\n\ncat1\n")
    assert len(run("predict", "texts", "blank.txt", "-k", "1").out.splitlines()) == 3


# Columns, ids and texts beside the answers, empty texts, bad rows, streams ---------------------


@pytest.fixture
def products(run, folder):
    """A model of a table whose columns have names of their own."""
    words = ["--text-column", "title", "--label-column", "category", "-j", "1"]
    assert run("fit", "train.csv", "-o", "products", *words).code == 0
    return folder


def test_a_model_remembers_its_columns(run, products):
    given = ["--text-column", "title"]
    assert run("predict", "products", "new.csv") == run("predict", "products", "new.csv", *given)
    found = run("evaluate", "products", "test.csv", "--json").json
    same = run("evaluate", "products", "test.csv", *given, "--label-column", "category", "--json")
    assert found["accuracy"] == same.json["accuracy"] > 0.9
    # Other files of named columns have the same names, lines of texts and TSV files none.
    lines = [json.dumps({"title": "cat1", "category": "cat"})] * 2
    (products / "some.jsonl").write_text("\n".join(lines))
    assert run("evaluate", "products", "some.jsonl", "--json").json["accuracy"] == 1
    assert run("evaluate", "products", "test.tsv", "--json").json["accuracy"] > 0.9
    assert run("predict", "products", "new.txt").code == 0
    # What is said comes first.
    done = run("predict", "products", "new.csv", "--text-column", "body")
    assert "no column 'body' among 'title'" in done.err


def test_a_model_remembers_delimiter_encoding_and_numbers_of_columns(run, folder):
    rows = [f"{i};caf\xe9 cat {i};C\n{i};caf\xe9 dog {i};D\xfc\n" for i in range(20)]
    (folder / "table.csv").write_bytes("".join(rows).encode("cp1252"))
    words = ["--text-column", "1", "--text-column", "0", "--label-column", "2", "--delimiter", ";"]
    assert run("fit", "table.csv", "-o", "m", *words, "--encoding", "cp1252").code == 0
    assert set(locole.load("m").classes_) == {"C", "D\xfc"}
    assert run("evaluate", "m", "table.csv", "--json").json["accuracy"] == 1
    assert run("predict", "m", "table.csv", "--delimiter", ",").code == 2
    shown = run("inspect", "m").out
    assert (
        '{"format": "csv", "text": [1, 0], "label": 2, "delimiter": ";", "encoding": "cp1252"}'
        in shown
    )


@pytest.mark.parametrize(
    "note",
    [
        "[]", "7", "{", '{"text": 5}', '{"text": [[]]}', '{"other": "x"}', '{"delimiter": 5}',
        '{"encoding": 1}', '{"label": 0.5}', '{"label_separator": ""}', '{"dense": null}',
    ],
)  # fmt: skip
def test_a_note_on_columns_that_is_damaged(note):
    with pytest.raises(LocoleError, match="how its training file was read is damaged"):
        Reading().completed({"reading": note}, "csv", labelled=True)


def test_ids_and_texts_beside_the_answers(run, products):
    words = ["predict", "products", "test.csv", "--id-column", "price", "--with-text", "-k", "1"]
    with open("test.csv", newline="") as file:
        _, *rows = csv.reader(file)
    ids, texts = [row[1] for row in rows], [row[2] for row in rows]
    header, *found = csv.reader(io.StringIO(run(*words, "--output-format", "csv").out))
    assert header == ["id", "text", "label_1", "score_1"]
    assert [row[:2] for row in found] == [list(pair) for pair in zip(ids, texts, strict=True)]
    found = [json.loads(line) for line in run(*words, "--output-format", "jsonl").out.splitlines()]
    assert [(row["id"], row["text"]) for row in found] == list(zip(ids, texts, strict=True))
    assert list(found[0]) == ["id", "text", "labels", "scores"]
    run(*words, "-o", "a.parquet")
    table = pq.read_table("a.parquet")
    assert table.column_names == header
    assert table["id"].to_pylist() == ids
    lines = run(*words).out.splitlines()
    assert [line.split("\t")[:2] for line in lines] == [
        list(p) for p in zip(ids, texts, strict=True)
    ]


def test_texts_that_tsv_cannot_hold(run, folder):
    (folder / "tabs.txt").write_text("cat1\tdog1\n")
    done = run("predict", "texts", "tabs.txt", "--with-text")
    assert done.code == 2
    assert (
        "text 'cat1\\tdog1' has a tab or the end of a line in it, which TSV cannot hold" in done.err
    )


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["texts", "new.txt", "--id-column", "x"], "new.txt: --id-column is for tsv, csv, jsonl"),
        (["numbers", "test.svm", "--with-text"], "--with-text is for models of texts, not"),
        (["numbers", "test.svm", "--encoding", "latin-1"], "--encoding is for tsv, csv, jsonl, txt"),
        (["numbers", "test.svm", "--delimiter", ";"], "--delimiter is for tsv, csv, not for lib"),
        (["texts", "new.csv", "--text-column", "title", "--zero-based"], "--one-based is for libsvm"),
        (["texts", "new.csv", "--text-column", "title", "--delimiter", "||"], "must be one character"),
        (["texts", "new.csv", "--text-column", "title", "--encoding", "x"], "unknown encoding 'x'"),
        (["texts", "new.csv", "--text-column", "title", "--id-column", "x"], "ids by --id-column"),
        (["texts", "records", "-o", "out", "--skip-bad-rows", "x"], "--skip-bad-rows is for a single"),
    ],
)  # fmt: skip
def test_options_that_a_file_has_no_use_for(run, folder, words, reason):
    done = run("predict", *words)
    assert (done.code, done.out) == (2, "")
    (line,) = done.err.splitlines()
    assert reason in line


def test_empty_texts_are_answered_by_the_prior_and_counted(run, folder):
    labels = ["a"] * 5 + ["b"] * 10 + ["c"] * 3
    (folder / "some.tsv").write_text(
        "".join(f"{name}\t{name}{name} {i % 3}\n" for i, name in enumerate(labels))
    )
    run("fit", "some.tsv", "-o", "some")
    (folder / "blank.txt").write_text("\naa\n  \n")
    done = run("predict", "some", "blank.txt", "-k", "3", "--output-format", "jsonl")
    rows = [json.loads(line) for line in done.out.splitlines()]
    assert rows[0]["labels"] == rows[2]["labels"] == ["b", "a", "c"]
    assert [row.get("empty") for row in rows] == [True, None, True]
    assert done.err == (
        "locole: warning: 2 of 3 texts are empty: they are answered by how frequent labels are.\n"
    )
    assert run("predict", "some", "blank.txt", "-o", "a.tsv", "--json").json["empty_rows"] == 2
    (folder / "some.tsv").write_text("a\taa\nb\t \na\taaa\nb\tbb\n")
    done = run("fit", "some.tsv", "-o", "some", "--force")
    assert "locole: warning: 1 of 4 texts are empty: they say nothing of labels.\n" in done.err


def test_bad_rows_are_left_out_counted_and_kept(run, folder):
    good = (folder / "train.tsv").read_text()
    (folder / "dirty.tsv").write_text("no tab here\n" + good + " \tno label\n")
    assert run("fit", "dirty.tsv", "-o", "m").code == 2
    done = run("fit", "dirty.tsv", "-o", "m", "--skip-bad-rows", "bad.tsv")
    assert done.code == 0
    assert (folder / "bad.tsv").read_text() == "no tab here\n \tno label\n"
    told = (
        "locole: warning: 2 rows were left out, see bad.tsv; the first: dirty.tsv, line 1: there is"
    )
    assert told in done.err
    found = run("evaluate", "texts", "dirty.tsv", "--skip-bad-rows", "bad.tsv", "--json")
    assert found.json["rows"] == 300
    # A row without a label can be answered.
    done = run("predict", "texts", "dirty.tsv", "--skip-bad-rows", "bad.tsv")
    assert len(done.out.splitlines()) == 301
    assert (folder / "bad.tsv").read_text() == "no tab here\n"


def test_bad_rows_of_the_test_file_come_after_those_of_the_training_file(run, folder):
    (folder / "bad.tsv").write_text("of an earlier run\n")
    (folder / "dirty.tsv").write_text("no tab here\n" + (folder / "train.tsv").read_text())
    (folder / "dirty_test.tsv").write_text((folder / "test.tsv").read_text() + "nor here\n")
    words = ["--test", "dirty_test.tsv", "--skip-bad-rows", "bad.tsv"]
    assert run("fit", "dirty.tsv", "-o", "m", *words).code == 0
    assert (folder / "bad.tsv").read_text() == "no tab here\nnor here\n"


def test_rows_of_another_encoding_are_kept_as_they_are(run, folder):
    good = (folder / "train.tsv").read_bytes()
    (folder / "dirty.tsv").write_bytes(good + b"x\tcaf\xe9\n")
    done = run("fit", "dirty.tsv", "-o", "m", "--skip-bad-rows", "bad.tsv")
    assert done.code == 0
    assert (folder / "bad.tsv").read_bytes() == b"x\tcaf\xe9\n"
    assert "byte 0xe9 is not UTF-8: give --encoding, such as cp1252.\n" in done.err


def test_a_header_of_tsv_is_a_warning(run, folder):
    (folder / "headed.tsv").write_text("label\ttext\n" + (folder / "train.tsv").read_text())
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        done = run("fit", "headed.tsv", "-o", "m")
    assert (
        "locole: warning: headed.tsv, line 1 looks like a header and is read as a row: name its columns "
        "by --text-column and --label-column, or remove it.\n"
    ) in done.err


def test_lines_of_a_pipe_are_answered_as_they_come(folder):
    for model, line in (("texts", b"cat1\n"), ("numbers", b"0 1:1 5:1\n")):
        with subprocess.Popen(
            [sys.executable, "-m", "locole", "predict", model, "-k", "1", "-j", "1"],
            env=ENVIRONMENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        ) as process:  # fmt: skip
            assert process.stdin is not None
            assert process.stdout is not None
            for _ in range(3):
                process.stdin.write(line)
                process.stdin.flush()
                assert len(process.stdout.readline().split(b"\t")) == 2
            process.stdin.close()
            assert process.stdout.read() == b""


def test_a_model_of_few_labels(run, folder):
    (folder / "two.tsv").write_text("a\tx y\nb\tz\na\tx\nb\tz z\n")
    run("fit", "two.tsv", "-o", "two")
    assert [
        len(line.split("\t")) for line in run("predict", "two", "new.txt").out.splitlines()
    ] == [4] * 12


def test_an_error_midway_leaves_the_old_file(run, folder):
    (folder / "bad.jsonl").write_text('{"text": "cat1"}\n' * 20 + "no JSON\n")
    (folder / "out.csv").write_text("old")
    names = sorted(os.listdir())
    done = run("predict", "texts", "bad.jsonl", "-o", "out.csv", "--batch", "4")
    assert done.code == 2
    assert "bad.jsonl, line 21" in done.err
    assert (folder / "out.csv").read_text() == "old"
    assert sorted(os.listdir()) == names


def test_links_and_devices_are_written_through(run, shell, folder):
    (folder / "real.tsv").write_text("old")
    (folder / "link.tsv").symlink_to("real.tsv")
    run("predict", "texts", "new.txt", "-o", "link.tsv")
    assert (folder / "link.tsv").is_symlink()
    assert len((folder / "real.tsv").read_text().splitlines()) == 12
    (folder / "pipe").symlink_to("/dev/null")
    assert run("predict", "texts", "new.txt", "-o", "pipe", "--output-format", "tsv").code == 0
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    done = shell(
        "mkfifo fifo\ncat fifo > copy &\n"
        "locole predict texts new.txt -o fifo --output-format tsv\nwait\nwc -l < copy"
    )
    assert done.out.strip() == "12"


def test_labels_that_tsv_cannot_hold(run, folder):
    (folder / "tab.csv").write_text('label,text\n"a\tb",x\nc,y\n"a\tb",x x\nc,y y\n')
    run("fit", "tab.csv", "-o", "tab")
    done = run("predict", "tab", "new.txt")
    assert done.code == 2
    assert "such as jsonl" in done.err
    assert run("predict", "tab", "new.txt", "--output-format", "csv").code == 0


@pytest.mark.parametrize(("signal_number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interruption_leaves_nothing(folder, signal_number, code):
    (folder / "out.tsv").write_text("old")
    names = set(os.listdir())
    with subprocess.Popen(
        [sys.executable, "-m", "locole", "predict", "texts", "-o", "out.tsv", "--batch", "1"],
        env=ENVIRONMENT, stdin=subprocess.PIPE, stderr=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(b"cat1\n")
        process.stdin.flush()
        for _ in range(600):
            assert process.poll() is None, process.stderr.read()
            if any(Path(name).stat().st_size for name in set(os.listdir()) - names):
                break
            time.sleep(0.1)
        process.send_signal(signal_number)
        out, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert out == b""
    told = [line for line in err.splitlines() if not line.startswith(b"predicting: ")]
    assert told in ([b"locole: interrupted"], [])
    assert (folder / "out.tsv").read_text() == "old"
    assert set(os.listdir()) == names


# The writers ------------------------------------------------------------------------------------

any_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
plain_text = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=12)
finite = st.floats(width=32, allow_nan=False, allow_infinity=False)


@st.composite
def answers(draw, text):
    k = draw(st.integers(1, 3))
    rows = draw(st.lists(st.lists(st.tuples(text, finite), min_size=k, max_size=k), max_size=4))
    labels = np.array([[label for label, _ in row] for row in rows], dtype=object).reshape(-1, k)
    scores = np.array([[score for _, score in row] for row in rows], np.float32).reshape(-1, k)
    return labels, scores


def written_by(path: Path, format: str, labels, scores) -> Path:
    with answers_to(str(path), format, labels.shape[1], labels.ravel()) as write:
        for start in range(0, len(labels), 2):
            write(Answers(labels[start : start + 2], scores[start : start + 2]))
    return path


@given(answers(any_text))
def test_csv_holds_any_label(tmp_path_factory, pair):
    path = written_by(tmp_path_factory.mktemp("csv") / "a.csv", "csv", *pair)
    with open(path, newline="", encoding="utf-8") as file:
        _, *rows = csv.reader(file)
    assert [row[0::2] for row in rows] == pair[0].tolist()
    assert [[float(np.float32(s)) for s in row[1::2]] for row in rows] == pair[1].tolist()


@given(answers(any_text))
def test_json_lines_hold_any_label(tmp_path_factory, pair):
    path = written_by(tmp_path_factory.mktemp("jsonl") / "a.jsonl", "jsonl", *pair)
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]]
    assert [row["labels"] for row in rows] == pair[0].tolist()
    assert [[float(np.float32(s)) for s in row["scores"]] for row in rows] == pair[1].tolist()


@given(answers(any_text))
def test_parquet_holds_any_label(tmp_path_factory, pair):
    path = written_by(tmp_path_factory.mktemp("parquet") / "a.parquet", "parquet", *pair)
    table = pq.read_table(path)
    k = pair[0].shape[1]
    for i in range(k):
        assert table[f"label_{i + 1}"].to_pylist() == pair[0][:, i].tolist()
        assert table[f"score_{i + 1}"].to_pylist() == pair[1][:, i].tolist()


@given(answers(plain_text))
def test_tsv_holds_labels_without_tabs(tmp_path_factory, pair):
    path = written_by(tmp_path_factory.mktemp("tsv") / "a.tsv", "tsv", *pair)
    rows = [line.split("\t") for line in path.read_bytes().decode().split("\n")[:-1]]
    assert [row[0::2] for row in rows] == pair[0].tolist()


def test_csv_holds_a_lone_carriage_return(tmp_path):
    labels = np.array([["a\rb", "c"], ["", 'd"e']], dtype=object)
    path = written_by(tmp_path / "a.csv", "csv", labels, np.zeros((2, 2), np.float32))
    with open(path, newline="", encoding="utf-8") as file:
        _, *rows = csv.reader(file)
    assert [row[0::2] for row in rows] == labels.tolist()


@pytest.mark.parametrize("bad", ["a\tb", "a\nb", "a\rb"])
def test_tsv_refuses_what_would_break_lines(tmp_path, bad):
    with pytest.raises(LocoleError, match="TSV cannot hold"):
        table_lines(["label"], [np.array(["a", bad])], "tsv")
    assert table_lines(["label"], [np.array([bad])], "csv").decode().startswith("label\n")


def test_output_formats():
    assert output_format("-", None) == "tsv"
    assert output_format("a.ndjson", None) == "jsonl"
    assert output_format("a.txt.xz", None) == "tsv"
    assert output_format("a.txt", "csv") == "csv"


# --- how sure it is ---


def test_probabilities(run, folder):
    rows = run("predict", "texts", "new.txt", "-k", "3", "--proba").out.splitlines()
    labels, p = locole.load("texts").predict_topk(
        Path("new.txt").read_text().splitlines(), 3, proba=True
    )
    assert [line.split("\t")[0] for line in rows] == labels[:, 0].tolist()
    assert [float(line.split("\t")[1]) for line in rows] == pytest.approx(p[:, 0].tolist())
    head = run("predict", "texts", "new.txt", "-k", "1", "--proba", "--output-format", "csv").out
    assert head.startswith("label_1,probability_1\n")


@pytest.mark.parametrize("format", ["tsv", "csv", "jsonl"])
def test_answers_that_are_held_back(run, folder, format):
    texts = Path("new.txt").read_text().splitlines()
    _, p = locole.load("texts").predict_topk(texts, 1, proba=True)
    least = float(np.median(p))
    out = run("predict", "texts", "new.txt", "-k", "1", "--min-proba", str(least),
              "--output-format", format).out.splitlines()  # fmt: skip
    rows = out[1:] if format == "csv" else out
    is_held = [
        json.loads(row)["labels"] == [None] if format == "jsonl" else row[0] in '\t",'
        for row in rows
    ]
    assert is_held == (p[:, 0] < least).tolist()


def test_a_wanted_error_and_sets(run, folder):
    found = run("predict", "texts", "new.txt", "-k", "1", "--max-error", "0.3")
    assert found.code == 0
    sets = run("predict", "texts", "new.txt", "--set", "0.9").out.splitlines()
    expected = locole.load("texts").predict_set(Path("new.txt").read_text().splitlines(), 0.9)
    assert [line.split("\t") if line else [] for line in sets] == [
        some.tolist() for some in expected
    ]
    lines = run("predict", "texts", "new.txt", "--set", "0.9", "--output-format", "jsonl").out
    assert [json.loads(line)["labels"] for line in lines.splitlines()] == [
        some.tolist() for some in expected
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--min-proba", "2"], "--min-proba must be a number from 0 to 1"),
        (["--min-proba", "0.5", "--max-error", "0.1"], "take one"),
        (["--set", "0.9", "--proba"], "leave the other options out"),
        (["--set", "0.9", "--output-format", "csv"], "take --output-format tsv or jsonl"),
        (["--set", "0.9", "-k", "2"], "--set says how many labels a row gets: leave -k out"),
        (["--set", "1.5"], "--set must be a number above 0 and below 1"),
        (["--max-error", "0.0001"], "no threshold is sure"),
    ],
)
def test_options_that_do_not_go_together(run, folder, options, message):
    found = run("predict", "texts", "new.txt", *options)
    assert found.code == 2
    assert message in found.err
