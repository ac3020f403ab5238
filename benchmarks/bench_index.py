"""Finding the best labels of dense rows: exact products in bytes against an inverted file of faiss.

``make bench-index``. Label vectors are noisy copies of those of a thousand topics, rows noisy copies of
label vectors, 384 numbers each. One thread; of each time the fastest of three runs counts.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
RECORD = HERE / "records" / "index.json"
K, DIM, N_ROWS, REPEAT = 10, 384, 512, 3
#: Lists of the inverted file that are looked at.
PROBES = (4, 16, 64)


def make(n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Label vectors and rows, of unit length."""
    rng = np.random.default_rng(0)
    topics = rng.standard_normal((1000, DIM), dtype=np.float32)
    labels = topics[rng.integers(1000, size=n_classes)]
    labels += 0.7 * rng.standard_normal(labels.shape, dtype=np.float32)
    rows = labels[rng.integers(n_classes, size=N_ROWS)]
    rows = rows + 2.2 * rng.standard_normal(rows.shape, dtype=np.float32)
    unit = [X / np.linalg.norm(X, axis=1, keepdims=True) for X in (labels, rows)]
    return unit[0], unit[1]


def fastest(find: Callable[[np.ndarray], np.ndarray], rows: np.ndarray) -> dict[str, Any]:
    """Answers, milliseconds of a row in a block, and of a row that comes alone."""
    found, blocks, alone = None, [], []
    for _ in range(REPEAT):
        start = time.perf_counter()
        found = find(rows)
        blocks.append(1e3 * (time.perf_counter() - start) / len(rows))
        start = time.perf_counter()
        for i in range(32):
            find(rows[i : i + 1])
        alone.append(1e3 * (time.perf_counter() - start) / 32)
    return {"found": found, "block_ms": min(blocks), "alone_ms": min(alone)}


def exact(labels: np.ndarray, rows: np.ndarray) -> dict[str, Any]:
    """Every label, by the table of a model."""
    from locole.parallel.blocks import one_blas_thread
    from locole.regressors.storage import pack
    from locole.scoring.label_table import LabelTable

    start = time.perf_counter()
    table = LabelTable.of(*pack(labels, "int8"))
    built = time.perf_counter() - start
    table.best(rows[:2], K)  # compile
    with one_blas_thread():
        return {"build_s": built, **fastest(lambda some: table.best(some, K)[0], rows)}


def inverted_file(folder: Path) -> None:
    """Run in the peers' environment: build the index, search it, write what was found."""
    import faiss

    faiss.omp_set_num_threads(1)
    labels, rows = np.load(folder / "labels.npy"), np.load(folder / "rows.npy")
    start = time.perf_counter()
    lists = int(len(labels) ** 0.5)
    inner = faiss.METRIC_INNER_PRODUCT
    kind = faiss.ScalarQuantizer.QT_8bit
    index = faiss.IndexIVFScalarQuantizer(faiss.IndexFlatIP(DIM), DIM, lists, kind, inner)
    index.train(labels)
    index.add(labels)
    built = time.perf_counter() - start
    for probe in PROBES:
        index.nprobe = probe
        measured = fastest(lambda some: index.search(some, K)[1], rows)
        np.save(folder / f"found_{probe}.npy", measured.pop("found"))
        (folder / f"found_{probe}.json").write_text(json.dumps({"build_s": built, **measured}))


def measure(n_classes: int, peers: str) -> list[dict[str, Any]]:
    """Records of the exact product and of the index, which say how many of the best it finds."""
    labels, rows = make(n_classes)
    best = exact(labels, rows)
    truth = best.pop("found")
    runs = [{"labels": n_classes, "system": "every label, in bytes", "recall_1": 1.0, **best}]
    with tempfile.TemporaryDirectory(prefix="locole-index-") as scratch:
        folder = Path(scratch)
        np.save(folder / "labels.npy", labels)
        np.save(folder / "rows.npy", rows)
        subprocess.run([peers, __file__, "--faiss", scratch], check=True)
        for probe in PROBES:
            found = np.load(folder / f"found_{probe}.npy")
            run = json.loads((folder / f"found_{probe}.json").read_text())
            recall = float((found[:, 0] == truth[:, 0]).mean())
            name = f"faiss inverted file, {probe} lists"
            runs.append({"labels": n_classes, "system": name, "recall_1": recall, **run})
    return runs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--labels", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--peers", default=str(HERE.parent / ".venv-peers" / "bin" / "python"))
    parser.add_argument("--output", type=Path, default=RECORD)
    parser.add_argument("--faiss", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.faiss is not None:
        inverted_file(args.faiss)
        return
    import machine

    runs = []
    for n_classes in args.labels:
        for run in measure(n_classes, args.peers):
            runs.append(run)
            print(f"{run['labels']:>9,} {run['system']:32} recall {run['recall_1']:.3f}  "
                  f"{run['block_ms']:7.3f} ms in blocks  {run['alone_ms']:7.2f} ms alone  "
                  f"built in {run['build_s']:.1f} s", flush=True)  # fmt: skip
    record = {"machine": machine.describe(), "runs": runs}
    args.output.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())
