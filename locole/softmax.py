"""Cross-entropy over all labels: loss and gradient of points, through the fast transforms.

The logits of a point z are ``s_i = Re⟨z, g_i⟩`` for all labels i. With the probabilities
``p = softmax(s)`` and the label y,

    loss = log Σ_i exp(s_i) − s_y,      gradient = Σ_i p_i g_i − g_y.

Both sums run over the labels in blocks, so memory does not depend on their number.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from locole.kernels.lanes import LANES, load_rows, place
from locole.kernels.softmax import softmax_wht, store_rows

__all__ = ["Softmax"]

# Sign vectors, or label vectors, at a time.
_BLOCK_FLOATS = 1 << 20

Points = NDArray[np.float32]


class Softmax:
    """Loss and gradient of the softmax over all labels of an embedding.

    Parameters
    ----------
    embedding : Embedding
        Sign codes (Kerdock, Gold, Delsarte–Goethals) take two Walsh–Hadamard transforms for each
        basis, O(n_classes · log dim) per point; all others products with blocks of label vectors.
    label_smoothing : float
        The target is ``(1 − ε)·g_y + ε·mean(g)``: the label with probability 1 − ε, else any.

    Examples
    --------
    >>> import numpy as np
    >>> from locole.embeddings import Kerdock
    >>> softmax = Softmax(Kerdock(1000, dim=64))
    >>> loss, gradient = softmax(np.zeros((2, 64), dtype=np.float32), np.array([3, 5]))
    >>> bool(np.allclose(loss, np.log(1000)))
    True
    """

    def __init__(self, embedding: Any, *, label_smoothing: float = 0.0) -> None:
        self.embedding = embedding
        self.label_smoothing = label_smoothing
        self._mean = _mean_vector(embedding) if label_smoothing > 0 else None
        # Made once if they are few, otherwise in each call.
        few = embedding.structure == "wht" and embedding.n_columns <= _BLOCK_FLOATS
        self._signs = embedding.signs(0, embedding.n_bases, np.float32) if few else None

    def __call__(self, Z: Points, codes: NDArray[np.int64]) -> tuple[NDArray, Points]:
        """Losses, shape (rows,), and their gradients with respect to Z."""
        target = self.embedding.real_rows(codes)
        if self._mean is not None:
            keep = np.float32(1 - self.label_smoothing)
            target = keep * target + np.float32(self.label_smoothing) * self._mean
        aim = np.einsum("ij,ij->i", Z, target)
        add_up = self._by_transforms if self.embedding.structure == "wht" else self._by_products
        log_total, gradient = add_up(Z, aim)
        gradient -= target
        return log_total - aim, gradient

    def _by_transforms(self, Z: Points, start_at: NDArray) -> tuple[NDArray, Points]:
        embedding, n = self.embedding, self.embedding.dim
        scale = np.float32(1 / math.sqrt(n))
        groups = -(-len(Z) // LANES)
        lanes = np.empty((groups, place(n) + LANES), dtype=np.float32)
        for g in range(groups):
            first = g * LANES
            load_rows(Z, first, min(LANES, len(Z) - first), lanes[g])
        lanes *= scale
        peak, total = np.zeros((2, groups * LANES), dtype=np.float32)
        peak[: len(Z)] = start_at
        pull = np.zeros_like(lanes)
        labels = embedding.labels_of_columns()
        size = embedding.n_bases if self._signs is not None else max(1, _BLOCK_FLOATS // n)
        for first in range(0, embedding.n_bases, size):
            signs = self._signs
            if signs is None:
                signs = embedding.signs(first, min(first + size, embedding.n_bases), np.float32)
            softmax_wht(lanes, signs, first * n, embedding.n_columns, labels, peak, total, pull)
        gradient = np.empty_like(Z)
        store_rows(pull, scale, total, gradient)
        return (peak + np.log(total))[: len(Z)], gradient

    def _by_products(self, Z: Points, start_at: NDArray) -> tuple[NDArray, Points]:
        embedding = self.embedding
        size = max(64, _BLOCK_FLOATS // Z.shape[1])
        peak, total = start_at.copy(), np.zeros(len(Z), dtype=np.float32)
        pull = np.zeros_like(Z)
        for first in range(0, embedding.n_classes, size):
            G = embedding.real_block(first, min(first + size, embedding.n_classes))
            logits = Z @ G.T
            top = np.maximum(peak, logits.max(axis=1))
            shrink = np.exp(peak - top)
            weights = np.exp(logits - top[:, None])
            total = total * shrink + weights.sum(axis=1)
            pull = pull * shrink[:, None] + weights @ G
            peak = top
        return peak + np.log(total), pull / total[:, None]


def _mean_vector(embedding: Any) -> NDArray[np.float32]:
    size = max(64, _BLOCK_FLOATS // embedding.real_dim)
    total = np.zeros(embedding.real_dim)
    for first in range(0, embedding.n_classes, size):
        last = min(first + size, embedding.n_classes)
        total += embedding.real_block(first, last).sum(axis=0, dtype=np.float64)
    return (total / embedding.n_classes).astype(np.float32)
