"""Finite fields: the axioms, and agreement with polynomial arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import SlowField

from locole.embeddings.fields import is_prime, make_field, prime_power

ORDERS = [2, 3, 4, 5, 7, 8, 9, 16, 25, 27, 32]
fields = st.sampled_from(ORDERS).map(make_field)
each = pytest.mark.parametrize("q", ORDERS)


def elements(q: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    a = np.arange(q)
    return a[:, None, None], a[None, :, None], a[None, None, :]


# --- axioms, on all triples ---


@each
def test_addition_is_a_commutative_group(q):
    field, (a, b, c) = make_field(q), elements(q)
    np.testing.assert_array_equal(field.add(a, b), field.add(b, a))
    np.testing.assert_array_equal(field.add(field.add(a, b), c), field.add(a, field.add(b, c)))
    np.testing.assert_array_equal(field.add(a, np.zeros_like(a)), a)
    table = field.add(np.arange(q)[:, None], np.arange(q)[None, :])
    assert (np.sort(table, axis=1) == np.arange(q)).all()


@each
def test_multiplication_is_a_commutative_group_without_zero(q):
    field, (a, b, c) = make_field(q), elements(q)
    np.testing.assert_array_equal(field.mul(a, b), field.mul(b, a))
    np.testing.assert_array_equal(field.mul(field.mul(a, b), c), field.mul(a, field.mul(b, c)))
    np.testing.assert_array_equal(field.mul(a, np.ones_like(a)), a)
    table = field.mul(np.arange(1, q)[:, None], np.arange(1, q)[None, :])
    assert (np.sort(table, axis=1) == np.arange(1, q)).all()
    assert not field.mul(a, np.zeros_like(a)).any()


@each
def test_multiplication_distributes(q):
    field, (a, b, c) = make_field(q), elements(q)
    left = field.mul(a, field.add(b, c))
    np.testing.assert_array_equal(left, field.add(field.mul(a, b), field.mul(a, c)))


# --- arithmetic ---


@given(st.data())
def test_sums_products_and_powers_are_those_of_polynomials(data):
    field = data.draw(fields)
    slow = SlowField(field)
    a, b = (data.draw(st.integers(0, field.order - 1)) for _ in range(2))
    exponent = data.draw(st.integers(1, 40))
    assert field.add(np.array(a), np.array(b)) == slow.add(a, b)
    assert field.mul(np.array(a), np.array(b)) == slow.mul(a, b)
    assert field.power(np.array(a), exponent) == slow.power(a, exponent)
    assert field.trace(np.array(a)) == slow.trace(a)


@each
def test_powers_of_the_root_run_through_the_field(q):
    field = make_field(q)
    assert sorted(field.exp) == list(range(1, q))
    np.testing.assert_array_equal(field.exp[field.log[1:]], np.arange(1, q))
    assert field.exp[0] == 1


@pytest.mark.parametrize(("q", "tail"), [(4, 3), (8, 3), (16, 3), (32, 5), (64, 3), (512, 17)])
def test_binary_moduli_are_the_known_smallest_primitive_ones(q, tail):
    degree = q.bit_length() - 1
    assert make_field(q).exp[degree] == tail


# --- trace ---


@each
def test_the_trace_is_additive_and_onto_the_prime_field(q):
    field = make_field(q)
    a, b = np.arange(q)[:, None], np.arange(q)[None, :]
    traces = field.trace(np.arange(q))
    # Onto, and every value equally often: it is linear and not zero.
    assert (np.bincount(traces, minlength=field.p) == q // field.p).all()
    np.testing.assert_array_equal(
        field.trace(field.add(a, b)), (field.trace(a) + field.trace(b)) % field.p
    )
    np.testing.assert_array_equal(field.trace(field.power(np.arange(q), field.p)), traces)


# --- prime powers ---


def test_primes_and_prime_powers_up_to_a_thousand():
    primes = [n for n in range(2, 1000) if all(n % d for d in range(2, n))]
    powers = {p**k: (p, k) for p in primes for k in range(1, 10)}
    assert [n for n in range(-2, 1000) if is_prime(n)] == primes
    assert {n: prime_power(n) for n in range(1000)} == {n: powers.get(n) for n in range(1000)}


def test_fields_are_made_once():
    assert make_field(27) is make_field(27)
