"""Labels for people and for other programs: search, browse, and URIs."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

import numpy as np
from numpy.typing import NDArray

from locole.exceptions import LocoleError

__all__ = ["Found", "LabelIndex", "label_of", "uri_of"]

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s<>\"{}|\\^`]+")
_URN = "urn:locole:label:"


class Found(NamedTuple):
    """A part of the labels."""

    total: int
    """How many there are."""
    labels: list[dict[str, Any]]
    """``label`` and ``rows``, the number of its training rows or None."""


class LabelIndex:
    """Labels in their order, searched by any part of their names, whatever the case.

    All names are one string, so that a search is one pass over it.

    Parameters
    ----------
    classes : array of shape (n_classes,)
    counts : array of shape (n_classes,), optional
        Training rows of each label.

    Examples
    --------
    >>> index = LabelIndex(np.array(["Bonn", "Köln", "Ulm", "Neu-Ulm"]), None)
    >>> index.search("ulm", offset=0, limit=1)
    Found(total=2, labels=[{'label': 'Ulm', 'rows': None}])
    """

    def __init__(self, classes: NDArray, counts: NDArray | None) -> None:
        self._classes, self._counts = classes, counts
        names = [_folded(name) for name in classes.tolist()]
        self._names = "\n".join(names)
        ends = np.cumsum([len(name) + 1 for name in names])
        self._starts: list[int] = [0, *ends[:-1].tolist()]

    def search(self, text: str, *, offset: int, limit: int) -> Found:
        """Labels that contain a text, all if it is empty; ``limit`` of them from ``offset`` on."""
        wanted = _folded(text).strip()
        if not wanted:
            codes = range(offset, min(offset + limit, len(self._starts)))
            return Found(len(self._starts), [self._entry(code) for code in codes])
        found = self._containing(wanted)
        return Found(len(found), [self._entry(code) for code in found[offset : offset + limit]])

    def _containing(self, text: str) -> list[int]:
        codes: list[int] = []
        at = self._names.find(text)
        while at >= 0:
            codes.append(bisect_right(self._starts, at) - 1)
            # On to the next name.
            after = self._starts[codes[-1] + 1] if codes[-1] + 1 < len(self._starts) else -1
            at = self._names.find(text, after) if after >= 0 else -1
        return codes

    def _entry(self, code: int) -> dict[str, Any]:
        rows = None if self._counts is None else int(self._counts[code])
        return {"label": self._classes[code : code + 1].tolist()[0], "rows": rows}

    def uris(self) -> list[tuple[str, str]]:
        """URI and name of every label."""
        return [(uri_of(label), str(label)) for label in self._classes.tolist()]


def _folded(name: Any) -> str:
    return " ".join(str(name).casefold().split())


def uri_of(label: Any) -> str:
    """URI of a label: itself if it is one, otherwise a name made of it.

    Examples
    --------
    >>> uri_of("http://www.yso.fi/onto/yso/p19378"), uri_of("São Paulo (BR)")
    ('http://www.yso.fi/onto/yso/p19378', 'urn:locole:label:S%C3%A3o%20Paulo%20%28BR%29')
    """
    name = str(label)
    return name if _URI.fullmatch(name) else _URN + quote(name, safe="")


def label_of(uri: str, classes: NDArray) -> Any:
    """Label of a URI, of the type that the model's labels have.

    Examples
    --------
    >>> label_of("urn:locole:label:S%C3%A3o%20Paulo%20%28BR%29", np.array(["Ulm"]))
    'São Paulo (BR)'
    >>> label_of("urn:locole:label:7", np.array([1, 2]))
    7
    """
    name = unquote(uri.removeprefix(_URN)) if uri.startswith(_URN) else uri
    if classes.dtype.kind in "OUT":
        return name
    try:
        return classes.dtype.type(name).item()
    except (ValueError, OverflowError):
        raise LocoleError(f"labels of the model are numbers, and {name!r} is none.") from None
