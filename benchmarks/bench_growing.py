"""A model that learns day by day: accuracy, seconds and memory of updates; ``make bench-growing``.

*Growth*: a tenth of the labels with all their rows, and a tenth of the other rows, arrive in fifty
batches after a fit to the rest; beside it a fit to all rows. *Stream*: a thousand updates in a row.
"""

from __future__ import annotations

import argparse
import gc
import json
import lzma
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import machine
import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_files

from locole import LocoleClassifier, load
from locole.datasets import make_topics
from locole.metrics import expected_calibration_error

RECORD = Path(__file__).parent / "records" / "growing.json"
BATCHES, UPDATES = 50, 1000
#: Rows of an update of the stream.
STREAM_ROWS = 20


def read(name: str, folder: Path) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    with (
        lzma.open(folder / name / "train.svm.xz") as train,
        lzma.open(folder / name / "test.svm.xz") as test,
    ):
        return tuple(load_svmlight_files([train, test], dtype=np.float32))


def arrivals(y: np.ndarray, seed: int) -> tuple[np.ndarray, list[np.ndarray], np.ndarray]:
    """Rows of the first fit, batches that follow, and the labels that come with these."""
    rng = np.random.default_rng(seed)
    labels = np.unique(y)
    new = rng.choice(labels, labels.size // 10, replace=False)
    is_new = np.isin(y, new)
    later = np.flatnonzero(is_new | (rng.random(y.size) < 0.1))
    first = np.setdiff1d(np.arange(y.size), later)
    return first, np.array_split(rng.permutation(later), BATCHES), new


def figures(model: Any, X: Any, y: np.ndarray, new: np.ndarray) -> dict[str, float]:
    """Accuracy, that on the labels that came later, and calibration error."""
    labels, proba = model.predict_topk(X, k=1, proba=True)
    right = labels[:, 0] == y
    return {
        "accuracy": float(right.mean()),
        "accuracy_new": float(right[np.isin(y, new)].mean()),
        "calibration_error": float(expected_calibration_error(proba[:, 0], right)),
    }


def timed(function: Any) -> tuple[Any, float]:
    start = time.process_time()
    return function(), time.process_time() - start


def growth(name: str, data: tuple[Any, ...], seed: int) -> dict[str, Any]:
    X, y, X_test, y_test = data
    first, batches, new = arrivals(y, seed)
    LocoleClassifier().fit(*_small()).partial_fit(*_small())  # kernels are compiled
    scratch, scratch_s = timed(lambda: LocoleClassifier(random_state=seed).fit(X, y))
    whole = figures(scratch, X_test, y_test, new)
    del scratch
    model, first_s = timed(lambda: LocoleClassifier(random_state=seed).fit(X[first], y[first]))
    before = figures(model, X_test, y_test, new)
    seconds = [timed(lambda rows=rows: model.partial_fit(X[rows], y[rows]))[1] for rows in batches]
    return {
        "data": name,
        "seed": seed,
        "rows": int(y.size),
        "first_rows": int(first.size),
        "labels": int(np.unique(y).size),
        "new_labels": int(new.size),
        "scratch": {**whole, "cpu_s": scratch_s},
        "first": {**before, "cpu_s": first_s},
        "grown": figures(model, X_test, y_test, new),
        "batch_cpu_s": {"median": float(np.median(seconds)), "largest": max(seconds)},
    }


def _small() -> tuple[Any, np.ndarray]:
    data = make_topics(n_samples=3_000, n_features=600, n_classes=300, random_state=1)
    return data.X_train, data.y_train


def stream(seed: int) -> dict[str, Any]:
    """Updates one after the other, with a save and a load in the middle of one of two runs."""
    data = make_topics(n_samples=24_000, n_features=2_000, n_classes=400, random_state=seed)
    X, y = sp.csr_array(data.X_train), data.y_train
    n_first = X.shape[0] - UPDATES * STREAM_ROWS
    models = [LocoleClassifier(random_state=seed).fit(X[:n_first], y[:n_first]) for _ in range(2)]
    sizes, memory = [], []
    vectors = models[0].embedding_.real_rows(np.arange(models[0].classes_.size))
    for number in range(UPDATES):
        start = n_first + number * STREAM_ROWS
        rows = slice(start, start + STREAM_ROWS)
        for model in models:
            model.partial_fit(X[rows], y[rows])
        if number == UPDATES // 2:
            with tempfile.TemporaryDirectory() as folder:
                models[1].save(f"{folder}/model")
                models[1] = load(f"{folder}/model")
        if number % 100 == 99:
            gc.collect()
            with tempfile.TemporaryDirectory() as folder:
                models[0].save(f"{folder}/model")
                files = Path(folder, "model").iterdir()
                sizes.append(sum(path.stat().st_size for path in files))
            memory.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
    answers = [model.decision_function(data.X_test) for model in models]
    first = models[0].embedding_.real_rows(np.arange(len(vectors)))
    return {
        "updates": UPDATES,
        "rows_of_an_update": STREAM_ROWS,
        "labels": int(models[0].classes_.size),
        "same_bits_after_load": bool(np.array_equal(*answers)),
        "vectors_unmoved": bool(np.array_equal(first, vectors)),
        "accuracy": float(models[0].score(data.X_test, data.y_test)),
        "model_bytes": sizes,
        "peak_bytes": memory,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", nargs="*", default=["cve_product"], help="none: keep the record")
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--record", type=Path, default=RECORD)
    parser.add_argument("--no-stream", action="store_true")
    asked = parser.parse_args()
    record = json.loads(asked.record.read_text()) if asked.record.exists() else {}
    record |= {"machine": machine.describe()}
    if not asked.no_stream:  # first, so that the largest memory is its own
        record["stream"] = stream(0)
        print(json.dumps(record["stream"]), flush=True)
    if asked.sets:
        record["growth"] = []
    for name in asked.sets:
        data = read(name, asked.data)
        for seed in asked.seeds:
            record["growth"].append(growth(name, data, seed))
            print(json.dumps(record["growth"][-1]), flush=True)
    asked.record.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
