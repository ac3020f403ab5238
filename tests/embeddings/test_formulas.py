"""Every family against its formula, computed number by number without the package's tables."""

from __future__ import annotations

import cmath
import math

import numpy as np
import pytest
from reference import SlowField, dot_bits

from locole.embeddings import (
    ComplexGaussian,
    DelsarteGoethals,
    Gaussian,
    Gold,
    Kerdock,
    Nelson,
    OneHot,
    Rademacher,
    ReedSolomonSimplex,
    Simplex,
)
from locole.embeddings.fields import make_field
from locole.exceptions import LocoleError


def some(n_classes: int, count: int = 12) -> list[int]:
    drawn = np.random.default_rng(0).integers(0, n_classes, count)
    return sorted({0, n_classes - 1, *drawn.tolist()})


# --- Nelson ---


def nelson_vector(label: int, n: int, r: int) -> list[complex]:
    digits = [label // n**j % n for j in range(r)]
    values = [sum(a * u ** (j + 1) for j, a in enumerate(digits)) for u in range(1, n + 1)]
    return [cmath.exp(2j * cmath.pi / n * (v % n)) / math.sqrt(n) for v in values]


@pytest.mark.parametrize(
    ("n", "r"), [(3, 2), (11, 2), (509, 2), (5, 3), (101, 3), (7, 6), (101, 11), (4093, 7)]
)
def test_nelson(n, r):
    embedding = Nelson(min(n**r, 10**6), dim=n, r=r)
    codes = some(embedding.n_classes)
    expected = [nelson_vector(code, n, r) for code in codes]
    np.testing.assert_allclose(embedding.rows(codes), expected, atol=1e-6)
    real = embedding.real_rows(codes, np.float64)
    np.testing.assert_allclose(real[:, :n] + 1j * real[:, n:], expected, atol=1e-14)


# --- sign codes ---


def kerdock_exponent(field: SlowField, s: int, x: int) -> int:
    """Q_s(x', x_m) = Σ_{i=1}^{(m−2)/2} Tr((s x')^{2^i+1}) + x_m Tr(s x'), m − 1 = degree."""
    last, point = divmod(x, field.q)
    y = field.mul(s, point)
    powers = range(1, (field.k - 1) // 2 + 1)
    return sum(field.trace(field.power(y, 2**i + 1)) for i in powers) + last * field.trace(y)


def signs(exponents: list[list[int]], n: int) -> np.ndarray:
    return (-1.0) ** np.array(exponents) / math.sqrt(n)


@pytest.mark.parametrize("n", [4, 16, 64])
def test_kerdock(n):
    embedding = Kerdock(n * n // 2, dim=n)
    field = SlowField(make_field(n // 2))
    codes = some(embedding.n_classes)
    expected = [
        [kerdock_exponent(field, code // n, x) + dot_bits(code % n, x) for x in range(n)]
        for code in codes
    ]
    np.testing.assert_allclose(embedding.real_rows(codes, np.float64), signs(expected, n))


@pytest.mark.parametrize("n", [16, 64])
def test_delsarte_goethals(n):
    embedding = DelsarteGoethals(n**3 // 4, dim=n)
    field = SlowField(make_field(n // 2))
    codes = some(embedding.n_classes)

    def exponent(code: int, x: int) -> int:
        form, shift = divmod(code, n)
        u, s = divmod(form, n // 2)
        cube = field.trace(field.mul(u, field.power(x % (n // 2), 3)))
        return kerdock_exponent(field, s, x) + cube + dot_bits(shift, x)

    expected = [[exponent(code, x) for x in range(n)] for code in codes]
    np.testing.assert_allclose(embedding.real_rows(codes, np.float64), signs(expected, n))


@pytest.mark.parametrize("n", [16, 64, 256])
def test_delsarte_goethals_starts_with_kerdock(n):
    codes = np.arange(n * n // 2)[:: max(1, n * n // 20_000)]
    extended = DelsarteGoethals(n**3 // 4, dim=n).real_rows(codes)
    np.testing.assert_array_equal(extended, Kerdock(n * n // 2, dim=n).real_rows(codes))


@pytest.mark.parametrize("n", [8, 32, 128])
def test_gold(n):
    embedding = Gold(n * n, dim=n)
    field = SlowField(make_field(n))
    codes = some(embedding.n_classes)

    def exponent(code: int, x: int) -> int:
        s, shift = divmod(code, n)
        return field.trace(field.mul(s, field.power(x, 3))) + dot_bits(shift, x)

    expected = [[exponent(code, x) for x in range(n)] for code in codes]
    np.testing.assert_allclose(embedding.real_rows(codes, np.float64), signs(expected, n))


# --- Reed–Solomon ---


@pytest.mark.parametrize("q", [3, 4, 5, 8, 9, 23, 25])
def test_reed_solomon_symbols_are_values_of_polynomials(q):
    embedding = ReedSolomonSimplex(q**3, dim=q * q - 1)
    field = SlowField(make_field(q))
    codes = some(q**3)

    def word(code: int) -> list[int]:
        a = [code // q**j % q for j in range(3)]
        squares = [field.mul(t, t) for t in range(q)]
        values = [
            field.add(a[0], field.add(field.mul(a[1], t), field.mul(a[2], squares[t])))
            for t in range(q)
        ]
        return [*values, a[2]]

    expected = np.array([word(code) for code in codes])
    np.testing.assert_array_equal(embedding.symbols(np.array(codes)), expected)
    # A vector is one vertex of a regular simplex for each symbol: products follow from agreements.
    blocks = embedding.real_rows(codes, np.float64).reshape(len(codes), q + 1, q - 1)
    products = np.einsum("itd,jtd->ijt", blocks, blocks) * (q + 1)
    agree = expected[:, None] == expected[None]
    np.testing.assert_allclose(products, np.where(agree, 1, -1 / (q - 1)), atol=1e-12)


# --- one-hot and simplex ---


def test_one_hot_is_the_identity():
    np.testing.assert_array_equal(OneHot(5, dim=7).rows(range(5)), np.eye(7)[:5])


@pytest.mark.parametrize("dim", [1, 2, 3, 10, 101])
def test_simplex_products_are_minus_one_over_dim(dim):
    rows = Simplex(dim + 1, dim=dim).real_rows(np.arange(dim + 1), np.float64)
    expected = np.where(np.eye(dim + 1, dtype=bool), 1, -1 / dim)
    np.testing.assert_allclose(rows @ rows.T, expected, atol=1e-14)
    np.testing.assert_allclose(rows.sum(axis=0), 0, atol=1e-12)


# --- random families ---

SIZE = (2000, 96)


def test_rademacher_entries_are_fair_and_independent_coins():
    rows = Rademacher(SIZE[0], dim=SIZE[1]).rows(range(SIZE[0])) * math.sqrt(SIZE[1])
    np.testing.assert_allclose(np.abs(rows), 1, rtol=1e-6)
    heads = rows > 0
    total = heads.sum()
    assert abs(total - heads.size / 2) < 4 * math.sqrt(heads.size) / 2
    assert abs(heads.mean(axis=0) - 0.5).max() < 5 / (2 * math.sqrt(SIZE[0]))
    assert abs(heads.mean(axis=1) - 0.5).max() < 5 / (2 * math.sqrt(SIZE[1]))
    gram = rows[:500] @ rows[:500].T / SIZE[1]
    off = gram[np.triu_indices(500, 1)]
    assert abs(off.mean()) < 1e-3
    assert math.isclose(off.std(), 1 / math.sqrt(SIZE[1]), rel_tol=0.01)
    assert abs(off).max() <= math.sqrt(2 * math.log(500**2 / 1e-6) / SIZE[1])


@pytest.mark.parametrize("family", [Gaussian, ComplexGaussian])
def test_gaussian_directions_are_uniform(family):
    embedding = family(SIZE[0], dim=SIZE[1] // (2 if family.is_complex else 1))
    rows = embedding.real_rows(np.arange(SIZE[0]), np.float64)
    scaled = rows * math.sqrt(SIZE[1])
    moments = [np.mean(scaled**p) for p in (1, 2, 3, 4)]
    # The fourth moment of a coordinate of the sphere is 3 n/(n+2).
    expected = [0, 1, 0, 3 * SIZE[1] / (SIZE[1] + 2)]
    np.testing.assert_allclose(moments, expected, atol=0.04)
    covariance = scaled.T @ scaled / SIZE[0]
    np.testing.assert_allclose(covariance, np.eye(SIZE[1]), atol=5 * math.sqrt(2 / SIZE[0]))
    neighbours = np.einsum("ij,ij->i", rows[:-1], rows[1:])
    assert abs(neighbours.mean()) < 5 / math.sqrt(SIZE[0] * SIZE[1])


def test_a_complex_gaussian_is_a_gaussian_of_twice_the_dim():
    complex_rows = ComplexGaussian(9, dim=5, stream=1).real_rows(range(9), np.float64)
    np.testing.assert_array_equal(complex_rows, Gaussian(9, dim=10).real_rows(range(9), np.float64))


@pytest.mark.parametrize("family", [Rademacher, Gaussian, ComplexGaussian])
def test_seeds_and_labels_give_different_vectors(family):
    seeds = (0, 1, 2**32, 2**63, 2**64 - 1)
    rows = [family(50, dim=64, random_state=seed).rows(range(50)) for seed in seeds]
    together = np.concatenate(rows)
    assert np.unique(together, axis=0).shape == together.shape


@pytest.mark.parametrize("family", [Rademacher, Gaussian, ComplexGaussian])
def test_a_seed_of_more_than_64_bits_is_refused(family):
    with pytest.raises(LocoleError, match="random_state must"):
        family(5, dim=8, random_state=2**64).rows([0])
