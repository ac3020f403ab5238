"""Finite fields GF(p^k) by exponent and logarithm tables."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["Field", "is_prime", "make_field", "prime_power"]


def is_prime(n: int) -> bool:
    """Whether ``n`` is prime, by trial division (dims are small).

    Examples
    --------
    >>> [n for n in range(20) if is_prime(n)]
    [2, 3, 5, 7, 11, 13, 17, 19]
    """
    return n > 1 and all(n % d for d in range(2, int(n**0.5) + 1))


def prime_power(q: int) -> tuple[int, int] | None:
    """Return ``(p, k)`` with ``q = p**k`` and p prime, or None.

    Examples
    --------
    >>> prime_power(27), prime_power(12)
    ((3, 3), None)
    """
    p = next((d for d in range(2, int(q**0.5) + 1) if q % d == 0), q)
    k, rest = 0, q
    while p > 1 and rest % p == 0:
        rest //= p
        k += 1
    return (p, k) if q > 1 and rest == 1 else None


class Field:
    """GF(p^k); an element is the whole number whose base-p digits are its coefficients.

    The modulus is the smallest primitive polynomial in that numbering, so the tables, and with them
    every code built on them, are the same everywhere and for ever.
    """

    def __init__(self, p: int, k: int) -> None:
        self.p, self.k = p, k
        self.order = p**k
        self.exp = _exp_table(p, k)
        # The logarithm of 0 is so large that every sum with it lands in the zeros of the long table.
        cycle = self.order - 1
        self.log = np.full(self.order, 2 * cycle, dtype=np.int64)
        self.log[self.exp] = np.arange(cycle)
        self._long_exp = np.zeros(4 * cycle + 1, dtype=np.int64)
        self._long_exp[: 2 * cycle] = np.tile(self.exp, 2)

    def mul(self, a: NDArray, b: NDArray) -> NDArray[np.int64]:
        """Product, element by element."""
        return self._long_exp[self.log[a] + self.log[b]]

    def power(self, a: NDArray, exponent: int) -> NDArray[np.int64]:
        """``a**exponent`` for a positive exponent."""
        return np.where(np.asarray(a) == 0, 0, self.exp[self.log[a] * exponent % (self.order - 1)])

    def add(self, a: NDArray, b: NDArray) -> NDArray[np.int64]:
        """Sum, digit by digit modulo p."""
        if self.p == 2:
            return np.bitwise_xor(a, b)
        total = np.zeros(np.broadcast(a, b).shape, dtype=np.int64)
        for place in (self.p**i for i in range(self.k)):
            total += (a // place + b // place) % self.p * place
        return total

    def trace(self, a: NDArray) -> NDArray[np.int64]:
        """Trace to GF(p): the sum of the conjugates ``a**(p**i)``."""
        total = np.zeros_like(np.asarray(a))
        for i in range(self.k):
            total = self.add(total, self.power(a, self.p**i))
        return total


@lru_cache(maxsize=32)
def make_field(q: int) -> Field:
    """Return the field of ``q`` elements (``q`` a prime power)."""
    found = prime_power(q)
    assert found is not None, q
    return Field(*found)


def _exp_table(p: int, k: int) -> NDArray[np.int64]:
    """Powers of the root of the first primitive polynomial x^k − (digits of ``tail``)."""
    order = p**k
    for tail in range(1, order):
        powers = _powers(p, k, tail)
        if powers is not None:
            return powers
    raise AssertionError(f"no primitive polynomial for GF({p}^{k})")


def _powers(p: int, k: int, tail: int) -> NDArray[np.int64] | None:
    """Successive powers of x modulo x^k = tail, or None if they repeat too soon."""
    order = p**k
    place = p ** (k - 1)
    digits = [tail // p**i % p for i in range(k)]
    powers = np.empty(order - 1, dtype=np.int64)
    element = 1
    for i in range(order - 1):
        powers[i] = element
        carry, low = divmod(element, place)
        element = low * p
        if carry:
            if p == 2:
                element ^= tail
            else:
                element = sum((element // p**j + carry * digits[j]) % p * p**j for j in range(k))
        if element == 1 and i < order - 2:
            return None
        if element == 0:
            return None
    return powers if element == 1 else None
