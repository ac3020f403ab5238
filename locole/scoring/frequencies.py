"""Weights of scorers by how many rows a label has."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from locole.exceptions import ModelFileError
from locole.io import saved_as
from locole.label_past import Relabelling
from locole.samples import Samples
from locole.scoring.weights import FREQUENCIES, frequency_shares

__all__ = ["FrequencyWeights", "rows_of_labels"]


def rows_of_labels(samples: Samples) -> NDArray[np.int64]:
    """Number of rows of each label.

    Examples
    --------
    >>> rows_of_labels(Samples(np.zeros((3, 1)), np.array([2, 0, 2]), 4))
    array([1, 0, 2, 0])
    """
    return np.bincount(samples.codes, minlength=samples.n_classes)


@saved_as("frequency_weights")
class FrequencyWeights:
    r"""Factors of the weights of scorers, a curve for each over the number of rows of a label.

    .. math:: w_j(i) = w_j \, c_j(n_i)

    with the weight :math:`w_j` of scorer j that is the same for all labels, the number :math:`n_i` of
    rows of label i, and a curve :math:`c_j` that is linear in :math:`\log n` between
    `locole.scoring.weights.FREQUENCIES`.

    Parameters
    ----------
    rows : array of shape (n_classes,)
        Rows of each label that the scorers have learnt.
    curves : array of shape (scorers, corners), optional
        1 everywhere if not given.
    """

    def __init__(self, rows: NDArray[np.int64], curves: NDArray[np.float64] | None = None) -> None:
        self.rows, self.curves = rows, curves

    def of(self, scorer: int) -> NDArray[np.float64] | None:
        """Factor of each label; None if it is 1."""
        if self.curves is None:
            return None
        if "_table" not in self.__dict__:
            self._table = self.curves @ frequency_shares(self.rows).T
        return self._table[scorer]

    def with_curves(self, curves: NDArray[np.float64] | None) -> FrequencyWeights:
        """The same labels with other curves."""
        return FrequencyWeights(self.rows, curves)

    def with_labels(self, n_classes: int) -> FrequencyWeights:
        """With more labels, which have no rows yet."""
        more = np.zeros(n_classes - self.rows.size, dtype=np.int64)
        return FrequencyWeights(np.append(self.rows, more), self.curves)

    def with_rows(self, samples: Samples, sign: int = 1) -> FrequencyWeights:
        """After more rows were learnt, or with −1 forgotten."""
        rows = sign * rows_of_labels(samples)
        rows[: self.rows.size] += self.rows
        return FrequencyWeights(np.maximum(rows, 0), self.curves)

    def relabelled(self, change: Relabelling) -> FrequencyWeights:
        """With other codes of labels; the rows of labels that are merged are added up."""
        return FrequencyWeights(change.added(self.rows), self.curves)

    # Save ---------------------------------------------------------------------------------------

    def _state(self) -> dict[str, Any]:
        return {"rows": self.rows, "curves": self.curves}

    @classmethod
    def _from_state(cls, values: dict[str, Any]) -> Self:
        rows: Any = values.get("rows")
        curves: Any = values.get("curves")
        is_count = isinstance(rows, np.ndarray) and rows.ndim == 1 and rows.dtype == np.int64
        if len(values) != 2 or not is_count or (rows < 0).any():
            raise ModelFileError("it does not say how many rows its labels have")
        if curves is not None and not _are_curves(curves):
            raise ModelFileError("its weights by the number of rows are invalid")
        return cls(rows, curves)


def _are_curves(curves: Any) -> bool:
    is_table = isinstance(curves, np.ndarray) and curves.dtype == np.float64
    is_table = is_table and curves.ndim == 2 and curves.shape[1] == FREQUENCIES.size
    return bool(is_table and np.isfinite(curves).all() and (curves >= 0).all())
