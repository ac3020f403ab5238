"""What an engine costs over plain threads, and what it moves: ``make bench-distributed``.

On `cve_product` where the data are there, otherwise (or with ``--quick``) on generated rows. Threads
and Ray use the same number of cores, one after the other, several times. The record also holds the
constants of the model of larger clusters in docs/scaling.md.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from pathlib import Path
from typing import Any

import machine
import numpy as np
import scipy.sparse as sp

from locole.datasets import load_libsvm
from locole.embeddings import make_embedding
from locole.kernels.dual import BLOCK
from locole.parallel import RayEngine, Threads
from locole.regressors import ElasticNetRegressor, MLPRegressor
from locole.targets import Targets

RECORD = Path(__file__).parent / "records" / "distributed.json"
#: The paper's Table 3: seconds of the elastic net on ten nodes with 36 cores each.
PAPER = {"lshtc1": 14, "dmoz": 68, "odp": 350}
NODES, CORES = 10, 36
#: Bytes per second between nodes that the model supposes: 10 Gbit/s.
NETWORK = 1.25e9
#: Rows, features, outputs and passes of the paper's data and recipes.
SIZES = {
    "lshtc1": (83_805, 328_282, 360, 20),
    "dmoz": (335_068, 561_127, 360, 20),
    "odp": (975_936, 493_014, 360, 40),
}
#: Entries of a row that the model supposes: the data are not at hand.
PER_ROW = 100


def read(data: Path, quick: bool) -> tuple[str, sp.csr_array, np.ndarray]:
    """Rows and codes of labels."""
    path = data / "cve_product" / "train.svm.xz"
    if not quick and path.exists():
        X, y = load_libsvm(path)
        return "cve_product", sp.csr_array(X), np.unique(y, return_inverse=True)[1]
    rng = np.random.default_rng(0)
    n_rows, n_features = (2_000, 1_000) if quick else (50_000, 100_000)
    X = sp.random_array(
        (n_rows, n_features), density=30 / n_features, rng=rng, format="csr", dtype=np.float32
    )
    return "generated", X, rng.integers(0, 1_000, n_rows)


def fit_s(
    X: sp.csr_array, targets: Targets, engine: Any, cores: int, l1: float = 0.0
) -> tuple[float, Any]:
    """Seconds of a fit, and the model."""
    model = ElasticNetRegressor(l1=l1, l2=1.0, max_passes=5, tol=0, n_jobs=cores, engine=engine)
    start = time.perf_counter()
    model.fit(X, targets)
    return time.perf_counter() - start, model


def compare(X: sp.csr_array, codes: np.ndarray, dim: int, repeats: int) -> dict[str, Any]:
    """Threads and Ray in turn at equal cores."""
    cores = len(os.sched_getaffinity(0))
    targets = Targets(codes, make_embedding("rademacher", int(codes.max()) + 1, dim=dim))
    engine, times = RayEngine("local"), {"threads": [], "ray": []}
    start = time.perf_counter()
    with engine.running(cores):
        started_s = time.perf_counter() - start
        first_s, _ = fit_s(X, targets, engine, cores)  # workers start and load kernels
        fit_s(X, targets, Threads(), cores)
        for _ in range(repeats):
            for name, where in (("threads", Threads()), ("ray", engine)):
                seconds, model = fit_s(X, targets, where, cores)
                times[name].append(seconds)
                if name == "threads":
                    expected = model.coef_
        assert np.array_equal(expected, model.coef_)
    medians = {name: statistics.median(values) for name, values in times.items()}
    # The paper's recipes have ℓ1 penalties, which make a pass slower.
    _, sparse = fit_s(X, targets, Threads(), cores, l1=0.01)
    cpu_s = sum(record["cpu_s"] for record in sparse.history_)
    return {
        "dim": dim,
        "cores": cores,
        "times_s": times,
        "overhead": medians["ray"] / medians["threads"] - 1,
        "start_s": started_s,
        "first_fit_s": first_s,
        "x_bytes": X.data.nbytes + X.indices.nbytes + X.indptr.nbytes,
        "w_bytes": int(model.coef_.nbytes),
        "passes": len(model.history_),
        "ns_per_nnz_output": 1e9 * cpu_s / (X.nnz * dim * len(sparse.history_)),
    }


def compare_networks(X: sp.csr_array, codes: np.ndarray, quick: bool) -> dict[str, Any]:
    """A network on two threads and by two processes of one core each: seconds and bytes a step.

    Bytes are those that a process receives: half of what is exchanged, the other half is its own.
    """
    hidden, dim, n_rows, batch = (64, 64, 512, 128) if quick else (1024, 512, 12_800, 128)
    targets = Targets(codes[:n_rows], make_embedding("rademacher", int(codes.max()) + 1, dim=dim))
    seconds, models = {}, {}
    for name, engine in (("threads", Threads()), ("ray", RayEngine("local"))):
        # The default recipe's network, begun at random.
        model = MLPRegressor(
            hidden=hidden, epochs=3, batch_size=batch, start="random", n_jobs=2, engine=engine
        )
        models[name] = model.fit(X[:n_rows], targets)
        walls = [record["wall_s"] for record in model.history_[1:]]  # the first loads kernels
        seconds[name] = min(walls) / -(-n_rows // batch)
    assert np.array_equal(models["threads"].first_, models["ray"].first_)
    model = models["ray"]
    width = model.first_.shape[1]
    # products of the first layer; points and their gradients; those of hidden units; of weights
    exchanged = 4 * (batch * (width + 2 * dim + hidden) + dim * hidden)
    return {
        "hidden": hidden,
        "dim": dim,
        "batch_size": batch,
        "step_s": seconds,
        "bytes_a_step": exchanged // 2,
        "first_layer_bytes": int(model.first_.nbytes),
        "dense_gradient_bytes": 4 * (X.shape[1] * width + dim * hidden),
    }


def modelled(measured: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Seconds on NODES × CORES: whole blocks of outputs, X to every node, W back (as if it were dense).

    All cores of a node share its memory, which the model leaves out: ``ns_per_nnz_output`` is that of
    this machine with all its cores at work.
    """
    found = {}
    for name, (rows, features, outputs, passes) in SIZES.items():
        blocks = -(-outputs // BLOCK)
        rounds = -(-blocks // (NODES * CORES))
        block_s = 1e-9 * measured["ns_per_nnz_output"] * rows * PER_ROW * BLOCK * passes
        # Ray hands objects on from node to node: about log2 of the nodes one after the other.
        x_s = 8 * rows * PER_ROW / NETWORK * np.ceil(np.log2(NODES + 1))
        w_s = 4 * features * outputs / NETWORK
        total = rounds * block_s + x_s + w_s
        found[name] = {
            "blocks": blocks,
            "solve_s": rounds * block_s,
            "move_s": x_s + w_s,
            "total_s": float(total),
            "paper_s": PAPER[name],
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("data"), help="folder of the data sets")
    parser.add_argument("--dim", type=int, default=1024)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="a small case; saves nothing")
    options = parser.parse_args()
    name, X, codes = read(options.data, options.quick)
    dim, repeats = (128, 1) if options.quick else (options.dim, options.repeats)
    measured = compare(X, codes, dim, repeats)
    record = {
        "machine": machine.describe(),
        "data": name,
        "rows": X.shape[0],
        "features": X.shape[1],
        "nnz": int(X.nnz),
        "measured": measured,
        "model": modelled(measured),
        "network": compare_networks(X, codes, options.quick),
    }
    print(json.dumps(record, indent=2))
    if not options.quick:
        RECORD.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
