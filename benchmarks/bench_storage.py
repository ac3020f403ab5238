"""What weights in fewer bits cost in accuracy: ``make bench-storage``."""

from __future__ import annotations

import argparse
import json
import lzma
from pathlib import Path
from typing import Any

import machine
import numpy as np
from sklearn.datasets import load_svmlight_files

from locole import LocoleClassifier
from locole.metrics import accuracy, top_k_accuracy
from locole.regressors import ElasticNetRegressor

RECORD = Path(__file__).parent / "records" / "storage.json"
SETS = ("cve_product", "gesetze_de")


def load(folder: Path) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    with lzma.open(folder / "train.svm.xz") as train, lzma.open(folder / "test.svm.xz") as test:
        return tuple(load_svmlight_files([train, test], dtype=np.float32))


def measure(name: str, data: tuple[Any, ...]) -> list[dict[str, Any]]:
    X, y, X_test, y_test = data
    rows = []
    for storage in ("float32", "float16", "int8", "int4"):
        model = LocoleClassifier(regressor=ElasticNetRegressor(storage=storage), n_jobs=2).fit(X, y)
        labels, _ = model.predict_topk(X_test, k=5)
        regressor = model.regressor_
        rows.append(
            {
                "data": name,
                "storage": storage,
                "weight_bytes": regressor._weights.nbytes + regressor._scales.nbytes,
                "accuracy": accuracy(y_test, labels[:, 0]),
                "top5": top_k_accuracy(y_test, labels),
                "cpu_s_per_1000_rows": machine.best_time(
                    lambda model=model: model.predict(X_test[:1000]), repeats=3
                ),
            }
        )
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the data sets")
    parser.add_argument("--output", type=Path, default=RECORD, help="where to save the record")
    options = parser.parse_args()
    record = {"machine": machine.describe(), "storage": []}
    for name in SETS:
        if (options.data / name).is_dir():
            record["storage"] += measure(name, load(options.data / name))
        else:
            print(f"{name}: no such folder in {options.data}, left out")
    options.output.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
