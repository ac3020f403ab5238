"""Vectors as values against NumPy, number by number."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from locole.kernels.jit import kernel
from locole.kernels.simd import (
    WIDTH,
    aligned,
    broadcast,
    exceeds,
    fma,
    fnma,
    greatest,
    load,
    maximum,
    minimum,
    store,
    total,
    zeros,
)

types = st.sampled_from([np.float32, np.float64])


@st.composite
def pairs(draw):
    """Two vectors with equal entries here and there, and infinities."""
    dtype = np.dtype(draw(types))
    entries = st.one_of(
        st.sampled_from([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf]),
        st.floats(-1e6, 1e6, width=32),
    )
    a = draw(hnp.arrays(dtype, WIDTH, elements=entries))
    b = draw(hnp.arrays(dtype, WIDTH, elements=entries))
    same = draw(hnp.arrays(bool, WIDTH))
    return a, np.where(same, a, b)


@kernel
def calculate(a, b, out):
    x, y = load(a, 0), load(b, 0)
    store(out, 0, x + y)
    store(out, WIDTH, x - y)
    store(out, 2 * WIDTH, x * y)
    store(out, 3 * WIDTH, maximum(x, y))
    store(out, 4 * WIDTH, minimum(x, y))
    store(out, 5 * WIDTH, broadcast(b[3]))
    store(out, 6 * WIDTH, zeros(a))
    return exceeds(x, y)


@kernel
def move(source, start, target, place):
    store(target, place, load(source, start))


@kernel
def accumulate(x, count):
    total = zeros(x)
    for i in range(count):
        total = total + load(x, i * WIDTH)
    out = np.empty(WIDTH, dtype=x.dtype)
    store(out, 0, total)
    return out


@given(pairs())
def test_arithmetic(pair):
    a, b = pair
    out = np.full(7 * WIDTH, np.nan, dtype=a.dtype)
    exceeded = calculate(a, b, out)
    with np.errstate(invalid="ignore"):
        expected = [a + b, a - b, a * b, np.maximum(a, b), np.minimum(a, b)]
    expected += [np.full(WIDTH, b[3]), np.zeros(WIDTH)]
    np.testing.assert_array_equal(out.reshape(7, WIDTH), expected)
    assert exceeded == (a > b).any()


@pytest.mark.parametrize("lane", range(WIDTH))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exceeds_sees_every_lane(lane, dtype):
    a, b = np.ones(WIDTH, dtype=dtype), np.ones(WIDTH, dtype=dtype)
    out = np.empty(7 * WIDTH, dtype=dtype)
    assert not calculate(a, b, out)
    a[lane] = 2
    assert calculate(a, b, out)


@kernel
def fuse(a, b, c, out):
    x, y, z = load(a, 0), load(b, 0), load(c, 0)
    store(out, 0, fma(x, y, z))
    store(out, WIDTH, fnma(x, y, z))


def test_fused_operations_round_once():
    a = np.full(WIDTH, 1 + 2.0**-12, dtype=np.float32)
    c = np.full(WIDTH, -1, dtype=np.float32)
    out = np.empty(2 * WIDTH, dtype=np.float32)
    fuse(a, a, c, out)
    exact = (1 + 2.0**-12) ** 2
    np.testing.assert_array_equal(out[:WIDTH], np.float32(exact - 1))
    np.testing.assert_array_equal(out[WIDTH:], np.float32(-1 - exact))
    b = np.arange(WIDTH, dtype=np.float64)
    out = np.empty(2 * WIDTH)
    fuse(b, b + 1, b + 2, out)
    np.testing.assert_array_equal(out[:WIDTH], b * (b + 1) + b + 2)
    np.testing.assert_array_equal(out[WIDTH:], b + 2 - b * (b + 1))


@given(types, st.integers(0, 40), st.integers(0, 40))
def test_load_and_store_anywhere(dtype, start, place):
    source = np.arange(80, dtype=dtype)
    target = np.full(80, -1, dtype=dtype)
    move(source, start, target, place)
    expected = np.full(80, -1, dtype=dtype)
    expected[place : place + WIDTH] = source[start : start + WIDTH]
    np.testing.assert_array_equal(target, expected)


def test_vectors_live_through_loops():
    x = np.arange(10 * WIDTH, dtype=np.float64)
    np.testing.assert_array_equal(accumulate(x, 10), x.reshape(10, WIDTH).sum(axis=0))
    np.testing.assert_array_equal(accumulate(x, 0), np.zeros(WIDTH))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1, 15, 16, 1000])
def test_aligned_room_starts_on_a_cache_line(dtype, size):
    rooms = [aligned(size, np.empty(0, dtype=dtype)) for _ in range(20)]
    for i, room in enumerate(rooms):
        assert room.shape == (size,)
        assert room.dtype == dtype
        assert room.ctypes.data % 64 == 0
        room[:] = i
    assert all((room == i).all() for i, room in enumerate(rooms))


@kernel
def folded(a, out):
    out[0], out[1] = total(load(a, 0)), greatest(load(a, 0))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("place", [0, 3, WIDTH - 1])
def test_folds(dtype, place):
    a, out = np.arange(WIDTH, dtype=dtype), np.empty(2, dtype=dtype)
    a[place] = 100
    folded(a, out)
    np.testing.assert_array_equal(out, [a.sum(), 100])
