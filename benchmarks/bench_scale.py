"""The default model as data grow, and one row at a time: ``make bench-scale``, ``make bench-latency``.

Every size is fitted in a process of its own (CPU seconds, peak memory, size of the saved model) and
answers in another one (loading, first answer, single rows, batches). Rows are those of `make_topics`.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import machine
import numpy as np

RECORDS = Path(__file__).parent / "records"
#: Rows, features, labels and words drawn for a row.
Size = tuple[int, int, int, int]
BASE: Size = (200_000, 100_000, 20_000, 30)
SIZES: dict[str, list[Size]] = {
    "latency": [(100_000, 100_000, 10_000, 30), (1_000_000, 300_000, 100_000, 30)],
    "scale": [
        BASE,
        *[(f * BASE[0], *BASE[1:]) for f in (2, 4)],
        *[(BASE[0], f * BASE[1], *BASE[2:]) for f in (2, 4)],
        *[(*BASE[:2], f * BASE[2], BASE[3]) for f in (2, 4)],
        *[(*BASE[:3], f * BASE[3]) for f in (2, 4)],
        (3_000_000, 300_000, 1_000_000, 30),
    ],
}
TEST_ROWS, SINGLE_ROWS, WARM_UP = 2_000, 1_000, 100


def rows_of(size: Size) -> Any:
    from locole.datasets import make_topics

    n_samples, n_features, n_classes, entries = size
    return make_topics(
        n_samples, n_features, n_classes, nnz_per_row=entries, power=0.5, test_size=TEST_ROWS
    )


def fit(size: Size, path: Path, n_jobs: int) -> dict[str, Any]:
    """Fit and save, after a small fit that compiles what is needed."""
    from locole import LocoleClassifier
    from locole.datasets import make_topics

    small = make_topics(12_000, 2_000, 500)
    LocoleClassifier(n_jobs=n_jobs).fit(small.X_train, small.y_train).predict(small.X_test)
    data = rows_of(size)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wall, cpu = time.perf_counter(), time.process_time()
    model = LocoleClassifier(n_jobs=n_jobs).fit(data.X_train, data.y_train)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    model.save(path)
    return {
        "entries": int(data.X_train.nnz),
        "fit_wall_s": wall,
        "fit_cpu_s": cpu,
        "data_peak_bytes": 1024 * before,
        "peak_bytes": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        "model_bytes": sum(file.stat().st_size for file in path.iterdir()),
        "accuracy": float((model.predict(data.X_test) == data.y_test).mean()),
        "weights": {name: part["weight"] for name, part in model.choice_["sources"].items()},
    }


def answer(size: Size, path: Path) -> dict[str, Any]:
    """Load and answer on one thread: the first row, single rows, and all of them at once."""
    from locole import LocoleClassifier, load
    from locole.datasets import make_topics

    small = make_topics(12_000, 2_000, 500)
    LocoleClassifier().fit(small.X_train, small.y_train).predict_topk(small.X_test[:1], k=5)
    X = rows_of(size).X_test
    single = [X[i : i + 1] for i in range(SINGLE_ROWS)]
    start = time.perf_counter()
    model = load(path)
    loaded = time.perf_counter()
    model.predict_topk(single[0], k=5)
    first = time.perf_counter()
    for row in single[:WARM_UP]:
        model.predict_topk(row, k=5)
    times = []
    for row in single[WARM_UP:]:
        begun = time.perf_counter()
        model.predict_topk(row, k=5)
        times.append(time.perf_counter() - begun)
    cpu = time.process_time()
    model.predict_topk(X, k=5)
    return {
        "load_s": loaded - start,
        "first_answer_s": first - loaded,
        "row_p50_s": float(np.median(times)),
        "row_p99_s": float(np.quantile(times, 0.99)),
        "batch_cpu_s_per_row": (time.process_time() - cpu) / X.shape[0],
    }


def measured(size: Size, n_jobs: int) -> dict[str, Any]:
    """Fit and answer, each in a process of its own."""
    names = ("rows", "features", "labels", "words")
    found: dict[str, Any] = dict(zip(names, size, strict=True))
    with tempfile.TemporaryDirectory(prefix="locole-scale-") as folder:
        for child in ("fit", "answer"):
            words = [sys.executable, __file__, "--child", child, "--size", *map(str, size)]
            words += ["--path", str(Path(folder) / "model"), "--n-jobs", str(n_jobs)]
            done = subprocess.run(words, stdout=subprocess.PIPE, check=True, text=True)
            found |= json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="?", choices=list(SIZES), default="scale")
    parser.add_argument("--size", type=int, nargs=4, help="one size: rows, features, labels, words")
    parser.add_argument("--n-jobs", type=int, default=2)
    parser.add_argument("--output", type=Path, help="where to save the record")
    parser.add_argument("--child", choices=["fit", "answer"], help=argparse.SUPPRESS)
    parser.add_argument("--path", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child == "fit":
        print(json.dumps(fit(tuple(args.size), args.path, args.n_jobs)))
    elif args.child == "answer":
        print(json.dumps(answer(tuple(args.size), args.path)))
    else:
        output = args.output or RECORDS / f"{args.what}.json"
        runs = []
        for size in [tuple(args.size)] if args.size else SIZES[args.what]:
            runs.append(measured(size, args.n_jobs))
            print(json.dumps(runs[-1]), file=sys.stderr, flush=True)
            record = {"machine": machine.describe(), "threads": args.n_jobs, "runs": runs}
            output.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
