"""Which words of a text speak for a label: contributions of terms, brought back to where they stand."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from sklearn.feature_extraction import FeatureHasher

from locole.explanations import Explanations
from locole.text.features import TextFeatures
from locole.text.texts import folded, plain, word_pattern

__all__ = ["with_words"]

#: A term and the numbers of the words of the text that it is taken from.
Occurrence = tuple[str, list[int]]


def with_words(features: TextFeatures, texts: list[str], found: Explanations) -> Explanations:
    """Explanations of rows of texts, with terms for names of features, and the texts' words.

    What a term adds is shared by all places where it occurs, and by the words that it spans. The words
    of a text add up to what all its terms add.

    Parameters
    ----------
    features : TextFeatures
        What made the rows.
    texts : list of str
    found : Explanations
        Of the rows, with numbers of columns for names.
    """
    out = []
    for text, one in zip(texts, found, strict=True):
        adds = {int(column): value for column, value in one.features}
        terms = list(zip(features._names_of(list(adds)), adds.values(), strict=True))
        out.append(replace(one, features=terms, words=_words(features, text, adds)))
    return Explanations(out)


def _words(features: TextFeatures, text: str, adds: dict[int, float]) -> list[tuple[str, float]]:
    """Words of a text, as they are written, and what each adds."""
    prepared = (folded if features._settings["lowercase"] else plain)(text)
    pieces = prepared.split()
    written = text.split() if len(text.split()) == len(pieces) else pieces
    values = [0.0] * len(pieces)
    first, columns = 0, features.places()
    for block, idf in features.idf_.items():
        places: dict[int, list[list[int]]] = defaultdict(list)
        occurrences = list(_occurrences(features, block, prepared))
        for column, (_, words) in zip(
            _columns(features, block, occurrences), occurrences, strict=True
        ):
            at = int(columns[first + column]) if column >= 0 else -1
            if at in adds:
                places[at].append(words)
        for column, found in places.items():
            for words in found:
                for word in words:
                    values[word] += adds[column] / (len(found) * len(words))
        first += idf.size
    return list(zip(written, values, strict=True))


def _columns(features: TextFeatures, block: str, found: list[Occurrence]) -> list[int]:
    """Column of each term within its block, −1 if it has none."""
    if block in features.terms_:
        known = features._ready()[block].vocabulary_
        return [known.get(term, -1) for term, _ in found]
    hasher = FeatureHasher(features.idf_[block].size, input_type="string", alternate_sign=False)
    return hasher.transform([[term] for term, _ in found]).indices.tolist() if found else []


def _occurrences(features: TextFeatures, block: str, text: str) -> Iterator[Occurrence]:
    """Terms of a text in the way they are counted."""
    if block == "word":
        return _word_ngrams(text, *features._settings["word_ngrams"])
    return _char_ngrams(text, *features._settings["char_ngrams"])


def _word_ngrams(text: str, shortest: int, longest: int) -> Iterator[Occurrence]:
    starts = [match.start() for match in re.finditer(r"\S+", text)]
    tokens = [
        (match.group(), bisect_right(starts, match.start()) - 1)
        for match in re.finditer(word_pattern(), text)
    ]
    for n in range(shortest, longest + 1):
        for i in range(len(tokens) - n + 1):
            some = tokens[i : i + n]
            yield " ".join(token for token, _ in some), [word for _, word in some]


def _char_ngrams(text: str, shortest: int, longest: int) -> Iterator[Occurrence]:
    for number, word in enumerate(text.split()):
        padded = f" {word} "
        for n in range(shortest, longest + 1):
            for i in range(max(len(padded) - n, 0) + 1):
                yield padded[i : i + n], [number]
            if len(padded) <= n:  # a short word is counted once
                break
