"""How verbs print: one JSON object for machines, aligned lines for people."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from locole.cli.process import one_line, visible
from locole.cli.words import in_our_words

__all__ = ["amount", "print_json", "print_pairs", "print_table", "say", "size", "warn"]


def say(message: str) -> None:
    """Tell on standard error what happens, which leaves standard output to results."""
    print(message, file=sys.stderr, flush=True)


def warn(message: str) -> None:
    """Say on standard error what may be wrong."""
    say(f"locole: warning: {one_line(in_our_words(message))}")


def print_json(value: Mapping[str, Any]) -> None:
    """Print one object on one line; infinite and undefined numbers become null.

    Examples
    --------
    >>> print_json({"capacity": float("inf"), "dims": (256, 1024)})
    {"capacity": null, "dims": [256, 1024]}
    """
    is_utf8 = (getattr(sys.stdout, "encoding", None) or "").lower() in ("utf-8", "utf8")
    text = json.dumps(_plain(value), ensure_ascii=not is_utf8, allow_nan=False)
    # JSON leaves some characters alone that a terminal takes for orders.
    print("".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):  # numpy's numbers and arrays
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def print_pairs(pairs: Mapping[str, Any], *, indent: int = 0) -> None:
    """Print names and values in two columns.

    Examples
    --------
    >>> print_pairs({"rows": 1200, "accuracy": 0.25})
    rows      1,200
    accuracy  0.25
    """
    width = max(map(len, pairs), default=0)
    for name, value in pairs.items():
        print(f"{'':{indent}}{visible(name):{width}}  {amount(value)}".rstrip())


def print_table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print columns, numbers to the right.

    Examples
    --------
    >>> print_table(["label", "rows"], [["Ulm", 3], ["Bonn", 12]])
    label  rows
    Ulm       3
    Bonn     12
    """
    from rich.cells import cell_len  # characters of East Asia take two places

    cells = [[amount(value) for value in row] for row in rows]
    widths = [max(map(cell_len, column)) for column in zip(header, *cells, strict=True)]
    right = [isinstance(value, int | float) for value in (rows[0] if rows else header)]
    for line in (list(header), *cells):
        parts = []
        for cell, width, to_right in zip(line, widths, right, strict=True):
            blanks = " " * (width - cell_len(cell))
            parts.append(blanks + cell if to_right else cell + blanks)
        print("  ".join(parts).rstrip())


def amount(value: Any) -> str:
    """Number as people read it.

    Examples
    --------
    >>> amount(60471), amount(60471.0), amount(0.67412345), amount("gold")
    ('60,471', '60,471', '0.6741', 'gold')
    """
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "-"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    # What a model says must not steer the terminal.
    return "\n".join(map(visible, str(value).split("\n")))


def size(n_bytes: float | None) -> str:
    """Bytes as people read them.

    Examples
    --------
    >>> size(980), size(12_345_678), size(None)
    ('980 B', '12 MB', '-')
    """
    if n_bytes is None:
        return "-"
    for unit in ("B", "kB", "MB", "GB"):
        if n_bytes < 999.5 or unit == "GB":
            digits = 0 if n_bytes >= 9.95 or unit == "B" else 1
            return f"{n_bytes:.{digits}f} {unit}"
        n_bytes /= 1000
    raise AssertionError
