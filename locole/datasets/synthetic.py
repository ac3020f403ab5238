"""Generated data of any size with the habits of real texts: power laws of labels and of features."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from locole.datasets.base import Codes, Dataset, compact_csr
from locole.datasets.growing import Growing
from locole.exceptions import LocoleError

__all__ = ["make_topics"]

# Rows made at a time. It is part of what a seed means, so it never changes.
_BLOCK_ROWS = 1 << 15
# Words of a topic for each word of a row: the more, the less alike two rows of a label are.
_WORDS_PER_DRAW = 2
# Ranks below this are about equally frequent, as are the words that a stop list leaves.
_FLAT_RANKS = 50


def make_topics(
    n_samples: int,
    n_features: int,
    n_classes: int,
    *,
    nnz_per_row: int = 30,
    power: float = 1.0,
    noise: float = 0.7,
    test_size: int | None = None,
    random_state: int = 0,
) -> Dataset:
    """Rows of word weights: each label is a topic, a set of words that its rows prefer.

    Parameters
    ----------
    n_samples : int
        Rows of the training part, at least ``n_classes``: every label has one.
    n_features, n_classes : int
        Numbers of columns and of labels.
    nnz_per_row : int
        Words drawn for a row; a word drawn twice gets more weight, so rows have somewhat fewer
        entries.
    power : float
        Label k is drawn with a probability proportional to ``(k + 1) ** -power``; 0 makes all equal.
    noise : float
        Share of the words that come from all words instead of the topic, between 0 and 1.
    test_size : int, optional
        Rows of the test part. Default: a tenth of ``n_samples``.
    random_state : int
        Seed; the same seed gives the same bits.

    Returns
    -------
    Dataset
        Log tf, smoothed idf of the training part, rows of unit length. There are no texts and no
        feature names.

    Examples
    --------
    >>> data = make_topics(1000, 500, 50)
    >>> data.X_train.shape, data.X_test.shape, len(set(data.y_train))
    ((1000, 500), (100, 500), 50)
    """
    test_size = n_samples // 10 if test_size is None else test_size
    _check(n_samples, n_features, n_classes, nnz_per_row, power, noise, test_size, random_state)
    rng = np.random.default_rng(random_state)
    y_train, y_test = _draw_labels(n_samples, test_size, n_classes, power, rng)
    counts = [
        _draw_rows(y, n_features, nnz_per_row, noise, random_state, rng) for y in (y_train, y_test)
    ]
    idf = _smoothed_idf(counts[0])
    for X in counts:
        _weigh(X, idf)
    return Dataset(
        X_train=counts[0],
        y_train=y_train,
        X_test=counts[1],
        y_test=y_test,
        text_train=None,
        text_test=None,
        label_names=[f"topic {k}" for k in range(n_classes)],
        feature_names=None,
    )


def _check(
    n_samples: int, n_features: int, n_classes: int, nnz_per_row: int,
    power: float, noise: float, test_size: int, random_state: int,
) -> None:  # fmt: skip
    if n_samples < n_classes:
        raise LocoleError(
            f"n_samples must be at least n_classes, {n_classes}: a row for each label."
        )
    if min(n_features, n_classes, nnz_per_row, test_size) < 1:
        raise LocoleError("n_features, n_classes, nnz_per_row and test_size must be at least 1.")
    if not 0 <= noise <= 1 or power < 0 or random_state < 0:
        raise LocoleError("noise must be between 0 and 1; power and random_state not negative.")


def _draw_labels(
    n_train: int, n_test: int, n_classes: int, power: float, rng: np.random.Generator
) -> tuple[Codes, Codes]:
    law = np.cumsum(np.arange(1, n_classes + 1, dtype=np.float64) ** -power)
    drawn = np.searchsorted(law, rng.random(n_train - n_classes + n_test) * law[-1])
    train = np.concatenate([np.arange(n_classes), drawn[n_test:]])
    return rng.permutation(train), drawn[:n_test]


def _draw_rows(
    y: Codes, n_features: int, nnz_per_row: int, noise: float, seed: int, rng: np.random.Generator
) -> csr_matrix:
    """How often each word is drawn, row by row."""
    data, indices = Growing(np.float32, "the data"), Growing(np.int32, "the data")
    indptr = np.zeros(len(y) + 1, dtype=np.int64)
    for start in range(0, len(y), _BLOCK_ROWS):
        part = y[start : start + _BLOCK_ROWS]
        words = _draw_words(part, n_features, nnz_per_row, noise, seed, rng)
        words.sort(axis=1)
        new = np.ones(words.shape, dtype=bool)
        new[:, 1:] = words[:, 1:] != words[:, :-1]
        places = np.flatnonzero(new)
        indices.extend(words[new])
        data.extend(np.diff(places, append=words.size))
        ends = np.cumsum(np.count_nonzero(new, axis=1))
        indptr[start + 1 : start + len(part) + 1] = indptr[start] + ends
    return compact_csr(data.finish(), indices.finish(), indptr, (len(y), n_features))


def _draw_words(
    y: Codes, n_features: int, nnz_per_row: int, noise: float, seed: int, rng: np.random.Generator
) -> NDArray[np.int32]:
    shape = len(y), nnz_per_row
    u = rng.random(shape)
    # Early words of a topic are drawn more often than late ones.
    n_words = _WORDS_PER_DRAW * nnz_per_row
    place = (n_words * rng.random(shape, dtype=np.float32) ** 2).astype(np.uint64)
    of_topic = rng.random(shape, dtype=np.float32) >= noise
    topic_words = y[:, None].astype(np.uint64) * np.uint64(n_words) + place
    np.copyto(u, _hashed(topic_words, seed), where=of_topic)
    # Inverse of the distribution function of a density ∝ 1/(rank + 50).
    ranks = _FLAT_RANKS * np.expm1(u * np.log1p(n_features / _FLAT_RANKS))
    return ranks.astype(np.int32).clip(max=n_features - 1)


def _hashed(numbers: NDArray[np.uint64], seed: int) -> NDArray[np.float64]:
    """Number in [0, 1) for each number: the mixing steps of SplitMix64."""
    mixed = numbers + np.uint64(0x9E3779B97F4A7C15) * np.array(seed + 1, dtype=np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed ^= mixed >> np.uint64(shift)
        mixed *= np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    return (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _smoothed_idf(X: csr_matrix) -> NDArray[np.float32]:
    rows_with = np.bincount(X.indices, minlength=X.shape[1])
    return (np.log((1 + X.shape[0]) / (1 + rows_with)) + 1).astype(np.float32)


def _weigh(X: csr_matrix, idf: NDArray[np.float32]) -> None:
    """Turn counts into weights of rows of unit length, in place."""
    X.data = (1 + np.log(X.data)) * idf[X.indices]
    lengths = np.sqrt(np.add.reduceat(X.data**2, X.indptr[:-1]))
    X.data /= np.repeat(lengths, np.diff(X.indptr))
