"""How the elastic-net solver scales, and how near the memory's limit it runs: ``make bench-solver``."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import machine
import numpy as np
import scipy.sparse as sp
from peers.measure import forget_peak, peak_bytes

from locole.embeddings import make_embedding
from locole.kernels.dual import BLOCK
from locole.regressors import ElasticNetRegressor
from locole.targets import BLOCK_FLOATS, Targets

RECORD = Path(__file__).parent / "records" / "solver.json"
PASSES = 4
PAIRS = 9

BASE = {"n_samples": 40_000, "n_features": 200_000, "per_row": 100, "n_classes": 10_000}
#: what varies, one line of the table each
CASES: list[dict[str, Any]] = [
    {},
    {"n_samples": 20_000},
    {"n_samples": 80_000},
    {"per_row": 50},
    {"per_row": 200},
    {"n_outputs": 128},
    {"n_outputs": 512},
    {"n_classes": 1_000},
    {"n_classes": 100_000},
    {"n_jobs": 2},
]


def make_data(n_samples: int, n_features: int, per_row: int) -> sp.csr_array:
    """Rows of unit length whose features follow a power law, as words do."""
    rng = np.random.default_rng(0)
    # Inverse of the distribution function of a density ∝ 1/(rank + 50).
    u = rng.random(n_samples * per_row)
    ranks = (50 * ((n_features / 50 + 1) ** u - 1)).astype(np.int32).clip(max=n_features - 1)
    shuffled = rng.permutation(n_features).astype(np.int32)[ranks]
    data = np.full(shuffled.size, per_row**-0.5, dtype=np.float32)
    indptr = np.arange(0, shuffled.size + 1, per_row)
    return sp.csr_array((data, shuffled, indptr), shape=(n_samples, n_features))


def make_targets(n_samples: int, n_classes: int, n_outputs: int) -> Targets:
    y = np.random.default_rng(1).integers(n_classes, size=n_samples)
    return Targets(y, make_embedding("rademacher", n_classes, dim=n_outputs))


def measure_threads() -> dict[str, Any]:
    """Fits on one and on two threads in turn, so that both meet the same machine."""
    X = make_data(BASE["n_samples"], BASE["n_features"], BASE["per_row"])
    targets = make_targets(BASE["n_samples"], BASE["n_classes"], 256)
    walls: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(PAIRS + 1):
        for n_jobs, seen in walls.items():
            model = ElasticNetRegressor(l2=0.1, max_passes=PASSES, tol=0, n_jobs=n_jobs)
            start = time.perf_counter()
            model.fit(X, targets)
            seen.append(time.perf_counter() - start)
    one, two = (np.array(seen[1:]) for seen in walls.values())  # the first pair warms up
    return {
        "one_s": one.tolist(),
        "two_s": two.tolist(),
        "speedup": float(np.median(one / two)),
        "speedups": sorted((one / two).tolist()),
    }


def measure(case: dict[str, Any]) -> dict[str, Any]:
    """One fit in this process: seconds a pass, memory predicted and measured."""
    setting = {**BASE, "n_outputs": 256, "n_jobs": 1, **case}
    X = make_data(setting["n_samples"], setting["n_features"], setting["per_row"])
    targets = make_targets(X.shape[0], setting["n_classes"], setting["n_outputs"])
    model = ElasticNetRegressor(l2=0.1, max_passes=PASSES, tol=0, n_jobs=setting["n_jobs"])
    small = 2 * BLOCK
    few = Targets(targets.codes[:small], targets.embedding)
    model.fit(X[:small], few)  # compiles and touches nothing large
    before = forget_peak()
    wall, cpu = time.perf_counter(), time.process_time()
    model.fit(X, targets)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    after = peak_bytes()
    kernel_s = min(record["cpu_s"] for record in model.history_)
    blocks = setting["n_outputs"] / BLOCK
    # duals, V, a block of targets and its padded copy; label vectors from which it is cut; the order of
    # the samples
    room = 4 * BLOCK * (X.shape[0] + X.shape[1] + 2 * setting["n_classes"]) + 8 * X.shape[0]
    room += 4 * min(BLOCK_FLOATS, setting["n_classes"] * setting["n_outputs"])
    threads = min(setting["n_jobs"], int(blocks))
    return {
        **setting,
        "nnz": X.nnz,
        "kernel_cpu_s_per_pass": kernel_s,
        "ns_per_nnz_output": kernel_s / X.nnz / setting["n_outputs"] * 1e9,
        "bytes_per_s": X.nnz * blocks * BLOCK * 12 / kernel_s,
        "fit_wall_s": wall,
        "fit_cpu_s": cpu,
        # weights and the features' order, a copy of X's indices (values are float32 already), and one
        # working set a thread
        "predicted_bytes": (4 * setting["n_outputs"] + 8) * X.shape[1] + 4 * X.nnz + threads * room,
        "measured_bytes": after - before,
    }


def run_alone(case: dict[str, Any]) -> dict[str, Any]:
    """Measure in a process of its own, so that memory is its own."""
    command = [sys.executable, __file__, "--case", json.dumps(case)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def show(record: dict[str, Any]) -> None:
    print(f"{'samples':>8}{'nnz':>10}{'outputs':>8}{'labels':>8}{'jobs':>5}{'s/pass':>8}"
          f"{'ns/nnz·out':>11}{'GB/s':>7}{'fit wall':>9}"
          f"{'predicted MB':>13}{'measured MB':>12}")  # fmt: skip
    for r in record["scaling"]:
        print(f"{r['n_samples']:8d}{r['nnz']:10d}{r['n_outputs']:8d}{r['n_classes']:8d}{r['n_jobs']:5d}"
              f"{r['kernel_cpu_s_per_pass']:8.3f}{r['ns_per_nnz_output']:11.3f}"
              f"{r['bytes_per_s'] / 1e9:7.1f}{r['fit_wall_s']:9.2f}"
              f"{r['predicted_bytes'] / 1e6:13.0f}{r['measured_bytes'] / 1e6:12.0f}")  # fmt: skip
    excess = max(r["measured_bytes"] / r["predicted_bytes"] for r in record["scaling"])
    print("Memory in MB: predicted is the weights, X's indices once more, and one block's "
          f"working set a thread; measured is at most {excess:.0%} of it")  # fmt: skip
    threads = record["threads"]
    print(f"Two threads are {threads['speedup']:.2f} times as fast as one (median of {PAIRS} pairs, "
          f"{threads['speedups'][0]:.2f} to {threads['speedups'][-1]:.2f})")  # fmt: skip
    limits = record["limits"]
    print("Limits: " + ", ".join(f"{name} {rate / 1e9:.1f} GB/s" for name, rate in limits.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=RECORD, help="where to save the record")
    parser.add_argument("--case", help="measure one case, given as JSON, and print it as JSON")
    options = parser.parse_args()
    if options.case is not None:
        print(json.dumps(measure(json.loads(options.case))))
        return
    record = {
        "machine": machine.describe(),
        "limits": {
            "triad": machine.triad_rate(),
            "random rows": machine.row_update_rate(BLOCK, BASE["n_features"]),
        },
        "scaling": [run_alone(case) for case in CASES],
        "threads": measure_threads(),
    }
    show(record)
    options.output.write_text(json.dumps(record, indent=2) + "\n")
    print(f"saved {options.output}")


if __name__ == "__main__":
    main()
