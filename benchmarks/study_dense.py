"""What prototypes gain by two views, by nearest rows and lose by bytes, on rows of the training parts.

``python benchmarks/study_dense.py --data folder``. Rows of `clinc150` stand in the order in which people
wrote them, similar ones together, so each sixth of every label's rows, in this order, is predicted from
the others; of `cve_product`, with few rows for each label, a random fifth of the rows of 1,200 labels,
five times.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import bench_dense
import machine
import numpy as np

from locole.samples import Rows, Samples
from locole.scoring import Ensemble, LabelScorer, PrototypeScorer

HERE = Path(__file__).resolve().parent
RECORD = HERE / "records" / "dense_study.json"
N_FOLDS, N_RANDOM, N_LABELS = 6, 5, 1_200


class InFloats(PrototypeScorer):
    """Prototypes that are not kept in bytes."""

    def _pack(self, dither: Any = None) -> None:
        pass


def two_views(kind: type[PrototypeScorer] = PrototypeScorer) -> PrototypeScorer:
    return kind(ridge=0.3, views=2)


SYSTEMS: dict[str, Callable[[], LabelScorer]] = {
    "one view": lambda: Ensemble([PrototypeScorer()], nearest=False),
    "two views": lambda: Ensemble([two_views()], nearest=False),
    "two views in float32": lambda: Ensemble([two_views(InFloats)], nearest=False),
    "two views, nearest rows": lambda: Ensemble([two_views()], nearest=True),
}
Fold = tuple[np.ndarray, np.ndarray]


def in_order(y: np.ndarray) -> Iterator[Fold]:
    """Every sixth of the rows of each label, in their order."""
    first = np.searchsorted(np.sort(y), y)
    place = np.empty(y.size, dtype=np.int64)
    place[np.argsort(y, kind="stable")] = np.arange(y.size)
    fold = (place - first) * N_FOLDS // np.bincount(y)[y]
    for i in range(N_FOLDS):
        yield np.flatnonzero(fold != i), np.flatnonzero(fold == i)


def at_random(y: np.ndarray) -> Iterator[Fold]:
    """A fifth of the rows, drawn anew each time."""
    for i in range(N_RANDOM):
        test, train = np.split(np.random.default_rng(i).permutation(y.size), [y.size // 5])
        yield train, test


def rows_of(name: str, data: Path, python: str) -> tuple[np.ndarray, np.ndarray]:
    """Training rows and codes of a set of `make bench-dense`; of many labels those of some."""
    with tempfile.TemporaryDirectory(prefix="locole-data-") as folder:
        bench_dense.SETS[name][0](Path(folder), data, python)
        X, y = (np.load(Path(folder) / f"{part}_train.npy") for part in ("X", "y"))
    some = np.random.default_rng(0).permutation(np.unique(y))[:N_LABELS]
    kept = np.isin(y, some)
    return X[kept], np.unique(y[kept], return_inverse=True)[1]


def right(scorer: LabelScorer, X: np.ndarray, y: np.ndarray, fold: Fold) -> float:
    """Share of the test rows of a fold whose label is found."""
    train, test = fold
    scorer.fit(Samples(X[train], y[train], int(y.max()) + 1))
    found = [scorer.candidates(Rows(X[some]), 1)[0][:, 0] for some in np.array_split(test, 20)]
    return float((np.concatenate(found) == y[test]).mean())


SETS: dict[str, Callable[[np.ndarray], Iterator[Fold]]] = {
    "clinc150_minilm": in_order,
    "clinc150_wordllama": in_order,
    "cve_product_wordllama": at_random,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    folder = os.environ.get("LOCOLE_DATA")
    parser.add_argument("--data", type=Path, default=Path(folder) if folder else Path())
    parser.add_argument("--peers", default=str(bench_dense.PEERS / "bin" / "python"))
    parser.add_argument("--output", type=Path, default=RECORD)
    args = parser.parse_args()
    runs = []
    for name, folds in SETS.items():
        X, y = rows_of(name, args.data, args.peers)
        for system, make in SYSTEMS.items():
            found = [right(make(), X, y, fold) for fold in folds(y)]
            runs.append({"set": name, "system": system, "accuracy": found})
            print(f"{name:24}{system:26}{100 * np.mean(found):6.2f}  "
                  f"{' '.join(f'{100 * x:.2f}' for x in found)}", flush=True)  # fmt: skip
    args.output.write_text(
        json.dumps({"machine": machine.describe(), "runs": runs}, indent=2) + "\n"
    )


if __name__ == "__main__":
    main()
