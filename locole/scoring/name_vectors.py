"""Labels scored by the dense vectors of their texts against those of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from locole.dense_rows import DenseRows, PairedRows
from locole.exceptions import LocoleError, ModelFileError
from locole.io import saved_as
from locole.label_past import Relabelling
from locole.labels import LabelFeatures
from locole.parallel.blocks import slices
from locole.samples import Rows, Samples
from locole.scoring.base import Codes, Contributions, LabelScorer
from locole.scoring.label_table import LabelTable
from locole.scoring.names import NameScorer

__all__ = ["NameVectorScorer"]

# Rows looked at in one go.
_BLOCK_ROWS = 4_096
# Ridge of the map, for rows of unit length.
_RIDGE = 1.0


@saved_as("scorer.name_vectors")
class NameVectorScorer(NameScorer):
    r"""Similarity of the vectors that an encoder gives for a row and for a label's text.

    .. math:: score_i(x) = (a + b\,r_i) \langle x + \overline{W x}, v_i \rangle,
        \qquad r_i = 1 / (1 + \text{rows of the label})

    with centred rows x and vectors :math:`v_i` of unit length, and a bar for unit length. W is the ridge
    regression from rows onto the vectors of their labels' texts. It learns from labels with rows what
    serves those without: that texts of one language speak of labels in another, or that a long text
    is not a name.

    Parameters
    ----------
    label_vectors : array of shape (n_classes, numbers)
        Vectors of the labels' texts; zeros for a label without.

    Attributes
    ----------
    label_rows_ : array of shape (n_classes, numbers)
        v.
    row_mean_, label_mean_ : arrays of shape (numbers,)
        What is taken off rows, and off vectors of labels.
    map_ : array of shape (numbers, numbers)
        W, transposed.
    counts_ : array of shape (n_classes,)
        Training rows of each label.
    mix_ : array of shape (3,)
        a, b and 0.
    is_beside_ : bool
        Whether rows have sparse features too.

    Examples
    --------
    >>> X = np.eye(3, dtype=np.float32)
    >>> scorer = NameVectorScorer(X).fit(Samples(X[:2], np.array([0, 1]), n_classes=3))
    >>> scorer.candidates(Rows(X[2:]), k=1)[0]
    array([[2]])
    """

    name = "name vectors"
    takes_dense = True
    _parts: ClassVar[tuple[str, ...]] = ("name vectors", "name vectors of rare labels")
    _parameter_constraints: ClassVar = {"label_vectors": [None, np.ndarray]}
    _unsaved: ClassVar[tuple[str, ...]] = ("label_vectors",)
    _learnt: ClassVar = {
        "label_rows_": np.ndarray,
        "row_mean_": np.ndarray,
        "label_mean_": np.ndarray,
        "map_": np.ndarray,
        "counts_": np.ndarray,
        "mix_": np.ndarray,
        "is_beside_": bool,
    }

    def __init__(self, label_vectors: NDArray | None = None) -> None:
        self.label_vectors = label_vectors

    @property
    def n_features(self) -> int | None:  # type: ignore[override]
        """Numbers of a row, unless they stand beside other features."""
        return None if self.is_beside_ else self.row_mean_.size

    @property
    def n_beside(self) -> int | None:
        """Numbers of a row, if they stand beside other features."""
        return self.row_mean_.size if self.is_beside_ else None

    # Fit ----------------------------------------------------------------------------------------

    def fit(self, samples: Samples, *, before: Sequence[LabelScorer] = ()) -> Self:
        """Centre rows and labels, fit the map, and count the rows of each label."""
        self.check_parameters()
        X, vectors = samples.X, self.label_vectors
        self.is_beside_ = isinstance(X, PairedRows)
        n_numbers = (X.dense if isinstance(X, PairedRows) else X).shape[1]
        if vectors is None or vectors.shape != (samples.n_classes, n_numbers):
            raise LocoleError(
                f"name vectors need label_vectors of shape ({samples.n_classes}, {n_numbers}), as "
                "many as there are labels and numbers of a row."
            )
        rows = samples.dense
        self.counts_, self.mix_ = np.zeros(samples.n_classes), np.array([1.0, 0.0, 0.0])
        self.row_mean_ = _mean(rows)
        self.label_mean_ = _mean(DenseRows(vectors[vectors.any(axis=1)]))
        self.label_rows_ = self._centred(vectors)
        self.map_ = self._fitted_map(samples.positive())
        self._apart = True
        return self.partial_fit(samples)

    def _centred(self, vectors: NDArray) -> NDArray[np.float32]:
        """Vectors of labels, of unit length without their mean; zeros stay."""
        has_text = vectors.any(axis=1, keepdims=True)
        return np.where(has_text, _unit(vectors - self.label_mean_), 0).astype(np.float32)

    def _fitted_map(self, samples: Samples) -> NDArray[np.float32]:
        """Ridge regression from rows onto the mean vectors of their labels, of unit length."""
        n_numbers = self.row_mean_.size
        targets = np.zeros((samples.n_rows, n_numbers), dtype=np.float32)
        np.add.at(targets, samples.owners, self.label_rows_[samples.codes])
        gram, to = np.zeros((2, n_numbers, n_numbers))
        for part in slices(samples.n_rows, _BLOCK_ROWS):
            named = np.linalg.norm(targets[part], axis=1) > 0
            Z = _unit(samples.dense[part][named] - self.row_mean_)
            gram, to = gram + Z.T @ Z, to + Z.T @ _unit(targets[part][named])
        return np.linalg.solve(gram + _RIDGE * np.eye(n_numbers), to).astype(np.float32)

    def add_labels(self, n_classes: int) -> Self:
        """Know labels without a text."""
        new = (0, n_classes - self.n_classes)
        self.label_rows_ = np.pad(self.label_rows_, [new, (0, 0)])
        self.counts_ = np.pad(self.counts_, new)
        return self

    def add_texts(self, codes: Codes, named: LabelFeatures) -> None:
        """Give these labels a text.

        Parameters
        ----------
        codes : array of int
            Codes of the labels.
        named : LabelFeatures
            Their texts.
        """
        vectors = np.asarray(named.vectors)
        if vectors.shape[1] != self.row_mean_.size:
            raise LocoleError(
                f"label_features have vectors of {vectors.shape[1]} numbers, and those of other labels "
                f"have {self.row_mean_.size}: take the same encoder."
            )
        self.label_rows_ = self.label_rows_.copy()
        self.label_rows_[codes] = self._centred(vectors)

    @property
    def grows(self) -> bool:  # type: ignore[override]
        """Whether more features mean nothing to it, because it looks at dense numbers beside them."""
        return self.is_beside_

    def grow(self, n_features: int) -> None:
        """Add features at which it does not look."""
        LabelScorer.grow(self, n_features)

    def relabel(self, change: Relabelling) -> None:
        """Add up the rows of merged labels; the one that is kept keeps its text."""
        self.counts_, self.label_rows_ = change.added(self.counts_), self.label_rows_[change.kept]

    def forget(self, samples: Samples) -> dict[str, str]:
        """Take rows out of the counts; the map stays."""
        return dict.fromkeys(super().forget(samples), "partly")

    @property
    def has_text(self) -> NDArray[np.bool_]:
        """Which labels have a text."""
        return self.label_rows_.any(axis=1)

    # Score --------------------------------------------------------------------------------------

    def candidates(self, rows: Rows, k: int) -> tuple[Codes, NDArray]:
        """Labels whose texts are most similar."""
        return self._table.best(self.points(rows), k)

    def scores_at(self, rows: Rows, codes: Codes) -> NDArray:
        """Similarities of these labels' texts."""
        return self._table.products_at(self.points(rows), codes)

    def candidates_and_scores(
        self, rows: Rows, k: int, codes: Codes
    ) -> tuple[Codes, NDArray, NDArray]:
        """Both."""
        return LabelScorer.candidates_and_scores(self, rows, k, codes)

    def explain(self, rows: Rows, codes: Codes) -> Contributions:
        """The score as one contribution: numbers of an encoder mean nothing to anybody."""
        return LabelScorer.explain(self, rows, codes)

    def points(self, rows: Rows) -> NDArray[np.float32]:
        """Rows, and what they are mapped to, added up.

        Parameters
        ----------
        rows : Rows
            Rows to score.
        """

        def points() -> NDArray[np.float32]:
            Z = _unit(rows.dense - self.row_mean_)
            return Z + _unit(Z @ self.map_)

        return rows.once(self, points, "points")

    @property
    def _table(self) -> LabelTable:
        """Vectors of labels, times what their similarity counts."""
        factor = self._terms_of_labels()[0].astype(np.float32)
        return LabelTable.of(factor[:, None] * self.label_rows_, None)

    # Sources ------------------------------------------------------------------------------------

    def source_candidates(self, rows: Rows, k: int) -> Codes:
        """Most similar labels among all, and among those without rows."""
        table, unseen = LabelTable.of(self.label_rows_, None), np.flatnonzero(self._is_unseen)
        found = [table.best(self.points(rows), k)[0]]
        if self._apart and unseen.size >= k:
            found.append(unseen[table.take(unseen).best(self.points(rows), k)[0]])
        return np.hstack(found)

    def source_scores(self, rows: Rows, codes: Codes) -> NDArray:
        """The parts of these labels' scores."""
        if not self._apart:
            return LabelScorer.source_scores(self, rows, codes)
        similar = LabelTable.of(self.label_rows_, None).products_at(self.points(rows), codes)
        return np.stack([similar, similar / (1 + self.counts_[codes])], axis=-1)

    # Save ---------------------------------------------------------------------------------------

    def _check_learnt(self) -> None:
        n_numbers = self.row_mean_.size
        shapes = {
            "label_rows_": (self.counts_.size, n_numbers),
            "row_mean_": (n_numbers,),
            "label_mean_": (n_numbers,),
            "map_": (n_numbers, n_numbers),
        }
        arrays = {name: getattr(self, name) for name in shapes}
        weights = (self.counts_, self.mix_)
        fits = (
            all(arrays[name].shape == shape for name, shape in shapes.items())
            and all(array.dtype == np.float32 for array in arrays.values())
            and all(array.dtype == np.float64 and array.ndim == 1 for array in weights)
            and self.mix_.size == 3
        )
        if not fits:
            raise ModelFileError("its vectors of label texts do not fit together")
        is_number = all(np.isfinite(array).all() for array in (*arrays.values(), *weights))
        if not is_number or (self.counts_ < 0).any():
            raise ModelFileError("its vectors of label texts have impossible numbers")


def _mean(rows: DenseRows) -> NDArray[np.float32]:
    total = np.zeros(rows.shape[1])
    for part in slices(len(rows), _BLOCK_ROWS):
        total += rows[part].sum(axis=0, dtype=np.float64)
    return (total / max(len(rows), 1)).astype(np.float32)


def _unit(rows: NDArray) -> NDArray[np.float32]:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return (rows / np.where(lengths > 0, lengths, 1)).astype(np.float32)
