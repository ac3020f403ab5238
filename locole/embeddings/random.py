"""Random embeddings: each vector is a pure function of (seed, label), so nothing is stored."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from locole.embeddings.base import Embedding, wanted_dim
from locole.exceptions import LocoleError
from locole.kernels.philox import fill_gaussian, fill_rademacher

__all__ = ["ComplexGaussian", "Gaussian", "Rademacher"]

# Label blocks kept for the dense decoder, which would otherwise draw the same rows at every call.
_BLOCK = 1024
_DEFAULT_CACHE = 256 << 20


class RandomEmbedding(Embedding):
    """What the random families share: unbounded capacity and a cache of drawn rows.

    Parameters
    ----------
    n_classes, dim, random_state, assignment
        See `Embedding`.
    cache_bytes : int
        Memory that float32 rows drawn before may occupy; 0 keeps nothing. Only speed depends on it.
    stream : int, optional
        Which of the generator's streams vectors are drawn from; by default one of the family's own, so
        that two families of the same seed are independent.
    """

    #: Stream of the family; no two families have the same.
    default_stream: ClassVar[int]

    def __init__(
        self,
        n_classes: int,
        dim: int,
        *,
        cache_bytes: int = _DEFAULT_CACHE,
        stream: int | None = None,
        **kwargs: Any,
    ) -> None:
        self.stream = self.default_stream if stream is None else stream
        super().__init__(n_classes, dim, **kwargs)
        self.cache_bytes = cache_bytes
        self._cache: dict[int, NDArray] = {}

    def _check_dim(self) -> None:
        if self.random_state >= 1 << 64:
            raise LocoleError("random_state must be below 2**64: it is the generator's key.")
        if type(self.stream) is not int or not 0 <= self.stream < 1 << 32:
            raise LocoleError(f"stream must be an int from 0 to 2**32 - 1, not {self.stream!r}.")

    def _extra_spec(self) -> dict[str, Any]:
        own = {"cache_bytes": self.cache_bytes, "stream": self.stream}
        usual = {"cache_bytes": _DEFAULT_CACHE, "stream": self.default_stream}
        return {name: value for name, value in own.items() if value != usual[name]}

    @property
    def capacity(self) -> float:
        """Any number of labels can be drawn."""
        return math.inf

    @classmethod
    def default_dim(cls, n_classes: int) -> int:
        """As many real outputs as the structured families take."""
        return max(16, wanted_dim(n_classes)) // (2 if cls.is_complex else 1)

    def real_block(self, start: int, stop: int, dtype: DTypeLike = np.float32) -> NDArray:
        """Rows ``start … stop−1`` of the real view, from the cache where it has them."""
        if np.dtype(dtype) != np.float32:
            return self.real_rows(np.arange(start, stop), dtype)
        out = np.empty((stop - start, self.real_dim), dtype=np.float32)
        for block in range(start // _BLOCK, -(-stop // _BLOCK)):
            first = block * _BLOCK
            low, high = max(start, first), min(stop, first + _BLOCK)
            out[low - start : high - start] = self._cached(block)[low - first : high - first]
        return out

    def _cached(self, block: int) -> NDArray:
        rows = self._cache.get(block)
        if rows is None:
            first = block * _BLOCK
            rows = self.real_rows(np.arange(first, min(first + _BLOCK, self.n_classes)))
            if (len(self._cache) + 1) * _BLOCK * self.real_dim * 4 <= self.cache_bytes:
                self._cache[block] = rows
        return rows

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_cache": {}}


class Rademacher(RandomEmbedding):
    """Entries ``±1/√n``, independent and equally likely.

    With probability at least 1−δ the coherence is below ``√(2 ln(C²/δ) / n)``.

    Examples
    --------
    >>> embedding = Rademacher(1000, dim=4)
    >>> embedding.rows([7])
    array([[ 0.5, -0.5,  0.5,  0.5]], dtype=float32)
    >>> Rademacher(10**6, dim=4).rows([7])  # does not depend on the number of labels
    array([[ 0.5, -0.5,  0.5,  0.5]], dtype=float32)
    """

    name = "rademacher"
    default_stream = 0

    def _vectors(self, columns: NDArray[np.int64], dtype: np.dtype) -> NDArray:
        out = np.empty((columns.size, self.dim), dtype=dtype)
        scale = dtype.type(1 / math.sqrt(self.dim))
        fill_rademacher(columns, np.uint64(self.random_state), np.uint64(self.stream), scale, out)
        return out


class Gaussian(RandomEmbedding):
    """Independent normal entries, scaled to unit length: uniform on the sphere.

    Examples
    --------
    >>> import numpy as np
    >>> rows = Gaussian(1000, dim=64).rows([0, 1])
    >>> bool(np.allclose(np.linalg.norm(rows, axis=1), 1))
    True
    """

    name = "gaussian"
    default_stream = 1

    def _vectors(self, columns: NDArray[np.int64], dtype: np.dtype) -> NDArray:
        out = np.empty((columns.size, self.real_dim), dtype=dtype)
        fill_gaussian(columns, np.uint64(self.random_state), np.uint64(self.stream), out)
        return out


class ComplexGaussian(Gaussian):
    """Complex normal entries, scaled to unit length; costs ``2·dim`` real outputs.

    In the real view these are draws from the distribution of `Gaussian` of twice the dim, from another
    stream; only ``|⟨·,·⟩|`` differs.

    Examples
    --------
    >>> embedding = ComplexGaussian(1000, dim=32)
    >>> embedding.rows([0]).dtype, embedding.real_dim
    (dtype('complex64'), 64)
    """

    name = "complex_gaussian"
    default_stream = 2
    is_complex = True
