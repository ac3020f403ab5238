"""Which column a label gets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from locole.embeddings import Gold, Kerdock, Nelson, OneHot, Rademacher, group_columns
from locole.embeddings.assignment import extend_columns, make_columns
from locole.exceptions import CapacityError, LocoleError

clusterings = st.lists(st.integers(0, 6), min_size=1, max_size=60)


# --- the three kinds ---


def test_by_index_label_k_has_column_k():
    embedding = Kerdock(40, dim=16)
    np.testing.assert_array_equal(embedding.columns(range(40)), np.arange(40))
    assert embedding.n_columns == 40
    assert embedding.labels_of_columns().size == 0


@given(st.integers(1, 128), st.integers(0, 2**32))
def test_random_is_a_permutation_that_the_seed_decides(n_classes, seed):
    embedding = Kerdock(n_classes, dim=16, random_state=seed, assignment="random")
    columns = embedding.columns(np.arange(n_classes))
    np.testing.assert_array_equal(np.sort(columns), np.arange(n_classes))
    again = Kerdock(n_classes, dim=16, random_state=seed, assignment="random")
    np.testing.assert_array_equal(again.columns(np.arange(n_classes)), columns)


def test_different_seeds_place_labels_differently():
    a, b = (Kerdock(100, dim=16, random_state=s, assignment="random") for s in (0, 1))
    assert not np.array_equal(a.columns(range(100)), b.columns(range(100)))


def test_an_array_gives_the_columns_themselves():
    plain = Kerdock(128, dim=16)
    chosen = np.array([100, 3, 77, 5], dtype=np.uint16)
    embedding = Kerdock(4, dim=16, assignment=chosen)
    np.testing.assert_array_equal(embedding.rows(range(4)), plain.rows(chosen.astype(int)))
    assert embedding.n_columns == 101
    labels = embedding.labels_of_columns()
    assert {c: labels[c] for c in np.flatnonzero(labels >= 0)} == {100: 0, 3: 1, 77: 2, 5: 3}
    assert (labels == -1).sum() == 97


def test_an_array_in_order_is_the_same_as_by_index():
    assert Kerdock(9, dim=16, assignment=np.arange(9)) == Kerdock(9, dim=16)


def test_the_callers_array_is_left_alone():
    chosen = np.array([100, 3, 77, 5])
    embedding = Kerdock(4, dim=16, assignment=chosen)
    chosen[:] = 0
    np.testing.assert_array_equal(embedding.columns(range(4)), [100, 3, 77, 5])


@pytest.mark.parametrize(
    ("assignment", "part"),
    [
        ("grouped", '"index", "random" or an array'),
        ([0, 1], "one whole number for each of 3 labels"),
        ([0.0, 1.0, 2.0], "one whole number"),
        ([[0, 1, 2]], "one whole number"),
        ([0, 1, 1], "a column of its own"),
        ([0, 1, -1], "between 0 and capacity - 1 = 127"),
        ([0, 1, 128], "between 0 and capacity - 1 = 127"),
    ],
)
def test_bad_assignments_are_refused(assignment, part):
    with pytest.raises(LocoleError, match=part):
        Kerdock(3, dim=16, assignment=assignment)


def test_random_families_take_any_column():
    embedding = Rademacher(3, dim=8, assignment=[0, 10**15, 7])
    np.testing.assert_array_equal(embedding.rows([2]), Rademacher(8, dim=8).rows([7]))


# --- growth ---


@given(clusterings, st.integers(1, 120), st.sampled_from([np.inf, 140]))
def test_growth_keeps_old_columns_and_takes_new_ones(clusters, n_classes, capacity):
    columns = group_columns(clusters, basis=8, capacity=capacity)
    extended = extend_columns(columns, n_classes, capacity=capacity)
    both = min(n_classes, columns.size)
    assert extended.shape == (n_classes,)
    assert np.unique(extended).size == n_classes
    assert extended.max() < capacity
    np.testing.assert_array_equal(extended[:both], columns[:both])


def test_growth_by_index_needs_no_columns():
    assert extend_columns(None, 10, capacity=np.inf) is None
    assert make_columns("index", n_classes=5, capacity=9, seed=0) is None


def test_growth_after_gaps_fills_the_code():
    embedding = OneHot(2, dim=4, assignment=[3, 1]).resized(4)
    assert sorted(embedding.columns(range(4))) == [0, 1, 2, 3]
    with pytest.raises(CapacityError, match="5 labels do not fit"):
        embedding.resized(5)
    with pytest.raises(CapacityError, match="5 labels do not fit"):
        OneHot(2, dim=4, assignment=[3, 1]).resized(5)


# --- groups ---


@given(clusterings, st.integers(1, 20))
def test_groups_are_injective_and_share_a_basis_where_they_fit(clusters, basis):
    columns = group_columns(clusters, basis=basis)
    clusters = np.asarray(clusters)
    assert np.unique(columns).size == columns.size
    assert columns.min() >= 0
    for cluster in np.unique(clusters):
        used = np.unique(columns[clusters == cluster] // basis)
        size = (clusters == cluster).sum()
        assert used.size == -(-size // basis)


@given(clusterings, st.integers(1, 20), st.integers(0, 30))
def test_groups_stay_below_capacity(clusters, basis, room):
    capacity = len(clusters) + room
    columns = group_columns(clusters, basis=basis, capacity=capacity)
    assert np.unique(columns).size == columns.size
    assert columns.max() < capacity


@pytest.mark.parametrize(
    ("family", "dim", "capacity"), [(Kerdock, 16, 128), (Nelson, 17, 289), (Gold, 32, 1024)]
)
@given(st.lists(st.sampled_from("abcdefg"), min_size=2, max_size=60))
def test_vectors_of_a_group_are_orthogonal(family, dim, capacity, clusters):
    columns = group_columns(clusters, basis=dim, capacity=capacity)
    embedding = family(len(clusters), dim, assignment=columns)
    rows = embedding.real_rows(np.arange(len(clusters)), np.float64)
    gram = rows @ rows.T
    clusters = np.asarray(clusters)
    same = (clusters[:, None] == clusters[None, :]) & (
        columns[:, None] // dim == columns[None, :] // dim
    )
    np.testing.assert_allclose(gram[same], np.eye(len(clusters))[same], atol=1e-12)
    for cluster in np.unique(clusters):
        if (clusters == cluster).sum() <= dim:
            assert same[np.ix_(clusters == cluster, clusters == cluster)].all()


def test_groups_keep_the_order_of_their_labels():
    columns = group_columns([1, 0, 1, 0, 0], basis=3)
    np.testing.assert_array_equal(columns, [3, 0, 4, 1, 2])


def test_too_many_labels_for_groups():
    with pytest.raises(CapacityError, match=r"5 labels do not fit .* take a larger dim"):
        group_columns([0, 0, 1, 1, 1], basis=4, capacity=4)
