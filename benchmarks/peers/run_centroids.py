"""Class centroids: the label whose mean training row has the largest cosine with the row."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from measure import Data, K, System, main

BLOCK_ROWS = 256


class Centroids(System):
    """A few lines of scipy, on one thread."""

    packages = ("scipy",)
    notes = "one thread; model size: arrays"

    def train(self, data: Data) -> None:
        """Sum the rows of each label and scale the sums to unit length."""
        n = data.train.y.size
        member = sp.csr_matrix(
            (np.ones(n, dtype=np.float32), data.train.y, np.arange(n + 1)),
            shape=(n, data.n_classes),
        )
        sums = sp.csr_matrix(member.T @ data.train.X)
        length = np.sqrt(np.asarray(sums.multiply(sums).sum(axis=1)).ravel())
        scale = sp.diags(1 / np.maximum(length, 1e-12), dtype=np.float32)
        self.centroids = sp.csr_matrix((scale @ sums).T)

    def predict(self, data: Data) -> Any:
        """Five best of the cosines (up to the row's own length) with all centroids."""
        found = []
        for start in range(0, data.test.X.shape[0], BLOCK_ROWS):
            scores = -(data.test.X[start : start + BLOCK_ROWS] @ self.centroids).toarray()
            k = min(K, scores.shape[1] - 1)
            best = np.argpartition(scores, k, axis=1)[:, :k]
            order = np.take_along_axis(scores, best, axis=1).argsort(axis=1)
            found.append(np.take_along_axis(best, order, axis=1))
        return np.concatenate(found)

    def model_bytes(self) -> int:
        """Size of the sparse centroids."""
        arrays = (self.centroids.data, self.centroids.indices, self.centroids.indptr)
        return sum(x.nbytes for x in arrays)


if __name__ == "__main__":
    main(Centroids)
