"""``locole predict``: the best labels of every row of a file or of standard input."""

from __future__ import annotations

import os
import sys
import time
from typing import Annotated, Any

import typer

from locole.cli.options import (
    Address,
    EngineName,
    Format,
    Jobs,
    Json,
    ModelPath,
    Reading,
    TextColumn,
    ZeroBased,
)

__all__ = ["EXAMPLES", "predict"]

EXAMPLES = (
    "locole predict model new.txt -k 3",
    "cat new.txt | locole predict model -k 1 | cut -f 1",
    "locole predict model test.svm -o answers.csv.gz",
)


def predict(
    model: ModelPath,
    file: Annotated[
        str,
        typer.Argument(
            metavar="[FILE]", help="Rows without labels; - is standard input. Or a folder of files."
        ),
    ] = "-",
    k: Annotated[
        int | None, typer.Option("-k", help="Labels of each row. [default: 5, or all if fewer]")
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", help="File that appears when it is complete, or folder."),
    ] = None,
    output_format: Annotated[
        str | None,
        typer.Option(help="tsv, csv, jsonl or parquet. [default: by the suffix, else tsv]"),
    ] = None,
    format: Format = "auto",
    text_column: TextColumn = None,
    zero_based: ZeroBased = None,
    batch: Annotated[int, typer.Option(help="Rows that are in memory at a time.")] = 8192,
    jobs: Jobs = -1,
    engine: EngineName = "threads",
    address: Address = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Keep the answers that are in the folder already.")
    ] = False,
    json: Json = False,
) -> None:
    """Write the best labels of every row, best first, with their scores.

    Rows come from a file of any format that fit reads, of which labels are skipped, or from standard
    input: a text a line, or LIBSVM lines if the model takes numbers. Any size will do, as rows are
    read, answered and forgotten in batches. Answers have the order of the rows. TSV has no header and
    columns label, score, label, score, ...; with --json a summary is printed, and answers need -o.

    For a folder, every file in it gets a file of answers, by default Parquet, in the folder that -o
    names; files are answered side by side, with --engine ray on all nodes of a Ray cluster.
    """
    from locole.cli.places import check_readable

    if not os.path.isdir(file):
        check_readable(file)
    from locole.cli.answers import answers_to
    from locole.cli.answers import output_format as format_of_output
    from locole.cli.examples import batches, open_model
    from locole.cli.show import print_json, say
    from locole.decoders.choose import checked_k
    from locole.exceptions import LocoleError

    if os.path.isdir(file):
        reading = Reading.of(format, text_column, None, zero_based)
        figures = _predict_folder(
            model, file, k, output, output_format, reading, batch, jobs, engine, address, resume
        )
        if json:
            print_json(figures)
        else:
            say(f"{output}: {figures['rows']:,} rows in {figures['seconds']:.1f} s")
        return
    if engine != "threads" or address is not None or resume:
        raise LocoleError("--engine, --address and --resume are for a folder of files: give one.")
    if json and output in (None, "-"):
        raise LocoleError("--json needs -o; for answers in JSON take --output-format jsonl.")
    kind = format_of_output(output, output_format)
    loaded, notes = open_model(model, jobs=jobs)
    classes = loaded.classes_
    k = min(5, len(classes)) if k is None else checked_k(k, len(classes))
    reading = Reading.of(format, text_column, None, zero_based)
    if file == "-" and sys.stdin.isatty():
        say("type a row and press Enter; Ctrl-D ends")
        batch = 1
    rows = batches(
        file, loaded, reading, batch_rows=batch, labelled=False, notes=notes, doing="predicting"
    )
    n_rows, start = 0, time.perf_counter()
    with answers_to(output, kind, k, classes) as write:
        for features, _ in rows:
            labels, scores = loaded.predict_topk(features, k=k)
            write(labels, scores)
            n_rows += len(labels)
    seconds = time.perf_counter() - start
    if json:
        figures = {"rows": n_rows, "seconds": seconds, "rows_per_s": n_rows / max(seconds, 1e-9)}
        print_json({"output": output, "format": kind, "k": k, **figures})
    elif output not in (None, "-"):
        say(f"{output}: {n_rows:,} rows in {seconds:.1f} s")


def _predict_folder(
    model: str,
    folder: str,
    k: int | None,
    output: str | None,
    output_format: str | None,
    reading: Reading,
    batch: int,
    jobs: int,
    engine: str,
    address: str | None,
    resume: bool,
) -> dict[str, Any]:
    from locole.cli.examples import open_model
    from locole.cli.shards import ShardSettings, answer_shards, shards_of
    from locole.decoders.choose import checked_k
    from locole.parallel import make_engine

    kind = output_format or "parquet"
    where = make_engine(engine, address=address)
    loaded, notes = open_model(model, jobs=1)  # files are side by side, not rows
    n_classes = len(loaded.classes_)
    k = min(5, n_classes) if k is None else checked_k(k, n_classes)
    shards = shards_of(folder, output, kind, resume=resume)
    start = time.perf_counter()
    settings = ShardSettings(loaded, notes, reading, k, kind, batch)
    rows = answer_shards(settings, shards, where, n_jobs=jobs)
    seconds = time.perf_counter() - start
    total = sum(rows.values())
    return {
        "output": output,
        "format": kind,
        "k": k,
        "files": len(rows),
        "rows": total,
        "seconds": seconds,
        "rows_per_s": total / max(seconds, 1e-9),
    }
