"""Some rows of whatever a user calls X."""

from __future__ import annotations

from typing import Any

import scipy.sparse as sp

__all__ = ["sliceable", "take"]


def sliceable(X: Any) -> Any:
    """Sparse matrices by rows; everything else as it is."""
    return X.tocsr() if sp.issparse(X) else X


def take(X: Any, rows: Any) -> Any:
    """Some rows of an array, a sparse matrix, a data frame or a list."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    if isinstance(X, list | tuple):
        return X[rows] if isinstance(rows, slice) else [X[i] for i in rows]
    return X[rows]
