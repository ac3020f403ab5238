"""Coherence: the three ways agree where they must, and each says which it is."""

import numpy as np
import pytest

from locole.embeddings import (
    ComplexGaussian,
    Explicit,
    Gold,
    Kerdock,
    Nelson,
    OneHot,
    Rademacher,
    group_columns,
)
from locole.exceptions import LocoleError
from locole.theory import coherence, welch_bound

FIELDS = ("coherence", "coherence_re", "low", "high", "rms")


@pytest.mark.parametrize(
    "embedding",
    [Kerdock(1000, 64), Gold(300, 32), Nelson(900, 31), Nelson(300, 7, r=3), OneHot(9, 9)],
    ids=repr,
)
def test_structure_equals_gram(embedding):
    by_structure = coherence(embedding)
    by_gram = coherence(embedding, method="gram")
    assert by_structure.method == "structure"
    assert by_gram.method == "gram"
    assert by_structure.exact
    assert by_gram.exact
    for field in FIELDS:
        assert getattr(by_structure, field) == pytest.approx(getattr(by_gram, field), abs=1e-6)


@pytest.mark.parametrize("embedding", [Rademacher(2500, 24), ComplexGaussian(2500, 12)], ids=repr)
def test_gram_of_random_families_equals_numpy(embedding):
    rows = embedding.rows(np.arange(embedding.n_classes)).astype(complex)
    gram = rows @ rows.conj().T
    off = gram[~np.eye(len(gram), dtype=bool)]
    found = coherence(embedding)
    assert found.method == "gram"
    assert found.coherence == pytest.approx(np.abs(off).max(), abs=1e-6)
    assert found.coherence_re == pytest.approx(np.abs(off.real).max(), abs=1e-6)
    assert found.low == pytest.approx(off.real.min(), abs=1e-6)
    assert found.high == pytest.approx(off.real.max(), abs=1e-6)
    assert found.rms == pytest.approx(np.sqrt(np.mean(off.real**2)), abs=1e-6)
    assert found.coherence >= welch_bound(embedding.n_classes, embedding.dim)


def test_sampling_is_a_lower_bound_and_says_so():
    embedding = Rademacher(2500, 24)
    exact, sampled = (coherence(embedding, method=m, n_pairs=5000) for m in ("gram", "sampled"))
    assert not sampled.exact
    assert sampled.method == "sampled"
    assert sampled.coherence <= exact.coherence
    assert exact.low <= sampled.low <= sampled.high <= exact.high
    assert sampled.rms == pytest.approx(exact.rms, rel=0.1)
    assert "lower bound" in str(sampled)
    assert "confidence 0.99" in str(sampled)


def test_the_stated_confidence_holds():
    """Over many seeds, the fraction of pairs beyond the sampled value stays below the promise."""
    embedding = Rademacher(300, 64)
    rows = embedding.rows(np.arange(300)).astype(float)
    products = np.abs((rows @ rows.T)[np.triu_indices(300, 1)])
    trials = [
        coherence(embedding, method="sampled", n_pairs=200, confidence=0.9, random_state=seed)
        for seed in range(200)
    ]
    kept = [np.mean(products > t.coherence + 1e-6) <= t.missed_fraction for t in trials]
    assert np.mean(kept) >= 0.85


def test_a_large_random_embedding_is_sampled_unasked():
    found = coherence(Rademacher(10**6, 64), n_pairs=2000)
    assert found.method == "sampled"
    assert found.n_pairs == 2000


def test_gaps_in_the_assignment_leave_the_closed_form():
    columns = group_columns(np.arange(90) // 30, basis=16)
    embedding = Kerdock(90, 16, assignment=columns + 16)
    assert embedding.inner_products() is None
    assert coherence(embedding).method == "gram"
    with pytest.raises(LocoleError, match="gram"):
        coherence(embedding, method="structure")


def test_one_label_has_coherence_zero():
    assert float(coherence(Explicit([[1.0, 2.0]]))) == 0.0


@pytest.mark.parametrize(
    "options",
    [
        {"method": "guess"},
        {"method": "sampled", "n_pairs": 0},
        {"method": "sampled", "confidence": 1},
    ],
)
def test_bad_options(options):
    with pytest.raises(LocoleError):
        coherence(Rademacher(10, 4), **options)


def test_progress_of_a_long_gram(monkeypatch, capsys):
    monkeypatch.setattr("locole.parallel.progress._PATIENCE_S", -1.0)
    coherence(Rademacher(3000, 8), method="gram")
    assert "Gram matrix: 3/3 (100%)" in capsys.readouterr().err
