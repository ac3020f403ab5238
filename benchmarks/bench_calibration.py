"""Probabilities, abstention and label sets of the default model: ``make bench-calibration``."""

from __future__ import annotations

import argparse
import itertools
import json
import lzma
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import machine
import numpy as np
from scipy.special import logsumexp, softmax
from scipy.stats import beta
from sklearn.datasets import load_svmlight_files

from locole import LocoleClassifier
from locole.calibration import Calibration, error_threshold, in_sets, set_rule
from locole.calibration.conformal import Method, pseudo_uniform
from locole.datasets import load_city_names
from locole.exceptions import LocoleError
from locole.metrics import expected_calibration_error, log_loss, risk_coverage
from locole.samples import Samples
from locole.scoring.base import ValidationScores

HERE = Path(__file__).resolve().parent
RECORD = HERE / "records" / "calibration.json"
#: Python of the peers' environment, and the set whose label sets are made by MAPIE too.
PEER, WITH_PEER = HERE.parent / ".venv-peers" / "bin" / "python", "clinc150"
SETS = ("clinc150", "cve_product", "gesetze_de", "city_names")
COVERAGES = (0.8, 0.9, 0.95)
METHODS: tuple[Method, ...] = ("lac", "aps")
#: Labels of the naive softmax, and of the rankings that are looked at.
NAIVE, DEPTH = 50, 64
#: Probability of a label to which the naive softmax gives none: its logarithmic loss would be infinite.
LEAST = 1e-9
#: Rows that the splits fit probabilities to, as many as a model puts aside.
CALIBRATION_ROWS = 2000
#: Parts of the training rows that are predicted from the others, where rows stand in their first order.
PARTS, PARTED = 6, "clinc150"
#: Test rows whose sets are made and whose rankings are timed; splits for MAPIE.
SOME_ROWS, PEER_SPLITS = 2000, 20


def load(name: str, folder: Path) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    if name == "city_names":
        data = load_city_names(min_population=15_000)
        return data.X_train, data.y_train, data.X_test, data.y_test
    with (
        lzma.open(folder / name / "train.svm.xz") as train,
        lzma.open(folder / name / "test.svm.xz") as test,
    ):
        return tuple(load_svmlight_files([train, test], dtype=np.float32))


def measure(
    name: str, data: tuple[Any, ...], seed: int
) -> tuple[dict[str, Any], Any, ValidationScores]:
    """Fit, rank the test rows once, and judge probabilities, answers and sets by that."""
    X, y, X_test, y_test = data
    model = LocoleClassifier(random_state=seed, n_jobs=1)
    start = time.process_time()
    model.fit(X, y)
    fit_s = time.process_time() - start
    codes = np.searchsorted(model.classes_, y_test)
    k = min(DEPTH, model.classes_.size)
    parts = model._map_rows(X_test, lambda rows: model._best(rows, k))
    best, scores = (np.concatenate(part) for part in zip(*parts, strict=True))
    found = ValidationScores(
        best,
        scores.astype(np.float64),
        best == codes[:, None],
        Samples(X_test, codes, model.classes_.size),
    )
    record = {
        "data": name,
        "seed": seed,
        "labels": int(model.classes_.size),
        "test_rows": int(codes.size),
        "validation_rows": model.calibration_.n_rows,
        "accuracy": float(found.right[:, 0].mean()),
        "fit_cpu_s": fit_s,
        **trust(model, found),
        **sets(model, X_test[:SOME_ROWS], y_test[:SOME_ROWS]),
    }
    return record, model, found


def within_training(data: tuple[Any, ...], n_seeds: int) -> list[dict[str, Any]]:
    """Calibration on sixths of each label's training rows, in their order, by models of the others."""
    X, y = data[:2]
    order = np.argsort(y, kind="stable")
    _, first, counts = np.unique(y[order], return_index=True, return_counts=True)
    place = np.arange(y.size) - np.repeat(first, counts)
    part = np.empty(y.size, dtype=np.int64)
    part[order] = place * PARTS // np.repeat(counts, counts)
    records = []
    for number, seed in itertools.product(range(PARTS), range(n_seeds)):
        out = part == number
        found = measure("training", (X[~out], y[~out], X[out], y[out]), seed)[0]
        names = ("seed", "accuracy", "ece", "perfect_ece", "bias")
        records.append({"part": number, **{name: found[name] for name in names}})
    return records


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
    own = own_probability(proba, right, model.classes_.size)
    near = right[:, :NAIVE].any(axis=1)
    naive_own = np.where(near, (naive * right[:, :NAIVE]).sum(axis=1), LEAST)
    rng = np.random.default_rng(0)
    perfect = [
        expected_calibration_error(proba[:, 0], rng.random(len(proba)) < proba[:, 0])
        for _ in range(20)
    ]
    record = {
        "ece": expected_calibration_error(proba[:, 0], right[:, 0]),
        "perfect_ece": float(np.mean(perfect)),
        "bias": float(proba[:, 0].mean() - right[:, 0].mean()),
        "naive_ece": expected_calibration_error(naive[:, 0], right[:, 0]),
        "log_loss": log_loss(own),
        "naive_log_loss": log_loss(naive_own),
        "near_log_loss": log_loss(own[near]),
        "naive_near_log_loss": log_loss(naive_own[near]),
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
    for method in METHODS:
        for coverage in COVERAGES:
            found = model.predict_set(X_test, coverage, method=method)
            holds = [bool((one == y).any()) for one, y in zip(found, y_test, strict=True)]
            name = f"{method}_{coverage:g}"
            record[f"{name}_coverage"] = float(np.mean(holds))
            record[f"{name}_size"] = float(np.mean([one.size for one in found]))
    return record


def costs(model: Any, found: ValidationScores, fit_s: float) -> dict[str, Any]:
    """CPU seconds of the fit, of its calibration, and of rankings with and without probabilities."""
    n_rows = model.calibration_.n_rows
    some = found.take(np.arange(min(n_rows, found.samples.n_rows)))
    counts, rows = model.calibration_.counts_, found.samples.X[:SOME_ROWS]
    return {
        "fit_cpu_s": fit_s,
        "calibration_cpu_s": machine.best_time(lambda: Calibration().fit(some, counts), repeats=3),
        "topk_cpu_s": machine.best_time(lambda: model.predict_topk(rows, k=5), repeats=3),
        "topk_proba_cpu_s": machine.best_time(
            lambda: model.predict_topk(rows, k=5, proba=True), repeats=3
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


def beside_mapie(model: Any, found: ValidationScores, python: Path) -> list[dict[str, Any]]:
    """Sets of ours and MAPIE's from the same probabilities and splits, and MAPIE's from a softmax."""
    X, codes = found.samples.X, found.samples.codes
    scores = model.decision_function(X).astype(np.float64)
    proba = model.predict_proba(X)
    rng = np.random.default_rng(0)
    orders = np.array([rng.permutation(codes.size) for _ in range(PEER_SPLITS)])
    n_calibration = min(CALIBRATION_ROWS, codes.size // 2)
    asked = {"y": codes, "orders": orders, "n_calibration": n_calibration, "coverages": COVERAGES}
    records: list[dict[str, Any]] = [
        {"system": "locole", "proba": "ours", **own_sets(proba, asked, model.calibration_.counts_)}
    ]
    for name, given in (("ours", proba), ("softmax", softmax(scores, axis=1))):
        with tempfile.NamedTemporaryFile(suffix=".npz") as file:
            np.savez(file, proba=given, **asked)
            file.flush()
            command = [str(python), str(HERE / "peers" / "run_mapie.py"), file.name]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
        records.append({"system": "MAPIE", "proba": name, **json.loads(done.stdout)})
    return records


def own_sets(proba: np.ndarray, asked: dict[str, Any], counts: np.ndarray) -> dict[str, Any]:
    """Mean coverage and size of our sets over the splits."""
    order = np.argsort(-proba, axis=1, kind="stable")
    ranked, right = np.take_along_axis(proba, order, 1), order == asked["y"][:, None]
    own, before = ((table * right).sum(axis=1) for table in (ranked, ranked.cumsum(1) - ranked))
    uniform, rows_of = np.random.default_rng(1).random(len(proba)), counts[order]
    n, record = asked["n_calibration"], {}
    for method, coverage in itertools.product(METHODS, COVERAGES):
        found = []
        for order_of_rows in asked["orders"]:
            rows, rest = order_of_rows[:n], order_of_rows[n:]
            rule = set_rule(
                own[rows], before[rows], uniform[rows], counts[asked["y"][rows]],
                coverage=coverage, method=method,
            )  # fmt: skip
            inside = in_sets(ranked[rest], uniform[rest], rows_of[rest], rule)
            found.append([(inside & right[rest]).any(axis=1).mean(), inside.sum(axis=1).mean()])
        held, size = np.mean(found, axis=0)
        record[f"{method}_{coverage:g}_coverage"] = float(held)
        record[f"{method}_{coverage:g}_size"] = float(size)
    return record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the data sets")
    parser.add_argument("--sets", nargs="*", default=SETS, help="some of the sets")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--splits", type=int, default=200)
    parser.add_argument("--peer", type=Path, default=PEER, help="python that has MAPIE")
    parser.add_argument("--output", type=Path, default=RECORD, help="where to save the record")
    options = parser.parse_args()
    record: dict[str, Any] = {"machine": machine.describe()}
    record |= {key: [] for key in ("runs", "splits", "costs", "sets", "parts")}
    for name in options.sets:
        data = load(name, options.data)
        for seed in range(options.seeds):
            run, model, found = measure(name, data, seed)
            record["runs"].append(run)
            print(run, flush=True)
            if seed == 0:
                counts = model.calibration_.counts_
                record["costs"].append({"data": name, **costs(model, found, run["fit_cpu_s"])})
                record["splits"].append({"data": name, **splits(found, counts, options.splits)})
                print(record["costs"][-1], record["splits"][-1], flush=True)
                if name == WITH_PEER:
                    record["sets"] = beside_mapie(model, found, options.peer)
                    print(record["sets"], flush=True)
        if name == PARTED:
            record["parts"] = within_training(data, options.seeds)
            print(record["parts"], flush=True)
        options.output.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
