"""Dense products: right, and the same bits for a row whatever stands beside it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from locole.kernels.dense import fill_products


def product(H, V):
    out = np.full((H.shape[0], V.shape[0]), np.nan, dtype=H.dtype)
    fill_products(H.reshape(-1), V.reshape(-1), *out.shape, V.shape[1], out.reshape(-1))
    return out


def numbers(n_rows, n_outputs, size, dtype=np.float32, seed=0):
    rng = np.random.default_rng([seed, n_rows, n_outputs, size])
    return (rng.normal(size=(n, size)).astype(dtype) for n in (n_rows, n_outputs))


sizes = st.integers(1, 70)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 19), sizes, sizes)
def test_it_is_the_product_and_rows_do_not_depend_on_their_neighbours(n_rows, n_outputs, size):
    H, V = numbers(n_rows, n_outputs, size)
    found = product(H, V)
    np.testing.assert_allclose(found, H.astype(float) @ V.T.astype(float), rtol=0, atol=1e-4)
    for i in range(n_rows):
        assert product(H[i : i + 1].copy(), V).tobytes() == found[i].tobytes()
    order = np.random.default_rng(0).permutation(n_rows)
    assert product(H[order], V).tobytes() == found[order].tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_are_in_the_order_of_the_inner_index(dtype):
    """Fused multiply-adds one after the other, to the bit, as long as all products are exact."""
    H, V = (np.round(array * 64) / 64 for array in numbers(7, 35, 300, dtype))
    expected = np.zeros((7, 35), dtype=dtype)
    for k in range(300):
        expected += H[:, k, None] * V[None, :, k]
    assert product(H, V).tobytes() == expected.tobytes()


def test_read_only_arrays():
    H, V = numbers(5, 6, 7)
    expected = product(H, V)
    H.flags.writeable = V.flags.writeable = False
    assert product(H, V).tobytes() == expected.tobytes()


def test_numbers_that_are_none_stay_in_their_row():
    H, V = numbers(6, 40, 33)
    clean = product(H, V)
    H[2, 5] = np.nan
    found = product(H, V)
    assert np.isnan(found[2]).all()
    others = [0, 1, 3, 4, 5]
    assert found[others].tobytes() == clean[others].tobytes()
