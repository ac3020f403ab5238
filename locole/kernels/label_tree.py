"""Loops of label trees: linear classifiers of a node, side by side, and beam search."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from locole.kernels.csr import Csr, place_of
from locole.kernels.jit import inline, kernel
from locole.kernels.simd import (
    WIDTH,
    broadcast,
    exceeds,
    fma,
    fnma,
    load,
    maximum,
    store,
    zeros,
)
from locole.kernels.topk import push_rows

__all__ = ["Forest", "NodeDuals", "learn_outputs", "number_features", "search_trees"]


@kernel
def number_features(indices, numbers, features, local):
    """Number the features in the order in which they are met; returns how many there are.

    numbers : (n_features,), −1 before and after; features : room for the features in order of their
    numbers; local : like indices, numbers in place of features.
    """
    n = 0
    for p in range(indices.size):
        f = indices[p]
        if numbers[f] < 0:
            numbers[f] = n
            features[n] = f
            n += 1
        local[p] = numbers[f]
    for j in range(n):
        numbers[features[j]] = -1
    return n


class NodeDuals(NamedTuple):
    """Dual variables (rows · width,), W = Σ_i sign·dual·x_i (features · width,), and room (width,)."""

    duals: Any
    W: Any
    signs: Any


class Forest(NamedTuple):
    """Label trees and the classifiers of their nodes.

    Node v has children ``targets[children[v] : children[v+1]]``, which are nodes, or, in a leaf, labels
    plus the number of nodes. Feature f counts in the nodes ``nodes[lists[f] : lists[f+1]]``, sorted, in
    the one at place j with row j of ``weights`` for its children.
    """

    roots: Any
    children: Any
    targets: Any
    lists: Any
    nodes: Any
    weights: Csr


@kernel
def learn_outputs(X, order, positive, starts, n_outputs, ridge, curvature, state):
    """One pass of dual coordinate descent on squared hinge losses; returns the largest violation.

    Output k of row i has sign +1 if it is among ``positive[starts[i] : starts[i+1]]`` and −1
    otherwise. X : Csr; ridge : 1/(2C); curvature : (rows,) ‖x_i‖² + ridge; state : NodeDuals. Outputs
    past ``n_outputs`` have sign 0 and stay as they are.
    """
    indptr, indices, data = X
    duals, W, signs = state
    width = signs.size
    for k in range(width):
        signs[k] = -1 if k < n_outputs else 0
    worst = zeros(W)
    for r in range(order.size):
        i = order[r]
        start, stop = indptr[i], indptr[i + 1]
        for k in range(starts[i], starts[i + 1]):
            signs[positive[k]] = 1
        size = broadcast(curvature[i])
        step = broadcast(np.float32(1) / curvature[i])
        for o in range(0, width, WIDTH):
            s = zeros(W)
            for p in range(start, stop):
                s = fma(broadcast(data[p]), load(W, indices[p] * width + o), s)
            sign, old = load(signs, o), load(duals, i * width + o)
            slope = fma(sign, s, fma(broadcast(ridge), old, broadcast(np.float32(-1))))
            new = maximum(fnma(slope, step, old), zeros(W))
            change = (new - old) * sign
            moved = maximum(change, zeros(W) - change)
            if exceeds(moved, zeros(W)):
                worst = maximum(worst, moved * size)
                store(duals, i * width + o, new)
                for p in range(start, stop):
                    at = indices[p] * width + o
                    store(W, at, fma(broadcast(data[p]), change, load(W, at)))
        for k in range(starts[i], starts[i + 1]):
            signs[positive[k]] = -1
    store(signs, 0, worst)
    return signs[:WIDTH].max()


@inline
def _score_children(X, i, forest, node, out):
    """``log p = −max(0, 1 − w·x_i)²`` of each child of a node; returns how many there are."""
    indptr, indices, data = X
    _, children, _, lists, nodes, by_place = forest
    entries, which, weights = by_place
    n = children[node + 1] - children[node]
    out[:n] = 0
    for p in range(indptr[i], indptr[i + 1]):
        at = place_of(nodes, lists[indices[p]], lists[indices[p] + 1], node)
        if at >= 0:
            for q in range(entries[at], entries[at + 1]):
                out[which[q]] += data[p] * weights[q]
    for k in range(n):
        gap = max(0.0, 1.0 - out[k])
        out[k] = -gap * gap
    return n


@inline
def _keep(nodes, scores, n, node, score):
    """Put a node into a list sorted by falling score; returns how many there are now."""
    if n == nodes.size and score <= scores[n - 1]:
        return n
    at = min(n, nodes.size - 1)
    while at > 0 and score > scores[at - 1]:
        nodes[at], scores[at] = nodes[at - 1], scores[at - 1]
        at -= 1
    nodes[at], scores[at] = node, score
    return min(n + 1, nodes.size)


@kernel
def search_trees(X, forest, beam, room, totals, no_labels, best_scores, best_codes):
    """The best labels of each row, by the mean over trees of the probabilities of their paths.

    In each level the ``beam`` likeliest nodes are followed. X : Csr; room : (children of any node,),
    totals : (1, labels), work; best_scores, best_codes : (rows, k).
    """
    roots, children, targets, _, _, _ = forest
    n_nodes = children.size - 1
    front, scores = np.empty(beam, dtype=np.int64), np.empty(beam)
    new_front, new_scores = np.empty(beam, dtype=np.int64), np.empty(beam)
    for i in range(X.indptr.size - 1):
        totals[:] = 0
        for t in range(roots.size):
            front[0], scores[0], n = roots[t], 0.0, 1
            inner = True
            while inner:
                inner = False
                n_new = 0
                for j in range(n):
                    node = front[j]
                    first = children[node]
                    if targets[first] >= n_nodes:
                        n_new = _keep(new_front, new_scores, n_new, node, scores[j])
                        continue
                    inner = True
                    m = _score_children(X, i, forest, node, room)
                    for k in range(m):
                        n_new = _keep(
                            new_front, new_scores, n_new, targets[first + k], scores[j] + room[k]
                        )
                front, new_front, scores, new_scores = new_front, front, new_scores, scores
                n = n_new
            for j in range(n):
                first = children[front[j]]
                m = _score_children(X, i, forest, front[j], room)
                for k in range(m):
                    totals[0, targets[first + k] - n_nodes] += (
                        np.exp(scores[j] + room[k]) / roots.size
                    )
        push_rows(totals, 0, no_labels, best_scores[i : i + 1], best_codes[i : i + 1])
