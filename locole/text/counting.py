"""Counting terms with scikit-learn's vectorizers, and weighting the counts."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfTransformer
from sklearn.utils.sparsefuncs_fast import inplace_csr_row_normalize_l2

from locole.text.texts import each_text, folded, plain, word_pattern

__all__ = ["BLOCKS", "count", "joined", "make_vectorizer", "tfidf"]

#: What each analyzer counts, in the order of columns.
BLOCKS = {"word": ("word",), "char": ("char",), "both": ("word", "char")}
# Words that are counted at a time.
_BLOCK_WORDS = 1 << 13
# Bits of a word's number in that of a run.
_WORD = (1 << 32) - 1


def make_vectorizer(
    block: str,
    chosen: str,
    *,
    word_ngrams: tuple[int, int],
    char_ngrams: tuple[int, int],
    min_df: int,
    n_features: int | None,
    lowercase: bool,
) -> Any:
    """Scikit-learn's counter for words or for characters."""
    is_word = block == "word"
    options: dict[str, Any] = {
        "analyzer": "word" if is_word else "char_wb",
        "ngram_range": tuple(word_ngrams if is_word else char_ngrams),
        "preprocessor": folded if lowercase else plain,
        "token_pattern": word_pattern() if is_word else None,
        "dtype": np.float32,
    }
    if n_features is None:
        return CountVectorizer(min_df=min_df, **options)
    # Counts must stay positive for their logarithm, so terms that meet are added up.
    size = n_features // len(BLOCKS[chosen])
    return HashingVectorizer(n_features=size, alternate_sign=False, norm=None, **options)


def count(vectorizer: Any, texts: Any) -> Any:
    """Counts of the texts, or None if there is no term in them.

    A counter with a vocabulary learns it, as scikit-learn's ``fit_transform`` does, to the bit. Words
    are numbered and their runs counted as numbers; a word is taken apart into characters once.
    """
    if isinstance(vectorizer, HashingVectorizer):
        counts = vectorizer.fit_transform(each_text(texts))
    else:
        is_word = vectorizer.analyzer == "word"
        split = vectorizer.build_tokenizer() if is_word else str.split
        words = (split(vectorizer.preprocessor(text)) for text in each_text(texts))
        terms, counts = _runs(words, *(vectorizer.ngram_range if is_word else (1, 1)))
        if not is_word and terms:
            parts = CountVectorizer(
                analyzer="char_wb",
                ngram_range=vectorizer.ngram_range,
                lowercase=False,
                dtype=vectorizer.dtype,
            )
            counts = counts @ parts.fit_transform(terms)
            terms = parts.get_feature_names_out().tolist()
        df = np.bincount(counts.indices, minlength=len(terms))
        kept = sorted(np.flatnonzero(df >= vectorizer.min_df).tolist(), key=terms.__getitem__)
        if not kept:
            return None
        vectorizer.vocabulary_ = {terms[number]: column for column, number in enumerate(kept)}
        counts = counts[:, kept]
    # As transform has them, so that sums over a row give the same bits.
    counts.sort_indices()
    return counts


def _runs(texts: Iterable[list[str]], shortest: int, longest: int) -> tuple[list[str], Any]:
    """Runs of words joined by blanks, and how often each is in each text.

    Runs shorter than asked for are counted nowhere, but have a column.
    """
    # A word, or the numbers of a run without its last word and of this word: number.
    numbers: defaultdict[str | int, int] = defaultdict()
    numbers.default_factory = numbers.__len__
    blocks, words, ends = [], array("q"), array("q")
    for text in texts:
        words.extend(map(numbers.__getitem__, text))
        ends.append(len(words))
        if len(words) >= _BLOCK_WORDS:
            blocks.append(_count_runs(words, ends, numbers, shortest, longest))
            words, ends = array("q"), array("q")
    blocks.append(_count_runs(words, ends, numbers, shortest, longest))
    for block in blocks:
        block.resize(block.shape[0], len(numbers))
    terms: list[str] = []
    for key in numbers:
        term = key if isinstance(key, str) else f"{terms[key >> 32]} {terms[key & _WORD]}"
        terms.append(term)
    return terms, sp.vstack(blocks, format="csr")


def _count_runs(
    words: Any, ends: Any, numbers: dict[str | int, int], shortest: int, longest: int
) -> sp.csr_matrix:
    """Counts of the runs in some texts, which end at these places."""
    word, end = np.asarray(words), np.asarray(ends)
    text = np.repeat(np.arange(end.size), np.diff(end, prepend=0))
    start, run = np.arange(word.size), word
    columns, rows = [], []
    for length in range(1, longest + 1):
        if length > 1:
            goes_on = start + length <= end[text[start]]
            start = start[goes_on]
            keys, place = np.unique(
                run[goes_on] << 32 | word[start + length - 1], return_inverse=True
            )
            run = np.array([numbers[key] for key in keys.tolist()], dtype=np.int64)[place]
        if length >= shortest:
            columns.append(run)
            rows.append(text[start])
    column, row = np.concatenate(columns), np.concatenate(rows)
    ones = np.ones(column.size, dtype=np.float32)
    return sp.csr_matrix((ones, (row, column)), shape=(end.size, len(numbers)))


def tfidf(counts: Any, idf: NDArray | None = None) -> tuple[Any, NDArray]:
    """TF-IDF in place of the counts, and the weights, learnt if not given.

    As scikit-learn's TfidfTransformer has it without a norm, to the bit, without its checks: these take
    longer than the features of a short text.
    """
    if idf is None:
        idf = TfidfTransformer().fit(counts).idf_
    np.log(counts.data, out=counts.data)
    counts.data += 1
    counts.data *= idf[counts.indices]
    return counts, idf


def joined(parts: list[Any], *, apart: bool = False) -> sp.csr_matrix:
    """One matrix of rows of unit length; with ``apart``, parts are scaled first, to the same weight."""
    if apart and len(parts) > 1:
        for part in parts:
            inplace_csr_row_normalize_l2(part)
    X = sp.csr_matrix(parts[0] if len(parts) == 1 else sp.hstack(parts, format="csr"))
    inplace_csr_row_normalize_l2(X)
    if X.nnz < 2**31:
        X.indices = X.indices.astype(np.int32, copy=False)
        X.indptr = X.indptr.astype(np.int32, copy=False)
    return X
