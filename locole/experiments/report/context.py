"""Sections beyond the paper's: the user's own experiments, what went wrong, data and machine."""

from __future__ import annotations

from collections.abc import Sequence

from locole.experiments import paper
from locole.experiments.report import results, sentences
from locole.experiments.report.entries import Entry, pool
from locole.experiments.report.groups import by_set, groups
from locole.experiments.report.page import Block, Section
from locole.experiments.report.tables import csv_of, csv_of_groups

__all__ = ["SHIPPED", "other", "setting", "trouble"]

#: Experiments that the report has a section for.
SHIPPED = ("table2", "figure1", "figure3", "equal_outputs", "table3", "dimension", "tsne")


def other(found: Sequence[Entry]) -> Section | None:
    """Experiments of the user's own, as tables like the second, or of several labels."""
    own = [name for name in dict.fromkeys(e.experiment for e in found) if name not in SHIPPED]
    blocks, rows = [], []
    for experiment in own:
        for name, some in by_set(groups(pool(found, experiment))).items():
            table = results.plain_table(name, some)
            blocks.append(Block(experiment, [sentences.about_best(name, some)], [], [table]))
            rows += some
    if not blocks:
        return None
    return Section("other", "Other experiments", "", blocks, csv=csv_of_groups(rows))


def trouble(found: Sequence[Entry]) -> Section | None:
    """Every run without figures; None if all have some."""
    bad = [entry for entry in found if not entry.is_done]
    if not bad:
        return None
    block = Block(tables=[results.trouble_table(bad)], sentences=[sentences.about_trouble(found)])
    rows = [
        (e.experiment, e.data, e.quick, e.method, e.settings, e.embedding, e.dim, e.seed, e.status)
        for e in bad
    ]
    header = (
        "experiment",
        "data",
        "quick",
        "method",
        "settings",
        "embedding",
        "dim",
        "seed",
        "status",
    )
    title = "Runs without figures"
    lead = "Every run that failed or reached its time limit, with its reason."
    return Section("trouble", title, lead, [block], csv=csv_of(header, rows))


def setting(found: Sequence[Entry]) -> Section:
    """What the runs were made with, and what has not been run."""
    facts = []
    for key in ("machine", "threads", "python", "locole", "numpy", "scipy", "numba"):
        values = dict.fromkeys(_fact(entry, key) for entry in found)
        known = [value for value in values if value]
        if known:
            facts.append((key, ", ".join(known)))
    days = sorted(day for entry in found if (day := entry.texts.get("started", "")[:10]))
    if days:
        facts.append(("days", days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"))
    missing = [name for name in SHIPPED if not any(e.experiment == name for e in found)]
    if missing:
        facts.append(("not run", ", ".join(f"locole bench {name}" for name in missing)))
    lead = (
        "± is the standard deviation over seeds, with n − 1 below the sum. Accuracy is that of the "
        f"first answer. The paper is {paper.SOURCE}."
    )
    blocks = [Block(tables=[results.data_table(found)])]
    return Section("setting", "Data and machine", lead, blocks, facts)


def _fact(entry: Entry, key: str) -> str:
    if key == "threads":
        return f"{entry.values[key]:.0f}" if key in entry.values else ""
    return entry.texts.get(key, "")
