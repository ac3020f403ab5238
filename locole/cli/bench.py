"""``locole bench``: run an experiment, or what is left of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from locole.cli.options import Address, EngineName, Json, LabelColumn, TextColumn
from locole.cli.reading import column_of

if TYPE_CHECKING:
    from locole.experiments.runner import Bench
    from locole.experiments.spec import Spec
    from locole.parallel import Engine

__all__ = ["EXAMPLES", "bench"]

EXAMPLES = (
    "locole bench --list",
    "locole bench table2 --quick",
    "locole bench equal_outputs --seeds 1 --dry-run",
    "locole bench table2 --data sets --text-column title --label-column category --dry-run",
)


def bench(
    spec: Annotated[
        str | None,
        typer.Argument(metavar="SPEC", help="Name of an experiment, or a .toml file of your own."),
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the experiments by name.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List the runs that are left, and run none.")
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Rehearse: little data, small dims, one seed.")
    ] = False,
    out: Annotated[
        str, typer.Option("--out", help="Folder of the records, one file for each experiment.")
    ] = "locole_results",
    data: Annotated[
        str | None,
        typer.Option(
            "--data",
            envvar="LOCOLE_DATA",
            help="Folder of data sets: NAME/train.svm and NAME/test.svm, or .tsv, .csv and others.",
        ),
    ] = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    sets: Annotated[
        list[str] | None, typer.Option("--set", help="Only this data set; may be given again.")
    ] = None,
    methods: Annotated[
        list[str] | None, typer.Option("--method", help="Only this method; may be given again.")
    ] = None,
    seeds: Annotated[
        int | None, typer.Option("--seeds", help="Only so many seeds of those in the spec.")
    ] = None,
    limit: Annotated[
        float | None, typer.Option("--limit", help="Seconds that a run may take.")
    ] = None,
    retry: Annotated[
        bool, typer.Option("--retry", help="Repeat runs that failed or ran out of time.")
    ] = False,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", help="Threads of each run; -1 is all cores.")
    ] = -1,
    at_once: Annotated[
        int, typer.Option("--at-once", help="Runs side by side; seconds are rough then.")
    ] = 1,
    engine: EngineName = "threads",
    address: Address = None,
    json: Json = False,
) -> None:
    """Run the experiments of the paper, or one of your own.

    Runs what is not yet recorded, each run in a process of its own, and adds a record with a status
    to a file. After Ctrl-C, a crash or a new spec the same command resumes where it stopped. The
    folder of records is what locole report reads.
    """
    from locole.exceptions import LocoleError

    if list_:
        _list(json)
        return
    if spec is None:
        raise LocoleError("name an experiment, or take --list to see which there are.")
    for name, value in (("--seeds", seeds), ("--limit", limit), ("--at-once", at_once)):
        if value is not None and value <= 0:
            raise LocoleError(f"{name} must be above 0, but is {value}.")
    from locole.experiments.runner import Bench
    from locole.experiments.spec import load_spec
    from locole.parallel import make_engine

    wanted = _narrowed(load_spec(spec), sets, methods, seeds, limit, quick=quick)
    columns = {"text": [column_of(c) for c in text_column or ()], "label": column_of(label_column)}
    given = {name: value for name, value in columns.items() if value not in (None, [])}
    made = Bench(wanted, out, data=data, quick=quick, threads=jobs, retry=retry, columns=given)
    if dry_run:
        _show_left(made, json)
    else:
        where = make_engine(engine, address=address, cores=made.threads)
        _run(made, at_once, None if where.shares_memory else where, json)


def _list(json: bool) -> None:
    from locole.cli.show import print_json, print_table
    from locole.experiments.spec import shipped_specs

    titles = {name: spec.title for name, spec in shipped_specs().items()}
    if json:
        print_json(titles)
    else:
        print_table(["name", "what it shows"], list(titles.items()))


def _narrowed(
    spec: Spec,
    sets: list[str] | None,
    methods: list[str] | None,
    seeds: int | None,
    limit: float | None,
    *,
    quick: bool,
) -> Spec:
    """The spec with what the options leave of it."""
    from locole.exceptions import LocoleError

    entries = spec.methods
    if methods:
        known = list(dict.fromkeys(entry.method for entry in entries))
        for name in methods:
            if name not in known:
                raise LocoleError(f"{spec.name} has no method {name!r}: it has {', '.join(known)}.")
        entries = [entry for entry in entries if entry.method in methods]
    changed: dict[str, Any] = {}
    if sets:
        changed["data"] = sets
    if seeds is not None:
        changed["seeds"] = spec.seeds[:seeds]
        entries = [replace(e, seeds=e.seeds and e.seeds[:seeds]) for e in entries]
    if limit is not None:
        changed.update(time_limit_s=limit, time_limits_s={})
        entries = [replace(entry, time_limit_s=None) for entry in entries]
    if quick:
        given = {name: changed[name] for name in ("data", "time_limit_s") if name in changed}
        few = (spec.quick.seeds or spec.seeds)[:seeds]
        changed["quick"] = replace(spec.quick, seeds=few, **given)
    return replace(spec, methods=entries, **changed)


def _show_left(made: Bench, json: bool) -> None:
    from locole.cli.show import print_json, print_table, say

    left = made.left()
    if json:
        print_json({"left": [run.record() for run in left], "runs": len(made.runs)})
        return
    for line in made.notes:
        say(line)
    rows = [(run.data, run.title, run.vectors, run.seed) for run in left]
    print_table(["data", "method", "vectors", "seed"], rows)
    print(f"\n{len(left)} of {len(made.runs)} runs are left.")


def _run(made: Bench, at_once: int, engine: Engine | None, json: bool) -> None:
    from collections import Counter

    from locole.cli.show import print_json, print_pairs
    from locole.experiments.board import Board

    spec = made.spec
    with Board(f"{spec.name}: {spec.title}", len(made.left())) as board:
        records = made.run(board, at_once=at_once, engine=engine)
    kinds = Counter(str(record["status"]).partition(":")[0] for record in records)
    figures = {
        "experiment": spec.name,
        "records": len(records),
        **{kind: kinds[kind] for kind in ("done", "failed", "timeout")},
        "file": str(made.out / f"{spec.name}.jsonl"),
    }
    if json:
        print_json(figures)
    else:
        print_pairs(figures)
    _say_how_to_retry(kinds["failed"] + kinds["timeout"])


def _say_how_to_retry(n_runs: int) -> None:
    from locole.cli.show import say

    if n_runs:
        say(
            f"runs without figures: {n_runs}; --retry repeats them, and so does a change of their data."
        )
