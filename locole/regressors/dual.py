"""Dual coordinate ascent for all outputs: blocks of outputs in turn or side by side."""

from __future__ import annotations

import threading
import time
from contextlib import closing
from typing import Any, NamedTuple, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from locole.exceptions import ModelFileError
from locole.io.trust import check_like
from locole.kernels.csr import Csr
from locole.kernels.dual import (
    BLOCK,
    Duals,
    DualSamples,
    DualSums,
    dual_pass,
    fill_duals,
    fill_weights,
)
from locole.kernels.simd import aligned, padded_width
from locole.parallel import THREADS, Engine, read_only
from locole.parallel.blocks import slices
from locole.regressors.checkpoint import Checkpoints
from locole.regressors.problem import Problem
from locole.sparse_rows import row_squares

__all__ = ["DualSettings", "solve_dual", "solve_outputs"]

# What is written down of a pass over a block of outputs.
_RECORD = {"gap", "objective", "norm", "cpu_s", "visits"}


class DualSettings(NamedTuple):
    """Penalties and stopping rule."""

    l1: float
    l2: float
    max_passes: int
    tol: float
    seed: int
    n_jobs: int | None
    verbose: int
    shrinking: bool = False


class _Prepared(NamedTuple):
    """What all blocks of outputs share."""

    X: sp.csr_array
    rank: NDArray[np.int64]
    samples: DualSamples


class _Work(NamedTuple):
    """What a block of outputs is solved from, wherever that is done."""

    problem: Problem
    """With the X of `prepared`, so that there is one X to be sent."""
    prepared: _Prepared
    settings: DualSettings
    start: Any
    W: NDArray[np.float32] | None
    """Where weights go; None if they are sparse, or made where the caller's memory is not."""


# Working memory of each thread, for the next block of the same problem.
_own = threading.local()


def solve_dual(
    problem: Problem,
    settings: DualSettings,
    *,
    start: Any = None,
    engine: Engine = THREADS,
    checkpoints: Checkpoints | None = None,
) -> tuple[NDArray[np.float32] | sp.csr_array, list[dict[str, float]]]:
    """Weights and one record a pass.

    Parameters
    ----------
    problem : Problem
        The samples.
    settings : DualSettings
        Penalties and stopping rule.
    start : array or CSR of shape (n_features, n_outputs or more), optional
        Weights learnt from other samples, whose duals stay as they are: the result is the better
        solution for all samples that moving the new ones' duals can reach.
    engine : Engine
        Where blocks of outputs are solved.
    checkpoints : Checkpoints, optional
        Where solved blocks are kept; those that are found there are not solved again.

    Returns
    -------
    weights : array of shape (n_features, padded_width(n_outputs)) or CSR if l1 > 0
    history : list of dict
        ``gap``, the running estimate of the duality gap, and ``objective``, the dual objective (a
        lower bound of the primal), both relative to the objective at zero weights; ``cpu_s`` of the
        blocks that made this pass; ``examples_per_s``, samples a CPU second for all outputs. With
        shrinking, the short pass before a pass is in its record.
    """
    prepared = _prepare(problem, settings)
    n_outputs = problem.targets.shape[1]
    n_features = prepared.rank.size
    dense = settings.l1 == 0
    W = np.empty((n_features, padded_width(n_outputs)) if dense else (0, 0), dtype=np.float32)
    W[:, n_outputs:] = 0
    work = _Work(
        problem._replace(X=prepared.X),
        prepared,
        settings,
        start,
        W if dense and engine.shares_memory else None,
    )
    blocks = slices(n_outputs, BLOCK)
    histories: list[Any] = [None] * len(blocks)
    columns: list[Any] = [None] * len(blocks)
    left = list(range(len(blocks)))
    if checkpoints:
        left = _unkept(checkpoints, blocks, n_features, histories, W if dense else None, columns)
    description = "elastic net" if settings.verbose else None
    found = engine.map(
        solve_outputs,
        [blocks[place] for place in left],
        shared=work,
        n_jobs=settings.n_jobs,
        description=description,
    )
    try:
        # Closed at once if an error comes between two results, so that nothing goes on working.
        with closing(cast(Any, found)):
            for number, (history, part) in found:
                place = left[number]
                histories[place] = history
                if dense and part is not None:
                    _fill(W, blocks[place], prepared, settings, part)
                else:
                    columns[place] = part
                if checkpoints:
                    weights = W[:, blocks[place]].copy() if dense else sp.csr_array(part)
                    checkpoints.write({"history": history, "weights": weights}, _name(place))
    finally:
        vars(_own).clear()  # pool threads are gone with theirs, this one stays
    merged = _merged(histories)
    if dense:
        return W, merged
    return sp.csr_array(sp.hstack(columns, format="csr")), merged


def _unkept(
    checkpoints: Checkpoints,
    blocks: list[slice],
    n_features: int,
    histories: list[Any],
    W: NDArray | None,
    columns: list[Any],
) -> list[int]:
    """Fill in what is kept of blocks; return the places of the others."""
    left = []
    for place, block in enumerate(blocks):
        kept = checkpoints.read(_name(place))
        if kept is None:
            left.append(place)
            continue
        shape = (n_features, block.stop - block.start)
        _check_kept(kept, sp.csr_array(shape, dtype=np.float32) if W is None else W[:, block])
        histories[place] = kept["history"]
        if W is None:
            columns[place] = kept["weights"]
        else:
            W[:, block] = kept["weights"]
    return left


def _check_kept(kept: dict[str, Any], weights: Any) -> None:
    """Refuse a file that is not what was written: it is trusted no more than a model."""
    try:
        check_like(kept, {"history": [], "weights": weights}, "checkpoint")
        if not kept["history"] or not all(map(_is_record, kept["history"])):
            raise ModelFileError("its history is none")
    except ModelFileError as error:
        raise ModelFileError(
            f"the checkpoint cannot be resumed: {error}. Take another folder, or remove it."
        ) from None


def _is_record(record: Any) -> bool:
    is_whole = isinstance(record, dict) and set(record) == _RECORD
    return is_whole and all(isinstance(value, int | float) for value in record.values())


def _name(place: int) -> str:
    """Of a block, as a part of a checkpoint."""
    return f"block-{place}"


def solve_outputs(
    work: _Work, outputs: slice
) -> tuple[list[dict[str, float]], NDArray[np.float32] | sp.csc_array | None]:
    """Solve one block of outputs; return its history and its weights if they are not in ``work.W``.

    Dense weights are returned as V, of which the caller makes weights: it has to copy them anyway.
    """
    problem, prepared, settings, start, W = work
    room = _room(prepared.X)
    _set_start(prepared, settings, outputs, room, start)
    history = _solve_block(problem, prepared, settings, outputs, room)
    return history, _write_out(prepared, settings, outputs, room, W)


def _prepare(problem: Problem, settings: DualSettings) -> _Prepared:
    X = problem.X
    # Frequent features first: what is used most then shares pages and cache lines.
    counts = np.bincount(X.indices, minlength=X.shape[1])
    rank = np.empty(X.shape[1], dtype=np.int64)
    rank[np.argsort(-counts, kind="stable")] = np.arange(X.shape[1])
    # Indices of four bytes where they do: half the memory and traffic, and one kernel to compile.
    index = np.int32 if max(X.nnz, *X.shape) <= np.iinfo(np.int32).max else np.int64
    data = X.data.astype(np.float32, copy=False)
    indices, indptr = rank.astype(index)[X.indices], X.indptr.astype(index, copy=False)
    slopes = 1 / (2 * problem.weight)
    X = sp.csr_array((data, indices, indptr), shape=X.shape)
    sizes = 1 / (slopes + row_squares(X) / (2 * settings.l2))
    X.data, X.indices, X.indptr = map(read_only, (X.data, X.indices, X.indptr))
    vectors = (v.astype(np.float32) for v in (problem.weight, slopes, sizes))
    samples = DualSamples(*map(read_only, (*vectors, problem.codes)))
    return _Prepared(X, read_only(rank), samples)


def _room(X: sp.csr_array) -> Duals:
    """Room of this thread: that of its last block if it has the right size."""
    sizes = (X.shape[0] * BLOCK, X.shape[1] * BLOCK)
    room: Duals | None = getattr(_own, "room", None)
    if room is None or (room.alpha.size, room.V.size) != sizes:
        _own.room = None  # before there are two
        like = np.empty(0, dtype=np.float32)
        _own.room = room = Duals(*(aligned(size, like) for size in sizes))
    return room


def _set_start(
    shared: _Prepared, settings: DualSettings, outputs: slice, room: Duals, start: Any
) -> None:
    """Duals of the samples are zero; V is zero or what the given weights came from."""
    room.alpha[:] = 0
    if start is None:
        room.V[:] = 0
        return
    part = start[:, outputs]
    part = np.ascontiguousarray(part.toarray() if sp.issparse(part) else part, dtype=np.float32)
    width = outputs.stop - outputs.start
    l1, scale = np.float32(settings.l1), np.float32(1 / (2 * settings.l2))
    fill_duals(part, shared.rank, l1, scale, 0, width, room.V)


class _Block:
    """One block of outputs: its targets, its duals, and what its passes have shown."""

    def __init__(
        self,
        problem: Problem,
        shared: _Prepared,
        settings: DualSettings,
        outputs: slice,
        room: Duals,
    ) -> None:
        piece = problem.targets.table(outputs.start, outputs.stop)
        table = np.zeros((len(piece), BLOCK), dtype=np.float32)
        table[:, : outputs.stop - outputs.start] = piece
        share = np.bincount(problem.codes, weights=problem.weight, minlength=len(table))
        # Σ weight_i ‖y_i‖², the objective at zero weights.
        self.norm = float(share @ np.einsum("cj,cj->c", table, table, dtype=np.float64))
        self.objective = 0.0
        n_samples = shared.X.shape[0]
        # What each sample added to the gap when it was last visited.
        self.parts = np.empty(n_samples if settings.shrinking else 0, dtype=np.float32)
        self._table = table.ravel()
        self._shared, self._settings, self._room = shared, settings, room

    def visit(self, order: NDArray[np.int64]) -> float:
        """Move the duals of these samples one after the other; return the gap met on the way."""
        squares, gains = np.empty((2, BLOCK), dtype=np.float32)
        l1, scale = np.float32(self._settings.l1), np.float32(1 / (2 * self._settings.l2))
        X, samples = Csr.of(self._shared.X), self._shared.samples
        sums = DualSums(squares, gains, self.parts)
        dual_pass(X, order, samples, self._table, l1, scale, self._room, sums)
        self.objective += 0.5 * float(gains.sum(dtype=np.float64))
        return float(squares.sum(dtype=np.float64))

    def far(self, order: NDArray[np.int64]) -> NDArray[np.int64]:
        """Samples that add more than the mean to the gap, in the given order."""
        far = self.parts > self.parts.mean(dtype=np.float64)
        return order[far[order]]


def _order(seed: list[int], n_samples: int) -> NDArray[np.int64]:
    return np.random.default_rng(seed).permutation(n_samples)


def _solve_block(
    problem: Problem, shared: _Prepared, settings: DualSettings, outputs: slice, room: Duals
) -> list[dict[str, float]]:
    """Passes over the data for one block until its gap is small enough."""
    block = _Block(problem, shared, settings, outputs, room)
    n_samples, history = shared.X.shape[0], []
    for number in range(settings.max_passes):
        start, visits = time.thread_time(), n_samples
        # What the first pass meets is the start, not what is hard: no short pass follows it.
        if settings.shrinking and number >= 2:
            short = block.far(_order([settings.seed, number, 1], n_samples))
            block.visit(short)
            visits += short.size
        gap = block.visit(_order([settings.seed, number], n_samples))
        seconds = time.thread_time() - start
        history.append(
            {
                "gap": gap,
                "objective": block.objective,
                "norm": block.norm,
                "cpu_s": seconds,
                "visits": visits,
            }
        )
        if gap <= settings.tol * block.norm:
            break
    return history


def _write_out(
    shared: _Prepared, settings: DualSettings, outputs: slice, room: Duals, W: NDArray | None
) -> NDArray[np.float32] | sp.csc_array | None:
    """Turn a block's V into weights in W or, if l1 > 0, in a sparse array; or leave it to the caller."""
    if W is not None:
        _fill(W, outputs, shared, settings, room.V)
        return None
    if not settings.l1:
        _own.room = None  # V is the caller's now
        return room.V
    block = np.empty((shared.rank.size, outputs.stop - outputs.start), dtype=np.float32)
    _fill(block, slice(0, block.shape[1]), shared, settings, room.V)
    return sp.csc_array(block)


def _fill(
    W: NDArray, outputs: slice, shared: _Prepared, settings: DualSettings, V: NDArray[np.float32]
) -> None:
    """Columns of W from the V of a block."""
    l1, scale = np.float32(settings.l1), np.float32(1 / (2 * settings.l2))
    width = outputs.stop - outputs.start
    fill_weights(read_only(V), shared.rank, l1, scale, outputs.start, width, W)


def _merged(histories: list[list[dict[str, float]]]) -> list[dict[str, float]]:
    """One record a pass from those of the blocks; a block that had stopped keeps its last gap."""
    total_norm = sum(history[0]["norm"] for history in histories) or 1.0
    merged = []
    for number in range(max(map(len, histories))):
        at = [history[min(number, len(history) - 1)] for history in histories]
        made = [history[number] for history in histories if number < len(history)]
        cpu_s = sum(record["cpu_s"] for record in made)
        visits = sum(record["visits"] for record in made) / len(histories)
        merged.append(
            {
                "gap": sum(r["gap"] for r in at) / total_norm,
                "objective": sum(r["objective"] for r in at) / total_norm,
                "cpu_s": cpu_s,
                "examples_per_s": visits / max(cpu_s, 1e-9),
            }
        )
    return merged
