"""Cross-entropy over all labels: loss and gradient of points, through the fast transforms.

The logits of a point z are ``s_i = Re⟨z, g_i⟩ + b_i`` for all labels i, with offsets b that are zero
unless given. With the probabilities ``p = softmax(s)`` and the label y,

    loss = log Σ_i exp(s_i) − s_y,      gradient = Σ_i p_i g_i − g_y.

Both sums run over the labels in blocks, so memory does not depend on their number. No label is left
out, unless a sample of them is asked for.
"""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from locole.exceptions import LocoleError
from locole.kernels.cross_entropy import softmax_wht, store_rows
from locole.kernels.cross_entropy_dft import softmax_dft
from locole.kernels.lanes import LANES, load_rows, place
from locole.kernels.plans import bluestein_plan

__all__ = ["Softmax"]

# Signs, chirps, or entries of label vectors at a time.
_BLOCK_FLOATS = 1 << 20

Points = NDArray[np.float32]


class Softmax:
    """Loss and gradient of the softmax over all labels of an embedding.

    Parameters
    ----------
    embedding : Embedding
        Sign codes (Kerdock, Gold, Delsarte–Goethals) take two Walsh–Hadamard transforms for each
        basis and Nelson's code two Fourier transforms for each two bases, O(n_classes · log dim) per
        point; all others products with blocks of label vectors.
    label_smoothing : float
        The target is ``(1 − ε)·g_y + ε·mean(g)``: the label with probability 1 − ε, else any.
    offsets : array of shape (n_classes,), optional
        Added to the logits, such as the logarithms of how frequent labels are.
    n_sampled : int, optional
        Take only so many labels, the same for all rows of a call, and each row's own. **Inexact**: the
        others of the sample stand for all other labels, their logits raised by log((n_classes − 1) /
        how many they are). The sums of exponentials, and of exponentials times vectors, then have the
        right expectation; the gradient, a quotient of the two, has an error of order 1/n_sampled. With
        n_classes or more the answer is exact. It pays for families without a transform.
    seed : int
        Seed of the samples.

    Examples
    --------
    >>> import numpy as np
    >>> from locole.embeddings import Kerdock
    >>> softmax = Softmax(Kerdock(1000, dim=64))
    >>> loss, gradient = softmax(np.zeros((2, 64), dtype=np.float32), np.array([3, 5]))
    >>> bool(np.allclose(loss, np.log(1000)))
    True
    """

    def __init__(
        self,
        embedding: Any,
        *,
        label_smoothing: float = 0.0,
        offsets: ArrayLike | None = None,
        n_sampled: int | None = None,
        seed: int = 0,
    ) -> None:
        self.embedding = embedding
        self.label_smoothing = label_smoothing
        self.offsets = _checked_offsets(offsets, embedding.n_classes)
        self.n_sampled = _checked_sample(n_sampled, embedding.n_classes)
        self.seed = seed
        self._mean = _mean_vector(embedding) if label_smoothing > 0 else None
        self._by_column = self._offsets_by_column()
        self._drawn: tuple[int, NDArray[np.int64], Points] | None = None
        # Made once if they are few, otherwise in each call.
        few = embedding.structure in _TABLES and embedding.n_columns <= self._block
        self._kept = self._table(0, self._n_bases) if few and self.n_sampled is None else None

    def __call__(
        self, Z: Points, codes: NDArray[np.int64], *, draw: int = 0
    ) -> tuple[NDArray, Points]:
        """Losses, shape (rows,), and their gradients with respect to Z.

        ``draw`` is the number of the sample, if labels are sampled: equal numbers, equal labels.
        """
        target = own = self.embedding.real_rows(codes)
        if self._mean is not None:
            keep = np.float32(1 - self.label_smoothing)
            target = keep * target + np.float32(self.label_smoothing) * self._mean
        aim = np.einsum("ij,ij->i", Z, target)
        if self.offsets is not None:
            common = self.label_smoothing * self.offsets.mean(dtype=np.float64)
            aim += (1 - self.label_smoothing) * self.offsets[codes] + np.float32(common)
        if self.n_sampled is not None:
            log_total, gradient = self._by_sample(Z, codes, own, draw)
        elif self.embedding.structure in _TABLES:
            log_total, gradient = self._by_transforms(Z, aim)
        else:
            log_total, gradient = self._by_products(Z, aim)
        gradient -= target
        return log_total - aim, gradient

    def _by_transforms(self, Z: Points, start_at: NDArray) -> tuple[NDArray, Points]:
        embedding, n = self.embedding, self.embedding.dim
        add_bases = self._add_signs if embedding.structure == "wht" else self._add_chirps
        scale = np.float32((0.5 if embedding.is_complex else 1) / math.sqrt(n))
        groups = -(-len(Z) // LANES)
        lanes = np.empty((groups, place(Z.shape[1]) + LANES), dtype=np.float32)
        for g in range(groups):
            first = g * LANES
            load_rows(Z, first, min(LANES, len(Z) - first), lanes[g])
        lanes *= scale
        peak, total = np.zeros((2, groups * LANES), dtype=np.float32)
        peak[: len(Z)] = start_at
        pull = np.zeros_like(lanes)
        where = (embedding.n_columns, embedding.labels_of_columns(), self._by_column)
        size = self._n_bases if self._kept is not None else 2 * max(1, self._block // (2 * n))
        for first in range(0, self._n_bases, size):
            table = self._kept
            if table is None:
                table = self._table(first, min(first + size, self._n_bases))
            add_bases(lanes, table, first * n, *where, peak, total, pull)
        gradient = np.empty_like(Z)
        store_rows(pull, scale, total, gradient)
        return (peak + np.log(total))[: len(Z)], gradient

    @staticmethod
    def _add_signs(lanes: NDArray, signs: NDArray, *rest: Any) -> None:
        softmax_wht(lanes, signs, *rest)

    def _add_chirps(self, lanes: NDArray, chirps: NDArray, *rest: Any) -> None:
        wave, plan = bluestein_plan(self.embedding.dim, lanes.dtype)
        softmax_dft(lanes, chirps, wave, plan, *rest)

    @property
    def _block(self) -> int:
        """Columns whose table is made at a time; chirps take more room while they are made."""
        return _BLOCK_FLOATS // (4 if self.embedding.structure == "dft" else 1)

    @property
    def _n_bases(self) -> int:
        """Bases to go through; chirps go in pairs, the last with a basis of no label."""
        odd = self.embedding.structure == "dft" and self.embedding.n_bases % 2
        return self.embedding.n_bases + int(odd)

    def _table(self, start: int, stop: int) -> NDArray:
        """Signs or conjugated chirps of some bases, shape (bases, dim)."""
        make = getattr(self.embedding, _TABLES[self.embedding.structure])
        return make(start, stop, np.dtype(np.float32))

    def _by_products(self, Z: Points, start_at: NDArray) -> tuple[NDArray, Points]:
        embedding = self.embedding
        size = max(64, _BLOCK_FLOATS // Z.shape[1])
        peak, total = start_at.copy(), np.zeros(len(Z), dtype=np.float32)
        pull = np.zeros_like(Z)
        for first in range(0, embedding.n_classes, size):
            last = min(first + size, embedding.n_classes)
            G = embedding.real_block(first, last)
            logits = Z @ G.T
            if self.offsets is not None:
                logits += self.offsets[first:last]
            top = np.maximum(peak, logits.max(axis=1))
            shrink = np.exp(peak - top)
            weights = np.exp(logits - top[:, None])
            total = total * shrink + weights.sum(axis=1)
            pull = pull * shrink[:, None] + weights @ G
            peak = top
        return peak + np.log(total), pull / total[:, None]

    def _by_sample(
        self, Z: Points, codes: NDArray[np.int64], own: Points, draw: int
    ) -> tuple[NDArray, Points]:
        labels, G = self._sample(draw)
        logits = Z @ G.T
        mine = np.einsum("ij,ij->i", Z, own)
        if self.offsets is not None:
            logits += self.offsets[labels]
            mine += self.offsets[codes]
        at = np.minimum(np.searchsorted(labels, codes), labels.size - 1)
        hit = labels[at] == codes
        # A row's own label counts once, and only for itself.
        logits += np.log((self.embedding.n_classes - 1) / (labels.size - hit))[:, None]
        logits[hit, at[hit]] = -np.inf
        peak = np.maximum(mine, logits.max(axis=1))
        weights = np.exp(logits - peak[:, None])
        first = np.exp(mine - peak)
        total = first + weights.sum(axis=1)
        pull = weights @ G + first[:, None] * own
        return peak + np.log(total), pull / total[:, None]

    def _sample(self, draw: int) -> tuple[NDArray[np.int64], Points]:
        """Labels of a sample, in order, and their vectors; the last one is kept for other threads."""
        kept = self._drawn
        if kept is None or kept[0] != draw:
            rng = np.random.Generator(np.random.Philox(np.random.SeedSequence([self.seed, draw])))
            labels = rng.choice(self.embedding.n_classes, self.n_sampled, replace=False)
            labels.sort()
            self._drawn = kept = draw, labels, self.embedding.real_rows(labels)
        return kept[1:]

    def _offsets_by_column(self) -> NDArray[np.float32]:
        """Offsets in the order of columns, for the transforms; empty if there are none."""
        if self.offsets is None or self.embedding.structure not in _TABLES:
            return np.empty(0, dtype=np.float32)
        out = np.zeros(self.embedding.n_columns, dtype=np.float32)
        out[self.embedding.columns(np.arange(self.embedding.n_classes))] = self.offsets
        return out


# What a basis is made of, by the structure of the code.
_TABLES = {"wht": "signs", "dft": "conjugate_chirps"}


def _mean_vector(embedding: Any) -> NDArray[np.float32]:
    size = max(64, _BLOCK_FLOATS // embedding.real_dim)
    total = np.zeros(embedding.real_dim)
    for first in range(0, embedding.n_classes, size):
        last = min(first + size, embedding.n_classes)
        total += embedding.real_block(first, last).sum(axis=0, dtype=np.float64)
    return (total / embedding.n_classes).astype(np.float32)


def _checked_offsets(offsets: ArrayLike | None, n_classes: int) -> NDArray[np.float32] | None:
    if offsets is None:
        return None
    array = np.asarray(offsets, dtype=np.float32)
    if array.shape != (n_classes,) or not np.isfinite(array).all():
        raise LocoleError(f"offsets must be {n_classes} finite numbers, one for each label.")
    return array


def _checked_sample(n_sampled: int | None, n_classes: int) -> int | None:
    """Labels to be sampled, or None if all are taken."""
    if n_sampled is None:
        return None
    if isinstance(n_sampled, bool) or not isinstance(n_sampled, numbers.Integral) or n_sampled < 2:
        raise LocoleError(f"n_sampled must be a whole number of at least 2, not {n_sampled!r}.")
    return None if n_sampled >= n_classes else int(n_sampled)
