"""Texts of labels, in terms that rows can be compared with."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from locole.exceptions import LocoleError, ModelFileError
from locole.io import SavedEstimator, saved_as
from locole.labels import LabelFeatures
from locole.parallel.blocks import slices
from locole.text.features import TextFeatures

__all__ = ["LabelTerms", "check_label_texts"]

# Words are similar if their n-grams of characters have this cosine or more, and count by its square
# (docs/research/label_texts.md).
_LEAST_COSINE = 0.3
# Hashed: new words bring new n-grams.
_CHAR_NGRAMS, _COLUMNS = (3, 5), 2**18
# Words that are compared with those of all labels at a time.
_BLOCK_WORDS = 4_096


@saved_as("text.label_terms")
class LabelTerms(SavedEstimator, BaseEstimator):
    """From texts of labels to sparse rows, and from features of texts to their columns.

    Where features are words of a vocabulary, columns are the words of label texts, and a feature is as
    similar to each of them as their n-grams of characters are: "Biometrie" to "biometrics". Features
    that are n-grams of characters, or hashed, are columns themselves.

    Attributes
    ----------
    words_, grams_ : TextFeatures or None
        Words of the label texts and their weights, and n-grams of words; None if features are columns.
    """

    _learnt: ClassVar = {
        "words_": (TextFeatures, type(None)),
        "grams_": (TextFeatures, type(None)),
    }

    def fit(self, texts: Sequence[str], features: TextFeatures) -> Self:
        """Learn the words of label texts.

        Parameters
        ----------
        texts : sequence of str
            Texts of the labels.
        features : TextFeatures
            Those of the rows, fitted.
        """
        self.words_ = self.grams_ = None
        if set(features.terms_) == {"word"}:
            lowercase = features._settings["lowercase"]
            self.words_ = TextFeatures("word", word_ngrams=(1, 1), lowercase=lowercase).fit(texts)
            self.grams_ = TextFeatures(
                "char", char_ngrams=_CHAR_NGRAMS, n_features=_COLUMNS, lowercase=lowercase
            ).fit(self.words_.terms_["word"])
        return self

    def grown(self, texts: Sequence[str]) -> LabelTerms:
        """The same with the words of more texts as further columns; old ones keep their weights."""
        if self.words_ is None:
            return self
        known, idf = self.words_.terms_["word"], self.words_.idf_["word"]
        try:
            found = TextFeatures(**{**self.words_.get_params(), "analyzer": "word"}).fit(texts)
        except LocoleError:  # not a single word
            return self
        new = np.setdiff1d(found.terms_["word"].astype(str), known.astype(str)).astype(object)
        words = copy.copy(self.words_)
        words.terms_ = {"word": np.append(known.astype(object), new)}
        words.idf_ = {"word": np.append(idf, np.full(new.size, idf.max(), idf.dtype))}
        words.__dict__.pop("_vectorizers", None)
        more = copy.copy(self)
        more.words_ = words
        return more

    def label_features(
        self, labels: NDArray, texts: Sequence[str], features: TextFeatures
    ) -> LabelFeatures:
        """Rows of labels, and what the features of texts say in their columns."""
        if self.words_ is None:
            return LabelFeatures(labels, features.transform(texts))
        terms = self.similar(features.terms_["word"])
        return LabelFeatures(labels, self.words_.transform(texts), terms)

    def similar(self, terms: NDArray) -> sp.csr_array:
        """How similar each term is to each word of label texts, shape (terms, words).

        Terms of several words say nothing: their words do.
        """
        assert self.words_ is not None
        assert self.grams_ is not None
        is_word = np.array([" " not in term for term in terms])
        grams = sp.csr_array(self.grams_.transform(terms[is_word])) if is_word.any() else None
        others = sp.csr_array(self.grams_.transform(self.words_.terms_["word"])).T.tocsr()
        parts = [sp.csr_array((0, others.shape[1]), dtype=np.float32)]
        for part in slices(int(is_word.sum()), _BLOCK_WORDS):
            cosine = sp.csr_array(grams[part] @ others)  # type: ignore[index]
            cosine.data[cosine.data < _LEAST_COSINE] = 0
            cosine.eliminate_zeros()
            cosine.data **= 2
            parts.append(cosine)
        found = sp.csr_array(sp.vstack(parts, format="csr"))
        lengths = np.zeros(len(terms), dtype=np.int64)
        lengths[is_word] = np.diff(found.indptr)
        found.sort_indices()
        indptr = np.append(0, np.cumsum(lengths))
        return sp.csr_array((found.data, found.indices, indptr), shape=(len(terms), found.shape[1]))

    def _check_learnt(self) -> None:
        if (self.words_ is None) is not (self.grams_ is None):
            raise ModelFileError("its label texts are known by half")
        if self.words_ is not None and set(self.words_.terms_) != {"word"}:
            raise ModelFileError("its label texts have no words")


def check_label_texts(label_texts: Any) -> tuple[NDArray, list[str]]:
    """Labels and their texts, if that is what they are.

    Examples
    --------
    >>> check_label_texts({"n02": "night owl"})
    (array(['n02'], dtype='<U3'), ['night owl'])
    """
    if not isinstance(label_texts, Mapping) or not label_texts:
        raise LocoleError("label_texts must be a dict from labels to texts, with one or more.")
    wrong = next((key for key, text in label_texts.items() if not isinstance(text, str)), None)
    if wrong is not None:
        raise LocoleError(f"the text of label {wrong!r:.40} is not a str: give each label a text.")
    labels = list(label_texts)
    if len({isinstance(label, str) for label in labels}) > 1:
        raise LocoleError("label_texts has both texts and other labels: give labels of one type.")
    return np.asarray(labels), list(label_texts.values())
