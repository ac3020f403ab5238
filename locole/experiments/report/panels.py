"""Further figures: families at equal outputs, the front of accuracy and time, pictures of vectors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from numpy.typing import NDArray

from locole.experiments.report import names
from locole.experiments.report.axes import (
    curve_name,
    file_name,
    panel_title,
    plain_log,
    shorter,
)
from locole.experiments.report.drawing import WIDTH, Picture, colour, frame, picture
from locole.experiments.report.entries import Entry
from locole.experiments.report.groups import Group, clusters
from locole.experiments.report.sentences import having, mean_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["equal_outputs", "front", "vectors"]

# From blue to vermillion over grey: visible on white and on black, and to the colour-blind.
_BY_INDEX = ("#2f8fd0", "#8b8b8b", "#d55e00")


def equal_outputs(set_name: str, found: Sequence[Group]) -> Picture | None:
    """Families side by side at each number of real outputs, with the spread over seeds."""
    embedded = [group for group in having(found, "accuracy") if group.embedding]
    together = [c for c in clusters(embedded) if len({g.embedding for g in c}) > 1]
    if not together:
        return None
    kinds = sorted(
        {(g.method, g.embedding) for c in together for g in c},
        key=lambda kind: names.order(kind[0], kind[1], None, ""),
    )
    columns = 3 if max(len(curve_name(group, embedded)) for group in embedded) <= 17 else 2
    rows = -(-len(kinds) // columns)

    def draw(figure: Figure) -> None:
        width, height = figure.get_size_inches()
        low = 0.55 + 0.2 * rows
        box = (0.66 / width, low / height, 1 - 0.78 / width, (height - low - 0.32) / height)
        axes = figure.add_axes(box)
        frame(axes, panel_title(set_name, embedded), "real outputs", "accuracy, %")
        for place, cluster in enumerate(together):
            for group in cluster:
                shift = kinds.index((group.method, group.embedding)) - (len(kinds) - 1) / 2
                _dot(axes, place + 0.7 * shift / len(kinds), group, embedded)
        axes.set_xticks(range(len(together)), [f"≈ {c[-1].outputs:,}" for c in together])
        axes.set_xlim(-0.5, len(together) - 0.5)
        axes.grid(visible=False, axis="x")
        for place in range(1, len(together)):
            axes.axvline(place - 0.5, color=colour("line"), linewidth=0.8)
        handles, labels = axes.get_legend_handles_labels()
        once = dict(zip(labels, handles, strict=True))
        shown = [g for kind in kinds for g in embedded if (g.method, g.embedding) == kind]
        named = dict.fromkeys(curve_name(group, embedded) for group in shown)
        listed = [name for name in named if name in once]
        figure.legend(
            [once[name] for name in listed], listed, loc="lower left", ncols=columns,
            bbox_to_anchor=(0.01, 0.005), borderaxespad=0, labelspacing=0.3, columnspacing=1.2,
        )  # fmt: skip

    title = f"Families at equal real outputs on {names.data_name(set_name)}"
    text = f"{len(kinds)} families at {len(together)} numbers of outputs."
    size = (WIDTH, 3.3 + 0.2 * rows)
    return picture(file_name("equal_outputs", set_name), title, text, draw, size=size)


def _dot(axes: Axes, x: float, group: Group, among: Sequence[Group]) -> None:
    look = names.look(group.embedding)
    std = group.std("accuracy")
    axes.errorbar(
        [x], [100 * mean_of(group)], yerr=None if std is None else [100 * std],
        color=colour(look.colour), marker=look.marker, markeredgecolor=colour("ink"),
        markeredgewidth=0.6, linestyle="", elinewidth=1.1, capsize=2,
        label=curve_name(group, among),
    )  # fmt: skip


def front(set_name: str, found: Sequence[Group], best: Sequence[Group]) -> Picture | None:
    """Accuracy against CPU time, memory as the size of a mark; marks on the front are named."""
    known = having(found, "accuracy", "fit_cpu_s", "peak_memory_mb")
    known = [group for group in known if mean_of(group, "fit_cpu_s") > 0]
    if len(known) < 2:
        return None
    most = max(mean_of(group, "peak_memory_mb") for group in known) or 1.0

    def radius(group: Group) -> float:
        """Points; areas grow with memory."""
        return math.sqrt(4 + 45 * mean_of(group, "peak_memory_mb") / most)

    def draw(figure: Figure) -> None:
        width, height = figure.get_size_inches()
        axes = figure.add_axes((0.66 / width, 0.52 / height, 1 - 0.78 / width, 1 - 0.84 / height))
        frame(
            axes,
            shorter(names.short_data_name(set_name), 44),
            "CPU seconds of training",
            "accuracy, %",
        )
        plain_log(axes, "fit_cpu_s", [mean_of(group, "fit_cpu_s") for group in known])
        for group in sorted(known, key=lambda g: mean_of(g, "peak_memory_mb"), reverse=True):
            on_front = group in best
            tone = "vermillion" if group.method in names.OURS else "blue"
            axes.scatter(
                mean_of(group, "fit_cpu_s"), 100 * mean_of(group),
                s=(2 * radius(group)) ** 2,
                marker="o" if group.method in names.OURS else "s",
                facecolors=colour(tone) if on_front else "none", edgecolors=colour(tone),
                alpha=0.75 if on_front else 0.6, linewidths=1,
            )  # fmt: skip
        axes.margins(0.12, 0.12)
        _name_marks(figure, axes, [g for g in best if g in known], known, radius)

    title = f"Accuracy, CPU time and memory on {names.data_name(set_name)}"
    text = (
        f"{len(known)} methods; filled marks, {len(best)} of them, are on the front; circles have "
        "label embeddings, squares are other systems; the larger, the more memory."
    )
    return picture(file_name("pareto", set_name), title, text, draw, size=(WIDTH, 3.7))


def _name_marks(
    figure: Figure,
    axes: Axes,
    marks: Sequence[Group],
    known: Sequence[Group],
    radius: Callable[[Group], float],
) -> None:
    """Write names where they lie over no mark and no other name; those without a place stay unnamed."""
    figure.draw_without_rendering()
    box, pixel = axes.get_window_extent(), figure.dpi / 72

    def at(group: Group) -> tuple[float, float]:
        x, y = axes.transData.transform((mean_of(group, "fit_cpu_s"), 100 * mean_of(group)))
        return float(x) / pixel, float(y) / pixel

    edges = (box.x0 / pixel, box.y0 / pixel, box.x1 / pixel + 6, box.y1 / pixel)
    taken = []
    for group in known:
        (x, y), r = at(group), 0.8 * radius(group)
        taken.append((x - r, y - r, x + r, y + r))
    many = len({group.method for group in marks if group.embedding}) > 1
    for group in sorted(marks, key=mean_of, reverse=True):
        short = group.embedding and not many
        name = names.vectors_name(group.embedding, group.dim)
        name = shorter(
            name if short else names.row_name(group.method, group.embedding, group.dim), 27
        )
        x, y = at(group)
        for place in _places(x, y, radius(group) + 2, 4.3 * len(name), 9):
            inside = place[0] >= edges[0] and place[1] >= edges[1]
            inside = inside and place[2] <= edges[2] and place[3] <= edges[3]
            if inside and not any(_overlap(place, other) for other in taken):
                taken.append(place)
                # Widths are estimated: text is tied to the side that is next to the mark.
                side = "right" if place[2] <= x else "left" if place[0] >= x else "center"
                edge = {"right": place[2], "left": place[0], "center": x}[side]
                axes.annotate(
                    name, (mean_of(group, "fit_cpu_s"), 100 * mean_of(group)), ha=side,
                    xytext=(edge - x, (place[1] + place[3]) / 2 - y), textcoords="offset points",
                    va="center", fontsize=8,
                )  # fmt: skip
                break


_Box = tuple[float, float, float, float]


def _places(x: float, y: float, near: float, wide: float, tall: float) -> Iterator[_Box]:
    """Boxes around a point, the nearest first."""
    for away in (near, near + 6):
        for dx, dy in ((-1, 0), (1, 0), (0, 1), (0, -1), (-1, 1), (1, -1), (-1, -1), (1, 1)):
            left = x + dx * away - (0 if dx > 0 else wide if dx < 0 else wide / 2)
            low = y + dy * (away + tall / 2) - tall / 2
            yield left, low, left + wide, low + tall


def _overlap(a: _Box, b: _Box) -> bool:
    wide, tall = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    return wide > 0 and tall > 0


def vectors(entry: Entry, points: NDArray) -> Picture:
    """t-SNE picture of the vectors of a family, coloured by the number of the label."""

    def draw(figure: Figure) -> None:
        from matplotlib.colors import LinearSegmentedColormap

        axes = figure.add_axes((0.02, 0.02, 0.96, 0.88))
        name = names.family_name(entry.embedding) + (f"-{entry.dim}" if entry.dim else "")
        axes.set_title(shorter(name, 40))
        colours = LinearSegmentedColormap.from_list("by index", _BY_INDEX)
        axes.scatter(
            points[:, 0], points[:, 1], c=points[:, 2], cmap=colours, s=4, linewidths=0,
            rasterized=True,
        )  # fmt: skip
        axes.set_aspect("equal", adjustable="datalim")
        axes.set_xticks([])
        axes.set_yticks([])
        axes.grid(visible=False)
        for side in axes.spines.values():
            side.set_visible(False)

    family = names.family_name(entry.embedding)
    title = f"t-SNE picture of {len(points):,} vectors: {family}"
    text = (
        "Each point is the vector of a label; its colour, from blue to orange, the label's number."
    )
    name = file_name(
        "tsne", entry.embedding, str(entry.dim or ""), entry.set_name, f"seed_{entry.seed}"
    )
    return picture(name, title, text, draw, size=(3.0, 3.2))
