"""One linear classifier for each label, as LibMultiLabel has it."""

from __future__ import annotations

from typing import Any

import numpy as np
from measure import Data, K, System, main

_ROWS = 256


class LibMultiLabel(System):
    """One-vs-rest by LIBLINEAR, squared hinge loss in the dual; its weights are a dense matrix."""

    packages = ("libmultilabel",)
    notes = "options -s 1 -e 0.1 of its examples; weights are a dense matrix"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        from libmultilabel import linear

        self.linear = linear

    def train(self, data: Data) -> None:
        """Defaults of its command line."""
        Y = data.train.Y.astype(np.float64)
        X = data.train.X.astype(np.float64)
        self.model = self.linear.train_1vsrest(Y, X, False, "-s 1 -e 0.1 -q")

    def predict(self, data: Data) -> Any:
        """Best labels of some rows at a time: scores of all labels are dense."""
        found = []
        for start in range(0, data.test.X.shape[0], _ROWS):
            rows = data.test.X[start : start + _ROWS].astype(np.float64)
            scores = np.asarray(self.linear.predict_values(self.model, rows))
            found.append(np.argsort(-scores, axis=1, kind="stable")[:, :K])
        return np.concatenate(found)

    def model_bytes(self) -> int:
        """Bytes of the weights that are not zero, as numbers and their places."""
        return int(np.count_nonzero(self.model.weights)) * 12


if __name__ == "__main__":
    main(LibMultiLabel)
