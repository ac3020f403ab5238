"""Probabilities, abstention and label sets of the default model: ``make bench-calibration``."""

from __future__ import annotations

import argparse
import json
import lzma
import time
from pathlib import Path
from typing import Any

import machine
import numpy as np
from scipy.special import logsumexp
from scipy.stats import beta
from sklearn.datasets import load_svmlight_files

from locole import LocoleClassifier
from locole.calibration import Calibration, error_threshold, in_sets
from locole.calibration.conformal import pseudo_uniform
from locole.datasets import load_city_names
from locole.exceptions import LocoleError
from locole.metrics import expected_calibration_error, log_loss, risk_coverage
from locole.samples import Samples
from locole.scoring.base import ValidationScores

RECORD = Path(__file__).parent / "records" / "calibration.json"
SETS = ("clinc150", "cve_product", "gesetze_de", "city_names")
COVERAGES = (0.8, 0.9, 0.95)
#: Labels of the naive softmax, and of the rankings that are looked at.
NAIVE, DEPTH = 50, 64
#: Rows that the splits fit probabilities to, as many as a model puts aside.
CALIBRATION_ROWS = 2000


def load(name: str, folder: Path) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    if name == "city_names":
        data = load_city_names(min_population=15_000)
        return data.X_train, data.y_train, data.X_test, data.y_test
    with (
        lzma.open(folder / name / "train.svm.xz") as train,
        lzma.open(folder / name / "test.svm.xz") as test,
    ):
        return tuple(load_svmlight_files([train, test], dtype=np.float32))


def measure(name: str, data: tuple[Any, ...], seed: int) -> tuple[dict[str, Any], ValidationScores]:
    X, y, X_test, y_test = data
    model = LocoleClassifier(random_state=seed, n_jobs=2)
    start = time.process_time()
    model.fit(X, y)
    fit_s = time.process_time() - start
    codes = np.searchsorted(model.classes_, y_test)
    k = min(DEPTH, model.classes_.size)
    parts = model._map_rows(X_test, lambda rows: model._best(rows, k))
    best, scores = (np.concatenate(part) for part in zip(*parts, strict=True))
    right = best == codes[:, None]
    found = ValidationScores(
        best, scores.astype(np.float64), right, Samples(X_test, codes, model.classes_.size)
    )
    record = {
        "data": name,
        "seed": seed,
        "labels": int(model.classes_.size),
        "validation_rows": model.calibration_.n_rows,
        "accuracy": float(right[:, 0].mean()),
        **trust(model, found),
        **sets(model, X_test, y_test),
        **costs(model, found, X_test, fit_s),
    }
    return record, found


def own_probability(proba: np.ndarray, right: np.ndarray, n_classes: int) -> np.ndarray:
    """Probability of the right label; those behind the ranking share what is left evenly."""
    left = np.maximum(1 - proba.sum(axis=1), 0) / max(n_classes - proba.shape[1], 1)
    return np.where(right.any(axis=1), (proba * right).sum(axis=1), left)


def trust(model: Any, found: ValidationScores) -> dict[str, Any]:
    right, scores = found.right, found.scores
    proba = np.exp(model.calibration_.log_proba(scores))
    top = scores[:, :NAIVE]
    naive = np.exp(top - logsumexp(top, axis=1, keepdims=True))
    curve, naive_curve = (risk_coverage(p[:, 0], right[:, 0]) for p in (proba, naive))
    naive_own = np.where(right[:, :NAIVE].any(axis=1), (naive * right[:, :NAIVE]).sum(axis=1), 1e-9)
    record = {
        "ece": expected_calibration_error(proba[:, 0], right[:, 0]),
        "naive_ece": expected_calibration_error(naive[:, 0], right[:, 0]),
        "log_loss": log_loss(own_probability(proba, right, model.classes_.size)),
        "naive_log_loss": log_loss(naive_own),
        "risk_coverage_area": curve.area,
        "error_at_80": curve.risk_at(0.8),
        "naive_error_at_80": naive_curve.risk_at(0.8),
    }
    try:
        least = model.threshold(max_error=0.05)
        given = proba[:, 0] >= float(least)
        record["error_for_max_error"] = float(1 - right[given, 0].mean())
        record["coverage_for_max_error"] = float(given.mean())
    except LocoleError:
        record["coverage_for_max_error"] = 0.0
    return record


def sets(model: Any, X_test: Any, y_test: np.ndarray) -> dict[str, Any]:
    record = {}
    for method in ("lac", "aps"):
        for coverage in COVERAGES:
            found = model.predict_set(X_test, coverage, method=method)
            holds = [bool((one == y).any()) for one, y in zip(found, y_test, strict=True)]
            name = f"{method}_{coverage:g}"
            record[f"{name}_coverage"] = float(np.mean(holds))
            record[f"{name}_size"] = float(np.mean([one.size for one in found]))
    return record


def costs(model: Any, found: ValidationScores, X_test: Any, fit_s: float) -> dict[str, Any]:
    """CPU seconds of the fit, of its calibration, and of rankings with and without probabilities."""
    n_rows = model.calibration_.n_rows
    some = found.take(np.arange(min(n_rows, found.samples.n_rows)))
    counts = model.calibration_.counts_
    rows = X_test[:2000]
    return {
        "fit_cpu_s": fit_s,
        "calibration_cpu_s": machine.best_time(lambda: Calibration().fit(some, counts), repeats=3),
        "topk_cpu_s": machine.best_time(lambda: model.predict_topk(rows, k=5), repeats=5),
        "topk_proba_cpu_s": machine.best_time(
            lambda: model.predict_topk(rows, k=5, proba=True), repeats=5
        ),
    }


def splits(found: ValidationScores, counts: np.ndarray, n_splits: int) -> dict[str, Any]:
    """Coverage of sets and error of answers over random splits of rows that are exchangeable."""
    rng = np.random.default_rng(0)
    n_rows = found.samples.n_rows
    n_calibration = min(CALIBRATION_ROWS, n_rows // 2)
    covered: dict[str, list[float]] = {f"lac_{c:g}": [] for c in COVERAGES}
    kept = []
    for _ in range(n_splits):
        order = rng.permutation(n_rows)
        calibration = Calibration().fit(found.take(order[:n_calibration]), counts)
        rest = found.take(order[n_calibration:])
        proba = np.exp(calibration.log_proba(rest.scores))
        for c in COVERAGES:
            rule = calibration.set_rule(coverage=c, method="lac", by_frequency=False)
            inside = in_sets(proba, pseudo_uniform(rest.scores), counts[rest.codes], rule)
            everything = rule.limits[0] <= 0
            covered[f"lac_{c:g}"].append(
                1.0 if everything else float((inside & rest.right).any(axis=1).mean())
            )
        sure, before = calibration.evidence_[:, 0], calibration.evidence_[:, 2]
        try:
            least = float(error_threshold(sure, before == 0, max_error=0.05))
        except LocoleError:
            continue
        given = proba[:, 0] >= least
        kept.append(float(1 - rest.right[given, 0].mean()) <= 0.05)
    record: dict[str, Any] = {
        "splits": n_splits,
        "rows": n_calibration,
        "test": n_rows - n_calibration,
    }
    for c in COVERAGES:
        found_here = np.array(covered[f"lac_{c:g}"])
        place = np.ceil((n_calibration + 1) * c)
        law = beta(place, n_calibration + 1 - place)
        spread = np.sqrt(law.var() + c * (1 - c) / (n_rows - n_calibration))
        record[f"coverage_{c:g}"] = float(found_here.mean())
        record[f"within_{c:g}"] = float((np.abs(found_here - law.mean()) <= 1.96 * spread).mean())
    record["answered"], record["kept"] = len(kept), int(np.sum(kept))
    return record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the data sets")
    parser.add_argument("--sets", nargs="*", default=SETS, help="some of the sets")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--splits", type=int, default=200)
    parser.add_argument("--output", type=Path, default=RECORD, help="where to save the record")
    options = parser.parse_args()
    record: dict[str, Any] = {"machine": machine.describe(), "runs": [], "splits": []}
    if options.output.exists():
        old = json.loads(options.output.read_text())
        for key in ("runs", "splits"):
            record[key] = [run for run in old[key] if run["data"] not in options.sets]
    for name in options.sets:
        if name != "city_names" and not (options.data / name).is_dir():
            print(f"{name}: no such folder in {options.data}, left out")
            continue
        data = load(name, options.data)
        for seed in range(options.seeds):
            run, found = measure(name, data, seed)
            record["runs"].append(run)
            print(run, flush=True)
            if seed == 0:
                counts = np.ones(run["labels"], dtype=np.int64)
                record["splits"].append({"data": name, **splits(found, counts, options.splits)})
                print(record["splits"][-1], flush=True)
        options.output.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
