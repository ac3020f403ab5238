"""The tables of the paper, what went wrong, and the data, made from groups of runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from locole.experiments import paper
from locole.experiments.report import names
from locole.experiments.report.entries import Entry
from locole.experiments.report.groups import Group
from locole.experiments.report.tables import (
    Cell,
    Table,
    heading,
    mean_and_std,
    number,
    paper_accuracy,
    percent,
    trouble_row,
    with_best,
)

__all__ = [
    "data_table",
    "plain_table",
    "several_table",
    "table2",
    "table3",
    "trouble_table",
]


# Figures of several labels, and how the field writes them.
_SEVERAL = (("precision", "P"), ("psp", "PSP"), ("ndcg", "nDCG"))


def table2(set_name: str, found: Sequence[Group]) -> Table:
    """Accuracy of every method on one set, with the paper's beside it where the data is the same.

    Rows of the paper that were not run are there, too, without a figure of ours.
    """
    theirs = _paper_rows(set_name, found)
    header = ["method", "accuracy, %", "real outputs", "in first 5, %", "CPU s to fit", "runs"]
    if theirs:
        header.insert(2, "the paper, %")
    parts: dict[str, list[tuple[Cell, ...]]] = {}
    for group in found:
        row = paper.Row(group.method, group.embedding, group.dim)
        beside = [paper_accuracy(theirs.pop(row, None))] if "the paper, %" in header else []
        part = _part(group.method, group.embedding, group.settings)
        parts.setdefault(part, []).append(_row2(group, beside, len(header)))
    for left, figure in theirs.items():
        cells = (Cell("not run", "soft"), paper_accuracy(figure), *[Cell("–", "soft")] * 4)
        row_name = Cell(_within(left.method, left.embedding, left.dim))
        parts.setdefault(_part(left.method, left.embedding), []).append((row_name, *cells))
    rows: list[tuple[Cell, ...]] = []
    for part, some in parts.items():
        rows += [heading(part, len(header)), *some] if len(parts) > 1 else some
    return Table(f"Accuracy on {names.data_name(set_name)}", tuple(header), with_best(rows, 1))


def plain_table(set_name: str, found: Sequence[Group]) -> Table:
    """`table2`, or `several_table` if rows have several labels."""
    has_several = any(group.mean("precision_at_1") is not None for group in found)
    return (several_table if has_several else table2)(set_name, found)


def several_table(set_name: str, found: Sequence[Group]) -> Table:
    """What the field reports of several labels: P, PSP and nDCG at 1, 3 and 5, and what it costs."""
    shares = {f"{short}@{k}": f"{name}_at_{k}" for name, short in _SEVERAL for k in (1, 3, 5)}
    amounts = {
        "CPU s to fit": "fit_cpu_s", "CPU s to predict": "predict_cpu_s",
        "memory, MB": "peak_memory_mb", "model, MB": "model_mb",
    }  # fmt: skip
    header = ("method", *shares, *amounts)
    rows = []
    for group in found:
        if not group.done:
            rows.append(trouble_row(group, group.name, len(header)))
            continue
        cells = [percent(group.mean(name)) for name in shares.values()]
        cells += [number(group.mean(name)) for name in amounts.values()]
        rows.append((Cell(group.name), *cells))
    caption = f"Several labels on {names.data_name(set_name)}, %"
    return Table(caption, header, with_best(rows, 1))


def _row2(group: Group, beside: list[Cell], columns: int) -> tuple[Cell, ...]:
    name = _within(group.method, group.embedding, group.dim, group.settings)
    name += "" if group.engine == "threads" else f", {group.engine}"
    if not group.done:
        if not beside:
            return Cell(name), Cell(group.trouble, "trouble", span=columns - 1)
        return Cell(name), Cell(group.trouble, "trouble"), *beside, *[Cell("–", "soft")] * 4
    return (
        Cell(name),
        mean_and_std(group),
        *beside,
        number(group.outputs, 0),
        percent(group.mean("accuracy_at_5")),
        number(group.mean("fit_cpu_s")),
        Cell(str(len(group.done)), "number"),
    )


def _part(method: str, embedding: str, settings: str = "") -> str:
    """Heading below which a row stands."""
    if not embedding:
        return "defaults and other systems"
    options = names.settings_text(settings)
    return f"{names.method_name(method)} on embeddings" + (f" ({options})" if options else "")


def _within(method: str, embedding: str, dim: int | None, settings: str = "") -> str:
    """Name of a row below its heading, which names the method of embeddings."""
    if embedding:
        return names.vectors_name(embedding, dim)
    return names.row_name(method, embedding, dim, settings)


def _paper_rows(set_name: str, found: Sequence[Group]) -> dict[paper.Row, paper.Accuracy]:
    """Rows of the paper on the same data; none for quick runs and other splits."""
    rows = next((group.rows for group in found if group.rows), None)
    return dict(paper.TABLE2[set_name]) if paper.is_same_data(set_name, rows) else {}


def table3(set_name: str, found: Sequence[Group]) -> Table:
    """Seconds of training and accuracy on one set, on one machine and distributed."""
    rows_seen = next((group.rows for group in found if group.rows), None)
    theirs = paper.TABLE3[set_name] if paper.is_same_data(set_name, rows_seen) else {}
    header = ["method", "accuracy, %", "seconds", "CPU s", "memory, MB", "on"]
    if theirs:
        header[2:2] = ["the paper, %"]
        header[4:4] = ["the paper, s"]
    rows = []
    for group in found:
        where = "single" if group.engine == "threads" else "distributed"
        beside = theirs.get((where, paper.Row(group.method, group.embedding, group.dim)))
        if not group.done:
            rows.append(trouble_row(group, group.name, len(header)))
            continue
        cells = [Cell(group.plain_name), mean_and_std(group)]
        cells += [number(beside and beside.accuracy, 2)] if theirs else []
        cells += [number(group.mean("fit_wall_s"))]
        cells += [number(beside and beside.seconds)] if theirs else []
        cells += [number(group.mean("fit_cpu_s")), number(group.mean("peak_memory_mb"))]
        rows.append((*cells, Cell(_place(group), "word")))
    caption = f"Time and accuracy on {names.data_name(set_name)}"
    return Table(caption, tuple(header), with_best(rows, 1))


def _place(group: Group) -> str:
    threads = group.mean("threads")
    if group.engine != "threads":
        return group.engine
    return "threads" if threads is None else f"{threads:.0f} thread" + "s" * (threads != 1)


def trouble_table(found: Iterable[Entry]) -> Table:
    """Every run without figures, with its reason; runs that differ in the seed only share a row."""
    seeds: dict[tuple[str, ...], list[str]] = {}
    for entry in found:
        if not entry.is_done:
            name = names.row_name(entry.method, entry.embedding, entry.dim, entry.settings)
            name += "" if entry.engine == "threads" else f", {entry.engine}"
            reason = "time limit reached" if entry.status == "timeout" else entry.status
            key = (name, reason, entry.experiment, names.data_name(entry.set_name))
            seeds.setdefault(key, []).append("–" if entry.seed is None else str(entry.seed))
    rows = [
        (
            Cell(name),
            Cell(reason, "trouble"),
            Cell(experiment),
            Cell(data),
            Cell(", ".join(some), "word" if len(some) < 9 else "text"),
        )
        for (name, reason, experiment, data), some in seeds.items()
    ]
    header = ("method", "reason", "experiment", "data", "seeds")
    return Table("Runs that failed or reached their time limit", header, tuple(rows))


def data_table(found: Iterable[Entry]) -> Table:
    """Sets that the runs saw, as large as the records say."""
    sizes: dict[str, Entry] = {}
    for entry in found:
        # A run that failed early may not know; t-SNE pictures have no data.
        if "rows" in entry.values and entry.values["rows"] > 0:
            sizes.setdefault(entry.set_name, entry)
    rows = [
        (
            Cell(names.data_name(name)),
            *(
                number(entry.values.get(key), 0)
                for key in ("rows", "test_rows", "features", "labels")
            ),
        )
        for name, entry in sorted(sizes.items())
    ]
    return Table("Data", ("set", "rows", "test rows", "features", "labels"), tuple(rows))
