"""LibMultiLabel: one linear classifier for each label, or a tree of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from measure import Data, K, System, main

_ROWS = 256


class LibMultiLabel(System):
    """One-vs-rest or tree by LIBLINEAR, squared hinge loss in the dual."""

    packages = ("libmultilabel", "liblinear-multicore")
    notes = "options -s 1 -e 0.1 of its examples; weights of one-vs-rest are a dense matrix"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        from libmultilabel import linear

        self.linear = linear

    def train(self, data: Data) -> None:
        """Defaults of its command line."""
        Y = data.train.Y.astype(np.float64)
        X = data.train.X.astype(np.float64)
        options = f"-s 1 -e 0.1 -c {self.options.get('C', 1)} -q"
        if self.setting == "tree":
            self.model = self.linear.train_tree(Y, X, options, verbose=False)
        else:
            self._check_room(X.shape[1] * Y.shape[1] * 8)
            self.model = self.linear.train_1vsrest(Y, X, False, options, verbose=False)

    def _check_room(self, n_bytes: int) -> None:
        """End here if the dense weights do not fit: the system would kill other processes, too."""
        import psutil

        if n_bytes > psutil.virtual_memory().total:
            raise MemoryError(f"its dense weights would take {n_bytes / 1e9:.0f} GB")

    def predict(self, data: Data) -> Any:
        """Best labels of some rows at a time: scores of all labels are dense."""
        found = []
        for start in range(0, data.test.X.shape[0], _ROWS):
            rows = data.test.X[start : start + _ROWS].astype(np.float64)
            scores = np.asarray(self._scores(rows))
            found.append(np.argsort(-scores, axis=1, kind="stable")[:, :K])
        return np.concatenate(found)

    def _scores(self, rows: Any) -> Any:
        """Of all labels; a tree's by its default beam of ten."""
        if self.setting == "tree":
            return self.model.predict_values(rows)
        return self.linear.predict_values(self.model, rows)

    def model_bytes(self) -> int:
        """Bytes of the weights that are not zero, as numbers and their places."""
        flat = self.model.flat_model if self.setting == "tree" else self.model
        weights = flat.weights
        n = weights.nnz if sp.issparse(weights) else np.count_nonzero(weights)
        return int(n) * 12


if __name__ == "__main__":
    main(LibMultiLabel)
