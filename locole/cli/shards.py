"""Answers to the rows of a file, or of a folder of files, on the cores of one machine or many."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple, cast

from locole.cli.answers import FORMATS, answers_to
from locole.cli.asking import Asking
from locole.cli.examples import batches
from locole.cli.reading import Reading
from locole.datasets.sources import suffix_of
from locole.exceptions import LocoleError
from locole.parallel import Engine

__all__ = ["ShardSettings", "answer_shard", "answer_shards", "shards_of"]


class ShardSettings(NamedTuple):
    """What is the same for all shards."""

    model: Any
    notes: dict[str, str]
    reading: Reading
    asking: Asking
    format: str
    batch_rows: int
    with_text: bool = False


class Shard(NamedTuple):
    """A file of rows and the file for its answers; None is standard output."""

    rows: str
    answers: str | None


class Answered(NamedTuple):
    """How many rows were answered, and how many of them were empty."""

    rows: int = 0
    empty: int = 0


def shards_of(folder: str, output: str | None, format: str, *, resume: bool) -> list[Shard]:
    """Files of a folder by name, each with the path of its answers; those that are there are left out.

    Parameters
    ----------
    folder : str
        Where the rows are; hidden files and folders in it are not looked at.
    output : str
        Folder for the answers, which is made.
    format : str
        Suffix of the answers.
    resume : bool
        Whether answers that are there are kept; otherwise they are an error.
    """
    if format not in FORMATS:
        raise LocoleError(f"unknown output format {format!r}: take one of {', '.join(FORMATS)}.")
    if output in (None, "-"):
        raise LocoleError(f"{folder} is a folder: give a folder for the answers by -o.")
    # Workers of a cluster have working folders of their own.
    folder, target = os.path.abspath(folder), Path(os.path.abspath(output))
    if target.exists() and not target.is_dir():
        raise LocoleError(f"{output} is a file: answers of a folder go to a folder.")
    if target.exists() and os.path.samefile(folder, target):
        raise LocoleError(f"{output} has the rows in it: give another folder for the answers.")
    names = sorted(e.name for e in os.scandir(folder) if e.is_file() and e.name[0] != ".")
    if not names:
        raise LocoleError(f"{folder} has no files in it: is it the right folder?")
    shards = [Shard(os.path.join(folder, n), str(target / _answers(n, format))) for n in names]
    if len({shard.answers for shard in shards}) < len(shards):
        raise LocoleError(f"{folder} has files that differ in their suffix only: rename them.")
    target.mkdir(parents=True, exist_ok=True)
    left = [shard for shard in shards if not os.path.exists(str(shard.answers))]
    if len(left) < len(shards) and not resume:
        raise LocoleError(f"there are answers in {output}: take another folder, or --resume.")
    return left


def _answers(name: str, format: str) -> str:
    """Name of the file of answers: ``part-1.svm.gz`` gives ``part-1.parquet``."""
    suffix = suffix_of(name)
    stem = name[: name.lower().rindex(suffix)] if suffix else name
    return f"{stem or name}.{format}"


def answer_shards(
    settings: ShardSettings, shards: list[Shard], engine: Engine, *, n_jobs: int | None
) -> Answered:
    """Answer all shards; return the number of their rows.

    Each file of answers appears when it is complete, so what is there after an interruption can be
    kept.
    """
    found = engine.map(
        answer_shard, shards, shared=settings, n_jobs=n_jobs, description="predicting"
    )
    with closing(cast(Any, found)):
        counts = [count for _, count in found]
    return Answered(sum(c.rows for c in counts), sum(c.empty for c in counts))


def answer_shard(settings: ShardSettings, shard: Shard) -> Answered:
    """Answer the rows of one file; return their number."""
    parts = batches(
        shard.rows,
        settings.model,
        settings.reading,
        batch_rows=settings.batch_rows,
        labelled=False,
        notes=settings.notes,
        doing="predicting",
    )
    beside = ["id"] if settings.reading.id is not None else []
    beside += ["text"] if settings.with_text else []
    n_rows = n_empty = 0
    classes = settings.model.classes_
    asking = settings.asking
    answers = answers_to(
        shard.answers, settings.format, asking.k, classes, beside, value=asking.value
    )
    with answers as write:
        for batch in parts:
            found = asking.answers(settings.model, batch.features)
            columns: dict[str, Any] = {"id": batch.ids, "text": batch.features}
            shown = {name: columns[name] for name in beside}
            write(found._replace(beside=shown, is_empty=batch.is_empty))
            n_rows += len(batch)
            n_empty += int(batch.is_empty.sum())
    return Answered(n_rows, n_empty)
