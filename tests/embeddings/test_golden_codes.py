"""The codes of this release and of every later one.

A model file holds the name and the parameters of its embedding, not the vectors. If one of these
hashes changes, every model trained with that family before the change decodes to wrong labels: do
not edit a hash, restore the code. A new code gets a new family name and a line of its own.
"""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from locole.embeddings import (
    FAMILIES,
    ComplexGaussian,
    DelsarteGoethals,
    Embedding,
    Gaussian,
    Gold,
    Kerdock,
    Nelson,
    OneHot,
    Rademacher,
    ReedSolomonSimplex,
    Simplex,
)


def codes(embedding: Embedding) -> np.ndarray:
    """Return the first labels, the last one and some between."""
    n = embedding.n_classes
    return np.array([*range(20), n // 3, n // 2, 2 * n // 3, n - 1])


def essence(embedding: Embedding) -> bytes:
    """Return what defines the vectors, free of rounding where the family allows."""
    columns = embedding.columns(codes(embedding))
    if isinstance(embedding, Nelson):
        return embedding.exponents(columns).astype("<i8").tobytes()
    if isinstance(embedding, ReedSolomonSimplex):
        vertices = embedding.symbol_scores(np.eye(embedding.dim))
        rounded = np.round(vertices * 2**16).astype("<i4")
        return embedding.symbols(columns).astype("<i4").tobytes() + rounded.tobytes()
    rows = embedding.real_rows(codes(embedding), np.float64)
    if isinstance(embedding, Rademacher | Kerdock | DelsarteGoethals | Gold):
        return np.packbits(np.signbit(rows)).tobytes()
    return np.round(rows * 2**16).astype("<i4").tobytes()


GOLDEN = [
    (
        Rademacher(10**6, dim=360),
        "242d01c1e62731780d9f5ba7a80dbd1b62010467b4263beeb192e3945d398cfe",
    ),
    (
        Rademacher(10**6, dim=360, random_state=12345678901),
        "1593eabdcc1c873d49c4163aa5e35839fc1e0b8982362e0dccd7d78e88b7d2e0",
    ),
    (Gaussian(10**6, dim=100), "c7fe8ec8242e46688e1175c744728b1c08b8b34f4669a7a494c43b5b42c11d66"),
    (
        Gaussian(10**6, dim=100, random_state=1),
        "6b190871c435ae6e612387f775918a4e775f5d4438d6e508025b14a74a802ebe",
    ),
    (
        ComplexGaussian(10**6, dim=50),
        "877ac29722cdd0bfac0109bb15b61b801751a05e9cca0ab6868279254cae2273",
    ),
    # Of model files of format 1, in which both families drew from one stream.
    (
        Gaussian(10**6, dim=100, stream=0),
        "0bc01d0e0749ca17d663399517701f254519fbf1cb66539750500f3d43db867e",
    ),
    (
        Gaussian(10**6, dim=100, random_state=1, stream=0),
        "845921c2228d9763a3f98b986ce58a8ebda1d5badd16b974d0d25a157ac59be8",
    ),
    (
        ComplexGaussian(10**6, dim=50, stream=0),
        "0bc01d0e0749ca17d663399517701f254519fbf1cb66539750500f3d43db867e",
    ),
    (Nelson(12046, dim=509), "7b7f0fe1bac2d87f93b901f207ab43eec9f8c4457165f6b7313b239f54cd658c"),
    (
        Nelson(10**6, dim=101, r=3),
        "8956d29a80f5a585c4efb1b45b81ab51025b3bff1b405d7a2d14a90fee54eab6",
    ),
    (
        Kerdock(103_361, dim=1024),
        "542c6d5bacb1a2503c4c629bd839de8fa4500c114d8e90980b8067ca0323e0d6",
    ),
    (Kerdock(128, dim=16), "c51ba5aeef1377a6209b9e554eca70e784e8ceeb20a4f20c4b691db98f998c4c"),
    (
        DelsarteGoethals(4_194_304, dim=256),
        "723ecf4cbf9a831fe32dd3575b5f528b11a769efce6d66105a0a582edecc403c",
    ),
    (Gold(12046, dim=512), "464e9e5b01e3c9af13bc792c3c1f653af0c1ed5cb2c8a62f4a55665d2b1735fe"),
    (Gold(64, dim=8), "6b4928dc20c8206817f22925a7886643b027f54a5ad0821a96e5203ed018adbf"),
    (
        ReedSolomonSimplex(12046, dim=528),
        "3a4562cfe5ec1adaf498462d47c4ce4e7334fe61b05fa6ba66a4464bad7ff6dd",
    ),
    (
        ReedSolomonSimplex(729, dim=80),
        "ad3b21390b82fc79a79dece948d54a72aa88242575c8962bd75a83a07d477727",
    ),
    (OneHot(30, dim=40), "9b7dd1d6cedd2ab354ff5c1812201c343407cf1b411995724635c378ce155188"),
    (Simplex(101, dim=100), "f6117b1b966301e82098ae334ca2f43c39197bc273dc67c6c5912282e1dace0b"),
    (
        Kerdock(1000, dim=64, random_state=3, assignment="random"),
        "af3fef8d807e9f0fbde7e8f1ab0e0ed3f7ce90471fb95b154cac31125b00749b",
    ),
]


@pytest.mark.parametrize(("embedding", "digest"), GOLDEN, ids=lambda v: getattr(v, "name", ""))
def test_codes_never_change(embedding, digest):
    assert hashlib.sha256(essence(embedding)).hexdigest() == digest


def test_every_family_has_a_golden_code():
    assert {type(embedding) for embedding, _ in GOLDEN} == set(FAMILIES.values())


def test_random_families_have_streams_of_their_own():
    """Otherwise two rows of a table would be one experiment, figure by figure."""
    random = [family for family in FAMILIES.values() if hasattr(family, "default_stream")]
    assert len(random) == 3
    assert len({family.default_stream for family in random}) == 3
    normal, complex_normal = Gaussian(9, dim=100), ComplexGaussian(9, dim=50)
    overlap = (normal.real_block(0, 9) * complex_normal.real_block(0, 9)).sum(axis=1)
    assert abs(overlap).max() < 0.5
