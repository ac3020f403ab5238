"""``locole fit``: from a file of rows with labels to a model on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from locole.cli.options import (
    Address,
    EncoderName,
    EngineName,
    Jobs,
    Json,
    LabelColumn,
    LabelSeparator,
)
from locole.cli.reading import Reading, column_of
from locole.methods import names_of

if TYPE_CHECKING:
    from locole.cli.steps import Steps

__all__ = ["EXAMPLES", "fit"]

EXAMPLES = (
    "locole fit train.tsv -o model --test test.tsv",
    "locole fit train.csv -o model --text-column title --label-column category",
    "locole fit train.csv -o model --text-column title --text-column price --label-column category "
    "--delimiter , --encoding cp1252 --skip-bad-rows bad.csv --note 'with prices'",
    "locole fit train.svm -o model --embedding kerdock --dim 256 --storage float16",
    "locole fit train.tsv -o model --regressor mlp --set hidden=1024 --set epochs=5",
    "locole fit train.tsv -o model --model centroids",
    "locole fit vectors.npz -o model --dense X --label-column y",
    "locole fit train.tsv -o model --encoder encoders:letters",
    "locole fit tagged.tsv -o model --label-separator '|'",
    "locole fit train.tsv -o model --label-texts names.tsv",
)


def fit(
    train: Annotated[str, typer.Argument(metavar="TRAIN", help="File of rows with labels.")],
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="MODEL", help="Folder for the model.")
    ],
    test: Annotated[
        str | None, typer.Option("--test", help="Also measure the accuracy on this file.")
    ] = None,
    kind: Annotated[
        str,
        typer.Option("--model", metavar="NAME", help=f"locole, {', '.join(names_of('baseline'))}."),
    ] = "locole",
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Parameter of the baseline or regressor; any number.",
        ),
    ] = None,
    embedding: Annotated[str, typer.Option(help="Which vectors represent labels.")] = "auto",
    dim: Annotated[int | None, typer.Option(help="Entries of a label's vector.")] = None,
    regressor: Annotated[
        str, typer.Option(help=f"auto, {', '.join(names_of('regressor'))}.")
    ] = "auto",
    profiles: Annotated[
        bool | None,
        typer.Option(
            "--profiles/--no-profiles",
            help="Add label profiles; by default with auto and with mlp.",
        ),
    ] = None,
    l1: Annotated[float | None, typer.Option(help="Penalty of the elastic net.")] = None,
    l2: Annotated[float | None, typer.Option(help="Penalty; by default it is chosen.")] = None,
    passes: Annotated[int | None, typer.Option(help="Passes over the data, at most.")] = None,
    storage: Annotated[
        str | None, typer.Option(help="Weights as float32, float16, int8 or int4.")
    ] = None,
    analyzer: Annotated[
        str, typer.Option(help="What of texts is counted: word, char, both or auto.")
    ] = "auto",
    min_df: Annotated[int, typer.Option(help="Leave out terms of fewer texts.")] = 1,
    hash_size: Annotated[
        int | None, typer.Option("--hash", help="Hash terms into so many columns.")
    ] = None,
    encoder: EncoderName = None,
    label_texts: Annotated[
        str | None,
        typer.Option(help="File of labels and what they are called, also of labels without rows."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    jobs: Jobs = -1,
    engine: EngineName = "threads",
    address: Address = None,
    label_column: LabelColumn = None,
    label_separator: LabelSeparator = None,
    reading: Reading = Reading(),  # noqa: B008 - it does not change
    labels: Annotated[
        str | None,
        typer.Option(help="Labels of LIBSVM files: int, text, or auto, by the first one."),
    ] = None,
    note: Annotated[
        str | None, typer.Option(help="Kept with the model, for inspect to show.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a model that is there.")] = False,
    json: Json = False,
) -> None:
    """Train a model on a file and save it.

    Texts with labels are read from .tsv (label, tab, text), .csv, .jsonl or .parquet, numbers from .svm
    (LIBSVM), .xmc or .npz, all but the last two also packed by gzip, xz or bzip2. Prints seconds and
    peak memory of each step and what was chosen.

    --l1, --l2, --passes and --storage are the regressor's, and choose the elastic net alone unless
    --regressor names another one. --model trains one of the systems that locole is compared with
    instead. --encoder joins words with the vectors that a function of yours makes of the same texts.
    --label-texts names labels (label, tab, text; several lines of a label are joined), so that labels
    without rows can be answered, too. --set gives parameters of a baseline, or of the regressor that is
    named. --engine ray learns the elastic net, a network or ppd_sparse on the nodes of a Ray cluster,
    with the same result.

    Rows have several labels if --label-separator says what stands between them, if the labels of a
    JSON line are a list, or if lines of an .xmc file have several.
    """
    from locole.cli.places import (
        check_file_place,
        check_model_place,
        check_old_model,
        check_readable,
    )
    from locole.cli.show import say

    reading = reading._replace(
        label=column_of(label_column), labels=labels, label_separator=label_separator
    )
    check_readable(train, test, label_texts)
    check_file_place(reading.bad_rows, train, test, label_texts)
    check_model_place(output, force=force)
    say("starting …")  # what is imported from here on takes a second or two
    check_old_model(output)
    _check_formats(reading, train, test)
    from locole.cli.encoders import find_encoder
    from locole.cli.engines import set_engine
    from locole.cli.steps import Steps
    from locole.cli.training import make_classifier, train_model
    from locole.text import TextFeatures

    options = {"l1": l1, "l2": l2, "passes": passes, "storage": storage}
    if kind == "locole":
        classifier = make_classifier(
            embedding, dim, regressor, options, settings=settings or (), profiles=profiles,
            seed=seed, jobs=jobs,
        )  # fmt: skip
    else:
        from locole.cli.baselines import make_baseline

        typed = {"embedding": embedding, "dim": dim, "regressor": regressor, **options}
        typed["profiles"] = profiles
        classifier = make_baseline(kind, settings or [], typed, seed=seed, jobs=jobs)
    features = TextFeatures(analyzer, min_df=min_df, n_features=hash_size)  # type: ignore[arg-type]
    for part in (classifier, features):
        part.check_parameters()
    set_engine(classifier, engine, address)
    steps = Steps(quiet=json)
    model, notes = train_model(
        train, reading, classifier, features, steps,
        encoder=find_encoder(encoder), label_texts=label_texts,
    )  # fmt: skip
    notes |= {} if note is None else {"note": note}
    n_bytes = _save(model, notes, output, steps)
    figures = None if test is None else _test(model, notes, test, reading, steps)
    if json:
        from locole.cli.show import print_json

        result = {"model": output, "model_bytes": n_bytes, "steps": steps.records}
        print_json(result if figures is None else {**result, "test": figures})


def _check_formats(reading: Reading, *paths: str | None) -> None:
    for path in paths:
        if path is not None:
            reading.check(reading.kind(path), path)


def _save(model: Any, notes: dict[str, str], output: str, steps: Steps) -> int:
    from locole.cli.outputs import named
    from locole.cli.show import size
    from locole.cli.training import model_bytes
    from locole.io import write_model

    with named(output), steps.run("save", f"saving {output}") as record:
        write_model(output, model, notes=notes)
        record["bytes"] = model_bytes(output)
        record["summary"] = f"{output}: {size(record['bytes'])}"
    return int(record["bytes"])


def _test(
    model: Any, notes: dict[str, str], test: str, reading: Reading, steps: Steps
) -> dict[str, Any]:
    from locole.cli.evaluation import measure, predict_file, summary

    reading = reading._replace(more_bad_rows=True)  # after those of the training file
    with steps.run("test", f"testing on {test}") as record:
        figures = measure(predict_file(model, test, reading, notes=notes), model)
        record["rows"] = figures["rows"]
        record["summary"] = f"{figures['rows']:,} rows, {summary(figures)}"
    return figures
