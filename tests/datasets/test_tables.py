"""Texts with labels: every format, what users may say of its columns, and what errors say."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import os
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locole.datasets import delimited, growing, iter_texts, load_texts, sources
from locole.datasets.delimited import TextColumns
from locole.datasets.tables import iter_records
from locole.exceptions import LocoleError, LocoleWarning


def write(folder, data, name):
    path = folder / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def read(path, **options):
    texts, labels = load_texts(path, **options)
    return list(zip(texts, labels.tolist(), strict=True))


# --- round trips ---

characters = st.characters(codec="utf-8", exclude_characters="\r\n")
one_line = st.text(characters, max_size=12)
no_tab = st.text(
    st.characters(codec="utf-8", exclude_characters="\r\n\t\ufeff"), min_size=1, max_size=8
).filter(str.strip)
any_text = st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=12)
label = st.text(
    st.characters(codec="utf-8", exclude_characters="\r\ufeff"), min_size=1, max_size=8
).filter(str.strip)


def as_tsv(rows):
    return "".join(f"{label}\t{text}\n" for text, label in rows).encode()


def as_csv(rows, delimiter=","):
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    writer.writerows([("label", "text"), *((label, text) for text, label in rows)])
    return out.getvalue().encode()


def as_jsonl(rows):
    lines = (json.dumps({"text": text, "label": label}) for text, label in rows)
    return "\n".join(lines).encode()


def as_parquet(rows):
    texts, labels = zip(*rows, strict=True)
    out = io.BytesIO()
    pq.write_table(pa.table({"label": labels, "text": texts}), out, row_group_size=3)
    return out.getvalue()


@pytest.mark.parametrize(
    ("suffix", "write_rows", "texts", "labels"),
    [
        (".tsv", as_tsv, one_line, no_tab),
        (".csv", as_csv, any_text, label),
        (".jsonl", as_jsonl, any_text, label),
        (".parquet", as_parquet, any_text, label),
    ],
    ids=["tsv", "csv", "jsonl", "parquet"],
)
@given(data=st.data())
@settings(max_examples=40)
def test_round_trip(tmp_path_factory, suffix, write_rows, texts, labels, data):
    rows = data.draw(st.lists(st.tuples(texts, labels), min_size=1, max_size=10))
    path = write(tmp_path_factory.getbasetemp(), write_rows(rows), f"round{suffix}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sources, "CHUNK_BYTES", data.draw(st.sampled_from([3, 40, 1 << 20])))
        # Blanks around labels are no part of them.
        rows = [(text, name.strip()) for text, name in rows]
        assert read(path) == rows
        batch_rows = data.draw(st.integers(1, 4))
        parts = list(iter_texts(path, batch_rows=batch_rows))
    assert [text for texts, _ in parts for text in texts] == [text for text, _ in rows]
    assert np.concatenate([labels for _, labels in parts]).tolist() == [name for _, name in rows]
    assert {len(texts) for texts, _ in parts[:-1]} <= {batch_rows}


@pytest.mark.parametrize(
    ("suffix", "pack"),
    [(".gz", gzip.compress), (".xz", lzma.compress), (".bz2", bz2.compress)],
)
def test_packed_files(tmp_path, suffix, pack):
    rows = [("a text", "x"), ("another", "y")]
    for kind, write_rows in (("tsv", as_tsv), ("csv", as_csv), ("jsonl", as_jsonl)):
        path = write(tmp_path, pack(write_rows(rows)), f"data.{kind}{suffix}")
        assert read(path) == rows
        with pytest.raises(LocoleError, match="damaged or cut short"):
            load_texts(write(tmp_path, pack(write_rows(rows))[:-5], f"data.{kind}{suffix}"))


# --- TSV ---


def test_tsv_without_a_header(tmp_path):
    path = write(tmp_path, '﻿x\ta "quoted" text\r\n\r\n  \ny\tone\ttwo\n007\t', "data.tsv")
    assert read(path) == [('a "quoted" text', "x"), ("one\ttwo", "y"), ("", "007")]
    texts, labels = load_texts(path, labelled=False)
    assert texts == ['a "quoted" text', "one\ttwo", ""]
    assert labels is None


def test_tsv_with_columns(tmp_path):
    path = write(tmp_path, 'id\ttext\tkind\n1\tsay "a"\tx\n2\tb\ty\n', "data.tsv")
    assert read(path, label="kind") == [('say "a"', "x"), ("b", "y")]
    assert read(path, text=1, label=2)[0] == ("text", "kind")
    with pytest.raises(LocoleError, match="line 3: 2 fields instead of the header's 3"):
        load_texts(write(tmp_path, "text\tid\tlabel\na\tb\tc\nd\te\n", "x.tsv"), text="text")


# --- CSV ---


def test_csv_columns(tmp_path):
    path = write(tmp_path, 'Id, Label ,TEXT\n1,x,"a, b"\n\n2,y,"c\nd"\n', "data.csv")
    assert read(path) == [("a, b", "x"), ("c\nd", "y")]
    assert read(path, label="Id") == [("a, b", "1"), ("c\nd", "2")]
    assert read(path, text="Id", label=" Label ") == [("1", "x"), ("2", "y")]
    assert load_texts(path, labelled=False) == (["a, b", "c\nd"], None)
    assert load_texts(path, text="TEXT", labelled=False)[0] == ["a, b", "c\nd"]


def test_csv_without_a_header(tmp_path):
    path = write(tmp_path, 'x,1,"a, b"\ny,2,c\n', "data.csv")
    assert read(path, text=2, label=0) == [("a, b", "x"), ("c", "y")]
    assert load_texts(path, text=2, labelled=False)[0] == ["a, b", "c"]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_csv_with_other_delimiters(tmp_path, delimiter):
    rows = [("a, b; c\td", "x"), ("e", "y")]
    assert read(write(tmp_path, as_csv(rows, delimiter), "data.csv")) == rows


def test_a_column_that_only_the_labels_need_may_be_missing(tmp_path):
    path = write(tmp_path, "text\na\nb\n", "data.csv")
    assert load_texts(path, labelled=False)[0] == ["a", "b"]
    with pytest.raises(
        LocoleError, match="line 1: no column 'label' among 'text': name the column"
    ):
        load_texts(path)


def test_long_fields(tmp_path):
    rows = [("a" * 300_000, "x")]
    assert read(write(tmp_path, as_csv(rows), "data.csv")) == rows


@pytest.mark.parametrize(
    ("text", "options", "reason"),
    [
        (
            "a,b\n1,2\n",
            {},
            "line 1: no column 'text' among 'a', 'b': name the column of the texts by t",
        ),
        ("text,b\n1,2\n", {}, "line 1: no column 'label' among 'text', 'b'.*by label="),
        ("text,label\n1,2\n", {"text": "x"}, "line 1: no column 'x' among"),
        (
            "text,label\na,b\n\na,b,c\n",
            {},
            "line 4: 3 fields instead of the header's 2: put a field",
        ),
        (
            'text,label\na,b\n"c,d\ne,f\n',
            {},
            "line 3: unexpected end of data: is a quote left open",
        ),
        ('text,label\n"a"b,c\n', {}, "line 2: .*expected after.*quote"),
        ("text,label\na,\n", {}, "line 2: the label is empty"),
        ("a,b\n", {"text": 0, "label": 2}, "line 1: only 2 fields, there is no column 2"),
        ("a,b\n", {"text": 0}, "give the number of the label's column"),
        ("a,b\n", {"text": 0, "label": "b"}, "both by the names of columns or both by numbers"),
        ("a,b\n", {"label": 0}, "both by the names of columns or both by numbers"),
        ("a,b\n", {"text": -1, "label": 0}, "both by the names of columns or both by numbers"),
        ("", {}, "has no rows"),
        ("text,label\n", {}, "has no rows"),
    ],
    ids=str,
)
def test_bad_csv(tmp_path, text, options, reason):
    with pytest.raises(LocoleError, match=reason):
        load_texts(write(tmp_path, text, "data.csv"), **options)


def test_a_quote_that_swallows_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(delimited, "MAX_FIELD_CHARACTERS", 1 << 17)
    old = csv.field_size_limit(1 << 17)
    try:
        path = write(tmp_path, 'text,label\na,"b\n' + "c,d\n" * 100_000, "data.csv")
        with pytest.raises(
            LocoleError, match=r"line 2: field larger than field limit.*quote left open"
        ):
            load_texts(path)
    finally:
        csv.field_size_limit(old)


def test_bad_tsv(tmp_path):
    path = write(tmp_path, "x\ta\nno tab here\n", "data.tsv")
    with pytest.raises(LocoleError, match=r"data\.tsv, line 2: there is no tab.*\.txt"):
        load_texts(path)
    with pytest.raises(LocoleError, match="line 1: the label is empty"):
        load_texts(write(tmp_path, "\ta\n", "data.tsv"))


# --- JSON lines ---


def test_jsonl_columns(tmp_path):
    lines = '{"id": 5, "body": "a", "Label": 7}\n\n{"Label": "x", "body": "b", "id": 6}\n'
    path = write(tmp_path, lines, "data.ndjson")
    assert read(path, text="body") == [("a", "7"), ("b", "x")]
    assert read(path, text="body", label="id") == [("a", "5"), ("b", "6")]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"text": "a"', "line 2: not JSON"),
        ("[" * 100_000, "line 2: not JSON"),
        ("1" * 5000, "line 2: not JSON"),
        ("[1]", 'line 2: not an object like {"text"'),
        ('{"text": "a"}', "line 2: no column 'label' among 'text'"),
        ('{"text": 5, "label": "x"}', "line 2: 'text' is not a text"),
        ('{"text": null, "label": "x"}', "line 2: 'text' is not a text"),
        (
            '{"text": "a", "label": 1.5}',
            "line 2: 'label' is not a text or a whole number",
        ),
        ('{"text": "a", "label": true}', "line 2: 'label' is not a text"),
        ('{"text": "a", "label": ""}', "line 2: the label is empty"),
        ('{"text": "a", "label": " "}', "line 2: the label is empty"),
        ('{"text": "\\ud800", "label": "x"}', "line 2: 'text' has half of a surrogate pair"),
    ],
    ids=lambda value: value[:30],
)
def test_bad_jsonl(tmp_path, line, reason):
    path = write(tmp_path, '{"text": "a", "label": "x"}\n' + line + "\n", "data.jsonl")
    with pytest.raises(LocoleError, match=r"data\.jsonl, " + reason):
        load_texts(path)


# --- several columns, delimiters, encodings, rows that cannot be read, streams ---


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("data.tsv", b" \ta\n"),
        ("data.csv", b"label,text\n\xc2\xa0,a\n"),
        ("data.jsonl", b'{"label": "\\t", "text": "a"}\n'),
        ("data.parquet", as_parquet([("a", "  ")])),
    ],
)
def test_blank_labels(tmp_path, name, content):
    with pytest.raises(LocoleError, match=r"(line|row) \d: the label is empty: give one or leave"):
        load_texts(write(tmp_path, content, name))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("data.csv", "text,label,text\na,b,c\n"),
        ("data.csv", "text;label;Text\na;b;c\n"),
    ],
    ids=["same", "case"],
)
def test_a_name_twice_in_the_header(tmp_path, name, content):
    path = write(tmp_path, content, name)
    with pytest.raises(LocoleError, match="line 1: several columns are called 'text': rename all"):
        load_texts(path)
    with pytest.raises(LocoleError, match="several columns are called 'text'"):
        load_texts(parquet_of(tmp_path, ["text", "label", "text"]))
    # Columns that are not read may be called anything.
    path = write(tmp_path, "x,text,label,x\n1,a,b,2\n", name)
    assert read(path) == [("a", "b")]


def parquet_of(folder, names):
    path = folder / "data.parquet"
    pq.write_table(pa.Table.from_arrays([pa.array(["a"])] * len(names), names=names), path)
    return path


@pytest.mark.parametrize(
    ("name", "content", "options"),
    [
        ("data.csv", "a,b,label\nbig,dog,x\n", {"text": ["b", "a"]}),
        ("data.csv", "big,dog,x\n", {"text": [1, 0], "label": 2}),
        ("data.tsv", "a\tb\tlabel\nbig\tdog\tx\n", {"text": ["b", "a"], "label": "label"}),
        ("data.jsonl", '{"a": "big", "b": "dog", "label": "x"}\n', {"text": ("b", "a")}),
    ],
)
def test_several_columns_are_one_text(tmp_path, name, content, options):
    assert read(write(tmp_path, content, name), **options) == [("dog big", "x")]


@pytest.mark.parametrize(
    ("name", "content", "delimiter"),
    [
        ("data.csv", "text|label\na,b|x\n", "|"),
        ("data.tsv", "x|a,b\n", "|"),
        ("data.csv", "text\tlabel\na,b\tx\n", "\t"),
    ],
)
def test_delimiters(tmp_path, name, content, delimiter):
    assert read(write(tmp_path, content, name), delimiter=delimiter) == [("a,b", "x")]


@pytest.mark.parametrize("delimiter", ["", "||", "\n", '"'])
def test_bad_delimiters(tmp_path, delimiter):
    for name in ("data.csv", "data.tsv"):
        path = write(tmp_path, "text|label\n", name)
        if delimiter or name == "data.csv":
            with pytest.raises(LocoleError, match="delimiter must be one character, such as ';'"):
                load_texts(path, delimiter=delimiter)
    with pytest.raises(LocoleError, match="the format jsonl has no delimiter: leave it out"):
        load_texts(write(tmp_path, "{}", "data.jsonl"), delimiter=delimiter)


@pytest.mark.parametrize(
    "encoding", ["latin-1", "cp1252", "utf-16", "utf-16-le", "UTF_8", "utf-8-sig"]
)
@pytest.mark.parametrize("packed", [False, True])
def test_encodings(tmp_path, encoding, packed):
    rows = [(f"caf\xe9 {i}", "n\xe4he") for i in range(5000)]
    raw = "".join(f"{label}\t{text}\n" for text, label in rows).encode(encoding)
    name, raw = ("data.tsv.gz", gzip.compress(raw)) if packed else ("data.tsv", raw)
    assert read(write(tmp_path, raw, name), encoding=encoding) == rows


@pytest.mark.parametrize(
    ("raw", "encoding", "reason"),
    [
        (
            b"x\ta\n",
            "utf8000",
            "unknown encoding 'utf8000': take one that Python knows, such as utf-8",
        ),
        (b"x\ta\n", "base64", "unknown encoding 'base64'"),
        (b"x\ta\n", "undefined", "unknown encoding 'undefined'"),
        (b"x\ta\n", "\0", "unknown encoding"),
        (b"x\ta\xe9\n", "ascii", "data.tsv, line 1 or after it: 'ascii' codec .* another encoding"),
        (b"x\ta\n!", "utf-16", "is it another encoding"),
    ],
)
def test_bad_encodings(tmp_path, raw, encoding, reason):
    with pytest.raises(LocoleError, match=reason):
        load_texts(write(tmp_path, raw, "data.tsv"), encoding=encoding)


@pytest.mark.parametrize(
    ("name", "good", "bad", "shown"),
    [
        ("data.tsv", "x\ta\n", "no tab\n", "no tab"),
        ("data.tsv", "x\ta\n", " \tb\n", " \tb"),
        ("data.csv", "x,a\n", 'x,"a, b",c\n', 'x,"a, b",c'),
        ("data.jsonl", '{"text": "a", "label": "x"}\n', "{}\n", "{}"),
        ("data.jsonl", '{"text": "a", "label": "x"}\n', "oh\n", "oh"),
    ],
)
def test_rows_that_cannot_be_read_are_left_out_on_wish(tmp_path, name, good, bad, shown):
    header = "label,text\n" if name == "data.csv" else ""
    path = write(tmp_path, header + good + bad + good, name)
    told = []
    found = iter_records(path, TextColumns(), bad=lambda row, error: told.append((row, str(error))))
    assert [record[:2] for part in found for record in part] == [("a", "x")] * 2
    ((row, error),) = told
    assert row == shown
    assert f"line {2 + bool(header)}: " in error
    with pytest.raises(LocoleError, match=f"line {2 + bool(header)}: "):
        load_texts(path)


@pytest.mark.parametrize(
    ("name", "header", "row"),
    [
        ("data.tsv", b"", b"x\tcaf\xe9\n"),
        ("data.csv", b"label,text\n", b'x,"caf\xe9\nof two lines"\n'),
        ("data.jsonl", b"", b'{"text": "caf\xe9", "label": "x"}\n'),
    ],
)
def test_rows_of_another_encoding_are_left_out_on_wish(tmp_path, name, header, row):
    good = row.replace(b"\xe9", "é".encode())
    path = write(tmp_path, header + good + row + good, name)
    told = []
    found = iter_records(path, TextColumns(), bad=lambda row, error: told.append((row, str(error))))
    assert [record.text[:4] for part in found for record in part] == ["café"] * 2
    ((left_out, error),) = told
    assert b"caf\xe9" in left_out.encode(errors="surrogateescape")
    place = 1 + (header + good).count(b"\n")
    assert f"{name}, line {place}: byte 0xe9 is not UTF-8: give encoding=, such as cp1252." in error


def test_utf_16_is_recognised(tmp_path):
    path = write(tmp_path, "text,label\na,x\n".encode("utf-16"), "data.csv")
    with pytest.raises(LocoleError, match=r"line 1: byte 0xff is not UTF-8: .*, such as utf-16"):
        load_texts(path)


@pytest.mark.parametrize("header", ["label\ttext", "Category \tTitle"])
def test_a_header_of_tsv_is_a_warning(tmp_path, header):
    path = write(tmp_path, f"{header}\nbird\trobin\n", "data.tsv")
    with pytest.warns(LocoleWarning, match="line 1 looks like a header and is read as a row"):
        texts, _ = load_texts(path)
    assert len(texts) == 2


def test_rows_of_parquet_that_lack_something(tmp_path):
    path = parquet(tmp_path, text=["a", None, "b"], label=["x", "y", " "], id=[1, 2, 3])
    told = []
    columns = TextColumns(id="id")
    (part,) = iter_records(path, columns, bad=lambda row, error: told.append(json.loads(row)))
    assert part == [("a", "x", "1")]
    assert told == [
        {"text": None, "label": "y", "id": 2},
        {"text": "b", "label": " ", "id": 3},
    ]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("data.csv", "number,text,label\n7,a,x\n"),
        ("data.tsv", "number\ttext\tlabel\n7\ta\tx\n"),
        ("data.jsonl", '{"number": 7, "text": "a", "label": "x"}'),
    ],
)
def test_ids(tmp_path, name, content):
    path = write(tmp_path, content, name)
    assert list(iter_records(path, TextColumns(id="number"))) == [[("a", "x", "7")]]
    with pytest.raises(LocoleError, match="name the column of the ids by id="):
        list(iter_records(path, TextColumns(id="none")))


@pytest.mark.parametrize("kind", ["txt", "tsv", "csv", "jsonl"])
def test_a_stream_is_handed_out_as_it_comes(kind):
    line = {"txt": b"a\n", "tsv": b"x\ta\n", "csv": b"x,a\n", "jsonl": b'{"text": "a"}\n'}[kind]
    reader, writer = os.pipe()
    os.write(writer, b"label,text\n" * (kind == "csv") + line)
    parts = iter_texts(f"/dev/fd/{reader}", format=kind, labelled=False, batch_rows=100)
    assert next(parts) == (["a"], None)
    os.write(writer, line * 3)
    assert next(parts) == (["a"] * 3, None)
    os.close(writer)
    assert list(parts) == []
    os.close(reader)


# --- Parquet ---


def parquet(folder, **columns):
    path = folder / "data.parquet"
    pq.write_table(pa.table(columns), path)
    return path


def test_parquet_columns(tmp_path):
    path = parquet(
        tmp_path,
        number=pa.array([3, 4], pa.int16()),
        Text=pa.array(["a", "b"]).dictionary_encode(),
        label=pa.array(["x", "y"], pa.large_string()),
    )
    assert read(path) == [("a", "x"), ("b", "y")]
    assert read(path, label="number") == [("a", "3"), ("b", "4")]


def test_parquet_in_many_batches(tmp_path):
    n = 10_000
    path = parquet(tmp_path, text=[f"text {i}" for i in range(n)], label=list(range(n)))
    texts, labels = load_texts(path)
    assert texts[-1] == "text 9999"
    assert labels.tolist() == [str(i) for i in range(n)]


@pytest.mark.parametrize(
    ("columns", "options", "reason"),
    [
        ({"a": ["x"]}, {}, "no column 'text' among 'a'"),
        ({"text": [1], "label": ["x"]}, {}, "column 'text' does not hold texts"),
        (
            {"text": ["a"], "label": [1.5]},
            {},
            "column 'label' holds neither texts nor whole numbers",
        ),
        ({"text": ["a", None], "label": ["x", "y"]}, {}, "row 2: text or label is missing"),
        ({"text": ["a", "b"], "label": [1, None]}, {}, "row 2: text or label is missing"),
        ({"text": ["a"], "label": ["x"]}, {"text": 0, "label": 1}, "have names: give text= and"),
    ],
    ids=str,
)
def test_bad_parquet(tmp_path, columns, options, reason):
    with pytest.raises(LocoleError, match=reason):
        load_texts(parquet(tmp_path, **columns), **options)


def test_damaged_parquet(tmp_path):
    data = as_parquet([("some text", "x")] * 50)
    step = max(1, len(data) // 40)
    for place in range(0, len(data), step):
        for damaged in (data[:place], data[:place] + b"\xff" + data[place + 1 :]):
            path = write(tmp_path, damaged, "data.parquet")
            try:
                texts, _ = load_texts(path)
            except LocoleError:
                continue
            assert len(texts) == 50
    with pytest.raises(LocoleError, match="is no Parquet file, or damaged"):
        load_texts(write(tmp_path, b"PAR1" * 5, "data.parquet"))


def test_without_the_package_the_error_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install locole\[parquet\]"):
        load_texts(tmp_path / "data.parquet")


# --- texts alone, standard input, formats ---


def test_texts_alone(tmp_path):
    path = write(tmp_path, "a\tb\r\n\nc", "data.txt")
    assert load_texts(path) == (["a\tb", "", "c"], None)
    assert list(iter_texts(path, batch_rows=2)) == [(["a\tb", ""], None), (["c"], None)]


def test_standard_input(monkeypatch):
    def feed(data):
        stream = io.TextIOWrapper(io.BufferedReader(io.BytesIO(data)))
        monkeypatch.setattr("sys.stdin", stream)

    feed(b"a\nb\n")
    assert load_texts("-") == (["a", "b"], None)
    feed(b"x\ta\n")
    assert read("-", format="tsv") == [("a", "x")]
    with pytest.raises(LocoleError, match="Parquet cannot be read from standard input"):
        load_texts("-", format="parquet")


def test_formats(tmp_path):
    path = write(tmp_path, "x\ta\n", "data.dat")
    assert read(path, format="tsv") == [("a", "x")]
    with pytest.raises(
        LocoleError, match=r"data\.dat: the suffix is none of \.tsv, .*: give format="
    ):
        load_texts(path)
    with pytest.raises(LocoleError, match="unknown format 'xls': take one of auto, tsv"):
        load_texts(path, format="xls")
    with pytest.raises(LocoleError, match="batch_rows must be at least 1"):
        iter_texts(path, format="tsv", batch_rows=0)


@pytest.mark.parametrize("name", ["data.tsv", "data.csv", "data.jsonl", "data.txt"])
def test_bytes_that_are_not_utf_8(tmp_path, name):
    start = {"data.csv": b"text,label\n", "data.jsonl": b'{"text": "a", "label": "b"}\n'}
    path = write(tmp_path, start.get(name, b"x\ta\n") + b"x\tcaf\xe9\n", name)
    with pytest.raises(
        LocoleError, match=rf"{name}, line 2: byte 0xe9 is not UTF-8: give encoding="
    ):
        load_texts(path)


@given(st.binary(max_size=60), st.sampled_from(["tsv", "csv", "jsonl", "txt"]))
@settings(max_examples=200)
def test_any_bytes_give_rows_or_a_clear_error(tmp_path_factory, data, kind):
    path = write(tmp_path_factory.getbasetemp(), b"text,label\n" + data, f"data.{kind}")
    try:
        texts, labels = load_texts(path)
    except LocoleError:
        return
    assert kind == "txt" or len(texts) == len(labels)


def test_texts_that_do_not_fit(tmp_path, monkeypatch):
    monkeypatch.setattr(growing, "available_bytes", lambda: 1000)
    with pytest.raises(LocoleError, match="does not fit into memory"):
        load_texts(write(tmp_path, "x\ta\n", "data.tsv"))
    assert len(list(iter_texts(write(tmp_path, "x\ta\n", "data.tsv")))) == 1


def test_labels_are_shared(tmp_path):
    _, labels = load_texts(write(tmp_path, "a label\ttext\n" * 3, "data.tsv"))
    assert labels[0] is labels[2]
