"""``locole predict``: the best labels of every row of a file or of standard input."""

from __future__ import annotations

import sys
import time
from typing import Annotated

import typer

from locole.cli.options import Format, Jobs, Json, ModelPath, Reading, TextColumn, ZeroBased

__all__ = ["EXAMPLES", "predict"]

EXAMPLES = (
    "locole predict model new.txt -k 3",
    "cat new.txt | locole predict model -k 1 | cut -f 1",
    "locole predict model test.svm -o answers.csv.gz",
)


def predict(
    model: ModelPath,
    file: Annotated[
        str, typer.Argument(metavar="[FILE]", help="Rows without labels; - is standard input.")
    ] = "-",
    k: Annotated[
        int | None, typer.Option("-k", help="Labels of each row. [default: 5, or all if fewer]")
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", help="File that appears when it is complete."),
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
    json: Json = False,
) -> None:
    """Write the best labels of every row, best first, with their scores.

    Rows come from a file of any format that fit reads, of which labels are skipped, or from standard
    input: a text a line, or LIBSVM lines if the model takes numbers. Any size will do, as rows are
    read, answered and forgotten in batches. Answers have the order of the rows. TSV has no header and
    columns label, score, label, score, ...; with --json a summary is printed, and answers need -o.
    """
    from locole.cli.answers import answers_to
    from locole.cli.answers import output_format as format_of_output
    from locole.cli.examples import batches, open_model
    from locole.cli.show import print_json, say
    from locole.decoders.choose import checked_k
    from locole.exceptions import LocoleError

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
