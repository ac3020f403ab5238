"""PPD-Sparse: each label against the rest, sparse in weights and in rows."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from locole.baselines.sparse_linear import SparseLinear
from locole.exceptions import ModelFileError
from locole.io import saved_as
from locole.kernels.csr import Csr
from locole.kernels.ppd_sparse import (
    N_BINS,
    LabelWeights,
    LabelWork,
    SquaredHinge,
    solve_label,
)
from locole.parallel import Engine, in_order, make_engine, read_only
from locole.parallel.blocks import slices
from locole.parameters import ENGINE, N_JOBS, NOT_NEGATIVE, PASSES, POSITIVE, SEED, VERBOSE
from locole.samples import Samples
from locole.sparse_rows import compact, row_squares

__all__ = ["PPDSparse"]

# Labels that a thread solves with one set of work arrays.
_BLOCK_LABELS = 32
# Neighbouring labels begin with negatives that are far from each other.
_STRIDE = 7919


@saved_as("baseline.ppd_sparse")
class PPDSparse(SparseLinear):
    r"""One classifier a label, by squared hinge loss with ℓ1 and ℓ2 penalties (PPD-Sparse).

    .. math:: \min_{w_k, b_k} \tfrac12 \|w_k\|^2 + \tfrac12 b_k^2 + \lambda \|w_k\|_1
              + C \sum_i \max(1 - s_{ik} (\langle w_k, x_i\rangle + b_k), 0)^2

    for each label k, with s = 1 for its own rows and −1 for all others. The dual has a variable for each
    row, of which few are needed: those of the label's rows and of rows that look like them. A label
    starts with its rows and as many others, solves for these, searches all rows that have a feature with
    a weight, lets those with the highest scores above −1 + ``tol`` join, at most as many as are active,
    and goes on until none is left.

    After Yen, Huang, Dai, Ravikumar, Dhillon and Xing, "PPDsparse: A Parallel Primal-Dual Sparse Method
    for Extreme Classification", KDD 2017.

    Labels are solved one by one, on as many threads as wanted. A search costs the number of rows that
    have the features of the label's weights, so the time is about that of labels × rows with common
    features. Memory is twice the data, the weights, and for each thread a few arrays as long as rows and
    features. Prefer it to `PDSparse` where threads are many or scores should mean something label by
    label; `PDSparse` is mostly more accurate, because its labels compete.

    Parameters
    ----------
    l1 : float
        Penalty λ ≥ 0; larger ones give sparser weights. The default is made for rows of length 1, to
        which rows should be scaled.
    cost : float
        Weight C > 0 of the loss.
    tol : float
        A label is done when no row's dual gradient exceeds this.
    max_rounds : int
        Searches for each label, at most.
    max_passes : int
        Passes over the active rows between two searches, at most.
    random_state : int
        Seed of the choice of the first negatives.
    n_jobs : int, optional
        Threads; the answer does not depend on it.
    verbose : int
        1 shows progress.
    engine : {"threads", "ray"} or Engine
        Where labels are solved; see `locole.parallel`. The answer does not depend on it. Not saved.

    Attributes
    ----------
    coef_ : CSR array of shape (n_classes, n_features)
        Weights of each label.
    intercept_ : array of shape (n_classes,)
        Intercept of each label.
    gaps_ : array of shape (n_classes,)
        Duality gap of each label's problem: its objective exceeds the smallest possible by no more.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> PPDSparse().fit(X[:1500] / 16, y[:1500]).score(X[1500:] / 16, y[1500:]) > 0.85
    True
    """

    _parameter_constraints: ClassVar = {
        "l1": NOT_NEGATIVE,
        "cost": POSITIVE,
        "tol": NOT_NEGATIVE,
        "max_rounds": PASSES,
        "max_passes": PASSES,
        "random_state": SEED,
        "n_jobs": N_JOBS,
        "verbose": VERBOSE,
        "engine": ENGINE,
    }
    _learnt: ClassVar = {**SparseLinear._learnt, "intercept_": np.ndarray, "gaps_": np.ndarray}
    _unsaved: ClassVar = ("engine",)
    _takes_several: ClassVar = True

    def __init__(
        self,
        l1: float = 0.1,
        *,
        cost: float = 1.0,
        tol: float = 0.1,
        max_rounds: int = 100,
        max_passes: int = 10,
        random_state: int = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
        engine: str | Engine = "threads",
    ) -> None:
        self.l1 = l1
        self.cost = cost
        self.tol = tol
        self.max_rounds = max_rounds
        self.max_passes = max_passes
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.engine = engine

    def _learn(self, samples: Samples) -> None:
        n_rows, n_features = samples.X.shape
        order = np.random.default_rng([self.random_state, n_rows]).permutation(n_rows)
        shared = _Shared.of(samples.take(order), self)
        solved = in_order(
            make_engine(self.engine),
            solve_block,
            slices(self.classes_.size, _BLOCK_LABELS),
            shared=shared,
            n_jobs=self.n_jobs,
            description="PPD-Sparse" if self.verbose else None,
        )
        counts, features, weights, self.intercept_, self.gaps_ = map(
            np.concatenate, zip(*solved, strict=True)
        )
        indptr = np.concatenate([[0], np.cumsum(counts)])
        columns = sp.csc_array((weights, features, indptr), shape=(n_features, counts.size))
        self._keep(sp.csr_array(columns), self.intercept_, self.gaps_)

    def _start(self) -> NDArray[np.float32]:
        return self.intercept_

    def _check_learnt(self) -> None:
        super()._check_learnt()
        for array, dtype in ((self.intercept_, np.float32), (self.gaps_, np.float64)):
            right = array.shape == self.classes_.shape and array.dtype == dtype
            if not right or not np.isfinite(array).all():
                raise ModelFileError("its intercepts or gaps do not fit its labels")


class _Shared(NamedTuple):
    """What all labels are learnt from, and how."""

    X: sp.csr_array
    by_feature: sp.csr_array
    sizes: NDArray[np.float64]
    rows: NDArray[np.int64]
    """Rows sorted by label; those of label k are ``rows[heads[k] : heads[k+1]]``."""
    heads: NDArray[np.int64]
    loss: SquaredHinge

    @classmethod
    def of(cls, samples: Samples, model: PPDSparse) -> _Shared:
        X, T = compact(samples.X), compact(sp.csr_array(samples.X.T))
        sizes, codes = row_squares(X), samples.codes
        rows = samples.owners[np.argsort(codes, kind="stable")]
        counts = np.bincount(codes, minlength=samples.n_classes)
        heads = np.concatenate([[0], np.cumsum(counts)])
        for matrix in (X, T):
            matrix.data, matrix.indices, matrix.indptr = map(
                read_only, (matrix.data, matrix.indices, matrix.indptr)
            )
        rounds = int(model.max_rounds), int(model.max_passes)
        loss = SquaredHinge(np.float32(model.l1), float(model.cost), float(model.tol), *rounds)
        return cls(X, T, read_only(sizes), read_only(rows), heads, loss)


class _Solved(NamedTuple):
    """Weights of some labels, one behind the other, and how they were found."""

    counts: NDArray[np.int64]
    features: NDArray[np.int32]
    weights: NDArray[np.float32]
    intercept: NDArray[np.float32]
    gaps: NDArray[np.float64]


def solve_block(shared: _Shared, labels: slice) -> _Solved:
    """Solve some labels; a function of its arguments only, so that any thread may do it."""
    inputs = Csr.of(shared.X), Csr.of(shared.by_feature)
    n_rows, n_features = shared.X.shape
    work = LabelWork(
        v=np.zeros(n_features, dtype=np.float32),
        alpha=np.zeros(n_rows),
        roles=np.zeros(n_rows, dtype=np.int8),
        scores=np.zeros(n_rows, dtype=np.float32),
        touched=np.empty(n_rows, dtype=np.int64),
        active=np.empty(n_rows, dtype=np.int64),
        seen=np.empty(n_features, dtype=np.int64),
        known=np.zeros(n_features, dtype=np.bool_),
        bins=np.empty(N_BINS, dtype=np.int64),
    )
    features = np.empty(n_features, dtype=np.int32)
    weights = np.empty(n_features, dtype=np.float32)
    out = LabelWeights(features, weights, bias=np.zeros(1), report=np.zeros(3))
    found = []
    for k in range(labels.start, labels.stop):
        positives = shared.rows[shared.heads[k] : shared.heads[k + 1]]
        count = solve_label(
            *inputs, shared.sizes, shared.loss, positives, k * _STRIDE % n_rows, work, out
        )
        found.append(
            (count, features[:count].copy(), weights[:count].copy(), out.bias[0], out.report[0])
        )
    counts, some_features, some_weights, intercept, gaps = zip(*found, strict=True)
    return _Solved(
        np.array(counts),
        np.concatenate(some_features),
        np.concatenate(some_weights),
        np.array(intercept, dtype=np.float32),
        np.array(gaps),
    )
