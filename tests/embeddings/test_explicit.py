"""The user's own vectors."""

from __future__ import annotations

import numpy as np
import pytest

from locole.embeddings import Explicit
from locole.exceptions import LocoleError

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128, np.int64])
def test_vectors_are_scaled_to_unit_length(dtype):
    given = (RNG.standard_normal((20, 6)) * 100).astype(dtype)
    if np.iscomplexobj(given):
        given = given + 1j * RNG.standard_normal((20, 6)).astype(given.real.dtype)
    embedding = Explicit(given)
    expected = given / np.linalg.norm(given, axis=1, keepdims=True)
    assert embedding.is_complex == np.iscomplexobj(given)
    np.testing.assert_allclose(embedding.rows(range(20)), expected, atol=1e-6)


def test_the_callers_array_is_left_alone():
    given = RNG.standard_normal((5, 3)).astype(np.float32)
    before = given.copy()
    embedding = Explicit(given)
    rows = embedding.rows(range(5))
    given[:] = 0
    np.testing.assert_array_equal(embedding.rows(range(5)), rows)
    assert not np.array_equal(given, before)


def test_no_number_of_resizings_moves_a_vector():
    embedding = Explicit(RNG.standard_normal((2000, 7)))
    expected = embedding.rows(range(1500))
    for n_classes in (1500, 2000, 1700):
        embedding = embedding.resized(n_classes)
        np.testing.assert_array_equal(embedding.rows(range(1500)), expected)


@pytest.mark.parametrize(
    ("vectors", "part"),
    [
        ([1.0, 2.0], "a table of numbers"),
        (np.empty((0, 3)), "a row for each label"),
        ([["a", "b"]], "a table of numbers"),
        ([[1.0, 0.0], [0.0, 0.0]], "different from zero"),
        ([[1.0, np.nan]], "must be finite"),
        ([[1.0, np.inf]], "must be finite"),
    ],
)
def test_bad_vectors_are_refused(vectors, part):
    with pytest.raises(LocoleError, match=part):
        Explicit(vectors)


@pytest.mark.parametrize("labels", [["a"], ["a", "a"], [["a", "b"]]])
def test_labels_must_name_every_vector_once(labels):
    with pytest.raises(LocoleError, match="name every vector once"):
        Explicit(np.eye(2), labels=labels)


def test_explicit_has_no_default_dim():
    with pytest.raises(LocoleError, match="from the vectors"):
        Explicit.default_dim(10)
