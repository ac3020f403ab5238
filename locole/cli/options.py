"""Options that several verbs share."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = [
    "Address",
    "Delimiter",
    "DenseColumn",
    "EncoderName",
    "Encoding",
    "EngineName",
    "Format",
    "Jobs",
    "Json",
    "LabelColumn",
    "LabelSeparator",
    "ModelPath",
    "SkipBadRows",
    "TextColumn",
    "ZeroBased",
]

ModelPath = Annotated[
    str, typer.Argument(metavar="MODEL", help="The folder that fit or save has made.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object for machines.")]
Jobs = Annotated[
    int, typer.Option("--jobs", "-j", help="Threads; -1 is all cores. Answers do not depend on it.")
]
EngineName = Annotated[
    str,
    typer.Option(
        "--engine", help="threads of this machine, or ray for the nodes of a Ray cluster."
    ),
]
Address = Annotated[
    str | None,
    typer.Option(
        "--address",
        help="HOST:PORT of a Ray cluster's head, auto, or local. By default RAY_ADDRESS, a cluster that "
        "this machine is part of, or one of its own.",
    ),
]
Format = Annotated[
    str,
    typer.Option(
        "--format",
        help="libsvm, xmc, npz, tsv, csv, jsonl, parquet or txt; auto goes by the suffix.",
    ),
]
TextColumn = Annotated[
    list[str] | None,
    typer.Option(
        "--text-column",
        help="Column of the texts: its name, or its number from 0 if there is no header. Several are "
        "joined. By default as in the training file.",
    ),
]
LabelColumn = Annotated[
    str | None, typer.Option("--label-column", help="Column of the labels, by name or number.")
]
DenseColumn = Annotated[
    str | None,
    typer.Option(
        "--dense",
        metavar="NAME",
        help="Rows are dense: this array of an .npz file, or column of lists of a Parquet file. An .npy "
        "file is dense by itself.",
    ),
]
EncoderName = Annotated[
    str | None,
    typer.Option(
        "--encoder",
        metavar="MODULE:FUNCTION",
        help="Function from a list of texts to an array of numbers, seen beside the words.",
    ),
]
LabelSeparator = Annotated[
    str | None,
    typer.Option(
        "--label-separator",
        metavar="TEXT",
        help="What stands between the labels of a row, which then has any number of them: '|' for "
        "tables, ',' for LIBSVM. By default as in the training file.",
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        "--delimiter", help=r"Character between the fields of TSV and CSV files; \t is a tab."
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option("--encoding", help="Of files of texts, such as cp1252. [default: utf-8]"),
]
SkipBadRows = Annotated[
    str | None,
    typer.Option(
        "--skip-bad-rows",
        metavar="FILE",
        help="Leave out rows of tables that cannot be read, and write them to this file.",
    ),
]
ZeroBased = Annotated[
    bool | None,
    typer.Option(
        "--zero-based/--one-based",
        help="What the first feature of a LIBSVM file is called. By default as in the training "
        "file, and there 0 if index 0 occurs.",
    ),
]
