"""``locole inspect``: what is in a model."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from locole.cli.options import Json, ModelPath

__all__ = ["EXAMPLES", "inspect"]

EXAMPLES = ("locole inspect model", "locole inspect model --verify --json")

_SHOWN_LABELS = 5


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
        print_json(found)
    else:
        _print(found)


def _description(path: str, manifest: Any, model: Any) -> dict[str, Any]:
    from locole.cli.training import model_bytes

    classifier = getattr(model, "classifier_", model)
    labels = model.classes_
    found: dict[str, Any] = {
        "model": path,
        "kind": type(model).__name__,
        "made_by": manifest.made_by,
        "bytes": model_bytes(path),
        "labels": len(labels),
        "first_labels": labels[:_SHOWN_LABELS],
        "features": int(classifier.n_features_in_),
        **_formula(classifier),
    }
    if model is not classifier:
        found["texts"] = _parameters(model.features_)
    found["arrays"] = {
        name: {"dtype": entry.dtype, "shape": list(entry.shape), "bytes": entry.nbytes}
        for name, entry in manifest.arrays.items()
    }
    return found


def _formula(classifier: Any) -> dict[str, Any]:
    """Embedding, regressor and decoder; a baseline has none of them and is its own only part."""
    if not hasattr(classifier, "embedding_"):
        return {"baseline": _parameters(classifier)}
    embedding = classifier.embedding_
    return {
        "weight_learnt": classifier.weight_seen_,
        "embedding": repr(embedding),
        "outputs": embedding.real_dim,
        "room_for_labels": embedding.capacity,
        "decoder": classifier.decoder_.name,
        "choice": getattr(classifier, "choice_", ""),
        "regressor": _parameters(classifier.regressor_),
    }


def _parameters(estimator: Any) -> dict[str, Any]:
    """Class, parameters, and what was learnt, as far as it is a number, a text or another estimator."""
    learnt = {name: value for name, value in vars(estimator).items() if name.endswith("_")}
    values = {**estimator.get_params(deep=False), **learnt}
    plain = (bool, int, float, str, type(None))
    found: dict[str, Any] = {"class": type(estimator).__name__}
    for name, value in values.items():
        if isinstance(value, plain):
            found[name] = value
        elif hasattr(value, "get_params"):
            found[name] = _parameters(value)
        elif isinstance(value, list) and value and isinstance(value[0], plain):
            found[name] = value
        elif isinstance(value, list) and value and hasattr(value[0], "get_params"):
            found.update({f"{name}[{i}]": _parameters(part) for i, part in enumerate(value)})
    return found


def _print(found: dict[str, Any]) -> None:
    from locole.cli.show import print_pairs, print_table, size

    parts = {name: found.pop(name) for name in ("regressor", "baseline", "texts") if name in found}
    arrays = found.pop("arrays")
    shown = {name.replace("_", " "): value for name, value in found.items()}
    shown["made by"] = ", ".join(f"{name} {value}" for name, value in found["made_by"].items())
    shown["first labels"] = ", ".join(map(str, found["first_labels"]))
    shown["size"] = size(shown.pop("bytes"))
    print_pairs(shown)
    for name, part in parts.items():
        _print_part(name, part)
    print()
    rows = [
        (name, entry["dtype"], " × ".join(f"{n:,}" for n in entry["shape"]), size(entry["bytes"]))
        for name, entry in arrays.items()
    ]
    print_table(["array", "type", "shape", "size"], rows)


def _print_part(name: str, part: dict[str, Any]) -> None:
    from locole.cli.show import print_pairs

    within = {key: value for key, value in part.items() if isinstance(value, dict)}
    print(f"\n{name}: {part['class']}")
    print_pairs({k: v for k, v in part.items() if k != "class" and k not in within}, indent=2)
    for key, value in within.items():
        _print_part(f"{name}.{key}", value)
