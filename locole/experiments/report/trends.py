"""Sentences below figures: what grows or falls with what; empty where there is too little to say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from locole.experiments.report import names
from locole.experiments.report.groups import Group, clusters, rank_correlation
from locole.experiments.report.sentences import having, listed, mean_of, signed, times

__all__ = [
    "METRICS",
    "about_correlation",
    "about_dimension",
    "about_equal_outputs",
    "about_growth",
    "about_metrics",
    "about_spread",
]

#: What the paper's third figure shows, in its order.
METRICS = ("macro_precision", "micro_precision", "macro_recall", "micro_recall")


def about_correlation(set_name: str, found: Iterable[Group]) -> str:
    """Rank correlations of accuracy with coherence and with outputs, for each method."""
    said = []
    embedded = [g for g in having(found, "accuracy", "coherence") if g.embedding]
    for method in dict.fromkeys(group.method for group in embedded):
        some = [group for group in embedded if group.method == method]
        accuracy = [mean_of(group) for group in some]
        with_coherence = rank_correlation([mean_of(g, "coherence") for g in some], accuracy)
        if with_coherence is None:
            continue
        text = (
            f"On {names.short_data_name(set_name)}, over {len(some)} embeddings learnt by "
            f"{names.method_name(method)}, the rank correlation of accuracy with coherence is "
            f"{signed(with_coherence)}"
        )
        outputs = [float(group.outputs) for group in some if group.outputs]
        if len(outputs) == len(some):
            with_outputs = rank_correlation(outputs, accuracy)
            if with_outputs is not None:
                text += f", with the number of real outputs {signed(with_outputs)}"
        said.append(text + ".")
    return " ".join(said)


def about_metrics(set_name: str, found: Iterable[Group]) -> str:
    """Rank correlations of coherence with precision and recall."""
    said = []
    embedded = [g for g in having(found, "coherence", *METRICS) if g.embedding]
    for method in dict.fromkeys(group.method for group in embedded):
        some = [group for group in embedded if group.method == method]
        coherence = [mean_of(group, "coherence") for group in some]
        parts = []
        for metric in METRICS:
            found_ = rank_correlation(coherence, [mean_of(group, metric) for group in some])
            if found_ is not None:
                parts.append(f"{signed(found_)} with {metric.replace('_', ' ')}")
        if parts:
            said.append(
                f"On {names.short_data_name(set_name)}, over {len(some)} embeddings learnt by "
                f"{names.method_name(method)}, coherence has the rank correlations {listed(parts)}."
            )
    return " ".join(said)


def about_growth(set_name: str, series: Iterable[Sequence[Group]]) -> str:
    """What the last enlargement of each embedding gained."""
    parts: dict[str, list[str]] = {}
    for steps in series:
        known = [group for group in having(steps, "accuracy") if group.outputs and group.embedding]
        if len(known) < 2:
            continue
        first, before, last = known[0], known[-2], known[-1]
        gain = signed(100 * (mean_of(last) - mean_of(before)))
        text = f"{names.family_name(last.embedding)} {gain} from {before.outputs:,} to {last.outputs:,}"
        if len(known) > 2:
            text += f" ({signed(100 * (mean_of(last) - mean_of(first)))} from {first.outputs:,})"
        parts.setdefault(names.row_name(last.method, settings=last.settings), []).append(text)
    return " ".join(
        f"Points that {method} gained on {names.short_data_name(set_name)} by the last step in real "
        f"outputs: {'; '.join(texts)}."
        for method, texts in parts.items()
    )


def about_equal_outputs(set_name: str, found: Iterable[Group]) -> str:
    """How far families are apart at equal real outputs, beside what a seed changes."""
    said = []
    embedded = [group for group in having(found, "accuracy") if group.embedding]
    for method in dict.fromkeys(group.method for group in embedded):
        parts = []
        for cluster in clusters(group for group in embedded if group.method == method):
            if len({group.embedding for group in cluster}) < 2:
                continue
            best, worst = max(cluster, key=mean_of), min(cluster, key=mean_of)
            gap = 100 * (mean_of(best) - mean_of(worst))
            parts.append(
                f"{gap:.2f} at about {cluster[-1].outputs:,} (best {names.family_name(best.embedding)})"
            )
        if parts:
            said.append(
                f"On {names.short_data_name(set_name)}, points between the best and the worst family "
                f"learnt by {names.method_name(method)}: {listed(parts)}."
            )
    spreads = [s for group in embedded if (s := group.std("accuracy")) is not None]
    if said and spreads:
        said.append(
            f"The standard deviation over seeds is at most {100 * max(spreads):.2f} points."
        )
    return " ".join(said)


def about_dimension(set_name: str, steps: Sequence[Group], chosen: Sequence[Group] = ()) -> str:
    """Where growing the dim ended, what its last step gained and cost, and what was chosen."""
    known = [group for group in having(steps, "accuracy") if group.dim]
    if len(known) < 2:
        return ""
    before, last = known[-2], known[-1]
    gain = signed(100 * (mean_of(last) - mean_of(before)))
    said = (
        f"On {names.short_data_name(set_name)}, growing {names.family_name(last.embedding)} ended at "
        f"dim {last.dim:,}; the last step, from {before.dim:,}, changed the accuracy by {gain} points"
    )
    costs = [group.mean("fit_cpu_s") for group in (before, last)]
    if costs[0] and costs[1]:
        said += f" for {times(costs[1] / costs[0])} times the CPU time"
    tested = [group for group in having(chosen, "accuracy") if group.dim]
    parts = [f"{group.dim:,} with {100 * mean_of(group):.2f} %" for group in tested]
    return said + (f". Chosen and tested: {listed(parts)}." if parts else ".")


def about_spread(indices: Mapping[str, float]) -> str:
    """How evenly the points of each picture lie, by Clark and Evans' index."""
    if not indices:
        return ""
    parts = [f"{name} {value:.2f}" for name, value in indices.items()]
    return (
        "Mean distance of a point to its nearest neighbour, divided by that of as many points thrown "
        f"at random (below 1 is clumped, above 1 is even): {listed(parts)}."
    )
