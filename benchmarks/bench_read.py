"""Reading LIBSVM files against scikit-learn, with the memory it takes: ``make bench-read``."""

from __future__ import annotations

import argparse
import json
import lzma
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import machine
import numpy as np
from sklearn.datasets import load_svmlight_file

from locole.datasets import iter_libsvm, load_libsvm, make_topics, save_libsvm

RECORD = Path(__file__).parent / "records" / "read.json"
SET = Path("cve_product") / "train.svm.xz"
REPEATS = 5


def prepare(data: Path | None, folder: Path) -> tuple[str, Path, Path]:
    """What is read: a name, the plain file and the packed one."""
    plain, packed = folder / "train.svm", folder / "train.svm.xz"
    if data is not None and (data / SET).exists():
        packed = data / SET
        plain.write_bytes(lzma.decompress(packed.read_bytes()))
        return SET.parent.name, plain, packed
    print(f"no {SET} in {data}: generating a file of that size")
    topics = make_topics(60_000, 240_000, 10_000, nnz_per_row=100)
    save_libsvm(plain, topics.X_train, topics.y_train)
    packed.write_bytes(lzma.compress(plain.read_bytes(), preset=1))
    return "make_topics", plain, packed


def theirs(path: Path) -> tuple[Any, np.ndarray]:
    if path.suffix == ".xz":
        with lzma.open(path) as file:
            return load_svmlight_file(file, dtype=np.float32)
    return load_svmlight_file(str(path), dtype=np.float32)


def ours_in_batches(path: Path) -> None:
    for _ in iter_libsvm(path, n_features=1_000_000, zero_based=False):
        pass


def best_times(readers: dict[str, Callable[[Path], Any]], path: Path) -> dict[str, float]:
    """CPU seconds, the best of several rounds in which the readers take turns."""
    times: dict[str, list[float]] = {name: [] for name in readers}
    for _ in range(REPEATS):
        for name, reader in readers.items():
            start = time.process_time()
            reader(path)
            times[name].append(time.process_time() - start)
    return {name: min(found) for name, found in times.items()}


def result_bytes(X: Any, y: np.ndarray) -> int:
    return sum(part.nbytes for part in (X.data, X.indices, X.indptr, y))


def peak_memory(reader: Callable[[Path], Any], path: Path) -> dict[str, int]:
    """Bytes allocated at most, and those of the result."""
    tracemalloc.start()
    result = reader(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return {"peak_bytes": peak, "result_bytes": 0 if result is None else result_bytes(*result)}


OURS = ("load_libsvm", "iter_libsvm")
READERS = {"load_libsvm": load_libsvm, "iter_libsvm": ours_in_batches, "scikit-learn": theirs}


def measure(path: Path, kind: str) -> list[dict[str, Any]]:
    times = best_times(READERS, path)
    return [
        {"file": kind, "reader": name, "cpu_s": s, "speedup": times["scikit-learn"] / s}
        for name, s in times.items()
    ]


def same_answer(path: Path) -> bool:
    (X, y), (X2, y2) = load_libsvm(path), theirs(path)
    return X.shape == X2.shape and (X != X2).nnz == 0 and bool((y == y2).all())


def topics_time() -> float:
    start = time.process_time()
    make_topics(1_000_000, 500_000, 100_000, test_size=1000)
    return time.process_time() - start


def show(record: dict[str, Any]) -> None:
    print(
        f"{record['set']}: {record['entries']:,} entries, {record['plain_bytes'] / 1e6:.0f} MB plain"
    )
    for r in record["read"]:
        print(f"{r['file']:6s}{r['reader']:14s}{r['cpu_s']:7.3f} CPU s{r['speedup']:6.1f} ×")
    for name, m in record["memory"].items():
        share = (
            f", {m['peak_bytes'] / m['result_bytes']:.2f} × the result" if m["result_bytes"] else ""
        )
        print(f"plain {name:14s}{m['peak_bytes'] / 1e6:7.0f} MB at most{share}")
    print(f"make_topics, a million rows: {record['topics_cpu_s']:.1f} CPU s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of the data sets")
    parser.add_argument("--output", type=Path, default=RECORD, help="where to save the record")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        name, plain, packed = prepare(options.data, Path(folder))
        X, _ = load_libsvm(plain)  # compiles
        record = {
            "machine": machine.describe(),
            "set": name,
            "entries": X.nnz,
            "plain_bytes": plain.stat().st_size,
            "same_answer": same_answer(plain),
            "read": [*measure(plain, "plain"), *measure(packed, "xz")],
            "memory": {name: peak_memory(READERS[name], plain) for name in OURS},
            "topics_cpu_s": topics_time(),
        }
    show(record)
    options.output.write_text(json.dumps(record, indent=2) + "\n")
    print(f"saved {options.output}")


if __name__ == "__main__":
    main()
