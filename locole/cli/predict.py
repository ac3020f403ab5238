"""``locole predict``: the best labels of every row of a file or of standard input."""

from __future__ import annotations

import os
import sys
import time
from typing import Annotated, Any

import typer

from locole.cli.options import Address, EncoderName, EngineName, Jobs, Json, ModelPath
from locole.cli.reading import Reading, column_of

__all__ = ["EXAMPLES", "predict"]

EXAMPLES = (
    "locole predict model new.txt -k 3",
    "cat new.txt | locole predict model -k 1 | cut -f 1",
    "locole predict model test.svm -o answers.csv.gz",
    "locole predict model new.txt --max-error 0.1 -k 1 --output-format jsonl",
    "locole predict model new.txt --set 0.9",
    "locole predict model test.csv --text-column title --id-column price --with-text -o answers.csv",
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
    id_column: Annotated[
        str | None, typer.Option(help="Column that names the rows, to stand before the answers.")
    ] = None,
    with_text: Annotated[
        bool, typer.Option("--with-text", help="Put the text of each row before its answers.")
    ] = False,
    proba: Annotated[
        bool, typer.Option("--proba", help="Give probabilities in place of scores.")
    ] = False,
    min_proba: Annotated[
        float | None, typer.Option(help="Hold answers back whose probability is smaller.")
    ] = None,
    max_error: Annotated[
        float | None,
        typer.Option(help="Hold answers back so that at most this share of the others is wrong."),
    ] = None,
    set_coverage: Annotated[
        float | None,
        typer.Option("--set", help="Give label sets that hold the right label this often."),
    ] = None,
    reading: Reading = Reading(),  # noqa: B008 - it does not change
    batch: Annotated[int, typer.Option(help="Rows that are in memory at a time.")] = 8192,
    encoder: EncoderName = None,
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
    read, answered and forgotten in batches, those of a pipe as they come. Answers have the order of
    the rows. TSV has no header and columns label, score, label, score, ...; with --json a summary is
    printed, and answers need -o. Columns of tables are by default those of the training file. Empty
    texts are answered by how frequent labels are, and counted. Answers that --min-proba or --max-error
    hold back have empty labels. With --set a row has any number of labels, likeliest first, without
    probabilities; that needs TSV or JSON lines.

    For a folder, every file in it gets a file of answers, by default Parquet, in the folder that -o
    names; files are answered side by side, with --engine ray on all nodes of a Ray cluster.
    """
    from locole.cli.places import check_file_place, check_readable
    from locole.cli.show import print_json, say, warn

    is_folder = os.path.isdir(file)
    if not is_folder:
        check_readable(file)
        _check_single(engine, address, output, resume=resume, json=json)
        check_file_place(output, file)
        check_file_place(reading.bad_rows, file, output)
    reading = reading._replace(id=column_of(id_column))
    from locole.cli.answers import output_format as format_of_output
    from locole.cli.asking import Asking
    from locole.cli.examples import open_model
    from locole.cli.shards import Shard, ShardSettings, answer_shard, answer_shards, shards_of
    from locole.decoders.choose import checked_k
    from locole.exceptions import LocoleError
    from locole.parallel import make_engine

    where = make_engine(engine, address=address)
    kind = (output_format or "parquet") if is_folder else format_of_output(output, output_format)
    # Files of a folder are side by side, not rows.
    loaded, notes = open_model(model, jobs=1 if is_folder else jobs, encoder=encoder)
    n_classes = len(loaded.classes_)
    if set_coverage is not None and k is not None:
        raise LocoleError("--set says how many labels a row gets: leave -k out.")
    k = min(5, n_classes) if k is None else checked_k(k, n_classes)
    _check_beside(loaded, reading, with_text=with_text, is_folder=is_folder)
    least = _least_proba(loaded, min_proba, max_error)
    asking = Asking(k, proba, least, _checked_coverage(set_coverage, kind, least, proba=proba))
    settings = ShardSettings(loaded, notes, reading, asking, kind, batch, with_text)
    figures: dict[str, Any] = {"output": output, "format": kind, "k": k}
    start = time.perf_counter()
    if is_folder:
        shards = shards_of(file, output, kind, resume=resume)
        figures["files"] = len(shards)
        n_rows, n_empty = answer_shards(settings, shards, where, n_jobs=jobs)
    else:
        if file == "-" and sys.stdin.isatty():
            say("type a row and press Enter; Ctrl-D ends")
        n_rows, n_empty = answer_shard(settings, Shard(file, output))
    seconds = time.perf_counter() - start
    if n_empty:
        warn(
            f"{n_empty:,} of {n_rows:,} texts are empty: they are answered by how frequent labels are."
        )
    if json:
        figures |= {"rows": n_rows, "empty_rows": n_empty, "seconds": seconds}
        print_json({**figures, "rows_per_s": n_rows / max(seconds, 1e-9)})
    elif output not in (None, "-"):
        say(f"{output}: {n_rows:,} rows in {seconds:.1f} s")


def _check_single(
    engine: str, address: str | None, output: str | None, *, resume: bool, json: bool
) -> None:
    from locole.exceptions import LocoleError

    if engine != "threads" or address is not None or resume:
        raise LocoleError("--engine, --address and --resume are for a folder of files: give one.")
    if json and output in (None, "-"):
        raise LocoleError("--json needs -o; for answers in JSON take --output-format jsonl.")


def _check_beside(model: Any, reading: Reading, *, with_text: bool, is_folder: bool) -> None:
    from locole.cli.examples import takes_texts
    from locole.exceptions import LocoleError

    if with_text and not takes_texts(model):
        raise LocoleError("--with-text is for models of texts, not of numbers: leave it out.")
    if is_folder and reading.bad_rows is not None:
        raise LocoleError("--skip-bad-rows is for a single file: leave it out.")


def _least_proba(model: Any, min_proba: float | None, max_error: float | None) -> float | None:
    """Probability below which answers are held back, if any are."""
    from locole.exceptions import LocoleError

    if min_proba is not None and max_error is not None:
        raise LocoleError("--min-proba and --max-error both say which answers to give: take one.")
    if min_proba is not None and not 0 <= min_proba <= 1:
        raise LocoleError(f"--min-proba must be a number from 0 to 1, not {min_proba}.")
    return min_proba if max_error is None else float(model.threshold(max_error=max_error))


def _checked_coverage(
    coverage: float | None, kind: str, least: float | None, *, proba: bool
) -> float | None:
    from locole.exceptions import LocoleError

    if coverage is None:
        return None
    if not 0 < coverage < 1:
        raise LocoleError(f"--set must be a number above 0 and below 1, not {coverage}.")
    if proba or least is not None:
        raise LocoleError("--set gives labels without probabilities: leave the other options out.")
    if kind not in ("tsv", "jsonl"):
        raise LocoleError("sets have different sizes: take --output-format tsv or jsonl for --set.")
    return coverage
