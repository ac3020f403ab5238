"""Vectors of labels in one byte for each number: products with points, and the best labels by them."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from locole.kernels.factors import label_products, scan_labels
from locole.kernels.product import NO_SCALES
from locole.kernels.topk import push_rows
from locole.parallel.blocks import slices
from locole.regressors.storage import Weights, pack, unpack
from locole.scoring.base import Codes

__all__ = ["LabelTable"]

# Points for which labels' vectors are not unpacked for a product of matrices.
_FEW_POINTS = 8
# Labels scored at a time, and how many more than k are looked at in double precision.
_BLOCK_LABELS, _SPARE = 4096, 8
_EVERY_COLUMN = np.empty(0, dtype=np.int64)


class LabelTable(NamedTuple):
    """A vector for each label: bytes with a scale for each label, or float32 with no scales at all.

    Examples
    --------
    >>> table = LabelTable.of(np.eye(3, dtype=np.float32), None)
    >>> codes, scores = table.best(np.array([[0.1, 0.3, 0.2]], dtype=np.float32), k=2)
    >>> codes, scores.round(2)
    (array([[1, 2]]), array([[0.3, 0.2]]))
    """

    numbers: NDArray
    scales: NDArray[np.float32]

    @classmethod
    def of(cls, numbers: NDArray, scales: NDArray[np.float32] | None) -> Self:
        """Table of what a model keeps; ``scales`` is None for float32."""
        return cls(numbers, NO_SCALES if scales is None else scales)

    @property
    def n_classes(self) -> int:
        """Number of labels."""
        return self.numbers.shape[0]

    def take(self, labels: slice | NDArray[np.int64]) -> LabelTable:
        """Some of the labels."""
        return LabelTable(
            self.numbers[labels], self.scales[labels] if self.scales.size else self.scales
        )

    def stored(self) -> LabelTable:
        """The same in bytes."""
        return self if self.scales.size else LabelTable(*pack(self.numbers, "int8"))

    def replaced(
        self, labels: NDArray[np.int64], vectors: NDArray[np.float32], dither: np.random.Generator
    ) -> LabelTable:
        """A copy in which some labels have other vectors, with dither as for `pack`; for bytes."""
        numbers, scales = self.numbers.copy(), self.scales.copy()
        numbers[labels], scales[labels] = pack(vectors, "int8", dither)
        return LabelTable(numbers, scales)

    def unpacked(self) -> NDArray[np.float32]:
        """The vectors as float32."""
        return unpack(Weights(*self))

    def best(self, points: NDArray[np.float32], k: int) -> tuple[Codes, NDArray[np.float64]]:
        """Labels with the k largest products of each point, found by looking at all; ties by code."""
        wanted = min(k + _SPARE, self.n_classes)
        scores = np.full((len(points), wanted), -np.inf, dtype=np.float32)
        codes = np.full((len(points), wanted), -1, dtype=np.int64)
        for part in slices(self.n_classes, _BLOCK_LABELS):
            push_rows(self.take(part).rough(points), part.start, _EVERY_COLUMN, scores, codes)
        exact = self.products_at(points, codes)
        order = np.lexsort((codes, -exact), axis=1)[:, :k]
        return np.take_along_axis(codes, order, 1), np.take_along_axis(exact, order, 1)

    def rough(self, points: NDArray[np.float32]) -> NDArray[np.float32]:
        """Products with all labels, in single precision."""
        if len(points) > _FEW_POINTS:
            return points @ self.unpacked().T
        out = np.empty((len(points), self.n_classes), dtype=np.float32)
        scan_labels(points.ravel(), self.numbers.ravel(), self.scales, out)
        return out

    def products_at(self, points: NDArray[np.float32], codes: Codes) -> NDArray[np.float64]:
        """Products of each point with its labels ``codes[i]``."""
        out = np.empty(codes.shape)
        label_products(points, self.numbers, self.scales, codes, out)
        return out

    def products(self, points: NDArray[np.float32]) -> NDArray[np.float64]:
        """Products with all labels, in double precision."""
        wide, parts = points.astype(np.float64), slices(self.n_classes, _BLOCK_LABELS)
        found = np.hstack([wide @ self.numbers[part].T for part in parts])
        return found * self.scales if self.scales.size else found

    def is_sound(self) -> bool:
        """Whether vectors are of bytes with a scale for each, or of finite numbers without any."""
        numbers, scales = self
        if numbers.dtype != np.int8:
            is_plain = numbers.ndim == 2 and numbers.dtype == np.float32
            return bool(scales.size == 0 and is_plain and np.isfinite(numbers).all())
        fits = scales.dtype == np.float32 and scales.shape == numbers.shape[:1]
        return bool(numbers.ndim == 2 and fits and np.isfinite(scales).all())
