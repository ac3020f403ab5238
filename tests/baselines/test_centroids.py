"""Class centroids: the sums and cosines of the textbook."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from problems import words
from sklearn.metrics.pairwise import cosine_similarity

from locole import load
from locole.baselines import Centroids
from locole.exceptions import LocoleWarning

# Small whole numbers: sums are exact, only lengths are rounded.
entries = st.integers(-3, 3).map(float)


@st.composite
def problems(draw):
    """Rows with labels, every label used, and new rows."""
    n_features, n_classes = draw(st.integers(1, 6)), draw(st.integers(2, 5))
    n_rows = n_classes + draw(st.integers(0, 10))
    X = draw(hnp.arrays(np.float64, (n_rows, n_features), elements=entries))
    more = draw(hnp.arrays(np.int64, n_rows - n_classes, elements=st.integers(0, n_classes - 1)))
    new = draw(hnp.arrays(np.float64, (4, n_features), elements=entries))
    return X, np.concatenate([np.arange(n_classes), more]), new


def brute_force(X, y, new):
    """Score of every label for every new row, one at a time."""
    scores = np.zeros((len(new), y.max() + 1))
    for label in range(y.max() + 1):
        centre = X[y == label].sum(axis=0)
        length = np.sqrt(centre @ centre)
        for i, row in enumerate(new):
            scores[i, label] = row @ centre / length if length else 0.0
    return scores


@given(problems())
def test_scores_are_those_of_brute_force(problem):
    X, y, new = problem
    n_classes = y.max() + 1
    expected = brute_force(X, y, new)
    labels, scores = Centroids().fit(X, y).predict_topk(new, k=n_classes)
    np.testing.assert_allclose(scores, np.take_along_axis(expected, labels, axis=1), atol=1e-5)
    np.testing.assert_allclose(scores, -np.sort(-expected, axis=1), atol=1e-5)
    tied = np.diff(scores, axis=1) == 0
    assert (np.diff(labels, axis=1)[tied] > 0).all()


@given(problems())
def test_the_length_of_a_row_changes_scores_but_no_answer(problem):
    """Twice the row, because twice a float is exact."""
    X, y, new = problem
    model = Centroids().fit(X, y)
    labels, scores = model.predict_topk(new, k=2)
    doubled, twice = model.predict_topk(2 * new, k=2)
    assert (doubled == labels).all()
    assert (twice == 2 * scores).all()


def test_cosines_of_scikit_learn():
    X, y = words()
    centres = np.array([X[np.flatnonzero(y == label)].mean(axis=0) for label in range(40)])
    lengths = np.sqrt(X.multiply(X).sum(axis=1))
    expected = cosine_similarity(X, centres) * lengths[:, None]
    labels, scores = Centroids().fit(X, y).predict_topk(X, k=40)
    np.testing.assert_allclose(scores, np.take_along_axis(expected, labels, 1), atol=1e-5)
    assert Centroids().fit(X, y).score(X, y) == (expected.argmax(axis=1) == y).mean()


def test_columns_have_unit_length_and_follow_the_labels():
    X, y = words()
    model = Centroids().fit(X, y)
    assert model.centroids_.shape == (X.shape[1], 40)
    np.testing.assert_allclose(sp.linalg.norm(model.centroids_, axis=0), 1, rtol=1e-5)
    moved = Centroids().fit(X, 39 - y)
    assert (moved.centroids_.toarray() == model.centroids_.toarray()[:, ::-1]).all()


def test_a_label_of_empty_rows_ties_with_nothing_in_common():
    """The first label has no features; the row has none of the second's."""
    X = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]])
    labels, scores = Centroids().fit(X, ["a", "b", "c"]).predict_topk([[0, 2.0, 0], [0, 0, 1]], k=3)
    assert labels.tolist() == [["c", "a", "b"], ["a", "b", "c"]]
    assert scores.tolist() == [[2, 0, 0], [0, 0, 0]]


def test_memory_is_that_of_the_data():
    """A row for each of many labels: the centroids are the rows."""
    n = 20_000
    X = sp.csr_array((np.ones(n), (np.arange(n), np.arange(n) % 5000)), shape=(n, 5000))
    with pytest.warns(LocoleWarning, match="every label has only one row"):
        model = Centroids().fit(X, np.arange(n))
    assert model.centroids_.nnz == n
    assert model.predict(X[:3]).tolist() == [0, 1, 2]


def test_one_row_of_each_label_is_the_nearest_neighbour(tmp_path):
    X, _ = words(n_samples=40)
    model = Centroids(n_jobs=2).fit(X, np.arange(40))
    assert (model.predict(X) == np.arange(40)).mean() > 0.9
    model.save(tmp_path / "m")
    assert (load(tmp_path / "m").predict(X) == model.predict(X)).all()


@pytest.mark.parametrize("scale", [1e-14, 1e14])
def test_tiny_and_huge_rows(scale):
    X, y = words()
    plain = Centroids().fit(X, y)
    scaled = Centroids().fit(X * scale, y)
    assert (scaled.predict(X) == plain.predict(X)).mean() > 0.99
