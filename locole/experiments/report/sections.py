"""The sections of the report: which runs each takes, and what it makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from locole.experiments.report import (
    context,
    figures,
    names,
    panels,
    results,
    sentences,
    series,
    trends,
)
from locole.experiments.report.drawing import Picture
from locole.experiments.report.entries import Entry, pool
from locole.experiments.report.groups import Group, by_set, groups
from locole.experiments.report.overview import overview_table
from locole.experiments.report.page import Block, Section
from locole.experiments.report.points import clark_evans, read_points
from locole.experiments.report.tables import csv_of_groups

__all__ = ["make_sections"]

# In the name of a set that was tested on validation rows.
_VALIDATION = ", part=validation"
# Those whose runs show what accuracy costs.
_MEASURED = ("table2", "table3", "equal_outputs", "figure1", "figure3")


def make_sections(found: Sequence[Entry], folder: Path) -> list[Section]:
    """Sections for which there are runs, then what is true of all of them.

    Parameters
    ----------
    found : sequence of Entry
        All runs.
    folder : path
        Where files that records name are.
    """
    makers = (_table2, _figure1, _figure3, _equal_outputs, _table3, _pareto, _dimension)
    made = [maker(found) for maker in makers]
    made += [context.other(found), _tsne(found, folder), context.trouble(found)]
    return [section for section in made if section is not None] + [context.setting(found)]


def _sets(found: Sequence[Entry], *experiments: str) -> dict[str, list[Group]]:
    return by_set(groups(pool(found, *experiments)))


def _flat(sets: dict[str, list[Group]]) -> list[Group]:
    return [group for some in sets.values() for group in some]


def _drawn(*pictures: Picture | None) -> list[Picture]:
    return [picture for picture in pictures if picture is not None]


def _table2(found: Sequence[Entry]) -> Section | None:
    sets = _sets(found, "table2")
    if not sets:
        return None
    blocks = [
        Block(
            tables=[results.table2(name, some)],
            sentences=[sentences.about_best(name, some), sentences.about_paper(name, some)],
        )
        for name, some in sets.items()
    ]
    if len(sets) > 1:
        blocks.insert(0, Block(tables=[overview_table(sets)]))
    lead = (
        "Accuracy of every embedding and dim, and of the other systems: mean ± standard deviation "
        "over the seeds, the best in bold. The paper's figures stand beside ours where the data is "
        "the same."
    )
    return Section("table2", "Accuracy (Table 2)", lead, blocks, csv=csv_of_groups(_flat(sets)))


def _figure1(found: Sequence[Entry]) -> Section | None:
    sets = _sets(found, "figure1", "table2")
    blocks = []
    for name, some in sets.items():
        draw = (figures.against_coherence, figures.against_outputs, figures.against_time)
        pictures = _drawn(*(function(name, some) for function in draw))
        said = [sentences_of(name, some) for sentences_of in (trends.about_correlation, _growth)]
        if pictures:
            blocks.append(Block(names.data_name(name), said, pictures))
    if not blocks:
        return None
    lead = (
        "As in the paper, coherence falls to the right, and methods without embeddings are lines. "
        "The same runs stand beside it against the real outputs and against the CPU time that they "
        "take. Bars are standard deviations over the seeds."
    )
    title = "Accuracy against coherence, outputs and time (Figure 1)"
    return Section("figure1", title, lead, blocks, csv=csv_of_groups(_flat(sets)))


def _growth(name: str, some: Sequence[Group]) -> str:
    return trends.about_growth(name, series.sequences(some))


def _figure3(found: Sequence[Entry]) -> Section | None:
    sets = _sets(found, "figure3", "figure1", "table2")
    blocks = []
    for name, some in sets.items():
        pictures = _drawn(figures.metrics_against_coherence(name, some))
        if pictures:
            blocks.append(
                Block(names.data_name(name), [trends.about_metrics(name, some)], pictures)
            )
    if not blocks:
        return None
    lead = (
        "Macro averages count every label alike, micro averages every row; with one label a row, "
        "micro precision and micro recall are both the accuracy. Coherence falls to the right."
    )
    title = "Precision and recall (Figure 3)"
    return Section("figure3", title, lead, blocks, csv=csv_of_groups(_flat(sets)))


def _equal_outputs(found: Sequence[Entry]) -> Section | None:
    sets = _sets(found, "equal_outputs")
    if not sets:
        return None
    blocks = []
    for name, some in sets.items():
        pictures = _drawn(panels.equal_outputs(name, some))
        table = series.equal_outputs_table(name, some)
        said = [trends.about_equal_outputs(name, some)]
        blocks.append(Block(names.data_name(name), said, pictures, [table]))
    lead = (
        "A complex vector of dim n costs 2n real outputs. Here families stand side by side at equal "
        "cost; outputs within 6 % of each other count as equal, because not every family has every dim."
    )
    title = "Families at equal real outputs"
    return Section("equal_outputs", title, lead, blocks, csv=csv_of_groups(_flat(sets)))


def _table3(found: Sequence[Entry]) -> Section | None:
    sets = _sets(found, "table3")
    if not sets:
        return None
    blocks = [
        Block(
            tables=[results.table3(name, some)],
            sentences=[sentences.about_times(name, some)],
        )
        for name, some in sets.items()
    ]
    lead = (
        "Seconds are those that passed while training, CPU seconds those of all threads together, "
        "memory the peak of the whole process. The paper trained on 36 cores, and on ten machines "
        "with 360."
    )
    title = "Time and accuracy (Table 3)"
    return Section("table3", title, lead, blocks, csv=csv_of_groups(_flat(sets)))


def _pareto(found: Sequence[Entry]) -> Section | None:
    sets = _sets(found, *_MEASURED)
    blocks = []
    for name, some in sets.items():
        front = series.pareto(some)
        pictures = _drawn(panels.front(name, some, front))
        said = [sentences.about_front(name, some, front)]
        if pictures:
            table = series.front_table(name, front)
            blocks.append(Block(names.data_name(name), said, pictures, [table]))
    if not blocks:
        return None
    lead = (
        "Filled marks are on the front: nothing else measured is at least as accurate, as fast and as "
        "small in memory. Circles learn label embeddings, squares are other systems; the larger a "
        "mark, the more memory its training took."
    )
    title = "Accuracy, time and memory"
    return Section("pareto", title, lead, blocks, csv=csv_of_groups(_flat(sets)))


def _dimension(found: Sequence[Entry]) -> Section | None:
    sets = _sets(found, "dimension")
    if not sets:
        return None
    blocks = []
    for name, some in sets.items():
        tested = sets.get(name.replace(_VALIDATION, ""), []) if _VALIDATION in name else []
        # Those that were chosen stand below their steps, not alone.
        steps = [g for g in some if _VALIDATION in name or not _has_steps(g, sets)]
        for series_steps in series.sequences(steps):
            chosen = [g for g in tested if _same_but_dim(g, series_steps[0])]
            table = series.dimension_table(name, series_steps, chosen)
            said = trends.about_dimension(name, series_steps, chosen)
            blocks.append(Block(tables=[table], sentences=[said]))
    lead = (
        "The paper's procedure: enlarge the dim until the accuracy gains little. Steps are measured on "
        "validation rows, the dim that was chosen on the test part, where the records say so."
    )
    title = "Choosing the dim"
    return Section("dimension", title, lead, blocks, csv=csv_of_groups(_flat(sets)))


def _has_steps(group: Group, sets: dict[str, list[Group]]) -> bool:
    return any(
        _same_but_dim(group, other)
        for name, some in sets.items()
        if _VALIDATION in name and name.replace(_VALIDATION, "") == group.set_name
        for other in some
    )


def _same_but_dim(a: Group, b: Group) -> bool:
    kinds = [(g.method, g.embedding, g.settings, g.engine) for g in (a, b)]
    return kinds[0] == kinds[1]


def _tsne(found: Sequence[Entry], folder: Path) -> Section | None:
    pictures, indices, lost = [], {}, []
    wanted = pool(found, "tsne")
    # Quick pictures of few vectors count until there are others.
    if any(entry.is_done and not entry.quick for entry in wanted):
        wanted = [entry for entry in wanted if not entry.quick]
    wanted.sort(key=lambda e: names.order(e.method, e.embedding, e.dim, e.settings))
    for entry in wanted:
        points = read_points(folder, entry) if entry.is_done else None
        if points is None:
            lost.append(names.row_name(entry.method, entry.embedding, entry.dim))
            continue
        pictures.append(panels.vectors(entry, points))
        index = clark_evans(points)
        if index is not None:
            indices[names.vectors_name(entry.embedding, entry.dim)] = index
    if not pictures and not lost:
        return None
    said = [trends.about_spread(indices)]
    if lost:
        said.append(f"Without a picture: {sentences.listed(lost)}.")
    lead = "Vectors of labels in two dimensions. Colours run from the first label to the last."
    return Section(
        "tsne", "Pictures of vectors (t-SNE)", lead, [Block("", said, pictures, small=True)]
    )
