"""FFT decoding of Nelson's polynomial phases."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from locole.decoders.base import FLOAT32_ROUNDOFF, Best, Codebook, Decoder, by_code
from locole.kernels.fourier import dft_scores, forward, scan_dft
from locole.kernels.lanes import place

__all__ = ["FourierDecoder"]

# Entries of the chirps made at a time.
_BLOCK_CHIRPS = 1 << 16


class ChirpCodebook(Codebook, Protocol):
    """A union of n_bases Fourier bases, each multiplied by a chirp."""

    @property
    def n_bases(self) -> int:
        """Bases that hold a label."""

    def conjugate_chirps(self, start: int, stop: int, dtype: np.dtype) -> NDArray:
        """Conjugated chirps of bases ``start … stop−1``, shape (stop − start, dim)."""


class FourierDecoder(Decoder):
    """Multiply by a chirp, fold, transform: one complex transform of length n scores 2n labels."""

    name = "fft"
    structure = "dft"

    def scan(self, embedding: ChirpCodebook, Z: NDArray[np.float32], best: Best) -> None:
        """One transform for each row and pair of bases, fused with the running lists."""
        Z = Z * np.float32(0.5 / math.sqrt(embedding.dim))
        labels = embedding.labels_of_columns()
        wave, plan = _plan(embedding.dim, Z.dtype)
        for start, stop in _pair_blocks(embedding):
            chirps = embedding.conjugate_chirps(start, stop, Z.dtype)
            first = start * embedding.dim
            scan_dft(Z, chirps, wave, plan, first, embedding.n_columns, labels, *best)

    def scores(self, embedding: ChirpCodebook, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the same transforms in double precision, written out."""
        Z = Z * (0.5 / math.sqrt(embedding.dim))
        wave, plan = _plan(embedding.dim, Z.dtype)
        blocks = _pair_blocks(embedding)
        n = embedding.dim
        out = np.empty((Z.shape[0], blocks[-1][1] * n))
        for start, stop in blocks:
            chirps = embedding.conjugate_chirps(start, stop, Z.dtype)
            dft_scores(Z, chirps, wave, plan, out[:, start * n : stop * n])
        return by_code(embedding, out)

    def scan_error(self, embedding: ChirpCodebook) -> float:
        """A few roundings for each pass of two transforms of length 2^k < 4n."""
        return 8 * (math.log2(embedding.dim) + 4) * FLOAT32_ROUNDOFF


@lru_cache(maxsize=8)
def _plan(n: int, dtype: np.dtype) -> tuple[NDArray, tuple[NDArray, ...]]:
    """Bluestein's wave exp(−πi u²/n) and, for its convolution, what `kernels.fourier` needs.

    The plan is (sizes of the sub-transforms, cosines, sines, real and imaginary part of the spectrum
    of the conjugate wave, in scrambled order and divided by m).
    """
    m = 1 << (2 * n - 2).bit_length()
    sizes = [m]
    while sizes[-1] > 1:
        odd = len(sizes) == 1 and m.bit_length() % 2 == 0
        sizes.append(sizes[-1] // (2 if odd else 4))
    sizes_array = np.array(sizes, dtype=np.int64)
    circle = np.exp(-2j * np.pi / m * np.arange(m))
    cosines, sines = circle.real.copy(), circle.imag.copy()
    u = np.arange(n)
    wave = np.exp(-1j * np.pi / n * (u * u % (2 * n)))
    kernel = np.zeros(m, dtype=complex)
    kernel[:n] = wave.conj()
    kernel[m - n + 1 :] = wave.conj()[:0:-1]
    spectrum = _scrambled_spectrum(kernel, sizes_array, cosines, sines) / m
    parts = (cosines, sines, spectrum.real, spectrum.imag)
    complex_dtype = np.result_type(dtype, np.complex64)
    plan: tuple[Any, ...] = (sizes_array, *(np.ascontiguousarray(p, dtype=dtype) for p in parts))
    return wave.astype(complex_dtype), plan


def _scrambled_spectrum(
    signal: NDArray, sizes: NDArray, cosines: NDArray, sines: NDArray
) -> NDArray:
    """Transform one signal with the kernel itself, so that the order is the kernel's."""
    m = signal.size
    at = place.py_func(np.arange(m))
    re, im = np.zeros((2, place.py_func(m) + place.py_func(1)))
    re[at], im[at] = signal.real, signal.imag
    forward(re, im, sizes, cosines, sines)
    return re[at] + 1j * im[at]


def _pair_blocks(embedding: ChirpCodebook) -> list[tuple[int, int]]:
    """Even numbers of bases; a last odd one is joined by a basis without labels."""
    size = 2 * max(1, _BLOCK_CHIRPS // (2 * embedding.dim))
    n = embedding.n_bases + embedding.n_bases % 2
    return [(start, min(start + size, n)) for start in range(0, n, size)]
