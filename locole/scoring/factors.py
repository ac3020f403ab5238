"""Low-rank factors: features and labels share a space of few dimensions, in which both are learnt."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import lru_cache
from typing import ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import ndtri

from locole.exceptions import ModelFileError
from locole.io import saved_as
from locole.kernels.csr import Csr
from locole.kernels.factors import Batches, Factors, descend
from locole.kernels.product import add_dense_product
from locole.label_past import Relabelling
from locole.parallel.blocks import n_threads, slices, workers
from locole.parameters import N_JOBS, PASSES, SEED, at_least
from locole.regressors.storage import Weights, pack
from locole.samples import Rows, Samples
from locole.scoring.base import SKETCHED_ROWS, Codes, Contributions, LabelScorer, entries_of
from locole.scoring.label_table import LabelTable
from locole.sparse_rows import row_squares

__all__ = ["FactorScorer"]

# Dimensions that are learnt by one thread, independently of the others.
_BLOCK_DIM = 64
# Rows of a batch, and labels drawn for it beside its own.
_BATCH, _NEGATIVES = 64, 512
# AdaGrad: first rate, what its sums of squares begin at, and the size of the first feature vectors.
_RATE, _SQUARES, _SIZE = 0.2, 1e-2, 0.1
# Share of the first rate by which rows are learnt that come later.
_LATER = 0.25
# Rows that a feature must have: the vector of one that a single row has would learn to tell that row,
# which helps no other. In raw texts most features are such.
_LEAST_ROWS = 2
# Vectors that are packed in one go.
_PACKED_ROWS = 4_096


@saved_as("scorer.factors")
class FactorScorer(LabelScorer):
    r"""Score of a label: the inner product of its vector with the sum of the features' vectors.

    .. math:: s_i(x) = \Big\langle \sum_f x_f e_f, v_i \Big\rangle

    Both kinds of vectors are learnt by AdaGrad on the cross-entropy of a row's label among the labels
    of its batch and 512 drawn ones; several labels of a row are equally probable. Because labels share
    the features' vectors, what is learnt from one label serves the others: that two features mean the
    same (spellings of a syllable in two scripts, synonyms) is told by any label that has both. A model
    with weights of its own for each label cannot see that.

    Features that only one training row has get no vector by `fit`, and the other features of a row are
    scaled up to its length.

    Blocks of 64 dimensions are learnt independently, from other random numbers and with other negatives,
    so their sum is an ensemble, they are learnt in parallel, and the answer does not depend on the
    number of threads.

    Parameters
    ----------
    n_blocks : int
        Number of blocks of 64 dimensions.
    epochs : int
        Passes over the rows.
    random_state : int
        Seed of the first vectors, of the order of rows and of the labels drawn.
    n_jobs : int, optional
        Threads, at most one for each block of dimensions; the answer does not depend on it.

    Attributes
    ----------
    feature_vectors_ : array of shape (n_features, 64 · n_blocks)
        In one byte each, to be multiplied by ``feature_scales_`` (in float32 without these in files of
        before).
    label_vectors_ : array of shape (n_classes, 64 · n_blocks)
        Likewise, with ``label_scales_``.
    feature_scales_, label_scales_ : arrays of shape (n_features,) and (n_classes,), or None
        What the bytes of each vector are multiplied by.
    feature_squares_, label_squares_ : arrays of shape (n_blocks, n_features) and (n_blocks, n_classes)
        AdaGrad's sums of squared slopes, for `partial_fit`.

    Examples
    --------
    >>> X = sp.csr_array(np.eye(4, dtype=np.float32)[[0, 1, 2, 3] * 50])
    >>> codes = np.array([0, 1, 2, 2] * 50)
    >>> scorer = FactorScorer(n_blocks=1).fit(Samples(X, codes, n_classes=3))
    >>> scorer.candidates(Rows(X[:4]), k=1)[0].ravel()
    array([0, 1, 2, 2])
    """

    name = "factors"
    optional = True
    _parameter_constraints: ClassVar = {
        "n_blocks": at_least(1, 64),
        "epochs": PASSES,
        "random_state": SEED,
        "n_jobs": N_JOBS,
    }
    _learnt: ClassVar = {
        "feature_vectors_": np.ndarray,
        "feature_scales_": (np.ndarray, type(None)),
        "label_vectors_": np.ndarray,
        "label_scales_": (np.ndarray, type(None)),
        "feature_squares_": np.ndarray,
        "label_squares_": np.ndarray,
    }
    label_vectors_: NDArray
    label_scales_: NDArray[np.float32] | None
    label_squares_: NDArray[np.float32]
    feature_squares_: NDArray[np.float32]

    def __init__(
        self,
        *,
        n_blocks: int = 2,
        epochs: int = 4,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.n_blocks = n_blocks
        self.epochs = epochs
        self.random_state = random_state
        self.n_jobs = n_jobs

    @property
    def n_classes(self) -> int:
        """Number of labels."""
        return self.label_vectors_.shape[0]

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.feature_vectors_.shape[0]

    # Fit ----------------------------------------------------------------------------------------

    def fit(self, samples: Samples, *, before: Sequence[LabelScorer] = ()) -> Self:
        """Learn the vectors of features and labels."""
        n_features, n_classes = samples.X.shape[1], samples.n_classes
        samples = samples.positive().labelled()
        met, X = _without_rare(samples.csr)
        seeds = [[self.random_state, block] for block in range(self.n_blocks)]
        starts = [_start(met.size, n_classes, np.random.default_rng(seed)) for seed in seeds]
        rates = np.linspace(_RATE, 0, self.epochs + 1)
        learnt = self._descended(samples._replace(X=X), starts, rates)
        features, labels, feature_squares, label_squares = zip(*learnt, strict=True)
        self.feature_vectors_, self.feature_scales_ = _placed(_packed(features), met, n_features)
        self.label_vectors_, self.label_scales_ = _packed(labels)
        squares = np.full((self.n_blocks, n_features), _SQUARES, dtype=np.float32)
        squares[:, met] = np.stack(feature_squares)
        self.feature_squares_, self.label_squares_ = squares, np.stack(label_squares)
        return self

    def sketch(self, samples: Samples) -> FactorScorer | None:
        """One block of dimensions after one pass: a tenth of the time."""
        if samples.n_rows < SKETCHED_ROWS:
            return None
        return FactorScorer(n_blocks=1, epochs=1, random_state=self.random_state)

    def partial_fit(self, samples: Samples) -> Self:
        """Take steps with more samples, which may have more labels."""
        self.add_labels(samples.n_classes)
        samples = samples.positive().labelled()
        features, labels, n_blocks = self._features.stored(), self._labels.stored(), self.n_blocks
        # Of the features, only those that occur are unpacked, moved and packed again.
        met, places = np.unique(samples.csr.indices, return_inverse=True)
        shape = (samples.n_rows, met.size)
        X = sp.csr_array((samples.csr.data, places, samples.csr.indptr), shape=shape)
        before = (
            np.split(features.take(met).unpacked(), n_blocks, axis=1),
            np.split(labels.unpacked(), n_blocks, axis=1),
            self.feature_squares_[:, met],
            self.label_squares_,
        )
        starts = [
            Factors(*(np.array(part, order="C") for part in parts))
            for parts in zip(*before, strict=True)
        ]
        seen = float(self.label_squares_.sum(dtype=np.float64))
        dither = np.random.default_rng([self.random_state, samples.n_rows, int(seen * 1024)])
        rates = np.array([_LATER * _RATE, 0])
        learnt = self._descended(samples._replace(X=X), starts, rates)
        new_features, new_labels, feature_squares, label_squares = zip(*learnt, strict=True)
        squares = np.stack(label_squares)
        moved = np.flatnonzero((squares != self.label_squares_).any(axis=0))
        features = features.replaced(met, np.hstack(new_features), dither)
        labels = labels.replaced(moved, np.hstack([block[moved] for block in new_labels]), dither)
        self.feature_vectors_, self.feature_scales_ = features
        self.label_vectors_, self.label_scales_ = labels
        self.feature_squares_ = self.feature_squares_.copy()
        self.feature_squares_[:, met] = np.stack(feature_squares)
        self.label_squares_ = squares
        return self

    grows = True

    def grow(self, n_features: int) -> None:
        """Add features with short random vectors, as `fit` begins with."""
        new, known = n_features - self.n_features, self.n_features
        seeds = [[self.random_state, known, block, 8] for block in range(self.n_blocks)]
        starts = [_start(new, 0, np.random.default_rng(seed)).features for seed in seeds]
        vectors, scales = self._features
        more = np.hstack(starts)
        if scales.size:
            more, its_scales = pack(more, "int8")
            self.feature_scales_ = np.append(scales, its_scales)
        self.feature_vectors_ = np.vstack([vectors, more])
        self.feature_squares_ = np.pad(
            self.feature_squares_, [(0, 0), (0, new)], constant_values=_SQUARES
        )

    def relabel(self, change: Relabelling) -> None:
        """Take the means of the vectors of merged labels, weighted by how much each has moved."""
        labels, moved = self._labels, change.merged
        squares = self.label_squares_ - np.float32(_SQUARES)
        self.label_squares_ = np.stack([change.added(row) for row in squares]) + np.float32(
            _SQUARES
        )
        self.label_vectors_, scales = labels.take(change.kept)
        self.label_scales_ = scales if scales.size else None
        if not moved.size:
            return
        into = np.unique(change.codes[moved])
        old = np.flatnonzero(np.isin(change.codes, into))
        shares = np.repeat(squares[:, old].T + np.float32(_SQUARES), _BLOCK_DIM, axis=1)
        place = np.searchsorted(into, change.codes[old])
        total, weight = np.zeros((2, into.size, shares.shape[1]), dtype=np.float32)
        np.add.at(total, place, shares * labels.take(old).unpacked())
        np.add.at(weight, place, shares)
        mean = total / weight
        if self.label_scales_ is not None:
            mean, self.label_scales_[into] = pack(mean, "int8")
        self.label_vectors_[into] = mean

    def add_labels(self, n_classes: int) -> Self:
        """Give more labels vectors of zeros, from which they can be learnt."""
        new = (0, n_classes - self.n_classes)
        self.label_vectors_ = np.pad(self.label_vectors_, [new, (0, 0)])
        if self.label_scales_ is not None:
            self.label_scales_ = np.pad(self.label_scales_, new)
        self.label_squares_ = np.pad(self.label_squares_, [(0, 0), new], constant_values=_SQUARES)
        return self

    def _descended(self, samples: Samples, starts: list[Factors], rates: NDArray) -> list[Factors]:
        """Let every block of dimensions descend; ``rates`` are those at the ends of the epochs."""
        X = sp.csr_array(samples.csr, dtype=np.float32)
        weights = np.ones(samples.n_rows) if samples.weight is None else samples.weight
        weights = (weights / weights.mean()).astype(np.float32)

        def learn(block: int) -> Factors:
            rng = np.random.default_rng([self.random_state, samples.n_rows, block, 4])
            slots = np.full(samples.n_classes, -1)
            for first, last in itertools.pairwise(rates):
                batches = _batches(samples, weights, first, last, rng)
                descend(X.indptr, X.indices, X.data, batches, starts[block], slots)
            return starts[block]

        with workers(min(len(starts), n_threads(self.n_jobs))) as apply:
            return list(apply(learn, list(range(len(starts)))))

    # Score --------------------------------------------------------------------------------------

    @property
    def _features(self) -> LabelTable:
        return LabelTable.of(self.feature_vectors_, self.feature_scales_)

    @property
    def _labels(self) -> LabelTable:
        return LabelTable.of(self.label_vectors_, self.label_scales_)

    def points(self, rows: Rows) -> NDArray[np.float32]:
        """Sums of the features' vectors, shape (rows, 64 · n_blocks).

        Parameters
        ----------
        rows : Rows
            Rows to score.
        """
        return rows.once(self, lambda: self._points(rows.csr))

    def _points(self, X: sp.csr_array) -> NDArray[np.float32]:
        vectors, scales = self._features
        out = np.zeros((X.shape[0], vectors.shape[1]), dtype=np.float32)
        some = Csr(X.indptr, X.indices, X.data.astype(np.float32, copy=False))
        every, width = np.arange(X.shape[0]), out.shape[1]
        add_dense_product(some, every, vectors.ravel(), scales, width, 0, width, out.ravel())
        return out

    def candidates(self, rows: Rows, k: int) -> tuple[Codes, NDArray]:
        """Labels with the largest products, found by looking at all."""
        return self._labels.best(self.points(rows), k)

    def scores_at(self, rows: Rows, codes: Codes) -> NDArray[np.float64]:
        """Products with these labels."""
        return self._labels.products_at(self.points(rows), codes)

    def all_scores(self, rows: Rows) -> NDArray[np.float64]:
        """Products with all labels."""
        return self._labels.products(self.points(rows))

    def explain(self, rows: Rows, codes: Codes) -> Contributions:
        """Products of each feature's vector with those of the labels."""
        X, (vectors, scales) = rows.csr, self._features
        found = np.empty((X.nnz, codes.shape[1]))
        for i, part in enumerate(entries_of(X)):
            features = X.indices[part]
            values = X.data[part] * scales[features] if scales.size else X.data[part]
            labels = self._labels.take(codes[i]).unpacked().astype(np.float64)
            found[part] = values[:, None] * (vectors[features] @ labels.T)
        return Contributions(found, {})

    # Save ---------------------------------------------------------------------------------------

    def _check_learnt(self) -> None:
        features, labels = self.feature_vectors_, self.label_vectors_
        squares = self.feature_squares_, self.label_squares_
        is_stored = self._features.is_sound() and self._labels.is_sound()
        if not (is_stored and all(_are_finite(array) for array in squares)):
            raise ModelFileError("its factors are not numbers")
        fits = (
            features.shape[1] == labels.shape[1] == self.n_blocks * _BLOCK_DIM
            and squares[0].shape == (self.n_blocks, features.shape[0])
            and squares[1].shape == (self.n_blocks, labels.shape[0])
            and all((array > 0).all() for array in squares)
        )
        if not fits:
            raise ModelFileError("its factors do not fit together")


def _start(n_features: int, n_classes: int, rng: np.random.Generator) -> Factors:
    """Short random vectors for features, none for labels."""
    drawn = rng.integers(_quantiles().size, size=(n_features, _BLOCK_DIM), dtype=np.uint16)
    return Factors(
        _quantiles()[drawn],
        np.zeros((n_classes, _BLOCK_DIM), dtype=np.float32),
        np.full(n_features, _SQUARES, dtype=np.float32),
        np.full(n_classes, _SQUARES, dtype=np.float32),
    )


@lru_cache(maxsize=1)
def _quantiles() -> NDArray[np.float32]:
    """Quantiles of the normal distribution from which vectors start: to draw one is to look it up."""
    levels = (np.arange(2**16) + 0.5) / 2**16
    return np.float32(_SIZE / _BLOCK_DIM**0.5) * ndtri(levels).astype(np.float32)


def _without_rare(X: sp.csr_array) -> tuple[NDArray[np.int64], sp.csr_array]:
    """Features of two rows or more, and rows with these alone, which keep their length."""
    met = np.flatnonzero(np.bincount(X.indices, minlength=X.shape[1]) >= _LEAST_ROWS)
    if met.size == X.shape[1]:
        return met, X
    left = sp.csr_array(X[:, met], dtype=np.float32)
    before, after = np.sqrt(row_squares(X)), np.sqrt(row_squares(left))
    grown = np.divide(before, after, where=after > 0, out=np.zeros_like(after))
    left.data *= np.repeat(grown, np.diff(left.indptr)).astype(np.float32)
    return met, left


def _packed(blocks: Sequence[NDArray[np.float32]]) -> Weights:
    """Blocks of dimensions side by side in bytes; they never stand beside each other as float32."""
    n_rows = len(blocks[0])
    width = sum(block.shape[1] for block in blocks)
    packed = Weights(np.empty((n_rows, width), np.int8), np.empty(n_rows, np.float32))
    for rows in slices(n_rows, _PACKED_ROWS):
        packed.numbers[rows], packed.scales[rows] = pack(
            np.hstack([block[rows] for block in blocks]), "int8"
        )
    return packed


def _placed(packed: Weights, places: NDArray[np.int64], n_rows: int) -> Weights:
    """The same vectors at these places among ``n_rows``, the others being zero."""
    if places.size == n_rows:
        return packed
    numbers, scales = np.zeros((n_rows, packed.numbers.shape[1]), np.int8), np.zeros(n_rows)
    numbers[places], scales[places] = packed
    return Weights(numbers, scales.astype(np.float32))


def _batches(
    samples: Samples, weights: NDArray, first: float, last: float, rng: np.random.Generator
) -> Batches:
    """One epoch: rows in random order, labels drawn for each batch, and a rate that falls."""
    n_batches = -(-samples.n_rows // _BATCH)
    n_negatives = min(_NEGATIVES, samples.n_classes)
    return Batches(
        _BATCH,
        rng.permutation(samples.n_rows),
        samples.codes,
        np.arange(samples.n_rows + 1) if samples.starts is None else samples.starts,
        weights,
        rng.integers(samples.n_classes, size=(n_batches, n_negatives)),
        np.linspace(first, last, n_batches, endpoint=False, dtype=np.float32),
    )


def _are_finite(array: NDArray) -> bool:
    return array.ndim == 2 and array.dtype == np.float32 and bool(np.isfinite(array).all())
