"""Runs that differ in nothing but the seed, taken together: means, spreads and what went wrong."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from locole.experiments import paper
from locole.experiments.report import names
from locole.experiments.report.entries import Entry

__all__ = ["Group", "by_set", "clusters", "groups", "rank_correlation"]

# Families cannot all have the same outputs: 254 of Nelson and 256 of Kerdock count as equal.
_EQUAL = 1.06


@dataclass(frozen=True)
class Group:
    """Runs of one method with one embedding on one set, over all seeds."""

    set_name: str
    data: str
    method: str
    settings: str
    embedding: str
    dim: int | None
    engine: str
    runs: tuple[Entry, ...]

    @property
    def done(self) -> tuple[Entry, ...]:
        """Runs with figures."""
        return tuple(run for run in self.runs if run.is_done)

    @property
    def outputs(self) -> int | None:
        """Real outputs, from any run that says how many."""
        known = [run.outputs for run in self.runs if run.outputs]
        return known[0] if known else None

    @property
    def rows(self) -> int | None:
        """Training rows, from any run that says how many."""
        known = [run.values["rows"] for run in self.runs if "rows" in run.values]
        return int(known[0]) if known else None

    @property
    def plain_name(self) -> str:
        """What it is called where the engine is said elsewhere."""
        return names.row_name(self.method, self.embedding, self.dim, self.settings)

    @property
    def name(self) -> str:
        """What it is called in sentences and tables."""
        return self.plain_name + ("" if self.engine == "threads" else f", {self.engine}")

    @property
    def trouble(self) -> str:
        """What the runs without figures ended in, each reason once; empty if there are none."""
        ends = [run.status for run in self.runs if not run.is_done]
        if not ends:
            return ""
        reasons = "; ".join(dict.fromkeys(_reason(end) for end in ends))
        if not self.done:
            return reasons
        return f"{len(ends)} of {len(self.runs)} runs: {reasons}"

    def values(self, figure: str) -> list[float]:
        """Figures of all runs that have them."""
        return [run.values[figure] for run in self.done if figure in run.values]

    def mean(self, figure: str) -> float | None:
        """Mean over the seeds; None if no run has the figure."""
        found = self.values(figure)
        return math.fsum(found) / len(found) if found else None

    def std(self, figure: str) -> float | None:
        """Standard deviation with n − 1 below; None for fewer than two runs."""
        found = self.values(figure)
        if len(found) < 2:
            return None
        mean = math.fsum(found) / len(found)
        return math.sqrt(math.fsum((value - mean) ** 2 for value in found) / (len(found) - 1))


def groups(found: Iterable[Entry]) -> list[Group]:
    """Put runs together that only differ in the seed, sorted as tables show them.

    Examples
    --------
    >>> from locole.experiments.report.entries import entries
    >>> run = {"experiment": "table2", "data": "d", "method": "mach", "status": "done"}
    >>> runs = [run | {"seed": seed, "accuracy": 0.5 + 0.1 * seed} for seed in range(3)]
    >>> (group,) = groups(entries(runs))
    >>> round(group.mean("accuracy"), 6), round(group.std("accuracy"), 6), group.trouble
    (0.6, 0.1, '')
    """
    together: dict[tuple[str, str, str, str, int | None, str], list[Entry]] = {}
    for entry in found:
        key = (entry.set_name, entry.method, entry.settings, entry.embedding, entry.dim)
        together.setdefault((*key, entry.engine), []).append(entry)
    made = [
        Group(set_name, runs[0].data, method, settings, embedding, dim, engine, tuple(runs))
        for (set_name, method, settings, embedding, dim, engine), runs in together.items()
    ]
    return sorted(
        made,
        key=lambda g: (*names.order(g.method, g.embedding, g.dim, g.settings), g.engine),
    )


def by_set(found: Iterable[Group]) -> dict[str, list[Group]]:
    """Groups of each data set: the paper's sets first, quick runs last.

    Examples
    --------
    >>> by_set([])
    {}
    """
    sets: dict[str, list[Group]] = {}
    for group in found:
        sets.setdefault(group.set_name, []).append(group)
    known = list(paper.SIZES)

    def place(name: str) -> tuple[bool, int, str]:
        data = name.partition(", ")[0]
        return name.endswith(", quick"), known.index(data) if data in known else len(known), name

    return {name: sets[name] for name in sorted(sets, key=place)}


def clusters(found: Iterable[Group]) -> list[list[Group]]:
    """Groups at (nearly) equal real outputs, from few outputs to many."""
    together: list[list[Group]] = []
    for group in sorted(
        (group for group in found if group.outputs), key=lambda group: group.outputs or 0
    ):
        first = together[-1][0].outputs if together else None
        if first and (group.outputs or 0) <= _EQUAL * first:
            together[-1].append(group)
        else:
            together.append([group])
    return together


def rank_correlation(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Spearman's: Pearson's correlation of the ranks; None if there are fewer than four pairs.

    Examples
    --------
    >>> rank_correlation([1, 2, 3, 4], [10, 20, 40, 30])
    0.8
    """
    if len(x) < 4 or len(set(x)) < 2 or len(set(y)) < 2:
        return None
    a, b = _ranks(x), _ranks(y)
    middle = (len(a) + 1) / 2
    top = math.fsum((p - middle) * (q - middle) for p, q in zip(a, b, strict=True))
    below = math.fsum((p - middle) ** 2 for p in a) * math.fsum((q - middle) ** 2 for q in b)
    return top / math.sqrt(below)


def _ranks(values: Sequence[float]) -> list[float]:
    """Places from 1; equal values share the mean of theirs."""
    ordered = sorted(values)
    return [(2 * ordered.index(value) + ordered.count(value) + 1) / 2 for value in values]


def _reason(status: str) -> str:
    return "time limit reached" if status == "timeout" else status
