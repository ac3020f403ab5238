"""Changes of labels, as `LocoleClassifier` has them, for a classifier of texts."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Self

from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from locole.atomic import all_or_nothing
from locole.classifier import LocoleClassifier
from locole.exceptions import LocoleError
from locole.label_past import LabelPast
from locole.text.features import TextFeatures
from locole.text.texts import check_texts

__all__ = ["LivingTexts"]


class LivingTexts:
    """Changes of labels, handed to the classifier of rows; each in one step."""

    features_: TextFeatures
    classifier_: Any

    @property
    def past_(self) -> LabelPast | None:
        """Names that labels had, and a journal; see `LocoleClassifier`."""
        return getattr(self.classifier_, "past_", None)

    @all_or_nothing
    def rename_labels(self, names: Mapping[Any, Any]) -> Self:
        """Give labels other names; see `LocoleClassifier.rename_labels`.

        Parameters
        ----------
        names : dict of label to label
            Old and new name.

        Returns
        -------
        TextClassifier
            Itself.
        """
        self._living().rename_labels(names)
        return self

    @all_or_nothing
    def merge_labels(self, names: Mapping[Any, Any]) -> Self:
        """Merge labels into others; see `LocoleClassifier.merge_labels`.

        Parameters
        ----------
        names : dict of label to label
            Label that is merged, and label that is kept.

        Returns
        -------
        TextClassifier
            Itself.
        """
        self._living().merge_labels(names)
        return self

    @all_or_nothing
    def retire_labels(self, labels: Sequence[Any]) -> Self:
        """Never answer with these labels again; see `LocoleClassifier.retire_labels`.

        Parameters
        ----------
        labels : sequence of labels
            All of them known.

        Returns
        -------
        TextClassifier
            Itself.
        """
        self._living().retire_labels(labels)
        return self

    @all_or_nothing
    def forget(self, texts: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Take out texts that were learnt; see `LocoleClassifier.forget`.

        Their terms stay in the vocabulary. A text of which a term was left out when it was learnt, by
        ``min_df``, and has a column now, is not recognised.

        Parameters
        ----------
        texts, y, sample_weight
            As they were given to `fit` or `partial_fit`.

        Returns
        -------
        TextClassifier
            Itself.
        """
        owner: Any = self
        X = owner.with_vectors(self.features_.transform(check_texts(texts)), texts)
        self._living().forget(X, y, sample_weight)
        return self

    def _living(self) -> LocoleClassifier:
        """A copy of the classifier, whose labels can be changed."""
        check_is_fitted(self)
        if not isinstance(self.classifier_, LocoleClassifier):
            name = type(self.classifier_).__name__
            raise LocoleError(f"labels of {name} cannot be changed: fit again with all the data.")
        self.classifier_ = copy.copy(self.classifier_)
        return self.classifier_
