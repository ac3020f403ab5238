"""A step of the network against the obvious torch program: ``make bench-mlp``.

The obvious program keeps gradient and moments of the whole first layer. It is run with as many features
as fit, at two sizes, and the line through both is followed to the full size: its time and memory are
linear in the features. Every run is a process of its own, for its peak of memory.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import machine
import numpy as np
import scipy.sparse as sp

from locole.embeddings import Nelson
from locole.regressors.mlp.batches import Foresight, Grouper
from locole.regressors.mlp.momentum import FADED
from locole.regressors.mlp.recipes import Settings
from locole.regressors.mlp.shape import Shape, first_weights, initial
from locole.regressors.mlp.training import Training
from locole.regressors.problem import Problem
from locole.targets import Targets

RECORD = Path(__file__).parent / "records" / "mlp.json"
NON_ZEROS = 110
N_CLASSES = 10_000
DIM = 509


def generated(n_rows: int, n_features: int) -> tuple[sp.csr_array, np.ndarray]:
    """Rows like those of texts: the k-th most frequent feature has frequency ∝ 1/(k + 30)."""
    rng = np.random.default_rng(0)
    weights = 1 / (np.arange(n_features) + 30.0)
    columns = rng.choice(n_features, (n_rows, NON_ZEROS), p=weights / weights.sum())
    rows = np.repeat(np.arange(n_rows), NON_ZEROS)
    data = np.full(rows.size, NON_ZEROS**-0.5, dtype=np.float32)
    X = sp.csr_array((data, (rows, columns.ravel())), shape=(n_rows, n_features))
    return X, rng.integers(0, N_CLASSES, n_rows)


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def run_ours(case: dict) -> dict[str, float]:
    """Steps of our training; CPU and wall seconds of each but the first and the last."""
    n_steps, batch, warm = case["steps"], case["batch"], case["warm_up"]
    # At the end nothing follows, so momenta are forgotten: these steps are not measured.
    X, y = generated(batch * (warm + n_steps + FADED), case["features"])
    measured = slice(warm, warm + n_steps)
    settings = Settings(hidden=(case["hidden"],), batch_size=batch, epochs=1, loss="squared",
                        normalise=True, schedule="constant")  # fmt: skip
    targets = Targets(y, Nelson(N_CLASSES, dim=DIM))
    shape = Shape(X.shape[1], settings.hidden, targets.shape[1])
    W = first_weights(shape, 0)
    if case.get("half"):
        W = W.astype(np.float16).view(np.uint16)
    training = Training(
        Problem(X, targets), settings, shape, W, initial(shape, 0),
        seed=0, row_moment=case.get("row", False),
    )  # fmt: skip
    # Nothing reads the weights between two epochs, as with networks of more than 1 GB without
    # validation rows.
    training.settles = False
    following = followings(training)
    before = peak_bytes()
    walls, cpus = [], []
    start = time.perf_counter(), time.process_time()
    for _ in training.run(n_jobs=case["threads"]):
        now = time.perf_counter(), time.process_time()
        walls.append(now[0] - start[0])
        cpus.append(now[1] - start[1])
        start = now
    return {
        "wall_s": float(np.median(walls[measured])),
        "cpu_s": float(np.median(cpus[measured])),
        "peak_bytes": peak_bytes(),
        "bytes_before": before,
        "touched_rows": float(np.mean([len(steps) for steps in following[measured]])),
        "momentum_share": float(np.mean(np.concatenate(following[measured]) < FADED)),
    }


def followings(training: Training) -> list[np.ndarray]:
    """How many idle steps there are until each of the features of each batch is next met."""
    X, orders = training.rows.X, training.orders
    grouper = Grouper(X, Foresight(X, orders, training.n_epochs).epoch(0))
    batches = [grouper(rows) for rows in orders.epoch(0)]
    return [batch.following - 1 - step for step, batch in enumerate(batches, start=1)]


def run_obvious(case: dict) -> dict[str, float]:
    """sparse_coo rows, torch.nn.Linear and dense Adamax."""
    import torch

    torch.set_num_threads(case["threads"])
    n_steps, batch = case["steps"], case["batch"]
    X, y = generated(batch * (n_steps + 1), case["features"])
    G = torch.from_numpy(Nelson(N_CLASSES, dim=DIM).real_rows(y))
    first = torch.nn.Linear(case["features"], case["hidden"])
    last = torch.nn.Linear(case["hidden"], G.shape[1])
    optimiser = torch.optim.Adamax([*first.parameters(), *last.parameters()], lr=1e-3)
    walls, cpus = [], []
    for step in range(n_steps + 1):
        start = time.perf_counter(), time.process_time()
        part = X[step * batch : (step + 1) * batch].tocoo()
        at = torch.from_numpy(np.stack([part.row, part.col]).astype(np.int64))
        rows = torch.sparse_coo_tensor(at, torch.from_numpy(part.data), part.shape)
        hidden = torch.relu(torch.sparse.mm(rows, first.weight.T) + first.bias)
        z = torch.nn.functional.normalize(last(hidden), dim=1)
        loss = (z - G[step * batch : (step + 1) * batch]).square().sum(dim=1).mean() / 2
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        walls.append(time.perf_counter() - start[0])
        cpus.append(time.process_time() - start[1])
    return {
        "wall_s": float(np.median(walls[1:])),
        "cpu_s": float(np.median(cpus[1:])),
        "peak_bytes": peak_bytes(),
    }


def in_a_process(kind: str, case: dict) -> dict[str, float]:
    command = [sys.executable, __file__, "--run", kind, json.dumps(case)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return {**case, **json.loads(done.stdout)}


def followed(small: dict, large: dict, n_features: int) -> dict[str, float]:
    """The line through two sizes, at the full one."""
    out: dict[str, float] = {"features": n_features}
    for name in ("wall_s", "cpu_s", "peak_bytes"):
        slope = (large[name] - small[name]) / (large["features"] - small["features"])
        out[name] = large[name] + slope * (n_features - large["features"])
    return out


def limit_s(case: dict, limits: dict[str, float]) -> float:
    """CPU seconds of a step whose memory traffic and products go at the machine's own rate.

    Weights of the touched rows are read twice and written once, second moments once each, first
    moments too if they are needed again.
    """
    width, outputs = case["hidden"], 2 * DIM
    traffic = case["touched_rows"] * width * 4 * (5 + 2 * case["momentum_share"])
    products = 3 * 2 * case["batch"] * width * outputs
    dense = 4 * width * outputs * 7
    return (traffic + dense) / limits["row_update_rate"] + products / limits["gemm_rate"]


def rates(width: int) -> dict[str, float]:
    """What the machine can do."""
    return {
        "gemm_rate": machine.gemm_rate(),
        "row_update_rate": machine.row_update_rate(width, 20_000),
    }


def show(record: dict) -> None:
    print(f"A step of {record['ours']['batch']} rows, hidden layer of {record['ours']['hidden']}")
    print(f"{'program':34}{'features':>10}{'wall ms':>9}{'CPU ms':>9}{'GB':>7}")
    names = ["ours", "one moment a row", "half precision", "obvious, small", "obvious, large",
             "obvious, followed to full size"]  # fmt: skip
    keys = ["ours", "row_moment", "half", "obvious_small", "obvious_large", "obvious"]
    for name, key in zip(names, keys, strict=True):
        r = record[key]
        print(f"{name:34}{r['features']:10d}{1e3 * r['wall_s']:9.1f}{1e3 * r['cpu_s']:9.1f}"
              f"{r['peak_bytes'] / 1e9:7.2f}")  # fmt: skip
    print(f"{record['speedup']:.0f} times faster, {record['memory_ratio']:.2f} of the memory, "
          f"{record['fraction_of_limit']:.0%} of the limit by CPU seconds, "
          f"{record['fraction_by_the_clock']:.0%} by the clock")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=RECORD, help="where to save the record")
    parser.add_argument("--features", type=int, default=300_000)
    parser.add_argument("--hidden", type=int, default=4096)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--run", nargs=2, metavar=("KIND", "CASE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        kind, case = options.run[0], json.loads(options.run[1])
        print(json.dumps({"ours": run_ours, "obvious": run_obvious}[kind](case)))
        return
    base = {"features": options.features, "hidden": options.hidden, "batch": 128,
            "threads": options.threads}  # fmt: skip
    ours = {**base, "steps": options.steps, "warm_up": options.steps}
    limits = [rates(options.hidden)]
    record: dict = {
        "ours": in_a_process("ours", ours),
        "row_moment": in_a_process("ours", {**ours, "row": True}),
        "half": in_a_process("ours", {**ours, "half": True}),
    }
    for name, part in (("obvious_small", 20), ("obvious_large", 10)):
        case = {**base, "features": options.features // part, "steps": 3}
        record[name] = in_a_process("obvious", case)
    record["obvious"] = followed(record["obvious_small"], record["obvious_large"], options.features)
    limits.append(rates(options.hidden))
    limit = {name: max(each[name] for each in limits) for name in limits[0]}
    record["speedup"] = record["obvious"]["wall_s"] / record["ours"]["wall_s"]
    record["memory_ratio"] = record["ours"]["peak_bytes"] / record["obvious"]["peak_bytes"]
    record["limit_cpu_s"] = limit_s(record["ours"], limit)
    record["fraction_of_limit"] = record["limit_cpu_s"] / record["ours"]["cpu_s"]
    # By the clock: all threads at the limit from beginning to end, none waiting for another.
    in_threads = options.threads * record["ours"]["wall_s"]
    record["fraction_by_the_clock"] = record["limit_cpu_s"] / in_threads
    record = {"machine": machine.describe(), "limits": limit, **record}
    show(record)
    options.output.write_text(json.dumps(record, indent=2) + "\n")
    print(f"saved {options.output}")


if __name__ == "__main__":
    main()
