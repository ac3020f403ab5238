"""What loaders return, and the one form of their matrices."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

__all__ = ["MAX_FEATURES", "Dataset", "compact_csr", "label_array"]

Codes = NDArray[np.int64]

#: More than the data sets of the field have; larger indices are most likely those of damaged lines.
MAX_FEATURES = 100_000_000
# The largest number of entries whose places fit into int32.
_MAX_INT32 = np.iinfo(np.int32).max


class Dataset(NamedTuple):
    """A training and a test part, with what their rows, columns and labels stand for."""

    X_train: csr_matrix
    """Features of shape (rows, n_features), float32."""
    y_train: Codes
    """Label codes, positions in ``label_names``."""
    X_test: csr_matrix
    """Features of the test part."""
    y_test: Codes
    """Label codes of the test part."""
    text_train: list[str] | None
    """The texts behind the rows of ``X_train``, where there are any."""
    text_test: list[str] | None
    """The texts behind the rows of ``X_test``."""
    label_names: list[str]
    """Name of each label, all different."""
    feature_names: NDArray[np.object_] | None
    """Name of each column, where columns have names."""


def compact_csr(data: NDArray, indices: NDArray, indptr: NDArray, shape: tuple[int, int]) -> Any:
    """CSR of float32 with int32 indices; indptr is int64 only if int32 cannot count the entries.

    Examples
    --------
    >>> import numpy as np
    >>> X = compact_csr(np.ones(2), np.array([0, 2]), np.array([0, 1, 2]), (2, 3))
    >>> X.dtype.name, X.indices.dtype.name, X.indptr.dtype.name
    ('float32', 'int32', 'int32')
    """
    places = np.int32 if data.size <= _MAX_INT32 else np.int64
    X = csr_matrix(shape, dtype=np.float32)
    # Set one by one: the constructor would widen the indices together with indptr.
    X.data = data.astype(np.float32, copy=False)
    X.indices = indices.astype(np.int32, copy=False)
    X.indptr = indptr.astype(places, copy=False)
    return X


def label_array(labels: list[str]) -> NDArray[np.object_]:
    """Labels that are texts, as objects: one long label must not widen all the others.

    Examples
    --------
    >>> label_array(["cat", "a very long label"]).dtype
    dtype('O')
    """
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array
