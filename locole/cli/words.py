"""Messages of the library in the words of the command line."""

from __future__ import annotations

import re

__all__ = ["in_our_words"]

# Messages of the library name parameters of functions: what these are called here.
_OPTIONS = (
    (r"\btext=", "--text-column"),
    (r"\blabel=", "--label-column"),
    (r"\btext and label both\b", "--text-column and --label-column both"),
    (r"\bformat=", "--format"),
    (r"\bencoding=", "--encoding"),
    (r"\bthe ids by id=", "the ids by --id-column"),
    (r"\bzero_based\b", "--zero-based or --one-based"),
    (r"\bbatch_rows\b", "--batch"),
    (r"\bn_jobs\b", "--jobs"),
    (r"\bmin_df\b", "--min-df"),
    (r"\banalyzer\b", "--analyzer"),
    (r"\brandom_state\b", "--seed"),
    (r"\bmax_passes\b", "--passes"),
    (r"\bmemory_bytes needs n_features\b", "--memory needs --features"),
    (r"\btime_s needs nnz\b", "--seconds needs --nonzeros"),
    (r"\bn_features must be None or\b", "--hash must be"),
    (r'\blabels="text"', "--labels text"),
    (r"or pass multilabel=True", "or give --label-separator ','"),
    (r"\bpredict_topk\(proba=True\)", "--proba"),
    (r"a folder that save has made", "a folder that locole fit has made"),
    (r"\bor merge_labels\b", "or --merge"),
    (r": see classes_\.", ": locole labels lists what it knows."),
    (r"\bwithout label_texts\b", "without --label-texts"),
)


def in_our_words(message: str) -> str:
    """Message with options in the place of parameters.

    Examples
    --------
    >>> in_our_words("give encoding=, such as cp1252.")
    'give --encoding, such as cp1252.'
    """
    for pattern, option in _OPTIONS:
        message = re.sub(pattern, option, message)
    return message
