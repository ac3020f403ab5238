"""What the choices for several labels are worth, on rows split off the training parts.

``python benchmarks/study_multilabel.py --data FOLDER`` saves records/multilabel_study.json. Each figure
is the mean over three splits; tibkat_gnd is left out by default, because its fits take minutes.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from bench_multilabel import SETS

from locole import LocoleClassifier
from locole.decoders import pursue
from locole.metrics import f1_score, precision_at_k
from locole.samples import Rows
from locole.scoring.default import Plan

RECORD = Path(__file__).resolve().parent / "records" / "multilabel_study.json"
SPLITS = 3
VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "rows as they are": {},
    "without factors": {"factors": False},
    "without profiles": {"profiles": False},
    "without nearest rows": {"nearest": False},
    "one-hot vectors": {"embedding": "one_hot"},
    "elastic net alone": {"regressor": "elastic_net", "embedding": "kerdock", "dim": 1024},
    "elastic net, pursuit": {"regressor": "elastic_net", "embedding": "kerdock", "dim": 1024},
}


def answers(name: str, X: Any, Y: Any, X_test: Any) -> tuple[Any, float | None]:
    """Best five labels of test rows, and the model's predicted sets if it has a threshold."""
    model = LocoleClassifier(**VARIANTS[name])
    if name == "rows as they are":
        with_raw_rows(model)
    model.fit(X, Y)
    if name == "elastic net, pursuit":
        points = model.scorer_.points(Rows(X_test))
        return pursue(model.embedding_, points, k=5)[0], None
    return model.predict_topk(X_test, k=5)[0], model.predict(X_test)


def with_raw_rows(model: LocoleClassifier) -> None:
    """Let the ensemble of this model take rows as they are."""
    plan = model._plan

    class Raw(Plan):
        def scorer(self, *args: Any, **options: Any) -> Any:
            return super().scorer(*args, **options).set_params(unit_rows=False)

    model._plan = lambda seed: Raw(*plan(seed))  # type: ignore[method-assign]


def measure(name: str, X: Any, Y: Any) -> dict[str, float]:
    """Mean figures over the splits."""
    found = []
    for split in range(SPLITS):
        order = np.random.default_rng(100 + split).permutation(X.shape[0])
        test, train = order[: X.shape[0] // 6], np.sort(order[X.shape[0] // 6 :])
        ranked, sets = answers(name, X[train], Y[train], X[test])
        figures = {f"P@{k}": precision_at_k(Y[test], ranked, k=k) for k in (1, 3, 5)}
        if sets is not None:
            figures["micro_f1"] = f1_score(Y[test], sets)
            figures["samples_f1"] = f1_score(Y[test], sets, average="samples")
        found.append(figures)
    return {key: float(np.mean([f[key] for f in found])) for key in found[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    folder = os.environ.get("LOCOLE_DATA")
    parser.add_argument("--data", type=Path, default=Path(folder) if folder else Path("data"))
    parser.add_argument("--sets", nargs="+", choices=SETS, default=["bibtex", "delicious"])
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    args = parser.parse_args()
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {"splits": SPLITS, "runs": []}
    done = {(r["set"], r["variant"]): r for r in record["runs"]}
    for name in args.sets:
        rows = SETS[name](args.data)
        for variant in args.variants:
            figures = measure(variant, rows.X_train, rows.Y_train)
            done[name, variant] = {"set": name, "variant": variant, **figures}
            print(name, variant, {k: round(100 * v, 2) for k, v in figures.items()}, flush=True)
            order = [(a, b) for a in SETS for b in VARIANTS if (a, b) in done]
            record["runs"] = [done[pair] for pair in order]
            RECORD.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
