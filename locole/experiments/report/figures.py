"""Curves of the report: accuracy against coherence, outputs and time, and precision and recall."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from locole.experiments.report import names
from locole.experiments.report.axes import (
    curve_name,
    file_name,
    panel_title,
    plain_log,
    shorter,
)
from locole.experiments.report.drawing import WIDTH, Picture, colour, frame, picture, spread
from locole.experiments.report.groups import Group
from locole.experiments.report.sentences import having, mean_of
from locole.experiments.report.series import sequences
from locole.experiments.report.trends import METRICS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "against_coherence",
    "against_outputs",
    "against_time",
    "metrics_against_coherence",
]

# Inches: room for the axis at the left, for names of lines at the right, above and below.
_LEFT, _RIGHT, _NAMES, _TOP, _BOTTOM = 0.66, 0.12, 1.1, 0.32, 0.5
_HEIGHT, _LEGEND_LINE = 3.3, 0.2


def against_coherence(set_name: str, found: Sequence[Group]) -> Picture | None:
    """Figure 1 of the paper: coherence falls to the right, other systems are lines."""
    return _curves("figure1_coherence", "coherence", "coherence", set_name, found)


def against_outputs(set_name: str, found: Sequence[Group]) -> Picture | None:
    """The same runs against the real outputs that they cost."""
    return _curves("figure1_outputs", "outputs", "real outputs", set_name, found)


def against_time(set_name: str, found: Sequence[Group]) -> Picture | None:
    """The same runs against the CPU time of training."""
    return _curves("figure1_time", "fit_cpu_s", "CPU seconds of training", set_name, found)


def _x(group: Group, what: str) -> float | None:
    value = group.outputs if what == "outputs" else group.mean(what)
    return float(value) if value else None


def _curves(
    name: str, what: str, label: str, set_name: str, found: Sequence[Group]
) -> Picture | None:
    embedded = [g for g in having(found, "accuracy") if g.embedding and _x(g, what)]
    lines = [g for g in having(found, "accuracy") if not g.embedding]
    if len(embedded) < 2:
        return None
    series = sequences(embedded)
    title = f"Accuracy against {label} on {names.data_name(set_name)}"
    text = f"{len(series)} curves with {len(embedded)} points"
    text += f", and {len(lines)} other methods." if lines else "."

    def draw(figure: Figure) -> None:
        axes = _axes(figure, right=_NAMES if lines else _RIGHT, below=_legend_height(series))
        frame(axes, panel_title(set_name, embedded), label, "accuracy, %")
        for some in series:
            _plot(axes, some, what, "accuracy", among=embedded)
        _set_x(axes, what, [x for g in embedded if (x := _x(g, what))])
        _draw_lines(axes, lines)
        _legend(figure, series)

    size = (WIDTH, _HEIGHT + _legend_height(series))
    return picture(file_name(name, set_name), title, text, draw, size=size)


def _axes(figure: Figure, *, right: float, below: float) -> Axes:
    """Axes with margins in inches, so that panels of one page line up."""
    width, height = figure.get_size_inches()
    low, wide = _BOTTOM + below, width - _LEFT - right
    box = (_LEFT / width, low / height, wide / width, (height - low - _TOP) / height)
    return figure.add_axes(box)


def _plot(
    axes: Axes, some: Sequence[Group], what: str, figure: str, *, among: Sequence[Group]
) -> None:
    some = sorted(some, key=lambda group: _x(group, what) or 0)
    look = names.look(some[0].embedding)
    spreads = [100 * (group.std(figure) or 0) for group in some]
    axes.errorbar(
        [_x(group, what) or 0 for group in some],
        [100 * mean_of(group, figure) for group in some],
        yerr=spreads if any(spreads) else None,
        color=colour(look.colour),
        marker=look.marker,
        markeredgecolor=colour("ink"),
        markeredgewidth=0.6,
        linestyle=names.style_of_method(some[0].method),
        elinewidth=0.9,
        label=curve_name(some[0], among),
    )


def _set_x(axes: Axes, what: str, values: Sequence[float]) -> None:
    if what == "coherence":
        # As in the paper: better embeddings to the right.
        axes.set_xlim(1.03, 0)
        return
    plain_log(axes, what, values)


def _draw_lines(axes: Axes, lines: Sequence[Group]) -> None:
    """Methods without embeddings: a line across for each, named at its right end."""
    low, high = axes.get_ylim()
    values = [100 * mean_of(group) for group in lines]
    low, high = min([low, *values]), max([high, *values])
    pad = 0.02 * (high - low)
    axes.set_ylim(low - pad, high + pad)
    places = spread(values, (high - low) / 17, low, high)
    transform = axes.get_yaxis_transform()
    for group, value, place in zip(lines, values, places, strict=True):
        # The default model is ours and stands out.
        ours = group.method in names.OURS
        tone = colour("ink" if ours else "grey")
        axes.axhline(value, color=tone, linewidth=1.3 if ours else 0.9, linestyle=(0, (5, 3)))
        axes.plot(
            [1, 1.03, 1.05], [value, place, place], color=tone, linewidth=0.7, clip_on=False,
            transform=transform, scalex=False, scaley=False,
        )  # fmt: skip
        axes.text(
            1.06, place, shorter(_line_name(group, lines)),
            transform=transform, va="center", fontsize=8,
        )  # fmt: skip


def _line_name(group: Group, among: Sequence[Group]) -> str:
    """Method, with what tells it from others of its name."""
    alike = [other for other in among if other.method == group.method]
    return group.name if len(alike) > 1 else names.method_name(group.method)


def _legend_columns(series: Sequence[Sequence[Group]]) -> int:
    among = [group for some in series for group in some]
    longest = max(len(curve_name(some[0], among)) for some in series)
    return 3 if longest <= 13 else 2 if longest <= 25 else 1


def _legend_height(series: Sequence[Sequence[Group]]) -> float:
    return 0.06 + _LEGEND_LINE * -(-len(series) // _legend_columns(series))


def _legend(figure: Figure, series: Sequence[Sequence[Group]]) -> None:
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="lower left", bbox_to_anchor=(0.01, 0.005), borderaxespad=0,
        ncols=_legend_columns(series), handlelength=2.4, columnspacing=1.2, labelspacing=0.3,
    )  # fmt: skip


def metrics_against_coherence(set_name: str, found: Iterable[Group]) -> Picture | None:
    """Figure 3 of the paper: four measures against coherence, which falls to the right."""
    embedded = [
        g for g in having(found, "coherence", *METRICS) if g.embedding and _x(g, "coherence")
    ]
    if len(embedded) < 2:
        return None
    series = sequences(embedded)
    below = _legend_height(series)
    values = [mean_of(group, "coherence") for group in embedded]

    def draw(figure: Figure) -> None:
        width, height = figure.get_size_inches()
        wide, gap = (width - _LEFT - _RIGHT - 0.45) / 2, 0.62
        tall = (height - _BOTTOM - below - _TOP - gap) / 2
        for k, metric in enumerate(METRICS):
            left = _LEFT + (k % 2) * (wide + 0.45)
            low = _BOTTOM + below + (1 - k // 2) * (tall + gap)
            axes = figure.add_axes((left / width, low / height, wide / width, tall / height))
            frame(
                axes,
                metric.replace("_", " "),
                "coherence" if k > 1 else "",
                "%" if k % 2 == 0 else "",
            )
            for some in series:
                _plot(axes, some, "coherence", metric, among=embedded)
            plain_log(axes, "coherence", values)
        _legend(figure, series)

    title = f"Precision and recall against coherence on {names.data_name(set_name)}"
    text = f"Four panels with {len(series)} curves of {len(embedded)} points in all."
    name = file_name("figure3", set_name)
    return picture(name, title, text, draw, size=(WIDTH, 4.4 + below))
