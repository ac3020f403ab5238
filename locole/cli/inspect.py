"""``locole inspect``: what is in a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from locole.cli.options import Json, ModelPath

if TYPE_CHECKING:
    from locole.io.outline import Outline

__all__ = ["EXAMPLES", "inspect"]

EXAMPLES = ("locole inspect model", "locole inspect model --verify --json")

_SHOWN_LABELS, _SHOWN_ENTRIES = 5, 20


def inspect(
    model: ModelPath,
    verify: Annotated[
        bool, typer.Option("--verify", help="Compare all arrays with their hashes.")
    ] = False,
    json: Json = False,
) -> None:
    """Say what is in a model: its labels, its parts and their parameters, its arrays and their sizes.

    The model is loaded, so a damaged one is an error; --verify also reads every byte of a large one.
    """
    from locole.cli.show import print_json
    from locole.io import read_manifest
    from locole.models import load

    manifest = read_manifest(model)
    loaded = load(model, verify=True if verify else "auto")
    found = _description(model, manifest, loaded)
    if json:
        made_by = {name: _decoded(note) for name, note in manifest.made_by.items()}
        print_json({**found, "made_by": made_by, "parts": found["parts"].to_dict()})
    else:
        _print(found)


def _description(path: str, manifest: Any, model: Any) -> dict[str, Any]:
    from locole.cli.training import model_bytes
    from locole.io import outline

    labels = model.classes_
    classifier = getattr(model, "classifier_", model)
    return {
        "model": path,
        "kind": type(model).__name__,
        "made_by": manifest.made_by,
        "bytes": model_bytes(path),
        "labels": len(labels),
        "first_labels": labels[:_SHOWN_LABELS],
        "features": int(classifier.n_features_in_),
        **_chosen(classifier),
        **_journal(model),
        "parts": outline(model),
        "arrays": {
            name: {"dtype": entry.dtype, "shape": list(entry.shape), "bytes": entry.nbytes}
            for name, entry in manifest.arrays.items()
        },
    }


def _decoded(note: str) -> Any:
    """A note, or the object that it is as JSON; whoever made a file wrote it."""
    from json import loads

    try:
        found = loads(note)
    except (ValueError, RecursionError):
        return note
    return found if isinstance(found, dict) else note


def _journal(model: Any) -> dict[str, Any]:
    """What was done to the model since it was fitted, if anything."""
    past = getattr(model, "past_", None)
    return {} if past is None else {"journal": past.journal_}


def _chosen(classifier: Any) -> dict[str, Any]:
    """What our own classifier chose; a baseline chooses nothing."""
    from locole.classifier import LocoleClassifier

    if not isinstance(classifier, LocoleClassifier):
        return {}
    embedding, choice = getattr(classifier, "embedding_", None), classifier.choice_
    found: dict[str, Any] = {}
    if embedding is not None:
        found = {"room_for_labels": embedding.capacity, "outputs": embedding.real_dim}
    return {**found, "choice": choice} if choice else found


def _print(found: dict[str, Any]) -> None:
    from locole.cli.show import print_pairs, print_table, size

    parts, arrays = found.pop("parts"), found.pop("arrays")
    journal = found.pop("journal", [])
    shown = {name.replace("_", " "): value for name, value in found.items()}
    made_by = dict(found["made_by"])
    shown["made by"] = f"locole {made_by.pop('locole', '?')}"
    # What the model was made of, and what its maker has to say, under names of its own.
    notes = {name.replace("_", " "): value for name, value in made_by.items()}
    shown |= {name: value for name, value in notes.items() if name not in shown}
    shown["first labels"] = ", ".join(map(str, found["first_labels"]))
    shown["size"] = size(shown.pop("bytes"))
    if "choice" in shown:
        shown["choice"] = str(shown["choice"])
    print_pairs(shown)
    if journal:
        print("\njournal")
        print_table(["date", "did", "what"], [_entry(entry) for entry in journal[-_SHOWN_ENTRIES:]])
    print()
    _print_part("model", parts, indent=0)
    print()
    rows = [
        (name, entry["dtype"], " × ".join(f"{n:,}" for n in entry["shape"]), size(entry["bytes"]))
        for name, entry in arrays.items()
    ]
    print_table(["array", "type", "shape", "size"], rows)


def _entry(entry: dict[str, Any]) -> tuple[str, str, str]:
    """An entry of the journal as a line of a table."""
    rest = {key: value for key, value in entry.items() if key not in ("date", "did")}
    what = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in rest.items())
    return str(entry.get("date", "")), str(entry["did"]), what


def _print_part(name: str, part: Outline, *, indent: int) -> None:
    """Print a part with its size and values, and below it its parts."""
    from locole.cli.process import visible
    from locole.cli.show import print_pairs, size

    n_bytes = f", {size(part.n_bytes)}" if part.n_bytes else ""
    print(f"{' ' * indent}{visible(name)}: {part.name}{n_bytes}")
    values = {name: value for name, value in part.values.items() if name != "choice_"}
    print_pairs(values, indent=indent + 2)
    for inner, within in part.parts.items():
        _print_part(inner, within, indent=indent + 2)
