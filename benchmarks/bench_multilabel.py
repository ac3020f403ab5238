"""Several labels for each row against peers from PyPI, each in its process: ``make bench-multilabel``.

Runs that are done, or that had no less time and did not end, are kept, so a bench that was stopped
resumes; ``--again`` measures them anew.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import bench_linear
import machine
import numpy as np
import scipy.sparse as sp
from bench_linear import MissingDataError, System

from locole.metrics import Propensities, ranking_report

RECORD = Path(__file__).resolve().parent / "records" / "multilabel.json"
#: Each system may take an hour.
LIMIT_S = 3600.0

SYSTEMS = {
    "locole": System("locole, defaults", "run_locole.py", "defaults"),
    "locole-elastic": System(
        "locole, elastic net alone", "run_locole.py", "elastic_net kerdock 1024"
    ),
    "parabel": System("omikuji Parabel", "run_omikuji.py", "", "omikuji"),
    "bonsai": System("omikuji Bonsai, k = 100, depth 3", "run_omikuji.py", "bonsai", "omikuji"),
    "pecos": System("PECOS XR-Linear", "run_pecos.py", "", "libpecos"),
    "libmultilabel": System(
        "LibMultiLabel one-vs-rest", "run_libmultilabel.py", "", "libmultilabel"
    ),
    "libmultilabel-tree": System(
        "LibMultiLabel tree", "run_libmultilabel.py", "tree", "libmultilabel"
    ),
}


class Rows(NamedTuple):
    """Training and test part, labels as indicators of the labels of the training part."""

    X_train: Any
    Y_train: Any
    X_test: Any
    Y_test: Any


def tibkat_gnd(folder: Path) -> Rows:
    """Titles and abstracts as TF-IDF of words and pairs of words; test rows by their known labels."""
    from locole.text import TextFeatures

    parts = [_read(folder / "tibkat_gnd" / f"{part}.tsv.xz") for part in ("train", "test")]
    (train_sets, train_texts), (test_sets, test_texts) = parts
    names = sorted({label for own in train_sets for label in own})
    number = {name: i for i, name in enumerate(names)}
    kept = [i for i, own in enumerate(test_sets) if any(label in number for label in own)]
    features = TextFeatures("word", min_df=2)
    X_train = features.fit_transform(train_texts)
    X_test = features.transform([test_texts[i] for i in kept])
    known = [[label for label in test_sets[i] if label in number] for i in kept]
    return Rows(X_train, _indicator(train_sets, number), X_test, _indicator(known, number))


def _read(path: Path) -> tuple[list[list[str]], list[str]]:
    if not path.exists():
        raise MissingDataError(f"no file {path}")
    with lzma.open(path, "rt", encoding="utf-8", newline="\n") as file:
        lines = [line.rstrip("\n").partition("\t") for line in file]
    return [labels.split("|") for labels, _, _ in lines], [text for _, _, text in lines]


def _indicator(sets: list[list[str]], number: dict[str, int]) -> Any:
    codes = [np.unique([number[label] for label in own]) for own in sets]
    indptr = np.append(0, np.cumsum([own.size for own in codes]))
    shape = (len(sets), len(number))
    return sp.csr_matrix((np.ones(indptr[-1]), np.concatenate(codes), indptr), shape=shape)


def _of_two_parts(name: str, n_train: int, *, shuffled: bool = False) -> Callable[[Path], Rows]:
    """The first rows and the others, in the order of the file or in a random one."""

    def rows(folder: Path) -> Rows:
        paths = [folder / "multilabel_small" / f"{name}.{part}.npz" for part in "XY"]
        for path in paths:
            if not path.exists():
                raise MissingDataError(f"no file {path}")
        X, Y = (sp.csr_matrix(sp.load_npz(path)) for path in paths)
        Y.data[:] = 1
        if shuffled:
            order = np.random.default_rng(0).permutation(X.shape[0])
            X, Y = X[order], Y[order]
        return Rows(X[:n_train], Y[:n_train], X[n_train:], Y[n_train:])

    return rows


SETS: dict[str, Callable[[Path], Rows]] = {
    "tibkat_gnd": tibkat_gnd,
    "bibtex": _of_two_parts("bibtex", 4_880),
    "delicious": _of_two_parts("delicious", 12_920),
    "delicious_shuffled": _of_two_parts("delicious", 12_920, shuffled=True),
}


def convert(rows: Rows, folder: Path) -> None:
    """Write what every child reads."""
    folder.mkdir()
    for name, matrix in rows._asdict().items():
        matrix = sp.csr_matrix(matrix, dtype=np.float32)
        matrix.sort_indices()
        sp.save_npz(folder / f"{name}.npz", matrix, compressed=False)


def measured(run: dict[str, Any], rows: Rows) -> dict[str, Any]:
    """Record of a run, with metrics in place of its answers."""
    answers = run.pop("answers", None)
    if answers is None:
        return run
    # Where a system has fewer answers than asked for, they are labels that no row has.
    table = np.full((len(answers), 5), -1)
    for line, own in zip(table, answers, strict=True):
        line[: len(own)] = own
        line[len(own) :] = -1 - np.arange(5 - len(own))
    report = ranking_report(rows.Y_test, table, propensities=Propensities(rows.Y_train))
    return {**run, "metrics": report}


def is_settled(run: dict[str, Any] | None, limit_s: float) -> bool:
    """Whether a run need not be repeated: it is done, or did not end in this time or more."""
    if run is None:
        return False
    is_over = run["status"].startswith("timeout") and run.get("limit_s", 0) >= limit_s
    return is_over or run["status"] == "done"


def show(r: dict[str, Any]) -> None:
    line = f"{r['set']:20}{r['label']:34}"
    if r["status"] != "done":
        print(line + r["status"], flush=True)
        return
    m = r["metrics"]
    line += "".join(f"{100 * m[name]:7.2f}" for name in ("P@1", "P@3", "P@5", "R@5", "PSP@5"))
    line += f"{r['train_cpu_s']:9.1f}{r['predict_cpu_s']:9.1f}"
    print(
        line + f"{r['memory_training_bytes'] / 1e6:9.0f}{r['model_bytes'] / 1e6:9.0f}", flush=True
    )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    folder = os.environ.get("LOCOLE_DATA")
    parser.add_argument("--data", type=Path, default=Path(folder) if folder else Path("data"))
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="seconds for each run")
    parser.add_argument("--again", action="store_true", help="measure runs that are settled, too")
    parser.add_argument("--output", type=Path, default=RECORD)
    return parser.parse_args()


def main() -> None:
    args = arguments()
    bench_linear.keep_to_two_cores()
    record = bench_linear.merged(args.output, machine.describe())
    done = {(r["set"], r["system"]): r for r in record["runs"]}
    print(f"{'set':20}{'system':34}{'P@1':>7}{'P@3':>7}{'P@5':>7}{'R@5':>7}{'PSP@5':>7}"
          f"{'CPU s':>9}{'predict':>9}{'MB':>9}{'model':>9}")  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="locole-data-") as cache:
        for name in args.sets:
            wanted = [
                key
                for key in args.systems
                if args.again or not is_settled(done.get((name, key)), args.limit)
            ]
            if not wanted:
                continue
            try:
                rows = SETS[name](args.data)
            except MissingDataError as error:
                print(f"{name:20}missing: {error}", flush=True)
                continue
            folder = Path(cache) / name
            convert(rows, folder)
            for key in wanted:
                run = bench_linear.run(SYSTEMS[key], folder, limit_s=args.limit)
                found = {"set": name, "system": key, "label": SYSTEMS[key].label}
                done[name, key] = {**found, **measured(run, rows)}
                show(done[name, key])
                order = [(a, b) for a in SETS for b in SYSTEMS if (a, b) in done]
                record["runs"] = [done[pair] for pair in order]
                args.output.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
