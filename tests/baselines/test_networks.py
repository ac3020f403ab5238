"""Networks with an output for each label are networks on one-hot vectors."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from same import assert_same_bits
from sklearn.datasets import load_digits

from locole.baselines import MLPCrossEntropy, MLPSquaredError, networks
from locole.embeddings import OneHot
from locole.exceptions import LocoleError
from locole.regressors import MLPRegressor
from locole.regressors.mlp import memory_needed
from locole.regressors.mlp.shape import Shape, initial
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


def torchs_weights(normalised, n_steps):
    """Weights of torch's own network, loss and Adamax after steps with all rows, from our start."""
    start = initial(Shape(64, (16,), 10), 0)
    W = MLPRegressor(**{**SETTINGS, "learning_rate": 0.0}).fit(X, Targets(y, OneHot(10, dim=10)))
    weights = [W.first_[:, :16].T, start["bias0"], start["weight1"], start["bias1"]]
    a, b, c, d = tensors = [torch.tensor(np.array(w), requires_grad=True) for w in weights]
    adamax = torch.optim.Adamax(tensors, lr=0.01)
    rows, codes = torch.from_numpy(X), torch.from_numpy(y.astype(np.int64))
    for _ in range(n_steps):
        logits = torch.relu(rows @ a.T + b) @ c.T + d
        if normalised:
            logits = logits / logits.norm(dim=1, keepdim=True)
        adamax.zero_grad()
        torch.nn.functional.cross_entropy(logits, codes).backward()
        adamax.step()
    return c.detach().numpy()


SETTINGS = {
    "recipe": "lshtc1", "hidden": 16, "batch_size": 1797, "epochs": 5, "steps_at": (9,),
    "loss": "softmax", "learn_scale": False,
}  # fmt: skip


@pytest.mark.parametrize("recipe", ["lshtc1", "odp"])
def test_cross_entropy_is_torchs(recipe, monkeypatch):
    """Also the recipe in which the outputs are divided by their length, but no factor is learnt."""
    model = MLPCrossEntropy(recipe, hidden=16, batch_size=1797, epochs=5)
    assert settings_of(model).normalise == (recipe == "odp")
    own = {**model._settings(), "recipe": "lshtc1", "steps_at": (9,)}
    monkeypatch.setattr(MLPCrossEntropy, "_settings", lambda self: own)
    found = model.fit(X, y).network_.layers_["weight1"]
    expected = torchs_weights(recipe == "odp", 5)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_cross_entropy_falls_and_is_that_of_the_logits():
    model = MLPCrossEntropy(**{**SMALL, "epochs": 8}).fit(X, y)
    losses = [record["loss"] for record in model.history_]
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
    assert (ours.batch_size, ours.epochs) == (theirs.batch_size, theirs.epochs) == (128, 5)
    assert ours.steps_at == theirs.steps_at == (3,)
    assert (ours.loss, ours.normalise) == ("softmax", False)
    assert (theirs.loss, theirs.normalise) == ("squared", True)
    assert not ours.skip
    for kind, rate in ((MLPCrossEntropy, 0.01), (MLPSquaredError, 0.001)):
        dmoz, odp = settings_of(kind("dmoz")), settings_of(kind("odp"))
        assert (dmoz.hidden, dmoz.batch_size, dmoz.epochs) == ((2500,), 256, 5)
        assert (dmoz.steps_at, dmoz.learning_rate) == ((3,), rate)
        assert (odp.hidden, odp.batch_size, odp.epochs) == ((1024, 16384, 4096), 2048, 20)
        assert (odp.steps_at, odp.learning_rate) == ((10,), rate)
        assert odp.batch_norm
        assert odp.normalise
    assert not settings_of(MLPCrossEntropy("odp")).learn_scale


def test_what_is_given_comes_first():
    assert settings_of(MLPCrossEntropy("odp", hidden=8)).hidden == (8,)
    assert settings_of(MLPCrossEntropy(learning_rate=0.5)).learning_rate == 0.5


@pytest.mark.parametrize("recipe", ["default", None, "LSHTC1"])
def test_unknown_recipes(recipe):
    with pytest.raises(LocoleError, match="recipe must be 'dmoz', 'lshtc1' or 'odp', not"):
        MLPCrossEntropy(recipe).fit(X, y)


#: What a network meets in these rows.
COUNTS = np.bincount(sp.csr_array(X).indices, minlength=64)
MET = {
    "n_met": np.count_nonzero(COUNTS),
    "n_momenta": memory_needed.momenta(COUNTS, -(-X.shape[0] // 64)),
    "n_entries": COUNTS.sum(),
    "batch_size": 64,
}


def test_it_says_before_it_begins_that_memory_is_short(monkeypatch):
    needed = memory_needed.training_bytes(Shape(64, (5000,), 10), **MET)
    monkeypatch.setattr(memory_needed, "available_bytes", lambda: needed - 1)
    monkeypatch.setattr("locole.regressors.mlp.estimator.first_weights", None)
    message = (
        r"64 features, 5,000 hidden units and 10 outputs takes about 0\.0 GB of memory, but only "
        r"0\.0 GB are left: take fewer hidden units, or label vectors with fewer outputs"
    )
    with pytest.raises(LocoleError, match=message):
        MLPCrossEntropy(hidden=5000, batch_size=64).fit(X, y)


def test_as_much_memory_as_it_takes_is_enough(monkeypatch):
    needed = memory_needed.training_bytes(Shape(64, (16,), 10), **MET)
    monkeypatch.setattr(memory_needed, "available_bytes", lambda: needed)
    MLPCrossEntropy(**SMALL).fit(X, y)
    monkeypatch.setattr(memory_needed, "available_bytes", lambda: None)
    MLPSquaredError(**SMALL).fit(X, y)


MEASURE = r"""
import re
from pathlib import Path
import numpy as np, scipy.sparse as sp
from locole.baselines import MLPCrossEntropy
from locole.regressors.mlp.memory_needed import training_bytes
from locole.regressors.mlp.shape import Shape

def memory(name):
    return 1024 * int(re.search(rf"{name}:\s*(\d+) kB", Path("/proc/self/status").read_text())[1])

def fit(n_features, n_classes, hidden):
    rng = np.random.default_rng(0)
    X = sp.random_array((n_classes, n_features), density=20 / n_features, rng=rng, format="csr")
    MLPCrossEntropy(hidden=hidden, epochs=1, batch_size=512).fit(X.astype(np.float32), range(n_classes))

fit(50, 50, 16)
Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
before = memory("VmRSS")
fit(6000, 2000, 1024)
needed = training_bytes(Shape(6000, (1024,), 2000), batch_size=512, copy=True)
print((memory("VmHWM") - before) / needed)
"""


def test_the_memory_it_takes_is_what_it_says():
    run = subprocess.run(
        [sys.executable, "-c", MEASURE], capture_output=True, text=True, check=True
    )
    assert 0.7 < float(run.stdout) < 1.1


def test_an_interrupted_fit_goes_on_from_its_checkpoint(tmp_path, monkeypatch):
    whole = MLPSquaredError(**SMALL).fit(X, y)
    model = MLPSquaredError(**SMALL, checkpoint=tmp_path / "state").fit(X, y)
    assert_same_bits(model.network_, whole.network_)
    monkeypatch.setattr("locole.regressors.mlp.training.Training._step", None)
    assert_same_bits(model.fit(X, y).network_, whole.network_)


def test_without_torch_the_error_names_the_extra(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(LocoleError, match=r"pip install 'locole\[mlp\]'"):
        MLPCrossEntropy(**SMALL).fit(X, y)


def test_huge_rows_get_an_answer():
    model = MLPCrossEntropy(**SMALL).fit(X, y)
    labels, scores = model.predict_topk(X[:5] * np.float32(1e14), k=10)
    assert np.isfinite(scores).all()
    assert (np.sort(labels, axis=1) == np.arange(10)).all()


def test_recipes_are_those_of_the_regressor():
    for recipe in networks._RECIPES:
        settings_of(MLPSquaredError(recipe))
