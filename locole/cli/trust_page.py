"""Reliability and risk against coverage as one HTML page, drawn as SVG, that needs no network."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from locole import metrics
from locole.cli.page import STYLE
from locole.cli.show import amount
from locole.cli.trust import Confidences

__all__ = ["render"]

_SIZE, _MARGIN = 320, 44
_TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)
# Points of a curve that are drawn.
_POINTS = 200
_DRAWING = """
svg { max-width: 100%; height: auto; }
svg text { fill: var(--ink); font: 12px system-ui, sans-serif; }
.axis { stroke: var(--soft); } .grid { stroke: var(--line); }
.ideal { stroke: var(--theirs); stroke-dasharray: 4 4; }
.curve { stroke: var(--ours); fill: none; stroke-width: 2; } .dot { fill: var(--ours); }
.two { display: grid; grid-template-columns: repeat(auto-fit, minmax(18rem, 1fr)); gap: 1rem; }
figure { margin: 0; } figcaption { font-weight: 600; margin-bottom: .25rem; }
"""

Points = Sequence[tuple[float, float]]


def render(found: Confidences, figures: dict[str, Any]) -> str:
    """Page with both figures and a table.

    Parameters
    ----------
    found : Confidences
        How sure a model was of its answers, and which were right.
    figures : dict
        Figures for the table, by name.
    """
    sure, right = found.proba[:, 0], found.right[:, 0]
    mean, accuracy, rows = metrics.calibration_bins(sure, right)
    curve = metrics.risk_coverage(sure, right)
    step = max(len(curve.risk) // _POINTS, 1)
    risk = list(zip(curve.coverage[::step], curve.risk[::step], strict=True))
    top = max(float(curve.risk.max()), 1e-3)
    table = "".join(
        f"<tr><td>{escape(name.replace('_', ' '))}</td><td class='number'>{amount(value)}</td></tr>"
        for name, value in figures.items()
    )
    reliability = _dots(list(zip(mean, accuracy, strict=True)))
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>locole: how sure, and how right</title>
<style>{STYLE}{_DRAWING}</style>
</head>
<body>
<h1>How sure the model is, and how right</h1>
<p class="soft">{len(sure):,} rows; {len(rows)} groups of about {rows[0]:,} rows with similar
probabilities. On the dashed line answers are right as often as their probability says.</p>
<div class="two">
<figure><figcaption>Reliability</figcaption>
{_drawing(reliability, "probability of the answer", "share that is right", ideal=True)}</figure>
<figure><figcaption>Error against coverage</figcaption>
{_drawing(_line(risk, top), "share of rows answered, surest first", "share that is wrong", top=top)}
</figure>
</div>
<h2>Figures</h2>
<div class="wide"><table>{table}</table></div>
</body>
</html>
"""


def _at(x: float, y: float, top: float = 1.0) -> tuple[float, float]:
    """Where a point of [0, 1] × [0, top] is drawn."""
    inner = _SIZE - 2 * _MARGIN
    return _MARGIN + inner * x, _SIZE - _MARGIN - inner * y / top


def _dots(points: Points) -> str:
    places = [_at(x, y) for x, y in points]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    dots = "".join(f"<circle class='dot' cx='{x:.1f}' cy='{y:.1f}' r='3.5'/>" for x, y in places)
    return f"<polyline class='curve' points='{line}'/>{dots}"


def _line(points: Points, top: float) -> str:
    line = " ".join("{:.1f},{:.1f}".format(*_at(x, y, top)) for x, y in points)
    return f"<polyline class='curve' points='{line}'/>"


def _drawing(content: str, across: str, up: str, *, top: float = 1.0, ideal: bool = False) -> str:
    parts = []
    for tick in _TICKS:
        x, bottom = _at(tick, 0)
        left, y = _at(0, tick)
        right, high = _at(1, 1)
        parts.append(
            f"<line class='grid' x1='{x}' x2='{x}' y1='{bottom}' y2='{high}'/>"
            f"<line class='grid' x1='{left}' x2='{right}' y1='{y}' y2='{y}'/>"
            f"<text x='{x}' y='{bottom + 16}' text-anchor='middle'>{tick:g}</text>"
            f"<text x='{left - 6}' y='{y + 4}' text-anchor='end'>{top * tick:.2g}</text>"
        )
    if ideal:
        (x1, y1), (x2, y2) = _at(0, 0), _at(1, 1)
        parts.append(f"<line class='ideal' x1='{x1}' y1='{y1}' x2='{x2}' y2='{y2}'/>")
    middle = _SIZE / 2
    parts.append(content)
    parts.append(
        f"<text x='{middle}' y='{_SIZE - 8}' text-anchor='middle'>{escape(across)}</text>"
        f"<text transform='translate(12 {middle}) rotate(-90)' text-anchor='middle'>{escape(up)}</text>"
    )
    name = escape(f"{up} against {across}")
    return (
        f"<svg viewBox='0 0 {_SIZE} {_SIZE}' role='img' aria-label='{name}'>{''.join(parts)}</svg>"
    )
