"""The first layer: sparse rows times weights, trained by Adamax on the rows that a batch touches."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from locole.blocks import slices
from locole.kernels.simd import WIDTH
from locole.kernels.sparse_layer import add_product, settle_rows, update_rows
from locole.regressors.mlp.batches import Batch
from locole.regressors.mlp.momentum import BETAS, EPS, IdleMomentum

__all__ = ["SparseLayer"]

# Features that one task takes, and columns, at most and at least: long pieces of rows are read faster,
# but there should be some for every thread. Neither depends on the number of threads.
_FEATURES, _COLUMNS, _FEW_COLUMNS = 256, 1024, 256
_ROWS_TO_SETTLE = 1 << 14

_BETAS = np.array(BETAS, dtype=np.float32)
_EPS = np.float32(EPS)


class SparseLayer:
    """Weights of shape (n_features, width) under Adamax, equal to dense Adamax.

    Parameters
    ----------
    W : array of shape (n_features, width)
        Weights, float32 or half precision as uint16, which are changed in place; width is a multiple
        of 16.
    n_steps : int
        Steps that there will be.
    row_moment : bool
        One second moment for each row, not for each weight.

    Attributes
    ----------
    M, U : arrays
        The moments.
    last : int array of shape (n_features,)
        Step in which a row was last touched, 0 for never.
    """

    def __init__(self, W: NDArray, *, n_steps: int, row_moment: bool = False) -> None:
        self.W = W
        self.M = np.zeros(W.shape, dtype=np.float32)
        self.U = np.zeros(W.shape[:1] if row_moment else W.shape, dtype=np.float32)
        self.last = np.zeros(W.shape[0], dtype=np.int64)
        self.idle = IdleMomentum(n_steps)
        self._asked: tuple[Batch, NDArray[np.float32]] | None = None

    def product(self, batch: Batch, apply: Any) -> NDArray[np.float32]:
        """Rows of the batch times the weights as dense Adamax would have them now."""
        width = self.W.shape[1]
        out = np.zeros((batch.n_rows, width), dtype=np.float32)
        idle = self._missed(batch)

        def fill(part: slice) -> None:
            add_product(
                *batch.entries, *self._flat(), idle, width, part.start, part.stop, out.reshape(-1)
            )

        list(apply(fill, slices(width, _columns(width))))
        return out

    def update(self, batch: Batch, G: Any, rate: float, apply: Any) -> float:
        """Take a step with the gradient ``batchᵀ G``; returns its rate over 1 − β1^step."""
        width = self.W.shape[1]
        idle = self._missed(batch)
        pace = self.idle.advance(rate)
        slope = np.ascontiguousarray(G, dtype=np.float32).reshape(-1)

        def move(part: slice) -> None:
            update_rows(
                *batch.entries, slope, *self._flat(), idle, _BETAS, _EPS, np.float32(pace), width,
                part.start, part.stop,
            )  # fmt: skip

        list(apply(move, slices(batch.features.size, _FEATURES)))
        self.last[batch.features] = self.idle.done
        self._asked = None
        return pace

    def settle(self, apply: Any) -> None:
        """Give all rows what they have missed."""
        rows = np.flatnonzero((self.last > 0) & (self.last < self.idle.done))

        def give(part: slice) -> None:
            mine = rows[part]
            settle_rows(mine, *self._flat(), self.idle.since(self.last[mine]), self.W.shape[1])

        list(apply(give, slices(rows.size, _ROWS_TO_SETTLE)))
        self.last[rows] = self.idle.done

    def state(self) -> dict[str, NDArray]:
        """All that the next steps depend on."""
        sums = self.idle.sums[: self.idle.done + 1]
        return {"W": self.W, "M": self.M, "U": self.U, "last": self.last, "sums": sums}

    def restore(self, state: dict[str, NDArray]) -> None:
        """Go back to a state, whose arrays are copied."""
        self._asked = None
        self.idle.restore(state["sums"])
        for name in ("W", "M", "U", "last"):
            getattr(self, name)[:] = state[name]

    def _missed(self, batch: Batch) -> NDArray[np.float32]:
        # The step that follows a product asks the same again.
        if self._asked is None or self._asked[0] is not batch:
            self._asked = batch, self.idle.since(self.last[batch.features])
        return self._asked[1]

    def _flat(self) -> tuple[NDArray, NDArray, NDArray]:
        return self.W.reshape(-1), self.M.reshape(-1), self.U.reshape(-1)


def _columns(width: int) -> int:
    """Columns of one task: a quarter of them, within limits."""
    quarter = -(-width // (4 * WIDTH)) * WIDTH
    return min(max(quarter, _FEW_COLUMNS), _COLUMNS)
