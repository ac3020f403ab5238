"""``locole labels``: list the labels of a model, and rename, merge, retire or add some."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from locole.cli.options import EncoderName, Json, ModelPath

__all__ = ["EXAMPLES", "labels"]

EXAMPLES = (
    "locole labels model",
    "locole labels model --rename cat=feline --json",
    "locole labels model --merge goose=duck -o merged",
    "locole labels model --retire hen --retire pig -o smaller",
)


def labels(
    model: ModelPath,
    rename: Annotated[
        list[str] | None,
        typer.Option("--rename", metavar="OLD=NEW", help="Give a label another name."),
    ] = None,
    merge: Annotated[
        list[str] | None,
        typer.Option("--merge", metavar="OLD=KEPT", help="Let a label become another."),
    ] = None,
    retire: Annotated[
        list[str] | None,
        typer.Option("--retire", metavar="LABEL", help="Never answer with a label again."),
    ] = None,
    add: Annotated[
        str | None,
        typer.Option("--add", metavar="FILE", help="Know labels by their texts: label, tab, text."),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="MODEL", help="Folder for the new model."),
    ] = None,
    encoder: EncoderName = None,
    json: Json = False,
) -> None:
    """List the labels of a model with their number of training rows, or change some.

    Any number of labels can be merged, renamed and retired at once, in this order. The model is replaced
    in one step, or stays if --output names another place. --add is for models that were fitted with
    --label-texts, and comes last. Nothing is learnt again: docs/guide says what
    is exact. Without a change, each label is printed on a line, with a tab and its rows.
    """
    from locole.cli.examples import open_model
    from locole.cli.places import IN_PLACE, check_model_place
    from locole.exceptions import LocoleError
    from locole.io import read_manifest

    is_changed = bool(rename or merge or retire or add)
    if output is not None and not is_changed:
        raise LocoleError("--output is for a changed model: rename, merge or retire a label.")
    if is_changed:
        check_model_place(output or model, force=output is None, way_out=IN_PLACE)
    replaces = read_manifest(model) if output is None else None
    loaded, notes = open_model(model, jobs=1, encoder=encoder)
    if is_changed:
        _change(loaded, merge or [], rename or [], retire or [])
        if add is not None:
            _add(loaded, add)
        from locole.cli.update import save_dated

        save_dated(loaded, notes, output or model, replaces)
    _show(loaded, is_changed=is_changed, json=json)


def _change(model: Any, merge: list[str], rename: list[str], retire: list[str]) -> None:
    from locole.exceptions import LocoleError

    if not hasattr(model, "retire_labels"):
        name = type(model).__name__
        raise LocoleError(f"labels of {name} cannot be changed: fit again with all the data.")
    if merge:
        model.merge_labels(_pairs(model, merge, "--merge"))
    if rename:
        model.rename_labels(_pairs(model, rename, "--rename"))
    if retire:
        model.retire_labels([_typed(model, label) for label in retire])


def _add(model: Any, path: str) -> None:
    from locole.cli.training import read_label_texts
    from locole.exceptions import LocoleError

    if not hasattr(model, "label_terms_"):
        raise LocoleError("--add is for models of texts that were fitted with --label-texts.")
    model.add_labels({_typed(model, str(k)): text for k, text in read_label_texts(path).items()})


def _pairs(model: Any, typed: list[str], option: str) -> dict[Any, Any]:
    """Pairs of labels; the first of each is known, which tells where it ends."""
    from locole.exceptions import LocoleError

    known = set(map(str, model.classes_.tolist()))
    found = {}
    for text in typed:
        places = [i for i, character in enumerate(text) if character == "="]
        place = next((i for i in places if text[:i] in known), None)
        if place is None:
            raise LocoleError(f"{option} {text}: give a known label, = and another name.")
        other = text[place + 1 :]
        if not other.strip():
            raise LocoleError(f"{option} {text}: there is no label after the =: give one.")
        found[_typed(model, text[:place])] = _typed(model, other)
    return found


def _typed(model: Any, label: str) -> Any:
    """Label of the type that the model's have."""
    from locole.exceptions import LocoleError

    kind = model.classes_.dtype
    if kind.kind in "OU":
        return label
    try:
        return kind.type(label)
    except (ValueError, OverflowError):
        raise LocoleError(f"{label!r} is no number, and the labels of the model are.") from None


def _show(model: Any, *, is_changed: bool, json: bool) -> None:
    from locole.cli.process import visible
    from locole.cli.show import print_json, print_pairs

    names = model.classes_.tolist()
    rows = getattr(getattr(model, "classifier_", model), "label_rows_", None)
    counts = [None] * len(names) if rows is None else rows.tolist()
    past = getattr(model, "past_", None)
    journal = [] if past is None else past.journal_
    if json:
        pairs = zip(names, counts, strict=True)
        every = [{"label": label, "rows": count} for label, count in pairs]
        gone: dict[str, Any] = {"merged": {}, "retired": []}
        if past is not None:
            merged = zip(past.merged_.tolist(), past.into_.tolist(), strict=True)
            gone = {"merged": dict(merged), "retired": past.retired_.tolist()}
        print_json({"labels": every, **gone, "journal": journal})
    elif is_changed:
        print_pairs(
            {"labels": len(names), "done": "; ".join(_said(entry) for entry in journal[-3:])}
        )
    else:
        for label, count in zip(names, counts, strict=True):
            print(visible(str(label)) if count is None else f"{visible(str(label))}\t{count}")


def _said(entry: dict[str, Any]) -> str:
    """An entry of the journal in a few words."""
    first = ", ".join(entry.get("first", []))
    return f"{entry['did']} {first}".strip()
