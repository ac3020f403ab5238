"""Linear regressors: weights, how they are kept, and the product with rows."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from locole.atomic import of_one_moment
from locole.exceptions import ModelFileError
from locole.kernels.csr import Csr
from locole.kernels.product import add_dense_product, add_sparse_product
from locole.kernels.simd import WIDTH, padded_width
from locole.regressors.base import TargetRegressor
from locole.regressors.storage import Storage, Weights, narrowed, pack, unpack, widened
from locole.samples import checked_rows

__all__ = ["LinearRegressor"]


class LinearRegressor(TargetRegressor):
    """Points ``X @ coef_.T + intercept_``; a subclass finds the weights and calls `_set_weights`."""

    _learnt: ClassVar = {
        "n_outputs_": int,
        "_weights": (np.ndarray, sp.csr_array),
        "_scales": np.ndarray,
        "_constant": np.ndarray,
        "_has_constant": bool,
    }

    fit_intercept: bool | Literal["auto"]
    storage: Storage

    def _wants_constant(self, X: Any) -> bool:
        """Whether a constant feature is added: by default if a quarter of X is not zero."""
        if self.fit_intercept != "auto":
            return bool(self.fit_intercept)
        filled = X.count_nonzero() if sp.issparse(X) else np.count_nonzero(X)
        return bool(4 * filled >= X.shape[0] * X.shape[1])

    def _set_weights(self, W: Any, n_outputs: int, *, constant: bool) -> None:
        """Keep weights of shape (n_features, width), width ≥ n_outputs; the last row if ``constant``."""
        n = W.shape[0] - constant
        last = np.zeros(W.shape[1], dtype=W.dtype)
        if constant:
            last = W[[n]].toarray().ravel() if sp.issparse(W) else W[n].copy()
        self._constant, self._has_constant = last, constant
        self._weights, self._scales = W[:n], np.empty(0, dtype=np.float32)
        if self.storage != "float32" and not sp.issparse(W):
            if W.shape[1] % 2:  # two numbers of four bits share a byte
                W, last = np.pad(W, [(0, 0), (0, 1)]), np.pad(last, (0, 1))
            numbers = W[:n].astype(np.float32, copy=False)
            self._weights, self._scales = pack(numbers, self._learning_storage)
            self._constant = last.astype(np.float32)
        self.n_outputs_ = n_outputs

    def _all_weights(self) -> Any:
        """Weights with the constant feature as the last row, as the solvers have them."""
        W = self._float_weights()
        if not self._has_constant:
            return W
        stack = sp.vstack if sp.issparse(W) else np.vstack
        W = stack([W, self._constant[None, :]])
        return sp.csr_array(W) if sp.issparse(W) else W

    @property
    def _is_packed(self) -> bool:
        """Whether weights are dense and stored as the parameters say, or wider to learn more."""
        kept = {np.float32: "float32", np.uint16: "float16", np.int8: "int8", np.uint8: "int4"}
        storage = kept.get(self._weights.dtype.type)
        is_widened = (storage, self.storage) == ("int8", "int4")
        return not sp.issparse(self._weights) and (storage == self.storage or is_widened)

    @property
    def _kept(self) -> Weights:
        return Weights(self._weights, self._scales)

    @property
    def _learning_storage(self) -> Storage:
        """Rounded to four bits, what is learnt later would be lost."""
        return "int8" if self.storage == "int4" else self.storage

    def _widen(self) -> None:
        """Keep weights of four bits in whole bytes."""
        if self._weights.dtype == np.uint8:
            self._weights, self._scales = widened(self._kept)

    def compact(self) -> None:
        """Keep weights as the parameters say, once nothing is to be learnt soon."""
        if self.storage == "int4" and self._weights.dtype == np.int8:
            self._weights, self._scales = narrowed(self._kept)

    def _some_weights(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Some rows of `_all_weights`, of packed weights, without making the others."""
        is_constant = rows == self._weights.shape[0]
        features = rows[~is_constant]
        scales = self._scales[features] if self._scales.size else self._scales
        found = np.empty((rows.size, self._kept.width), dtype=np.float32)
        found[~is_constant] = unpack(Weights(self._weights[features], scales))
        found[is_constant] = self._constant
        return found

    def _replace_some(self, rows: NDArray, W: NDArray, dither: np.random.Generator) -> None:
        """Set some rows of packed weights; the others stay as they are stored."""
        self._widen()
        is_constant = rows == self._weights.shape[0]
        features = rows[~is_constant]
        new, scales = pack(W[~is_constant].astype(np.float32), self._learning_storage, dither)
        self._weights, self._scales = self._weights.copy(), self._scales.copy()
        self._weights[features] = new
        if self._scales.size:
            self._scales[features] = scales
        if is_constant.any():
            self._constant = W[is_constant][0].astype(np.float32)

    grows = True

    def grow(self, n_features: int, n_outputs: int) -> None:
        """Add features and outputs with weights of zero."""
        self._widen()
        W, scales = self._weights, self._scales
        more = n_features - W.shape[0]
        # A direct solution has the width of its outputs, others one of whole vectors.
        width = n_outputs if W.shape[1] % WIDTH else padded_width(n_outputs)
        wider = max(width - W.shape[1], 0)
        if sp.issparse(W):
            W = W.copy()
            W.resize(n_features, W.shape[1] + wider)
        elif more or wider:
            W = np.pad(W, [(0, more), (0, wider)])
        self._weights, self._constant = W, np.pad(self._constant, (0, wider))
        self._scales = np.pad(scales, (0, more)) if scales.size else scales
        self.n_outputs_, self.n_features_in_ = n_outputs, n_features

    def _grown(self, of_features: NDArray, n_features: int) -> NDArray:
        """Numbers of features with zeros for new ones; that of the constant feature stays the last."""
        known = n_features - (of_features.size - self._has_constant)
        at = of_features.size - self._has_constant
        return np.insert(of_features, [at] * known, 0) if known else of_features

    @property
    def coef_(self) -> Any:
        """Weights, shape (n_outputs, n_features)."""
        W = self._float_weights()[:, : self.n_outputs_].T
        return sp.csr_array(W) if sp.issparse(W) else W

    def weights_of(self, features: NDArray[np.int64]) -> NDArray:
        """Weights of some features, shape (features, n_outputs).

        Parameters
        ----------
        features : array of int
            Numbers of features.
        """
        W, scales = self._weights, self._scales
        if sp.issparse(W):
            return W[features][:, : self.n_outputs_].toarray()
        some = unpack(Weights(W[features], scales[features] if scales.size else scales))
        return some[:, : self.n_outputs_]

    def _float_weights(self) -> Any:
        W = self._weights
        return W if sp.issparse(W) else unpack(self._kept)

    @property
    def intercept_(self) -> NDArray:
        """Constant part, shape (n_outputs,)."""
        return self._constant[: self.n_outputs_]

    def _check_learnt(self) -> None:
        W, constant, scales = self._weights, self._constant, self._scales
        stored = (
            ("float32", "float64")
            if sp.issparse(W)
            else ("float32", "float64", "uint16", "int8", "uint8")
        )
        n_scales = W.shape[0] if W.dtype in (np.int8, np.uint8) else 0
        fits = (
            W.dtype in stored
            and W.ndim == 2
            and W.shape[0] == getattr(self, "n_features_in_", None)
            and 1 <= self.n_outputs_ <= self._kept.width
            and constant.shape == (self._kept.width,)
            and constant.dtype == (np.float64 if W.dtype == np.float64 else np.float32)
            and scales.dtype == np.float32
            and scales.shape == (n_scales,)
        )
        if not fits:
            raise ModelFileError("its elastic net has arrays that do not fit together")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_weights")

    @of_one_moment
    def predict(self, X: Any) -> NDArray:
        """Return ``X @ coef_.T + intercept_``."""
        check_is_fitted(self)
        return self._points(checked_rows(self, X, dtype=[np.float64, np.float32], reset=False))

    def predict_checked(self, X: Any) -> NDArray:
        """Return ``X @ coef_.T + intercept_`` for rows that have been checked."""
        # The message about features is predict's.
        return self._points(X) if X.shape[1] == self._weights.shape[0] else self.predict(X)

    def _points(self, X: Any) -> NDArray:
        W, width = self._weights, self._kept.width
        out = np.empty((X.shape[0], width), dtype=self._constant.dtype)
        out[:] = self._constant
        if W.dtype == np.float64:
            out += X @ W
            return out[:, : self.n_outputs_]
        if width % WIDTH and not sp.issparse(W):
            out += X @ self._float_weights()  # a direct solution in fewer bits
            return out[:, : self.n_outputs_]
        X = sp.csr_array(X)
        rows = Csr(X.indptr, X.indices, X.data.astype(np.float32, copy=False))
        if sp.issparse(W):
            add_sparse_product(rows, Csr.of(W), out)
        else:
            numbers, every = W.reshape(-1), np.arange(X.shape[0])
            add_dense_product(rows, every, numbers, self._scales, width, 0, width, out.ravel())
        return out[:, : self.n_outputs_]
