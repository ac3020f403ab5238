"""Dual ascent for the multiclass hinge loss with sparse weights: what PD-Sparse iterates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from locole.baselines.sparse_linear import best_by_lists
from locole.kernels.csr import Csr
from locole.kernels.pd_sparse import (
    BlockDuals,
    HingeLoss,
    HingeSamples,
    Tables,
    Work,
    ascend,
    count_weights,
    fill_weights,
    keep_weights,
    move_tables,
)
from locole.parallel.blocks import map_blocks
from locole.sparse_rows import compact, row_squares

__all__ = ["Ascent", "Weights", "sampled"]

# Rows that a thread searches at a time.
_BLOCK_ROWS = 256


class Weights(NamedTuple):
    """Weights of all labels."""

    by_feature: Csr
    start: NDArray[np.float32]
    """Zeros, one for each label."""
    squares: float
    """‖W‖²."""

    def best(self, X: sp.csr_array, k: int) -> NDArray[np.int64]:
        """Codes of the best k labels of each row."""
        return best_by_lists(X, self.by_feature, self.start, k)[0]


class Ascent:
    """Dual variables of all rows, and the sums V = Σ_i x_i α_iᵀ that give the weights S_{l1}(V).

    Row i has a variable β_ik > 0 for some rivals k of its label, Σ_k β_ik ≤ cost, and α_i is Σ_k β_ik at
    its label and −β_ik at the rivals.
    """

    def __init__(
        self,
        X: sp.csr_array,
        codes: NDArray[np.int64],
        n_classes: int,
        *,
        l1: float,
        cost: float,
        n_candidates: int,
        search_fraction: float,
        seed: int,
        n_jobs: int | None,
    ) -> None:
        X = compact(X)
        self.X, self.codes, self.n_classes = X, codes, n_classes
        self.l1, self.cost = np.float32(l1), float(cost)
        self.n_candidates = min(n_candidates, n_classes - 1)
        self.search_fraction, self.seed, self.n_jobs = search_fraction, seed, n_jobs
        self.sizes = row_squares(X)
        self.heads = np.zeros(X.shape[0], dtype=np.int64)
        self.counts = np.zeros(X.shape[0], dtype=np.int64)
        self.rivals = np.empty(0, dtype=np.int64)
        self.betas = np.empty(0)
        self.sums = np.zeros(2)
        self._longest = int(np.diff(X.indptr).max(initial=0))
        self._n_searches = 0
        self._weights: Weights | None = None
        self._is_fixed = False
        self._make_tables()

    def _make_tables(self) -> None:
        """Make tables large enough for the features of each label's own rows."""
        lengths = np.bincount(self.codes, np.diff(self.X.indptr), self.n_classes)
        loads = np.minimum(lengths, self.X.shape[1])
        bits = np.ceil(np.log2(np.maximum(1.5 * loads, 4))).astype(np.int64)
        sizes = np.int64(1) << bits
        self.tables = np.stack([np.cumsum(sizes) - sizes, bits, np.zeros_like(bits)])
        self.used = np.array([sizes.sum(), 0])
        self.pool = np.full(4 * sizes.sum(), -1, dtype=np.int32)

    @property
    def numbers(self) -> NDArray[np.float32]:
        """The pool's memory as float32."""
        return self.pool.view(np.float32)

    def weights(self) -> Weights:
        """Return the weights as they are now; they are the same object until the next climb."""
        if self._weights is not None:
            return self._weights
        lists = np.zeros(self.X.shape[1] + 1, dtype=np.int64)
        squares = count_weights(self.pool, self.numbers, self.tables, self.l1, lists[1:])
        np.cumsum(lists, out=lists)
        labels = np.empty(lists[-1], dtype=np.int32)
        weights = np.empty(lists[-1], dtype=np.float32)
        heads = lists[:-1].copy()
        fill_weights(self.pool, self.numbers, self.tables, self.l1, heads, labels, weights)
        start = np.zeros(self.n_classes, dtype=np.float32)
        self._weights = Weights(Csr(lists, labels, weights), start, float(squares))
        return self._weights

    def search(self, rows: NDArray[np.int64], weights: Weights) -> NDArray[np.int64]:
        """Labels with the best scores for each row: those that violate its margin most, or itself."""
        self._n_searches += 1
        key = [self.seed, self._n_searches]

        def best(part: slice) -> NDArray[np.int64]:
            X = self.X[rows[part]]
            if self.search_fraction < 1:
                X = sampled(X, self.search_fraction, np.random.default_rng([*key, part.start]))
            return weights.best(X, self.n_candidates + 1)

        return np.concatenate(map_blocks(best, rows.size, block=_BLOCK_ROWS, n_jobs=self.n_jobs))

    def make_room(self) -> None:
        """Leave room for candidates behind the rivals of every row."""
        room = self.counts + self.n_candidates + 1
        heads = np.cumsum(room) - room
        rows = np.repeat(np.arange(self.counts.size), self.counts)
        within = np.arange(rows.size) - np.repeat(np.cumsum(self.counts) - self.counts, self.counts)
        rivals, betas = np.empty(room.sum(), dtype=np.int64), np.empty(room.sum())
        rivals[heads[rows] + within] = self.rivals[self.heads[rows] + within]
        betas[heads[rows] + within] = self.betas[self.heads[rows] + within]
        self.heads, self.rivals, self.betas = heads, rivals, betas

    def climb(self, rows: NDArray[np.int64], found: NDArray[np.int64]) -> None:
        """Maximise over the variables of each row in turn, with what was found for it.

        ``sums`` grow by the gaps that were met and by the change of Σ β.
        """
        self._weights = None
        most = int(self.counts[rows].max(initial=0)) + found.shape[1] + 1
        places = np.empty((most, self._longest), dtype=np.int64)
        labels, lacking, order = np.empty((3, most), dtype=np.int64)
        slopes, wished, moved = np.empty((3, most))
        work = Work(labels, lacking, order, slopes, wished, moved, places)
        samples = HingeSamples(Csr.of(self.X), self.codes, self.sizes)
        loss = HingeLoss(self.l1, self.cost, self._is_fixed)
        duals = BlockDuals(self.heads, self.counts, self.rivals, self.betas)
        done = 0
        while True:
            tables = Tables(self.pool, self.numbers, self.tables, self.used)
            done += ascend(samples, rows[done:], found[done:], loss, duals, tables, work, self.sums)
            if done == rows.size:
                return
            self._enlarge()

    def release(self) -> None:
        """From now on weights that are zero stay so, and the others have no ℓ1 penalty."""
        pool = np.full(self.pool.size, -1, dtype=np.int32)
        self.used[0] = keep_weights(
            self.pool, self.numbers, self.tables, self.l1, pool, pool.view(np.float32)
        )
        self.pool, self.l1, self._is_fixed, self._weights = pool, np.float32(0), True, None

    def _enlarge(self) -> None:
        """Move to a pool with twice the slots, and enough for the row that had too few."""
        live = int((np.int64(1) << self.tables[1]).sum())
        pool = np.full(2 * (2 * live + int(self.used[1])), -1, dtype=np.int32)
        self.used[0] = move_tables(self.pool, self.tables, pool)
        self.pool = pool


def sampled(X: sp.csr_array, fraction: float, rng: np.random.Generator) -> sp.csr_array:
    """Draw a part of each row's entries, large ones more often; the mean of the draws is the row."""
    lengths = np.diff(X.indptr)
    sums = np.cumsum(np.abs(X.data), dtype=np.float64)
    before = np.concatenate([[0.0], sums])[X.indptr]
    total = np.diff(before)
    draws = np.ceil(fraction * lengths).astype(np.int64)
    rows = np.repeat(np.arange(lengths.size), draws)
    aim = before[rows] + rng.random(rows.size) * total[rows]
    # Rounding may lead to a neighbouring row.
    at = np.clip(np.searchsorted(sums, aim, "right"), X.indptr[rows], X.indptr[rows + 1] - 1)
    values = np.sign(X.data[at]) * (total / np.maximum(draws, 1)).astype(np.float32)[rows]
    indptr = np.concatenate([[0], np.cumsum(draws)])
    return sp.csr_array((values, X.indices[at], indptr), shape=X.shape)
