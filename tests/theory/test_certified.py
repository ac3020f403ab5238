"""Answers beyond the error of the embedding."""

from __future__ import annotations

import numpy as np
import pytest
from problems import words
from sklearn.linear_model import Ridge

from locole import LocoleClassifier
from locole.baselines import Centroids
from locole.exceptions import LocoleError
from locole.theory import certify, lossless_margin

X, y = words(40, n_samples=600, n_features=150)


@pytest.mark.parametrize("regressor", ["elastic_net", Ridge()])
def test_leads_and_bounds(regressor):
    model = LocoleClassifier("kerdock", dim=16, regressor=regressor).fit(X[:500], y[:500])
    found = certify(model, X[500:])
    labels, scores = model.predict_topk(X[500:], k=2)
    np.testing.assert_array_equal(found.labels, labels[:, 0])
    assert found.margin == lossless_margin(1 / 4)
    np.testing.assert_array_equal(found.certified, scores[:, 0] - scores[:, 1] > found.margin)
    assert (found.low <= found.high).all()
    inside = (scores[:, 0] > 0) & (scores[:, 0] < 1)
    assert (found.low[inside] <= scores[inside, 0]).all()
    assert (found.high[inside] >= scores[inside, 0]).all()


def test_an_ideal_point_is_decoded_to_a_most_probable_label_where_it_is_certified():
    """Points p* = Gη of random η: wherever the lead exceeds the margin, the answer has the largest η."""
    rng = np.random.default_rng(0)
    embedding = LocoleClassifier("kerdock", dim=16).fit(X, y).embedding_
    G = embedding.real_block(0, 40).astype(np.float64)
    eta = rng.dirichlet(np.full(40, 0.05), 4000)
    scores = eta @ G @ G.T
    order = np.sort(scores, axis=1)
    certified = order[:, -1] - order[:, -2] > lossless_margin(1 / 4)
    assert certified.mean() > 0.1
    np.testing.assert_array_equal(scores.argmax(axis=1)[certified], eta.argmax(axis=1)[certified])


@pytest.mark.parametrize("model", [LocoleClassifier(regressor="softmax"), Centroids()])
def test_others_have_no_such_rule(model):
    with pytest.raises(LocoleError, match="certify needs a fitted classifier with one regressor"):
        certify(model.fit(X, y), X)
    with pytest.raises(LocoleError, match="certify needs"):
        certify(LocoleClassifier(), X)
