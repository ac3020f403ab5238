"""What a regressor learns from: rows of positive weight and their targets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from locole.exceptions import LocoleError
from locole.regressors.base import TargetsLike
from locole.samples import checked_weight, split_rows
from locole.sparse_rows import with_constant

__all__ = ["Problem", "make_problem"]


class Problem(NamedTuple):
    """Rows of positive weight, the target of each, and how much it counts."""

    X: sp.csr_array
    targets: Any
    """`TargetsLike` of these rows, or `LabelTargets` where labels are needed."""
    weight: Any = None
    """Array, or None where all rows count 1."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def codes(self) -> NDArray[np.int64]:
        """Code of each row: its target is ``targets.table(…)[code]``."""
        codes: NDArray[np.int64] = self.targets.codes
        return codes

    def take(self, rows: NDArray[np.int64]) -> Problem:
        """Some of the rows."""
        weight = None if self.weight is None else self.weight[rows]
        return Problem(sp.csr_array(self.X[rows]), self.targets.take(rows), weight)

    def split(self, n_validation: int, *, seed: Sequence[int]) -> tuple[Problem, Problem]:
        """Rows to learn from and validation rows, both in their order."""
        train, validation = split_rows(self.n_rows, n_validation, seed=seed)
        return self.take(np.sort(train)), self.take(np.sort(validation))

    def require_outputs(self, n_outputs: int) -> None:
        """Raise LocoleError if the targets are not of a model with so many outputs."""
        if self.targets.shape[1] != n_outputs:
            raise LocoleError(
                f"targets have {self.targets.shape[1]} outputs, the model {n_outputs}."
            )

    def weighted(self) -> Problem:
        """With a weight for every row."""
        weight = np.ones(self.n_rows) if self.weight is None else self.weight.astype(np.float64)
        return self._replace(weight=weight)

    def relative(self) -> Problem:
        """With weights of mean 1, if there are any: steps must not depend on their unit."""
        if self.weight is None:
            return self
        return self._replace(weight=(self.weight / self.weight.mean()).astype(np.float32))


def make_problem(
    X: Any, targets: TargetsLike, sample_weight: Any, *, constant: bool = False
) -> Problem:
    """Drop samples of weight zero and, if asked, add a constant feature."""
    X = sp.csr_array(X)
    if X.shape[0] != targets.shape[0]:
        raise LocoleError(f"X has {X.shape[0]} rows but there are {targets.shape[0]} targets.")
    if constant:
        X = with_constant(X)
    if sample_weight is None:
        return Problem(X, targets)
    weight = checked_weight(sample_weight, X)
    kept = np.flatnonzero(weight > 0)
    problem = Problem(X, targets, weight)
    return problem if kept.size == X.shape[0] else problem.take(kept)
