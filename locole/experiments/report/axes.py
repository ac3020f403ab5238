"""What figures share: names of panels, curves and files, and axes that people can read."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from locole.experiments.report import names
from locole.experiments.report.groups import Group

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["curve_name", "file_name", "panel_title", "plain_log", "shorter"]

_LONGEST_NAME = 17
_COHERENCES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


def file_name(*parts: str) -> str:
    """Name for files and ids, of safe characters only; different parts give different names.

    Examples
    --------
    >>> file_name("figure1", "city_names, quick"), file_name("figure1", "a/b")
    ('figure1_city_names_quick', 'figure1_a_b_00f607ea')
    """
    plain = "_".join(part for part in parts if part)
    usual = re.sub(r", |=", "_", plain)
    safe = re.sub(r"[^A-Za-z0-9_]+", "_", usual)[:120]
    # What was replaced or cut off may have been the difference.
    return safe if safe == usual else f"{safe}_{hashlib.sha256(plain.encode()).hexdigest()[:8]}"


def shorter(name: str, length: int = _LONGEST_NAME) -> str:
    """Name cut to a length that fits."""
    return name if len(name) <= length else name[: length - 1] + "…"


def panel_title(set_name: str, found: Sequence[Group]) -> str:
    """Data set, and the method if there is one only."""
    title = names.short_data_name(set_name)
    if len({group.method for group in found}) == 1:
        title += f": {names.method_name(found[0].method)}"
    return shorter(title, 44)


def curve_name(group: Group, among: Sequence[Group]) -> str:
    """What a curve is called in a legend: what tells it from the others and no more."""
    name = names.family_name(group.embedding)
    if len({other.method for other in among}) > 1:
        name = names.row_name(group.method, group.embedding)
    if len({other.settings for other in among if other.method == group.method}) > 1:
        name += f" ({names.settings_text(group.settings) or 'plain'})"
    return shorter(name, 40)


def plain_log(axes: Axes, what: str, values: Sequence[float]) -> None:
    """Logarithmic axis whose ticks are numbers as people write them."""
    from matplotlib.ticker import (
        FixedLocator,
        FuncFormatter,
        LogLocator,
        NullFormatter,
        NullLocator,
    )

    low, high = min(values), max(values)
    if what == "coherence":
        axes.set_xscale("log")
        axes.set_xlim(1.15 * high, 0.85 * low)
        axes.xaxis.set_major_locator(FixedLocator(_COHERENCES))
        axes.xaxis.set_minor_locator(NullLocator())
    elif what == "outputs":
        axes.set_xscale("log", base=2)
        axes.set_xlim(low / 1.15, high * 1.15)
        axes.xaxis.set_minor_locator(NullLocator())
    else:
        axes.set_xscale("log")
        if high < 1.01 * low:
            axes.set_xlim(low / 2, high * 2)
        subs = (1.0,) if high > 300 * low else (1.0, 2.0, 5.0)
        axes.xaxis.set_major_locator(LogLocator(subs=subs))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
