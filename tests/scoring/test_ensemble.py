"""Several scorers together against brute force over all labels."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from instances import EMBEDDINGS, name_of

from locole.datasets import make_topics
from locole.decoders import choose_decoder, decode
from locole.embeddings import Embedding, Gaussian, Kerdock
from locole.exceptions import LocoleError, ModelFileError
from locole.io import read_model, saved_as, write_model
from locole.regressors import ElasticNetRegressor, SoftmaxRegressor, TargetRegressor
from locole.samples import Rows, Samples
from locole.scoring import (
    Ensemble,
    FactorScorer,
    NearestScorer,
    ProfileScorer,
    VectorScorer,
    weighted_sum,
)
from locole.scoring.base import SKETCHED_ROWS
from locole.scoring.nearest import KNOTS, RERANKED
from locole.scoring.trial import CANDIDATES, repeated

SMALL = [e for e in EMBEDDINGS if e.n_classes <= CANDIDATES]
each_small = pytest.mark.parametrize("embedding", SMALL, ids=name_of)


class Points(TargetRegressor):
    """Gives the points it was made with, whatever the rows."""

    def __init__(self, Z):
        self.Z = Z

    def predict(self, X):
        assert X.shape[0] == len(self.Z)
        return self.Z.copy()


def vectors(embedding: Embedding, Z) -> VectorScorer:
    scorer = VectorScorer(others_speak=True)
    scorer.embedding_, scorer.decoder_ = embedding, choose_decoder(embedding)
    scorer.regressors_, scorer.weights_ = {"points": Points(Z)}, [1.0]
    scorer.feature_weights_, scorer.prior_point_ = None, np.zeros(embedding.real_dim)
    return scorer


def profiles(X, codes, n_classes) -> ProfileScorer:
    return ProfileScorer(tune=False).fit(Samples(X, codes, n_classes))


def ensemble(scorers, weights, reranker=None) -> Ensemble:
    made = Ensemble()
    made.scorers_, made.weights_, made.reranker_, made.choice_ = scorers, weights, reranker, {}
    return made


def made(embedding: Embedding, seed: int, n_rows: int = 12):
    """Profiles of some rows, the rows, and points for them."""
    rng = np.random.default_rng(seed)
    n = embedding.n_classes
    X = rng.random((n_rows, 9)) * (rng.random((n_rows, 9)) < 0.5)
    X = sp.csr_array(X.astype(np.float32))
    profile = profiles(X, rng.integers(0, n, n_rows), n)
    Z = rng.standard_normal((n_rows, embedding.real_dim)).astype(np.float32)
    return profile, X, Z


def every_score(embedding, profile, weight, X, Z):
    G = embedding.real_rows(np.arange(embedding.n_classes), np.float64)
    return Z.astype(np.float64) @ G.T + weight * profile.all_scores(Rows(X))


# --- answers ---


@each_small
@settings(max_examples=5)
@given(seed=st.integers(0, 2**32 - 1), weight=st.sampled_from([0.0, 0.3, 50.0]))
def test_all_labels_are_candidates(embedding, seed, weight):
    """Up to 32 labels the answer is that of brute force."""
    profile, X, Z = made(embedding, seed)
    both = ensemble([vectors(embedding, Z), profile], [1.0, weight])
    expected = every_score(embedding, profile, weight, X, Z)
    close = 1e-5 * max(1.0, np.abs(expected).max())
    for k in {1, embedding.n_classes}:
        codes, scores = both.candidates(Rows(X), k)
        assert codes.shape == scores.shape == (12, k)
        assert codes.dtype == np.int64
        assert all(len(set(row)) == k for row in codes)
        np.testing.assert_allclose(scores, -np.sort(-expected, axis=1)[:, :k], atol=close)
        np.testing.assert_allclose(np.take_along_axis(expected, codes, 1), scores, atol=close)
    np.testing.assert_allclose(both.all_scores(Rows(X)), expected, atol=close)


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32 - 1), k=st.sampled_from([1, 5, 20, 40, 150]))
def test_many_labels(seed, k):
    """Scores are true, and no candidate of either scorer has a better one that was left out."""
    embedding = Kerdock(301, dim=64)
    profile, X, Z = made(embedding, seed)
    expected = every_score(embedding, profile, 0.5, X, Z)
    codes, scores = ensemble([vectors(embedding, Z), profile], [1.0, 0.5]).candidates(Rows(X), k)
    np.testing.assert_allclose(np.take_along_axis(expected, codes, 1), scores, atol=1e-4)
    assert (np.diff(scores, axis=1) <= 0).all()
    assert all(len(set(row)) == k for row in codes)
    wanted = min(max(2 * k, CANDIDATES), 301)
    by_point = decode(embedding, Z, k=wanted)[0]
    by_profile = profile.candidates(Rows(X), wanted)[0]
    for i in range(len(Z)):
        rest = np.setdiff1d(np.union1d(by_point[i], by_profile[i]), codes[i])
        assert expected[i, rest].max(initial=-np.inf) <= scores[i, -1] + 1e-4


def test_either_scorer_alone_can_bring_the_winner():
    """A label with the best profile and a poor vector wins if profiles count much, and vice versa."""
    embedding = Kerdock(301, dim=64)
    X = sp.csr_array(np.eye(4, dtype=np.float32))
    profile = profiles(X, np.array([10, 20, 30, 40]), 301)
    Z = embedding.real_rows(np.array([210, 220, 230, 240])).astype(np.float32)
    by_profile, by_point = (
        ensemble([vectors(embedding, Z), profile], [1.0, weight]).candidates(Rows(X), 1)[0][:, 0]
        for weight in (100.0, 1e-6)
    )
    np.testing.assert_array_equal(by_profile, [10, 20, 30, 40])
    np.testing.assert_array_equal(by_point, [210, 220, 230, 240])


def test_ties_go_to_the_smaller_label():
    embedding = Kerdock(301, dim=64)
    nothing = sp.csr_array((2, 4), dtype=np.float32)
    profile = profiles(sp.csr_array(np.eye(4, dtype=np.float32)), np.arange(4) + 7, 301)
    Z = np.zeros((2, 64), dtype=np.float32)
    both = ensemble([vectors(embedding, Z), profile], [1.0, 1.0])
    codes, scores = both.candidates(Rows(nothing), 5)
    np.testing.assert_array_equal(codes, [np.arange(5)] * 2)
    assert (scores == 0).all()
    # two labels at the same distance, one of them listed by both scorers
    Z = embedding.real_rows([3, 9]).sum(axis=0, keepdims=True).astype(np.float32)
    both = ensemble([vectors(embedding, Z), profile], [1.0, 1.0])
    codes, scores = both.candidates(Rows(nothing[:1]), 2)
    np.testing.assert_array_equal(codes, [[3, 9]])
    assert scores[0, 0] == scores[0, 1]


def test_weight_zero_is_plain_decoding():
    embedding = Gaussian(100, dim=20)
    profile, X, Z = made(embedding, 0)
    both = ensemble([vectors(embedding, Z), profile], [1.0, 0.0])
    codes, scores = both.candidates(Rows(X), 6)
    expected_codes, expected_scores = decode(embedding, Z, k=6)
    np.testing.assert_array_equal(codes, expected_codes)
    np.testing.assert_allclose(scores, expected_scores, rtol=1e-6)


def test_points_of_zero_leave_the_profiles_to_decide():
    embedding = Kerdock(301, dim=64)
    profile, X, Z = made(embedding, 0)
    X, Z = X[np.diff(X.indptr) > 0], np.zeros_like(Z)  # rows without features have the prior
    Z = Z[: X.shape[0]]
    both = ensemble([vectors(embedding, Z), profile], [1.0, 0.5])
    codes, scores = both.candidates(Rows(X), 6)
    expected_codes, expected_scores = profile.candidates(Rows(X), 6)
    np.testing.assert_array_equal(codes, expected_codes)
    np.testing.assert_allclose(scores, 0.5 * expected_scores, rtol=1e-6)


# --- three scorers, and reranking ---


def three(seed: int, n_classes: int, reranker=None):
    """Points, profiles and nearest rows; the rows; and the sum of their scores."""
    embedding = Kerdock(n_classes, dim=64)
    profile, X, Z = made(embedding, seed)
    rng = np.random.default_rng(seed + 1)
    nearest = NearestScorer().fit(Samples(X, rng.integers(0, n_classes, X.shape[0]), n_classes))
    scorers = [vectors(embedding, Z), profile, nearest]
    total = every_score(embedding, profile, 0.5, X, Z) + 2.0 * nearest.all_scores(Rows(X))
    return ensemble(scorers, [1.0, 0.5, 2.0], reranker), X, total


@settings(max_examples=20)
@given(
    seed=st.integers(0, 2**31), k=st.sampled_from([1, 5, 40]), n_classes=st.sampled_from([20, 301])
)
def test_three_scorers(seed, k, n_classes):
    k = min(k, n_classes)
    all_three, X, expected = three(seed, n_classes)
    codes, scores = all_three.candidates(Rows(X), k)
    np.testing.assert_allclose(np.take_along_axis(expected, codes, 1), scores, atol=1e-4)
    assert (np.diff(scores, axis=1) <= 0).all()
    assert all(len(set(row)) == k for row in codes)
    wanted = min(max(2 * k, CANDIDATES), n_classes)
    proposed = [scorer.candidates(Rows(X), wanted)[0] for scorer in all_three.scorers_]
    for i, row in enumerate(np.hstack(proposed)):
        rest = np.setdiff1d(row, codes[i])
        assert expected[i, rest].max(initial=-np.inf) <= scores[i, -1] + 1e-4
    np.testing.assert_allclose(all_three.all_scores(Rows(X)), expected, atol=1e-4)


@settings(max_examples=20)
@given(seed=st.integers(0, 2**31), k=st.sampled_from([1, 5, 8, 12, 20]))
def test_the_best_eight_are_reranked_by_the_formula(seed, k):
    """New scores label by label, from the sums and the cosine similarity."""
    all_three, X, total = three(seed, 20)
    rng = np.random.default_rng(seed + 2)
    # Unlike the rows to be scored, so that no similarity is that of the very row.
    others = sp.csr_array(rng.random((30, 9)) * (rng.random((30, 9)) < 0.5))
    reranker = NearestScorer().fit(Samples(others, rng.integers(0, 20, 30), 20))
    reranker.scale_ = 0.5
    reranker.curve_ = np.append(0.0, rng.standard_normal(KNOTS.size - 1))
    near = reranker.similarity(X, np.broadcast_to(np.arange(20), total.shape))
    expected = 0.5 * total + reranker.curve_.min()
    for i, row in enumerate(total):
        for label in np.lexsort((np.arange(20), -row))[:RERANKED]:
            said = np.interp(near[i, label], KNOTS, reranker.curve_)
            expected[i, label] = 0.5 * row[label] + said
    all_three.reranker_ = reranker
    codes, scores = all_three.candidates(Rows(X), k)
    assert codes.shape == scores.shape == (12, k)
    np.testing.assert_allclose(scores, -np.sort(-expected, axis=1)[:, :k], atol=1e-4)
    np.testing.assert_allclose(np.take_along_axis(expected, codes, 1), scores, atol=1e-4)
    np.testing.assert_allclose(all_three.all_scores(Rows(X)), expected, atol=1e-4)
    np.testing.assert_allclose(all_three.scores_at(Rows(X), codes), scores, atol=1e-4)


@given(arrays(np.int64, (3, 7), elements=st.integers(0, 5)))
def test_repeated(codes):
    expected = [[code in row[:j] for j, code in enumerate(row)] for row in codes.tolist()]
    np.testing.assert_array_equal(repeated(codes), expected)


# --- its parts ---


def test_scorers_are_found_by_name():
    both = three(0, 20)[0]
    assert both["profiles"] is both.scorers_[1]
    with pytest.raises(KeyError, match="nothing"):
        both["nothing"]


def test_no_scorers():
    with pytest.raises(LocoleError, match="at least one scorer"):
        Ensemble([]).fit(Samples(np.eye(3), np.arange(3), 3))


@pytest.fixture
def fitted():
    rng = np.random.default_rng(0)
    X = sp.csr_array(rng.random((60, 12)) * (rng.random((60, 12)) < 0.5))
    samples = Samples(X, np.arange(60) % 5, 5)
    elastic_net = VectorScorer({"elastic_net": ElasticNetRegressor(l2=1.0)}, Kerdock(5, dim=16))
    return Ensemble([elastic_net, ProfileScorer()], nearest=True).fit(samples)


@pytest.mark.parametrize(
    "change",
    [
        {"weights_": [1.0]},
        {"weights_": [1.0, np.nan]},
        {"weights_": [1, 2]},
        {"weights_": "ab"},
        {"scorers_": []},
        {"scorers_": [1, 2]},
        {"scorers_": [], "weights_": []},
    ],
    ids=str,
)
def test_scorers_and_weights_that_do_not_fit_are_refused(fitted, change, tmp_path):
    vars(fitted).update(change)
    write_model(tmp_path / "m", fitted)
    with pytest.raises(ModelFileError, match=r"do not fit together|weights_ is a str"):
        read_model(tmp_path / "m")


@pytest.mark.parametrize(("n_features", "n_classes"), [(12, 4), (11, 5)])
def test_scorers_of_different_shapes_are_refused(fitted, n_features, n_classes, tmp_path):
    codes = np.arange(20) % n_classes
    fitted.scorers_[1] = profiles(sp.csr_array(np.ones((20, n_features))), codes, n_classes)
    write_model(tmp_path / "m", fitted)
    with pytest.raises(ModelFileError, match="do not fit together"):
        read_model(tmp_path / "m")


# --- sketches ---


@saved_as("test.scorer.sketched")
class Sketched(ProfileScorer):
    """Profiles that ask to be sketched first, and count how often they are fitted."""

    name = "sketched"
    fits: ClassVar[list[str]] = []
    is_good = True

    def sketch(self, samples):
        made = Sketched(tune=False)
        made.is_good, made.is_sketch = self.is_good, True
        return made

    def left_out(self, samples):
        return None

    def fit(self, samples, *, before=()):
        self.fits.append("sketch" if getattr(self, "is_sketch", False) else "whole")
        return super().fit(samples, before=before)

    @property
    def sources(self):
        return [self.name]

    def source_scores(self, rows, codes):
        scores = self.scores_at(rows, codes)[..., None]
        return scores if self.is_good else np.zeros_like(scores)


@saved_as("test.scorer.silent")
class Silent(Sketched):
    """Says nothing, and is fitted without being asked."""

    name = "silent"
    is_good = False

    def sketch(self, samples):
        return None


@pytest.mark.parametrize("is_good", [True, False])
def test_a_sketch_decides_whether_a_scorer_is_fitted(is_good):
    rng = np.random.default_rng(0)
    codes = np.arange(600) % 6
    X = sp.csr_array(
        (rng.random((600, 40)) < 0.1) + np.eye(40)[codes] * (rng.random((600, 1)) < 0.5)
    )
    sketched = Sketched(tune=False)
    sketched.is_good = is_good
    Sketched.fits.clear()
    made = Ensemble([Silent(tune=False), sketched], nearest=False).fit(Samples(X, codes, 6))
    assert Sketched.fits == ["whole", "sketch", "whole"][: 2 + is_good]
    assert [scorer.name for scorer in made.scorers_] == ["silent", "sketched"][: 1 + is_good]
    assert (made.choice_["sources"]["sketched"]["weight"] > 0) == is_good


@saved_as("test.scorer.knows_all")
class KnowsAll(Sketched):
    """Answers like names: all is said, and a sketch can add nothing."""

    name = "knows_all"
    answers_unseen = True

    def sketch(self, samples):
        return None


def test_names_do_not_decide_about_sketches():
    codes = np.arange(600) % 6
    X = sp.csr_array(np.eye(6, dtype=np.float32)[codes])
    Sketched.fits.clear()
    Ensemble([Silent(tune=False), KnowsAll(tune=False), Sketched(tune=False)], nearest=False).fit(
        Samples(X, codes, 6)
    )
    assert Sketched.fits.count("sketch") == 1
    assert Sketched.fits.count("whole") == 3  # of all


def large_samples(n_rows=SKETCHED_ROWS, n_classes=50):
    rng = np.random.default_rng(0)
    codes = rng.integers(n_classes, size=n_rows)
    X = sp.random_array((n_rows, 300), density=0.02, rng=rng, format="csr", dtype=np.float32)
    return Samples(
        X + sp.csr_array(np.eye(n_classes, 300, dtype=np.float32)[codes]), codes, n_classes
    )


def test_factors_and_the_elastic_net_are_sketched_if_there_are_many_rows():
    samples = large_samples()
    parts = {"elastic_net": ElasticNetRegressor()}
    vectors = VectorScorer(parts, Kerdock(50, dim=64), others_speak=True)
    few = samples.take(np.arange(SKETCHED_ROWS - 1))
    for scorer in (vectors, FactorScorer()):
        assert scorer.sketch(few) is None
        sketch = scorer.sketch(samples)
        assert sketch is not None
        codes, _ = sketch.fit(samples).candidates(Rows(samples.X[:100]), 1)
        assert (codes[:, 0] == samples.codes[:100]).mean() > 0.5
    # A model of its own, or one that somebody asked for, is not questioned.
    assert VectorScorer(parts, Kerdock(50, dim=64)).sketch(samples) is None
    other = {"softmax": SoftmaxRegressor()}
    assert VectorScorer(other, Kerdock(50, dim=64), others_speak=True).sketch(samples) is None


def test_vectors_that_are_left_out_know_the_prior():
    samples = large_samples(400, 5)
    whole = VectorScorer({"elastic_net": ElasticNetRegressor()}, Kerdock(5, dim=16)).fit(samples)
    left = VectorScorer(whole.regressors, Kerdock(5, dim=16), others_speak=True).left_out(samples)
    np.testing.assert_allclose(left.prior_point_, whole.prior_point_)
    assert left.regressors_ == {}
    empty = Rows(sp.csr_array((1, 300), dtype=np.float32))
    assert left.candidates(empty, 1)[0] == np.bincount(samples.codes).argmax()
    assert left.is_silent(Rows(samples.X[:3]))


def test_long_rankings_are_those_of_all_scores(monkeypatch):
    """Rankings longer than lists of candidates, a few rows at a time."""
    data = make_topics(300, 100, 12, test_size=10)
    samples = Samples(data.X_train, data.y_train, n_classes=12)
    model = Ensemble([ProfileScorer(), FactorScorer(n_blocks=1)]).fit(samples)
    rows = Rows(samples.X[:7])
    expected = np.argsort(-model.all_scores(rows), axis=1, kind="stable")[:, :5]
    monkeypatch.setattr(weighted_sum, "_LONGEST_LIST", 4)
    monkeypatch.setattr(weighted_sum, "_TABLE", 3 * samples.n_classes)
    codes, scores = model.candidates(rows, 5)
    np.testing.assert_array_equal(codes, expected)
    assert (np.diff(scores, axis=1) <= 0).all()
