"""``locole update``: let a model learn the rows of a day."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from locole.cli.options import EncoderName, Jobs, Json, LabelColumn, LabelSeparator, ModelPath
from locole.cli.reading import Reading, column_of

if TYPE_CHECKING:
    from locole.io import Manifest

__all__ = ["EXAMPLES", "update"]

EXAMPLES = (
    "locole update model monday.tsv",
    "locole update model monday.tsv -o updated --json",
)


def update(
    model: ModelPath,
    rows: Annotated[str, typer.Argument(metavar="ROWS", help="File of new rows with labels.")],
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="MODEL", help="Folder for the new model."),
    ] = None,
    label_column: LabelColumn = None,
    label_separator: LabelSeparator = None,
    reading: Reading = Reading(),  # noqa: B008 - it does not change
    encoder: EncoderName = None,
    jobs: Jobs = -1,
    json: Json = False,
) -> None:
    """Learn new rows, which may have new labels and new words.

    The model is replaced in one step: whoever reads it, and whatever happens on the way, finds the old
    one or the new one. If somebody else replaces it meanwhile, that one stays, and the rows have to be
    learnt again. With --output the old one stays. Columns of tables are by default those of the
    training file.

    Prints what has changed: accuracy and calibration error on the new rows before they were learnt, on
    the model's own validation rows before and after, new labels, and labels with few rows.
    """
    from locole.cli.places import IN_PLACE, check_file_place, check_model_place, check_readable

    check_readable(rows)
    check_file_place(reading.bad_rows, rows)
    check_model_place(output or model, force=output is None, way_out=IN_PLACE)
    from locole.cli.drift import answers_to, change, health
    from locole.cli.examples import open_model, read_labelled
    from locole.cli.show import print_json
    from locole.cli.steps import Steps
    from locole.io import read_manifest

    # Read first: a model that is replaced from now on is not replaced again by what comes of the old.
    replaces = read_manifest(model) if output is None else None
    loaded, notes = open_model(model, jobs=jobs, encoder=encoder)
    _check_learns(loaded)
    known, steps = loaded.classes_, Steps(quiet=True)
    reading = reading._replace(label=column_of(label_column), label_separator=label_separator)
    with steps.run("read", f"reading {rows}"):
        batch = read_labelled(rows, loaded, reading, notes=notes)
    with steps.run("ask", "asking the model about the new rows"):
        found: dict[str, Any] = {"model": output or model}
        found["new_rows"] = answers_to(loaded, batch.features, batch.labels)
        found["validation"] = {"before": health(loaded)}
    with steps.run("learn", "learning"):
        loaded.partial_fit(batch.features, batch.labels)
    with steps.run("save", f"saving {output or model}"):
        save_dated(loaded, notes, output or model, replaces)
    found["validation"]["after"] = health(loaded)
    found |= change(loaded, known)
    found["steps"] = steps.records
    if json:
        print_json(found)
    else:
        _print(found)


def save_dated(
    model: Any, notes: dict[str, str], output: str, replaces: Manifest | None = None
) -> None:
    """Save a model whose journal says when."""
    from datetime import UTC, datetime

    from locole.cli.outputs import named
    from locole.io import write_model

    date = datetime.now(UTC).isoformat(timespec="seconds")
    classifier = getattr(model, "classifier_", model)
    classifier.past_ = classifier.past_.dated(date)
    kept = {name: value for name, value in notes.items() if name != "locole"}
    if "accuracy" in classifier.choice_:
        kept["validation_accuracy"] = f"{classifier.choice_['accuracy']:.4f}"
    with named(output):
        write_model(output, model, notes={**kept, "updated": date}, replaces=replaces)


def _check_learns(model: Any) -> None:
    """Refuse models that cannot learn more rows before these are read."""
    from locole.classifier import LocoleClassifier
    from locole.exceptions import LocoleError

    classifier = getattr(model, "classifier_", model)
    if not isinstance(classifier, LocoleClassifier):
        name = type(classifier).__name__
        raise LocoleError(f"{name} cannot learn more rows: fit again with all the data.")


def _print(found: dict[str, Any]) -> None:
    from locole.cli.show import print_pairs, print_table

    validation = found["validation"]
    names = list(dict.fromkeys([*found["new_rows"], *validation["after"]]))
    columns = [found["new_rows"], validation["before"], validation["after"]]
    lines = [(name.replace("_", " "), *(part.get(name, "") for part in columns)) for name in names]
    print_table(["", "new rows, before", "validation rows, before", "after"], lines)
    print()
    shown = {
        name.replace("_", " "): ", ".join(map(str, value)) if name.startswith("first") else value
        for name, value in found.items()
        if name not in ("new_rows", "validation", "steps")
    }
    shown["seconds"] = round(sum(step["seconds"] for step in found["steps"]), 1)
    print_pairs({name: value for name, value in shown.items() if value != ""})
