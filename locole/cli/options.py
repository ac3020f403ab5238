"""Options that several verbs share, and how a file is to be read."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import typer

__all__ = [
    "Address",
    "EngineName",
    "Format",
    "Jobs",
    "Json",
    "LabelColumn",
    "ModelPath",
    "Reading",
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
    str | None,
    typer.Option(
        "--text-column",
        help="Column of the texts: its name, or its number from 0 if there is no header.",
    ),
]
LabelColumn = Annotated[
    str | None, typer.Option("--label-column", help="Column of the labels, by name or number.")
]
ZeroBased = Annotated[
    bool | None,
    typer.Option(
        "--zero-based/--one-based",
        help="What the first feature of a LIBSVM file is called. By default as in the training "
        "file, and there 0 if index 0 occurs.",
    ),
]


class Reading(NamedTuple):
    """How to read a file."""

    format: str = "auto"
    text: str | int | None = None
    label: str | int | None = None
    zero_based: bool | None = None
    labels: str = "auto"

    @classmethod
    def of(
        cls,
        format: str,
        text: str | None,
        label: str | None,
        zero_based: bool | None,
        labels: str = "auto",
    ) -> Reading:
        """Take options as they were typed; columns that are numbers are counted from 0.

        Examples
        --------
        >>> Reading.of("csv", "1", "city", None)
        Reading(format='csv', text=1, label='city', zero_based=None, labels='auto')
        """
        return cls(format, _column(text), _column(label), zero_based, labels)


def _column(name: str | None) -> str | int | None:
    return int(name) if name is not None and name.isdecimal() and name.isascii() else name
