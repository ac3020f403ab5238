"""The adviser: what it names does what was asked, and nothing smaller of its family does."""

import pytest

from locole.embeddings import FAMILIES, make_embedding
from locole.exceptions import LocoleError
from locole.theory import advise, coherence

EXACT = ("kerdock", "delsarte_goethals", "gold", "nelson", "reed_solomon", "one_hot", "simplex")


def test_every_family_gets_a_line():
    advice = advise(5000)
    assert {c.embedding for c in advice} == set(FAMILIES)
    assert [c.real_dim for c in advice] == sorted(c.real_dim for c in advice)


@pytest.mark.parametrize("candidate", [c for c in advise(900) if c.embedding in EXACT], ids=str)
def test_figures_are_those_of_the_embedding(candidate):
    embedding = make_embedding(candidate.embedding, 900, dim=candidate.dim)
    assert embedding.capacity == candidate.capacity
    assert embedding.real_dim == candidate.real_dim
    assert coherence(embedding).coherence <= candidate.coherence + 1e-12


@pytest.mark.parametrize("target", [0.3, 0.1, 0.0625, 0.04])
def test_coherence_target_is_met(target):
    for candidate in advise(2000, coherence=target):
        assert candidate.coherence <= target
        if candidate.embedding in EXACT:
            embedding = make_embedding(candidate.embedding, 2000, dim=candidate.dim)
            assert coherence(embedding).coherence <= target + 1e-12


def test_random_families_keep_their_promise():
    for candidate in advise(2000, coherence=0.5):
        if candidate.embedding not in EXACT:
            embedding = make_embedding(candidate.embedding, 2000, dim=candidate.dim)
            assert coherence(embedding).coherence <= candidate.coherence


def test_margin_target_is_met():
    assert all(c.margin < 0.1 for c in advise(2000, margin=0.1))


def test_the_spec_examples():
    """Kerdock-256 at 256 outputs against Nelson's 502 or more for the same coherence."""
    outputs = {c.embedding: c.real_dim for c in advise(12046, coherence=0.0632)}
    assert outputs["kerdock"] == 256
    assert outputs["nelson"] == 502


def test_memory_and_time_budgets():
    advice = advise(12046, n_features=300_000, memory_bytes=5e8)
    assert advice
    assert all(4 * 300_000 * c.real_dim <= 5e8 for c in advice)
    quick, slow = (advise(12046, nnz=6_000_000, time_s=t)[-1].real_dim for t in (20, 200))
    assert quick < slow


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"coherence": 1.5}, "between 0 and 1"),
        ({"margin": 0}, "between 0 and 1"),
        ({"memory_bytes": 1e6}, "n_features"),
        ({"time_s": 1}, "nnz"),
        ({"coherence": 0.01, "n_features": 10**6, "memory_bytes": 1e6}, "allow more memory"),
    ],
)
def test_bad_requests(options, message):
    with pytest.raises(LocoleError, match=message):
        advise(12046, **options)


def test_one_label_needs_no_advice():
    with pytest.raises(LocoleError, match="two labels"):
        advise(1)


def test_prints_as_a_table():
    lines = str(advise(12046, coherence=0.0625)).splitlines()
    assert lines[0].split()[:3] == ["embedding", "dim", "outputs"]
    assert lines[1].split()[:3] == ["kerdock", "256", "256"]
