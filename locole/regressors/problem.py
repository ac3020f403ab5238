"""A linear regression problem, as the solvers want it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from locole.exceptions import LocoleError
from locole.regressors.base import TargetsLike

__all__ = ["ROWS", "Problem", "make_problem"]

#: Rows looked at in one go where the work needs copies of them.
ROWS = 4_096


class Problem(NamedTuple):
    """Samples with positive weight; target i is ``targets.table(…)[codes[i]]``."""

    X: sp.csr_array
    weight: NDArray[np.float64]
    targets: TargetsLike
    codes: NDArray[np.int64]

    def row_squares(self) -> NDArray[np.float64]:
        """‖x_i‖² of each sample."""
        X, squares = self.X, np.zeros(self.X.shape[0])
        for start in range(0, X.shape[0], ROWS):
            places = X.indptr[start : start + ROWS + 1]
            values = np.square(X.data[places[0] : places[-1]].astype(np.float32), dtype=np.float64)
            # reduceat gives an empty row the entry that follows, and none may follow the last.
            sums = np.add.reduceat(np.append(values, 0.0), places[:-1] - places[0])
            squares[start : start + ROWS] = sums * (np.diff(places) > 0)
        return squares

    def target_norm(self, table: NDArray) -> float:
        """Σ weight_i ‖y_i‖² over the outputs of a table: the objective at zero weights."""
        share = np.bincount(self.codes, weights=self.weight, minlength=len(table))
        return float(share @ np.einsum("cj,cj->c", table, table, dtype=np.float64))


def make_problem(
    X: sp.csr_array, targets: TargetsLike, weight: NDArray, *, constant: bool
) -> Problem:
    """Drop samples of weight zero and, if asked, add a constant feature."""
    if X.shape[0] != targets.shape[0]:
        raise LocoleError(f"X has {X.shape[0]} rows but there are {targets.shape[0]} targets.")
    if constant:
        ones = sp.csr_array(np.ones((X.shape[0], 1), dtype=X.dtype))
        X = sp.csr_array(sp.hstack([X, ones], format="csr"))
    kept = np.flatnonzero(weight > 0)
    if kept.size == 0:
        raise LocoleError("all sample weights are zero: give some samples a positive weight.")
    if kept.size < X.shape[0]:
        X = X[kept]
    return Problem(X, weight[kept].astype(np.float64), targets, targets.codes[kept])
