"""Short passes of the elastic-net solver, and what they save: ``python benchmarks/bench_shrinking.py``.

Needs the data sets of ``make bench-linear``. Visits are exact, however busy the machine is.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import machine
import numpy as np
import scipy.sparse as sp
from bench_linear import MissingDataError, from_files

from locole.embeddings import make_embedding
from locole.kernels.dual import BLOCK
from locole.regressors import ElasticNetRegressor
from locole.targets import Targets

RECORD = Path(__file__).parent / "records" / "shrinking.json"
SETS = ("cve_product", "gesetze_de")
OUTPUTS = 128
TOLERANCES = (1e-2, 1e-3, 1e-4, 1e-5)
PASSES = 60
#: λ1 and λ2: ridge, and the paper's three recipes
PENALTIES = ((0.0, 0.1), (0.1, 1.0), (0.01, 0.1), (0.01, 0.01))

Fit = Callable[..., ElasticNetRegressor]


def read(name: str, folder: Path | None) -> tuple[sp.csr_array, Targets]:
    """Training rows, and Rademacher vectors of their labels."""
    rows = from_files(name, folder)
    classes, codes = np.unique(rows.y_train, return_inverse=True)
    embedding = make_embedding("rademacher", classes.size, dim=OUTPUTS)
    return sp.csr_array(rows.X_train), Targets(codes, embedding)


def when_reached(history: list[dict[str, float]], n_samples: int) -> Iterator[dict[str, float]]:
    """For each tolerance that was reached, what it took: passes, visits and CPU seconds."""
    cpu_s = np.cumsum([r["cpu_s"] for r in history])
    visits = np.cumsum([r["examples_per_s"] * r["cpu_s"] for r in history]) / n_samples
    for tol in TOLERANCES:
        at = next((k for k, r in enumerate(history) if r["gap"] <= tol), None)
        if at is not None:
            yield {
                "tol": tol,
                "passes": at + 1,
                "visits_per_sample": round(float(visits[at]), 3),
                "cpu_s": float(cpu_s[at]),
            }


def measure(X: sp.csr_array, targets: Targets, l1: float, l2: float) -> dict[str, Any]:
    """Fit with and without short passes, on one thread."""
    found: dict[str, Any] = {"l1": l1, "l2": l2}

    def fit(X: sp.csr_array, **options: Any) -> ElasticNetRegressor:
        return ElasticNetRegressor(l1=l1, l2=l2, n_jobs=1, **options).fit(X, targets)

    fit(X, max_passes=1)  # compiles, and touches memory
    for name, shrinking in (("whole", False), ("short", True)):
        model = fit(X, tol=TOLERANCES[-1], max_passes=PASSES, shrinking=shrinking)
        found[name] = list(when_reached(model.history_, X.shape[0]))
        found[f"{name}_gap"] = model.history_[-1]["gap"]
    if l1 > 0:
        found |= zero_rows(X, model.coef_.T, fit)
    return found


def zero_rows(X: sp.csr_array, W: sp.csr_array, fit: Fit) -> dict[str, float]:
    """What the rows of weights that are zero for the first block cost.

    They are known here from the solution; while it is sought, they come and go.
    """
    used = np.diff(sp.csr_array(W[:, :BLOCK]).indptr) > 0
    start = time.process_time()
    kept = used[X.indices]
    indptr = np.append(0, np.cumsum(kept))[X.indptr]
    without = sp.csr_array((X.data[kept], X.indices[kept], indptr), shape=X.shape)
    dropping_s = time.process_time() - start
    return {
        "zero_rows": float(1 - used.mean()),
        "entries_in_zero_rows": 1 - without.nnz / X.nnz,
        "pass_cpu_s": seconds_per_pass(fit, X),
        "pass_without_cpu_s": seconds_per_pass(fit, without),
        "dropping_cpu_s": dropping_s,
    }


def seconds_per_pass(fit: Fit, X: sp.csr_array) -> float:
    """CPU seconds of the fastest pass, for one block."""
    history = fit(X, max_passes=4, tol=0, shrinking=False).history_
    return min(r["cpu_s"] for r in history) * BLOCK / OUTPUTS


def show(r: dict[str, Any]) -> None:
    whole, short = ({x["tol"]: x for x in r[name]} for name in ("whole", "short"))
    for tol in sorted(whole.keys() | short.keys(), reverse=True):
        line = f"{r['set']:12} l1 {r['l1']:<5g} l2 {r['l2']:<5g} tol {tol:<6g}"
        for name, found in (("all", whole), ("short", short)):
            if tol in found:
                x = found[tol]
                line += f"  {name}: {x['visits_per_sample']:5.1f} visits {x['cpu_s']:6.2f} s"
        print(line, flush=True)
    if "zero_rows" in r:
        print(f"  zero rows: {r['zero_rows']:.0%} of the features, "
              f"{r['entries_in_zero_rows']:.0%} of X's entries; a pass of a block takes "
              f"{r['pass_cpu_s']:.3f} s, without them {r['pass_without_cpu_s']:.3f} s, "
              f"dropping them {r['dropping_cpu_s']:.3f} s", flush=True)  # fmt: skip


def merged(path: Path, new: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Take the runs of an earlier record that are not measured again."""
    old = json.loads(path.read_text())["runs"] if path.exists() else []
    runs = {(r["set"], r["l1"], r["l2"]): r for r in [*old, *new]}
    order = [(name, *penalties) for name in SETS for penalties in PENALTIES]
    return [runs[key] for key in order if key in runs]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    folder = os.environ.get("LOCOLE_DATA")
    parser.add_argument("--data", type=Path, default=Path(folder) if folder else None)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS, metavar="SET")
    parser.add_argument("--only", type=int, nargs="+", help="numbers of the penalties, from 0")
    parser.add_argument("--output", type=Path, default=RECORD, help="where to save the record")
    args = parser.parse_args()
    wanted = [PENALTIES[k] for k in args.only] if args.only else PENALTIES
    found = []
    for name in args.sets:
        try:
            X, targets = read(name, args.data)
        except MissingDataError as error:
            print(f"{name}: {error}")
            continue
        for l1, l2 in wanted:
            found.append({"set": name, **measure(X, targets, l1, l2)})
            show(found[-1])
    if found:
        record = {"machine": machine.describe(), "n_outputs": OUTPUTS, "passes": PASSES}
        record["runs"] = merged(args.output, found)
        args.output.write_text(json.dumps(record, indent=2) + "\n")
        print(f"saved {args.output}")


if __name__ == "__main__":
    main()
