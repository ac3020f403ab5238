"""What is asked of a model, and its answers as JSON has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from locole.exceptions import LocoleError
from locole.serving.served import ServedModel

__all__ = ["Asked", "Question", "answer"]

# Labels of a set that are listed, and features of an explanation.
_LISTED, _FEATURES = 100, 12


class Asked(NamedTuple):
    """What is asked of each row."""

    k: int = 5
    """Best labels."""
    min_proba: float | None = None
    """Answers that are less likely are held back."""
    max_error: float | None = None
    """Instead, the share of wrong answers among those that are given."""
    coverage: float | None = None
    """A set that holds the right label this often."""
    explain: int = 0
    """How many of the best labels are explained."""


class Question(NamedTuple):
    """What is asked of which model: rows with equal questions are answered together."""

    served: ServedModel
    asked: Asked


def answer(question: Question, rows: list[Any]) -> list[dict[str, Any]]:
    """Answers to texts, or to rows as `checked_row` gives them.

    Each has ``labels``, best first, with ``probability`` (or ``score``, if the model knows no
    probabilities); ``answer``, the labels that the model gives: one, none if it is held back, any
    number if rows have several; and if asked for ``set`` and ``explanations``.
    """
    served, asked = question
    X = rows if served.takes_texts else _matrix(rows, served.n_features)
    k = min(asked.k, served.n_labels)
    sure = served.has_probabilities
    labels, values = served.model.predict_topk(X, k=k, **({"proba": True} if sure else {}))
    best = [
        [_entry(label, value, sure=sure) for label, value in zip(own, numbers, strict=True)]
        for own, numbers in zip(labels.tolist(), values.tolist(), strict=True)
    ]
    parts: list[Iterable[Any]] = [_given(served, asked, X, best)]
    parts.append(_sets(served, asked, X) if asked.coverage is not None else [None] * len(rows))
    parts.append(_explained(served, asked, X, labels) if asked.explain else [None] * len(rows))
    names = ("labels", "answer", "set", "explanations")
    return [
        {name: part for name, part in zip(names, one, strict=True) if part is not None}
        for one in zip(best, *parts, strict=True)
    ]


def _entry(label: Any, value: float, *, sure: bool) -> dict[str, Any]:
    return {"label": label, "probability" if sure else "score": value}


def _given(
    served: ServedModel, asked: Asked, X: Any, best: list[list[dict[str, Any]]]
) -> list[list[Any]]:
    """Labels that the model gives as its answer to each row."""
    least = asked.min_proba
    if served.has_several and (asked.max_error, asked.coverage) != (None, None):
        raise LocoleError(
            "the model has several labels for each row: take min_proba, not max_error or coverage."
        )
    if asked.max_error is not None:
        if least is not None:
            raise LocoleError("min_proba and max_error both say which answers to give: take one.")
        least = served.least_proba(asked.max_error)
    if least is not None and not served.has_probabilities:
        raise LocoleError("the model knows no probabilities, so no answer can be held back.")
    if served.has_several and least is None:
        chosen = sp.csr_array(served.model.predict(X))
        classes = served.model.classes_
        return [
            classes[chosen.indices[start:stop]].tolist()
            for start, stop in zip(chosen.indptr[:-1], chosen.indptr[1:], strict=True)
        ]
    candidates = best if served.has_several else [own[:1] for own in best]
    return [
        [one["label"] for one in own if least is None or one["probability"] >= least]
        for own in candidates
    ]


def _sets(served: ServedModel, asked: Asked, X: Any) -> Iterator[dict[str, Any]]:
    """Sets that hold the right label."""
    for found in served.model.predict_set(X, coverage=asked.coverage):
        labels = found[:_LISTED].tolist()
        yield {"coverage": asked.coverage, "size": len(found), "labels": labels}


def _explained(
    served: ServedModel, asked: Asked, X: Any, labels: Any
) -> Iterator[list[dict[str, Any]]]:
    """What adds up to the scores of the best labels of each row."""
    for i, own in enumerate(labels):
        row = X[i : i + 1]
        yield [_short(served.model.explain(row, label)[0]) for label in own[: asked.explain]]


def _short(found: Any) -> dict[str, Any]:
    """Explanation with the features that count most."""
    content = found.to_dict()
    del content["against"]
    content["more_features"] = max(len(content["features"]) - _FEATURES, 0)
    content["features"] = content["features"][:_FEATURES]
    return content


def _matrix(rows: list[Any], n_features: int) -> Any:
    """Rows of numbers as one matrix; see `checked_row`."""
    if all(isinstance(row, list) for row in rows):
        return np.array(rows, dtype=np.float64)
    if any(isinstance(row, list) for row in rows):
        raise LocoleError("some rows are lists and some are objects: give all in the same form.")
    lengths = [len(columns) for columns, _ in rows]
    indices = [column for columns, _ in rows for column in columns]
    data = [value for _, values in rows for value in values]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    return sp.csr_matrix(
        (np.array(data, dtype=np.float64), indices, starts), (len(rows), n_features)
    )
