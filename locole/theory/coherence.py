"""Coherence of an embedding: exact by structure, exact by Gram matrix, or sampled, and it says which."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from locole.embeddings import Embedding, InnerProducts
from locole.exceptions import LocoleError
from locole.parallel.progress import track

__all__ = ["Coherence", "coherence"]

Method = Literal["auto", "structure", "gram", "sampled"]

_BLOCK = 2048
_CHUNK = 4096
# Multiplications that "auto" spends on a Gram matrix: about a minute on one core.
_GRAM_BUDGET = 4e12


@dataclass(frozen=True)
class Coherence(InnerProducts):
    """Inner products of an embedding, and how they are known.

    Attributes
    ----------
    coherence, coherence_re, low, high, rms : float
        See `locole.embeddings.InnerProducts`.
    method : {"structure", "gram", "sampled"}
        Closed form; all pairs; or random pairs, which can only miss the extremes.
    n_pairs : int
        Pairs behind the figures.
    missed_fraction : float
        0 if exact. Sampled: with the stated confidence at most this fraction of all pairs lies
        beyond each of the three extremes.
    confidence : float
        1 if exact.
    """

    method: str
    n_pairs: int
    missed_fraction: float = 0.0
    confidence: float = 1.0

    @property
    def exact(self) -> bool:
        """Whether every pair was accounted for."""
        return self.method != "sampled"

    def __float__(self) -> float:
        return self.coherence

    def __str__(self) -> str:
        how = {
            "structure": "exact, by structure",
            "gram": f"exact, all {self.n_pairs:,} pairs",
            "sampled": (
                f"a lower bound, from {self.n_pairs:,} random pairs; with confidence "
                f"{self.confidence:g} at most {self.missed_fraction:.1e} of all pairs exceed it"
            ),
        }[self.method]
        return (
            f"coherence {self.coherence:.6f} ({how}); real part in "
            f"[{self.low:.6f}, {self.high:.6f}], RMS {self.rms:.6f}"
        )


def coherence(
    embedding: Embedding,
    *,
    method: Method = "auto",
    n_pairs: int = 1_000_000,
    confidence: float = 0.99,
    random_state: int = 0,
) -> Coherence:
    """Largest inner product of two different vectors of an embedding, and its kin.

    Parameters
    ----------
    embedding : Embedding
        The vectors.
    method : {"auto", "structure", "gram", "sampled"}
        ``"auto"`` takes the structure where there is one, else all pairs if that takes about a
        minute at most, else random pairs.
    n_pairs : int
        Random pairs for ``"sampled"``.
    confidence : float
        For the statement about the pairs that sampling missed.
    random_state : int
        Seed of the sampled pairs.

    Returns
    -------
    Coherence
        ``float()`` of it is the coherence; ``print`` says how it is known.

    Notes
    -----
    If a fraction p of all pairs exceeds a value, m random pairs all stay below it with probability
    (1−p)^m; so p ≤ 1 − (1−confidence)^{1/m} with that confidence.

    Examples
    --------
    >>> from locole.embeddings import Kerdock
    >>> print(coherence(Kerdock(12046, dim=256)))
    coherence 0.062500 (exact, by structure); real part in [-0.062500, 0.062500], RMS 0.061836
    """
    if method not in ("auto", "structure", "gram", "sampled"):
        raise LocoleError(f"unknown method {method!r}: take auto, structure, gram or sampled.")
    pairs = embedding.n_classes * (embedding.n_classes - 1) // 2
    if pairs == 0:
        return Coherence(0.0, 0.0, 0.0, 0.0, 0.0, method="structure", n_pairs=0)
    known = embedding.inner_products() if method in ("auto", "structure") else None
    if known is not None:
        return Coherence(**asdict(known), method="structure", n_pairs=pairs)
    if method == "structure":
        raise LocoleError(
            f"{type(embedding).__name__} has no closed form here: take method='gram' or 'sampled'."
        )
    if method == "gram" or (method == "auto" and pairs * embedding.real_dim <= _GRAM_BUDGET):
        return Coherence(**asdict(_by_gram(embedding)), method="gram", n_pairs=pairs)
    return _by_sample(embedding, n_pairs, confidence, random_state)


class _Listed(NamedTuple):
    """Pairs of labels i[k], j[k]."""

    i: NDArray
    j: NDArray

    def __call__(self, k: int) -> tuple[int, int]:
        return int(self.i[k]), int(self.j[k])


class _Places(NamedTuple):
    """Pairs of labels that begin with i and j, row by row, which are too many to be listed."""

    i: int
    j: int
    width: int

    def __call__(self, k: int) -> tuple[int, int]:
        return self.i + k // self.width, self.j + k % self.width


class _Extremes:
    """Running extremes with the pairs that attain them, and the sum of squares."""

    def __init__(self, embedding: Embedding) -> None:
        self._embedding = embedding
        self._best = dict.fromkeys(("modulus", "low", "high"), (-math.inf, 0, 0))
        self._squares = 0.0
        self._pairs = 0

    def add(self, products: NDArray, pair: _Listed | _Places) -> None:
        """Take in products, the k-th of which is that of the labels ``pair(k)``."""
        real = np.ascontiguousarray(products.real)
        places = {"low": int(np.argmin(real)), "high": int(np.argmax(real))}
        found = {"low": -float(real[places["low"]]), "high": float(real[places["high"]])}
        if np.iscomplexobj(products):
            modulus = np.square(real) + np.square(products.imag)
            places["modulus"] = int(np.argmax(modulus))
            found["modulus"] = math.sqrt(modulus[places["modulus"]])
        else:
            places["modulus"] = places[max(found, key=found.__getitem__)]
            found["modulus"] = max(found.values())
        for name, value in found.items():
            if value > self._best[name][0]:
                self._best[name] = (value, *pair(places[name]))
        # Sums of some thousand squares in single precision, then in double.
        chunks = [real[start : start + _CHUNK] for start in range(0, real.size, _CHUNK)]
        self._squares += sum(float(np.dot(chunk, chunk)) for chunk in chunks)
        self._pairs += products.size

    def result(self) -> InnerProducts:
        """Return the figures; the extremes are computed again in double precision."""
        modulus = abs(self._product("modulus"))
        low, high = self._product("low").real, self._product("high").real
        rms = math.sqrt(self._squares / self._pairs)
        return InnerProducts(modulus, max(-low, high), low, high, rms)

    def _product(self, name: str) -> complex:
        _, i, j = self._best[name]
        a, b = _as_complex(self._embedding, self._embedding.real_rows([i, j], np.float64))
        return complex(np.vdot(b, a))


def _by_gram(embedding: Embedding) -> InnerProducts:
    extremes = _Extremes(embedding)
    starts = range(0, embedding.n_classes, _BLOCK)
    blocks = [(a, b) for a in starts for b in starts if a <= b]
    for a, b in track(blocks, "Gram matrix"):
        left, right = (_block(embedding, start) for start in (a, b))
        gram = left @ right.conj().T
        if a != b:
            extremes.add(gram.ravel(), _Places(a, b, gram.shape[1]))
        elif len(left) > 1:
            i, j = np.triu_indices(len(left), 1)
            extremes.add(gram[i, j], _Listed(a + i, b + j))
    return extremes.result()


def _by_sample(
    embedding: Embedding, n_pairs: int, confidence: float, random_state: int
) -> Coherence:
    if n_pairs < 1 or not 0 < confidence < 1:
        raise LocoleError("n_pairs must be at least 1 and confidence between 0 and 1.")
    rng = np.random.default_rng(random_state)
    extremes = _Extremes(embedding)
    step = max(1, (1 << 21) // embedding.real_dim)
    for start in track(range(0, n_pairs, step), "random pairs"):
        size = min(step, n_pairs - start)
        i = rng.integers(embedding.n_classes, size=size)
        j = (i + rng.integers(1, embedding.n_classes, size=size)) % embedding.n_classes
        left, right = (_as_complex(embedding, embedding.real_rows(v)) for v in (i, j))
        extremes.add(np.einsum("kd,kd->k", left, right.conj()), _Listed(i, j))
    missed = -math.expm1(math.log1p(-confidence) / n_pairs)
    return Coherence(
        **asdict(extremes.result()),
        method="sampled",
        n_pairs=n_pairs,
        missed_fraction=missed,
        confidence=confidence,
    )


def _block(embedding: Embedding, start: int) -> NDArray:
    stop = min(start + _BLOCK, embedding.n_classes)
    return _as_complex(embedding, embedding.real_block(start, stop))


def _as_complex(embedding: Embedding, real: NDArray) -> NDArray:
    """Undo the real view where the vectors are complex."""
    if not embedding.is_complex:
        return real
    imaginary = real[:, embedding.dim :]
    return real[:, : embedding.dim] + imaginary.dtype.type(1) * 1j * imaginary
