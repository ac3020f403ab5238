"""TF-IDF of words and of character n-grams, with a vocabulary or hashed."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from locole.exceptions import LocoleError, ModelFileError
from locole.io import SavedEstimator, saved_as
from locole.parameters import COUNT, SWITCH, at_least, one_of
from locole.samples import LARGEST
from locole.text.counting import BLOCKS, count, joined, make_vectorizer, tfidf
from locole.text.texts import check_texts, choose_analyzer, each_text

__all__ = ["Analyzer", "TextFeatures"]

Analyzer = Literal["auto", "word", "char", "both"]


@saved_as("text.features")
class TextFeatures(SavedEstimator, TransformerMixin, BaseEstimator):
    """Texts as sparse rows of unit length: TF-IDF of words, of n-grams of characters, or of both.

    A count c becomes ``1 + ln c``, times ``1 + ln((1 + n) / (1 + df))`` for a term in df of n texts.
    With both, a row is scaled as a whole, so that words and characters count by their TF-IDF. Capital
    letters, and different ways to write the same Unicode character, make no difference.

    Parameters
    ----------
    analyzer : {"auto", "word", "char", "both"}
        What is counted. ``"auto"`` looks at the first texts: both if they are short (200 characters on
        average) or have no blanks between words, words alone otherwise, which is several times
        faster and nearly as good there; ``analyzer_reason_`` says what was found.
    word_ngrams : (int, int)
        Shortest and longest run of words that is counted; (1, 2) are words and pairs of neighbours.
    char_ngrams : (int, int)
        Shortest and longest n-gram of characters, within a word and the blanks around it.
    min_df : int
        Terms in fewer texts are left out; not used when hashing.
    n_features : int, optional
        Hash terms into so many columns instead of keeping a vocabulary: less memory, smaller models,
        and terms can no longer be named. With both, each gets one half.
    lowercase : bool
        False keeps capital letters apart.

    Attributes
    ----------
    analyzer_, analyzer_reason_ : str
        What is counted, and why.
    terms_ : dict of str to array of str
        The vocabulary of "word" and "char", in the order of columns; empty when hashing.
    idf_ : dict of str to array
        Weight of each term.
    n_texts_ : int or None
        Texts that were learnt from; None in old files.
    grown_ : array of shape (n_times, n_blocks), or None
        Terms of words and of characters that came each time, if some came later: their columns are
        after all that were there.
    scaling_ : str or None
        What is scaled to unit length: ``"row"``, words and characters together. None in old files:
        words and characters of a row are scaled separately first, and have the same weight.

    Examples
    --------
    >>> features = TextFeatures("word", word_ngrams=(1, 1))
    >>> X = features.fit_transform(["red apple", "green apple"])
    >>> features.get_feature_names_out()
    array(['word__apple', 'word__green', 'word__red'], dtype=object)
    >>> X.toarray().round(2)
    array([[0.58, 0.  , 0.81],
           [0.58, 0.81, 0.  ]], dtype=float32)
    """

    _parameter_constraints: ClassVar = {
        "analyzer": one_of(*get_args(Analyzer)),
        "word_ngrams": [tuple, list],
        "char_ngrams": [tuple, list],
        "min_df": COUNT,
        "n_features": [None, *at_least(2, 2**31 - 1)],
        "lowercase": SWITCH,
    }
    _learnt: ClassVar = {
        "analyzer_": str,
        "analyzer_reason_": str,
        "terms_": dict,
        "idf_": dict,
        # The parameters at the time of fit: they may be set anew without fitting again.
        "_settings": dict,
        "n_texts_": (int, type(None)),
        "grown_": (np.ndarray, type(None)),
        "scaling_": (str, type(None)),
    }
    n_texts_: int | None
    grown_: NDArray[np.int64] | None
    scaling_: str | None

    def __init__(
        self,
        analyzer: Analyzer = "auto",
        *,
        word_ngrams: tuple[int, int] = (1, 2),
        char_ngrams: tuple[int, int] = (2, 4),
        min_df: int = 1,
        n_features: int | None = None,
        lowercase: bool = True,
    ) -> None:
        self.analyzer = analyzer
        self.word_ngrams = word_ngrams
        self.char_ngrams = char_ngrams
        self.min_df = min_df
        self.n_features = n_features
        self.lowercase = lowercase

    def fit(self, texts: Any, y: Any = None) -> Self:
        """Learn the vocabulary and its weights.

        Parameters
        ----------
        texts : sequence of str
            Texts whose terms are learnt.
        y : ignored
            For pipelines of scikit-learn.
        """
        self.fit_transform(texts)
        return self

    def fit_transform(self, texts: Any, y: Any = None) -> sp.csr_matrix:
        """Learn the vocabulary and its weights, and return the rows of these texts.

        Parameters
        ----------
        texts : list of str
            Or an array, a column of a data frame, or a frame of one column. Texts are read one after
            the other and not copied.
        y : None
            Not used.

        Returns
        -------
        csr_matrix of shape (n_texts, n_columns)
            float32 with int32 indices.
        """
        self.check_parameters()
        texts = check_texts(texts)
        analyzer, reason = self._chosen(texts)
        settings = {k: v for k, v in self.get_params().items() if k != "analyzer"}
        vectorizers: dict[str, Any] = {}
        idf, parts = {}, []
        for block in BLOCKS[analyzer]:
            vectorizer = make_vectorizer(block, analyzer, **settings)
            counts = count(vectorizer, texts)
            if counts is not None:
                rows, idf[block] = tfidf(counts)
                vectorizers[block] = vectorizer
                parts.append(rows)
        if not parts:
            raise LocoleError(
                "no term is left of these texts: take a smaller min_df, or analyzer='both'."
            )
        has_terms = vectorizers if self.n_features is None else {}
        self.terms_ = {block: v.get_feature_names_out() for block, v in has_terms.items()}
        self.analyzer_, self.analyzer_reason_, self.idf_ = analyzer, reason, idf
        self._vectorizers, self._settings = vectorizers, settings
        self.n_texts_, self.grown_, self.scaling_ = len(texts), None, "row"
        return joined(parts)

    def partial_fit(self, texts: Any, y: Any = None) -> Self:
        """Give new terms of more texts columns of their own, after all others; nothing else changes.

        A term that is in df of the texts, and was in none of those before, gets the weight that it has
        among all n texts so far, ``1 + ln((1 + n) / (1 + df))``, for good; so do the known terms keep
        theirs. Terms in fewer than ``min_df`` of the texts are left out. When hashing, every term has a
        column already.

        Parameters
        ----------
        texts : list of str
            As for `fit`.
        y : None
            Not used.

        Returns
        -------
        TextFeatures
            Itself.
        """
        if not self.__sklearn_is_fitted__():
            return self.fit(texts)
        texts = check_texts(texts)
        n_texts = self._n_texts() + len(texts)
        if self.terms_:
            self._learn_terms(texts, n_texts)
        self.n_texts_ = n_texts
        return self

    def _learn_terms(self, texts: Any, n_texts: int) -> None:
        vectorizers, terms, idf = dict(self._ready()), dict(self.terms_), dict(self.idf_)
        sizes = [weights.size for weights in idf.values()]
        for block, old in vectorizers.items():
            counter = make_vectorizer(block, self.analyzer_, **self._settings)
            counts = count(counter, texts)
            if counts is None:
                continue
            found = counter.get_feature_names_out()
            new = np.flatnonzero([term not in old.vocabulary_ for term in found])
            if new.size == 0:
                continue
            df = np.bincount(counts.indices, minlength=found.size)[new]
            numbers = range(len(old.vocabulary_), len(old.vocabulary_) + new.size)
            known = make_vectorizer(block, self.analyzer_, **self._settings)
            known.vocabulary_ = old.vocabulary_ | dict(zip(found[new], numbers, strict=True))
            vectorizers[block] = known
            terms[block] = np.concatenate([terms[block].astype(object), found[new]])
            weights = 1 + np.log((1 + n_texts) / (1 + df))
            idf[block] = np.concatenate([idf[block], weights.astype(np.float32)])
        more = [weights.size - size for weights, size in zip(idf.values(), sizes, strict=True)]
        if any(more):
            before = np.array([sizes]) if self.grown_ is None else self.grown_
            self.grown_ = np.vstack([before, [more]])
            self._vectorizers, self.terms_, self.idf_ = vectorizers, terms, idf

    def _n_texts(self) -> int:
        """Texts learnt from; of an old file as its rarest term tells."""
        if self.n_texts_ is not None:
            return self.n_texts_
        rarest = max(float(idf.max()) for idf in self.idf_.values())
        least = self._settings["min_df"]
        return max(1, round((1 + least) * math.exp(min(rarest, 40.0) - 1)) - 1)

    def places(self) -> NDArray[np.int64]:
        """Column of each term, words before characters.

        Returns
        -------
        array of shape (n_columns,)
            In the order of ``terms_``, block by block.
        """
        if self.grown_ is None:
            return np.arange(self.n_columns_)
        ends = np.cumsum(self.grown_).reshape(self.grown_.shape)
        return np.concatenate(
            [
                np.arange(last - size, last)
                for sizes, lasts in zip(self.grown_.T, ends.T, strict=True)
                for size, last in zip(sizes, lasts, strict=True)
            ]
        )

    def transform(self, texts: Any) -> sp.csr_matrix:
        """Return the rows of texts; terms that are not in the vocabulary are ignored.

        Parameters
        ----------
        texts : sequence of str
            Texts to count terms in.

        Returns
        -------
        sparse array of shape (n_texts, n_features)
            TF-IDF, float32, rows of unit length.
        """
        check_is_fitted(self)
        texts = check_texts(texts)
        counts = [(b, v.transform(each_text(texts))) for b, v in self._ready().items()]
        rows = [tfidf(c, self.idf_[block])[0] for block, c in counts]
        X = joined(rows, apart=self.scaling_ is None)
        if self.grown_ is not None:
            X.indices = self.places().astype(X.indices.dtype)[X.indices]
            X.has_sorted_indices = False
            X.sort_indices()
        return X

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Name of each column: ``word__apple``, ``char__ap``; a number instead when hashing.

        Parameters
        ----------
        input_features : ignored
            For pipelines of scikit-learn.

        Returns
        -------
        array of str
            The term of each column.
        """
        check_is_fitted(self)
        names = [
            f"{block}__{term}"
            for block, idf in self.idf_.items()
            for term in self.terms_.get(block, range(idf.size))
        ]
        found = np.empty(len(names), dtype=object)
        found[self.places()] = names
        return found

    def _names_of(self, columns: list[int]) -> list[str]:
        """Names of some columns, without making those of the others."""
        place = np.argsort(self.places())[columns]  # in the order of ``terms_``
        firsts = np.cumsum([0, *(idf.size for idf in self.idf_.values())])
        names = []
        for number, block in zip(
            place, np.searchsorted(firsts, place, side="right") - 1, strict=True
        ):
            name, term = list(self.idf_)[block], number - firsts[block]
            names.append(f"{name}__{self.terms_[name][term] if name in self.terms_ else term}")
        return names

    @property
    def n_columns_(self) -> int:
        """Number of columns."""
        return sum(idf.size for idf in self.idf_.values())

    def _chosen(self, texts: Any) -> tuple[str, str]:
        if self.analyzer == "auto":
            return choose_analyzer(texts)
        return self.analyzer, "analyzer as given"

    def _check_values(self) -> None:
        super()._check_values()
        for name in ("word_ngrams", "char_ngrams"):
            value = getattr(self, name)
            is_pair = len(value) == 2 and all(map(_is_count, value))
            if not is_pair or value[0] > value[1]:
                raise LocoleError(f"{name} must be the shortest and longest n-gram, not {value!r}.")

    def _ready(self) -> dict[str, Any]:
        """Counters, made again from the vocabulary after a load."""
        if not hasattr(self, "_vectorizers"):
            made = {
                block: make_vectorizer(block, self.analyzer_, **self._settings)
                for block in self.idf_
            }
            for block, terms in self.terms_.items():
                made[block].vocabulary_ = {term: column for column, term in enumerate(terms)}
                if len(made[block].vocabulary_) < terms.size:
                    raise ModelFileError("the vocabulary of the model has a term twice.")
            self._vectorizers = made
        return self._vectorizers

    def _check_learnt(self) -> None:
        given = type(self)(**self._settings)
        given._check_values()
        if set(self._settings) != set(given.get_params()) - {"analyzer"}:
            raise ModelFileError("it does not say how its terms are counted")
        blocks = BLOCKS.get(self.analyzer_, ())
        size = self._settings["n_features"]
        fits = bool(self.idf_) and set(self.idf_) <= set(blocks)
        fits = fits and set(self.terms_) == (set() if size else set(self.idf_))
        for block, idf in self.idf_.items():
            n_columns = (
                size // len(blocks) if size and blocks else _size(self.terms_.get(block), "OU")
            )
            fits = fits and _size(idf, "f") == n_columns and idf.dtype == np.float32
            fits = fits and bool((np.abs(idf) <= LARGEST).all())
        if not fits or not self._are_grown():
            raise ModelFileError("its terms and their weights do not fit together")
        if self.scaling_ not in (None, "row"):
            raise ModelFileError("it scales rows of texts in an unknown way: upgrade locole")

    def _are_grown(self) -> bool:
        """Whether what a file says of terms that came later fits to the terms."""
        grown, sizes = self.grown_, [idf.size for idf in self.idf_.values()]
        if self.n_texts_ is not None and not 0 < self.n_texts_ < 1 << 48:
            return False
        if grown is None:
            return True
        is_table = grown.dtype == np.int64 and grown.shape == (len(grown), len(sizes))
        # Each at most the sum, so that these cannot wrap around.
        is_part = is_table and bool(((grown >= 0) & (grown <= max(sizes))).all())
        return bool(self.terms_) and is_part and grown.sum(axis=0).tolist() == sizes

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "idf_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array = True, False
        return tags


def _is_count(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(value >= 1)


def _size(array: Any, kinds: str) -> int | None:
    """Length of a one-dimensional array of such a kind, or None."""
    is_list = isinstance(array, np.ndarray) and array.ndim == 1 and array.dtype.kind in kinds
    return array.size if is_list else None
