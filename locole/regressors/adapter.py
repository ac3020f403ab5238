"""Any scikit-learn multi-output regressor, behind the contract of ours."""

from __future__ import annotations

import copy
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from locole.exceptions import LocoleError
from locole.parameters import has
from locole.regressors.base import TargetRegressor, TargetsLike, as_targets

__all__ = ["RegressorAdapter"]


class RegressorAdapter(TargetRegressor):
    """Fits a scikit-learn regressor to the target array, which has to be made for it.

    Parameters
    ----------
    regressor : estimator
        Ridge, KNeighborsRegressor, a Pipeline, …: ``fit(X, Y)`` and ``predict(X)`` with 2-d Y.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> X = np.eye(3)
    >>> predicted = RegressorAdapter(Ridge(alpha=1e-9)).fit(X, X).predict(X)
    >>> bool(np.allclose(predicted, X))
    True
    """

    _parameter_constraints: ClassVar = {"regressor": has("fit", "predict")}

    def __init__(self, regressor: Any) -> None:
        self.regressor = regressor

    def fit(
        self, X: Any, targets: TargetsLike | ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit a clone of the regressor to all targets at once."""
        targets = as_targets(targets)
        weights = {} if sample_weight is None else self._weights(sample_weight)
        Y = targets.rows(slice(None))
        self.regressor_ = clone(self.regressor).fit(X, Y, **weights)
        self.n_outputs_ = targets.shape[1]
        if hasattr(self.regressor_, "n_features_in_"):
            self.n_features_in_ = self.regressor_.n_features_in_
        return self

    def partial_fit(
        self, X: Any, targets: TargetsLike | ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Hand more rows to the regressor's own ``partial_fit``.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Rows to learn from.
        targets : TargetsLike or array of shape (n_samples, n_outputs)
            Where each row should be mapped to.
        sample_weight : array of shape (n_samples,), optional
            How much each row counts; by default all alike.
        """
        if not hasattr(self.regressor, "partial_fit"):
            name = type(self.regressor).__name__
            raise LocoleError(f"{name} cannot learn more rows: fit again with all the data.")
        if not hasattr(self, "regressor_"):
            return self.fit(X, targets, sample_weight)
        weights = {} if sample_weight is None else self._weights(sample_weight)
        self.regressor_ = copy.deepcopy(self.regressor_)
        self.regressor_.partial_fit(X, as_targets(targets).rows(slice(None)), **weights)
        return self

    def _weights(self, sample_weight: ArrayLike) -> dict[str, ArrayLike]:
        if has_fit_parameter(self.regressor, "sample_weight"):
            return {"sample_weight": sample_weight}
        name = type(self.regressor).__name__
        raise LocoleError(f"{name} takes no sample_weight: leave it out or take another regressor.")

    def predict(self, X: Any) -> NDArray:
        """Return the regressor's own predictions, as 2-d."""
        return np.asarray(self.regressor_.predict(X)).reshape(-1, self.n_outputs_)
