"""OutputCodeClassifier of scikit-learn: random bits for each label, a linear model for each bit."""

from __future__ import annotations

from typing import Any

import numpy as np
from measure import Data, K, System, main

# With the default, 1e-4, it loses about twenty points on cve_product.
ALPHA = 1e-6


class OutputCode(System):
    """As many bits as the setting says, each learnt by SGD with hinge loss."""

    packages = ("scikit-learn",)
    notes = (
        f"SGDClassifier, hinge loss, alpha {ALPHA:g}; bits side by side on threads, which share the "
        "rows; five nearest codes, where its predict gives one; model size: arrays"
    )

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        from sklearn.linear_model import SGDClassifier
        from sklearn.multiclass import OutputCodeClassifier
        from sklearn.neighbors import NearestNeighbors

        self.make = OutputCodeClassifier
        self.neighbours = NearestNeighbors(n_neighbors=K, algorithm="brute")
        self.bit = SGDClassifier(
            loss="hinge", random_state=self.seed, **{"alpha": ALPHA, **self.options}
        )

    def train(self, data: Data) -> None:
        """Fit all bits; the code's size is given for each label, half a bit more against rounding."""
        from joblib import parallel_config

        size = (int(self.setting) + 0.5) / data.n_classes
        self.model = self.make(
            self.bit, code_size=size, random_state=self.seed, n_jobs=self.threads
        )
        # Processes would leave their CPU time and memory out of what is measured.
        with parallel_config(backend="threading"):
            self.model.fit(data.train.X, data.train.y)

    def ready(self, data: Data) -> None:
        """Index the codes by their numbers."""
        self.neighbours.set_params(n_neighbors=min(K, data.n_classes)).fit(self.model.code_book_)

    def predict(self, data: Data) -> Any:
        """Margins of all bits, then the nearest codes."""
        margins = [bit.decision_function(data.test.X) for bit in self.model.estimators_]
        nearest = self.neighbours.kneighbors(np.stack(margins, axis=1), return_distance=False)
        return self.model.classes_[nearest]

    def model_bytes(self) -> int:
        """Size of weights and codes; a bit that is the same for all labels has no weights."""
        bits = [bit for bit in self.model.estimators_ if hasattr(bit, "coef_")]
        weights = sum(bit.coef_.nbytes + bit.intercept_.nbytes for bit in bits)
        return weights + self.model.code_book_.nbytes


if __name__ == "__main__":
    main(OutputCode)
