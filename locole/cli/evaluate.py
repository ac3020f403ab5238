"""``locole evaluate``: figures of a model on a file with labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from locole.cli.options import EncoderName, Jobs, Json, LabelColumn, LabelSeparator, ModelPath
from locole.cli.reading import Reading, column_of

if TYPE_CHECKING:
    from locole.cli.evaluation import Predictions

__all__ = ["EXAMPLES", "evaluate"]

EXAMPLES = (
    "locole evaluate model test.tsv",
    "locole evaluate model test.tsv --json",
    "locole evaluate model test.tsv --report labels.csv --worst 10",
    "locole evaluate model test.tsv --plot trust.html",
)


def evaluate(
    model: ModelPath,
    test: Annotated[str, typer.Argument(metavar="TEST", help="File of rows with labels.")],
    k: Annotated[
        int | None, typer.Option("-k", help="Count an answer among the first k. [default: 5]")
    ] = None,
    report: Annotated[
        str | None, typer.Option(help="Write figures of every label to this .tsv or .csv file.")
    ] = None,
    worst: Annotated[int, typer.Option(help="Labels with most mistakes to show.")] = 5,
    plot: Annotated[
        str | None,
        typer.Option(help="Draw reliability and risk against coverage on this .html page."),
    ] = None,
    label_column: LabelColumn = None,
    label_separator: LabelSeparator = None,
    reading: Reading = Reading(),  # noqa: B008 - it does not change
    encoder: EncoderName = None,
    jobs: Jobs = -1,
    json: Json = False,
) -> None:
    """Measure a model on a file with labels.

    Prints accuracy, how often the label is among the first k, precision, recall and F1, and the labels
    with most mistakes with what they were taken for. Models that say how sure they are get figures of
    that: calibration error, log loss, Brier score, accuracy of the surest rows, and coverage and size of
    label sets for 90 %, also by the labels' number of training rows. Columns of tables are by default
    those of the training file. Rows whose label the model has never seen count as mistakes, and their
    number is printed.

    For several labels of each row: precision, recall, nDCG and F1 of the first answers, and micro, macro
    and row-wise F1 of the sets of labels that the model predicts.
    """
    from locole.cli.places import check_file_place, check_readable

    check_readable(test)
    check_file_place(report, test)
    check_file_place(plot, test, report)
    check_file_place(reading.bad_rows, test, report, plot)
    from locole.cli.evaluation import measure, predict_file, worst_labels
    from locole.cli.examples import is_multilabel, open_model
    from locole.cli.show import print_json
    from locole.cli.trust import by_frequency
    from locole.exceptions import LocoleError

    if worst < 0:
        raise LocoleError(f"--worst must not be negative, but is {worst}.")
    kind = None if report is None else _report_format(report)
    if plot is not None and not plot.lower().endswith((".html", ".htm")):
        raise LocoleError(f"{plot}: --plot writes an .html page: rename it.")
    loaded, notes = open_model(model, jobs=jobs, encoder=encoder)
    for option, path in ("--report", report), ("--plot", plot):
        if path is not None and is_multilabel(loaded):
            raise LocoleError(f"{option} is for rows with one label each: leave it out.")
    reading = reading._replace(label=column_of(label_column), label_separator=label_separator)
    predictions = predict_file(loaded, test, reading, notes=notes, k=k)
    figures = measure(predictions, loaded)
    mistakes = [] if predictions.has_several else worst_labels(predictions, worst)
    if report is not None:
        _write_report(predictions, report, str(kind))
    bands = [] if predictions.confidences is None else by_frequency(predictions.confidences)
    if plot is not None:
        _write_page(predictions, figures, plot)
    if json:
        print_json({**figures, "by_frequency": bands, "worst": mistakes})
    else:
        _print(figures, bands, mistakes)


def _write_page(predictions: Predictions, figures: dict[str, Any], plot: str) -> None:
    from locole.cli.outputs import written
    from locole.cli.trust_page import render
    from locole.exceptions import LocoleError

    if predictions.confidences is None:
        raise LocoleError("--plot needs a model that says how sure it is: this one does not.")
    content = render(predictions.confidences, figures).encode()
    with written(plot) as file:
        file.write(content)


def _print_bands(bands: list[dict[str, Any]]) -> None:
    from locole.cli.show import print_table

    if bands:
        print("\nby the number of training rows of the label")
        header = [name.replace("_", " ") for name in bands[0]]
        print_table(header, [list(band.values()) for band in bands])


def _report_format(report: str) -> str:
    from locole.datasets.sources import suffix_of
    from locole.exceptions import LocoleError

    suffix = suffix_of(report)
    if suffix not in (".tsv", ".csv"):
        raise LocoleError(f"{report}: a report is a .tsv or a .csv file: rename it.")
    return suffix[1:]


def _write_report(predictions: Predictions, report: str, kind: str) -> None:
    from locole.cli.answers import table_lines
    from locole.cli.outputs import written
    from locole.metrics import per_label_report

    columns = per_label_report(predictions.true, predictions.best[:, 0])
    content = table_lines(list(columns), list(columns.values()), kind)
    with written(report) as file:
        file.write(content)


def _print(
    figures: dict[str, Any], bands: list[dict[str, Any]], mistakes: list[dict[str, Any]]
) -> None:
    from locole.cli.show import print_pairs, print_table

    print_pairs({name.replace("_", " "): value for name, value in figures.items()})
    _print_bands(bands)
    if mistakes:
        print("\nlabels with most mistakes")
        rows = [
            (
                *(label[name] for name in ("label", "rows", "wrong")),
                ", ".join(f"{other['label']} ({other['rows']})" for other in label["taken_for"]),
            )
            for label in mistakes
        ]
        print_table(["label", "rows", "wrong", "taken for (rows)"], rows)
