"""Slow and plain versions of what the package does fast, written from the definitions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from locole.embeddings import Embedding, InnerProducts
from locole.embeddings.fields import Field

TIE = 2.0**-40


# --- finite fields: polynomials over GF(p) modulo one polynomial ---


class SlowField:
    """GF(p^k) by polynomial multiplication; an element's base-p digits are its coefficients.

    Only the modulus is learnt from the package: x^k equals the k-th power of the root x.
    """

    def __init__(self, field: Field) -> None:
        self.p, self.k, self.q = field.p, field.k, field.p**field.k
        self.tail = self.digits(int(field.exp[field.k % (self.q - 1)]))

    def digits(self, a: int) -> list[int]:
        return [a // self.p**i % self.p for i in range(self.k)]

    def number(self, digits: Sequence[int]) -> int:
        return sum(d % self.p * self.p**i for i, d in enumerate(digits))

    def add(self, a: int, b: int) -> int:
        return self.number([x + y for x, y in zip(self.digits(a), self.digits(b), strict=True)])

    def mul(self, a: int, b: int) -> int:
        product = [0] * (2 * self.k - 1)
        for (i, x), (j, y) in itertools.product(
            enumerate(self.digits(a)), enumerate(self.digits(b))
        ):
            product[i + j] += x * y
        for degree in range(2 * self.k - 2, self.k - 1, -1):
            for i, t in enumerate(self.tail):
                product[degree - self.k + i] += product[degree] * t
        return self.number(product[: self.k])

    def power(self, a: int, exponent: int) -> int:
        result = 1
        for _ in range(exponent):
            result = self.mul(result, a)
        return result

    def trace(self, a: int) -> int:
        total, conjugate = 0, a
        for _ in range(self.k):
            total = self.add(total, conjugate)
            conjugate = self.power(conjugate, self.p)
        return total


def dot_bits(a: int, x: int) -> int:
    """Product of two bit vectors modulo 2."""
    return (a & x).bit_count() % 2


# --- inner products ---


def vectors(embedding: Embedding) -> np.ndarray:
    """Return all vectors in double precision, complex where they are."""
    real = embedding.real_rows(np.arange(embedding.n_classes), np.float64)
    if not embedding.is_complex:
        return real
    return real[:, : embedding.dim] + 1j * real[:, embedding.dim :]


def inner_products_of(gram: np.ndarray) -> InnerProducts:
    """Return the five figures of a Gram matrix."""
    off = gram[~np.eye(len(gram), dtype=bool)]
    if off.size == 0:
        return InnerProducts(0.0, 0.0, 0.0, 0.0, 0.0)
    re = off.real
    rms = math.sqrt(np.mean(re**2))
    return InnerProducts(np.abs(off).max(), np.abs(re).max(), re.min(), re.max(), rms)


# --- decoding ---


def exact_scores(embedding: Embedding, Z: np.ndarray) -> np.ndarray:
    """Products of points and vectors in extended precision, shape (rows, n_classes)."""
    rows = embedding.real_rows(np.arange(embedding.n_classes), np.float64)
    return Z.astype(np.longdouble) @ rows.T.astype(np.longdouble)


def rank(scores: np.ndarray, tie: float) -> tuple[list[int], list[float]]:
    """All labels by falling score; runs of gaps up to ``tie`` by rising label with one score."""
    order = sorted(range(len(scores)), key=lambda i: -scores[i])
    runs: list[list[int]] = []
    for last, label in zip([None, *order], order, strict=False):
        if last is not None and scores[last] - scores[label] <= tie:
            runs[-1].append(label)
        else:
            runs.append([label])
    labels = [label for run in runs for label in sorted(run)]
    return labels, [scores[run[0]] for run in runs for _ in run]


def reference_decode(embedding: Embedding, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Labels of each row from best to worst, and their scores."""
    norms = np.sqrt((Z.astype(np.longdouble) ** 2).sum(axis=1))
    ranked = [
        rank(scores, TIE * norm)
        for scores, norm in zip(exact_scores(embedding, Z), norms, strict=True)
    ]
    return np.array([r[0] for r in ranked]), np.array([r[1] for r in ranked])


def tie_is_arguable(embedding: Embedding, Z: np.ndarray) -> bool:
    """Whether some gap of scores lies so near to 2^-40 ‖z‖ that rounding decides."""
    norms = np.sqrt((Z.astype(np.longdouble) ** 2).sum(axis=1, keepdims=True))
    gaps = np.abs(np.diff(np.sort(exact_scores(embedding, Z), axis=1), axis=1))
    return bool(np.any(np.abs(gaps - TIE * norms) < TIE * norms / 64))


def integer_decode(signs: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """Labels from best to worst for whole-number points and vectors: no rounding, no tolerance."""
    scores = Z.astype(np.int64) @ signs.T.astype(np.int64)
    return np.argsort(-scores, axis=1, kind="stable")
