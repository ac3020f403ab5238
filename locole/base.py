"""What all classifiers share: the door, where rows and labels are checked, and the answers."""

from __future__ import annotations

import os
import warnings
from abc import abstractmethod
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples, check_is_fitted, column_or_1d, validate_data

from locole.atomic import of_one_moment
from locole.calibration import Marginals, Threshold
from locole.confidence import ConfidentAnswers, check_answers, with_rejected
from locole.decoders.choose import checked_k
from locole.dense_rows import DenseRows, PairedRows, in_float32
from locole.exceptions import LocoleError, LocoleWarning, ModelFileError
from locole.io import SavedEstimator, write_model
from locole.label_past import LabelPast
from locole.labels import (
    LabelSets,
    as_type_of,
    check_labels,
    codes_of,
    extended,
    label_sets,
    many_labels_are_fine,
    plain_labels,
)
from locole.metrics import accuracy
from locole.parallel.blocks import map_blocks, n_threads
from locole.samples import (
    Rows,
    Samples,
    check_dense,
    check_scale,
    checked_rows,
    checked_weight,
    take,
    tidy,
)

__all__ = ["LabelClassifier"]

# With fewer rows, one for each label may be meant.
_MANY_ROWS = 100
# What y may be, for messages.
_FORMS = {
    None: "one label for each row",
    "dense": "an indicator of several labels",
    "sparse": "an indicator of several labels",
    "lists": "a list of labels for each row",
}


class LabelClassifier(ConfidentAnswers, SavedEstimator, ClassifierMixin, BaseEstimator):
    """A scikit-learn classifier that can name the best k of very many labels.

    A subclass calls ``_samples`` in ``fit``, which checks and encodes what it is given. ``_best`` gives
    the best labels of a block of rows. Its parameters may include ``n_jobs``.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels, sorted.
    multilabel_ : {"dense", "sparse", "lists"} or None
        In which form ``fit`` was given several labels for each row; None for one label each.
    calibration_ : Calibration or None
        Probabilities and what they were fitted to; None for several labels, and in old model files.
    n_features_in_ : int
        Number of features of the rows.
    """

    _learnt: ClassVar[dict[str, Any]] = {
        "classes_": np.ndarray,
        "multilabel_": (str, type(None)),
        "marginals_": (Marginals, type(None)),
        **ConfidentAnswers._learnt,
    }
    #: Whether ``fit`` takes rows with any number of labels.
    _takes_several: ClassVar[bool] = False
    #: How several labels of a row were given: "dense", "sparse", "lists"; None for one label each.
    multilabel_: str | None = None
    #: Which of a row's best labels are answered, if rows have several.
    marginals_: Marginals | None = None

    #: Rows that ``_best`` is given at a time.
    _block_rows: ClassVar[int] = 1024
    #: Types that rows may have; others become the first.
    _dtypes: ClassVar[tuple[Any, ...]] = (np.float64, np.float32)

    @abstractmethod
    def _best(self, rows: Rows, k: int) -> tuple[NDArray[np.int64], NDArray]:
        """Codes of the best k labels of each row, best first, and their scores."""

    # The door -----------------------------------------------------------------------------------

    @property
    def _takes_any_rows(self) -> bool:
        """Whether rows are not looked at, because a part that is not ours takes them as they are."""
        return False

    @property
    def _takes_pairs(self) -> bool:
        """Whether rows may be seen twice, by sparse and by dense features."""
        return False

    @property
    def _n_beside(self) -> int | None:
        """Dense numbers that the model knows beside each row; None if it takes one kind of features."""
        return None

    def _samples(
        self,
        X: Any,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        more: bool = False,
    ) -> tuple[Samples, NDArray]:
        """Check rows, labels and weights; return them with labels as codes, and the labels.

        With ``more``, new labels come after those of ``classes_``; otherwise all are sorted.
        """
        n_threads(getattr(self, "n_jobs", None))
        y = plain_labels(y)
        sets = label_sets(y)
        self._check_form(sets, more=more)
        X, y = self._training_rows(X, y, sets, reset=not more)
        weight = None
        if sample_weight is not None:
            weight = checked_weight(sample_weight, X)
        past = getattr(self, "past_", None) if more else None
        if past is not None:
            X, y, sets, weight = _present(past, X, y, sets, weight)
            if classes is not None:
                names, stays = past.present(as_type_of(self.classes_, np.asarray(classes)))
                classes = names[stays]
        for known in ([] if classes is None else [classes]) + ([self.classes_] if more else []):
            y = as_type_of(np.asarray(known), y)
        wanted = y if classes is None else np.append(classes, y)
        known = extended(self.classes_, wanted) if more else self._known_labels(wanted)
        codes = codes_of(y, known)
        if (codes < 0).any():
            missing = str(y[codes < 0][0])
            raise LocoleError(f"the embedding names no vector for class {missing!r}.")
        no_label = sets is not None and not (more or sets.codes.size)
        if known.size < 2 or no_label:
            only = (
                f"there is only one class, {str(known[0])!r}"
                if known.size and not no_label
                else "no row has a label"
            )
            raise LocoleError(f"{only}: a classifier needs at least two.")
        if sets is not None:
            codes, starts = sets.canonical(codes, known.size)
            if not more:
                guess = Marginals.guess(codes.size / sets.n_rows, known.size)
                self.marginals_ = guess.grown(known.size, sets.n_rows)
            return Samples(X, codes, known.size, weight, starts), known
        weight = self._times_class_weight(weight, y, more=more)
        if not more and known.size == y.size >= _MANY_ROWS:
            warnings.warn(
                "every label has only one row: is y a column of ids instead of labels?",
                LocoleWarning,
                stacklevel=4,
            )
        return Samples(X, codes, known.size, weight), known

    def _check_form(self, sets: LabelSets | None, *, more: bool) -> None:
        """Note whether rows have one label or several; refuse what the classifier cannot learn."""
        if sets is not None and not self._takes_several:
            raise LocoleError(
                f"y has several labels for a row, which {type(self).__name__} does not learn: keep one "
                "label for each row, or take LocoleClassifier."
            )
        if sets is not None and getattr(self, "class_weight", None) is not None:
            raise LocoleError(
                "class_weight is for rows with one label each: give a sample_weight instead."
            )
        form = None if sets is None else sets.form
        if more and not _alike(form, self.multilabel_):
            raise LocoleError(
                f"the model has learnt {_FORMS[self.multilabel_]}, and y is {_FORMS[form]}: give y in "
                "the form of the first fit."
            )
        if not more:
            self.multilabel_, self.marginals_ = form, None

    def _times_class_weight(
        self, weight: NDArray | None, y: NDArray, *, more: bool
    ) -> NDArray | None:
        """Weights of the rows times those of their labels, if the classifier has such."""
        wanted = getattr(self, "class_weight", None)
        if wanted is None:
            return weight
        if more and wanted == "balanced":
            raise LocoleError(
                "class_weight='balanced' needs all rows at once: give partial_fit a sample_weight, or "
                "class_weight as a dict of labels."
            )
        if wanted == "balanced":
            by_label = compute_sample_weight(wanted, y)
        else:
            by_label = _by_label(wanted, y)
            absent = [] if more else sorted(set(wanted) - set(np.unique(y)), key=str)
            if absent:
                warnings.warn(
                    f"class_weight names labels that no row has, such as {absent[0]!r}.",
                    LocoleWarning,
                    stacklevel=6,
                )
        return by_label if weight is None else weight * by_label

    def _known_labels(self, y: NDArray) -> NDArray:
        """Labels in the order of their codes."""
        return np.unique(y)

    def _training_rows(
        self, X: Any, y: ArrayLike, sets: LabelSets | None, *, reset: bool
    ) -> tuple[Any, NDArray]:
        """Rows, and the label of each; the different labels if rows have several."""
        X, beside = self._divided(X, reset=reset)
        rules: Any = {"accept_sparse": "csr", "dtype": list(self._dtypes), "reset": reset}
        if sets is not None:
            if not self._takes_any_rows:
                X = validate_data(self, X, **rules)
            _check_lengths(X, sets.n_rows)
            y = sets.labels if sets.labels.size or reset else self.classes_[:0]
        elif self._takes_any_rows:
            check_labels(y)
            y = _matching_labels(X, y)
        else:
            check_labels(y)
            X, y = validate_data(self, X, y, **rules)
        if not self._takes_any_rows:
            check_scale(X, alone=reset)
        with many_labels_are_fine():
            check_classification_targets(y)
        return _joined(tidy(X), beside), np.asarray(y)

    def _divided(self, X: Any, *, reset: bool) -> tuple[Any, DenseRows | None]:
        """Rows, and the dense ones beside them if there are any."""
        if isinstance(X, np.ndarray) and X.dtype == np.float16 and X.ndim == 2:
            X = in_float32(X)  # scikit-learn would double it twice, in memory
        wanted = None if reset else self._n_beside
        if not isinstance(X, PairedRows):
            if wanted is not None:
                raise LocoleError(
                    f"the model was trained with {wanted} dense numbers beside each row: give "
                    "PairedRows."
                )
            return X, None
        n_dense = X.dense.shape[1]
        if not self._takes_pairs:
            raise LocoleError(f"{type(self).__name__} takes one kind of features: leave out one.")
        if wanted not in (None, n_dense):
            raise LocoleError(
                f"each row has {n_dense} dense numbers beside it, and the model was trained with "
                f"{wanted}."
            )
        check_dense(X.dense)
        return X.sparse, X.dense

    # Answers ------------------------------------------------------------------------------------

    def predict(
        self,
        X: Any,
        *,
        min_proba: float | Threshold | None = None,
        max_error: float | None = None,
        reject_label: Any = None,
        average: Literal["samples", "micro", "macro"] = "samples",
    ) -> Any:
        """Most likely label of each row; its labels, if ``fit`` was given several for each row.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Rows to answer.
        min_proba : float, optional
            Answers with a smaller probability are held back. Of several labels those that have it are
            answered, in place of the fitted threshold; rows may then have none.
        max_error : float, optional
            Instead, the largest share of wrong answers among those that are given; see `threshold`.
        reject_label : object
            The answer in place of one that is held back. The array has the type ``object`` if it is not
            of the labels' type.
        average : {"samples", "micro", "macro"}
            Of several labels, which F1 the thresholds are for: the mean of rows, that of all pairs of
            row and label, or the mean of labels, for which every label has a threshold of its own.

        Returns
        -------
        array of shape (n_samples,), or indicator of shape (n_samples, n_classes)
            Of several labels an indicator with a column for each of ``classes_``, a sparse array
            unless ``fit`` was given a dense one. Every row has at least one label; how many more is
            decided as `locole.calibration.Marginals` says.
        """
        asked = min_proba is not None or max_error is not None
        check_answers(self.multilabel_ is not None, asked, reject_label, average)
        least = self._least_proba(min_proba, max_error) if asked else None
        if self.multilabel_ is not None:
            return self._predict_sets(X, least, average)
        if least is not None:
            labels, proba = self.predict_topk(X, k=1, proba=True)
            return with_rejected(labels[:, 0], proba[:, 0] >= least, reject_label)
        return self.predict_topk(X, k=1)[0][:, 0]

    @of_one_moment
    def _predict_sets(self, X: Any, least: float | None, average: str) -> Any:
        check_is_fitted(self)
        marginals, n_classes = self.marginals_, self.classes_.size
        assert marginals is not None

        def chosen(rows: Rows) -> sp.csr_array:
            k = min(marginals.n_candidates_, n_classes)
            if least is None:
                codes, scores = self._best(rows, k)
                row, place = np.nonzero(marginals.chosen(scores, codes, average=average))
            else:
                codes, proba = self._best_proba(rows, k)
                row, place = np.nonzero(proba >= least)
            ones, shape = np.ones(row.size, dtype=np.int64), (len(rows), n_classes)
            return sp.csr_array((ones, (row, codes[row, place])), shape=shape)

        found = sp.csr_array(sp.vstack(self._map_rows(X, chosen), format="csr"))
        return found.toarray() if self.multilabel_ == "dense" else found

    @many_labels_are_fine()
    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Share of the rows whose label, or set of labels, is predicted.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Rows to answer.
        y : array or indicator
            Labels, in the form that ``fit`` was given.
        sample_weight : array of shape (n_samples,), optional
            How much each row counts; by default all alike.

        Returns
        -------
        float
            Accuracy, between 0 and 1.
        """
        if self.multilabel_ is None:
            return float(super().score(X, y, sample_weight))
        sets = label_sets(y)
        if sets is None:
            raise LocoleError("the model has learnt several labels for each row: give y so, too.")
        known = self.classes_
        codes = codes_of(sets.labels, known) if sets.labels.size else sets.codes
        # Labels that are not known are one more column, in which nothing is predicted.
        true, starts = sets.canonical(np.where(codes < 0, known.size, codes), known.size + 1)
        starts = np.arange(sets.n_rows + 1) if starts is None else starts
        shape = (sets.n_rows, known.size + 1)
        wanted = sp.csr_array((np.ones(true.size, dtype=np.int64), true, starts), shape=shape)
        found = sp.csr_array(self.predict(X))
        found.resize(shape)
        same = np.diff(sp.csr_array(wanted != found).indptr) == 0
        return accuracy(same, np.ones_like(same), sample_weight=sample_weight)

    @of_one_moment
    def predict_topk(self, X: Any, k: int = 5, *, proba: bool = False) -> tuple[NDArray, NDArray]:
        """Return the best ``k`` labels of each row, best first, and their scores.

        Ties go to the label that comes first in ``classes_``. Memory is that of one block of rows,
        whatever the number of labels.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Rows to answer.
        k : int
            Number of labels for each row.
        proba : bool
            Whether probabilities are returned in place of scores.

        Returns
        -------
        labels : array of shape (n_samples, k)
            Labels, best first.
        scores : array of shape (n_samples, k)
            What they mean is said by each class; a larger score is better.
        """
        check_is_fitted(self)
        k = checked_k(k, self.classes_.size)
        best = self._best_proba if proba else self._best
        parts = self._map_rows(X, lambda rows: best(rows, k))
        codes = np.concatenate([codes for codes, _ in parts])
        return self.classes_[codes], np.concatenate([scores for _, scores in parts])

    def _map_rows(self, X: Any, function: Any) -> list[Any]:
        """Check rows, and apply ``function`` to one block of them after the other."""
        return self._map_checked(self._checked_rows(X), function)

    def _map_checked(self, X: Any, function: Any) -> list[Any]:
        n_rows = _num_samples(X)
        if n_rows == 0:
            raise LocoleError("there are 0 samples to predict: give at least one row.")
        return map_blocks(
            lambda part: function(Rows(take(X, part))),
            n_rows,
            block=self._block_rows,
            n_jobs=getattr(self, "n_jobs", None),
        )

    def _checked_rows(self, X: Any) -> Any:
        if self._takes_any_rows:
            return X.tocsr() if hasattr(X, "tocsr") else X
        X, beside = self._divided(X, reset=False)
        return _joined(checked_rows(self, X, dtype=list(self._dtypes), reset=False), beside)

    # Save ---------------------------------------------------------------------------------------

    @of_one_moment
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model into a folder, for `locole.load`.

        A model that is there already is replaced in one step: who reads the folder, or finds it after
        a crash, gets the old model or the new one. Only models whose parts are locole's own can be
        saved, because a part of another library would need pickle.

        Parameters
        ----------
        path : str or path
            The folder; its parent must exist.
        """
        check_is_fitted(self)
        write_model(path, self)

    def _check_learnt(self) -> None:
        """Labels must be there; what a subclass adds must fit to them and to ``n_features_in_``."""
        if self.multilabel_ not in _FORMS or (self.multilabel_ is None) != (
            self.marginals_ is None
        ):
            raise ModelFileError("it does not say how many labels a row may have")
        if self.marginals_ is not None and not self.marginals_.fits_labels(self.classes_.size):
            raise ModelFileError("its probabilities are of other labels")
        if self.classes_.ndim != 1 or self.classes_.size < 2:
            raise ModelFileError("it has fewer than two labels")
        if getattr(self, "n_features_in_", 0) < 1:
            raise ModelFileError("it does not say how many features it takes")
        self._check_calibration()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _joined(X: Any, beside: DenseRows | None) -> Any:
    """Rows with the dense ones beside them."""
    return X if beside is None else PairedRows(X, beside)


def _matching_labels(X: Any, y: ArrayLike) -> NDArray:
    """Labels, one for each row of whatever X is."""
    if y is None:
        raise LocoleError("y is missing: give a label for each row of X.")
    _check_lengths(X, _num_samples(y))
    return column_or_1d(y, warn=True)


def _by_label(weights: dict[Any, float], y: NDArray) -> NDArray[np.float64]:
    """Weight of each row's label, 1 for labels that are not named."""
    labels, codes = np.unique(y, return_inverse=True)
    try:
        each = np.array([*weights.values(), 1.0], dtype=np.float64)
    except (TypeError, ValueError):
        each = np.array([np.nan])
    if not (np.isfinite(each).all() and (each >= 0).all()):
        raise LocoleError("class_weight must be numbers of at least 0.")
    place = {label: number for number, label in enumerate(weights)}
    return each[[place.get(label, -1) for label in labels]][codes]


def _check_lengths(X: Any, n_labelled: int) -> None:
    if _num_samples(X) != n_labelled:
        raise LocoleError(f"X has {_num_samples(X)} rows but y has {n_labelled} labels.")
    if n_labelled == 0:
        raise LocoleError("there are 0 samples: give at least one row for each of two classes.")


def _present(
    past: LabelPast, X: Any, y: NDArray, sets: LabelSets | None, weight: NDArray | None
) -> tuple[Any, NDArray, LabelSets | None, NDArray | None]:
    """Rows under the present names of their labels, without those whose labels were all retired."""
    if sets is None:
        y, stays = past.present(y)
    else:
        had_labels, sets = np.diff(sets.starts) > 0, past.present_sets(sets)
        stays = ~had_labels | (np.diff(sets.starts) > 0)
        sets = sets.kept(stays)
        y = sets.labels
    if stays.all():
        return X, y, sets, weight
    rows = np.flatnonzero(stays)
    if rows.size == 0:
        raise LocoleError("all labels of y were retired: there is nothing to learn.")
    n_skipped = stays.size - rows.size
    said = "1 row is skipped: its" if n_skipped == 1 else f"{n_skipped:,} rows are skipped: their"
    warnings.warn(f"{said} labels were retired.", LocoleWarning, stacklevel=5)
    y = y if sets is not None else y[rows]
    return take(X, rows), y, sets, None if weight is None else weight[rows]


def _alike(one: str | None, other: str | None) -> bool:
    """Whether two forms of y mean labels in the same way: indicators do, sparse or not."""
    matrices = ("dense", "sparse")
    return one == other or (one in matrices and other in matrices)
