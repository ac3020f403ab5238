"""The network's numbers: which arrays there are, how they begin, and what they make of rows.

    a = X W + b,  h = relu(norm(a)),  …,  z = h V + c (+ X S, the linear part),  z / ‖z‖

W and S are one array, `first`, of n_features rows: the columns of W, then those of S, then zeros up to
a multiple of 16. All else is dense.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from locole.kernels.csr import Csr
from locole.kernels.dense import fill_products
from locole.kernels.product import NO_SCALES, add_dense_product
from locole.kernels.simd import padded_width

__all__ = ["NORM_EPS", "Arrays", "Shape", "first_weights", "forward", "initial", "product"]

#: Added to variances, as torch does.
NORM_EPS = 1e-5
_SMALLEST = np.float32(1e-12)
# Rows of weights drawn at a time.
_BLOCK = 1 << 12


Arrays = dict[str, NDArray[np.float32]]


class Shape(NamedTuple):
    """Sizes and switches of a network."""

    n_features: int
    hidden: tuple[int, ...]
    n_outputs: int
    batch_norm: bool = False
    skip: bool = False
    normalise: bool = True
    scaled: bool = False
    #: Labels whose vectors are learnt as well; none after training.
    n_learnt: int = 0

    @property
    def first_columns(self) -> int:
        """Columns of the first layer that mean something."""
        return self.hidden[0] + self.skip * self.n_outputs

    @property
    def width(self) -> int:
        """Columns of the first layer."""
        return padded_width(self.first_columns)

    def arrays(self) -> dict[str, tuple[int, ...]]:
        """Shapes of all dense arrays by name; those that begin with "running" are not learnt."""
        shapes: dict[str, tuple[int, ...]] = {"bias0": (self.hidden[0],)}
        sizes = (*self.hidden, self.n_outputs)
        for i, (before, after) in enumerate(itertools.pairwise(sizes), start=1):
            if self.batch_norm:
                for name in ("gain", "shift", "running_mean", "running_var"):
                    shapes[f"{name}{i}"] = (before,)
            shapes[f"weight{i}"], shapes[f"bias{i}"] = (after, before), (after,)
        if self.scaled:
            shapes["log_scale"] = (1,)
        if self.n_learnt:
            shapes["vectors"] = (self.n_learnt, self.n_outputs)
        return shapes


def first_weights(shape: Shape, seed: int) -> NDArray[np.float32]:
    """Weights of the first layer: uniform in ±1/√n_features, as torch's, and no linear part."""
    W = np.zeros((shape.n_features, shape.width), dtype=np.float32)
    rng, bound = np.random.default_rng([seed, 0]), np.float32(shape.n_features**-0.5)
    for start in range(0, shape.n_features, _BLOCK):
        some = W[start : start + _BLOCK, : shape.hidden[0]]
        some[:] = (rng.random(some.shape, dtype=np.float32) * 2 - 1) * bound
    return W


def initial(shape: Shape, seed: int, *, scale: float = 1.0) -> Arrays:
    """Dense arrays as they begin: weights and biases uniform in ±1/√inputs, as torch's."""
    rng = np.random.default_rng([seed, 1])
    inputs = (shape.n_features, *shape.hidden)
    out = {}
    for name, size in shape.arrays().items():
        kind, number = name.rstrip("0123456789"), name[len(name.rstrip("0123456789")) :]
        if kind in ("weight", "bias"):
            bound = inputs[int(number)] ** -0.5
            out[name] = rng.uniform(-bound, bound, size).astype(np.float32)
        else:
            start = {"gain": 1.0, "running_var": 1.0, "log_scale": np.log(scale)}.get(kind, 0.0)
            out[name] = np.full(size, start, dtype=np.float32)
    return out


def product(X: sp.csr_array, W: NDArray) -> NDArray[np.float32]:
    """Rows of X times the first layer, float32 or half precision as uint16."""
    A = np.zeros((X.shape[0], W.shape[1]), dtype=np.float32)
    rows, width = np.arange(X.shape[0]), W.shape[1]
    add_dense_product(Csr.of(X), rows, W.reshape(-1), NO_SCALES, width, 0, width, A.reshape(-1))
    return A


def forward(shape: Shape, arrays: Any, A: NDArray[np.float32]) -> NDArray[np.float32]:
    """Points of rows whose product with the first layer is A.

    The bits of a row do not depend on the others, as they would with BLAS.
    """
    H = A[:, : shape.hidden[0]] + arrays["bias0"]
    for i in range(1, len(shape.hidden) + 1):
        if shape.batch_norm:
            gain = arrays[f"gain{i}"] / np.sqrt(arrays[f"running_var{i}"] + np.float32(NORM_EPS))
            H = (H - arrays[f"running_mean{i}"]) * gain + arrays[f"shift{i}"]
        np.maximum(H, 0, out=H)
        H = _times(H, arrays[f"weight{i}"]) + arrays[f"bias{i}"]
    if shape.skip:
        H += A[:, shape.hidden[0] : shape.first_columns]
    if shape.normalise:
        H /= np.maximum(np.linalg.norm(H, axis=1, keepdims=True), _SMALLEST)
    if shape.scaled:
        H *= np.exp(arrays["log_scale"])
    return H


def _times(H: NDArray, V: NDArray) -> NDArray:
    """``H @ V.T``."""
    out = np.empty((H.shape[0], V.shape[0]), dtype=np.result_type(H, V))
    H, V = (np.ascontiguousarray(array, dtype=out.dtype) for array in (H, V))
    fill_products(H.reshape(-1), V.reshape(-1), *out.shape, V.shape[1], out.reshape(-1))
    return out
