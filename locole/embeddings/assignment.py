"""Which column of an embedding each label gets."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from locole.exceptions import CapacityError, LocoleError

__all__ = ["AssignmentLike", "extend_columns", "group_columns", "make_columns"]

AssignmentLike = str | ArrayLike


def make_columns(
    assignment: AssignmentLike, *, n_classes: int, capacity: float, seed: int
) -> NDArray[np.int64] | None:
    """Column of each label, or None where label k has column k."""
    if isinstance(assignment, str):
        if assignment == "index":
            return None
        if assignment == "random":
            return np.random.default_rng(seed).permutation(n_classes).astype(np.int64)
        raise LocoleError(
            f'assignment must be "index", "random" or an array of columns, not {assignment!r}.'
        )
    return _checked_columns(assignment, n_classes=n_classes, capacity=capacity)


def _checked_columns(
    columns: ArrayLike, *, n_classes: int, capacity: float
) -> NDArray[np.int64] | None:
    array = np.asarray(columns)
    if array.shape != (n_classes,) or array.dtype.kind not in "iu":
        raise LocoleError(f"assignment must hold one whole number for each of {n_classes} labels.")
    array = array.astype(np.int64)
    if array.min() < 0 or array.max() >= capacity:
        raise LocoleError(f"assignment must lie between 0 and capacity - 1 = {capacity - 1:.0f}.")
    if np.unique(array).size != n_classes:
        raise LocoleError("assignment must give every label a column of its own.")
    return None if np.array_equal(array, np.arange(n_classes)) else array


def extend_columns(
    columns: NDArray[np.int64] | None, n_classes: int, *, capacity: float = np.inf
) -> NDArray[np.int64] | None:
    """Columns for ``n_classes`` labels; old labels keep theirs.

    New labels get the columns after the largest in use and, when those run out, the gaps.
    """
    if columns is None:
        return None
    missing = max(n_classes - columns.size, 0)
    first = int(columns.max()) + 1
    new = np.arange(first, int(min(first + missing, capacity)))
    if new.size < missing:
        gaps = np.setdiff1d(np.arange(first), columns)
        new = np.concatenate([new, gaps[: missing - new.size]])
    return np.concatenate([columns[:n_classes], new])


def group_columns(
    clusters: ArrayLike, *, basis: int, capacity: float = np.inf
) -> NDArray[np.int64]:
    """Columns that keep each cluster of labels in one orthonormal basis where it fits.

    Kerdock, Gold and Nelson (r = 2) are unions of orthonormal bases of ``dim`` columns each: labels
    in one basis do not interfere at all. Clusters are placed by first-fit decreasing; a cluster
    larger than a basis fills whole bases and its rest is placed like any other. If the gaps that
    this leaves would need more than ``capacity`` columns, the clusters are laid end to end instead.

    Parameters
    ----------
    clusters : array of shape (n_classes,)
        Cluster of each label (any values that can be sorted).
    basis : int
        Columns per basis: ``embedding.dim``.
    capacity : float
        ``embedding.capacity``.

    Returns
    -------
    array of shape (n_classes,)
        For the parameter ``assignment`` of an embedding.

    Examples
    --------
    >>> group_columns(["a", "b", "a", "b", "b"], basis=4)
    array([4, 0, 5, 1, 2])
    """
    _, cluster = np.unique(np.asarray(clusters), return_inverse=True)
    if cluster.size > capacity:
        raise CapacityError(
            name="the embedding",
            n_classes=cluster.size,
            capacity=int(capacity),
            way_out="take a larger dim",
        )
    members = np.split(np.argsort(cluster, kind="stable"), np.cumsum(np.bincount(cluster))[:-1])
    columns = _first_fit(members, basis, cluster.size)
    if columns.max() >= capacity:
        columns[np.concatenate(members)] = np.arange(cluster.size)
    return columns


def _first_fit(members: list[NDArray[np.int64]], basis: int, n_classes: int) -> NDArray[np.int64]:
    # Pieces of at most one basis, largest first; ties keep the clusters' order.
    pieces = [m[i : i + basis] for m in members for i in range(0, m.size, basis)]
    pieces.sort(key=lambda piece: -piece.size)
    columns = np.empty(n_classes, dtype=np.int64)
    used: list[int] = []
    first_open = 0
    for piece in pieces:
        place = first_open
        while place < len(used) and used[place] + piece.size > basis:
            place += 1
        if place == len(used):
            used.append(0)
        columns[piece] = place * basis + used[place] + np.arange(piece.size)
        used[place] += piece.size
        while first_open < len(used) and used[first_open] == basis:
            first_open += 1
    return columns
