"""Decimal numbers become the nearest float32, whatever their form."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import svm_reference
from hypothesis import given
from hypothesis import strategies as st

from locole.datasets import load_libsvm, svmlines
from locole.exceptions import LocoleError


def read_values(path, numbers):
    path.write_text("0 " + " ".join(f"{i}:{x}" for i, x in enumerate(numbers, start=1)) + "\n")
    X, _ = load_libsvm(path)
    assert X.indices.tolist() == list(range(len(numbers)))
    return X.data


def same_bits(a, b):
    return np.array_equal(np.asarray(a).view(np.uint32), np.asarray(b).view(np.uint32))


def decimal(fraction, places):
    """Fraction written with so many places after the point, cut off."""
    digits = str(abs(fraction.numerator) * 10**places // fraction.denominator).rjust(
        places + 1, "0"
    )
    sign = "-" if fraction < 0 else ""
    return f"{sign}{digits[: len(digits) - places]}.{digits[len(digits) - places :]}"


written = st.one_of(
    st.floats(width=32, allow_nan=False, allow_infinity=False).map(str),
    st.floats(min_value=-1e38, max_value=1e38).map(repr),
    st.from_regex(
        r"[-+]?([0-9]{1,25}\.?[0-9]{0,25}|\.[0-9]{1,30})([eE][-+]?[0-2]?[0-9])?", fullmatch=True
    ),
    st.from_regex(r"0?\.0{0,50}[0-9]{1,20}", fullmatch=True).filter(lambda x: x[-1].isdigit()),
).filter(lambda number: abs(Fraction(number)) < 3 * 10**38)


@given(numbers=st.lists(written, min_size=1, max_size=60))
def test_any_form(tmp_path_factory, numbers):
    found = read_values(tmp_path_factory.getbasetemp() / "forms.svm", numbers)
    expected = np.array([svm_reference.nearest_float32(x) for x in numbers])
    np.testing.assert_array_equal(found, expected)


@given(
    starts=st.lists(
        st.floats(width=32, min_value=0, allow_infinity=False).filter(lambda x: x < 3e38),
        min_size=1,
        max_size=15,
    ),
    places=st.sampled_from([20, 60, 200]),
)
def test_numbers_around_the_middle_of_two_neighbours(tmp_path_factory, starts, places):
    numbers = []
    for start in starts:
        low = np.float32(start)
        middle = (Fraction(float(low)) + Fraction(float(np.nextafter(low, np.float32(np.inf))))) / 2
        tiny = middle / 10**30
        numbers += [decimal(x, places) for x in (middle - tiny, middle, middle + tiny)]
        numbers.append(decimal(middle, 200))  # exact: the even neighbour
    found = read_values(tmp_path_factory.getbasetemp() / "middles.svm", numbers)
    expected = np.array([svm_reference.nearest_float32(x) for x in numbers])
    np.testing.assert_array_equal(found, expected)


def test_shortest_digits_of_all_kinds_of_numbers_come_back(tmp_path):
    bits = np.random.default_rng(0).integers(2**32, size=20_000, dtype=np.uint32)
    values = bits.view(np.float32)
    values = np.concatenate([values[np.isfinite(values)], np.float32([0.0, -0.0, 1e-45, -1e-45])])
    assert same_bits(read_values(tmp_path / "all.svm", [str(x) for x in values]), values)


@pytest.mark.parametrize(
    ("number", "value"),
    [
        ("3.4028234663852886e38", np.finfo(np.float32).max),
        ("340282356779733661637539395458142568447", np.finfo(np.float32).max),
        ("-340282356779733661637539395458142568447.9", -np.finfo(np.float32).max),
        ("1e-400", 0.0),
        ("0e999999999999999999999999", 0.0),
        ("7.006492321624085e-46", 0.0),
        ("7.006492321624086e-46", 1e-45),
        ("0." + "0" * 44 + "1", 1e-45),
        ("1" + "0" * 30 + "e-30", 1.0),
        ("0.5" + "0" * 5000, 0.5),
        ("16777217", 16777216.0),
        ("16777217.0000000000000000000000000001", 16777218.0),
        ("+.5E+1", 5.0),
        ("5.", 5.0),
    ],
)
def test_edges(tmp_path, number, value):
    assert same_bits(read_values(tmp_path / "edge.svm", [number]), np.float32([value]))


@pytest.mark.parametrize(
    "number",
    [
        "340282356779733661637539395458142568448",
        "-3.5e38",
        "1e400",
        "1e99999999999999999999",
        "1" * 60,
    ],
)
def test_too_large(tmp_path, number):
    with pytest.raises(LocoleError, match=r"line 1: the value of '.*' is too large for float32"):
        read_values(tmp_path / "large.svm", [number])


def test_a_number_too_long_to_decide(tmp_path):
    with pytest.raises(LocoleError, match=r"line 1: '16777217\.00"):
        read_values(tmp_path / "long.svm", ["16777217." + "0" * 2000 + "1"])


def test_more_hard_numbers_than_there_was_room_for(tmp_path, monkeypatch):
    monkeypatch.setattr(svmlines, "_FIRST_HARD", 2)
    numbers = ["16777217.0000000000000000001", "16777217", "0.25"] * 7
    expected = [16777218.0, 16777216.0, 0.25] * 7
    assert read_values(tmp_path / "hard.svm", numbers).tolist() == expected


@given(st.one_of(written, st.just("1e39"), st.just("-340282356779733661637539395458142568448")))
def test_the_slow_path_alone(number):
    assert svmlines.nearest_float32(number) == svm_reference.nearest_float32(number)
