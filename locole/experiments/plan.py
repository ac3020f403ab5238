"""From a spec to runs: all of a grid, or the next ones of a procedure that looks at the last."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from locole.experiments.records import is_done
from locole.experiments.runs import Run, compact
from locole.experiments.spec import Entry, Spec
from locole.methods import METHODS

__all__ = ["all_runs", "next_runs"]

Records = Mapping[tuple[Any, ...], Mapping[str, Any]]


def all_runs(spec: Spec, sets: Sequence[str], *, quick: bool = False) -> list[Run]:
    """Every run that a spec can lead to.

    Parameters
    ----------
    spec : Spec
    sets : list of str
        Names of data sets.
    quick : bool
        Whether the runs are marked as quick ones.

    Examples
    --------
    >>> from locole.experiments.spec import parse_spec
    >>> spec = parse_spec({"name": "mine", "methods": [{"method": "centroids"}, {"method": "wltls"}],
    ...                    "seeds": [0, 1]})
    >>> print(*all_runs(spec, ["clinc150"]), sep="; ")
    clinc150 centroids seed 0; clinc150 wltls seed 0; clinc150 wltls seed 1
    """
    if spec.kind == "tsne":
        sets = [""]
    runs = [
        run
        for name in sets
        for entry in spec.methods
        if name not in entry.skip_data and (entry.data is None or name in entry.data)
        for run in _runs(spec, entry, name, quick)
    ]
    return list(dict.fromkeys(runs))


def _runs(spec: Spec, entry: Entry, data: str, quick: bool) -> Iterator[Run]:
    seeds = entry.seeds if entry.seeds is not None else spec.seeds
    if entry.method in METHODS and not METHODS[entry.method].seeded:
        seeds = seeds[:1]
    vectors: list[tuple[str, int | None]] = [
        (family, dim) for family, dims in entry.embeddings.items() for dim in dims
    ]
    if not vectors:
        # The default model chooses its own; baselines have none.
        vectors = [("auto" if entry.method == "auto" else "", None)]
    limit_s = entry.time_limit_s or spec.time_limits_s.get(data, spec.time_limit_s)
    for family, dim in vectors:
        for seed in seeds:
            yield Run(
                experiment=spec.name,
                data=data,
                method=entry.method,
                settings=compact(entry.settings),
                embedding=family,
                dim=dim,
                seed=seed,
                quick=quick,
                engine=entry.engine,
                data_options=compact(_data_options(spec, data)),
                time_limit_s=limit_s,
            )


def _data_options(spec: Spec, data: str) -> dict[str, Any]:
    if spec.kind == "tsne":
        return {"vectors": spec.vectors}
    limits = {"max_rows": spec.max_rows, "max_test_rows": spec.max_test_rows}
    given = {key: value for key, value in limits.items() if value is not None}
    return {**given, **spec.data_options.get(data, {})}


def next_runs(runs: Sequence[Run], records: Records, spec: Spec) -> list[Run]:
    """Runs that can be started now; none if the experiment is complete.

    Parameters
    ----------
    runs : list of Run
        Of `all_runs`.
    records : dict
        Identity → record of the runs that need no repetition.
    spec : Spec
        Its kind decides: a grid gives all that are left; "dimension" gives for each method and family
        the next dim while accuracy on validation rows grows, and in the end the chosen dim on the test
        part.
    """
    if spec.kind != "dimension":
        return [run for run in runs if run.key not in records]
    chains: dict[Run, list[Run]] = {}
    for run in runs:
        chains.setdefault(replace(run, dim=None), []).append(run)
    found = (_next_of(chain, records, spec.min_gain) for chain in chains.values())
    return [run for run in found if run is not None]


def _next_of(chain: Sequence[Run], records: Records, min_gain: float) -> Run | None:
    """The next dim to try, then the chosen one on the test part, then None."""
    best: tuple[float, Run] | None = None
    for run in chain:
        trial = replace(run, data_options=compact({**run.options, "part": "validation"}))
        record = records.get(trial.key)
        if record is None:
            return trial
        if not is_done(record):
            break
        if best is not None and record["accuracy"] - best[0] < min_gain:
            break
        best = record["accuracy"], run
    if best is None or best[1].key in records:
        return None
    return best[1]
