"""What the choices for dense rows are worth, on rows split off the training part of clinc150_minilm.

``python benchmarks/study_dense.py --data FOLDER`` saves records/dense_study.json. Each sixth of every
label's rows, in their order, is predicted from the others.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from locole.embeddings import OneHot
from locole.regressors import KernelRegressor
from locole.samples import Rows, Samples
from locole.scoring import (
    Ensemble,
    LabelScorer,
    LocalKernelScorer,
    PrototypeScorer,
    VectorScorer,
    local_kernel,
)

RECORD = Path(__file__).resolve().parent / "records" / "dense_study.json"
PARTS = 6
# Numbers of labels that compete for a row, if they are not the default.
RIVALS = {"local kernel, best 4 labels": 4, "local kernel, best 16 labels": 16}


class AllRows(VectorScorer):
    """Kernel ridge regression on all rows for all labels."""

    name = "kernel"


def beside(variant: str) -> list[LabelScorer]:
    """Scorers beside the prototypes."""
    if variant == "all rows for each label":
        parts = {"kernel": KernelRegressor(gamma=0.5, l2=0.1)}
        return [AllRows(parts, OneHot(150, dim=150))]
    settings: dict[str, Any] = {
        "local kernel, half the penalty": {"l2": 0.05},
        "local kernel, twice the penalty": {"l2": 0.2},
        "local kernel, γ = 1": {"gamma": 1.0},
    }.get(variant, {})
    return [LocalKernelScorer(**settings)] if "local kernel" in variant else []


VARIANTS = [
    "prototypes",
    "nearest rows",
    "local kernel",
    "local kernel and nearest rows",
    *RIVALS,
    "local kernel, half the penalty",
    "local kernel, twice the penalty",
    "local kernel, γ = 1",
    "all rows for each label",
]


def parts_of(codes: np.ndarray) -> np.ndarray:
    """Which part each row belongs to: a sixth of every label's rows, in their order."""
    order = np.argsort(codes, kind="stable")
    counts = np.bincount(codes)
    starts = np.repeat(np.cumsum(counts) - counts, counts)
    found = np.empty(codes.size, dtype=np.int64)
    found[order] = (np.arange(codes.size) - starts) * PARTS // np.repeat(counts, counts)
    return found


def measure(variant: str, X: np.ndarray, codes: np.ndarray) -> dict[str, Any]:
    """Accuracy in each part, and mean CPU seconds of a fit."""
    local_kernel._RIVALS = RIVALS.get(variant, 8)
    part, right, seconds = parts_of(codes), [], []
    for i in range(PARTS):
        samples = Samples(X[part != i], codes[part != i], int(codes.max()) + 1)
        scorers = [PrototypeScorer(ridge=0.3, views=2), *beside(variant)]
        model = Ensemble(scorers, nearest="nearest rows" in variant)
        start = time.process_time()
        model.fit(samples)
        seconds.append(time.process_time() - start)
        best = model.candidates(Rows(X[part == i]), 1)[0].ravel()
        right.append(float((best == codes[part == i]).mean()))
    return {"accuracy": right, "cpu_s": float(np.mean(seconds))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    folder = os.environ.get("LOCOLE_DATA")
    parser.add_argument("--data", type=Path, default=Path(folder) if folder else Path("data"))
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=VARIANTS)
    args = parser.parse_args()
    with np.load(args.data / "clinc150_minilm" / "train.npz") as arrays:
        X = arrays["X"].astype(np.float32)
        codes = np.unique(arrays["y"], return_inverse=True)[1]
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {"runs": []}
    done = {r["variant"]: r for r in record["runs"]}
    measure("local kernel", X[::10], codes[::10])  # compile
    for variant in args.variants:
        done[variant] = {"variant": variant, **measure(variant, X, codes)}
        print(variant, done[variant], flush=True)
        record["runs"] = [done[name] for name in VARIANTS if name in done]
        RECORD.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
