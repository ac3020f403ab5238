"""Counting terms with scikit-learn's vectorizers, and weighting the counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfTransformer
from sklearn.utils.sparsefuncs_fast import inplace_csr_row_normalize_l2

from locole.exceptions import LocoleError
from locole.text.texts import each_text, folded, plain, word_pattern

__all__ = ["BLOCKS", "count", "joined", "make_vectorizer", "tfidf"]

#: What each analyzer counts, in the order of columns.
BLOCKS = {"word": ("word",), "char": ("char",), "both": ("word", "char")}


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
    """Counts of the texts, or None if there is no term in them."""
    try:
        counts = vectorizer.fit_transform(each_text(texts))
    except LocoleError:
        raise
    except ValueError:
        # The parameters are good: all that can be wrong is an empty vocabulary.
        return None
    # As transform has them, so that sums over a row give the same bits.
    counts.sort_indices()
    return counts


def tfidf(counts: Any, idf: NDArray | None = None) -> tuple[Any, NDArray]:
    """Rows of unit length, in place of the counts, and the weights, learnt if not given.

    As scikit-learn's TfidfTransformer has them, to the bit, without its checks: these take longer than
    the features of a short text.
    """
    if idf is None:
        idf = TfidfTransformer().fit(counts).idf_
    np.log(counts.data, out=counts.data)
    counts.data += 1
    counts.data *= idf[counts.indices]
    inplace_csr_row_normalize_l2(counts)
    return counts, idf


def joined(parts: list[Any]) -> sp.csr_matrix:
    """One matrix of rows of unit length, in which every part has the same weight."""
    X = sp.csr_matrix(parts[0] if len(parts) == 1 else sp.hstack(parts, format="csr"))
    if len(parts) > 1:
        inplace_csr_row_normalize_l2(X)
    if X.nnz < 2**31:
        X.indices = X.indices.astype(np.int32, copy=False)
        X.indptr = X.indptr.astype(np.int32, copy=False)
    return X
