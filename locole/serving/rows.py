"""Texts and rows of requests, checked before they are answered."""

from __future__ import annotations

from typing import Any

from locole.exceptions import LocoleError
from locole.serving.problems import Problem
from locole.serving.served import ServedModel
from locole.serving.settings import Settings

__all__ = ["checked_rows"]


def checked_rows(
    served: ServedModel, texts: list[str] | None, rows: list[Any] | None, limits: Settings
) -> list[Any]:
    """What a request gives, as `answer` takes it; raises if the model does not take it."""
    given = texts if served.takes_texts else rows
    if given is None or (texts is not None and rows is not None):
        wanted = "texts" if served.takes_texts else "rows of numbers"
        raise LocoleError(f"the model {served.id} takes {wanted}: give these and nothing else.")
    if not given:
        raise LocoleError("there is nothing to answer: give one text or row at least.")
    if len(given) > limits.max_rows:
        raise Problem(413, f"{len(given)} rows are too many: give {limits.max_rows} at a time.")
    if not served.takes_texts:
        return [checked_row(row, served) for row in given]
    longest = max(map(len, given))
    if longest > limits.max_chars:
        raise Problem(
            413, f"a text of {longest} characters is too long: give {limits.max_chars} at most."
        )
    return given


def checked_row(row: Any, served: ServedModel) -> Any:
    """Columns and values of an object of numbers by features; a list of all numbers stays."""
    n_features, first = served.n_features, served.first_index
    if isinstance(row, list):
        if len(row) != n_features:
            raise LocoleError(f"a row has {len(row)} numbers, and the model takes {n_features}.")
        return row
    columns = [index - first for index in row]
    if columns and not (min(columns) >= 0 and max(columns) < n_features):
        raise LocoleError(f"the model has features {first} to {first + n_features - 1} only.")
    return columns, list(row.values())
