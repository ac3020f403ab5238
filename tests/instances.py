"""Small embeddings of every family, on which all contracts are tested.

A new family gets its tests by an entry here; `test_embedding_contract` fails while one is missing.
"""

from __future__ import annotations

import numpy as np

from locole.embeddings import (
    ComplexGaussian,
    DelsarteGoethals,
    Embedding,
    Explicit,
    Gaussian,
    Gold,
    Kerdock,
    Nelson,
    OneHot,
    Rademacher,
    ReedSolomonSimplex,
    Simplex,
    group_columns,
)

_rng = np.random.default_rng(0)
_REAL = _rng.standard_normal((40, 7))
_COMPLEX = _rng.standard_normal((30, 4)) + 1j * _rng.standard_normal((30, 4))


def grouped(n_classes: int, *, basis: int, n_clusters: int) -> np.ndarray:
    """Columns with gaps: clusters of uneven sizes, none split over two bases."""
    clusters = np.random.default_rng(1).integers(0, n_clusters, n_classes)
    return group_columns(clusters, basis=basis)


GENERATED: list[Embedding] = [
    Rademacher(1, dim=8),
    Rademacher(130, dim=5),  # only 32 different vectors: ties for every point
    Rademacher(200, dim=131, random_state=2**40 + 1),
    Rademacher(60, dim=24, assignment="random"),
    Gaussian(40, dim=7),
    Gaussian(3, dim=1),
    Gaussian(50, dim=33, random_state=5, assignment="random"),
    ComplexGaussian(40, dim=6),
    ComplexGaussian(20, dim=5, assignment=np.arange(20) * 10**9),
    Nelson(1, dim=5),
    Nelson(9, dim=3),
    Nelson(25, dim=5),
    Nelson(61, dim=11),
    Nelson(100, dim=11, random_state=3, assignment="random"),
    Nelson(40, dim=13, assignment=grouped(40, basis=13, n_clusters=5)),
    Nelson(343, dim=7, r=3),
    Nelson(130, dim=7, r=3, assignment="random"),
    Nelson(201, dim=5, r=4),
    Kerdock(1, dim=16),
    Kerdock(8, dim=4),
    Kerdock(53, dim=16),
    Kerdock(128, dim=16),
    Kerdock(100, dim=16, random_state=7, assignment="random"),
    Kerdock(60, dim=16, assignment=grouped(60, basis=16, n_clusters=8)),
    Kerdock(301, dim=64),
    DelsarteGoethals(100, dim=16),
    DelsarteGoethals(1024, dim=16),
    DelsarteGoethals(203, dim=16, assignment="random"),
    DelsarteGoethals(70, dim=16, assignment=grouped(70, basis=16, n_clusters=9) + 512),
    Gold(64, dim=8),
    Gold(43, dim=8, assignment="random"),
    Gold(50, dim=32, assignment=grouped(50, basis=32, n_clusters=4)),
    Gold(201, dim=32),
    ReedSolomonSimplex(1, dim=8),
    ReedSolomonSimplex(27, dim=8),
    ReedSolomonSimplex(50, dim=15),
    ReedSolomonSimplex(125, dim=24, assignment="random"),
    ReedSolomonSimplex(203, dim=80),
    ReedSolomonSimplex(20, dim=24, assignment=np.arange(20) * 6 + 3),
    OneHot(1, dim=1),
    OneHot(6, dim=9),
    OneHot(70, dim=70, assignment="random"),
    OneHot(4, dim=9, assignment=[8, 0, 3, 5]),
    Simplex(1, dim=3),
    Simplex(2, dim=1),
    Simplex(40, dim=39),
    Simplex(20, dim=50, assignment="random"),
    Simplex(4, dim=9, assignment=[9, 2, 0, 7]),
]

EXPLICIT: list[Explicit] = [
    Explicit(_REAL),
    Explicit(_REAL, labels=[f"label {i}" for i in range(40)], n_classes=33),
    Explicit(_COMPLEX),
    Explicit(np.repeat(np.eye(3, dtype=np.int64), 7, axis=0)),  # equal vectors
]

EMBEDDINGS: list[Embedding] = [*GENERATED, *EXPLICIT]


def name_of(embedding: Embedding) -> str:
    """Test id: the repr, and how labels are placed where not by index."""
    assignment = embedding.spec().get("assignment", "index")
    if isinstance(assignment, str):
        return repr(embedding)
    kind = "random" if embedding.n_columns == embedding.n_classes else "gaps"
    return f"{embedding!r}-{kind}"
