"""Kernel regressions of labels against brute force, and how they change with their rows."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import scipy.sparse as sp
from same import assert_same_bits

from locole.dense_rows import PairedRows
from locole.exceptions import LocoleError, ModelFileError
from locole.io import read_model, write_model
from locole.label_past import Relabelling
from locole.samples import Rows, Samples
from locole.scoring import Ensemble, LocalKernelScorer, PrototypeScorer, local_kernel

N = 12
RNG = np.random.default_rng(0)
CODES = np.arange(400) % N
# Two groups of rows for each label, so that no linear score tells labels apart.
CENTRES = RNG.normal(size=(2, N, 32))
X = CENTRES[np.arange(400) // N % 2, CODES] + 1.5 * RNG.normal(size=(400, 32))
SAMPLES = Samples(X[:300], CODES[:300], N)
NEW = X[300:]


def in_bytes(X):
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    scales = abs(X).max(axis=1, keepdims=True) / 127
    return np.rint(X / scales) * scales


def by_hand(scorer, X, codes, weight, new):
    """Scores with the sets of rows that the scorer has, in double precision."""
    U, V = in_bytes(X), new / np.linalg.norm(new, axis=1, keepdims=True)
    out = np.empty((len(new), N))
    for label in range(N):
        rows = scorer.betas_[[label]].indices
        K = np.exp(2 * scorer.gamma_ * (U[rows] @ U[rows].T - 1))
        right = codes[rows] == label
        mean = np.average(right, weights=weight[rows])
        beta = np.linalg.solve(K + np.diag(0.1 / weight[rows]), right - mean)
        out[:, label] = np.exp(2 * scorer.gamma_ * (V @ U[rows].T - 1)) @ beta + mean
    return out


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("n_new", [1, 100])
def test_equations_are_solved(is_weighted, n_new):
    weight = RNG.uniform(0.2, 2, 300) if is_weighted else np.ones(300)
    scorer = LocalKernelScorer().fit(SAMPLES._replace(weight=weight if is_weighted else None))
    found = scorer.all_scores(Rows(X[300 : 300 + n_new]))
    expected = by_hand(scorer, X, CODES, weight / weight.mean(), X[300 : 300 + n_new])
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_it_says_what_no_linear_score_can():
    prototypes = PrototypeScorer(ridge=0.3, views=2).fit(SAMPLES)
    scorer = LocalKernelScorer().fit(SAMPLES, before=[prototypes])
    right = [
        (s.candidates(Rows(NEW), 1)[0].ravel() == CODES[300:]).mean() for s in (prototypes, scorer)
    ]
    assert right[1] > right[0] + 0.05


def test_rows_compete_for_their_best_labels():
    """Each row is in the set of its own label and of the eight best."""
    prototypes = PrototypeScorer(ridge=0.3, views=2).fit(SAMPLES)
    scorer = LocalKernelScorer().fit(SAMPLES, before=[prototypes])
    best = prototypes.candidates(Rows(SAMPLES.X), 8)[0]
    sets = [
        np.flatnonzero((best == label).any(axis=1) | (SAMPLES.codes == label)) for label in range(N)
    ]
    assert_same_bits([scorer.betas_[[i]].indices.astype(int) for i in range(N)], sets)


@pytest.mark.parametrize("gamma", [0.3, "auto"])
def test_gamma(gamma):
    scorer = LocalKernelScorer(gamma=gamma).fit(SAMPLES)
    U = in_bytes(SAMPLES.X)
    distances = ((U[:, None] - U[None]) ** 2).sum(axis=2)
    expected = 1 / distances.mean() if gamma == "auto" else gamma
    assert scorer.gamma_ == pytest.approx(expected, rel=1e-2)


def test_threads_do_not_matter():
    one, two = (LocalKernelScorer(n_jobs=n_jobs).fit(SAMPLES) for n_jobs in (1, 3))
    for scorer in (one, two):
        scorer.partial_fit(Samples(X[300:], CODES[300:], N))
    assert_same_bits(one.betas_.data, two.betas_.data)


def test_later_rows_are_as_good():
    whole = LocalKernelScorer().fit(SAMPLES)
    some = LocalKernelScorer().fit(Samples(X[:150], CODES[:150], N))
    few = (some.candidates(Rows(NEW), 1)[0].ravel() == CODES[300:]).mean()
    some.partial_fit(Samples(X[150:300], CODES[150:300], N))
    found = [(s.candidates(Rows(NEW), 1)[0].ravel() == CODES[300:]).mean() for s in (some, whole)]
    assert found[0] > few + 0.03
    assert abs(found[0] - found[1]) < 0.05


def test_new_labels_get_rivals():
    """Their first rows alone would be all that is known of them."""
    old, new = CODES[:300] < 9, CODES[300:] >= 9
    scorer = LocalKernelScorer().fit(Samples(X[:300][old], CODES[:300][old], 9))
    fresh = CODES[:300] >= 9
    scorer.partial_fit(Samples(X[:300][fresh], CODES[:300][fresh], N))
    assert (np.diff(scorer.betas_.indptr)[9:] > 100).all()
    assert (scorer.intercept_[9:] < 0.5).all()
    best = scorer.candidates(Rows(NEW), 3)[0]
    assert (best == CODES[300:, None]).any(axis=1)[new].mean() > 0.6


def test_few_rows_of_a_label_with_many(monkeypatch):
    monkeypatch.setattr(local_kernel, "_MOST", 64)
    scorer = LocalKernelScorer().fit(SAMPLES)
    assert (np.diff(scorer.betas_.indptr) == 64).all()
    scorer.partial_fit(Samples(X[300:], CODES[300:], N))
    assert (np.diff(scorer.betas_.indptr) == 64).all()
    assert (scorer.candidates(Rows(X), 1)[0].ravel() == CODES).mean() > 0.5


def test_retired_rows_are_gone():
    """Others solve without them, as after a fit to the rows that are left with the same sets."""
    scorer = LocalKernelScorer().fit(SAMPLES)
    scorer.relabel(Relabelling.of(N, merged={4: 2}, retired=[7]))
    assert scorer.n_classes == N - 2
    assert scorer.codes_.size == np.count_nonzero(SAMPLES.codes != 7) == scorer.betas_.shape[1]
    left = SAMPLES.codes != 7
    codes = Relabelling.of(N, merged={4: 2}, retired=[7]).codes[SAMPLES.codes[left]]
    assert_same_bits(scorer.codes_, codes)
    expected = copy.copy(scorer)
    expected._reduce(codes, np.arange(N - 2), N - 2, solve=np.arange(N - 2))
    np.testing.assert_allclose(expected.betas_.data, scorer.betas_.data, atol=1e-4)


def test_forgetting_what_was_not_learnt():
    scorer = LocalKernelScorer().fit(SAMPLES)
    with pytest.raises(LocoleError, match="row 1 of those with a label was not learnt"):
        scorer.forget(Samples(X[299:301], CODES[299:301], N))


def test_beside_sparse_features(tmp_path):
    words = sp.csr_array(sp.random_array((400, 50), density=0.1, rng=1))
    paired = PairedRows(words, X)
    scorer = LocalKernelScorer().fit(SAMPLES._replace(X=paired[:300]))
    assert (scorer.n_features, scorer.n_beside, scorer.grows) == (None, 32, True)
    alone = LocalKernelScorer().fit(SAMPLES)
    assert_same_bits(scorer.all_scores(Rows(paired[300:])), alone.all_scores(Rows(NEW)))
    write_model(tmp_path / "m", scorer)
    assert_same_bits(read_model(tmp_path / "m").betas_.data, alone.betas_.data)


def test_an_ensemble_keeps_it_where_it_helps():
    parts = [PrototypeScorer(ridge=0.3, views=2), LocalKernelScorer()]
    far = CENTRES[0, CODES] + 0.05 * RNG.normal(size=(400, 32))
    for rows, is_kept in ((X, True), (far, False)):
        fitted = Ensemble(parts, nearest=False).fit(Samples(rows, CODES, N))
        assert ("local kernel" in fitted) is is_kept


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("codes_", CODES[:299], "do not fit together"),
        ("rows_", np.zeros((300, 32), np.float32), "do not fit together"),
        ("weight_", np.zeros(300), "is not of numbers"),
        ("row_scales_", np.full(300, np.nan, np.float32), "is not of numbers"),
        ("intercept_", np.full(N, np.inf), "is not of numbers"),
        ("gamma_", float("nan"), "is not of numbers"),
        ("codes_", CODES[:300] + 1, "labels that there are not"),
        ("codes_", CODES[:300] - 1, "labels that there are not"),
    ],
)
def test_files_are_checked(name, value, message):
    scorer = LocalKernelScorer().fit(SAMPLES)
    scorer._check_learnt()
    setattr(scorer, name, value)
    with pytest.raises(ModelFileError, match=message):
        scorer._check_learnt()
