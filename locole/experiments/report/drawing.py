"""How figures are drawn: one style, SVG that fits into the page and follows its colours, and PNG."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from locole.experiments.report.names import INK, PALETTE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["WIDTH", "Picture", "colour", "frame", "picture", "spread"]

#: Inches; a screen shows 96 pixels for each, a phone somewhat less.
WIDTH = 4.2
_FONT = 9.5
_PNG_DPI = 144
_STYLE: dict[str, Any] = {
    "font.size": _FONT,
    "axes.titlesize": _FONT + 1,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": _FONT,
    "axes.edgecolor": INK["soft"],
    "axes.labelcolor": INK["ink"],
    "axes.titlecolor": INK["ink"],
    "axes.linewidth": 0.8,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.unicode_minus": True,
    "grid.color": INK["line"],
    "grid.linewidth": 0.7,
    "xtick.color": INK["soft"],
    "ytick.color": INK["soft"],
    "xtick.labelcolor": INK["ink"],
    "ytick.labelcolor": INK["ink"],
    "text.color": INK["ink"],
    # Names are never formulas, whatever signs are in them.
    "text.parse_math": False,
    "legend.frameon": False,
    "legend.fontsize": _FONT - 0.5,
    "lines.linewidth": 1.6,
    "lines.markersize": 6,
    "patch.linewidth": 0.8,
    # Text stays text, and equal figures give equal files.
    "svg.fonttype": "none",
    "svg.hashsalt": "locole",
}


@dataclass(frozen=True)
class Picture:
    """A figure: for the page, and as files.

    Attributes
    ----------
    name : str
        Name of its files, without suffix.
    title, text : str
        What it is, and what it shows, for those who cannot see it.
    inline : str
        SVG element for the page, whose colours and fonts it takes.
    svg, png : bytes
        Files that stand alone.
    """

    name: str
    title: str
    text: str
    inline: str
    svg: bytes
    png: bytes


def colour(name: str) -> str:
    """Colour by name, of the palette or of the text."""
    return PALETTE[name][0] if name in PALETTE else INK[name]


def picture(
    name: str,
    title: str,
    text: str,
    draw: Callable[[Figure], None],
    *,
    size: tuple[float, float] = (WIDTH, 3.6),
) -> Picture:
    """Draw a figure and keep it in all forms.

    Parameters
    ----------
    name : str
        Letters, digits and underscores; unique on a page.
    title, text : str
        What it is and what it shows.
    draw : callable
        Gets the empty figure.
    size : pair of float
        Width and height in inches.
    """
    with _style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=size, facecolor=INK["paper"])
        draw(figure)
        svg, png = io.BytesIO(), io.BytesIO()
        about = {"Date": None, "Creator": "locole", "Title": title}
        figure.savefig(svg, format="svg", metadata=about, transparent=True)
        figure.savefig(png, format="png", dpi=_PNG_DPI, metadata={"Title": title[:70]})
    inline = _inline(svg.getvalue().decode(), name, title, text)
    return Picture(name, title, text, inline, svg.getvalue(), png.getvalue())


@contextmanager
def _style() -> Iterator[None]:
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise ImportError(
            "figures need the package matplotlib: pip install locole[plots]"
        ) from error
    with mpl.rc_context(), warnings.catch_warnings():
        mpl.rcdefaults()
        settings: Any = mpl.rcParams
        settings.update(_STYLE)
        # Names in scripts that the font of PNG files lacks; browsers have them.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield


def _inline(svg: str, name: str, title: str, text: str) -> str:
    """Element for the page: ids of its own, colours of the page, and words for what it shows."""
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r"<title>.*?</title>", "", body, count=1, flags=re.DOTALL)
    # Names are text, which has no "<" of its own: only tags are touched.
    body = re.sub(r"<[^>]+>", lambda tag: _own_tag(tag.group(), name), body)
    box = re.search(r'viewBox="[^"]*"', body)
    assert box is not None
    opening = (
        f'<svg role="img" aria-labelledby="{name}-t {name}-d" {box.group()} '
        f'xmlns="http://www.w3.org/2000/svg"><title id="{name}-t">{escape(title)}</title>'
        f'<desc id="{name}-d">{escape(text)}</desc>'
    )
    body = re.sub(r"^<svg[^>]*>", lambda _: opening, body, count=1)
    return re.sub(r"\n\s*", "\n", body)


def _own_tag(tag: str, name: str) -> str:
    tag = re.sub(r'\bid="', f'id="{name}-', tag)
    tag = re.sub(r'(xlink:)?href="#', f'href="#{name}-', tag)
    tag = tag.replace("url(#", f"url(#{name}-").replace('xlink:href="data:', 'href="data:')
    # The page has fonts of its own.
    tag = re.sub(r"font-family: [^;]*; ?", "", tag)
    for variable, value in _variables():
        tag = tag.replace(value, f"var(--{variable})")
    return tag


def _variables() -> Iterator[tuple[str, str]]:
    """Names of the page's colours and what stands for them in a drawing."""
    for name, value in INK.items():
        yield name, value
    for name, (value, _) in PALETTE.items():
        yield name, value


def spread(places: list[float], apart: float, low: float, high: float) -> list[float]:
    """Move places as little as needs be, so that labels there do not lie over each other.

    Parameters
    ----------
    places : list of float
        Where labels should be.
    apart : float
        What a label takes.
    low, high : float
        Where they must stay, as far as there is room.

    Returns
    -------
    list of float
        In the order of ``places``.

    Examples
    --------
    >>> spread([1.0, 1.1, 3.0], 0.5, 0.0, 3.0)
    [0.8, 1.3, 3.0]
    """
    order = sorted(range(len(places)), key=places.__getitem__)
    blocks: list[tuple[float, list[int]]] = []  # centre and members of labels that touch
    for i in order:
        centre, members = places[i], [i]
        while blocks:
            before, others = blocks[-1]
            touch = (len(others) + len(members)) / 2 * apart
            if centre - before >= touch - 1e-12:
                break
            blocks.pop()
            total = len(others) + len(members)
            centre = (before * len(others) + centre * len(members)) / total
            members = others + members
        blocks.append((centre, members))
    moved = [0.0] * len(places)
    for centre, members in blocks:
        for k, i in enumerate(members):
            moved[i] = centre + (k - (len(members) - 1) / 2) * apart
    # Into the bounds, without touching again.
    least = low
    for i in order:
        moved[i] = max(moved[i], least)
        least = moved[i] + apart
    most = high
    for i in reversed(order):
        moved[i] = min(moved[i], most)
        most = moved[i] - apart
    return [round(place, 9) for place in moved]


def frame(axes: Axes, title: str, x: str, y: str) -> None:
    """Title and what the axes mean."""
    axes.set_title(title)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
