"""Runs what is not yet recorded, one process for each, and records every outcome at once."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from locole.embeddings import FAMILIES
from locole.exceptions import LocoleError
from locole.experiments.children import Children, run_alone
from locole.experiments.data import (
    choose_sets,
    has_texts,
    keep,
    load_set,
    version_of,
    where_missing,
)
from locole.experiments.machine import describe
from locole.experiments.methods import missing_package
from locole.experiments.plan import all_runs, next_runs
from locole.experiments.protocols import Nobody, Watcher, on_threads, work_folder
from locole.experiments.records import IDENTITY, Store, identity, is_done, latest, read
from locole.experiments.runs import Run
from locole.experiments.spec import Spec
from locole.experiments.worker import sentence
from locole.parallel import Engine
from locole.parallel.blocks import n_threads

__all__ = ["Bench", "run_spec"]

Record = dict[str, Any]

# Failures whose cause may be gone by now, and which cost nothing to find again.
_PASSING = ("failed: data not found", "failed: install locole[")
# What a record shares with another experiment's record of the same run.
_SAME = [key for key in IDENTITY if key != "experiment"]
_SAME_PLACE = ("threads", "locole", "machine")


class Bench:
    """An experiment in a folder of records.

    Parameters
    ----------
    spec : Spec
    out : str or path
        Folder of records.
    data : str or path, optional
        Folder of data sets.
    quick : bool
        Whether to rehearse on little data.
    threads : int
        ``n_jobs`` of each run; −1 is all cores.
    retry : bool
        Whether to repeat runs that failed or ran out of time.
    columns : dict, optional
        Options of `locole.datasets.load_texts` for sets that are tables of texts.
    """

    def __init__(
        self,
        spec: Spec,
        out: str | Path,
        *,
        data: str | Path | None = None,
        quick: bool = False,
        threads: int = -1,
        retry: bool = False,
        columns: Mapping[str, Any] | None = None,
    ) -> None:
        self.spec = spec.quickened() if quick else spec
        self.out = Path(out)
        self.data = data
        self.threads = n_threads(threads)
        self.sets, self.notes = choose_sets(self.spec.data, data)
        if self.spec.kind == "tsne":
            self.sets, self.notes = [""], []
        if columns:
            tables = [name for name in self.sets if has_texts(name, data)]
            known = self.spec.data_options
            named = {name: {**columns, **known.get(name, {})} for name in tables}
            self.spec = replace(self.spec, data_options={**known, **named})
        self._versions = {name: version_of(name, data) for name in self.sets}
        self.runs = all_runs(self.spec, self.sets, quick=quick)
        self._retry = retry
        self._context = describe()
        self._kept: dict[tuple[str, str], Path | str] = {}
        self._keeping = threading.Lock()
        if not self.runs:
            raise LocoleError(f"{spec.name} has no run on {', '.join(self.sets)}.")

    def left(self) -> list[Run]:
        """Runs that are not recorded, as far as they are known: dims that grow are asked one by one."""
        known = read(self.out) if self.out.is_dir() else []
        return next_runs(self.runs, self._settled(latest(known)), self.spec)

    def run(
        self, watcher: Watcher, *, engine: Engine | None = None, at_once: int = 1
    ) -> list[Record]:
        """Do what is left and return all records of this experiment.

        Parameters
        ----------
        watcher : Watcher
        engine : Engine, optional
            Where runs are done; all its nodes must see the folder of records. By default here.
        at_once : int
            Runs side by side, if ``engine`` is left out. Their seconds say little then.
        """
        for line in self.notes:
            watcher.note(line)
        with ExitStack() as stack:
            store = stack.enter_context(Store(self.out, self.spec.name))
            self._work = stack.enter_context(work_folder(store.path.with_suffix(".work")))
            children = stack.enter_context(Children())
            self._kept.clear()
            self._others = [r for r in read(self.out) if is_done(r)]
            self._too_slow = {
                _but_seed(r)
                for r in self._settled(store.records).values()
                if r["status"] == "timeout"
            }
            apply = on_threads(at_once, children)
            if engine is not None:
                stack.enter_context(engine.running())
            tried: set[tuple[Any, ...]] = set()
            while runs := self._next(store, tried):
                watcher.planned(runs)

                def do(run: Run) -> Record:
                    watcher.started(run)
                    return self._done(*self._begun(run), children)

                by_key = {run.key: run for run in runs}
                found = apply(do, runs) if engine is None else self._on(engine, runs, watcher)
                for record in found:
                    key = identity(record)
                    tried.add(key)
                    if _says_more(record, store.records.get(key)):
                        store.append(record)
                        self._others += [record] if is_done(record) else []
                    if record["status"] == "timeout":
                        self._too_slow.add(_but_seed(record))
                    watcher.ended(by_key[key], record)
            return [store.records[key] for key in self._all_keys(store)]

    def _next(self, store: Store, tried: set[tuple[Any, ...]]) -> list[Run]:
        """Runs to start, none of them a second time."""
        settled = self._settled(store.records)
        settled.update({key: store.records[key] for key in tried})
        return next_runs(self.runs, settled, self.spec)

    def _settled(self, records: Mapping[tuple[Any, ...], Record]) -> dict[tuple[Any, ...], Record]:
        """Records of runs that need not be done again."""
        return {
            key: record
            for key, record in records.items()
            if is_done(record) or not (self._retry or self._may_pass(record))
        }

    def _may_pass(self, record: Record) -> bool:
        """Whether the cause of a failure may be gone: the data has changed, or something was missing."""
        version, before = self._versions.get(record["data"]), record.get("data_version")
        has_changed = before is not None and version is not None and before != version
        return has_changed or str(record["status"]).startswith(_PASSING)

    def _all_keys(self, store: Store) -> list[tuple[Any, ...]]:
        return [
            key for key, record in store.records.items() if record["experiment"] == self.spec.name
        ]

    # One run -----------------------------------------------------------------------------------

    def _on(self, engine: Engine, runs: list[Run], watcher: Watcher) -> Iterator[Record]:
        """Records of runs that an engine does, as they come."""
        begun = []
        for run in runs:
            record, request = self._begun(run)
            if request is None:
                yield record
            else:
                begun.append((record, request))
                watcher.started(run)
        requests = [request for _, request in begun]
        # Closed at once on Ctrl-C, so that nothing goes on working.
        with closing(cast(Any, engine.map(run_alone, requests, shared=None))) as found:
            for place, outcome in found:
                yield {**begun[place][0], **outcome}

    def _done(self, record: Record, request: Record | None, children: Children) -> Record:
        return record if request is None else {**record, **children.run(request)}

    def _begun(self, run: Run) -> tuple[Record, Record | None]:
        """Record of a run, and what to ask a process for if it is not yet whole."""
        record: Record = {
            **run.record(),
            "outputs": _outputs(run),
            "data_version": self._versions.get(run.data),
            "threads": self.threads,
            **self._context,
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        same = self._done_elsewhere(record)
        if same is not None:
            return {**same, **run.record(), "copied_from": same["experiment"]}, None
        request = self._request(run)
        if isinstance(request, str):
            return {**record, "status": sentence(request)}, None
        return record, request

    def _done_elsewhere(self, record: Record) -> Record | None:
        """Record of the same run for another experiment, of this version on this machine."""
        keys = (*_SAME, *_SAME_PLACE)
        wanted = [record[key] for key in keys]
        return next((r for r in self._others if [r[key] for key in keys] == wanted), None)

    def _request(self, run: Run) -> Record | str:
        """What a process must know to do a run; or why it cannot be done."""
        reason = missing_package(run) or (where_missing(run.data, self.data) if run.data else None)
        if reason is None and _but_seed(run.record()) in self._too_slow:
            reason = "another seed ran out of time, so this one was not tried"
        if reason is not None:
            return reason
        request = {
            "run": asdict(run),
            "limit_s": run.time_limit_s,
            "folder": str(self.out.resolve()),
            "work": str(self._work.resolve()),
            "threads": self.threads,
            "coherence": self._known_coherence(run),
        }
        if run.data:
            rows = self._rows(run)
            if isinstance(rows, str):
                return rows
            request["rows"] = str(rows.resolve())
        return request

    def _rows(self, run: Run) -> Path | str:
        """Folder with the arrays of the run's data, made at its first use; or why there is none."""
        with self._keeping:
            which = run.data, run.data_options
            if which not in self._kept:
                folder = self._work / f"rows{len(self._kept)}"
                try:
                    keep(load_set(run.data, run.options, self.data), folder)
                    self._kept[which] = folder
                except (ValueError, ImportError, OSError, MemoryError) as error:
                    self._kept[which] = str(error) or type(error).__name__
            return self._kept[which]

    def _known_coherence(self, run: Run) -> float | None:
        """Coherence of the same vectors for the same labels, which may take longer than a fit."""
        wanted = (run.data, run.data_options, run.embedding, run.dim, run.seed)
        keys = ("data", "data_options", "embedding", "dim", "seed")
        for other in self._others:
            if run.dim is not None and tuple(other[key] for key in keys) == wanted:
                return other["coherence"]
        return None


def run_spec(
    spec: Spec,
    out: str | Path,
    *,
    watcher: Watcher | None = None,
    at_once: int = 1,
    engine: Engine | None = None,
    **options: Any,
) -> list[Record]:
    """Run what is not yet recorded of a spec, and return all its records.

    Parameters
    ----------
    spec : Spec
        The experiment.
    out : str or path
        Folder of records.
    watcher : Watcher, optional
        Told what happens; by default nobody.
    at_once, engine
        See ``Bench.run``.
    **options
        See ``Bench``.

    Returns
    -------
    list of dict
        All records of the experiment, old and new.

    Examples
    --------
    >>> import tempfile
    >>> from locole.experiments.spec import parse_spec
    >>> spec = parse_spec({"name": "mine", "data": ["nowhere"], "methods": [{"method": "wltls"}]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [record] = run_spec(spec, folder)
    >>> record["status"]
    'failed: data not found: name the folder that holds nowhere/ by --data'
    """
    bench = Bench(spec, out, **options)
    return bench.run(watcher or Nobody(), at_once=at_once, engine=engine)


def _but_seed(record: Record) -> tuple[Any, ...]:
    """Identity of the run whatever its seed."""
    return identity({**record, "seed": 0})


def _says_more(record: Record, before: Record | None) -> bool:
    """Whether a record tells anything that the last one of the run did not."""
    return before is None or is_done(record) or record["status"] != before["status"]


def _outputs(run: Run) -> int | None:
    """Real outputs, where the family and the dim tell."""
    if run.dim is None:
        return None
    return run.dim * (2 if FAMILIES[run.embedding].is_complex else 1)
