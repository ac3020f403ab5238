"""Where the softmax may start: at the weights of the squared loss, times a number."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from locole.exceptions import LocoleError
from locole.kernels.simd import padded_width
from locole.parallel.blocks import workers
from locole.regressors.descent import points
from locole.regressors.elastic_net import ElasticNetRegressor
from locole.regressors.linear import LinearRegressor
from locole.regressors.problem import Problem
from locole.regressors.settings import Settings
from locole.samples import split_rows

__all__ = ["best_scale", "elastic_net", "scaled_weights"]

# Rows that choose the scale, halvings of the interval, and the interval of its logarithm to base 2.
_ROWS, _HALVINGS, _RANGE = 1_000, 12, (-10.0, 14.0)


def elastic_net(rows: Problem, settings: Settings) -> LinearRegressor:
    """Solve for squared loss on the same rows; a constant is already among their features."""
    solver = ElasticNetRegressor(
        fit_intercept=False,
        random_state=settings.random_state,
        n_jobs=settings.n_jobs,
        verbose=settings.verbose,
    )
    return solver.fit(rows.X, rows.targets, sample_weight=rows.weight)


def scaled_weights(
    regressor: LinearRegressor, rows: Problem, softmax: Any, *, seed: int
) -> NDArray[np.float32]:
    """Weights of a fitted regressor, times the number for which some rows have the smallest loss."""
    n_outputs, n_features = rows.targets.shape[1], rows.X.shape[1]
    n_own = regressor.n_features_in_
    if regressor.n_outputs_ != n_outputs or n_features - n_own not in (0, 1):
        raise LocoleError(
            f"the start has {n_own} features and {regressor.n_outputs_} outputs, the rows have "
            f"{n_features} and {n_outputs}: fit it on the same rows and targets."
        )
    W = np.zeros((n_features, padded_width(n_outputs)), dtype=np.float32)
    own = regressor.coef_.T
    W[:n_own, :n_outputs] = own.toarray() if sp.issparse(own) else own
    if n_features > n_own:
        W[-1, :n_outputs] = regressor.intercept_
    n = rows.n_rows
    # The last number: not the rows that are watched.
    _, some = split_rows(n, _ROWS, seed=[seed, n, 3])
    with workers(None):
        Z = points(rows.X, some, W, n_outputs)
        scale = best_scale(softmax, Z, rows.codes[some])
    W *= np.float32(scale)
    return W


def best_scale(softmax: Any, Z: NDArray[np.float32], codes: NDArray[np.int64]) -> float:
    """The positive number that makes the mean loss of ``scale · Z`` smallest.

    The loss is convex in the scale, so the sign of its slope says on which side the best one is.
    """
    low, high = _RANGE
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        _, gradient = softmax(np.float32(2**middle) * Z, codes)
        if np.einsum("ij,ij->", Z, gradient) < 0:
            low = middle
        else:
            high = middle
    return float(2 ** ((low + high) / 2))
