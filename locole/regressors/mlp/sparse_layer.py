"""The first layer: sparse rows times weights, trained by Adamax on the rows that a batch touches."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from locole.exceptions import ModelFileError
from locole.io.trust import check_indices, check_like, check_permutation
from locole.kernels.product import NO_SCALES, add_dense_product
from locole.kernels.sparse_layer import (
    Adamax,
    Moves,
    Step,
    change_places,
    settle_rows,
    take_missed,
    update_rows,
)
from locole.parallel.blocks import slices
from locole.regressors.mlp.batches import Batch
from locole.regressors.mlp.momentum import BETAS, EPS, FADED, IdleMomentum

__all__ = ["SparseLayer"]

# Features that one task takes, and what its columns are a multiple of.
_FEATURES, _COLUMNS = 256, 128
_ROWS_TO_SETTLE = 1 << 14

_BETAS = np.array(BETAS, dtype=np.float32)
_EPS = np.float32(EPS)


class SparseLayer:
    """Weights of shape (n_features, width) under Adamax, equal to dense Adamax.

    A row is left as it will be when it is next needed, as far as that is known. A momentum that
    will have faded by then is given to the weights at once and forgotten, so first moments take
    only as many places as there are features that are met often.

    Parameters
    ----------
    W : array of shape (n_features, width)
        Weights, float32 or half precision as uint16, which are changed in place; width is a multiple
        of 16.
    rates : array of shape (n_steps,)
        Learning rates of all steps.
    row_moment : bool
        One second moment for each row, not for each weight.

    Attributes
    ----------
    U : array
        The second moments.
    M : array of shape (n_features, width)
        The first moments, each at its place. Memory is taken by those that were ever used.
    places : int array of shape (n_features,)
        Places in M, −1 for a moment of zero.
    stands : int array of shape (n_features,)
        Step after which weights and moments of a row are what they are, which may be one to come; 0
        for a row that was never touched.
    """

    def __init__(self, W: NDArray, *, rates: ArrayLike, row_moment: bool = False) -> None:
        self.W = W
        self.M = np.empty(W.shape, dtype=np.float32)
        self.U = np.zeros(W.shape[:1] if row_moment else W.shape, dtype=np.float32)
        self.stands = np.zeros(W.shape[0], dtype=np.int64)
        self.places = np.full(W.shape[0], -1, dtype=np.int64)
        self.idle = IdleMomentum(rates)
        # The first places are taken first.
        self._free = np.arange(W.shape[0])[::-1].copy()
        self._n_free = self._free.size
        self._asked: tuple[Batch, NDArray[np.float32]] | None = None

    def product(self, batch: Batch, apply: Any) -> NDArray[np.float32]:
        """Rows of the batch times the weights as dense Adamax would have them now."""
        width = self.W.shape[1]
        out = np.zeros((batch.n_rows, width), dtype=np.float32)
        rows = np.arange(batch.n_rows)
        idle, places = self._missed(batch), self.places[batch.features]
        late, moves = np.flatnonzero(idle[:, 0]), Moves(places, places, idle, idle)
        state = self._flat()

        def fill(part: slice) -> None:
            columns = width, part.start, part.stop, out.reshape(-1)
            add_dense_product(batch.by_row, rows, state.W, NO_SCALES, *columns)
            if late.size:
                take_missed(late, batch.entries, state, moves, *columns)

        list(apply(fill, slices(width, _columns(width))))
        return out

    def update(self, batch: Batch, G: Any, apply: Any, *, horizon: int | None = None) -> float:
        """Take a step with the gradient ``batchᵀ G``; returns its rate over 1 − β1^step.

        No row is left as it will be after the step ``horizon``, by default the last one.
        """
        width, features = self.W.shape[1], batch.features
        idle = self._missed(batch)
        pace = self.idle.advance()
        coming, stays = self._foreseen(batch, self.idle.n_steps if horizon is None else horizon)
        before, after = np.empty((2, features.size), dtype=np.int64)
        self._n_free = change_places(
            features, stays, self.places, self._free, self._n_free, before, after
        )
        slope = np.ascontiguousarray(G, dtype=np.float32).reshape(-1)
        moves, step = Moves(before, after, idle, coming), Step(_BETAS, _EPS, np.float32(pace))
        inputs = batch.entries, slope, self._flat(), moves, step, width

        def move(part: slice) -> None:
            update_rows(*inputs, part.start, part.stop)

        list(apply(move, slices(features.size, _FEATURES)))
        self._asked = None
        return pace

    def settle(self, apply: Any) -> None:
        """Give all rows what they have missed."""
        rows = np.flatnonzero((self.places >= 0) & (self.stands < self.idle.done))

        def give(part: slice) -> None:
            mine = rows[part]
            missed = self.idle.between(self.stands[mine], self.idle.done)
            settle_rows(mine, self.places[mine], self._flat(), missed, self.W.shape[1])

        list(apply(give, slices(rows.size, _ROWS_TO_SETTLE)))
        self.stands[rows] = self.idle.done

    def state(self) -> dict[str, Any]:
        """All that the next steps depend on."""
        return {
            "W": self.W,
            "M": self.M[: self.places.max(initial=-1) + 1],
            "U": self.U,
            "stands": self.stands,
            "places": self.places,
            "free": self._free[: self._n_free],
            "done": self.idle.done,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a state, whose arrays are copied after a check: kernels trust them."""
        self._check(state)
        self._asked = None
        self.idle.done = int(state["done"])
        self._n_free = len(state["free"])
        self._free[: self._n_free] = state["free"]
        self.M[: len(state["M"])] = state["M"]
        for name in ("W", "U", "stands", "places"):
            getattr(self, name)[:] = state[name]

    def _check(self, state: dict[str, Any]) -> None:
        own = {**self.state(), **{name: state[name] for name in ("M", "free")}}
        check_like(state, own, "first layer")
        n, places, free = self.W.shape[0], state["places"], state["free"]
        used = places[places >= 0]
        check_like(state["M"], self.M[: used.max(initial=-1) + 1], "momenta")
        if places.min(initial=-1) < -1:
            raise ModelFileError("its momenta are not where they are said to be")
        check_permutation(np.concatenate([used, free]), "places of momenta", size=n)
        past = np.append(state["stands"], state["done"])
        check_indices(past, "steps", below=self.idle.n_steps + 1)

    def _missed(self, batch: Batch) -> NDArray[np.float32]:
        """What the rows of a batch have missed."""
        # The step that follows a product asks the same again.
        if self._asked is None or self._asked[0] is not batch:
            done, stands = self.idle.done, self.stands[batch.features]
            missed = self.idle.between(np.minimum(stands, done), done)
            missed[self.places[batch.features] < 0, :2] = 0
            self._asked = batch, missed
        return self._asked[1]

    def _foreseen(
        self, batch: Batch, horizon: int
    ) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """What the rows of a batch will miss until they are next met, and who needs a momentum then."""
        idle = self.idle
        following = batch.following
        if following is None:
            # In the next step, for all we know.
            following = np.full(batch.features.size, idle.done + 1)
        until = np.minimum(following - 1, horizon)
        stays = until - idle.done < FADED
        if horizon == idle.n_steps:
            stays &= following <= horizon
        until[~stays] = idle.done
        coming = idle.between(idle.done, until)
        # All that is left of their momentum, also what would come later.
        coming[~stays, :2] = idle.between(idle.done, idle.n_steps)[0, :2]
        self.stands[batch.features] = until
        return coming, stays

    def _flat(self) -> Adamax:
        return Adamax(self.W.reshape(-1), self.M.reshape(-1), self.U.reshape(-1))


def _columns(width: int) -> int:
    """Columns of one task, about an eighth of them: threads should be far apart from each other."""
    return -(-width // (8 * _COLUMNS)) * _COLUMNS
