"""Prototypes: a vector for each label, which begins as the mean of its dense rows and is refined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.base import clone

from locole.dense_rows import PairedRows
from locole.exceptions import LocoleError, ModelFileError
from locole.io import saved_as
from locole.label_past import Relabelling
from locole.parallel.blocks import map_blocks
from locole.parallel.memory import available_bytes
from locole.parameters import N_JOBS, POSITIVE, SEED, at_least, one_of
from locole.regressors.storage import pack
from locole.samples import LARGEST, Rows, Samples, spare_rows
from locole.scoring import label_descent
from locole.scoring.base import Codes, Contributions, LabelScorer, entries_of
from locole.scoring.label_table import LabelTable
from locole.scoring.single_labels import divided, first_labels, weights_of, with_some_labels
from locole.scoring.whitening import (
    SCALES,
    Whitening,
    label_sums,
    leave_one_out,
    mean_loss_at,
    unit,
)

__all__ = ["PrototypeScorer"]

# Ridges that are tried; rows at most, of labels drawn at random, and passes that they are tried with.
_RIDGES, _RIDGE_ROWS, _RIDGE_EPOCHS = (0.03, 0.3, 3.0, None), 10_000, 4
# First rate of the refinement, and the share of it by which rows are learnt that come later.
_RATE, _LATER = 1.5, 0.25
# Share of all rows from which on those that were put aside are learnt by learning all rows again.
_MANY = 0.05
# Rows by which the scale is chosen: as many as give so many scores, and at most so many.
_SCALE_SCORES, _SCALE_ROWS = 50_000_000, 2_000
# Rows looked at at a time.
_BLOCK_ROWS = 128


@saved_as("scorer.prototypes")
class PrototypeScorer(LabelScorer):
    r"""Score of a label: the inner product of its vector with the whitened row.

    .. math:: s_i(x) = \langle z(x), v_i \rangle, \qquad
              z(x) = \frac{A^\top(x - \mu)}{\|A^\top(x - \mu)\|}

    for dense rows x, which are scaled to unit length first. A whitens what varies within labels, as in
    linear discriminant analysis: :math:`A A^\top = (S + \rho s I)^{-1}` with S the covariance within
    labels and s its mean diagonal. Vectors begin as label means of length t, the scale that makes labels
    most likely, and are refined by AdaGrad on the cross-entropy of a row's label. Up to 4,096 labels all
    compete; of more, 1,024 similar ones and 512 drawn ones.

    With ``views=2`` a row is seen twice, centred and whitened, side by side: what is small within labels
    and what is large in all rows both count. It takes twice the time and memory.

    Rows are scored leave-one-out: the score of a row's own label is corrected by what the row itself
    adds to the mean. So a label with one row does not recognise itself, and scores are logits of new
    rows from the beginning.

    Memory: two bytes for each label and number of a row; while it learns, two float32 numbers, and the
    whitened rows, in a temporary file if they are too many for memory.

    Parameters
    ----------
    ridge : float, None or "auto"
        ρ; None does not whiten. ``"auto"``: of 0.03, 0.3, 3 and None the one with the smallest loss on
        validation rows, in trials with 10,000 rows.
    views : {1, 2}
        Whether rows are seen whitened only, or also as they are; 1 where nothing is whitened.
    epochs : int
        Passes of the refinement; 0 leaves the means as they are.
    random_state : int
        Seed of the order of rows, of the labels drawn and of the choice of the whitening.
    n_jobs : int, optional
        Threads; the answer does not depend on it.

    Attributes
    ----------
    mean_ : array of shape (numbers,)
        Mean of the rows, which is subtracted.
    whitening_ : array of shape (numbers, numbers) or None
        A; None if rows are better as they are.
    vectors_, sums_ : arrays of shape (n_classes, views · numbers)
        v, and the sums of the labels' whitened rows, for `partial_fit`. In one byte each, to be
        multiplied by ``vector_scales_`` and ``sum_scales_`` (in float32 without these in old files).
    vector_scales_, sum_scales_ : arrays of shape (n_classes,), or None
        What the bytes of each label are multiplied by.
    counts_, squares_ : arrays of shape (n_classes,)
        Weights of the labels' rows, and AdaGrad's sums of squared slopes.
    scale_ : float
        t.
    is_beside_ : bool
        Whether rows have sparse features too, at which it does not look.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> codes = np.arange(200) % 5
    >>> X = rng.normal(size=(5, 32))[codes] + 0.5 * rng.normal(size=(200, 32))
    >>> scorer = PrototypeScorer().fit(Samples(X, codes, n_classes=5))
    >>> bool((scorer.candidates(Rows(X), k=1)[0].ravel() == codes).all())
    True
    """

    name = "prototypes"
    takes_dense = True
    _parameter_constraints: ClassVar = {
        "ridge": [None, *POSITIVE, *one_of("auto")],
        "views": at_least(1, 2),
        "epochs": at_least(0, 10_000),
        "random_state": SEED,
        "n_jobs": N_JOBS,
    }
    _learnt: ClassVar = {
        "mean_": np.ndarray,
        "whitening_": (np.ndarray, type(None)),
        "vectors_": np.ndarray,
        "vector_scales_": (np.ndarray, type(None)),
        "sums_": np.ndarray,
        "sum_scales_": (np.ndarray, type(None)),
        "counts_": np.ndarray,
        "squares_": np.ndarray,
        "scale_": float,
        "is_beside_": bool,
    }

    def __init__(
        self,
        *,
        ridge: float | Literal["auto"] | None = "auto",
        views: int = 1,
        epochs: int = 8,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.ridge = ridge
        self.views = views
        self.epochs = epochs
        self.random_state = random_state
        self.n_jobs = n_jobs

    @property
    def n_classes(self) -> int:
        """Number of labels."""
        return self.vectors_.shape[0]

    @property
    def n_features(self) -> int | None:
        """Numbers of a row, unless they stand beside other features."""
        return None if self.is_beside_ else self.mean_.size

    @property
    def n_beside(self) -> int | None:
        """Numbers of a row, if they stand beside other features."""
        return self.mean_.size if self.is_beside_ else None

    # Fit ----------------------------------------------------------------------------------------

    def fit(self, samples: Samples, *, before: Sequence[LabelScorer] = ()) -> Self:
        """Whiten the rows, take the means of labels and refine them."""
        self.check_parameters()
        _check_room(samples.n_classes, self.views * samples.dense.shape[1])
        is_open = self.ridge == "auto"
        self._ridge = (
            self._chosen_ridge(first_labels(samples.positive())) if is_open else self.ridge
        )
        return self._fit(samples)

    def _fit(self, samples: Samples) -> Self:
        """Learn with the ridge that is chosen."""
        others, samples = divided(samples)
        rows, weights = samples.dense, weights_of(samples)
        ridge: Any = self._ridge
        whitening = Whitening.fit(
            rows, samples.codes, weights, ridge=ridge, n_views=self.views, n_jobs=self.n_jobs
        )
        self.is_beside_ = isinstance(samples.X, PairedRows)
        self.mean_, self.whitening_ = whitening.mean, whitening.matrix
        self.scale_ = 1.0
        self.vectors_ = np.zeros((0, whitening.width), dtype=np.float32)
        self.sums_ = self.vectors_
        self.vector_scales_: NDArray[np.float32] | None = None
        self.sum_scales_: NDArray[np.float32] | None = None
        self.counts_, self.squares_ = np.zeros(0), np.zeros(0, dtype=np.float32)
        Z = self._add(samples, weights)
        self.scale_ = self._chosen_scale(Z, samples.codes, weights)
        self.vectors_ *= np.float32(self.scale_)
        rates = _RATE * np.linspace(1, 0, self.epochs + 1)
        self._refine(Z, samples, weights, rates=rates, others=others)
        self._pack()
        return self

    def partial_fit(self, samples: Samples) -> Self:
        """Move the means of labels by more rows, which may have more labels, and refine them."""
        others, samples = divided(samples)
        weights = weights_of(samples)
        seed = [self.random_state, samples.n_rows, int(self.counts_.sum()), 8]
        self._unpack()
        Z = self._add(samples, weights)
        if self.epochs:
            rates = np.array([_LATER * _RATE, 0.0])
            self._refine(Z, samples, weights, rates=rates, others=others)
        self._pack(dither=np.random.default_rng(seed))
        return self

    def learn_rest(self, rest: Samples, every: Samples) -> Self:
        """Learn the rows put aside; if they are many, by learning all rows again."""
        if not self.epochs or rest.n_rows < _MANY * every.n_rows:
            return self.partial_fit(rest)
        return self._fit(every)

    def add_labels(self, n_classes: int) -> Self:
        """Give more labels vectors of zeros, from which they can be learnt."""
        new = (0, n_classes - self.n_classes)
        for name in ("vectors_", "sums_"):
            setattr(self, name, np.pad(getattr(self, name), [new, (0, 0)]))
        for name in ("vector_scales_", "sum_scales_", "counts_"):
            if getattr(self, name) is not None:
                setattr(self, name, np.pad(getattr(self, name), new))
        self.squares_ = np.pad(self.squares_, new, constant_values=label_descent.SQUARES)
        return self

    def _pack(self, dither: np.random.Generator | None = None) -> None:
        """Keep a byte of each number; with ``dither`` the changes of many small steps add up."""
        self.vectors_, self.vector_scales_ = pack(self.vectors_, "int8", dither)
        self.sums_, self.sum_scales_ = pack(self.sums_, "int8", dither)

    def _unpack(self) -> None:
        self.vectors_, self.sums_ = self._labels.unpacked(), self._sums.unpacked()
        self.vector_scales_ = self.sum_scales_ = None

    @property
    def grows(self) -> bool:
        """Whether more features mean nothing to it, because it looks at dense numbers beside them."""
        return self.is_beside_

    def relabel(self, change: Relabelling) -> None:
        """Add up the rows of merged labels; what was refined is that of the label that is kept."""
        moved, of_moved = np.unique(change.codes[change.merged]), self._sums.take(change.kept)
        sums = change.added(self._sums.unpacked())[moved]
        self.counts_, self.squares_ = change.added(self.counts_), self.squares_[change.kept]
        self.vectors_, scales = self._labels.take(change.kept)
        self.vector_scales_ = scales if scales.size else None
        self.sums_, sum_scales = of_moved
        self.sum_scales_ = sum_scales if sum_scales.size else None
        self._move(moved, sums)

    def forget(self, samples: Samples) -> dict[str, str]:
        """Take rows out of the means of their labels; what was refined, and the whitening, stay."""
        _, samples = divided(samples)
        Z, weights = (
            self._whitening.all_points(samples.dense, n_jobs=self.n_jobs),
            weights_of(samples),
        )
        out = np.bincount(samples.codes, weights, minlength=self.n_classes)
        moved = np.flatnonzero(out)
        if (out > self.counts_ + 1e-6 * (1 + self.counts_)).any():
            raise LocoleError(
                "a label has fewer rows than are to be forgotten: only what was learnt can be."
            )
        sums = self._sums.take(moved).unpacked()
        sums = sums - label_sums(Z, samples.codes, weights, self.n_classes)[moved]
        self.counts_ = np.maximum(self.counts_ - out, 0)
        sums[self.counts_[moved] < 1e-6] = 0
        self._move(moved, sums)
        return {self.name: "partly"}

    def _move(self, labels: NDArray[np.int64], sums: NDArray[np.float32]) -> None:
        """Give labels other sums, and move their vectors as their means move."""
        change = unit(sums) - unit(self._sums.take(labels).unpacked())
        vectors = self._labels.take(labels).unpacked() + np.float32(self.scale_) * change
        self.vectors_, self.sums_ = self.vectors_.copy(), self.sums_.copy()
        if self.vector_scales_ is not None and self.sum_scales_ is not None:
            self.vector_scales_, self.sum_scales_ = (
                self.vector_scales_.copy(),
                self.sum_scales_.copy(),
            )
            vectors, self.vector_scales_[labels] = pack(vectors, "int8")
            sums, self.sum_scales_[labels] = pack(sums, "int8")
        self.vectors_[labels], self.sums_[labels] = vectors, sums

    def _chosen_ridge(self, samples: Samples) -> float | None:
        """Ridge with the smallest loss on validation rows of some labels."""
        rng = np.random.default_rng([self.random_state, samples.n_rows, 5])
        some = with_some_labels(samples, _RIDGE_ROWS, rng)
        validation = spare_rows(some.codes, some.n_rows // 5, seed=rng)
        if validation.size == 0:  # every label has one row
            return None
        train = some.take(np.setdiff1d(np.arange(some.n_rows), validation))
        test = some.take(validation)
        losses = [self._trial(ridge, train, test) for ridge in _RIDGES]
        return _RIDGES[int(np.argmin(losses))]

    def _trial(self, ridge: float | None, train: Samples, test: Samples) -> float:
        """Mean loss of test rows by a scorer with this ridge."""
        epochs = min(self.epochs, _RIDGE_EPOCHS)
        scorer = clone(self).set_params(ridge=ridge, epochs=epochs).fit(train)
        scores = scorer.all_scores(Rows(test.dense[:]))
        losses = logsumexp(scores, axis=1) - scores[np.arange(test.n_rows), test.codes]
        return float(np.average(losses, weights=test.weight))

    def _add(self, samples: Samples, weights: NDArray) -> NDArray[np.float32]:
        """Add rows to the sums, and move the vectors with them; return the whitened rows."""
        Z = self._whitening.all_points(samples.dense, n_jobs=self.n_jobs)
        new = samples.n_classes - self.n_classes
        squares = np.full(new, label_descent.SQUARES, dtype=np.float32)
        old = np.pad(self.sums_, [(0, new), (0, 0)])
        counts = np.bincount(samples.codes, weights, minlength=samples.n_classes)
        self.sums_ = old + label_sums(Z, samples.codes, weights, samples.n_classes)
        self.counts_ = np.pad(self.counts_, (0, new)) + counts
        self.squares_ = np.append(self.squares_, squares)
        self.vectors_ = np.pad(self.vectors_, [(0, new), (0, 0)])
        moved = np.flatnonzero(counts)
        change = unit(self.sums_[moved]) - unit(old[moved])
        self.vectors_[moved] += np.float32(self.scale_) * change
        return Z

    def _refine(
        self,
        Z: NDArray[np.float32],
        samples: Samples,
        weights: NDArray,
        *,
        rates: NDArray,
        others: sp.csr_array | None,
    ) -> None:
        codes = samples.codes
        apart = np.empty(codes.size, dtype=np.float32)

        def fill(part: slice) -> None:
            own, others = leave_one_out(Z[part], self.sums_[codes[part]], weights[part])
            apart[part] = np.float32(self.scale_) * (others - own)

        map_blocks(fill, codes.size, block=32 * _BLOCK_ROWS, n_jobs=self.n_jobs)
        label_descent.descend(
            label_descent.Rows(Z, codes, weights.astype(np.float32), apart, others),
            self.vectors_,
            self.squares_,
            rates=rates,
            rng=np.random.default_rng([self.random_state, codes.size, 6]),
            n_jobs=self.n_jobs,
        )

    def _chosen_scale(self, Z: NDArray[np.float32], codes: Codes, weights: NDArray) -> float:
        """Scale of the cosines with the means that makes the labels of some rows most likely."""
        rng = np.random.default_rng([self.random_state, codes.size, 7])
        counts = np.bincount(codes, minlength=self.n_classes)
        rows = rng.permutation(np.flatnonzero(counts[codes] > 1))
        rows = rows[: min(_SCALE_ROWS, max(_BLOCK_ROWS, _SCALE_SCORES // self.n_classes))]

        def losses(part: slice) -> NDArray[np.float64]:
            some = rows[part]
            cosines = Z[some] @ self.vectors_.T
            _, others = leave_one_out(Z[some], self.sums_[codes[some]], weights[some])
            cosines[np.arange(some.size), codes[some]] = others
            return mean_loss_at(cosines, codes[some], weights[some])

        found = map_blocks(losses, rows.size, block=_BLOCK_ROWS, n_jobs=self.n_jobs)
        return float(SCALES[np.argmin(sum(found))]) if found else float(SCALES[SCALES.size // 2])

    # Score --------------------------------------------------------------------------------------

    @property
    def _labels(self) -> LabelTable:
        return LabelTable.of(self.vectors_, self.vector_scales_)

    @property
    def _sums(self) -> LabelTable:
        return LabelTable.of(self.sums_, self.sum_scales_)

    @property
    def _whitening(self) -> Whitening:
        return Whitening(self.mean_, self.whitening_, self.vectors_.shape[1] // self.mean_.size)

    def points(self, rows: Rows) -> NDArray[np.float32]:
        """Whitened rows.

        Parameters
        ----------
        rows : Rows
            Rows to score.
        """
        return rows.once(self, lambda: self._whitening.points(rows.dense))

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
        """What each number of a row adds; what centring takes off stands for itself.

        Beside sparse features, which others explain, the numbers of an encoder mean nothing to anybody:
        the score is one contribution.
        """
        if self.is_beside_:
            return super().explain(rows, codes)
        X, mean = rows.csr, self.mean_.astype(np.float64)
        sizes = np.linalg.norm(rows.dense.astype(np.float64), axis=1)
        found, rest = np.zeros((X.nnz, codes.shape[1])), np.zeros(codes.shape)
        for i, part in enumerate(entries_of(X)):
            if sizes[i] == 0:
                continue
            vectors = self._labels.take(codes[i]).unpacked().astype(np.float64)
            row = rows.dense[i].astype(np.float64) / sizes[i]
            labels = self._whitening.pulled_back(row, vectors)
            found[part] = X.data[part, None] / sizes[i] * labels[:, X.indices[part]].T
            rest[i] = -(labels @ mean)
        return Contributions(found, {self.name: rest})

    # Save ---------------------------------------------------------------------------------------

    def _check_learnt(self) -> None:
        n_classes, width = self.vectors_.shape if self.vectors_.ndim == 2 else (0, 0)
        n_numbers = self.mean_.size
        widths = [n_numbers] if self.whitening_ is None else [n_numbers, 2 * n_numbers]
        shapes: dict[str, tuple[int, ...]] = {"mean_": (n_numbers,), "squares_": (n_classes,)}
        if self.whitening_ is not None:
            shapes["whitening_"] = (n_numbers, n_numbers)
        arrays = {name: getattr(self, name) for name in shapes}
        fits = (
            n_classes >= 1
            and n_numbers >= 1
            and width in widths
            and self.sums_.shape == self.vectors_.shape
            and all(arrays[name].shape == shape for name, shape in shapes.items())
            and all(array.dtype == np.float32 for array in arrays.values())
            and self.counts_.shape == (n_classes,)
            and self.counts_.dtype == np.float64
        )
        if not fits:
            raise ModelFileError("its prototypes do not fit together")
        are_numbers = all(np.isfinite(array).all() for array in (*arrays.values(), self.counts_))
        are_numbers = are_numbers and self._labels.is_sound() and self._sums.is_sound()
        are_counts = (
            (self.counts_ >= 0) & (self.counts_ <= LARGEST)
        ).all()  # so that sums are finite
        if not (are_numbers and (self.squares_ > 0).all() and are_counts):
            raise ModelFileError("its prototypes are not numbers")
        if not 0 < self.scale_ < np.inf:
            raise ModelFileError("its prototypes have an invalid scale")


def _check_room(n_classes: int, n_numbers: int) -> None:
    """Refuse label vectors that would not fit into memory: vectors, sums, and a copy of either."""
    needed, left = 3 * 4 * n_classes * n_numbers, available_bytes()
    if left is not None and needed > left:
        raise LocoleError(
            f"prototypes of {n_classes:,} labels with {n_numbers:,} numbers each take "
            f"{needed / 1e9:.1f} GB while they are learnt, and {left / 1e9:.1f} GB are free: give rows "
            "fewer numbers, for example by sklearn.decomposition.PCA."
        )
