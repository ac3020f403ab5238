"""What baselines share: rows as methods get them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from locole.baselines import Baseline
from locole.scoring.base import best_of


class Watching(Baseline):
    """Keeps what it is given and answers with the first labels."""

    def _learn(self, samples):
        self.rows_, self.codes_ = samples.X, samples.codes

    def _rank(self, X, k):
        return best_of(np.zeros((X.shape[0], self.classes_.size)), k)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16, bool])
def test_methods_get_sorted_float32_rows_without_doubles_and_zeros(dtype):
    data = np.array([1, 1, 1, 0], dtype=dtype)
    X = sp.csr_array((data, [2, 0, 2, 1], [0, 3, 4]), shape=(2, 3))
    model = Watching().fit(X, ["b", "a"])
    assert model.rows_.dtype == np.float32
    assert model.rows_.has_canonical_format
    assert model.rows_.toarray().tolist() == [[1, 0, 2], [0, 0, 0]]
    assert model.rows_.nnz == 2
    assert model.codes_.tolist() == [1, 0]
    assert X.indices.tolist() == [2, 0, 2, 1]
    assert model.predict(X).tolist() == ["a", "a"]
