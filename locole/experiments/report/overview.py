"""All sets side by side, and tables of records as Markdown for documentation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from locole.experiments.report import names, results, series
from locole.experiments.report.axes import file_name
from locole.experiments.report.entries import entries, pool
from locole.experiments.report.groups import Group, by_set, groups
from locole.experiments.report.tables import Cell, Table, mean_and_std, number, with_best

__all__ = ["markdown_tables", "overview_table"]

_Kind = tuple[str, str, str, str]


def overview_table(sets: Mapping[str, Sequence[Group]]) -> Table:
    """Methods by data sets: each family at its most outputs, accuracy and CPU seconds of training.

    Parameters
    ----------
    sets : mapping
        Groups of each set. The largest dim is taken, not the best: choosing by the test part would
        flatter.
    """
    largest = {name: _largest(some) for name, some in sets.items()}
    kinds = sorted(
        dict.fromkeys(kind for found in largest.values() for kind in found),
        key=lambda kind: (*names.order(kind[0], kind[1], None, kind[2]), kind[3]),
    )
    header = ["method"]
    for name in sets:
        header += [f"{names.short_data_name(name)}, %", "CPU s"]
    rows: list[tuple[Cell, ...]] = []
    for kind in kinds:
        cells = [Cell(_name(kind, [found.get(kind) for found in largest.values()]))]
        for found in largest.values():
            cells += _pair(found.get(kind))
        rows.append(tuple(cells))
    marked = tuple(rows)
    for column in range(1, len(header), 2):
        marked = with_best(marked, column)
    return Table("All sets; families at their most outputs", tuple(header), marked)


def _largest(some: Iterable[Group]) -> dict[_Kind, Group]:
    """Group with most outputs of each method and family."""
    found: dict[_Kind, Group] = {}
    for group in some:
        kind = (group.method, group.embedding, group.settings, group.engine)
        before = found.get(kind)
        if before is None or (group.outputs or group.dim or 0) > (
            before.outputs or before.dim or 0
        ):
            found[kind] = group
    return found


def _name(kind: _Kind, found: Sequence[Group | None]) -> str:
    """Name of a row, with the dim if it is the same on all sets."""
    dims = {group.dim for group in found if group is not None}
    name = names.row_name(kind[0], kind[1], dims.pop() if len(dims) == 1 else None, kind[2])
    return name if kind[3] == "threads" else f"{name}, {kind[3]}"


def _pair(group: Group | None) -> list[Cell]:
    if group is None:
        return [Cell("–", "soft"), Cell("–", "soft")]
    if not group.done:
        late = all(run.status == "timeout" for run in group.runs)
        return [Cell("time limit" if late else "failed", "trouble word"), Cell("–", "soft")]
    shown = mean_and_std(group)
    return [Cell(shown.text, "number"), number(group.mean("fit_cpu_s"))]


def markdown_tables(records: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Tables of the report as Markdown, by name.

    Parameters
    ----------
    records : iterable of mappings
        As `locole.experiments.records.read` gives them.

    Returns
    -------
    dict
        ``overview``, and for each set ``table2_<set>``, ``table3_<set>`` and ``equal_outputs_<set>``,
        as far as there are records.

    Examples
    --------
    >>> run = {"experiment": "table2", "data": "ulm", "method": "mach", "status": "done"}
    >>> tables = markdown_tables([run | {"accuracy": 0.5, "seed": seed} for seed in (0, 1)])
    >>> list(tables)
    ['overview', 'table2_ulm']
    >>> print(tables["overview"], end="")
    | method | ulm, % | CPU s |
    | --- | ---: | --- |
    | MACH | 50.00 ± 0.00 | – |
    """
    found = entries(records)
    made: dict[str, str] = {}
    sets = by_set(groups(pool(found, "table2")))
    if sets:
        made["overview"] = overview_table(sets).markdown()
    makers = {
        "table2": results.table2,
        "table3": results.table3,
        "equal_outputs": series.equal_outputs_table,
    }
    for experiment, maker in makers.items():
        for name, some in by_set(groups(pool(found, experiment))).items():
            made[file_name(experiment, name)] = maker(name, some).markdown()
    return made
