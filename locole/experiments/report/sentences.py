"""Sentences below tables, computed from runs; empty where there is too little to say anything."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from locole.experiments import paper
from locole.experiments.report import names
from locole.experiments.report.entries import Entry
from locole.experiments.report.groups import Group

__all__ = [
    "about_best",
    "about_counts",
    "about_front",
    "about_paper",
    "about_times",
    "about_trouble",
    "having",
    "listed",
    "mean_of",
    "signed",
    "times",
]

# Points that are few enough to ask for the fastest.
_NEAR = 0.01


def having(found: Iterable[Group], *figures: str) -> list[Group]:
    """Groups that have all of these figures."""
    return [g for g in found if all(g.mean(figure) is not None for figure in figures)]


def mean_of(group: Group, figure: str = "accuracy") -> float:
    """Mean of a figure that the group is known to have."""
    value = group.mean(figure)
    assert value is not None
    return value


def _percent(group: Group) -> str:
    std = group.std("accuracy")
    spread = "" if std is None else f" ± {100 * std:.2f}"
    return f"{100 * mean_of(group):.2f}{spread} %"


def times(ratio: float) -> str:
    """Ratio as people say it."""
    return f"{ratio:.0f}" if ratio >= 9.95 else f"{ratio:.1f}"


def listed(parts: Sequence[str]) -> str:
    """Parts with commas, and with "and" before the last."""
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]


def about_counts(found: Sequence[Entry]) -> str:
    """How many runs there are, and how they ended."""
    if not found:
        return ""
    done = sum(entry.is_done for entry in found)
    limits = sum(entry.status == "timeout" for entry in found)
    failed = len(found) - done - limits
    runs = f"{len(found):,} run" + "s" * (len(found) != 1)
    return f"{runs}: {done:,} done, {failed:,} failed, {limits:,} stopped at a time limit."


def about_best(set_name: str, found: Iterable[Group]) -> str:
    """Which method is the most accurate, and how far the best of the other kind is behind."""
    ranked = sorted(having(found, "accuracy"), key=mean_of, reverse=True)
    if len(ranked) < 2:
        return ""
    best = ranked[0]
    said = f"On {names.short_data_name(set_name)} the most accurate is {best.name} with {_percent(best)}"
    ours = best.method in names.OURS
    others = [group for group in ranked if (group.method in names.OURS) != ours]
    if not others:
        second = ranked[1]
        return f"{said}, followed by {second.name} with {_percent(second)}.{_caution(best, second)}"
    kind = "other systems" if ours else "methods with label embeddings"
    said += f"; of the {kind} it is {others[0].name} with {_percent(others[0])}."
    return said + _caution(best, others[0])


def _caution(best: Group, other: Group) -> str:
    """Say so if the difference is no larger than what a seed changes."""
    spreads = [s for group in (best, other) if (s := group.std("accuracy")) is not None]
    if len(spreads) < 2:
        return " Some of these figures come from one seed." if _one_seed(best, other) else ""
    gap = mean_of(best) - mean_of(other)
    if gap <= max(spreads):
        return " The difference is no larger than the standard deviation over the seeds."
    return ""


def _one_seed(*some: Group) -> bool:
    return any(len(group.done) < 2 for group in some)


def about_paper(set_name: str, found: Iterable[Group]) -> str:
    """How often ours is above and below the paper's figure for the same row and data."""
    above = below = near = 0
    for group in having(found, "accuracy"):
        if not paper.is_same_data(set_name, group.rows):
            continue
        row = paper.Row(group.method, group.embedding, group.dim)
        theirs = paper.TABLE2[set_name].get(row)
        if theirs is None or theirs.mean is None:
            continue
        gap = 100 * mean_of(group) - theirs.mean
        slack = 100 * (group.std("accuracy") or 0.0) + (theirs.std or 0.0)
        above, below, near = (
            above + (gap > slack),
            below + (gap < -slack),
            near + (abs(gap) <= slack),
        )
    total = above + below + near
    if total == 0:
        return ""
    return (
        f"Of {total} rows that the paper has, ours is above in {above}, below in {below}, and "
        f"within the two standard deviations in {near}."
    )


def about_times(set_name: str, found: Iterable[Group]) -> str:
    """The fastest of ours against each other system: times, and points of accuracy."""
    timed = having(found, "accuracy", "fit_wall_s")
    said = []
    for engine in dict.fromkeys(group.engine for group in timed):
        here = [
            group for group in timed if group.engine == engine and mean_of(group, "fit_wall_s") > 0
        ]
        ours = [group for group in here if group.method in names.OURS and group.method != "auto"]
        others = [group for group in here if group.method not in names.OURS]
        if not ours or not others:
            continue
        mine = min(ours, key=lambda group: mean_of(group, "fit_wall_s"))
        parts = [_compared(mine, other) for other in others]
        where = "" if engine == "threads" else f" on {engine}"
        seconds = mean_of(mine, "fit_wall_s")
        said.append(
            f"On {names.short_data_name(set_name)}{where}, {mine.plain_name} is trained in "
            f"{seconds:.3g} s, {listed(parts)}."
        )
    return " ".join(said)


def _compared(mine: Group, other: Group) -> str:
    ratio = mean_of(other, "fit_wall_s") / mean_of(mine, "fit_wall_s")
    gap = signed(100 * (mean_of(mine) - mean_of(other)))
    if ratio >= 1:
        return f"{times(ratio)} times less than {other.plain_name} ({gap} points of accuracy)"
    return f"{times(1 / ratio)} times as long as {other.plain_name} ({gap} points of accuracy)"


def signed(value: float) -> str:
    """Number with its sign, and with a minus that is one."""
    return f"{value:+.2f}".replace("-", "−")


def about_front(set_name: str, found: Sequence[Group], front: Sequence[Group]) -> str:
    """How many methods are on the front, and the cheapest that is nearly as good as the best."""
    known = having(found, "accuracy", "fit_cpu_s", "peak_memory_mb")
    if len(known) < 2 or not front:
        return ""
    said = (
        f"On {names.short_data_name(set_name)}, {len(front)} of {len(known)} are on the front: no "
        "other is at least as accurate, as fast and as small in memory."
    )
    best = max(front, key=mean_of)
    near = [group for group in front if mean_of(group) >= mean_of(best) - _NEAR]
    cheap = min(near, key=lambda group: mean_of(group, "fit_cpu_s"))
    seconds, most = mean_of(cheap, "fit_cpu_s"), mean_of(best, "fit_cpu_s")
    if cheap is best or seconds <= 0 or most / seconds < 1.05:
        return said
    return said + (
        f" Within one point of {best.name} ({_percent(best)}), the fastest is {cheap.name} with "
        f"{_percent(cheap)} in {times(most / seconds)} times less CPU time."
    )


def about_trouble(found: Sequence[Entry]) -> str:
    """Which methods have runs without figures."""
    ends: dict[str, int] = {}
    for entry in found:
        if not entry.is_done:
            name = names.method_name(entry.method)
            ends[name] = ends.get(name, 0) + 1
    if not ends:
        return ""
    parts = [f"{name} ({count})" for name, count in ends.items()]
    return f"{sum(ends.values())} of {len(found)} runs have no figures: {listed(parts)}."
