"""Metrics of several labels against scikit-learn, brute force and the field's definitions."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sklearn_metrics

from locole.exceptions import LocoleError
from locole.metrics import (
    Propensities,
    accuracy,
    coverage_at_k,
    f1_at_k,
    f1_score,
    ndcg_at_k,
    precision_at_k,
    ps_ndcg_at_k,
    ps_precision_at_k,
    ranking_report,
    recall_at_k,
)

N_LABELS = 9


@st.composite
def answers(draw):
    """Sets of labels and ranked answers: (sets, ranked, k)."""
    n_rows, k = draw(st.integers(1, 12)), draw(st.integers(1, N_LABELS))
    labels = st.sets(st.integers(0, N_LABELS - 1), max_size=6)
    sets = draw(st.lists(labels, min_size=n_rows, max_size=n_rows))
    orders = st.permutations(range(N_LABELS))
    ranked = draw(st.lists(orders, min_size=n_rows, max_size=n_rows))
    return sets, np.array(ranked), k


def indicator(sets):
    return np.array([[int(label in own) for label in range(N_LABELS)] for own in sets])


def forms(sets):
    dense = indicator(sets)
    names = [sorted(own) for own in sets]
    return (dense, sp.csr_array(dense), names, [set(own) for own in names])


def discounted(gains):
    return sum(gain / math.log2(place + 2) for place, gain in enumerate(gains))


@given(answers())
def test_rankings_against_brute_force(data):
    sets, ranked, k = data
    hits = [[int(label in own) for label in row[:k]] for own, row in zip(sets, ranked, strict=True)]
    pairs = [(own, hit) for own, hit in zip(sets, hits, strict=True) if own]
    expected = {
        precision_at_k: np.mean([sum(hit) / k for hit in hits]),
        f1_at_k: np.mean(
            [2 * sum(hit) / (k + len(own)) for own, hit in zip(sets, hits, strict=True)]
        ),
    }
    if pairs:
        expected[recall_at_k] = np.mean([sum(hit) / len(own) for own, hit in pairs])
        expected[ndcg_at_k] = np.mean(
            [discounted(hit) / discounted([1] * min(k, len(own))) for own, hit in pairs]
        )
        found = {
            label
            for own, row in zip(sets, ranked, strict=True)
            for label in row[:k]
            if label in own
        }
        expected[coverage_at_k] = len(found) / len(set().union(*sets))
    for Y in forms(sets):
        if sp.issparse(Y) or isinstance(Y, np.ndarray) or any(sets):
            for metric, value in expected.items():
                assert metric(Y, ranked, k=k) == pytest.approx(value), metric


@given(answers())
def test_ndcg_is_scikit_learns(data):
    sets, ranked, k = data
    sets = [own or {0} for own in sets]
    scores = np.empty(ranked.shape)
    np.put_along_axis(scores, ranked, np.arange(N_LABELS, 0, -1.0)[None], axis=1)
    expected = sklearn_metrics.ndcg_score(indicator(sets), scores, k=k)
    assert ndcg_at_k(sets, ranked, k=k) == pytest.approx(expected)


@given(answers(), answers())
def test_f1_is_scikit_learns(data, other):
    n_rows = min(len(data[0]), len(other[0]))
    true, pred = indicator(data[0][:n_rows]), indicator(other[0][:n_rows])
    occur = np.flatnonzero((true + pred).any(axis=0))
    for average in ("micro", "macro", "samples"):
        labels = occur if average == "macro" and occur.size else None
        if average == "macro" and not occur.size:
            continue
        expected = sklearn_metrics.f1_score(
            true, pred, average=average, labels=labels, zero_division=0
        )
        for a, b in (
            (true, pred),
            (sp.csr_array(true), sp.csr_array(pred)),
            (true, sp.coo_array(pred)),
        ):
            assert f1_score(a, b, average=average) == pytest.approx(expected)


@given(answers(), answers())
def test_propensity_scores_against_brute_force(data, training):
    sets, ranked, k = data
    if not any(sets):
        return
    p = Propensities(indicator(training[0]))
    counts, n = indicator(training[0]).sum(axis=0), len(training[0])
    factor = max(math.log(n) - 1, 0) * 2.5**0.55
    propensity = [1 / (1 + factor * math.exp(-0.55 * math.log(count + 1.5))) for count in counts]
    np.testing.assert_allclose(p.values, propensity)
    gains = [
        [(label in own) / propensity[label] for label in row[:k]]
        for own, row in zip(sets, ranked, strict=True)
    ]
    best = [sorted((1 / propensity[label] for label in own), reverse=True)[:k] for own in sets]
    expected = sum(map(sum, gains)) / sum(map(sum, best))
    assert ps_precision_at_k(indicator(sets), ranked, p, k=k) == pytest.approx(expected)
    ideal = [discounted([1] * min(k, len(own))) for own in sets]
    ratio = sum(discounted(g) / i for g, i in zip(gains, ideal, strict=True) if i) / sum(
        discounted(b) / i for b, i in zip(best, ideal, strict=True) if i
    )
    assert ps_ndcg_at_k(indicator(sets), ranked, p, k=k) == pytest.approx(ratio)


def test_one_label_each_is_accuracy():
    rng = np.random.default_rng(0)
    y, guess = rng.integers(0, 5, (2, 100))
    names = np.array(list("abcde"))
    assert precision_at_k(names[y], names[guess][:, None], k=1) == accuracy(y, guess)
    assert f1_score(names[y], names[guess]) == accuracy(y, guess)


def test_a_report_names_every_metric():
    ranked = np.array([[0, 1, 2], [2, 1, 0]])
    Y = [[0], [1, 2]]
    report = ranking_report(Y, ranked, k=(1, 3), propensities=Propensities(Y))
    assert report["P@3"] == precision_at_k(Y, ranked, k=3)
    assert report["PSnDCG@1"] == ps_ndcg_at_k(Y, ranked, Propensities(Y), k=1)
    assert len(report) == 14


def test_memory_is_that_of_the_labels():
    n_rows, n_labels = 20_000, 1_000_000
    rng = np.random.default_rng(0)
    Y = sp.csr_array((np.ones(40_000), rng.integers(0, n_labels, 40_000), np.arange(0, 40_001, 2)),
                     shape=(n_rows, n_labels))  # fmt: skip
    ranked = rng.integers(0, n_labels, (n_rows, 5))
    tracemalloc.start()
    assert 0 <= f1_score(Y, Y) <= 1
    assert precision_at_k(Y, ranked) < 0.01
    assert tracemalloc.get_traced_memory()[1] < 200e6
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("Y", "ranked", "k", "part"),
    [
        ([["a"]], [["a"], ["b"]], 1, r"answers must be of shape \(1, k\)"),
        ([["a"]], [["a"]], 2, "k must be between 1 and the 1 answers"),
        ([["a"]], [[1]], 1, "use one type"),
        ([["a"]], [["a", "a"]], 2, "an answer twice"),
        ([], np.empty((0, 1)), 1, "Y_true is empty"),
    ],
)
def test_bad_input(Y, ranked, k, part):
    with pytest.raises(LocoleError, match=part):
        precision_at_k(Y, ranked, k=k)


def test_bad_sets():
    with pytest.raises(LocoleError, match="Y_true has 1 rows, Y_pred has 2"):
        f1_score([["a"]], [["a"], ["b"]])
    with pytest.raises(LocoleError, match="average must be"):
        f1_score([["a"]], [["a"]], average="weighted")
    with pytest.raises(LocoleError, match="no row has a label"):
        recall_at_k(np.zeros((1, 2)), [[1]], k=1)
