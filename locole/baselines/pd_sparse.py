"""PD-Sparse: the multiclass hinge loss, sparse in weights and in dual variables."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise
from numbers import Real
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval

from locole.baselines.ascent import Ascent
from locole.baselines.sparse_linear import SparseLinear
from locole.io import saved_as
from locole.parallel.progress import track
from locole.parameters import (
    COUNT,
    FRACTION,
    N_JOBS,
    NOT_NEGATIVE,
    PASSES,
    POSITIVE,
    SEED,
    VERBOSE,
    at_least,
)
from locole.samples import Samples, spare_rows

__all__ = ["PDSparse"]

# Rows of the first search, for which labels are drawn because there are no weights yet.
_FIRST = 256
# A search takes weights that are renewed so often in a pass.
_RENEWALS, _FIRST_RENEWALS = 4, 16
# Fewer validation rows would say nothing, and more would say no more.
_FEWEST_VALIDATION, _MOST_VALIDATION = 100, 5000
# Passes over all rows, validation rows included, at the end.
_LAST_PASSES = 2
# Weights that are smaller, relative to the largest, are sums of rounding errors.
_ROUNDING = 1e-6


@saved_as("baseline.pd_sparse")
class PDSparse(SparseLinear):
    r"""Multiclass hinge loss with ℓ1 and ℓ2 penalties (PD-Sparse).

    .. math:: \min_W \tfrac12 \|W\|^2 + \lambda \|W\|_1
              + C \sum_i \max\Big(0,\, 1 + \max_{k \ne y_i} \langle w_k, x_i\rangle
              - \langle w_{y_i}, x_i\rangle\Big)

    The dual has a variable for each row and each rival of its label, of which few are positive at the
    optimum: only labels that come near. The solver is a fully corrective block-coordinate Frank–Wolfe
    method with a block for each row: search the labels that violate the row's margin most, add them to
    the row's active ones, and maximise the dual over all of these. The weights are V = Σ_i x_i α_iᵀ
    after a soft threshold by λ, so that for each feature a search sees few labels.

    After Yen, Huang, Zhong, Ravikumar and Dhillon, "PD-Sparse: A Primal and Dual Sparse Approach to
    Extreme Multiclass and Multilabel Classification", ICML 2016. Here a search takes the weights as they
    were up to a quarter of a pass ago and finds several labels at once; updates take them as they are.

    A pass costs Σ_i Σ_{f ∈ x_i} nnz(W_f) for searching and Σ_i nnz(x_i)·(active labels of i) for the
    rest. Memory is of the order of the latter: pairs of a feature and a label that are ever active
    together. Prefer it where accuracy counts more than the time of training and the model must be small
    and exact: the problem is convex, and the gap to its optimum is known.

    Parameters
    ----------
    l1 : float
        Penalty λ ≥ 0; larger ones give sparser weights. The default is the authors' and made for rows
        of length 1, to which rows should be scaled.
    cost : float
        Weight C > 0 of the loss.
    max_passes : int
        Passes over the rows, at most.
    tol : float
        Stop when the duality gap, as estimated on the way, is at most this part of the objective at
        zero weights.
    n_candidates : int
        Labels found for a row by one search.
    search_fraction : float
        Part of a row's features that a search looks at, drawn by their size; 1 looks at all.
    validation_fraction : float
        Part of the rows set aside to see when accuracy no longer rises; at most 5,000 rows, none of a
        label that has no other, and none if that would be fewer than 100. They join for two last passes.
    patience : int
        Passes without better accuracy on these rows before stopping.
    refit_passes : int
        Passes at the end without the ℓ1 penalty, over the weights that are not zero by then: what the
        penalty has taken from these is given back. 0 keeps the solution of the problem above.
    random_state : int
        Seed of the order of rows, of the validation rows and of the draws of searches.
    n_jobs : int, optional
        Threads for searches and predictions; the answer does not depend on it.
    verbose : int
        1 shows progress.

    Attributes
    ----------
    coef_ : CSR array of shape (n_classes, n_features)
        Weights of each label.
    history_ : list of dict
        For each pass the relative duality ``gap``, the dual ``objective`` in the same unit, the mean
        number of ``active`` rivals of a row, ``accuracy`` on validation rows, if there are any, and
        ``cpu_s`` since the start.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = PDSparse().fit(X[:1500] / 16, y[:1500])
    >>> model.score(X[1500:] / 16, y[1500:]) > 0.85
    True
    """

    _parameter_constraints: ClassVar = {
        "l1": NOT_NEGATIVE,
        "cost": POSITIVE,
        "max_passes": PASSES,
        "tol": NOT_NEGATIVE,
        "n_candidates": COUNT,
        "search_fraction": [Interval(Real, 0, 1, closed="right")],
        "validation_fraction": FRACTION,
        "patience": COUNT,
        "refit_passes": at_least(0, 10_000),
        "random_state": SEED,
        "n_jobs": N_JOBS,
        "verbose": VERBOSE,
    }
    _learnt: ClassVar = {**SparseLinear._learnt, "history_": list}

    def __init__(
        self,
        l1: float = 0.1,
        *,
        cost: float = 1.0,
        max_passes: int = 30,
        tol: float = 1e-2,
        n_candidates: int = 5,
        search_fraction: float = 1.0,
        validation_fraction: float = 0.1,
        patience: int = 3,
        refit_passes: int = 2,
        random_state: int = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.l1 = l1
        self.cost = cost
        self.max_passes = max_passes
        self.tol = tol
        self.n_candidates = n_candidates
        self.search_fraction = search_fraction
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.refit_passes = refit_passes
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _learn(self, samples: Samples) -> None:
        X, codes = samples.X, samples.codes
        solver = Ascent(
            X, codes, self.classes_.size, l1=self.l1, cost=self.cost, seed=self.random_state,
            n_candidates=self.n_candidates, search_fraction=self.search_fraction, n_jobs=self.n_jobs,
        )  # fmt: skip
        rng = np.random.default_rng([self.random_state, codes.size])
        validation = hold_out(codes, self.validation_fraction, rng)
        start = time.process_time()
        self.history_ = []
        passes = self._passes(solver, validation, rng)
        for record in track(passes, "PD-Sparse", unit="passes") if self.verbose else passes:
            self.history_.append({**record, "cpu_s": time.process_time() - start})
        lists, labels, weights = solver.weights().by_feature
        weights[np.abs(weights) <= _ROUNDING * np.abs(weights).max(initial=0)] = 0
        W = sp.csr_array((weights, labels, lists), shape=(X.shape[1], self.classes_.size))
        W.eliminate_zeros()
        self._keep(W)

    def _passes(
        self, solver: Ascent, validation: NDArray[np.int64], rng: np.random.Generator
    ) -> Iterator[dict[str, float]]:
        """Learn, first without the validation rows; yield a record of each pass."""
        useful = solver.sizes > 0  # an empty row has no say in any weight
        others = useful.copy()
        others[validation] = False
        yield from self._until_good(solver, np.flatnonzero(others), validation, rng)
        rows = np.flatnonzero(useful)
        for _ in range(_LAST_PASSES if validation.size else 0):
            yield one_pass(solver, rng.permutation(rows), rng)
        if self.refit_passes:
            solver.release()
        for _ in range(self.refit_passes):
            yield one_pass(solver, rng.permutation(rows), rng)

    def _until_good(
        self,
        solver: Ascent,
        rows: NDArray[np.int64],
        validation: NDArray[np.int64],
        rng: np.random.Generator,
    ) -> Iterator[dict[str, float]]:
        """Run passes until the gap is small or accuracy on validation rows no longer rises."""
        watched, best, best_at = solver.X[validation], -1.0, 0
        for number in range(self.max_passes):
            record = one_pass(solver, rng.permutation(rows), rng, is_first=number == 0)
            if validation.size:
                guess = solver.weights().best(watched, 1)[:, 0]
                record["accuracy"] = float((guess == solver.codes[validation]).mean())
                if record["accuracy"] > best:
                    best, best_at = record["accuracy"], number
            yield record
            is_over = validation.size > 0 and number - best_at >= self.patience
            if is_over or record["gap"] <= self.tol:
                return


def one_pass(
    solver: Ascent, order: NDArray[np.int64], rng: np.random.Generator, *, is_first: bool = False
) -> dict[str, float]:
    """Search and climb for every row, then climb once more for those with active rivals."""
    before = solver.sums[0]
    solver.make_room()
    for part in _parts(order.size, is_first=is_first):
        rows = order[part]
        if is_first and part.start == 0:
            found = rng.integers(solver.n_classes, size=(rows.size, solver.n_candidates))
        else:
            found = solver.search(rows, solver.weights())
        solver.climb(rows, found)
    gap = solver.sums[0] - before
    active = order[solver.counts[order] > 0]
    solver.climb(active, np.empty((active.size, 0), dtype=np.int64))
    objective = solver.sums[1] - solver.weights().squares / 2
    unit = max(order.size, 1) * solver.cost
    return {
        "gap": float(gap / unit),
        "objective": float(objective / unit),
        "active": float(solver.counts.sum() / max(order.size, 1)),
    }


def _parts(n_rows: int, *, is_first: bool) -> list[slice]:
    """Parts of a pass, with new weights for each; the first pass starts with small ones."""
    size = -(-n_rows // (_FIRST_RENEWALS if is_first else _RENEWALS))
    edges, step = [0], min(_FIRST, size) if is_first else size
    while edges[-1] < n_rows:
        edges.append(min(edges[-1] + step, n_rows))
        step = min(edges[-1], size)
    return [slice(a, b) for a, b in pairwise(edges)]


def hold_out(
    codes: NDArray[np.int64], fraction: float, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Rows to watch accuracy on, sorted; none of a label that would be left without rows."""
    validation = spare_rows(codes, min(int(fraction * codes.size), _MOST_VALIDATION), seed=rng)
    return validation if validation.size >= _FEWEST_VALIDATION else validation[:0]
