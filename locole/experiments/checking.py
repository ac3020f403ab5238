"""Whether the tables of a TOML file have the keys and types that dataclasses say, in clear sentences."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from dataclasses import MISSING, fields
from typing import Any, TypeVar

from locole.exceptions import LocoleError

__all__ = ["among", "filled", "nearest"]

T = TypeVar("T")


def filled(kind: type[T], content: Any, where: str) -> T:
    """Dataclass with the values of a table, each of the type that its field has.

    Parameters
    ----------
    kind : dataclass
        Its types are among those that TOML has.
    content : dict
        The table.
    where : str
        What to call it in sentences.
    """
    if not isinstance(content, dict):
        raise LocoleError(f"{where} must be a table.")
    items = fields(kind)  # type: ignore[arg-type]
    known = {item.name: str(item.type) for item in items}
    for key, value in content.items():
        if key not in known:
            raise LocoleError(f"{where} has no key {key!r}{nearest(key, known)}.")
        wanted, fits = _TYPES[known[key].removesuffix(" | None")]
        if not fits(value):
            raise LocoleError(f"{key} in {where} must be {wanted}, not {value!r}.")
    for item in items:
        must = item.default is MISSING and item.default_factory is MISSING
        if must and item.name not in content:
            raise LocoleError(f"{where} names no {item.name}.")
    return kind(**content)


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _positive(value: Any) -> bool:
    return (_whole(value) or isinstance(value, float)) and 0 < value < float("inf")


def _list_of(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(check, value))


def _table_of(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, dict) and all(map(check, value.values()))


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _dims(value: Any) -> bool:
    return _list_of(lambda dim: _whole(dim) and dim > 0)(value) and bool(value)


#: Types of fields as they are written above → what to say, and whether a value is one.
_TYPES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "str": ("a text", _text),
    "bool": ("true or false", lambda value: isinstance(value, bool)),
    "int": ("a whole number above 0", lambda value: _whole(value) and value > 0),
    "float": ("a number above 0", _positive),
    "list[str]": ("a list of names", _list_of(_text)),
    "list[int]": (
        "a list of whole numbers, not negative",
        lambda value: _list_of(lambda seed: _whole(seed) and seed >= 0)(value) and bool(value),
    ),
    "dict[str, list[int]]": ("a table of lists of dims", _table_of(_dims)),
    "dict[str, float]": ("a table of numbers above 0", _table_of(_positive)),
    "dict[str, Any]": ("a table", lambda value: isinstance(value, dict)),
    "dict[str, dict[str, Any]]": ("a table of tables", _table_of(lambda v: isinstance(v, dict))),
}


def among(what: str, name: str, known: Iterable[str]) -> None:
    """Raise LocoleError if a name is not known, with the nearest one that is."""
    names = list(known)
    if name not in names:
        raise LocoleError(
            f"unknown {what} {name!r}{nearest(name, names)}: take one of {', '.join(names)}."
        )


def nearest(name: str, known: Iterable[str]) -> str:
    """Say which known name may be meant, or nothing.

    Examples
    --------
    >>> nearest("sedes", ["seeds", "data"])
    " (did you mean 'seeds'?)"
    """
    found = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f" (did you mean {found[0]!r}?)" if found else ""
