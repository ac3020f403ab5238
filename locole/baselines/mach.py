"""MACH: labels are hashed into few buckets many times, and the buckets' probabilities averaged."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone

from locole.baselines.base import Baseline
from locole.baselines.buckets import BucketTargets, block_softmax, hashed
from locole.baselines.dense_linear import check_weights, linear_outputs, padded
from locole.exceptions import ModelFileError
from locole.io import saved_as
from locole.kernels.symbols import scan_symbols
from locole.parameters import COUNT, N_JOBS, SEED, VERBOSE, at_least, one_of
from locole.regressors import ElasticNetRegressor, SoftmaxRegressor
from locole.samples import Samples

__all__ = ["MACH"]

# Labels that are scored at a time: their words stay in the cache.
_BLOCK_LABELS = 1 << 12
_NO_LABELS = np.empty(0, dtype=np.int64)


@saved_as("baseline.mach")
class MACH(Baseline):
    r"""Merged-Average Classifiers via Hashing: a small classifier for each of several hashes of labels.

    Every label c is hashed into one of B buckets, R times, by hash functions h_1 … h_R drawn from a
    2-universal family. For each of them a linear classifier learns the bucket's probability P_j. The
    score is the paper's unbiased estimate of the label's probability,

    .. math:: s_c(x) = \frac{B}{B - 1} \Big[\frac1R \sum_{j=1}^R P_j(h_j(c) \mid x) - \frac1B\Big],

    and all labels are scored by adding R looked-up numbers each.

    From Medini, Huang, Wang, Mohan, Shrivastava, "Extreme Classification in Log Memory using Count-Min
    Sketch: A Case Study of Amazon Search with 50M Products" (2019); the defaults are about those for
    the data set ODP.

    Training takes O(B·R) for each feature of each row and epoch, the model n_features·B·R numbers, and
    prediction the same for each feature of a row and O(R) for each label. B·R of the order of
    log(n_classes) is enough to tell labels apart. Take it where labels are so many that a number for
    each of them and feature does not fit; it is the hashing relative of this package's own method.

    Parameters
    ----------
    n_buckets : int
        B, at least 2.
    n_repetitions : int
        R.
    regressor : {"softmax", "elastic_net"} or a regressor of these classes
        How the buckets' classifiers learn, all R together: cross-entropy over the buckets, or squared
        loss on their one-hot vectors. A regressor is copied, with seed and threads of its own.
    random_state : int
        Seed of the hashes and of the order of rows.
    n_jobs : int, optional
        Threads; the answer does not depend on it.
    verbose : int
        1 shows progress.

    Attributes
    ----------
    buckets_ : array of shape (n_classes, n_repetitions)
        Bucket of each label.
    coef_ : array of shape (n_repetitions, n_buckets, n_features)
        Weights of each bucket.
    intercept_ : array of shape (n_repetitions, n_buckets)
        Intercept of each bucket.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = MACH(n_buckets=4, n_repetitions=12).fit(X[:1500], y[:1500])
    >>> model.score(X[1500:], y[1500:]) > 0.8
    True
    """

    _parameter_constraints: ClassVar = {
        "n_buckets": at_least(2),
        "n_repetitions": COUNT,
        "regressor": [*one_of("softmax", "elastic_net"), SoftmaxRegressor, ElasticNetRegressor],
        "random_state": SEED,
        "n_jobs": N_JOBS,
        "verbose": VERBOSE,
    }
    _learnt: ClassVar = {
        **Baseline._learnt,
        "buckets_": np.ndarray,
        "n_buckets_": int,
        "_is_softmax": bool,
        "_weights": np.ndarray,
        "_constant": np.ndarray,
    }

    def __init__(
        self,
        *,
        n_buckets: int = 32,
        n_repetitions: int = 25,
        regressor: Any = "softmax",
        random_state: int = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_buckets = n_buckets
        self.n_repetitions = n_repetitions
        self.regressor = regressor
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @property
    def coef_(self) -> NDArray[np.float32]:
        """Weights of the buckets."""
        R, B = self.buckets_.shape[1], self.n_buckets_
        return self._weights[:, : R * B].T.reshape(R, B, -1)

    @property
    def intercept_(self) -> NDArray[np.float32]:
        """Constant parts of the buckets."""
        R, B = self.buckets_.shape[1], self.n_buckets_
        return self._constant[: R * B].reshape(R, B)

    def _learn(self, samples: Samples) -> None:
        X, codes = samples.X, samples.codes
        regressor = self._made()
        self.n_buckets_ = int(self.n_buckets)
        self.buckets_ = hashed(
            self.classes_.size,
            n_buckets=self.n_buckets_,
            n_repetitions=int(self.n_repetitions),
            seed=self.random_state,
        )
        regressor.fit(X, BucketTargets(codes, self.buckets_, self.n_buckets_))
        self._is_softmax = isinstance(regressor, SoftmaxRegressor)
        self._weights = padded(regressor.coef_.T)
        self._constant = padded(regressor.intercept_)

    def _made(self) -> SoftmaxRegressor | ElasticNetRegressor:
        if isinstance(self.regressor, SoftmaxRegressor | ElasticNetRegressor):
            return clone(self.regressor)
        shared: dict[str, Any] = {
            "random_state": self.random_state, "n_jobs": self.n_jobs, "verbose": self.verbose
        }  # fmt: skip
        if self.regressor == "softmax":
            return SoftmaxRegressor(
                epochs=3, learning_rate=10.0, label_smoothing=0.0, prior=0.0, **shared
            )
        return ElasticNetRegressor(**shared)

    def _rank(self, X: sp.csr_array, k: int) -> tuple[NDArray[np.int64], NDArray]:
        R, B = self.buckets_.shape[1], self.n_buckets_
        outputs = linear_outputs(X, self._weights, self._constant, R * B)
        if self._is_softmax:
            outputs = block_softmax(outputs, B)[0]
        # Rows that overflow float32 must still get an answer.
        tables = np.nan_to_num(np.ascontiguousarray(outputs), posinf=1e30, neginf=-1e30)
        # Before they are added up: taken off the sums, 1/B would make small ones equal.
        tables = (tables - np.float32(1 / B)) * np.float32(B / (B - 1))
        scores = np.full((X.shape[0], k), -np.inf, dtype=np.float32)
        codes = np.zeros(scores.shape, dtype=np.int64)
        for first in range(0, self.classes_.size, _BLOCK_LABELS):
            words = self.buckets_[first : first + _BLOCK_LABELS]
            scan_symbols(tables, B, words, first, _NO_LABELS, scores, codes)
        # In double precision, where sums that differ stay different.
        return codes, scores.astype(np.float64) / R

    def _check_learnt(self) -> None:
        super()._check_learnt()
        buckets, B = self.buckets_, self.n_buckets_
        if buckets.dtype != np.int32 or buckets.ndim != 2 or 0 in buckets.shape or B < 2:
            raise ModelFileError("its labels have no buckets")
        if buckets.shape[0] != self.classes_.size or buckets.min() < 0 or buckets.max() >= B:
            raise ModelFileError("its buckets do not fit its labels")
        check_weights(
            self._weights,
            self._constant,
            n_features=self.n_features_in_,
            n_outputs=buckets.shape[1] * B,
        )
