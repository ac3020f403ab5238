"""Models that learn from requests, where that was allowed."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

from locole.exceptions import LocoleError
from locole.io import read_manifest, write_model
from locole.serving.labels import label_of
from locole.serving.registry import Registry
from locole.serving.served import ServedModel

__all__ = ["Example", "learn"]


class Example(NamedTuple):
    """A text with its labels."""

    text: str
    uris: list[str]


def learn(registry: Registry, name: str, examples: list[Example]) -> ServedModel:
    """Let a model learn examples, save it, and serve it from now on.

    The saved model is the one that is served, so what was learnt is not lost with the process. The
    old model answers meanwhile.
    """

    def change(served: ServedModel, path: str) -> None:
        if not served.takes_texts:
            raise LocoleError(f"the model {served.id} takes numbers: it learns from no texts.")
        replaces = read_manifest(path)
        labels = _labels(served, examples)
        model = copy.copy(served.model)
        model.partial_fit([example.text for example in examples], labels)
        notes = {key: value for key, value in served.notes.items() if key != "locole"}
        write_model(path, model, notes=notes, replaces=replaces)

    return registry.replace(name, change)


def _labels(served: ServedModel, examples: list[Example]) -> Any:
    """Labels in the form in which the model has learnt them."""
    classes = served.model.classes_
    found = [[label_of(uri, classes) for uri in example.uris] for example in examples]
    if served.has_several:
        return found
    if any(len(labels) != 1 for labels in found):
        raise LocoleError(f"the model {served.id} has one label for each text: give one subject.")
    return [labels[0] for labels in found]
