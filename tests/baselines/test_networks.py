"""Networks with an output for each label are networks on one-hot vectors."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

from locole.baselines import MLPCrossEntropy, MLPSquaredError
from locole.embeddings import OneHot
from locole.exceptions import LocoleError
from locole.regressors import MLPRegressor
from locole.targets import Targets

X, y = load_digits(return_X_y=True)
X = (X / 16).astype(np.float32)
SMALL = {"hidden": (16,), "batch_size": 64, "epochs": 3, "learning_rate": 0.01}


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (MLPCrossEntropy, {"loss": "softmax", "normalise": False}),
        (MLPSquaredError, {"loss": "squared", "normalise": True}),
    ],
)
def test_it_is_the_network_on_one_hot_vectors(kind, options):
    found = kind(**SMALL).fit(X[:600], y[:600])
    same = MLPRegressor("lshtc1", **SMALL, steps_at=(3,), **options)
    same.fit(X[:600], Targets(y[:600], OneHot(10, dim=10)))
    Z = same.predict(X[600:900])
    np.testing.assert_allclose(found.network_.predict(X[600:900]), Z, atol=2e-4)
    assert (found.predict(X[600:900]) == Z.argmax(axis=1)).mean() > 0.99


def test_cross_entropy_falls_and_is_that_of_the_logits():
    model = MLPCrossEntropy(**{**SMALL, "epochs": 8}).fit(X, y)
    losses = [record["loss"] for record in model.network_.history_]
    assert losses[0] > losses[-1] > 0
    logits = model.network_.predict(X).astype(np.float64)
    log_p = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    # The last epoch's mean is over weights that still moved.
    assert abs(-log_p[np.arange(y.size), y].mean() - losses[-1]) < 0.1 * losses[-1]


def settings_of(model):
    return MLPRegressor(**model._settings())._settings()


def test_the_papers_settings():
    ours, theirs = settings_of(MLPCrossEntropy("lshtc1")), settings_of(MLPSquaredError("lshtc1"))
    assert ours.hidden == theirs.hidden == (4096,)
    assert (ours.learning_rate, theirs.learning_rate) == (0.01, 0.001)
    assert ours.steps_at == theirs.steps_at == (3,)
    assert (ours.loss, ours.normalise) == ("softmax", False)
    assert (theirs.loss, theirs.normalise) == ("squared", True)
    assert not ours.skip
    assert settings_of(MLPCrossEntropy("odp")).hidden == (1024, 16384, 4096)
    assert settings_of(MLPSquaredError("odp")).hidden == (1024, 16384, 8192)
    assert settings_of(MLPCrossEntropy("odp")).normalise
    assert settings_of(MLPSquaredError("odp")).steps_at == (10,)


def test_what_is_given_comes_first():
    assert settings_of(MLPCrossEntropy("odp", hidden=8)).hidden == (8,)
    assert settings_of(MLPCrossEntropy(learning_rate=0.5)).learning_rate == 0.5


@pytest.mark.parametrize("recipe", ["default", None, "LSHTC1"])
def test_unknown_recipes(recipe):
    with pytest.raises(LocoleError, match="unknown recipe"):
        MLPCrossEntropy(recipe).fit(X, y)
