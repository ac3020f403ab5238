"""A classifier that takes raw texts."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Literal, Protocol, Self, runtime_checkable

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from locole.atomic import all_or_nothing, of_one_moment
from locole.base import LabelClassifier
from locole.calibration import Calibration, Threshold
from locole.calibration.conformal import Method
from locole.classifier import LocoleClassifier
from locole.confidence import check_answers
from locole.dense_rows import PairedRows
from locole.exceptions import LocoleError, ModelFileError
from locole.explanations import Explanations
from locole.io import SavedEstimator, saved_as, write_model
from locole.labels import LabelFeatures, check_labels, many_labels_are_fine
from locole.parameters import has
from locole.samples import take
from locole.text.encoding import Encoder, check_encoder, encode, name_of, probe
from locole.text.explaining import with_words
from locole.text.features import TextFeatures
from locole.text.label_texts import LabelTerms, check_label_texts
from locole.text.living import LivingTexts
from locole.text.texts import check_texts

__all__ = ["TextClassifier"]

# Texts whose features exist at a time during prediction.
_BLOCK_TEXTS = 8192
# What the parts are if they are not given.
_PARTS = {"features": "TextFeatures", "classifier": "LocoleClassifier"}


@runtime_checkable
class RowClassifier(Protocol):
    """What may stand behind the features: a classifier of rows with the best labels and their scores."""

    def fit(self, X: Any, y: Any) -> Any:
        """Learn from rows and their labels."""

    def predict_topk(self, X: Any, k: int = 5) -> tuple[NDArray, NDArray]:
        """Return the best ``k`` labels of each row, best first, and their scores."""


@saved_as("text.classifier")
class TextClassifier(LivingTexts, SavedEstimator, ClassifierMixin, BaseEstimator):
    """`TextFeatures` and a classifier of rows as one classifier of texts.

    Parameters
    ----------
    features : TextFeatures, optional
        From texts to rows; by default ``TextFeatures()``.
    classifier : LocoleClassifier or a baseline, optional
        From rows to labels; by default ``LocoleClassifier()``. Any classifier of sparse rows that has
        `predict_topk` will do, such as those of `locole.baselines`.
    encoder : callable, optional
        From a list of texts to a dense array of shape (texts, numbers), such as the ``encode`` of a
        sentence encoder. `LocoleClassifier` then sees every text twice, by its words and by its vector,
        and weighs both. Not saved: a model file holds the encoder's name and what it makes of some
        fixed texts, by which `locole.load` recognises the encoder that it is given.
    label_texts : dict of label to str, optional
        What labels are called, or how they are described. Labels that no text of the training data has
        are then answered too, and rare ones more often rightly; see `add_labels`. Needs
        `LocoleClassifier`. Not saved as a parameter: the model keeps what it needs of the texts.

    Attributes
    ----------
    features_, classifier_
        The parts in use.
    classes_ : array of shape (n_classes,)
        The labels.
    encoder_name_ : str or None
        Module and name of the encoder.
    encoder_probe_ : array or None
        Its vectors of some fixed texts.
    label_terms_ : LabelTerms or None
        Words of label texts.

    Examples
    --------
    >>> texts = ["it purrs", "it barks", "purrs at night", "barks at strangers"]
    >>> classifier = TextClassifier().fit(texts, ["cat", "dog", "cat", "dog"])
    >>> classifier.predict(["something purrs"])
    array(['cat'], dtype='<U3')
    >>> labels, scores = classifier.predict_topk(["who barks?"], k=2)
    >>> labels
    array([['dog', 'cat']], dtype='<U3')
    """

    _parameter_constraints: ClassVar = {
        "features": [None, *has("fit_transform", "transform")],
        "classifier": [None, *has("fit", "get_params")],
        "encoder": [None, callable],
        "label_texts": [None, dict],
    }
    _learnt: ClassVar = {
        "features_": TextFeatures,
        "classifier_": RowClassifier,
        "encoder_name_": (str, type(None)),
        "encoder_probe_": (np.ndarray, type(None)),
        "label_terms_": (LabelTerms, type(None)),
    }
    _unsaved: ClassVar = ("encoder", "label_texts")
    label_terms_: LabelTerms | None = None
    encoder_probe_: Any

    def __init__(
        self,
        features: TextFeatures | None = None,
        classifier: RowClassifier | None = None,
        *,
        encoder: Encoder | None = None,
        label_texts: dict[Any, str] | None = None,
    ) -> None:
        self.features = features
        self.classifier = classifier
        self.encoder = encoder
        self.label_texts = label_texts

    def set_params(self, **params: Any) -> Self:
        """Set parameters, those of a part as ``features__min_df=2``."""
        for name in params:
            part, _, inner = name.partition("__")
            if inner and part in _PARTS and params.get(part, getattr(self, part)) is None:
                raise LocoleError(
                    f"{name} cannot be set: {part} is None. Give {part} an object that has it, "
                    f"{_PARTS[part]}()."
                )
        return super().set_params(**params)

    @all_or_nothing
    def fit(self, texts: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from texts and their labels.

        Parameters
        ----------
        texts : list of str
            Or an array, a column of a data frame, or a frame of one column.
        y : array of shape (n_texts,)
            Labels of any kind that can be sorted; several for each text as for `LocoleClassifier.fit`.
        sample_weight : array of shape (n_texts,), optional
            How much each text counts, for classifiers that take it.
        """
        check_labels(y)
        features, classifier = self._parts()
        self.remember_encoder()
        X = self.with_vectors(features.fit_transform(texts), texts)
        # Baselines have no weights to give.
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        with self.naming(classifier, features):
            classifier.fit(X, y, **weights)
        self.features_, self.classifier_ = features, classifier
        return self

    @all_or_nothing
    def partial_fit(
        self,
        texts: Any,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn from more texts, which may have new labels and new terms.

        New terms get columns after all others (`TextFeatures.partial_fit`) if the classifier can take
        more features, as `LocoleClassifier` without a network can; otherwise they are ignored. See
        `LocoleClassifier.partial_fit` for the labels.

        Parameters
        ----------
        texts, y, sample_weight
            As for `fit`.
        classes : array, optional
            Labels to know already, whether or not y has them.
        """
        check_labels(y)
        more = {"classes": classes, "sample_weight": sample_weight}
        if self.__sklearn_is_fitted__():
            self.classifier_ = copy.copy(self.classifier_)
            learns = _learns_more(self.classifier_)
            if getattr(self.classifier_, "grows", False):
                self.features_ = copy.copy(self.features_).partial_fit(texts)
                self.classifier_.grow_features(self.features_.n_columns_)
            learns(self.with_vectors(self.features_.transform(texts), texts), y, **more)
            return self
        features, classifier = self._parts()
        _learns_more(classifier)
        self.remember_encoder()
        X = self.with_vectors(features.fit_transform(texts), texts)
        with self.naming(classifier, features):
            classifier.partial_fit(X, y, **more)
        self.features_, self.classifier_ = features, classifier
        return self

    @of_one_moment
    def predict(
        self,
        texts: Any,
        *,
        min_proba: float | Threshold | None = None,
        max_error: float | None = None,
        reject_label: Any = None,
        average: Literal["samples", "micro", "macro"] = "samples",
    ) -> Any:
        """Most likely label of each text; an indicator of its labels if `fit` was given several.

        With ``min_proba`` or ``max_error``, ``reject_label`` where it is not likely enough; see
        `LocoleClassifier.predict`.

        Parameters
        ----------
        texts : sequence of str
            Texts to answer.
        min_proba : float, optional
            Answers with a smaller probability are held back.
        max_error : float, optional
            Instead, the largest share of wrong answers among those that are given.
        reject_label : object
            The answer in place of one that is held back.
        average : {"samples", "micro", "macro"}
            Of several labels, which F1 the thresholds are for.

        Returns
        -------
        array of shape (n_texts,), or indicator of shape (n_texts, n_classes)
            Labels as `LabelClassifier.predict` gives them.
        """
        check_is_fitted(self)
        is_asked = min_proba is not None or max_error is not None
        has_several = getattr(self.classifier_, "multilabel_", None) is not None
        check_answers(has_several, is_asked, reject_label, average)
        if not (is_asked or has_several):
            # A classifier of somebody else's may know nothing of the other parameters.
            return self.predict_topk(texts, k=1)[0][:, 0]
        asked = {
            "min_proba": min_proba,
            "max_error": max_error,
            "reject_label": reject_label,
            "average": average,
        }
        return self._asked(self._rows_model().predict, texts, **asked)

    @of_one_moment
    @many_labels_are_fine()
    def score(self, texts: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Share of the texts whose label, or set of labels, is predicted.

        Parameters
        ----------
        texts : sequence of str
            Texts to answer.
        y : array, indicator or lists of labels
            Labels, in the form that `fit` was given.
        sample_weight : array of shape (n_texts,), optional
            How much each text counts; by default all alike.

        Returns
        -------
        float
            Accuracy, between 0 and 1.

        Examples
        --------
        >>> model = TextClassifier().fit(["it purrs", "it barks"], ["cat", "dog"])
        >>> model.score(["who barks?", "who purrs?"], ["dog", "dog"])
        0.5
        """
        check_is_fitted(self)
        X = self.with_vectors(self.features_.transform(texts), texts)
        return float(self.classifier_.score(X, y, sample_weight))

    @of_one_moment
    def predict_topk(
        self, texts: Any, k: int = 5, *, proba: bool = False
    ) -> tuple[NDArray, NDArray]:
        """Return the best ``k`` labels of each text, best first, and their scores or probabilities.

        See `LocoleClassifier.predict_topk`. The features of some thousand texts exist at a time.

        Parameters
        ----------
        texts : sequence of str
            Texts to answer.
        k : int
            Number of labels for each text.
        proba : bool
            Whether probabilities are returned in place of scores.

        Returns
        -------
        labels : array of shape (n_texts, k)
            Labels, best first.
        scores : array of shape (n_texts, k)
            Their scores or probabilities.
        """
        check_is_fitted(self)
        # A classifier of somebody else's may know nothing of probabilities.
        more = {"proba": True} if proba else {}
        return self._asked(self.classifier_.predict_topk, texts, k=k, **more)

    @of_one_moment
    def predict_proba(self, texts: Any) -> NDArray[np.float64]:
        """Probabilities of all labels; see `LocoleClassifier.predict_proba`.

        Parameters
        ----------
        texts : sequence of str
            Texts to answer.

        Returns
        -------
        array of shape (n_texts, n_classes)
            Probabilities in the order of ``classes_``.
        """
        return self._asked(self._rows_model().predict_proba, texts)

    def predict_log_proba(self, texts: Any) -> NDArray[np.float64]:
        """Logarithms of `predict_proba`.

        Parameters
        ----------
        texts : sequence of str
            Texts to answer.

        Returns
        -------
        array of shape (n_texts, n_classes)
            Natural logarithms, in the order of ``classes_``.
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(texts))

    @of_one_moment
    def predict_set(
        self,
        texts: Any,
        coverage: float = 0.9,
        *,
        method: Method = "lac",
        by_frequency: bool = False,
    ) -> list[NDArray]:
        """Sets of labels that contain the right one; see `LocoleClassifier.predict_set`.

        Parameters
        ----------
        texts : sequence of str
            Texts to answer.
        coverage : float
            Smallest probability, in (0, 1), with which a set contains the right label.
        method : {"lac", "aps"}
            How sets are made: the smallest on average, or sets that adapt to how hard a text is.
        by_frequency : bool
            Whether coverage is guaranteed for rare and for frequent labels alike.

        Returns
        -------
        list of arrays
            Labels of each text's set, best first.
        """
        options = {"coverage": coverage, "method": method, "by_frequency": by_frequency}
        return self._asked(self._rows_model().predict_set, texts, **options)

    def threshold(
        self,
        max_error: float | None = None,
        *,
        coverage: float | None = None,
        confidence: float = 0.95,
    ) -> Threshold:
        """Probability below which answers are held back; see `LocoleClassifier.threshold`.

        Parameters
        ----------
        max_error : float, optional
            Largest share of wrong answers among those that are given.
        coverage : float, optional
            Instead, the smallest share of texts that are answered.
        confidence : float
            Probability with which the bound on the error holds.

        Returns
        -------
        Threshold
            ``float()`` of it is what `predict` takes as ``min_proba``.
        """
        return self._rows_model().threshold(max_error, coverage=coverage, confidence=confidence)

    @all_or_nothing
    def calibrate(
        self, texts: Any, y: ArrayLike, *, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit probabilities to texts that were not learnt; see `LocoleClassifier.calibrate`.

        Parameters
        ----------
        texts : sequence of str
            Texts that were not learnt.
        y : array of shape (n_texts,)
            Their labels.
        sample_weight : array of shape (n_texts,), optional
            How much each text counts; by default all alike.
        """
        X = self.with_vectors(self.features_.transform(check_texts(texts)), texts)
        self.classifier_ = copy.copy(self._rows_model())
        self.classifier_.calibrate(X, y, sample_weight=sample_weight)
        return self

    @of_one_moment
    def explain(self, texts: Any, label: Any = None, *, against: Any = None) -> Explanations:
        """What each word and each term adds to the score of a label; see `LocoleClassifier.explain`.

        Parameters
        ----------
        texts : sequence of str
            Texts to explain.
        label : label, optional
            The label, for all texts; by default the answer to each.
        against : label, optional
            Explain the label's lead over this one instead of its score.

        Returns
        -------
        Explanations
            A list of `locole.explanations.Explanation`, one for each text.
        """
        texts = check_texts(texts)
        found = self._asked(self._rows_model().explain, texts, label=label, against=against)
        return with_words(self.features_, list(texts), Explanations(found))

    @property
    def calibration_(self) -> Calibration | None:
        """Probabilities of the classifier, and what they were fitted to."""
        return getattr(self.classifier_, "calibration_", None)

    def _rows_model(self) -> LabelClassifier:
        """Classifier of rows that says how sure it is."""
        check_is_fitted(self)
        if not isinstance(self.classifier_, LabelClassifier):
            name = type(self.classifier_).__name__
            raise LocoleError(f"{name} does not say how sure it is: take a classifier of locole.")
        return self.classifier_

    @of_one_moment
    def decision_function(self, texts: Any) -> NDArray:
        """Scores of all labels, as `LocoleClassifier.decision_function` gives them.

        Parameters
        ----------
        texts : sequence of str
            Texts to answer.

        Returns
        -------
        array of shape (n_texts, n_classes)
            Scores in the order of ``classes_``.
        """
        check_is_fitted(self)
        return self._asked(self.classifier_.decision_function, texts)

    @of_one_moment
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model into a folder, for `locole.load`; see `LocoleClassifier.save`.

        Parameters
        ----------
        path : path
            Folder to write; a model that is there is replaced in one step.
        """
        check_is_fitted(self)
        write_model(path, self)

    @property
    def classes_(self) -> NDArray:
        """The labels."""
        return self.classifier_.classes_

    def _parts(self) -> tuple[Any, Any]:
        self.check_parameters()
        features = TextFeatures() if self.features is None else clone(self.features)
        classifier = LocoleClassifier() if self.classifier is None else clone(self.classifier)
        return features, classifier

    @contextmanager
    def naming(self, classifier: Any, features: TextFeatures) -> Iterator[None]:
        """Let a classifier know the texts of labels while it is fitted.

        Parameters
        ----------
        classifier : classifier of rows
            The classifier that is given label texts.
        features : TextFeatures
            Fitted features of the texts.

        Yields
        ------
        None
            For the time of the fit.
        """
        self.label_terms_ = None
        if self.label_texts is None:
            yield
            return
        if not isinstance(classifier, LocoleClassifier):
            name = type(classifier).__name__
            raise LocoleError(f"label_texts need LocoleClassifier, not {name}: leave them out.")
        labels, texts = check_label_texts(self.label_texts)
        self.label_terms_ = LabelTerms().fit(texts, features)
        named = self._named(self.label_terms_, labels, texts, features)
        classifier.set_params(label_features=named)
        try:
            yield
        finally:
            classifier.set_params(label_features=None)

    @all_or_nothing
    def add_labels(self, label_texts: dict[Any, str]) -> Self:
        """Know more labels by their texts alone, or give known ones another text.

        They can be answered at once; scores of other labels stay as they are.

        Parameters
        ----------
        label_texts : dict of label to str
            Name or description of each label.
        """
        check_is_fitted(self)
        if self.label_terms_ is None:
            raise LocoleError("the model was trained without label_texts: fit it again with them.")
        labels, texts = check_label_texts(label_texts)
        terms = self.label_terms_.grown(texts)
        classifier = copy.copy(self.classifier_)
        classifier.add_labels(self._named(terms, labels, texts, self.features_))
        self.classifier_, self.label_terms_ = classifier, terms
        return self

    def _named(
        self, terms: LabelTerms, labels: NDArray, texts: list[str], features: TextFeatures
    ) -> LabelFeatures:
        """Features of label texts, with the encoder's vectors of them if there is one."""
        vectors = None if self.encoder_name_ is None else self._vectors(texts)
        return terms.label_features(labels, texts, features)._replace(vectors=vectors)

    def set_encoder(self, encoder: Encoder) -> Self:
        """Give a loaded model its encoder, if it is the one that the model was trained with.

        Parameters
        ----------
        encoder : callable
            Function from a list of texts to an array of shape (texts, numbers).
        """
        if self.encoder_name_ is None:
            raise LocoleError("the model was trained without an encoder: leave it out.")
        check_encoder(encoder, self.encoder_name_, self.encoder_probe_)
        self.encoder = encoder
        return self

    def remember_encoder(self) -> None:
        """Note which encoder the model goes with."""
        self.encoder_name_ = None if self.encoder is None else name_of(self.encoder)
        self.encoder_probe_ = None if self.encoder is None else probe(self.encoder)

    def with_vectors(self, X: Any, texts: Any) -> Any:
        """Features of texts, with the vectors of the texts beside them if there is an encoder.

        Parameters
        ----------
        X : sparse array of shape (n_texts, n_features)
            Features of the texts.
        texts : sequence of str
            The texts themselves.

        Returns
        -------
        sparse array or PairedRows
            Rows for the classifier.
        """
        return X if self.encoder_name_ is None else PairedRows(X, self._vectors(texts))

    def _vectors(self, texts: Any) -> NDArray[np.float32]:
        """What the encoder makes of texts."""
        if self.encoder is None:
            raise LocoleError(
                f"the model needs the encoder that it was trained with, {self.encoder_name_}: give it "
                "by load(path, encoder=…)."
            )
        return encode(self.encoder, check_texts(texts), self.encoder_probe_.shape[1])

    def _asked(self, answer: Callable[..., Any], texts: Any, /, **options: Any) -> Any:
        """What a method of the classifier says of the texts, asked block by block."""
        return _joined([answer(X, **options) for X in self._rows(texts)])

    def _rows(self, texts: Any) -> Iterator[Any]:
        """Features of one block of texts after the other."""
        texts = check_texts(texts)
        for start in range(0, len(texts), _BLOCK_TEXTS):
            some = take(texts, slice(start, start + _BLOCK_TEXTS))
            yield self.with_vectors(self.features_.transform(some), some)

    def _check_learnt(self) -> None:
        classifier, features = self.classifier_, self.features_
        both = hasattr(classifier, "n_features_in_") and features.__sklearn_is_fitted__()
        if not both or classifier.n_features_in_ != features.n_columns_:
            raise ModelFileError("its text features and its classifier do not fit together")
        if self.label_terms_ is not None and not isinstance(classifier, LocoleClassifier):
            raise ModelFileError("it has label texts for a classifier that takes none")
        name, vectors = self.encoder_name_, self.encoder_probe_
        if (name is None) is not (vectors is None):
            raise ModelFileError("it knows its encoder by half")
        is_probe = vectors is None or (vectors.ndim == 2 and vectors.dtype == np.float32)
        if not is_probe:
            raise ModelFileError("it has no vectors of its encoder")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "classifier_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array = True, False
        return tags


def _joined(parts: list[Any]) -> Any:
    """Answers to blocks of texts as one answer of the same kind."""
    first = parts[0]
    if isinstance(first, tuple):
        return tuple(_joined(list(some)) for some in zip(*parts, strict=True))
    if isinstance(first, list):
        return [one for part in parts for one in part]
    return sp.vstack(parts, format="csr") if sp.issparse(first) else np.concatenate(parts)


def _learns_more(classifier: Any) -> Any:
    """Method of a classifier that learns more rows."""
    if not hasattr(classifier, "partial_fit"):
        name = type(classifier).__name__
        raise LocoleError(f"{name} cannot learn more rows: fit again with all the data.")
    return classifier.partial_fit
