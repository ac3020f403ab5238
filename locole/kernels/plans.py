"""Tables that the transforms of `locole.kernels.fourier` read, made once for each length."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from locole.kernels.fourier import forward
from locole.kernels.lanes import place

__all__ = ["bluestein_plan"]


@lru_cache(maxsize=8)
def bluestein_plan(n: int, dtype: np.dtype) -> tuple[NDArray, tuple[NDArray, ...]]:
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
