"""Docstrings as the reference shows them: what an override leaves out is taken from its base class.

A method that implements a contract says in a line what is special about it. Its parameters are those of
the contract, described there once.
"""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Iterator
from typing import Any

SECTIONS = ("Parameters", "Returns", "Yields", "Raises")
_TITLE = re.compile(r"^(\w[\w ]*)\n-{3,}$", flags=re.MULTILINE)


def sections(text: str) -> dict[str, str]:
    """Return the sections of a docstring, each with its title; what comes before them is ``""``."""
    marks = [0, *[match.start() for match in _TITLE.finditer(text)], len(text)]
    parts = [text[a:b].strip() for a, b in itertools.pairwise(marks)]
    return {part.splitlines()[0] if at else "": part for at, part in enumerate(parts)}


def completed(text: str, bases: list[str]) -> str:
    r"""Return a docstring with the sections that it lacks and one of its bases has.

    Examples
    --------
    >>> completed("Score.", ["Score labels.\n\nReturns\n-------\nfloat"])
    'Score.\n\nReturns\n-------\nfloat'
    """
    own = sections(text)
    for base in map(sections, bases):
        own |= {name: base[name] for name in SECTIONS if name in base and name not in own}
        if "Parameters" in base:
            own["Parameters"] = _merged(own["Parameters"], base["Parameters"])
    order = ["", *SECTIONS]
    return "\n\n".join(
        own[name] for name in sorted(own, key=lambda n: _place(n, order)) if own[name]
    )


def _merged(own: str, base: str) -> str:
    """Return the parameters of a section behind those that only the section of the base has."""
    known = {name for entry in _entries(own) for name in _names(entry)}
    missing = [entry for entry in _entries(base) if not known & set(_names(entry))]
    return "\n".join([*own.splitlines()[:2], *missing, *_entries(own)])


def _entries(section: str) -> list[str]:
    return re.findall(r"^\S.*(?:\n(?: .*|$))*", section.split("\n", 2)[2], flags=re.MULTILINE)


def _names(entry: str) -> list[str]:
    return [name.strip() for name in entry.splitlines()[0].split(" :")[0].split(",")]


def _place(name: str, order: list[str]) -> int:
    return order.index(name) if name in order else len(order)


def docstrings_of_bases(owner: type, name: str | None) -> Iterator[str]:
    """Yield docstrings of the same method, or of the classes themselves, in the bases of ``owner``."""
    for base in owner.__mro__[1:]:
        value = base if name is None else base.__dict__.get(name)
        found = inspect.getdoc(getattr(value, "__func__", value)) if value is not None else None
        if found and (base.__module__ or "").startswith("locole"):
            yield found


def full_docstring(owner: Any, name: str | None = None) -> str:
    """Return the docstring of a class, a function or a method as the reference shows it."""
    value = owner if name is None else inspect.getattr_static(owner, name)
    text = inspect.getdoc(getattr(value, "__func__", value)) or ""
    if not inspect.isclass(owner):
        return text
    if name is None and "__init__" in owner.__dict__ and "Parameters" in sections(text):
        return text
    return completed(text, list(docstrings_of_bases(owner, name)))
