"""Embeddings by name, and errors that name a way out."""

from __future__ import annotations

import re

import numpy as np
import pytest

from locole.embeddings import DelsarteGoethals, Kerdock, Nelson, make_embedding
from locole.exceptions import CapacityError, DimensionError, LocoleError

# --- by name ---


def test_unknown_names_are_answered_with_the_known_ones():
    with pytest.raises(
        LocoleError, match=r"unknown embedding 'kerdok': take one of .*kerdock.*auto"
    ):
        make_embedding("kerdok", 5)


@pytest.mark.parametrize(
    ("n_classes", "dim", "name", "chosen"),
    [
        (256, None, "one_hot", 256),
        (257, None, "gold", 512),
        (262_144, None, "gold", 512),
        (262_145, None, "kerdock", 1024),
        (10, 16, "kerdock", 16),
        (10, 32, "gold", 32),
        (10, 20, "rademacher", 20),
        (1000, 16, "rademacher", 16),
    ],
)
def test_what_auto_takes(n_classes, dim, name, chosen):
    embedding = make_embedding("auto", n_classes, dim=dim)
    assert (embedding.name, embedding.dim) == (name, chosen)


def test_options_reach_the_family():
    assert make_embedding("nelson", 200, dim=7, r=3) == Nelson(200, dim=7, r=3)
    assert make_embedding("rademacher", 9, dim=3, random_state=4).random_state == 4
    random = make_embedding("kerdock", 9, dim=16, assignment="random", random_state=4)
    assert random == Kerdock(9, dim=16, assignment="random", random_state=4)


# --- ways out ---


@pytest.mark.parametrize("dim", [4, 16, 64, 256])
def test_a_full_kerdock_code_names_an_extension_that_exists(dim):
    full = Kerdock(dim * dim // 2, dim=dim)
    with pytest.raises(CapacityError) as caught:
        full.resized(full.n_classes + 1)
    codes = np.arange(min(50, full.n_classes))
    for named in re.findall(r"DelsarteGoethals\(dim=(\d+)\)", str(caught.value)):
        extended = DelsarteGoethals(full.n_classes + 1, dim=int(named))
        np.testing.assert_array_equal(extended.rows(codes), full.rows(codes))


def test_a_full_nelson_code_names_a_larger_degree():
    with pytest.raises(CapacityError, match=r"take dim=\d+ or r=3\.$"):
        Nelson(122, dim=11)
    assert Nelson(122, dim=11, r=3).capacity == 11**3
    # dim must exceed r, so a small code has no larger degree to offer.
    with pytest.raises(CapacityError, match=r"take dim=\d+\.$"):
        Nelson(10, dim=3)


@pytest.mark.parametrize(
    ("name", "dim", "part"),
    [
        ("nelson", 15, "prime dim above 2, not 15: take 13 or 17"),
        ("nelson", 2, "not 2: take 3"),
        ("kerdock", 32, "power of 4, at least 4, as dim, not 32: take 16 or 64"),
        ("kerdock", 1, "not 1: take 4"),
        ("delsarte_goethals", 4, "at least 16, as dim, not 4: take 16"),
        ("gold", 16, "odd power, at least 8, not 16: take 8 or 32"),
        ("gold", 2, "not 2: take 8"),
        ("reed_solomon", 35, "prime power q ≥ 3, not 35: take 24 or 48"),
        ("reed_solomon", 3, "not 3: take 8"),
    ],
)
def test_impossible_dims_name_their_neighbours(name, dim, part):
    with pytest.raises(DimensionError, match=part):
        make_embedding(name, 5, dim=dim)


@pytest.mark.parametrize("r", [1, 0, 2.0, True])
def test_nelsons_degree_is_at_least_two(r):
    with pytest.raises(LocoleError, match="r must be"):
        Nelson(5, dim=7, r=r)


def test_nelsons_dim_exceeds_its_degree():
    with pytest.raises(DimensionError, match="above 5, not 5: take 7"):
        Nelson(5, dim=5, r=5)


@pytest.mark.parametrize(
    ("name", "dim", "near"),
    [
        ("kerdock", 10**9, "1048576"),
        ("gold", 10**9, "524288"),
        ("nelson", 2**31, "2147483647"),
        ("reed_solomon", 20_000_000, "16777215"),
    ],
)
def test_absurd_dims_are_refused_at_once(name, dim, near):
    with pytest.raises(DimensionError, match=f"take {near}"):
        make_embedding(name, 10, dim=dim)


def test_unknown_options_are_named():
    with pytest.raises(LocoleError, match="kerdock has no parameter 'r'"):
        make_embedding("kerdock", 10, r=3)
