"""Which embedding and dimension for how many labels: the cheapest that does what is asked."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from locole.embeddings import FAMILIES
from locole.embeddings.fields import is_prime, prime_power
from locole.exceptions import LocoleError
from locole.theory.bounds import lossless_margin

__all__ = ["Advice", "Candidate", "advise"]

_LARGEST_DIM = 1 << 16
# Chance that a random family's coherence exceeds the stated bound.
_FAILURE = 0.01
# One core, float32, after `make bench`: seconds for one unit of each decoder's work (argmax: a guess).
_SECONDS = {"dense": 1.7e-11, "fwht": 6e-11, "fft": 2.4e-10, "gather": 1.3e-10, "argmax": 4e-10}
# One core, after `make bench-solver`: seconds for one non-zero of X, one output and one pass.
_SECONDS_PER_PRODUCT = 4e-10


@dataclass(frozen=True)
class Candidate:
    """One line of advice.

    Attributes
    ----------
    embedding : str
        Name for `make_embedding`.
    dim, real_dim : int
        Entries of a vector, and the real outputs that the regressor must learn.
    coherence : float
        Exact, or an upper bound that holds with probability 0.99 for random families.
    margin : float
        Labels whose probability leads by more than this are decoded without loss.
    capacity : float
        Labels that fit without changing the dim.
    decode_s : float
        Estimated seconds to decode one point on one core.
    """

    embedding: str
    dim: int
    real_dim: int
    coherence: float
    margin: float
    capacity: float
    decode_s: float


class Advice(list[Candidate]):
    """Candidates, cheapest first; prints as a table."""

    def __str__(self) -> str:
        lines = [
            f"{'embedding':18} {'dim':>6} {'outputs':>7} {'coherence':>9} "
            f"{'margin':>7} {'capacity':>10} {'decode µs':>9}"
        ]
        lines += [
            f"{c.embedding:18} {c.dim:6d} {c.real_dim:7d} {c.coherence:9.4f} "
            f"{c.margin:7.4f} {c.capacity:10.4g} {c.decode_s * 1e6:9.1f}"
            for c in self
        ]
        return "\n".join(lines)


@dataclass(frozen=True)
class _Family:
    """Valid dims and the range of inner products at a dim, for C labels."""

    dims: Callable[[int], Iterator[int]]
    capacity: Callable[[int], float]
    inner_range: Callable[[int, int], tuple[float, float]]
    work: Callable[[int, int], tuple[str, float]]


def advise(
    n_classes: int,
    *,
    coherence: float | None = None,
    margin: float | None = None,
    n_features: int | None = None,
    memory_bytes: float | None = None,
    nnz: int | None = None,
    time_s: float | None = None,
    passes: int = 5,
) -> Advice:
    """Cheapest embeddings for ``n_classes`` labels, by the real outputs they need.

    Parameters
    ----------
    n_classes : int
        Number of labels.
    coherence : float, optional
        Largest coherence allowed.
    margin : float, optional
        Posterior margin from which on decoding must lose nothing.
    n_features, memory_bytes : int, optional
        Weights of a linear model, ``4 · n_features · real_dim`` bytes, must fit into this memory.
    nnz, time_s : int, optional
        ``passes`` over ``nnz`` non-zeros of X on one core must take at most this long (estimate).
    passes : int
        Passes over the data for the estimate.

    Returns
    -------
    Advice
        One candidate for each family that can do it, fewest real outputs first. With a target
        (coherence or margin) each has the smallest dim that reaches it; with a budget only, the
        largest dim within it; with neither, the family's default dim.

    Examples
    --------
    >>> [(c.embedding, c.real_dim) for c in advise(12046, coherence=0.0625)][:3]
    [('kerdock', 256), ('delsarte_goethals', 256), ('gold', 512)]
    >>> print(Advice(advise(12046, coherence=0.05)[:3]))
    embedding             dim outputs coherence  margin   capacity decode µs
    reed_solomon          528     528    0.0455  0.0833  1.217e+04      37.6
    nelson                401     802    0.0499  0.0951  1.608e+05      28.8
    kerdock              1024    1024    0.0312  0.0606  5.243e+05       7.4
    """
    if n_classes < 2:
        raise LocoleError("advice needs at least two labels.")
    _check_target("coherence", coherence)
    _check_target("margin", margin)
    budget = _output_budget(n_features, memory_bytes, nnz, time_s, passes)
    advice = Advice()
    for name, family in _families().items():
        found = _cheapest(name, family, n_classes, coherence, margin, budget)
        if found is not None:
            advice.append(found)
    if not advice:
        raise LocoleError(
            f"nothing fits {n_classes:,} labels within {budget:.0f} real outputs at this target: "
            "allow more memory or time, or a larger coherence."
        )
    advice.sort(key=lambda c: (c.real_dim, c.decode_s))
    return advice


def _cheapest(
    name: str,
    family: _Family,
    n_classes: int,
    coherence: float | None,
    margin: float | None,
    budget: float,
) -> Candidate | None:
    found = None
    for dim in family.dims(n_classes):
        candidate = _candidate(name, family, n_classes, dim)
        if candidate.real_dim > budget:
            break
        if candidate.capacity < n_classes:
            continue
        if coherence is not None or margin is not None:
            enough = coherence is None or candidate.coherence <= coherence
            if enough and (margin is None or candidate.margin < margin):
                return candidate
        elif budget < math.inf:
            found = candidate
        elif dim >= FAMILIES[name].default_dim(n_classes):
            return candidate
    return found


def _candidate(name: str, family: _Family, n_classes: int, dim: int) -> Candidate:
    low, high = family.inner_range(n_classes, dim)
    decoder, work = family.work(n_classes, dim)
    return Candidate(
        embedding=name,
        dim=dim,
        real_dim=2 * dim if FAMILIES[name].is_complex else dim,
        coherence=max(abs(low), abs(high)),
        margin=lossless_margin(low=low, high=high) if high < 1 else 1.0,
        capacity=family.capacity(dim),
        decode_s=work * _SECONDS[decoder],
    )


def _check_target(name: str, value: float | None) -> None:
    if value is not None and not 0 < value < 1:
        raise LocoleError(f"{name} must lie between 0 and 1, not {value!r}.")


def _output_budget(
    n_features: int | None,
    memory_bytes: float | None,
    nnz: int | None,
    time_s: float | None,
    passes: int,
) -> float:
    """Real outputs that memory and time allow."""
    budget = math.inf
    if memory_bytes is not None:
        if n_features is None:
            raise LocoleError(
                "memory_bytes needs n_features: the weights are n_features × outputs."
            )
        budget = memory_bytes / (4 * n_features)
    if time_s is not None:
        if nnz is None:
            raise LocoleError("time_s needs nnz, the number of non-zeros of X.")
        budget = min(budget, time_s / (nnz * passes * _SECONDS_PER_PRODUCT))
    return budget


# The families: closed forms, so that no vector is ever made here -----------------------------------


def _families() -> dict[str, _Family]:
    random = _Family(_doubling(16), lambda n: math.inf, _random_range, _dense_work)
    complex_random = _Family(
        _doubling(8), lambda n: math.inf, _complex_random_range, _complex_dense_work
    )
    return {
        "kerdock": _Family(
            lambda c: _powers(4, 4), lambda n: n * n / 2, _across(lambda n: n**-0.5), _wht_work
        ),
        "delsarte_goethals": _Family(
            lambda c: _powers(16, 4), lambda n: n**3 / 4, _delsarte_range, _wht_work
        ),
        "gold": _Family(
            lambda c: _powers(8, 4), lambda n: n * n, _across(lambda n: (2 / n) ** 0.5), _wht_work
        ),
        "reed_solomon": _Family(
            lambda c: (q * q - 1 for q in range(3, 257) if prime_power(q)),
            lambda n: (n + 1) ** 1.5,
            _reed_solomon_range,
            lambda c, n: ("gather", c * (math.sqrt(n + 1) + 1)),
        ),
        "nelson": _Family(
            lambda c: (n for n in range(5, _LARGEST_DIM) if is_prime(n)),
            lambda n: n * n,
            _across(lambda n: n**-0.5),
            lambda c, n: ("fft", -(-c // n) * n * math.log2(2 * n)),
        ),
        "rademacher": random,
        "gaussian": random,
        "complex_gaussian": complex_random,
        "one_hot": _Family(
            lambda c: iter([c]), float, lambda c, n: (0.0, 0.0), lambda c, n: ("argmax", c)
        ),
        "simplex": _Family(
            lambda c: iter([c - 1]),
            lambda n: n + 1.0,
            lambda c, n: (-1 / n, -1 / n),
            lambda c, n: ("argmax", c),
        ),
    }


def _powers(first: int, factor: int) -> Iterator[int]:
    return itertools.takewhile(
        lambda n: n <= _LARGEST_DIM, (first * factor**i for i in itertools.count())
    )


def _doubling(first: int) -> Callable[[int], Iterator[int]]:
    """Powers of two and the steps half-way between them."""

    def dims(n_classes: int) -> Iterator[int]:
        for n in _powers(first, 2):
            yield n
            yield n * 3 // 2

    return dims


def _across(largest: Callable[[int], float]) -> Callable[[int, int], tuple[float, float]]:
    """Range of a union of orthonormal bases."""

    def inner_range(n_classes: int, n: int) -> tuple[float, float]:
        value = largest(n) if n_classes > n else 0.0
        return -value, value

    return inner_range


def _delsarte_range(n_classes: int, n: int) -> tuple[float, float]:
    value = (1 if n_classes <= n * n / 2 else 2) / math.sqrt(n) if n_classes > n else 0.0
    return -value, value


def _reed_solomon_range(n_classes: int, n: int) -> tuple[float, float]:
    q = math.isqrt(n + 1)
    return -1 / (q - 1), 1 / (q + 1)


def _random_range(n_classes: int, n: int) -> tuple[float, float]:
    """Hoeffding's bound for all pairs at once: P(|⟨g_i, g_j⟩| > t) ≤ 2 exp(−n t²/2)."""
    value = min(math.sqrt(2 * math.log(n_classes**2 / _FAILURE) / n), 1.0)
    return -value, value


def _complex_random_range(n_classes: int, n: int) -> tuple[float, float]:
    """For all pairs at once: P(|⟨g_i, g_j⟩| > t) = (1 − t²)^{n−1} ≤ exp(−(n−1) t²)."""
    value = min(math.sqrt(math.log(n_classes**2 / (2 * _FAILURE)) / (n - 1)), 1.0)
    return -value, value


def _complex_dense_work(n_classes: int, n: int) -> tuple[str, float]:
    return _dense_work(n_classes, 2 * n)


def _dense_work(n_classes: int, n: int) -> tuple[str, float]:
    return "dense", n_classes * n


def _wht_work(n_classes: int, n: int) -> tuple[str, float]:
    return "fwht", -(-n_classes // n) * n * math.log2(n)
