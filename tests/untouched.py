"""Rows in every form a caller may have, and whether they are left as they were."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp


def untidy(X: sp.csr_array) -> sp.csr_array:
    """The same rows, entries in falling order, each given as two halves."""
    indices, data = np.repeat(X.indices, 2), np.repeat(X.data / 2, 2)
    lengths = 2 * np.diff(X.indptr)
    rows = np.repeat(np.arange(X.shape[0]), lengths)
    order = np.lexsort((-indices, rows))
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(X.indptr.dtype)
    return sp.csr_array((data[order], indices[order], indptr), shape=X.shape)


def _mapped(array: np.ndarray, path: Path) -> np.ndarray:
    np.save(path, array)
    return np.load(path, mmap_mode="r")


def _mapped_csr(X: sp.csr_array, folder: Path) -> sp.csr_array:
    out = X.copy()
    for name in ("data", "indices", "indptr"):
        setattr(out, name, _mapped(getattr(X, name), folder / f"{name}.npy"))
    return out


def _coo(X: sp.csr_array) -> sp.coo_array:
    rows = np.repeat(np.arange(X.shape[0], dtype=X.indices.dtype), np.diff(X.indptr))
    return sp.coo_array((X.data, (rows, X.indices)), shape=X.shape)


def _csc(X: sp.csr_array) -> sp.csc_array:
    flipped = untidy(sp.csr_array(X.T))
    return sp.csc_array((flipped.data, flipped.indices, flipped.indptr), shape=X.shape)


#: From tidy rows and a folder for files to what a caller has.
FORMS: dict[str, Callable[[sp.csr_array, Path], Any]] = {
    "csr": lambda X, folder: untidy(X),
    "csr_matrix": lambda X, folder: sp.csr_matrix(untidy(X)),
    "csc": lambda X, folder: _csc(X),
    "coo": lambda X, folder: _coo(untidy(X)),
    "dense": lambda X, folder: X.toarray(),
    "mapped csr": lambda X, folder: _mapped_csr(untidy(X), folder),
    "mapped tidy csr": _mapped_csr,
    "mapped dense": lambda X, folder: _mapped(X.toarray(), folder / "dense.npy"),
}


def arrays_of(X: Any) -> list[np.ndarray]:
    """Copies of the arrays that rows consist of."""
    if not sp.issparse(X):
        return [np.array(X)]
    names = ("data", "row", "col") if X.format == "coo" else ("data", "indices", "indptr")
    return [np.array(getattr(X, name)) for name in names]


def assert_untouched(X: Any, before: list[np.ndarray]) -> None:
    """Assert that rows consist of the arrays that they consisted of."""
    for now, then in zip(arrays_of(X), before, strict=True):
        assert now.dtype == then.dtype
        np.testing.assert_array_equal(now, then)
