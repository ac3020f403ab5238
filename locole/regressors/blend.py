"""Several regressors whose points are added up."""

from __future__ import annotations

import copy
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import _num_samples

from locole.exceptions import LocoleError, ModelFileError
from locole.io import saved_as
from locole.regressors.base import TargetRegressor, TargetsLike

__all__ = ["BlendRegressor", "weigh_features"]


@saved_as("regressor.blend")
class BlendRegressor(TargetRegressor):
    """Weighted sum of the points of fitted regressors, so of the scores of every label.

    Parameters
    ----------
    parts : list of TargetRegressor
        Fitted on the same targets.
    weights : list of float
        One for each part.
    feature_weights : array of shape (n_features,), optional
        Features are multiplied by these before the parts see them: a regressor whose penalty is the
        same for all then relies more on those that are multiplied by more.

    Examples
    --------
    >>> import numpy as np
    >>> from locole.regressors import ElasticNetRegressor
    >>> X, Y = np.eye(3), np.arange(6.0).reshape(3, 2)
    >>> part = ElasticNetRegressor(l2=1e-9, fit_intercept=False).fit(X, Y)
    >>> BlendRegressor([part, part], [1.0, 0.5]).predict(X)[2].round(3)
    array([6. , 7.5])
    """

    _learnt: ClassVar = {}

    def __init__(
        self,
        parts: list[TargetRegressor],
        weights: list[float],
        *,
        feature_weights: NDArray[np.float32] | None = None,
    ) -> None:
        self.parts = parts
        self.weights = weights
        self.feature_weights = feature_weights

    @property
    def n_outputs_(self) -> int:  # type: ignore[override]
        """Number of outputs."""
        return self.parts[0].n_outputs_

    @property
    def n_features_in_(self) -> int:
        """Number of features."""
        return self.parts[0].n_features_in_

    @property
    def vectors_(self) -> NDArray[np.float32] | None:
        """Label vectors that the points belong to, if they were learnt."""
        return getattr(self.parts[0], "vectors_", None)

    def fit(
        self, X: Any, targets: TargetsLike | ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit every part anew; the weights stay."""
        if any(getattr(part, "learns_embedding", False) for part in self.parts):
            raise LocoleError(
                "points of several regressors can be added for the same label vectors only: take "
                "embedding_rate=0 for each of them."
            )
        X = weigh_features(X, self.feature_weights)
        # Copies: the parts stay as they are if one of them fails.
        self.parts = [copy.copy(part).fit(X, targets, sample_weight) for part in self.parts]
        return self

    def partial_fit(
        self, X: Any, targets: TargetsLike | ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Let every part that counts learn from more rows."""
        X = weigh_features(X, self.feature_weights)
        parts = [copy.copy(part) for part in self.parts]
        for part, weight in zip(parts, self.weights, strict=True):
            if weight == 0:
                continue
            if not hasattr(part, "partial_fit"):
                raise LocoleError(f"{type(part).__name__} cannot learn more rows: fit again.")
            part.partial_fit(X, targets, sample_weight)
        self.parts = parts
        return self

    def clear(self) -> None:
        """Let the parts forget what takes room; for a sum whose weights are all zero."""
        for part in self.parts:
            if hasattr(part, "clear"):
                part.clear()

    def predict(self, X: Any) -> NDArray:
        """Return the weighted sum of the parts' points."""
        X = weigh_features(X, self.feature_weights)
        total: Any = None
        for part, weight in zip(self.parts, self.weights, strict=True):
            if weight != 0:
                Z = part.predict(X)
                Z *= Z.dtype.type(weight)
                total = Z if total is None else total + Z
        if total is None:
            return np.zeros((_num_samples(X), self.n_outputs_), dtype=np.float32)
        return total

    @classmethod
    def _from_state(cls, values: dict[str, Any]) -> Self:
        made = super()._from_state(values)
        parts, weights = made.parts, made.weights
        fits = (
            isinstance(parts, list)
            and isinstance(weights, list)
            and 1 <= len(parts) == len(weights)
            and all(isinstance(part, TargetRegressor) for part in parts)
            and all(isinstance(weight, float) and np.isfinite(weight) for weight in weights)
            and len({_shape(part) for part in parts}) == 1
            and _suit(made.feature_weights, _shape(parts[0])[1])
        )
        if not fits:
            raise ModelFileError("its regressors do not fit together")
        return made


def weigh_features(X: Any, weights: NDArray[np.float32] | None) -> Any:
    """X with its columns multiplied, as a CSR array; X itself without weights."""
    if weights is None:
        return X
    X = sp.csr_array(X)
    if X.shape[1] != weights.size:
        # Said better by the parts.
        return X
    return sp.csr_array((X.data * weights[X.indices], X.indices, X.indptr), shape=X.shape)


def _suit(weights: Any, n_features: int | None) -> bool:
    """Whether a file's weights of features are that."""
    if weights is None:
        return True
    fits = isinstance(weights, np.ndarray) and weights.dtype == np.float32
    return bool(fits and weights.shape == (n_features,) and np.isfinite(weights).all())


def _shape(part: TargetRegressor) -> tuple[int | None, int | None]:
    """Outputs and features; none of both if it is not fitted, as a parameter of a classifier."""
    return getattr(part, "n_outputs_", None), getattr(part, "n_features_in_", None)
