"""A model of a gigabyte: saving, loading in a new process, the first answer: ``make bench-models``."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import machine
import numpy as np
import scipy.sparse as sp

from locole import LocoleClassifier
from locole.regressors import ElasticNetRegressor

RECORD = Path(__file__).parent / "records" / "models.json"
N_FEATURES, N_CLASSES = 500_000, 50_000
ROWS = 60_000

# What a user's program does; nothing of the model is in this process before.
ANSWER = """
import json, pathlib, sys, time
import scipy.sparse as sp
start = time.perf_counter()
import locole
from locole import load
imported = time.perf_counter()
model = load(sys.argv[1])
loaded = time.perf_counter()
query = sp.csr_array(([1.0, 1.0], ([0, 0], [3, 4])), shape=(1, model.n_features_in_))
model.predict_topk(query, k=5)
answered = time.perf_counter()
model.predict_topk(query, k=5)
status = pathlib.Path("/proc/self/status")
peak = [x.split()[1] for x in status.read_text().splitlines() if "VmHWM" in x] if status.exists() else []
print(json.dumps({
    "import_s": imported - start,
    "load_s": loaded - imported,
    "first_answer_s": answered - loaded,
    "second_answer_s": time.perf_counter() - answered,
    "memory_bytes": 1024 * int(peak[0]) if peak else 0,
}))
"""


def trained() -> LocoleClassifier:
    """A model with 500,000 × 512 weights in float32; what it learns does not matter."""
    rng = np.random.default_rng(0)
    rows = np.repeat(np.arange(ROWS), 4)
    columns = rng.integers(0, N_FEATURES, rows.size)
    X = sp.csr_array((np.ones(rows.size, dtype=np.float32), (rows, columns)), (ROWS, N_FEATURES))
    y = np.array([f"label {i % N_CLASSES}" for i in range(ROWS)])
    regressor = ElasticNetRegressor(l2=1.0, max_passes=1)
    model = LocoleClassifier("gold", dim=512, regressor=regressor, n_jobs=2)
    return model.fit(X, y)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=RECORD, help="where to save the record")
    output = parser.parse_args().output
    model = trained()
    with tempfile.TemporaryDirectory(prefix="locole-models-") as folder:
        path = Path(folder) / "model"
        start = time.perf_counter()
        model.save(path)
        saving = time.perf_counter() - start
        size = sum(file.stat().st_size for file in path.iterdir())
        runs = []
        for _ in range(3):
            done = subprocess.run(
                [sys.executable, "-c", ANSWER, str(path)],
                capture_output=True,
                check=True,
                text=True,
            )
            runs.append(json.loads(done.stdout))
    record = {"machine": machine.describe(), "model_bytes": size, "save_s": saving, "runs": runs}
    print(f"model of {size / 1e9:.2f} GB, saved in {saving:.1f} s")
    for run in runs:
        print(", ".join(f"{key} {value:.3g}" for key, value in run.items()))
    output.write_text(json.dumps(record, indent=2) + "\n")
    print(f"saved {output}")


if __name__ == "__main__":
    main()
