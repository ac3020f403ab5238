"""Trees of labels: like labels together, one linear classifier for each child of each node."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from locole.kernels.csr import Csr
from locole.kernels.label_tree import NodeDuals, learn_outputs, number_features
from locole.kernels.simd import padded_width
from locole.sparse_rows import label_sums, row_squares, unit_rows

__all__ = ["NodeSettings", "Places", "Shape", "Tree", "grow_tree", "label_centroids", "learn_node"]

# Rounds of k-means, and the gain of the mean cosine below which they end.
_ROUNDS, _LEAST_GAIN = 20, 1e-4


class Shape(NamedTuple):
    """How a tree is grown."""

    n_children: int
    max_leaf: int
    max_depth: int
    balanced: bool


class Tree(NamedTuple):
    """Nodes by number, the root first and parents before children.

    Attributes
    ----------
    labels : list of arrays
        Codes of the labels below each node.
    children : list of arrays
        Numbers of each node's children; none for leaves, whose children are their labels.
    """

    labels: list[NDArray[np.int64]]
    children: list[NDArray[np.int64]]

    def place_in(self, node: int, n_labels: int) -> NDArray[np.int64]:
        """Which child of the node each label is below, or −1."""
        place = np.full(n_labels, -1)
        parts = [self.labels[child] for child in self.children[node]] or self.labels[node]
        for k, part in enumerate(parts):
            place[part] = k
        return place

    def targets(self, node: int, first: int, n_nodes: int) -> NDArray[np.int64]:
        """Children as models hold them: numbers of nodes from ``first`` on, or label + n_nodes."""
        below = self.children[node]
        return below + first if below.size else self.labels[node] + n_nodes


def label_centroids(
    X: sp.csr_array,
    codes: NDArray[np.int64],
    n_labels: int,
    *,
    owners: NDArray[np.int64] | None = None,
) -> sp.csr_array:
    """Mean rows of the labels, scaled to unit length."""
    sums = label_sums(X.astype(np.float64), codes, n_labels, owners=owners)
    sums.sort_indices()
    return unit_rows(sums)


def grow_tree(centroids: sp.csr_array, shape: Shape, rng: np.random.Generator) -> Tree:
    """Split labels by k-means of their centroids until no more than ``max_leaf`` are together."""
    labels, children = [np.arange(centroids.shape[0])], []
    depth = [1]
    node = 0
    while node < len(labels):
        mine = labels[node]
        parts: list[NDArray[np.int64]] = []
        if mine.size > shape.max_leaf and depth[node] < shape.max_depth:
            parts = [mine[part] for part in _split(centroids[mine], shape, rng)]
        if len(parts) < 2:  # k-means may find all labels alike
            parts = []
        children.append(np.arange(len(labels), len(labels) + len(parts)))
        labels.extend(parts)
        depth.extend([depth[node] + 1] * len(parts))
        node += 1
    return Tree(labels, children)


def _split(C: sp.csr_array, shape: Shape, rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """Spherical k-means of the rows; of equal sizes if the tree is balanced."""
    n, k = C.shape[0], min(shape.n_children, C.shape[0])
    # Only columns that occur: the means are dense.
    used, local = _numbered(C)
    C = sp.csr_array((C.data, local, C.indptr), shape=(n, max(1, used.size)))
    means = C[rng.choice(n, k, replace=False)].toarray().T
    best, part = -np.inf, np.zeros(n, dtype=np.int64)
    for _ in range(_ROUNDS):
        cosines = C @ means
        part = _balanced(cosines) if shape.balanced else cosines.argmax(axis=1)
        mean = float(np.take_along_axis(cosines, part[:, None], axis=1).mean(dtype=np.float64))
        if mean - best < _LEAST_GAIN:
            break
        best, means = mean, _means(C, part, k)
    return [np.flatnonzero(part == j) for j in range(k) if (part == j).any()]


def _balanced(cosines: NDArray[np.float32]) -> NDArray[np.int64]:
    """Parts whose sizes differ by at most one: those who gain most by a part choose first."""
    n, k = cosines.shape
    if k == 2:
        part = np.ones(n, dtype=np.int64)
        part[np.argsort(cosines[:, 1] - cosines[:, 0], kind="stable")[: n - n // 2]] = 0
        return part
    part, room = np.empty(n, dtype=np.int64), np.full(k, n // k)
    room[: n % k] += 1
    ordered = np.sort(cosines, axis=1)
    for row in np.argsort(ordered[:, -2] - ordered[:, -1], kind="stable"):
        part[row] = np.where(room > 0, cosines[row], -np.inf).argmax()
        room[part[row]] -= 1
    return part


def _means(C: sp.csr_array, part: NDArray[np.int64], k: int) -> NDArray[np.float32]:
    member = sp.csr_array((np.ones(part.size, np.float32), (part, np.arange(part.size))),
                          shape=(k, part.size))  # fmt: skip
    sums = (member @ C).toarray().T
    lengths = np.sqrt(np.einsum("ij,ij->j", sums, sums))
    lengths[lengths == 0] = 1
    return sums / lengths


class NodeSettings(NamedTuple):
    """How the classifiers of a node are learnt; see `locole.baselines.Parabel`."""

    C: float
    threshold: float
    epochs: int
    tol: float


class Places(NamedTuple):
    """Rows of a node; row i of them goes to ``children[starts[i] : starts[i+1]]``."""

    rows: NDArray[np.int64]
    children: NDArray[np.int64]
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, child: NDArray[np.int64], owners: NDArray[np.int64]) -> Places:
        """Places from the child, or −1, of every label of the rows ``owners``."""
        inside = np.flatnonzero(child >= 0)
        rows, starts = np.unique(owners[inside], return_index=True)
        return cls(rows, child[inside], np.append(starts, inside.size))


def learn_node(
    X: sp.csr_array,
    places: Places,
    n_outputs: int,
    settings: NodeSettings,
    rng: np.random.Generator,
) -> tuple[NDArray[np.int32], sp.csr_array]:
    """Learn which of ``n_outputs`` children the rows of a node go to.

    Returns the features that count and their weights (features, n_outputs).
    """
    rows = places.rows
    mine = X[rows]
    features, local = _numbered(mine)
    shape = (rows.size, features.size)
    mine = sp.csr_array((mine.data, local, mine.indptr), shape=shape)
    W = _descend(mine, places, n_outputs, settings, rng)
    W[np.abs(W) < settings.threshold] = 0
    kept = np.flatnonzero(W.any(axis=1))
    return features[kept], sp.csr_array(W[kept])


def _numbered(X: sp.csr_array) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Features that occur, and their places there in place of the indices of X."""
    features = np.empty(min(X.shape[1], X.nnz), dtype=np.int32)
    local = np.empty(X.nnz, dtype=np.int32)
    numbers = np.full(X.shape[1], -1, dtype=np.int32)
    n = number_features(X.indices, numbers, features, local)
    return features[:n], local


def _descend(
    X: sp.csr_array,
    places: Places,
    n_outputs: int,
    settings: NodeSettings,
    rng: np.random.Generator,
) -> NDArray[np.float32]:
    r"""Solve ``min ½‖w_k‖² + C Σ_i max(0, 1 − s_ik w_k·x_i)²`` for all outputs k at once, in the dual.

    The dual is ``min ½‖Σ_i s_i α_i x_i‖² + Σ_i α_i²/(4C) − Σ_i α_i`` over α ≥ 0.
    """
    n, width = X.shape[0], padded_width(n_outputs)
    W = np.zeros((X.shape[1], width), dtype=np.float32)
    state = NodeDuals(
        duals=np.zeros(n * width, dtype=np.float32),
        W=W.reshape(-1),
        signs=np.empty(width, dtype=np.float32),
    )
    ridge, rows = np.float32(1 / (2 * settings.C)), Csr.of(X)
    curvature = (row_squares(X) + ridge).astype(np.float32)
    for _ in range(settings.epochs):
        order = rng.permutation(n)
        positive = (order, places.children, places.starts)
        if learn_outputs(rows, *positive, n_outputs, ridge, curvature, state) < settings.tol:
            break
    return W[:, :n_outputs]
