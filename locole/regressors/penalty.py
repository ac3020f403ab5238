"""Choosing λ2: the error of validation rows for a few outputs after a few passes."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from locole.kernels.dual import BLOCK
from locole.parallel.blocks import map_blocks
from locole.regressors.base import TargetsLike
from locole.regressors.direct import suits_directly
from locole.regressors.dual import DualSettings, solve_dual
from locole.regressors.problem import Problem
from locole.samples import split_rows

__all__ = ["Choice", "choose_l2", "l2_of_stream"]

_VALIDATION = 4_000
# A fifth of the rows, but at least and at most so many: the best λ2 hardly depends on it, except where
# labels have so few rows that a part of them says little.
_TRAINED_ON = (30_000, 100_000)
_PASSES = 3
# First guess, step and reach of the search, in units of the mean squared length of a row.
_GUESS, _STEP, _REACH = 0.1, 5.0, 4
# Problems solved directly are small and may have a handful of rows: all of them are learnt from.
_DIRECT = 0.02
# Of a stream: what is right for its first rows lets them learn so much by heart that later rows cannot
# make up for it.
_STREAM = 0.2


class Choice(NamedTuple):
    """A penalty and why it was taken."""

    l2: float
    reason: str


class _FirstOutputs:
    """Targets cut down to their first outputs."""

    def __init__(self, targets: TargetsLike, n_outputs: int) -> None:
        self._targets = targets
        self.codes = targets.codes
        self.shape = (targets.shape[0], n_outputs)

    def rows(self, index: slice | NDArray) -> NDArray:
        return self._targets.rows(index)[:, : self.shape[1]]

    def table(self, start: int, stop: int) -> NDArray:
        return self._targets.table(start, stop)

    def take(self, index: NDArray) -> _FirstOutputs:
        return _FirstOutputs(self._targets.take(index), self.shape[1])


def choose_l2(problem: Problem, settings: DualSettings) -> Choice:
    """λ2 with the smallest squared error on validation rows.

    One block of outputs is solved, a few passes each, for λ2 in steps of a factor of 5 from
    0.1·mean‖x‖² towards the smaller error until it rises again; the answer is the minimum of the
    parabola (in log λ2) through the best three. Small problems, which are solved directly, take
    0.02·mean‖x‖².
    """
    unit = _mean_square(problem)
    if suits_directly(problem, settings.l1):
        return Choice(_DIRECT * unit, f"{_DIRECT} · mean ‖x‖² (small problem)")
    split = _Split(problem, settings)

    def error_at(place: int) -> float:
        return split.error(_GUESS * _STEP**place * unit)

    first = map_blocks(lambda part: error_at(part.start), 2, block=1, n_jobs=settings.n_jobs)
    errors = dict(enumerate(first))
    step = 1 if errors[1] < errors[0] else -1
    best = 1 if step == 1 else 0
    while abs(best + step) <= _REACH:
        following = best + step
        errors[following] = error_at(following)
        if errors[following] >= errors[best]:
            break
        best = following
    place = best + _vertex(errors, best)
    l2 = _GUESS * _STEP**place * unit
    tried = ", ".join(f"{_GUESS * _STEP**k * unit:.3g}: {errors[k]:.4f}" for k in sorted(errors))
    return Choice(
        l2, f"{l2:.3g} by squared error on {split.n_validation:,} validation rows ({tried})"
    )


def l2_of_stream(problem: Problem, settings: DualSettings) -> Choice:
    """λ2 for rows of which these are the first: 0.2·mean‖x‖², however few they are."""
    return Choice(
        _STREAM * _mean_square(problem), f"{_STREAM} · mean ‖x‖² (first rows of a stream)"
    )


def _vertex(errors: dict[int, float], best: int) -> float:
    """Where the parabola through the best point and its neighbours is lowest, in steps."""
    if best - 1 not in errors or best + 1 not in errors:
        return 0.0
    left, middle, right = (errors[best + k] for k in (-1, 0, 1))
    bend = left - 2 * middle + right
    return 0.5 * (left - right) / bend if bend > 0 else 0.0


def _mean_square(problem: Problem) -> float:
    """Weighted mean of ‖x‖²; 1 where all rows are empty."""
    squares = np.asarray(problem.X.multiply(problem.X).sum(axis=1), dtype=np.float64).ravel()
    mean = float(np.average(squares, weights=problem.weight))
    return mean if mean > 0 and math.isfinite(mean) else 1.0


class _Split:
    """Some rows to learn from and validation rows, drawn once, with their first outputs."""

    def __init__(self, problem: Problem, settings: DualSettings) -> None:
        n, n_outputs = problem.n_rows, min(BLOCK, problem.targets.shape[1])
        self.n_validation = min(_VALIDATION, n // 10)
        train, validation = split_rows(n, self.n_validation, seed=[settings.seed, n])
        few = problem._replace(targets=_FirstOutputs(problem.targets, n_outputs))
        self._train = few.take(train[: int(np.clip(n // 5, *_TRAINED_ON))])
        self._validation = few.take(validation)
        self._Y = few.targets.table(0, n_outputs)[self._validation.codes]
        self._settings = settings._replace(
            max_passes=_PASSES, tol=0.0, n_jobs=1, verbose=0, shrinking=False
        )

    def error(self, l2: float) -> float:
        """Weighted mean squared error of the validation rows, relative to that of answering zero."""
        weights, _ = solve_dual(self._train, self._settings._replace(l2=l2))
        Z = self._validation.X @ weights
        Z = (Z.toarray() if hasattr(Z, "toarray") else Z)[:, : self._Y.shape[1]]
        squares = np.square(Z - self._Y).sum(axis=1)
        norms = np.square(self._Y).sum(axis=1)
        weight = self._validation.weight
        return float(weight @ squares / max(float(weight @ norms), 1e-30))
