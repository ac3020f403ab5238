"""The contract of a regressor: from features to a point."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin

from locole.exceptions import LocoleError
from locole.io import SavedEstimator
from locole.label_past import Relabelling
from locole.samples import checked_rows

__all__ = [
    "ArrayTargets",
    "LabelTargets",
    "TargetRegressor",
    "TargetsLike",
    "ValidationRows",
    "as_targets",
    "remembered",
]

# Records of passes that a model keeps: some megabytes, which a model file has room for.
_RECORDS = 10_000


@runtime_checkable
class TargetsLike(Protocol):
    """What a regressor may ask of its targets: ``Y[i, a:b] == table(a, b)[codes[i]]``."""

    codes: NDArray[np.int64]

    @property
    def shape(self) -> tuple[int, int]:
        """``(n_samples, n_outputs)``."""

    def rows(self, index: slice | NDArray) -> NDArray:
        """Targets of these samples.

        Parameters
        ----------
        index : slice or array of int
            Which samples.
        """

    def table(self, start: int, stop: int) -> NDArray:
        """Outputs ``start … stop−1`` of every code.

        Parameters
        ----------
        start, stop : int
            First output, and the one after the last.
        """

    def take(self, index: NDArray) -> TargetsLike:
        """Targets of these samples alone; codes keep their meaning.

        Parameters
        ----------
        index : array of int
            Which samples.
        """


@runtime_checkable
class LabelTargets(TargetsLike, Protocol):
    """Targets that are vectors of labels, so that they have a softmax over all labels."""

    @property
    def n_classes(self) -> int:
        """Number of labels."""

    def softmax(self, **settings: Any) -> Callable[..., tuple[NDArray, NDArray]]:
        """Return a function from points and codes to losses and their gradients.

        The settings are those of `locole.cross_entropy.Softmax`.
        """


class ValidationRows(NamedTuple):
    """Rows that are not learnt from: they say when to stop."""

    X: Any
    targets: Any
    sample_weight: Any = None

    def checked(self, regressor: Any) -> ValidationRows:
        """As rows of the kind that the regressor learns from."""
        return self._replace(X=checked_rows(regressor, self.X, dtype=np.float32, reset=False))


class ArrayTargets:
    """An ordinary target array: every sample has a row of its own, which is its code."""

    def __init__(self, Y: NDArray, codes: NDArray[np.int64] | None = None) -> None:
        self.Y, self._has_all = Y, codes is None
        self.codes = np.arange(Y.shape[0]) if codes is None else codes

    @property
    def shape(self) -> tuple[int, int]:
        """``(n_samples, n_outputs)``."""
        return self.codes.size, self.Y.shape[1]

    def rows(self, index: slice | NDArray) -> NDArray:
        """Return the targets of these samples."""
        return self.Y[index if self._has_all else self.codes[index]]

    def table(self, start: int, stop: int) -> NDArray:
        """Return outputs ``start … stop−1`` of every row of the array."""
        return self.Y[:, start:stop]

    def take(self, index: NDArray) -> ArrayTargets:
        """Return the targets of these samples; the array is not copied."""
        return ArrayTargets(self.Y, self.codes[index])


def as_targets(targets: TargetsLike | ArrayLike) -> TargetsLike:
    """Return targets as they are, and an array as `ArrayTargets`."""
    if isinstance(targets, TargetsLike):
        return targets
    Y = np.asarray(targets)
    if Y.dtype.kind not in "iuf" or Y.ndim not in (1, 2):
        raise LocoleError("targets must be numbers: one row for each sample.")
    if not np.isfinite(Y).all():
        raise LocoleError("targets contain NaN or infinity: remove those rows first.")
    Y = Y.reshape(Y.shape[0], -1)
    return ArrayTargets(Y if Y.dtype.kind == "f" else Y.astype(np.float64))


class TargetRegressor(SavedEstimator, RegressorMixin, BaseEstimator):
    """A regressor that learns from `TargetsLike` and predicts points of the real view.

    A subclass can be saved if it is decorated with ``saved_as("regressor.<name>")``, lists in
    ``_learnt`` what `fit` leaves behind, and has a ``_check_learnt``; see ``locole.io.SavedEstimator``.
    """

    #: Number of outputs; every regressor has it after `fit`.
    n_outputs_: int
    #: Whether `fit` takes ``validation_rows`` and keeps the weights of the epoch that is best for them.
    stops_early: ClassVar[bool] = False

    @property
    def learns_embedding(self) -> bool:
        """Whether `fit` also learns the label vectors.

        It then leaves them in ``vectors_``, in the real view and of unit length. Points belong to these
        and no longer to the vectors of the targets, so whoever decodes them has to take these.
        """
        return False

    @abstractmethod
    def fit(
        self, X: Any, targets: TargetsLike | ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn to map the rows of X to their targets.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Rows to learn from.
        targets : TargetsLike or array of shape (n_samples, n_outputs)
            Where each row should be mapped to.
        sample_weight : array of shape (n_samples,), optional
            How much each row counts; by default all alike.
        """

    @abstractmethod
    def predict(self, X: Any) -> NDArray:
        """Points of shape (rows, real_dim).

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Rows to map.
        """

    # Labels and features that change --------------------------------------------------------------

    #: Whether `grow` adds features and outputs.
    grows: ClassVar[bool] = False

    def grow(self, n_features: int, n_outputs: int) -> None:
        """Make room for more features and outputs, which say nothing until they are learnt.

        Parameters
        ----------
        n_features, n_outputs : int
            How many there are then.
        """
        raise LocoleError(
            f"{type(self).__name__} cannot take more features or outputs: fit again with all the data."
        )

    def relabel(self, change: Relabelling) -> None:
        """Let labels have other codes, if a regressor keeps anything by code.

        Parameters
        ----------
        change : Relabelling
            The new codes.
        """

    def forget(
        self, X: Any, targets: TargetsLike, sample_weight: NDArray | None
    ) -> Literal["nearly", "not"]:
        """Take out rows that were learnt, as far as that can be.

        Parameters
        ----------
        X, targets, sample_weight
            As they were learnt.

        Returns
        -------
        str
            How far: "nearly" or "not".
        """
        return "not"

    def predict_checked(self, X: Any) -> NDArray:
        """`predict` for rows that have been checked: scikit-learn's checks take longer than one row.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Rows to map.
        """
        return self.predict(X)


def remembered(history: list[dict[str, float]]) -> list[dict[str, float]]:
    """Return the last 10,000 records of a history, so that a model that learns for ever can be saved.

    Examples
    --------
    >>> len(remembered([{}] * 20_000))
    10000
    """
    return history[-_RECORDS:]
