"""What every embedding promises, on every family."""

from __future__ import annotations

import copy
import dataclasses
import math
import pickle
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from instances import EMBEDDINGS, EXPLICIT, GENERATED, name_of
from reference import inner_products_of, vectors

from locole.embeddings import FAMILIES, Embedding, InnerProducts, make_embedding
from locole.exceptions import CapacityError, DimensionError, LocoleError

each = pytest.mark.parametrize("embedding", EMBEDDINGS, ids=name_of)
each_generated = pytest.mark.parametrize("embedding", GENERATED, ids=name_of)


def remade(embedding: Embedding) -> Embedding:
    spec = embedding.spec()
    assert spec.pop("name") == embedding.name
    return type(embedding)(**spec)


def all_rows(embedding: Embedding) -> np.ndarray:
    return embedding.real_rows(np.arange(embedding.n_classes))


def test_every_family_is_listed():
    assert {type(e) for e in GENERATED} == set(FAMILIES.values())
    assert {name: family.name for name, family in FAMILIES.items()} == {n: n for n in FAMILIES}


# --- vectors ---


@each
def test_vectors_have_unit_length(embedding):
    exact = vectors(embedding)
    tolerance = 1e-7 if embedding in EXPLICIT else 1e-13
    np.testing.assert_allclose(np.linalg.norm(exact, axis=1), 1, rtol=tolerance)
    np.testing.assert_allclose(np.linalg.norm(all_rows(embedding), axis=1), 1, rtol=1e-6)


@each
def test_shapes_and_types(embedding):
    codes = [0, embedding.n_classes - 1, 0]
    rows, real = embedding.rows(codes), embedding.real_rows(codes)
    assert rows.shape == (3, embedding.dim)
    assert rows.dtype == (np.complex64 if embedding.is_complex else np.float32)
    assert real.shape == (3, embedding.real_dim)
    assert real.dtype == np.float32
    assert embedding.real_rows(codes, np.float64).dtype == np.float64
    assert embedding.real_dim == embedding.dim * (2 if embedding.is_complex else 1)
    assert embedding.rows([]).shape == (0, embedding.dim)
    assert embedding.rows(0).shape == (1, embedding.dim)
    assert embedding.n_classes <= embedding.capacity


@each
def test_real_view_is_real_parts_then_imaginary_parts(embedding):
    codes = np.arange(embedding.n_classes)
    rows, real = embedding.rows(codes), embedding.real_rows(codes)
    np.testing.assert_array_equal(rows.real, real[:, : embedding.dim])
    if embedding.is_complex:
        np.testing.assert_array_equal(rows.imag, real[:, embedding.dim :])
    # Re⟨p, g⟩ is the ordinary product of the real views.
    products = (rows[:5] @ rows.conj().T).real
    np.testing.assert_allclose(products, real[:5] @ real.T, atol=1e-6)


@each
def test_single_precision_is_double_precision_rounded(embedding):
    codes = np.arange(embedding.n_classes)
    double = embedding.real_rows(codes, np.float64)
    np.testing.assert_allclose(embedding.real_rows(codes), double, rtol=2e-7, atol=2e-7)


@each
def test_rows_do_not_depend_on_what_was_asked_before(embedding):
    expected = all_rows(embedding)
    codes = np.random.default_rng(0).integers(0, embedding.n_classes, 50)
    np.testing.assert_array_equal(embedding.real_rows(codes), expected[codes])
    one_by_one = np.concatenate([embedding.real_rows([code]) for code in codes])
    np.testing.assert_array_equal(one_by_one, expected[codes])
    third = embedding.n_classes // 3
    np.testing.assert_array_equal(
        embedding.real_block(third, embedding.n_classes), expected[third:]
    )
    np.testing.assert_array_equal(all_rows(embedding), expected)


@each
def test_rows_are_the_callers_own(embedding):
    expected = all_rows(embedding)
    for spoilt in (all_rows(embedding), embedding.real_block(0, embedding.n_classes)):
        spoilt[:] = np.nan
    np.testing.assert_array_equal(all_rows(embedding), expected)
    np.testing.assert_array_equal(embedding.real_block(0, embedding.n_classes), expected)


@each
@pytest.mark.parametrize("codes", [[-1], [10**6], [0.5], [[0]], ["0"], [True]])
def test_bad_codes_are_refused(embedding, codes):
    with pytest.raises(LocoleError, match="codes must"):
        embedding.rows(codes)


# --- identity ---


@each
def test_spec_makes_the_same_embedding_again(embedding):
    again = remade(embedding)
    assert again == embedding
    assert hash(again) == hash(embedding)
    assert repr(again) == repr(embedding)
    np.testing.assert_array_equal(all_rows(again), all_rows(embedding))


@each
@pytest.mark.parametrize(
    "copied", [copy.deepcopy, copy.copy, lambda e: pickle.loads(pickle.dumps(e))]
)
def test_copies_are_equal(embedding, copied):
    expected = all_rows(embedding)
    again = copied(embedding)
    assert again == embedding
    np.testing.assert_array_equal(all_rows(again), expected)


@each
def test_embeddings_that_differ_are_not_equal(embedding):
    assert [other for other in EMBEDDINGS if other == embedding] == [embedding]
    assert embedding != "embedding"


# --- growth ---


@each
def test_resizing_never_moves_a_label(embedding):
    expected = all_rows(embedding)
    largest = int(min(embedding.capacity, 2 * embedding.n_classes + 3))
    for n_classes in range(1, largest + 1, max(1, largest // 20)):
        resized = embedding.resized(n_classes)
        assert resized.n_classes == n_classes
        both = min(n_classes, embedding.n_classes)
        np.testing.assert_array_equal(resized.real_rows(np.arange(both)), expected[:both])


@pytest.mark.parametrize("embedding", [e for e in GENERATED if e.capacity > 8], ids=name_of)
@given(sizes=st.lists(st.integers(1, 9), min_size=1, max_size=4), seed=st.integers(0, 2**32))
def test_a_history_of_sizes_never_moves_a_label(embedding, sizes, seed):
    state = {"random_state": seed, "assignment": "random", **extra(embedding)}
    current = type(embedding)(sizes[0], embedding.dim, **state)
    seen = all_rows(current)
    for size in sizes[1:]:
        current = current.resized(size)
        rows = all_rows(current)
        both = min(len(rows), len(seen))
        np.testing.assert_array_equal(rows[:both], seen[:both])
        assert np.unique(current.columns(np.arange(size))).size == size
        seen = rows


def extra(embedding: Embedding) -> dict[str, int]:
    return {"r": embedding.r} if hasattr(embedding, "r") else {}


@each_generated
def test_a_label_does_not_depend_on_the_number_of_labels(embedding):
    most = int(min(embedding.capacity, 10**6))
    state = {"random_state": embedding.random_state, **extra(embedding)}
    few = type(embedding)(1, embedding.dim, **state)
    many = type(embedding)(most, embedding.dim, **state)
    np.testing.assert_array_equal(few.rows([0]), many.rows([0]))


@pytest.mark.parametrize(
    "embedding", [e for e in EMBEDDINGS if math.isfinite(e.capacity)], ids=name_of
)
def test_one_label_above_capacity_is_refused_with_a_way_out(embedding):
    capacity = int(embedding.capacity)
    if embedding in EXPLICIT:
        with pytest.raises(CapacityError, match="give a vector for every label"):
            embedding.resized(capacity + 1)
        return
    full = type(embedding)(capacity, embedding.dim, **extra(embedding))
    assert full.rows([capacity - 1]).shape == (1, embedding.dim)
    with pytest.raises(CapacityError, match=r"do not fit .* take dim=\d+") as caught:
        full.resized(capacity + 1)
    assert (caught.value.n_classes, caught.value.capacity) == (capacity + 1, capacity)
    way_out = int(str(caught.value).rsplit("take dim=", 1)[1].split()[0].rstrip("."))
    assert type(embedding)(capacity + 1, way_out, **extra(embedding)).capacity > capacity


@pytest.mark.parametrize("name", FAMILIES)
@given(n_classes=st.one_of(st.integers(1, 300), st.integers(301, 10**7)))
def test_the_default_dim_holds_the_labels(name, n_classes):
    dim = FAMILIES[name].default_dim(n_classes)
    assert FAMILIES[name](1, dim).capacity >= n_classes


@pytest.mark.parametrize("name", FAMILIES)
def test_bad_parameters_are_refused(name):
    family = FAMILIES[name]
    dim = family.default_dim(3)
    for n_classes in (0, -1, True, 2.5, "3"):
        with pytest.raises(LocoleError, match="n_classes must be"):
            family(n_classes, dim)
    for random_state in (-1, 0.5, None):
        with pytest.raises(LocoleError, match="random_state must be"):
            family(3, dim, random_state=random_state)
    for bad_dim, error in ((0, DimensionError), (-4, DimensionError), (2.5, LocoleError)):
        with pytest.raises(error, match="dim must be"):
            family(3, bad_dim)


# --- inner products ---


@each
def test_inner_products_are_those_of_the_gram_matrix(embedding):
    told = embedding.inner_products()
    known = isinstance(told, InnerProducts)
    random = not math.isfinite(embedding.capacity) or embedding in EXPLICIT
    has_gaps = embedding.n_columns > embedding.n_classes and embedding.structure != "linear"
    assert known == (not random and not has_gaps)
    if known:
        rows = vectors(embedding)
        expected = dataclasses.astuple(inner_products_of(rows @ rows.conj().T))
        np.testing.assert_allclose(dataclasses.astuple(told), expected, atol=1e-9)


# --- memory ---


@pytest.mark.parametrize("name", sorted(set(FAMILIES) - {"one_hot", "simplex"}))
def test_a_million_labels_need_no_memory(name):
    make_embedding(name, 3).rows([0])
    tracemalloc.start()
    embedding = make_embedding(name, 10**6)
    rows = embedding.rows([0, 999_999])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert rows.shape == (2, embedding.dim)
    assert peak < 4 << 20
