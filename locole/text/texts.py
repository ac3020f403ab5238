"""What counts as a list of texts, and what a text is made of."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any

from locole.exceptions import LocoleError

__all__ = ["check_texts", "choose_analyzer", "each_text", "folded", "plain", "word_pattern"]

# Texts looked at for the choice of an analyzer.
_SAMPLE = 1000
# Above this many characters on average, n-grams of characters cost several times what words do.
_LONG_TEXT = 200
# More characters than this between blanks: a script that writes no blanks.
_LONG_WORD = 15


def check_texts(texts: Any) -> Any:
    """Return a list of something, which a table of one column is too, and refuse everything else.

    Its items are looked at by `each_text`.
    """
    if isinstance(texts, str | bytes):
        raise LocoleError(
            f"texts must be a list of texts, not a single {type(texts).__name__}: put it in a list."
        )
    if getattr(texts, "ndim", None) == 2 and texts.shape[1] == 1:
        texts = texts.iloc[:, 0] if hasattr(texts, "iloc") else texts[:, 0]
    is_list = isinstance(texts, Sequence) or getattr(texts, "ndim", None) == 1
    if not is_list:
        raise LocoleError(
            f"texts must be a list of texts or one column of them, not a {type(texts).__name__}."
        )
    if len(texts) == 0:
        raise LocoleError("there are 0 texts: give at least one.")
    return texts


def each_text(texts: Any) -> Iterator[str]:
    """Yield the texts as they are, one after the other, each checked on its way."""
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            way_out = (
                "decode it first" if isinstance(text, bytes) else "make it a str or leave it out"
            )
            raise LocoleError(
                f"text number {number} is {_shown(text)} of type {type(text).__name__}, not a str: "
                f"{way_out}."
            )
        yield text


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}…"


def folded(text: str) -> str:
    r"""Text without capital letters and without two ways to write the same character.

    Examples
    --------
    >>> folded("STRASSE") == folded("Straße"), folded("Cafe\u0301") == "café"
    (True, True)
    """
    return unicodedata.normalize("NFKC", text.casefold())


def plain(text: str) -> str:
    """Text without two ways to write the same character; capital letters stay."""
    return unicodedata.normalize("NFKC", text)


@lru_cache(maxsize=1)
def word_pattern() -> str:
    r"""Regular expression of a word: letters, digits, and marks that are written with letters.

    ``\w`` alone would end a word at every vowel sign of the scripts of India and Southeast Asia.
    """
    marks = (code for code in range(0x300, 0x10000) if unicodedata.category(chr(code))[0] == "M")
    # The two invisible joiners stand within words, too.
    return rf"[\w\u200c\u200d{_ranges(list(marks))}]+"


def _ranges(codes: list[int]) -> str:
    """Rising code points as the inside of a character class."""
    firsts = [b for a, b in zip([-2, *codes], codes, strict=False) if b != a + 1]
    lasts = [a for a, b in zip(codes, [*codes[1:], -2], strict=True) if b != a + 1]
    return "".join(f"{chr(a)}-{chr(b)}" for a, b in zip(firsts, lasts, strict=True))


def choose_analyzer(texts: Any) -> tuple[str, str]:
    """Name of an analyzer that suits the first texts, and the reason."""
    sample = list(islice(each_text(texts), _SAMPLE))
    total = sum(map(len, sample))
    n_words = sum(len(re.findall(r"\S+", text)) for text in sample)
    length, word = total / len(sample), total / max(n_words, 1)
    found = f"{length:.0f} characters a text, {word:.0f} a word, on average"
    if length <= _LONG_TEXT:
        return "both", f"both: texts are short ({found})"
    if word > _LONG_WORD:
        return "both", f"both: words are not set apart by blanks ({found})"
    return "word", f"word: texts are long enough ({found})"
