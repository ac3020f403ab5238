"""Linear outputs with dense weights: the product that several baselines begin a prediction with."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from locole.exceptions import ModelFileError
from locole.kernels.csr import Csr
from locole.kernels.product import NO_SCALES, add_dense_product
from locole.kernels.simd import WIDTH, padded_width

__all__ = ["check_weights", "linear_outputs", "padded"]


def padded(W: Any) -> NDArray[np.float32]:
    """Weights in float32, with columns of zeros up to whole vectors; W may be sparse."""
    W = W.toarray() if sp.issparse(W) else W
    missing = -W.shape[-1] % WIDTH
    if missing:
        W = np.concatenate([W, np.zeros((*W.shape[:-1], missing), dtype=W.dtype)], axis=-1)
    return np.ascontiguousarray(W, dtype=np.float32)


def linear_outputs(
    X: sp.csr_array, W: NDArray[np.float32], constant: NDArray[np.float32], n_outputs: int
) -> NDArray[np.float32]:
    """``X @ W + constant``, the first ``n_outputs`` columns; W and constant are `padded`."""
    out = np.empty((X.shape[0], W.shape[1]), dtype=np.float32)
    out[:] = constant
    add_dense_product(
        Csr.of(X), np.arange(X.shape[0]), W.reshape(-1), NO_SCALES,
        W.shape[1], 0, W.shape[1], out.reshape(-1),
    )  # fmt: skip
    return out[:, :n_outputs]


def check_weights(W: Any, constant: Any, *, n_features: int, n_outputs: int) -> None:
    """Raise ModelFileError if `linear_outputs` could not use them."""
    width = padded_width(n_outputs)
    if W.dtype != np.float32 or W.shape != (n_features, width) or not W.flags.c_contiguous:
        raise ModelFileError("its weights do not fit its outputs and features")
    if constant.dtype != np.float32 or constant.shape != (width,):
        raise ModelFileError("its intercepts do not fit its outputs")
    if not (np.isfinite(W).all() and np.isfinite(constant).all()):
        raise ModelFileError("its weights are not all finite")
