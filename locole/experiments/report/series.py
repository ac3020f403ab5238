"""Tables of runs side by side: families at equal outputs, dims as they grow, and what costs least."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from locole.experiments.report import names
from locole.experiments.report.groups import Group, clusters
from locole.experiments.report.sentences import signed
from locole.experiments.report.tables import (
    Cell,
    Table,
    mean_and_std,
    number,
    trouble_row,
    with_best,
)

__all__ = [
    "dimension_table",
    "equal_outputs_table",
    "front_table",
    "pareto",
    "sequences",
]


def sequences(found: Iterable[Group]) -> list[list[Group]]:
    """Groups that differ in the dim only, from small dims to large."""
    together: dict[tuple[str, ...], list[Group]] = {}
    for group in found:
        key = (group.method, group.embedding, group.settings, group.engine)
        together.setdefault(key, []).append(group)
    return [sorted(some, key=lambda g: g.outputs or g.dim or 0) for some in together.values()]


def equal_outputs_table(set_name: str, found: Sequence[Group]) -> Table:
    """Families side by side: a line for each number of outputs, a column for each family."""
    kinds = list(dict.fromkeys((group.method, group.embedding) for group in found))
    one_method = len({method for method, _ in kinds}) == 1
    header = ["real outputs"]
    for method, embedding in kinds:
        family = names.family_name(embedding) or names.method_name(method)
        header.append(family if one_method else names.row_name(method, embedding))
    rows = []
    for cluster in clusters(found):
        cells: list[Cell] = [_outputs(cluster)]
        for kind in kinds:
            here = [g for g in cluster if (g.method, g.embedding) == kind]
            best = max(here, key=lambda g: g.mean("accuracy") or -1, default=None)
            if best is None:
                cells.append(Cell("–", "soft"))
            else:
                trouble = Cell(best.trouble, "trouble")
                figure = replace(mean_and_std(best), share=None)
                cells.append(figure if best.done else trouble)
        rows.append(_best_of_row(cells))
    unplaced = [g for g in found if not g.outputs]
    rows += [trouble_row(g, g.name, len(header)) for g in unplaced if not g.done]
    caption = f"Accuracy (%) of families at equal real outputs on {names.data_name(set_name)}"
    return Table(caption, tuple(header), tuple(rows))


def _outputs(cluster: Sequence[Group]) -> Cell:
    least, most = cluster[0].outputs or 0, cluster[-1].outputs or 0
    return Cell(f"{least:,}" if least == most else f"{least:,} to {most:,}")


def _best_of_row(cells: Sequence[Cell]) -> tuple[Cell, ...]:
    turned = with_best([(cell,) for cell in cells[1:]], 0)
    return cells[0], *(cell for (cell,) in turned)


def dimension_table(set_name: str, steps: Sequence[Group], chosen: Sequence[Group] = ()) -> Table:
    """Dims as they were grown, what each gained and cost; then the chosen one on the test part."""
    header = ("dim", "accuracy, %", "gain, points", "real outputs", "CPU s to fit")
    rows: list[tuple[Cell, ...]] = []
    before: float | None = None
    for group in steps:
        mean = group.mean("accuracy")
        gain = None if mean is None or before is None else 100 * (mean - before)
        rows.append(_step(group, _dim(group), gain, len(header)))
        before = mean if group.done else before
    rows = list(with_best(rows, 1))
    rows += [_step(group, f"{_dim(group)}, test part", None, len(header)) for group in chosen]
    what = names.row_name(steps[0].method, steps[0].embedding, settings=steps[0].settings)
    return Table(f"{what} on {names.data_name(set_name)}", header, tuple(rows))


def _dim(group: Group) -> str:
    return f"{group.dim:,}" if group.dim else "chosen by the method"


def _step(group: Group, name: str, gain: float | None, columns: int) -> tuple[Cell, ...]:
    if not group.done:
        return trouble_row(group, name, columns)
    gained = Cell("–", "soft") if gain is None else Cell(signed(gain), "number")
    cells = (replace(mean_and_std(group), share=None), gained, number(group.outputs, 0))
    return Cell(name), *cells, number(group.mean("fit_cpu_s"))


def pareto(found: Iterable[Group]) -> list[Group]:
    """Groups that no other beats: as accurate, as fast and as small, and better in one of these.

    Those without accuracy, seconds or memory are left out. Sorted by seconds.
    """
    points = []
    for group in found:
        accuracy, seconds = group.mean("accuracy"), group.mean("fit_cpu_s")
        memory = group.mean("peak_memory_mb")
        if accuracy is not None and seconds is not None and memory is not None:
            points.append((group, (-accuracy, seconds, memory)))
    kept = [
        (group, costs)
        for group, costs in points
        if not any(
            all(a <= b for a, b in zip(other, costs, strict=True)) and other != costs
            for _, other in points
        )
    ]
    return [group for group, costs in sorted(kept, key=lambda pair: pair[1][1])]


def front_table(set_name: str, front: Sequence[Group]) -> Table:
    """What the front of accuracy, time and memory is made of."""
    rows = [
        (
            Cell(group.name),
            mean_and_std(group),
            number(group.mean("fit_cpu_s")),
            number(group.mean("peak_memory_mb")),
            number(group.mean("model_mb")),
        )
        for group in front
    ]
    header = ("method", "accuracy, %", "CPU s to fit", "peak memory, MB", "model, MB")
    caption = f"The front on {names.data_name(set_name)}, from little time to much"
    return Table(caption, header, with_best(rows, 1))
