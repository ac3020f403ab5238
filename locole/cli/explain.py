"""``locole explain``: why a model answers what it answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from locole.cli.options import Json, ModelPath

if TYPE_CHECKING:
    from locole.explanations import Explanation

__all__ = ["EXAMPLES", "explain"]

EXAMPLES = (
    'locole explain model "a text to classify"',
    'locole explain model "a text to classify" --json',
)

_SHOWN = 10


def explain(
    model: ModelPath,
    row: Annotated[
        str,
        typer.Argument(
            metavar="TEXT", help="The text; or INDEX:VALUE pairs if the model takes numbers."
        ),
    ],
    label: Annotated[
        str | None, typer.Option(help="Label to explain. [default: the answer]")
    ] = None,
    against: Annotated[
        str | None, typer.Option(help="Explain the lead of the label over this one.")
    ] = None,
    json: Json = False,
) -> None:
    """Say what each word of a text, or each feature of a row, adds to the score of a label.

    Words that speak for the label are green, words against it red; the table has the terms that count
    most. Everything adds up to the score. With --json all terms are listed.
    """
    from locole.cli.examples import open_model, takes_texts
    from locole.cli.show import print_json

    loaded, notes = open_model(model, jobs=1)
    rows: Any = [row] if takes_texts(loaded) else _numbers(row, loaded, notes)
    named = {"label": _label(loaded, label), "against": _label(loaded, against)}
    found = loaded.explain(rows, named["label"], against=named["against"])[0]
    proba = _probability(loaded, rows, found)
    if json:
        print_json({**found.to_dict(), "probability": proba})
    else:
        _print(found, proba)


def _probability(model: Any, rows: Any, found: Explanation) -> float | None:
    """Probability of the label if it is the answer."""
    from locole.exceptions import LocoleError

    try:
        labels, proba = model.predict_topk(rows, k=1, proba=True)
    except LocoleError:
        return None
    return float(proba[0, 0]) if labels[0, 0] == found.label else None


def _label(model: Any, text: str | None) -> Any:
    """Label as the model has it."""
    if text is None:
        return None
    from locole.exceptions import LocoleError

    kind = model.classes_.dtype.kind
    try:
        return text if kind in "OU" else model.classes_.dtype.type(text)
    except (ValueError, OverflowError):
        raise LocoleError(
            f"labels of the model are numbers, and {text!r} is not a number."
        ) from None


def _numbers(row: str, model: Any, notes: dict[str, str]) -> Any:
    """One sparse row from index:value pairs."""
    from scipy.sparse import csr_matrix

    from locole.cli.examples import FIRST_INDEX
    from locole.exceptions import LocoleError

    first = 0 if notes.get(FIRST_INDEX, "0") == "0" else 1
    try:
        pairs = [pair.split(":") for pair in row.split()]
        columns = [int(index) - first for index, _ in pairs]
        values = [float(value) for _, value in pairs]
    except ValueError:
        raise LocoleError("a row of numbers is written as INDEX:VALUE INDEX:VALUE ....") from None
    shape = (1, int(model.n_features_in_))
    if not all(0 <= column < shape[1] for column in columns):
        raise LocoleError(f"the model has features {first} to {first + shape[1] - 1} only.")
    return csr_matrix((values, ([0] * len(columns), columns)), shape=shape)


def _print(found: Explanation, proba: float | None) -> None:
    from rich.console import Console
    from rich.text import Text

    from locole.cli.process import visible
    from locole.cli.show import print_table

    title = found.title if proba is None else f"{found.title}, probability {proba:.3f}"
    print(visible(title))
    if found.words:
        largest = max(abs(value) for _, value in found.words) or 1.0
        marked = Text(" ").join(
            Text(visible(word), style=_style(value / largest)) for word, value in found.words
        )
        Console(highlight=False).print(marked)
    print()
    rest = found.features[_SHOWN:]
    rows = [(f"{value:+.3f}", visible(name)) for name, value in found.features[:_SHOWN]]
    if rest:
        total = sum(value for _, value in rest)
        rows.append((f"{total:+.3f}", f"{len(rest):,} other features"))
    rows += [(f"{value:+.3f}", f"({name})") for name, value in found.others.items()]
    print_table(["adds", "feature"], rows)


def _style(share: float) -> str:
    """Background of a word that adds this share of the largest contribution."""
    if abs(share) < 0.05:
        return ""
    light = int(60 + 120 * abs(share))
    return f"white on rgb(20,{light},40)" if share > 0 else f"white on rgb({light},20,30)"
