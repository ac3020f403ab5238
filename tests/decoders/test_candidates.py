"""The inexact decoder: what it still promises."""

from __future__ import annotations

import numpy as np
import pytest
from problems import prototypes

from locole import LocoleClassifier
from locole.decoders import CandidateDecoder, choose_decoder, decode, recall
from locole.embeddings import DelsarteGoethals, Gold, Kerdock, Nelson, OneHot, Rademacher
from locole.exceptions import LocoleError

CODES = [
    Kerdock(2048, dim=64),
    Kerdock(1500, dim=64, assignment="random"),
    Gold(1024, dim=32),
    DelsarteGoethals(1024, dim=16),
    Nelson(841, dim=29),
    Nelson(800, dim=29, assignment="random"),
]
each = pytest.mark.parametrize("embedding", CODES, ids=repr)


def noise(embedding, n_rows: int = 20) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((n_rows, embedding.real_dim))


@each
def test_a_shortlist_of_all_bases_is_exact(embedding):
    decoder = CandidateDecoder(shortlist=10**6)
    codes, scores = decode(embedding, noise(embedding), k=5, decoder=decoder)
    expected_codes, expected_scores = decode(embedding, noise(embedding), k=5)
    np.testing.assert_array_equal(codes, expected_codes)
    np.testing.assert_allclose(scores, expected_scores, rtol=1e-9)
    assert recall(embedding, noise(embedding), decoder=decoder, k=5) == 1


@pytest.mark.parametrize("embedding", [CODES[0], CODES[1], CODES[4], CODES[5]], ids=repr)
def test_clean_vectors_are_found(embedding):
    every = np.arange(embedding.n_classes)
    assert recall(embedding, embedding.real_rows(every), decoder="candidates") == 1


@each
@pytest.mark.parametrize("shortlist", [1, 3])
def test_scores_are_those_of_the_labels_found(embedding, shortlist):
    Z = noise(embedding)
    codes, scores = decode(embedding, Z, k=4, decoder=CandidateDecoder(shortlist=shortlist))
    exact = Z @ embedding.real_rows(np.arange(embedding.n_classes), np.float64).T
    np.testing.assert_allclose(scores, np.take_along_axis(exact, codes, axis=1), atol=1e-9)
    assert (np.diff(scores, axis=1) <= 0).all()


@pytest.mark.parametrize(
    ("embedding", "k"),
    [
        (Kerdock(2048, dim=64), 100),  # more than one basis holds
        (Kerdock(2048, dim=64), 2048),
        (Kerdock(40, dim=64, assignment=np.arange(40) * 51), 2),  # one or two labels a basis
        (Nelson(841, dim=29), 60),
    ],
    ids=repr,
)
def test_every_place_is_filled_with_a_label(embedding, k):
    codes, scores = decode(embedding, noise(embedding), k=k, decoder=CandidateDecoder(shortlist=1))
    assert codes.min() >= 0
    assert np.isfinite(scores).all()
    assert all(np.unique(row).size == k for row in codes)


@pytest.mark.parametrize(
    "embedding", [OneHot(9, dim=9), Rademacher(9, dim=8), Nelson(900, dim=11, r=3)], ids=repr
)
def test_codes_without_chirps_are_refused_at_once(embedding):
    with pytest.raises(LocoleError, match="take 'auto'"):
        choose_decoder(embedding, "candidates")


@pytest.mark.parametrize("parameters", [{"shortlist": 0}, {"shifts": 0}, {"shortlist": 1.5}])
def test_bad_parameters(parameters):
    with pytest.raises(LocoleError, match="whole numbers of at least 1"):
        CandidateDecoder(**parameters)


def test_a_classifier_measures_the_recall():
    X, y = prototypes()
    exact = LocoleClassifier("kerdock", dim=64).fit(X, y)
    embedding = Kerdock(30, dim=64, assignment=np.arange(30) * 68)
    inexact = LocoleClassifier(embedding, decoder=CandidateDecoder(shortlist=2)).fit(X, y)
    agrees = inexact.predict(X) == LocoleClassifier(embedding).fit(X, y).predict(X)
    assert exact.scorer_.decoder_recall_ == 1
    assert inexact.scorer_.decoder_recall_ == agrees.mean() > 0.5
