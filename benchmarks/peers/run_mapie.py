"""Label sets by MAPIE, from probabilities that are given: coverage and size over splits, as JSON.

Run by the interpreter of the peers' environment: ``run_mapie.py given.npz``. The file has ``proba``
(rows × labels), ``y``, ``orders`` (a permutation of the rows for each split), ``n_calibration`` and
``coverages``.
"""

from __future__ import annotations

import json
import sys

import numpy as np
from mapie.classification import SplitConformalClassifier
from sklearn.base import BaseEstimator, ClassifierMixin


class Given(ClassifierMixin, BaseEstimator):
    """A classifier whose rows are the probabilities themselves."""

    def fit(self, X, y):
        """Labels are the columns."""
        self.classes_ = np.arange(X.shape[1])
        self.n_features_in_ = X.shape[1]
        return self

    def predict_proba(self, X):
        """The rows."""
        return X

    def predict(self, X):
        """The likeliest label."""
        return X.argmax(axis=1)


def measure(given, method: str) -> dict[str, float]:
    """Mean coverage and size over the splits, for each coverage that is asked for."""
    proba, y, n = given["proba"], given["y"], int(given["n_calibration"])
    model = Given().fit(proba, y)
    found = []
    for order in given["orders"]:
        rows, rest = order[:n], order[n:]
        sets = SplitConformalClassifier(
            model, confidence_level=list(given["coverages"]), conformity_score=method, prefit=True
        ).conformalize(proba[rows], y[rows])
        inside = sets.predict_set(proba[rest])[1]
        covered = inside[np.arange(rest.size), y[rest]].mean(axis=0)
        found.append([covered, inside.sum(axis=1).mean(axis=0)])
    coverage, size = np.mean(found, axis=0)
    record = {}
    for i, asked in enumerate(given["coverages"]):
        record[f"{method}_{asked:g}_coverage"] = float(coverage[i])
        record[f"{method}_{asked:g}_size"] = float(size[i])
    return record


if __name__ == "__main__":
    with np.load(sys.argv[1]) as file:
        arrays = dict(file)
    print(json.dumps({**measure(arrays, "lac"), **measure(arrays, "aps")}))
