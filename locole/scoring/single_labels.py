"""Rows with several labels as rows with one label each, and rows of some labels alone."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from locole.samples import Samples

__all__ = ["divided", "first_labels", "weights_of", "with_some_labels"]


def with_some_labels(samples: Samples, n_rows: int, rng: np.random.Generator) -> Samples:
    """All rows of labels drawn at random, about ``n_rows``, with codes of their own."""
    counts = np.bincount(samples.codes)
    labels = rng.permutation(np.flatnonzero(counts))
    enough = int(np.searchsorted(np.cumsum(counts[labels]), n_rows)) + 1
    some = samples.take(np.flatnonzero(np.isin(samples.codes, labels[: max(enough, 2)])))
    known, codes = np.unique(some.codes, return_inverse=True)
    return some._replace(codes=codes, n_classes=known.size)


def divided(samples: Samples) -> tuple[sp.csr_array | None, Samples]:
    """Every label of every row as a row of its own, and the other labels of each of these rows."""
    samples = samples.positive()
    if samples.starts is None:
        return None, samples
    ones = np.ones(samples.codes.size, dtype=np.int8)
    shape = (samples.n_rows, samples.n_classes)
    sets = sp.csr_array((ones, samples.codes, samples.starts), shape=shape)[samples.owners]
    is_own = sets.indices == np.repeat(samples.codes, np.diff(sets.indptr))
    counts = np.diff(sets.indptr) - 1
    starts, size = np.append(0, np.cumsum(counts)), int(counts.sum())
    kept = sp.csr_array((np.ones(size, dtype=np.int8), sets.indices[~is_own], starts), sets.shape)
    return kept, samples.single()


def first_labels(samples: Samples) -> Samples:
    """Each row with the first of its labels."""
    if samples.starts is None:
        return samples
    samples = samples.labelled()
    first = np.searchsorted(samples.owners, np.arange(samples.n_rows))
    return samples._replace(codes=samples.codes[first], starts=None)


def weights_of(samples: Samples) -> NDArray[np.float64]:
    """Weights of the rows; 1 on average."""
    if samples.weight is None:
        return np.ones(samples.n_rows)
    return samples.weight / samples.weight.mean()
