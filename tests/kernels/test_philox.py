"""The generator against the authors' known answers, and the order in which bits are used."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from locole.kernels.jit import kernel
from locole.kernels.philox import fill_gaussian, fill_rademacher, philox4x32

# Known answers of philox4x32-10 in the Random123 distribution (file kat_vectors).
KNOWN = [
    ("00000000 " * 4, "00000000 " * 2, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff " * 4, "ffffffff " * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    (
        "243f6a88 85a308d3 13198a2e 03707344",
        "a4093822 299f31d0",
        "d16cfe09 94fdcceb 5001e420 24126ea1",
    ),
]
words = st.integers(0, 2**32 - 1)


@kernel
def block(counter, key, out):
    out[0], out[1], out[2], out[3] = philox4x32(
        counter[0], counter[1], counter[2], counter[3], key[0], key[1]
    )


def philox(counter: list[int], key: list[int]) -> list[int]:
    out = np.empty(4, dtype=np.uint64)
    block(np.array(counter, dtype=np.uint64), np.array(key, dtype=np.uint64), out)
    return out.tolist()


def slow_philox(counter: list[int], key: list[int]) -> list[int]:
    """Ten rounds as the paper writes them, in whole numbers of any size."""
    (c0, c1, c2, c3), (k0, k1) = counter, key
    for i in range(10):
        a, b = (k0 + i * 0x9E3779B9) % 2**32, (k1 + i * 0xBB67AE85) % 2**32
        high0, low0 = divmod(0xD2511F53 * c0, 2**32)
        high1, low1 = divmod(0xCD9E8D57 * c2, 2**32)
        c0, c1, c2, c3 = high1 ^ c1 ^ a, low1, high0 ^ c3 ^ b, low0
    return [c0, c1, c2, c3]


def numbers(text: str) -> list[int]:
    return [int(word, 16) for word in text.split()]


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN)
def test_known_answers(counter, key, answer):
    assert philox(numbers(counter), numbers(key)) == numbers(answer)
    assert slow_philox(numbers(counter), numbers(key)) == numbers(answer)


@given(st.lists(words, min_size=4, max_size=4), st.lists(words, min_size=2, max_size=2))
def test_any_counter_and_key(counter, key):
    assert philox(counter, key) == slow_philox(counter, key)


streams = st.integers(0, 2**32 - 1)


def words_of(label: int, seed: int, stream: int, n_blocks: int) -> list[int]:
    key = [seed % 2**32, seed >> 32]
    blocks = [slow_philox([b, stream, label % 2**32, label >> 32], key) for b in range(n_blocks)]
    return [word for block in blocks for word in block]


@given(st.integers(0, 2**62), st.integers(0, 2**62), streams, st.integers(1, 300))
def test_signs_are_the_bits_in_order(label, seed, stream, n):
    out = np.empty((1, n), dtype=np.float32)
    fill_rademacher(np.array([label]), seed, np.uint64(stream), np.float32(1), out)
    bits = [w >> j & 1 for w in words_of(label, seed, stream, -(-n // 128)) for j in range(32)]
    np.testing.assert_array_equal(out[0] > 0, np.array(bits[:n]) == 1)


@given(st.integers(0, 2**62), st.integers(0, 2**62), streams, st.integers(1, 30))
def test_normal_numbers_are_box_and_mullers(label, seed, stream, n):
    out = np.empty((1, n))
    fill_gaussian(np.array([label]), seed, np.uint64(stream), out)
    words = words_of(label, seed, stream, -(-n // 4))
    normal = []
    for first, second in zip(words[::2], words[1::2], strict=True):
        radius = math.sqrt(-2 * math.log((first + 0.5) / 2**32))
        angle = 2 * math.pi * second / 2**32
        normal += [radius * math.cos(angle), radius * math.sin(angle)]
    expected = np.array(normal[:n]) / math.hypot(*normal[:n])
    np.testing.assert_allclose(out[0], expected, rtol=1e-12, atol=1e-15)
