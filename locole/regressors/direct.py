"""Ridge regression by normal equations, for problems with few features or few samples."""

from __future__ import annotations

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray

from locole.regressors.problem import Problem

__all__ = ["solve_directly", "suits_directly"]

# Up to this many features or samples the normal equations are cheaper than any iteration.
_SMALL = 256
# Outputs solved for at a time, so that no table of all labels × all outputs exists.
_OUTPUTS = 64


def suits_directly(problem: Problem, l1: float) -> bool:
    """Whether the closed form exists and is cheap."""
    return l1 == 0 and min(problem.X.shape) <= _SMALL


def solve_directly(problem: Problem, l2: float) -> NDArray[np.float64]:
    """Weights of shape (n_features, n_outputs), in double precision.

    ``(XᵀSX + λ2 I) W = XᵀSY`` or, with fewer samples than features,
    ``W = XᵀS^½ (S^½XXᵀS^½ + λ2 I)^{-1} S^½Y``, where S holds the sample weights.
    """
    root = np.sqrt(problem.weight)
    X = sp.csr_array(problem.X.astype(np.float64).multiply(root[:, None]))
    wide = X.shape[1] > X.shape[0]
    gram = (X @ X.T if wide else X.T @ X).toarray()
    factor = scipy.linalg.cho_factor(gram + l2 * np.eye(gram.shape[0]))
    sums = None if wide else _class_sums(X, root, problem)
    n_outputs = problem.targets.shape[1]
    W = np.empty((X.shape[1], n_outputs))
    for start in range(0, n_outputs, _OUTPUTS):
        outputs = slice(start, min(start + _OUTPUTS, n_outputs))
        table = problem.targets.table(outputs.start, outputs.stop).astype(np.float64)
        if sums is None:
            Y = table[problem.codes] * root[:, None]
            W[:, outputs] = X.T @ scipy.linalg.cho_solve(factor, Y)
        else:
            W[:, outputs] = scipy.linalg.cho_solve(factor, sums @ table[: sums.shape[1]])
    return W


def _class_sums(X: sp.csr_array, root: NDArray, problem: Problem) -> sp.csr_array:
    """Weighted features of each code, added up: targets depend on the code only."""
    n = X.shape[0]
    shape = (n, int(problem.codes.max()) + 1)
    return sp.csr_array(X.T @ sp.csr_array((root, problem.codes, np.arange(n + 1)), shape=shape))
