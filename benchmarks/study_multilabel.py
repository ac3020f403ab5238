"""What the choices for several labels are worth, on rows split off the training parts.

``python benchmarks/study_multilabel.py --data FOLDER`` saves records/multilabel_study.json. Each figure
is the mean over three splits; tibkat_gnd is left out by default, because its fits take minutes.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from bench_multilabel import SETS
from sklearn.preprocessing import normalize

from locole import LocoleClassifier
from locole.decoders import pursue
from locole.metrics import f1_score, precision_at_k
from locole.regressors import KernelRegressor
from locole.samples import Rows
from locole.scoring.default import Plan

RECORD = Path(__file__).resolve().parent / "records" / "multilabel_study.json"
SPLITS = 3
_VOTERS = 60
VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "rows as they are": {},
    "without kernel": {},
    "without factors": {"factors": False},
    "without profiles": {"profiles": False},
    "without nearest rows": {"nearest": False},
    "one-hot vectors": {"embedding": "one_hot"},
    "votes of nearest rows": {},
    "kernel and network": {},
    "kernel alone": {"regressor": "kernel", "embedding": "kerdock", "dim": 1024},
    "softmax alone": {"regressor": "softmax", "embedding": "kerdock", "dim": 1024},
    "elastic net alone": {"regressor": "elastic_net", "embedding": "kerdock", "dim": 1024},
    "elastic net, pursuit": {"regressor": "elastic_net", "embedding": "kerdock", "dim": 1024},
}


def answers(name: str, X: Any, Y: Any, X_test: Any) -> tuple[Any, dict[str, Any]]:
    """Best five labels of test rows, and the sets predicted for each average of the F1."""
    if name == "votes of nearest rows":
        return votes(X, Y, X_test), {}
    if name == "kernel and network":
        return kernel_and_network(X, Y, X_test), {}
    model = LocoleClassifier(**VARIANTS[name])
    if name in CHANGES:
        with_change(model, CHANGES[name])
    if name == "softmax alone":
        return pairs_of_labels(model, X, Y).predict_topk(X_test, k=5)[0], {}
    model.fit(X, Y)
    if name == "elastic net, pursuit":
        points = model.scorer_.points(Rows(X_test))
        return pursue(model.embedding_, points, k=5)[0], {}
    sets = {average: model.predict(X_test, average=average) for average in ("samples", "macro")}
    return model.predict_topk(X_test, k=5)[0], sets


def pairs_of_labels(model: LocoleClassifier, X: Any, Y: Any) -> LocoleClassifier:
    """Fit every label of a row as a row of its own: −Σ log p over the labels, a mean for each row."""
    row, label = Y.nonzero()
    return model.fit(X[row], label, sample_weight=1 / np.diff(Y.indptr)[row])


def votes(X: Any, Y: Any, X_test: Any) -> Any:
    """Best labels by votes of the 60 nearest rows, which count by the fourth power of the cosine."""
    cosines = (normalize(X_test) @ normalize(X).T).toarray()
    far = np.argpartition(-cosines, _VOTERS, axis=1)[:, _VOTERS:]
    np.put_along_axis(cosines, far, 0.0, 1)
    return np.argsort(-(sp.csr_matrix(cosines**4) @ Y).toarray(), axis=1, kind="stable")[:, :5]


def kernel_and_network(X: Any, Y: Any, X_test: Any) -> Any:
    """Best labels by the sum of kernel ridge regression and a network with a sigmoid for each label."""
    kernel = KernelRegressor(n_jobs=1).fit(X, Y.toarray().astype(np.float32)).predict(X_test)
    return np.argsort(-(kernel + network(X, Y, X_test)), axis=1, kind="stable")[:, :5]


def network(X: Any, Y: Any, X_test: Any, *, epochs: int = 12, width: int = 1024) -> Any:
    """Probabilities by one hidden layer with dropout, trained on the binary cross-entropy."""
    import torch

    torch.manual_seed(0)
    rows, new = (
        torch.tensor(normalize(part).toarray(), dtype=torch.float32) for part in (X, X_test)
    )
    wanted = torch.tensor(Y.toarray(), dtype=torch.float32)
    last = torch.nn.Linear(width, Y.shape[1])
    layers = [torch.nn.Linear(X.shape[1], width), torch.nn.ReLU(), torch.nn.Dropout(0.5), last]
    net = torch.nn.Sequential(*layers)
    with torch.no_grad():
        last.bias.copy_(torch.logit(wanted.mean(0).clamp(1e-4)))
    steps = torch.optim.AdamW(net.parameters(), lr=2e-3)
    loss = torch.nn.BCEWithLogitsLoss()
    for _ in range(epochs):
        for batch in torch.randperm(len(rows)).split(128):
            steps.zero_grad()
            loss(net(rows[batch]), wanted[batch]).backward()
            steps.step()
    with torch.no_grad():
        return torch.sigmoid(net.eval()(new)).numpy()


def raw_rows(ensemble: Any) -> Any:
    """The same ensemble for rows as they are."""
    return ensemble.set_params(unit_rows=False)


def without_kernel(ensemble: Any) -> Any:
    """The same ensemble without kernel ridge regression."""
    del ensemble.scorers[0].regressors["kernel"]
    return ensemble


CHANGES = {"rows as they are": raw_rows, "without kernel": without_kernel}


def with_change(model: LocoleClassifier, change: Callable[[Any], Any]) -> None:
    """Let this model make its ensemble otherwise."""
    plan = model._plan

    class Changed(Plan):
        def scorer(self, *args: Any, **options: Any) -> Any:
            return change(super().scorer(*args, **options))

    model._plan = lambda seed: Changed(*plan(seed))  # type: ignore[method-assign]


def measure(name: str, X: Any, Y: Any) -> dict[str, float]:
    """Mean figures over the splits."""
    found = []
    for split in range(SPLITS):
        order = np.random.default_rng(100 + split).permutation(X.shape[0])
        test, train = order[: X.shape[0] // 6], np.sort(order[X.shape[0] // 6 :])
        ranked, sets = answers(name, X[train], Y[train], X[test])
        figures = {f"P@{k}": precision_at_k(Y[test], ranked, k=k) for k in (1, 3, 5)}
        for aim, found_sets in sets.items():
            end = "" if aim == "samples" else "_own_thresholds"
            for average in ("micro", "samples", "macro"):
                figures[f"{average}_f1{end}"] = f1_score(Y[test], found_sets, average=average)
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
