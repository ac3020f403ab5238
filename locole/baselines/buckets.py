"""Labels hashed into buckets several times, as targets of a regressor."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from locole.exceptions import LocoleError

__all__ = ["BucketTargets", "block_softmax", "hashed"]

# A Mersenne prime: products of two smaller numbers fit into 64 bits.
_PRIME = (1 << 31) - 1


def hashed(n_classes: int, *, n_buckets: int, n_repetitions: int, seed: int) -> NDArray[np.int32]:
    """Bucket of each label in each repetition, shape (n_classes, n_repetitions).

    ``((a·c + b) mod p) mod n_buckets`` with a ≠ 0 and b drawn at random and p = 2^31 − 1: Carter and
    Wegman's 2-universal family. Two labels meet with a probability of about 1/n_buckets.

    Examples
    --------
    >>> hashed(5, n_buckets=3, n_repetitions=2, seed=0).shape
    (5, 2)
    """
    rng = np.random.default_rng(seed)
    factors = rng.integers(1, _PRIME, n_repetitions, dtype=np.int64)
    shifts = rng.integers(0, _PRIME, n_repetitions, dtype=np.int64)
    codes = np.arange(n_classes, dtype=np.int64)[:, None]
    return ((factors * codes + shifts) % _PRIME % n_buckets).astype(np.int32)


class BucketTargets:
    """One-hot vectors of the buckets of each sample's label, all repetitions side by side.

    What regressors ask of targets: `locole.regressors.base.LabelTargets`. The softmax is one for each
    repetition, over its buckets; losses are their sums.

    Parameters
    ----------
    codes : array of shape (n_samples,)
    buckets : array of shape (n_classes, n_repetitions)
    n_buckets : int
    """

    def __init__(
        self, codes: NDArray[np.int64], buckets: NDArray[np.int32], n_buckets: int
    ) -> None:
        self.codes, self.n_buckets = codes, n_buckets
        #: Output of each label in each repetition.
        self.places = buckets + n_buckets * np.arange(buckets.shape[1], dtype=np.int64)

    @property
    def n_classes(self) -> int:
        """Number of labels."""
        return self.places.shape[0]

    @property
    def shape(self) -> tuple[int, int]:
        """``(n_samples, n_repetitions · n_buckets)``."""
        return self.codes.size, self.places.shape[1] * self.n_buckets

    def rows(self, index: slice | NDArray) -> NDArray[np.float32]:
        """Targets of these samples."""
        return self._one_hot(self.codes[index], 0, self.shape[1])

    def table(self, start: int, stop: int) -> NDArray[np.float32]:
        """Outputs ``start … stop−1`` of every label."""
        return self._one_hot(np.arange(self.n_classes), start, stop)

    def take(self, index: NDArray) -> BucketTargets:
        """Targets of these samples."""
        some = copy(self)
        some.codes = self.codes[index]
        return some

    def _one_hot(self, codes: NDArray[np.int64], start: int, stop: int) -> NDArray[np.float32]:
        places = self.places[codes]
        out = np.zeros((codes.size, stop - start), dtype=np.float32)
        rows, columns = np.nonzero((places >= start) & (places < stop))
        out[rows, places[rows, columns] - start] = 1
        return out

    def softmax(
        self, *, label_smoothing: float = 0.0, **others: Any
    ) -> Callable[..., tuple[NDArray, NDArray]]:
        """Function from points and codes to losses and their gradients."""
        if others.get("offsets") is not None or others.get("n_sampled") is not None:
            raise LocoleError(
                "buckets have neither a prior nor sampled labels: give prior=0, n_sampled=None."
            )

        def losses(Z: NDArray, codes: NDArray, **_: Any) -> tuple[NDArray, NDArray]:
            gradient, log_sums = block_softmax(Z, self.n_buckets)
            places, rows = self.places[codes], np.arange(codes.size)[:, None]
            rest = np.float32(label_smoothing / self.n_buckets)
            hit = Z[rows, places].sum(axis=1, dtype=np.float64)
            loss = log_sums.sum(axis=1, dtype=np.float64) - (1 - label_smoothing) * hit
            if label_smoothing:
                loss -= Z.sum(axis=1, dtype=np.float64) * float(rest)
                gradient -= rest
            gradient[rows, places] -= np.float32(1 - label_smoothing)
            return loss, gradient

        return losses


def block_softmax(Z: NDArray, n_buckets: int) -> tuple[NDArray, NDArray]:
    """Softmax within blocks of ``n_buckets`` columns, and the logarithms of the blocks' sums.

    Examples
    --------
    >>> block_softmax(np.zeros((1, 4)), 2)[0]
    array([[0.5, 0.5, 0.5, 0.5]])
    """
    blocks = Z.reshape(Z.shape[0], -1, n_buckets)
    top = blocks.max(axis=2, keepdims=True)
    powers = np.exp(blocks - top)
    sums = powers.sum(axis=2, keepdims=True)
    powers /= sums
    return powers.reshape(Z.shape), (top + np.log(sums))[:, :, 0]
