"""Label profiles: how much more often than usual a feature occurs with a label."""

from __future__ import annotations

import copy
import threading
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from locole.delta_rows import DeltaRows
from locole.exceptions import LocoleError, ModelFileError
from locole.io import saved_as
from locole.kernels.csr import Csr
from locole.kernels.postings import (
    Owners,
    Postings,
    Sums,
    Work,
    gather_evidence,
    scan_postings,
    tune_features,
)
from locole.kernels.simd import WIDTH, padded_width
from locole.label_past import Relabelling
from locole.parallel.blocks import map_blocks, slices
from locole.parallel.progress import track
from locole.parameters import N_JOBS, SEED, SWITCH, VERBOSE
from locole.samples import Rows, Samples
from locole.scoring.base import Codes, Contributions, LabelScorer, entries_of

__all__ = ["ProfileScorer", "suit_profiles"]

# How features are tuned: rows, first learning rate, scale of the logits. Two passes at a third of the
# rate took twice the time and gave no more (cve_product, gesetze_de, city names).
_TUNE_ROWS, _RATE, _SCALE = 50_000, 3.0, 0.4
# Rivals of a row, which fill a vector together with its own label.
_RIVALS = WIDTH - 1
# A feature that more than one label in so many has is kept as a full row.
_FULL = 16
# ... and, if it is more than so many labels, has no say in who the rivals of a row are: that takes most
# of the time and changes few of them.
_COMMON = 512
# Part of a sum that rounding may have made.
_ROUNDING = np.float32(1e-5)
# Rows whose evidence exists at a time.
_BLOCK_ROWS = 4096


class _LogOdds:
    """Weights of all (feature, label) pairs in the order of ``sums_.data``, made feature by feature.

    Features that many labels have are kept as full rows of ``table`` too. What a row needs is made when
    it is first asked for, so that the first answer of a model does not wait for the others.
    """

    def __init__(
        self, sums: DeltaRows, totals: tuple[NDArray, NDArray], beta: NDArray[np.float32]
    ) -> None:
        by_label, by_feature = totals
        with np.errstate(divide="ignore", invalid="ignore"):  # of features that no row has
            self._scale = by_label.sum() / by_feature
        self._share = np.divide(1, by_label, where=by_label > 0, out=np.zeros_like(by_label))
        self._sums, self._beta = sums, beta
        lengths, n_classes = np.diff(sums.starts), sums.shape[1]
        self.width = padded_width(n_classes)
        # Those that most rows have side by side, in few lines of the cache.
        common = np.argsort(-lengths, kind="stable")[: int((lengths * _FULL > n_classes).sum())]
        self.full = np.full(sums.shape[0], -1, dtype=np.int64)
        self.full[common] = np.arange(common.size)
        self._table = np.zeros((common.size, self.width), dtype=np.float32)
        self.weights = np.empty(sums.steps.size, dtype=np.float32)
        # Places past the last label are no labels.
        self._labels = np.arange(self.width)
        self._labels[n_classes:] = -1
        self._is_made = np.zeros(sums.shape[0], dtype=bool)
        self._lock = threading.Lock()

    @property
    def postings(self) -> Postings:
        """Weights as kernels take them."""
        S = self._sums
        return Postings(S.starts, S.steps, self.weights, self.full, self._table.reshape(-1))

    def work(self) -> Work:
        """Room for the scores of one row."""
        return Work(np.empty((1, self.width), dtype=np.float32), self._labels)

    def make(self, features: NDArray) -> None:
        """Make the weights of these features, if they are not there yet."""
        missing = features[~self._is_made[features]]
        if missing.size:
            with self._lock:
                self._make(np.unique(missing))

    def _make(self, features: NDArray) -> None:
        counts, places = self._sums.counts(features), self._sums.places(features)
        some = self._sums.take(features)
        labels = some.columns
        weights = some.values * self._share[labels]
        weights *= np.repeat(self._scale[features], counts)
        np.log1p(weights, out=weights)
        weights *= np.repeat(self._beta[features], counts)
        self.weights[places] = weights
        is_full = np.repeat(self.full[features], counts)
        at = is_full >= 0
        self._table[is_full[at], labels[at]] = weights[at]
        self._is_made[features] = True


def suit_profiles(X: Any) -> bool:
    """Whether there are features, none of them negative.

    Examples
    --------
    >>> suit_profiles(sp.csr_array([[0.0, 1.0]])), suit_profiles(sp.csr_array([[0.0, -1.0]]))
    (True, False)
    """
    X = sp.csr_array(X)
    return bool(X.data.size and X.data.min() >= 0)


@saved_as("scorer.profiles")
class ProfileScorer(LabelScorer):
    r"""Score of a label: the features' log-odds in its rows, weighted by the row.

    .. math:: \sum_f \beta_f x_f \log\Big(1 + \frac{P(f \mid \text{label})}{P(f)}\Big)

    with the shares of feature f in the label's rows and in all rows. This is a naive Bayes rule whose
    label models are mixed half and half with the common one. It has no parameter per label and
    feature that could overfit labels with few rows, and no noise floor where a row says little.

    How much each feature counts, β_f, is one number for all labels. It is learnt by one pass of
    AdaGrad with falling rate over up to 50,000 rows, on the cross-entropy of a row's label among the 15
    labels that score best by features that are not common. Rows are scored leave-one-out: a row's own
    part is taken out of its label's sums first. Labels with a single row have nothing left to be
    recognised by, and take no part. A row with several labels is met once for each of them, with the
    others left out.

    In an ensemble, scores with β = 1 (source "profiles") and with the learnt β ("tuned profiles") have a
    weight each, the former of either sign: a negative one takes the same off the weights of all
    features. Because scores are linear in β, their sum is one profile again.

    Parameters
    ----------
    tune : bool
        Whether β is learnt; otherwise all features count 1.
    random_state : int
        Seed of the order of rows.
    n_jobs : int, optional
        Threads; the answer does not depend on it.
    verbose : int
        1 shows progress.

    Attributes
    ----------
    sums_ : DeltaRows of shape (n_features, n_classes)
        Sum of each feature over the rows of each label.
    label_totals_, feature_totals_ : arrays of shape (n_classes,) and (n_features,)
        Sums over the features of each label and over the labels of each feature.
    feature_weights_ : array of shape (n_features,)
        β.

    Examples
    --------
    >>> X = sp.csr_array(np.array([[1.0, 0, 0], [1, 1, 0], [0, 1, 1]], dtype=np.float32))
    >>> scorer = ProfileScorer().fit(Samples(X, np.array([0, 0, 1]), n_classes=2))
    >>> scorer.candidates(Rows(X), k=1)[0].ravel()
    array([0, 0, 1])
    """

    name = "profiles"
    stage = 0
    _parameter_constraints: ClassVar = {
        "tune": SWITCH,
        "random_state": SEED,
        "n_jobs": N_JOBS,
        "verbose": VERBOSE,
    }
    _learnt: ClassVar = {
        "sums_": (DeltaRows, sp.csr_array),
        "label_totals_": (np.ndarray, type(None)),
        "feature_totals_": (np.ndarray, type(None)),
        "feature_weights_": np.ndarray,
    }
    #: The same profiles with all features alike, until the two are weighed.
    _plain: Self | None = None

    def __init__(
        self,
        *,
        tune: bool = True,
        random_state: int = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.tune = tune
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @property
    def n_classes(self) -> int:
        """Number of labels."""
        return self.sums_.shape[1]

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.sums_.shape[0]

    # Fit ----------------------------------------------------------------------------------------

    def fit(self, samples: Samples, *, before: Sequence[LabelScorer] = ()) -> Self:
        """Sum up the rows of each label, and learn how much each feature counts."""
        self.check_parameters()
        n_features = samples.X.shape[1]
        self.feature_weights_ = np.ones(n_features, dtype=np.float32)
        self._set_sums(self._sums_of(samples))
        self._plain = None
        if self.tune:
            self._plain = copy.copy(self)
            self._tune(samples)
        return self

    def partial_fit(self, samples: Samples) -> Self:
        """Add more rows, which may have more labels; β stays as it is."""
        sums = self._sums_of(samples)
        self._set_sums(sp.csr_array(self._sums_until(samples.n_classes) + sums))
        return self

    grows = True

    def grow(self, n_features: int) -> None:
        """Add features that no label has, all counting 1."""
        new = n_features - self.n_features
        sums = self.sums_.csr()
        sums.resize(n_features, self.n_classes)
        self._set_sums(sums)
        self.feature_weights_ = np.pad(self.feature_weights_, (0, new), constant_values=1)

    def relabel(self, change: Relabelling) -> None:
        """Add up the sums of merged labels: those of a fit to rows with the new labels."""
        stays = np.flatnonzero(change.codes >= 0)
        ones = np.ones(stays.size, dtype=np.float32)
        shape = (change.codes.size, change.n_classes)
        member = sp.csr_array((ones, (stays, change.codes[stays])), shape=shape)
        self._set_sums(sp.csr_array(self.sums_.csr() @ member))

    def forget(self, samples: Samples) -> dict[str, str]:
        """Take rows out of the sums. How much each feature counts stays as it is."""
        out = self._sums_of(samples)
        sums = self._sums_until(samples.n_classes)
        left = sp.csr_array(sums - out)
        left.sort_indices()
        before = _at(sums, left)
        if (left.data < -_ROUNDING * before).any():
            raise LocoleError(
                "some of the rows were not learnt with these labels: only what was learnt can be "
                "forgotten."
            )
        # What rounding leaves of sums that should be zero would still say which features there were.
        left.data[left.data < _ROUNDING * before] = 0
        self._set_sums(left)
        return {self.name: "exactly, but for the weights of features" if self.tune else "exactly"}

    def add_labels(self, n_classes: int) -> Self:
        """Know labels with empty profiles."""
        self._set_sums(self._sums_until(n_classes))
        return self

    def _sums_until(self, n_classes: int) -> sp.csr_array:
        """Sums of so many labels, the last of which may be new."""
        sums = self.sums_.csr()
        sums.resize((self.n_features, n_classes))
        return sums

    def _sums_of(self, samples: Samples) -> sp.csr_array:
        """Sum of each feature over the rows of each label."""
        X = samples.csr
        if X.data.size and X.data.min() < 0:
            raise LocoleError(
                "label profiles need features that are not negative: fit again with all the data."
            )
        weight = np.ones(samples.n_rows) if samples.weight is None else samples.weight
        owners, shape = samples.owners, (samples.n_classes, samples.n_rows)
        member = sp.csr_array((weight[owners].astype(np.float32), (samples.codes, owners)), shape)
        return sp.csr_array((member @ sp.csr_array(X, dtype=np.float32)).T)

    def _set_sums(self, sums: sp.csr_array) -> None:
        self.sums_ = DeltaRows.of(sums)
        self._plain = None
        self._add_up(sums)
        self.__dict__.pop("_odds", None)

    def _tune(self, samples: Samples) -> None:
        codes, owners = samples.codes, samples.owners
        weight = np.ones(samples.n_rows) if samples.weight is None else samples.weight
        counts = np.bincount(codes, weights=weight[owners] > 0)
        order = np.random.default_rng([self.random_state, codes.size, 2]).permutation(codes.size)
        # A row with several labels is met once for each of them.
        pairs = order[(counts[codes[order]] > 1) & (weight[owners[order]] > 0)][:_TUNE_ROWS]
        if pairs.size == 0:
            return
        rows, codes = owners[pairs], codes[pairs]
        X = sp.csr_array(samples.csr[rows], dtype=np.float32)
        evidence = _Evidence(self, X, codes, weight[rows].astype(np.float32))
        rates = np.linspace(_RATE, 0, rows.size, endpoint=False, dtype=np.float32)
        squares = np.ones_like(self.feature_weights_)
        tuned = np.ones_like(self.feature_weights_)
        parts = slices(rows.size, _BLOCK_ROWS)
        for part in track(parts, "weights of features") if self.verbose else parts:
            for some, found, said in evidence.gather(part, n_jobs=self.n_jobs):
                mine = codes[some]
                # Labels that a row has as well are no rivals; the kernel passes over its own.
                if samples.starts is not None:
                    found = np.where(samples.has(found, rows[some]), mine[:, None], found)
                own = Csr(X.indptr[some.start : some.stop + 1], X.indices, X.data)
                scale = np.float32(_SCALE)
                tune_features(own, mine, found, said.ravel(), scale, rates[some], tuned, squares)
        self.set_feature_weights(tuned)

    # Score --------------------------------------------------------------------------------------

    def candidates(self, rows: Rows, k: int) -> tuple[Codes, NDArray]:
        """Labels with the largest sum of log-odds."""
        return self._scan(rows.csr, k, np.empty((len(rows), 0), dtype=np.int64))[:2]

    def scores_at(self, rows: Rows, codes: Codes) -> NDArray:
        """Sums of log-odds of these labels."""
        return self._scan(rows.csr, 1, codes)[2]

    def candidates_and_scores(
        self, rows: Rows, k: int, codes: Codes
    ) -> tuple[Codes, NDArray, NDArray]:
        """Both in one pass over the features of the rows."""
        return self._scan(rows.csr, k, codes)

    def _scan(
        self, X: sp.csr_array, k: int, found: Codes
    ) -> tuple[Codes, NDArray[np.float32], NDArray[np.float32]]:
        """Score rows against all labels: the best k with their scores, and the scores of ``found``."""
        n_rows = X.shape[0]
        at = np.empty(found.shape, dtype=np.float32)
        scores = np.full((n_rows, k), -np.inf, dtype=np.float32)
        codes = np.zeros((n_rows, k), dtype=np.int64)
        odds = self._log_odds()
        odds.make(X.indices)
        rows = Csr(X.indptr, X.indices, X.data.astype(np.float32, copy=False))
        scan_postings(rows, odds.postings, odds.work(), found, at, scores, codes)
        return codes, scores, at

    def explain(self, rows: Rows, codes: Codes) -> Contributions:
        """Log-odds of each feature, times its entry in the row."""
        X, made = rows.csr, self._log_odds()
        made.make(rows.csr.indices)
        odds = self.sums_.with_values(made.weights)
        found = np.empty((X.nnz, codes.shape[1]))
        for i, part in enumerate(entries_of(X)):
            said = odds.take(X.indices[part]).csr().tocsc()[:, codes[i]].toarray()
            found[part] = X.data[part, None] * said
        return Contributions(found, {})

    # Sources ------------------------------------------------------------------------------------

    @property
    def sources(self) -> list[str]:
        """After `fit`, with all features alike and with the learnt β; later their weighted sum."""
        return ["profiles"] if self._plain is None else ["profiles", "tuned profiles"]

    def source_scores(self, rows: Rows, codes: Codes) -> NDArray:
        """Scores with all features alike, and with β."""
        each: list[Any] = [self] if self._plain is None else [self._plain, self]
        return np.stack([scorer.scores_at(rows, codes) for scorer in each], axis=-1)

    @property
    def signed_sources(self) -> list[str]:
        """Those with all features alike, which correct those with the learnt β."""
        return self.sources[:-1]

    def set_source_weights(self, weights: NDArray[np.float64]) -> float:
        """Add up the features' weights; return the weight of the sum."""
        if self._plain is None:
            return float(weights[0])
        plain, tuned = self._plain.feature_weights_, self.feature_weights_
        total = weights @ np.stack([plain, tuned]).astype(np.float64)
        self._plain = None
        weight = float(np.abs(weights).sum())
        self.set_feature_weights((total / weight if weight > 0 else plain).astype(np.float32))
        return weight

    def set_feature_weights(self, weights: NDArray[np.float32]) -> None:
        """Let each feature count this much.

        Parameters
        ----------
        weights : array of shape (n_features,)
            β.
        """
        self.feature_weights_ = weights
        self.__dict__.pop("_odds", None)

    def _log_odds(self) -> _LogOdds:
        """Return the weights in the form that scans want, made when they are first needed."""
        odds = self.__dict__.get("_odds")
        if odds is None:
            odds = _LogOdds(self.sums_, self._totals(), self.feature_weights_)
            self.__dict__["_odds"] = odds
        return odds

    def _totals(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Sums over the features of each label and over the labels of each feature."""
        if self.label_totals_ is None or self.feature_totals_ is None:  # in files of before
            self._add_up(self.sums_.csr())
        return self.label_totals_, self.feature_totals_

    def _add_up(self, sums: sp.csr_array) -> None:
        by_label, by_feature = (sums.sum(axis=axis, dtype=np.float64) for axis in (0, 1))
        self.label_totals_ = by_label.astype(np.float32)
        self.feature_totals_ = by_feature.astype(np.float32)

    def __getstate__(self) -> Any:
        return {k: v for k, v in super().__getstate__().items() if k not in ("_odds", "_plain")}

    def _check_learnt(self) -> None:
        if sp.issparse(self.sums_):  # in old files
            self.sums_ = DeltaRows.of(self.sums_)
        data = self.sums_.values
        if data.dtype != np.float32 or not (np.isfinite(data).all() and (data >= 0).all()):
            raise ModelFileError("its label profiles are not sums of features")
        tuned = self.feature_weights_
        if tuned.dtype != np.float32 or tuned.shape != self.sums_.shape[:1]:
            raise ModelFileError("its label profiles lack the weights of features")
        if not np.isfinite(tuned).all():
            raise ModelFileError("its label profiles have impossible weights of features")
        every = (self.feature_totals_, self.label_totals_)
        for totals, n in zip(every, self.sums_.shape, strict=True):
            if totals is not None and not _are_sums(totals, n):
                raise ModelFileError("its label profiles have impossible totals")


def _at(sums: sp.csr_array, like: sp.csr_array) -> NDArray[np.float32]:
    """Sums at the entries of another array, in the order of its data; 0 where there are none."""
    n_classes = sums.shape[1]
    known, asked = (
        np.repeat(np.arange(S.shape[0]), np.diff(S.indptr)) * n_classes + S.indices
        for S in (sums, like)
    )
    place = np.searchsorted(known, asked).clip(max=max(known.size - 1, 0))
    return np.where(known[place] == asked, sums.data[place], 0) if known.size else asked * 0.0


def _are_sums(totals: NDArray, size: int) -> bool:
    is_flat = totals.dtype == np.float32 and totals.shape == (size,)
    return bool(is_flat and np.isfinite(totals).all() and (totals >= 0).all())


class _Evidence:
    """What features say of the rows that they are tuned with."""

    def __init__(
        self, profiles: ProfileScorer, X: sp.csr_array, codes: NDArray, weight: NDArray[np.float32]
    ) -> None:
        self._X, self._owners = X, Owners(codes, weight)
        self._odds = odds = profiles._log_odds()
        S = profiles.sums_
        odds.make(np.arange(S.shape[0]))
        common = np.argsort(odds.full, kind="stable")[np.count_nonzero(odds.full < 0) :]
        full, full_weights = (
            np.ascontiguousarray(S.with_values(values).take(common).toarray().T)
            for values in (S.values, odds.weights)
        )
        by_label, by_feature = profiles._totals()
        self._sums = Sums(
            S.values, full, full_weights, by_label, by_feature, np.float32(by_label.sum())
        )
        said = (np.diff(S.starts) <= max(_COMMON, S.shape[1] // _FULL))[X.indices]
        indptr = np.append(0, np.cumsum(said))[X.indptr]
        self._rare = sp.csr_array((X.data[said], X.indices[said], indptr), shape=X.shape)

    def gather(
        self, part: slice, *, n_jobs: int | None
    ) -> list[tuple[slice, NDArray[np.int64], NDArray[np.float32]]]:
        """Return blocks of rows, their rivals and what each non-zero says of those."""

        def block(some: slice) -> tuple[slice, NDArray[np.int64], NDArray[np.float32]]:
            return self._gather(slice(part.start + some.start, part.start + some.stop))

        return map_blocks(block, part.stop - part.start, block=_BLOCK_ROWS // 8, n_jobs=n_jobs)

    def _gather(self, part: slice) -> tuple[slice, NDArray[np.int64], NDArray[np.float32]]:
        pointers = slice(part.start, part.stop + 1)
        rare, rows = (Csr(X.indptr[pointers], X.indices, X.data) for X in (self._rare, self._X))
        k = min(_RIVALS, self._sums.by_label.size)
        scores = np.full((rows.indptr.size - 1, k), -np.inf, dtype=np.float32)
        found = np.zeros(scores.shape, dtype=np.int64)
        evidence = np.zeros((rows.indptr[-1] - rows.indptr[0], WIDTH), dtype=np.float32)
        owners = Owners(self._owners.codes[part], self._owners.weights[part])
        gather_evidence(
            rare, rows, owners, self._odds.postings, self._sums, self._odds.work(),
            (scores, found), evidence,
        )  # fmt: skip
        return part, found, evidence
