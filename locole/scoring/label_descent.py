"""Label vectors by cross-entropy among hard candidates: batches of similar labels, on any threads."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from locole.kernels.prototypes import adagrad_rows
from locole.parallel.blocks import n_threads, slices, workers

__all__ = ["SQUARES", "Rows", "descend"]

#: What AdaGrad's sums of squares begin at.
SQUARES = 0.1
# Labels up to which all compete for every row.
_ALL = 4096
# Otherwise similar labels that compete with each other, and labels drawn from all beside them: as
# accurate as competition among all, and much faster (docs/research/dense.md).
_SIMILAR, _DRAWN = 1024, 512
# Rows of a batch, and labels whose scores one thread works on.
_BATCH, _BLOCK = 256, 512
# Below any score, and above minus infinity, of which no difference can be taken.
_LOWEST = np.float32(-1e30)
# How often the halves of labels are drawn again around their means.
_ROUNDS = 3


class Rows(NamedTuple):
    """What is learnt from."""

    points: NDArray[np.float32]
    codes: NDArray[np.int64]
    weights: NDArray[np.float32]
    apart: NDArray[np.float32]
    """What is added to the score of each row's label, so that it is as if the row had not been seen."""
    others: sp.csr_array | None = None
    """Other labels of each row, if rows have several: they do not compete. Only places count."""


def descend(
    rows: Rows,
    vectors: NDArray[np.float32],
    squares: NDArray[np.float32],
    *,
    rates: NDArray[np.float64],
    rng: np.random.Generator,
    n_jobs: int | None,
) -> None:
    """Move the vectors in place: passes of AdaGrad, with rates that fall from each to the next.

    ``rates`` are those at the ends of the passes. Every batch is divided by labels into blocks that do
    not depend on the number of threads, so neither do the vectors.
    """
    with workers(min(n_threads(n_jobs), -(-min(len(vectors), _ALL) // _BLOCK))) as apply:
        for first, last in itertools.pairwise(rates):
            done = 0
            for some, labels in _batches(rows.codes, vectors, rng):
                rate = first + (last - first) * done / rows.codes.size
                _step(rows, some, labels, vectors, squares, np.float32(rate), apply)
                done += some.size


def _batches(
    codes: NDArray[np.int64], vectors: NDArray[np.float32], rng: np.random.Generator
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Rows of each batch in random order, and the labels that compete for them."""
    n_classes = len(vectors)
    if n_classes <= _ALL:
        every = np.arange(n_classes)
        order = rng.permutation(codes.size)
        for part in slices(codes.size, _BATCH):
            yield order[part], every
        return
    group = _similar(vectors, rng)
    order = rng.permutation(codes.size)
    order = order[np.argsort(group[codes[order]], kind="stable")]
    ends = np.cumsum(np.bincount(group[codes], minlength=group.max() + 1))
    members = np.split(np.argsort(group, kind="stable"), np.cumsum(np.bincount(group))[:-1])
    batches = [
        (some[part], similar)
        for some, similar in zip(np.split(order, ends[:-1]), members, strict=True)
        for part in slices(some.size, _BATCH)
    ]
    for i in rng.permutation(len(batches)):
        some, similar = batches[i]
        drawn = rng.integers(n_classes, size=_DRAWN)
        yield some, np.union1d(similar, drawn)


def _similar(vectors: NDArray[np.float32], rng: np.random.Generator) -> NDArray[np.int64]:
    """Groups of similar labels of about one size: halves of halves, each along the line of its means."""
    group = np.empty(len(vectors), dtype=np.int64)
    left, n_groups = [np.arange(len(vectors))], 0
    while left:
        labels = left.pop()
        if labels.size <= _SIMILAR:
            group[labels] = n_groups
            n_groups += 1
            continue
        V = vectors[labels]
        line = np.subtract(*V[rng.choice(labels.size, 2, replace=False)])
        for _ in range(_ROUNDS):
            order = np.argsort(V @ line, kind="stable")
            low, high = np.split(order, [labels.size // 2])
            line = V[high].mean(axis=0) - V[low].mean(axis=0)
        left += [labels[low], labels[high]]
    return group


def _step(
    rows: Rows,
    some: NDArray[np.int64],
    labels: NDArray[np.int64],
    vectors: NDArray[np.float32],
    squares: NDArray[np.float32],
    rate: np.float32,
    apply: Any,
) -> None:
    """One step of the labels that compete for some rows; ``labels`` are sorted."""
    Z, weights, apart = rows.points[some], rows.weights[some], rows.apart[some]
    place = np.searchsorted(labels, rows.codes[some])

    def own(part: slice) -> tuple[NDArray, NDArray]:
        mine = np.flatnonzero((place >= part.start) & (place < part.stop))
        return mine, place[mine] - part.start

    silent = None if rows.others is None else _places(rows.others[some], labels)

    def scores(part: slice) -> tuple[NDArray, NDArray, NDArray]:
        is_all = labels.size == len(vectors)
        logits = Z @ vectors[part if is_all else labels[part]].T
        i, j = own(part)
        logits[i, j] += apart[i]
        if silent is not None:
            inside = (silent[1] >= part.start) & (silent[1] < part.stop)
            logits[silent[0][inside], silent[1][inside] - part.start] = -np.inf
        highest = np.maximum(logits.max(axis=1), _LOWEST)  # all may be silent
        logits -= highest[:, None]
        np.exp(logits, out=logits)
        return logits, highest, logits.sum(axis=1)

    def move(item: tuple[slice, NDArray, NDArray]) -> None:
        part, odds, factor = item
        odds *= (factor * weights)[:, None]
        i, j = own(part)
        odds[i, j] -= weights[i]
        adagrad_rows(vectors, labels[part], squares, odds.T @ Z, rate)

    parts = slices(labels.size, _BLOCK)
    found = list(apply(scores, parts))
    top = np.max([highest for _, highest, _ in found], axis=0)
    shares = [np.exp(highest - top) for _, highest, _ in found]
    mass = sum(share * total for share, (_, _, total) in zip(shares, found, strict=True))
    tasks = [
        (part, odds, share / mass)
        for part, share, (odds, _, _) in zip(parts, shares, found, strict=True)
    ]
    list(apply(move, tasks))


def _places(others: sp.csr_array, labels: NDArray[np.int64]) -> tuple[NDArray, NDArray]:
    """Rows and places among sorted labels of those that are there."""
    rows = np.repeat(np.arange(others.shape[0]), np.diff(others.indptr))
    places = np.searchsorted(labels, others.indices).clip(max=labels.size - 1)
    there = labels[places] == others.indices
    return rows[there], places[there]
