"""Many binary linear classifiers, learnt together from the same rows, one row at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from locole.kernels.arow import BLOCK, arow_pass, perceptron_pass
from locole.kernels.csr import Csr
from locole.kernels.simd import aligned, padded_width
from locole.parallel.blocks import n_threads, slices, workers
from locole.parallel.progress import track

__all__ = ["Learner", "OnlineSettings", "learn_online"]

Learner = Literal["arow", "perceptron"]
Signs = Callable[[int, int], NDArray[np.int8]]

# Rows between two looks at the clock: an interrupt waits no longer.
_CHUNK_ROWS = 8192


class OnlineSettings(NamedTuple):
    """How to learn."""

    learner: Learner
    epochs: int
    r: float
    seed: int
    n_jobs: int | None
    description: str | None


def learn_online(
    X: sp.csr_array,
    codes: NDArray[np.int64],
    signs: Signs,
    n_outputs: int,
    settings: OnlineSettings,
) -> NDArray[np.float32]:
    """Weights of shape (n_features, n_outputs rounded up to whole vectors).

    Threads own blocks of outputs, and all blocks see the rows in the same order, so the answer does not
    depend on the number of threads.

    Parameters
    ----------
    X : CSR array of float32
        Rows without doubles.
    codes : array of shape (rows,)
        Labels.
    signs : function
        ``signs(a, b)`` says for every label and for outputs a … b−1 what to learn: 1 or −1.
    n_outputs : int
        Number of classifiers.
    settings : OnlineSettings
    """
    work = _Work(X, codes, signs, n_outputs, settings)
    steps = work.run()
    if settings.description is not None:
        steps = track(steps, settings.description, total=work.n_steps)
    for _ in steps:
        pass
    return work.W


class _Work:
    """Groups of blocks, one block for each thread; each group makes all its passes in steps."""

    def __init__(
        self,
        X: sp.csr_array,
        codes: NDArray[np.int64],
        signs: Signs,
        n_outputs: int,
        settings: OnlineSettings,
    ) -> None:
        self.settings, self.codes, self.signs = settings, codes, signs
        # Frequent features first: what is used most then shares pages.
        counts = np.bincount(X.indices, minlength=X.shape[1])
        self.rank = np.empty(X.shape[1], dtype=np.int64)
        self.rank[np.argsort(-counts, kind="stable")] = np.arange(X.shape[1])
        self.n_used = int(np.count_nonzero(counts))
        self.X = Csr(X.indptr, self.rank[X.indices], X.data)
        rng = np.random.default_rng([settings.seed, X.shape[0]])
        self.orders = [rng.permutation(X.shape[0]) for _ in range(settings.epochs)]
        blocks = slices(n_outputs, BLOCK)
        self.threads = min(n_threads(settings.n_jobs), len(blocks))
        self.groups = [blocks[i : i + self.threads] for i in range(0, len(blocks), self.threads)]
        self.chunks = slices(X.shape[0], _CHUNK_ROWS)
        self.n_steps = len(self.groups) * settings.epochs * len(self.chunks)
        self.W = np.zeros((X.shape[1], padded_width(n_outputs)), dtype=np.float32)

    def run(self) -> Iterator[None]:
        """Yield after each step."""
        with workers(self.threads) as apply:
            for group in self.groups:
                blocks = [_Block(self, outputs) for outputs in group]
                for epoch, order in enumerate(self.orders):
                    for chunk in self.chunks:
                        seen = epoch * order.size + chunk.start
                        list(apply(partial(_Block.visit, order=order[chunk], seen=seen), blocks))
                        yield
                list(apply(_Block.write, blocks))


class _Block:
    """Up to BLOCK classifiers."""

    def __init__(self, work: _Work, outputs: slice) -> None:
        self.work, self.outputs = work, outputs
        signs = work.signs(outputs.start, outputs.stop)
        # 0 where there is no classifier: it never moves.
        self.signs = np.zeros((signs.shape[0], BLOCK), dtype=np.int8)
        self.signs[:, : signs.shape[1]] = signs
        self.state = aligned(work.n_used * 2 * BLOCK, np.empty(0, dtype=np.float32))
        self.state[:] = 0
        if work.settings.learner == "arow":
            self.state.reshape(-1, 2, BLOCK)[:, 1] = 1
        self.margins = np.empty(BLOCK, dtype=np.float32)
        self.sizes = np.empty(BLOCK, dtype=np.float32)

    def visit(self, order: NDArray[np.int64], seen: int) -> None:
        """Learn from these rows; so many have been visited before."""
        work, settings = self.work, self.work.settings
        rows = (work.X, order, work.codes, self.signs.reshape(-1))
        if settings.learner == "arow":
            arow_pass(*rows, np.float32(settings.r), self.state, self.margins, self.sizes)
        else:
            total = settings.epochs * work.codes.size
            perceptron_pass(*rows, seen, total, self.state, self.margins)

    def write(self) -> None:
        """Put the weights into their place."""
        learnt = self.state.reshape(-1, 2, BLOCK)[:, :, : self.outputs.stop - self.outputs.start]
        averaged = self.work.settings.learner == "perceptron"
        weights = learnt[:, 0] - learnt[:, 1] if averaged else learnt[:, 0]
        used = np.flatnonzero(self.work.rank < self.work.n_used)
        self.work.W[used, self.outputs] = weights[self.work.rank[used]]
