"""Kernel ridge regression for each label, on its own rows and those that compete with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from locole.dense_rows import PairedRows
from locole.exceptions import LocoleError, ModelFileError
from locole.io import saved_as
from locole.label_past import Relabelling
from locole.parallel.blocks import map_blocks, slices
from locole.parameters import N_JOBS, POSITIVE, one_of
from locole.regressors.storage import pack
from locole.samples import Rows, Samples
from locole.scoring.base import Codes, LabelScorer, best_of
from locole.scoring.label_table import LabelTable
from locole.scoring.single_labels import divided, weights_of
from locole.scoring.whitening import Whitening, label_sums, unit

__all__ = ["LocalKernelScorer"]

# Labels that compete for a row: sixteen instead of eight gain a tenth of a point for nearly three times
# the CPU time of a fit, and four lose a part of the gain (docs/research/dense.md).
_RIVALS = 8
# How whitened means are regularised where these say which labels compete.
_RIDGE = 0.3
# Rows of a label's regression at most: its time grows with the cube of them.
_MOST = 2048
# Penalty of a row at least, however much it counts: equations are solved in single precision.
_LEAST_PENALTY = 1e-3
# Variance of all rows at least, which have length 1.
_LEAST_VARIANCE = 1e-3
# Rows whose rivals are found in one go, known rows and points that are multiplied in one go, and
# similarities that exist at a time.
_BLOCK_ROWS, _KNOWN_ROWS, _POINTS, _SIMILARITIES = 512, 4096, 256, 2**23


@saved_as("scorer.local_kernel")
class LocalKernelScorer(LabelScorer):
    r"""Score of a label: a kernel ridge regression on the rows for which it is among the best.

    .. math:: s_i(x) = b_i + \sum_{r \in R_i} \beta_{ir} k(x, x_r), \qquad
              (K_{R_i} + \lambda S^{-1}) \beta_i = y_i - b_i, \qquad
              k(x, x') = e^{-\gamma \|u - u'\|^2}, \quad u = x / \|x\|

    R_i are the rows of label i and those for which another scorer ranks i among the best eight, 2,048 at
    most. y_i is 1 for rows of i and 0 for others, b_i its mean, S holds the weights of the rows. Other
    rows say next to nothing of a label, and without them N³/3 operations become C (8N/C)³/3.

    In an ensemble that scorer is the first before it that looks at dense rows, such as prototypes; alone
    it goes by whitened means of labels, which are not as good at it. Rows that come later compete for
    the labels that are best by the scores themselves; the equations of all labels concerned are then
    solved again.

    Memory: a byte for each number of a training row, and eight times eight bytes for each row.

    Parameters
    ----------
    gamma : float or "auto"
        γ; ``"auto"``: 1 over the mean squared distance of two rows.
    l2 : float
        Penalty λ.
    n_jobs : int, optional
        Threads that solve for different labels; the answer does not depend on it.

    Attributes
    ----------
    rows_ : array of shape (n_rows, numbers)
        Training rows of unit length, in one byte for each number, to be multiplied by ``row_scales_``.
    row_scales_, codes_, weight_ : arrays of shape (n_rows,)
        What the bytes are multiplied by; label and weight of each row.
    betas_ : CSR array of shape (n_classes, n_rows)
        β; the entries of row i, some of which may be 0, are R_i.
    intercept_ : array of shape (n_classes,)
        b.
    gamma_ : float
        γ in use.
    is_beside_ : bool
        Whether rows have sparse features too, at which it does not look.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> codes = np.arange(200) % 5
    >>> X = rng.normal(size=(5, 32))[codes] + 0.5 * rng.normal(size=(200, 32))
    >>> scorer = LocalKernelScorer().fit(Samples(X, codes, n_classes=5))
    >>> bool((scorer.candidates(Rows(X), k=1)[0].ravel() == codes).all())
    True
    """

    name = "local kernel"
    stage = 2
    optional = True
    takes_dense = True
    _parameter_constraints: ClassVar = {
        "gamma": [*POSITIVE, *one_of("auto")],
        "l2": POSITIVE,
        "n_jobs": N_JOBS,
    }
    _learnt: ClassVar = {
        "rows_": np.ndarray,
        "row_scales_": np.ndarray,
        "codes_": np.ndarray,
        "weight_": np.ndarray,
        "betas_": sp.csr_array,
        "intercept_": np.ndarray,
        "gamma_": float,
        "is_beside_": bool,
    }

    def __init__(
        self,
        *,
        gamma: float | Literal["auto"] = "auto",
        l2: float = 0.1,
        n_jobs: int | None = None,
    ) -> None:
        self.gamma = gamma
        self.l2 = l2
        self.n_jobs = n_jobs

    @property
    def n_classes(self) -> int:
        """Number of labels."""
        return self.intercept_.size

    @property
    def n_features(self) -> int | None:
        """Numbers of a row, unless they stand beside other features."""
        return None if self.is_beside_ else self.rows_.shape[1]

    @property
    def n_beside(self) -> int | None:
        """Numbers of a row, if they stand beside other features."""
        return self.rows_.shape[1] if self.is_beside_ else None

    @property
    def grows(self) -> bool:
        """Whether more features mean nothing to it, because it looks at dense numbers beside them."""
        return self.is_beside_

    # Fit ----------------------------------------------------------------------------------------

    def fit(self, samples: Samples, *, before: Sequence[LabelScorer] = ()) -> Self:
        """Solve for all labels; a scorer before it says which labels compete for a row."""
        self.check_parameters()
        self.is_beside_ = isinstance(samples.X, PairedRows)
        self.rows_ = np.empty((0, samples.dense.shape[1]), dtype=np.int8)
        self.row_scales_ = np.empty(0, dtype=np.float32)
        self.codes_, self.weight_ = np.empty(0, dtype=np.int64), np.empty(0)
        self.betas_ = sp.csr_array((samples.n_classes, 0), dtype=np.float32)
        self.intercept_ = np.zeros(samples.n_classes)
        ranking = next((scorer for scorer in before if scorer.takes_dense), None)
        others, samples = divided(samples)
        rivals = self._by_means(samples) if ranking is None else self._best(ranking, samples)
        return self._learn(samples, others, rivals)

    def partial_fit(self, samples: Samples) -> Self:
        """Keep more rows, which may have more labels, and solve again for the labels concerned."""
        others, samples = divided(samples)
        if samples.n_rows == 0:
            return self.add_labels(samples.n_classes)
        return self._learn(samples, others, self._best(self, samples))

    def _learn(self, samples: Samples, others: sp.csr_array | None, rivals: Codes) -> Self:
        """Learn rows that compete for these labels of each; ``others`` are their own."""
        labels = np.hstack([samples.codes[:, None], rivals]).ravel()
        rows = np.repeat(np.arange(samples.n_rows), 1 + rivals.shape[1])
        if others is not None:  # they do not compete
            is_other = np.asarray(others[rows, labels]).ravel() > 0
            labels, rows = labels[~is_other], rows[~is_other]
        n_known, counts = self.codes_.size, np.bincount(self.codes_, minlength=samples.n_classes)
        self._keep_rows(samples)
        if n_known:
            new = np.flatnonzero(counts[samples.codes] == 0)
            more = self._rows_against(samples.codes[new], rivals[new])
            labels, rows = np.append(labels, more[0]), np.append(rows + n_known, more[1])
        known = self.betas_.tocoo()
        zeros = np.zeros(labels.size, dtype=np.float32)
        self._set(
            np.append(known.row, labels),
            np.append(known.col, rows),
            np.append(known.data, zeros),
            samples.n_classes,
            solve=np.unique(labels),
        )
        return self

    def _best(self, ranking: LabelScorer, samples: Samples) -> Codes:
        """Best labels of each row."""
        dense, k = samples.dense, min(_RIVALS, ranking.n_classes)

        def best(part: slice) -> Codes:
            return ranking.candidates(Rows(dense[part]), k)[0]

        parts = map_blocks(best, samples.n_rows, block=_BLOCK_ROWS, n_jobs=self.n_jobs)
        return np.concatenate(parts)

    def _by_means(self, samples: Samples) -> Codes:
        """Labels whose whitened means are most similar to each row."""
        rows, codes, weights = samples.dense, samples.codes, weights_of(samples)
        settings: Any = {"ridge": _RIDGE, "n_views": 2, "n_jobs": self.n_jobs}
        Z = Whitening.fit(rows, codes, weights, **settings).all_points(rows, n_jobs=self.n_jobs)
        means = LabelTable.of(unit(label_sums(Z, codes, weights, samples.n_classes)), None)
        return means.best(Z, min(_RIVALS, samples.n_classes))[0]

    def _keep_rows(self, samples: Samples) -> None:
        """Keep rows of unit length in bytes."""
        parts = slices(samples.n_rows, _KNOWN_ROWS)
        packed = [pack(unit(samples.dense[part]), "int8") for part in parts]
        self.rows_ = np.concatenate([self.rows_, *(part.numbers for part in packed)])
        self.row_scales_ = np.concatenate([self.row_scales_, *(part.scales for part in packed)])
        self.codes_ = np.append(self.codes_, samples.codes)
        is_first, self.weight_ = not self.weight_.size, np.append(self.weight_, weights_of(samples))
        if is_first:
            self.gamma_ = self._typical() if self.gamma == "auto" else float(self.gamma)

    def _typical(self) -> float:
        """1 over the mean squared distance of two rows."""
        mean = (self.weight_ * self.row_scales_).astype(np.float32) @ self.rows_
        mean = mean.astype(np.float64) / self.weight_.sum()
        return float(0.5 / max(1 - mean @ mean, _LEAST_VARIANCE))

    def _rows_against(self, codes: Codes, rivals: Codes) -> tuple[Codes, Codes]:
        """Known rows of the labels that are best for the rows of new labels: these need rivals, too."""
        labels, rows = [codes[:0]], [codes[:0]]
        for label in np.unique(codes):
            near, counts = np.unique(rivals[codes == label], return_counts=True)
            near = near[np.argsort(-counts, kind="stable")[:_RIVALS]]
            rows.append(np.flatnonzero(np.isin(self.codes_, near)))
            labels.append(np.full(rows[-1].size, label))
        return np.concatenate(labels), np.concatenate(rows)

    def _set(
        self, labels: Codes, rows: Codes, betas: NDArray, n_classes: int, *, solve: Codes
    ) -> None:
        """Take pairs of labels and rows, and solve the equations of some labels."""
        shape = (n_classes, self.codes_.size)
        sets = sp.csr_array((betas, (labels, rows)), shape=shape)
        sets.sum_duplicates()
        if np.diff(sets.indptr).max(initial=0) > _MOST:
            sets = _thinned(sets)
        more = n_classes - self.intercept_.size
        intercept, starts = np.pad(self.intercept_, (0, max(more, 0))), sets.indptr

        def solve_one(part: slice) -> None:
            label = solve[part.start]
            own = slice(starts[label], starts[label + 1])
            found = self._solved(label, sets.indices[own])
            sets.data[own], intercept[label] = found

        map_blocks(solve_one, solve.size, block=1, n_jobs=self.n_jobs)
        self.betas_, self.intercept_ = sets, intercept

    def _solved(self, label: int, rows: NDArray) -> tuple[NDArray[np.float32], float]:
        """β and b of a label whose regression has these rows."""
        if rows.size == 0:
            return np.empty(0, dtype=np.float32), 0.0
        right, weight = (self.codes_[rows] == label).astype(np.float64), self.weight_[rows]
        mean = float(np.average(right, weights=weight))
        points = LabelTable(self.rows_[rows], self.row_scales_[rows]).unpacked()
        K = _similarities(points @ points.T, self.gamma_)
        penalty = np.maximum(self.l2 / weight, _LEAST_PENALTY)
        K[np.diag_indices_from(K)] += penalty.astype(np.float32)
        factor = cho_factor(K, lower=True, overwrite_a=True, check_finite=False)
        return cho_solve(factor, (right - mean).astype(np.float32), check_finite=False), mean

    # Labels and rows that change ----------------------------------------------------------------

    def add_labels(self, n_classes: int) -> Self:
        """Know labels without rows, whose score is 0."""
        known = self.betas_
        starts = np.pad(known.indptr, (0, n_classes - self.n_classes), mode="edge")
        shape = (n_classes, known.shape[1])
        self.betas_ = sp.csr_array((known.data, known.indices, starts), shape=shape)
        self.intercept_ = np.pad(self.intercept_, (0, n_classes - self.n_classes))
        return self

    def relabel(self, change: Relabelling) -> None:
        """Give rows to the labels that theirs became, and solve for these again."""
        codes = change.codes[self.codes_]
        merged = np.unique(change.codes[change.merged])
        self.intercept_ = self.intercept_[change.kept]
        self._reduce(codes, change.codes, change.n_classes, solve=merged)

    def forget(self, samples: Samples) -> dict[str, str]:
        """Leave out one equal row for each, the last, and solve again for the labels concerned."""
        _, samples = divided(samples)
        codes = self.codes_.copy()
        numbers, scales = pack(unit(samples.dense[:]), "int8")
        for i, code in enumerate(samples.codes):
            same = np.flatnonzero((codes == code) & (self.row_scales_ == scales[i]))
            same = same[(self.rows_[same] == numbers[i]).all(axis=1)]
            if same.size == 0:
                raise LocoleError(
                    f"row {i} of those with a label was not learnt: only what was learnt can be "
                    "forgotten."
                )
            codes[same[-1]] = -1
        every = np.arange(self.n_classes)
        self._reduce(codes, every, every.size, solve=every[:0])
        return {self.name: "exactly"}

    def _reduce(self, codes: Codes, labels: Codes, n_classes: int, *, solve: Codes) -> None:
        """Take other codes of rows and labels, of which those below 0 are gone."""
        known, kept = self.betas_.tocoo(), codes >= 0
        named, place = labels[known.row], np.cumsum(kept) - 1
        stays = kept[known.col]
        concerned = np.unique(named[~stays])
        stays &= named >= 0
        self.rows_, self.row_scales_ = self.rows_[kept], self.row_scales_[kept]
        self.codes_, self.weight_ = codes[kept], self.weight_[kept]
        self._set(
            named[stays],
            place[known.col[stays]],
            known.data[stays],
            n_classes,
            solve=np.union1d(concerned[concerned >= 0], solve),
        )

    # Score --------------------------------------------------------------------------------------

    def candidates(self, rows: Rows, k: int) -> tuple[Codes, NDArray]:
        """Labels with the largest scores, found by looking at all."""
        return best_of(self.all_scores(rows), k)

    def scores_at(self, rows: Rows, codes: Codes) -> NDArray[np.float64]:
        """Scores of these labels, of those of all."""
        return np.take_along_axis(self.all_scores(rows), codes, 1)

    def all_scores(self, rows: Rows) -> NDArray[np.float64]:
        """Sums over the similarities to all training rows."""
        return rows.once(self, lambda: self._scores(unit(rows.dense)))

    def _scores(self, points: NDArray[np.float32]) -> NDArray[np.float64]:
        n_known, table = self.codes_.size, LabelTable(self.rows_, self.row_scales_)
        out = np.tile(self.intercept_, (len(points), 1))
        size = int(np.clip(_SIMILARITIES // max(n_known, 1), 1, _POINTS))
        for some in slices(len(points), size):
            K = np.empty((n_known, some.stop - some.start), dtype=np.float32)
            for part in slices(n_known, _KNOWN_ROWS):
                K[part] = table.take(part).rough(points[some]).T
            out[some] += (self.betas_ @ _similarities(K, self.gamma_)).T
        return out

    # Save ---------------------------------------------------------------------------------------

    def _check_learnt(self) -> None:
        n_rows, n_classes = self.codes_.size, self.intercept_.size
        fits = (
            self.rows_.ndim == 2
            and self.rows_.shape[0] == n_rows
            and self.rows_.dtype == np.int8
            and self.row_scales_.shape == self.codes_.shape == self.weight_.shape == (n_rows,)
            and self.intercept_.shape == (n_classes,)
            and self.betas_.shape == (n_classes, n_rows)
            and self.codes_.dtype == np.int64
            and self.weight_.dtype == self.intercept_.dtype == np.float64
            and self.betas_.dtype == np.float32
        )
        if not fits:
            raise ModelFileError("its local kernel has arrays that do not fit together")
        are_numbers = (
            LabelTable(self.rows_, self.row_scales_).is_sound()
            and np.isfinite(self.betas_.data).all()
            and np.isfinite(self.intercept_).all()
            and np.isfinite(self.weight_).all()
            and (self.weight_ > 0).all()
            and 0 < self.gamma_ < np.inf
        )
        if not are_numbers:
            raise ModelFileError("its local kernel is not of numbers")
        if ((self.codes_ < 0) | (self.codes_ >= n_classes)).any():
            raise ModelFileError("its local kernel has rows of labels that there are not")


def _similarities(products: NDArray[np.float32], gamma: float) -> NDArray[np.float32]:
    """``exp(2γ (⟨u, v⟩ − 1))`` of the products, in place."""
    products -= 1
    products *= np.float32(2 * gamma)
    return np.exp(products, out=products)


def _thinned(sets: sp.csr_array) -> sp.csr_array:
    """Of each label that has more, 2,048 rows at equal distances."""
    kept: list[Any] = []
    for first, last in zip(sets.indptr[:-1], sets.indptr[1:], strict=True):
        size = min(last - first, _MOST)
        kept.append(np.linspace(first, last - 1, size).round().astype(np.int64))
    places = np.concatenate(kept)
    starts = np.append(0, np.cumsum([part.size for part in kept]))
    return sp.csr_array((sets.data[places], sets.indices[places], starts), shape=sets.shape)
