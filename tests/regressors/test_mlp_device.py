"""The way of a graphics processor, where there is none: on the processor, and on no device at all."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from problems import words
from same import assert_same_bits
from test_mlp_network import CASES as FIXED
from test_mlp_network import EMBEDDINGS
from test_mlp_network import make_training as fixed_training
from test_mlp_vectors import CASES as JOINT
from test_mlp_vectors import make_training as joint_training

from locole import LocoleClassifier
from locole.baselines import MLPCrossEntropy
from locole.embeddings import Kerdock
from locole.exceptions import LocoleError
from locole.regressors import MLPRegressor
from locole.regressors.mlp import device, fitting, memory_needed, training
from locole.regressors.mlp.batches import Grouper
from locole.regressors.mlp.training import losses_of
from locole.targets import Targets

X, y = words(n_samples=200)
X = sp.csr_array(X.astype(np.float32))
TARGETS = Targets(y, Kerdock(40, dim=64))


def small(**parameters):
    defaults = {"hidden": 24, "epochs": 3, "batch_size": 32, "learning_rate": 0.005}
    return MLPRegressor(**{**defaults, "start": "random", "device": "cuda", **parameters})


@pytest.fixture
def on_processor(monkeypatch):
    """All torch operations that a graphics processor would run."""
    for module in (device, training):
        monkeypatch.setattr(module, "choose_device", lambda name: None if name == "cpu" else "cpu")


# --- a device that is not there ---


@pytest.fixture
def no_cuda(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


@pytest.mark.parametrize(
    "model",
    [
        LocoleClassifier("kerdock", regressor=small()),
        MLPCrossEntropy(hidden=8, device="cuda"),
    ],
    ids=lambda model: type(model).__name__,
)
def test_without_one_the_error_comes_first_and_says_what_to_do(no_cuda, monkeypatch, model):
    monkeypatch.setattr("locole.regressors.mlp.estimator.first_weights", None)
    before = dict(vars(model))
    with pytest.raises(LocoleError, match=r'finds no cuda device here: take device="cpu"'):
        model.fit(X, y)
    assert vars(model) == before


def test_auto_takes_what_is_there(no_cuda, monkeypatch):
    assert device.choose_device("auto") is None
    small(device="auto").fit(X, TARGETS)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert [device.choose_device(name) for name in ("auto", "cuda", "cpu")] == [
        "cuda",
        "cuda",
        None,
    ]


# --- whole fits ---


@pytest.mark.parametrize(
    "option",
    [
        {},
        {"loss": "softmax"},
        {"loss": "softmax", "embedding_rate": 0.5},
        {"embedding_rate": 0.5, "validation": 0.2, "dropout": 0.2},
        {"batch_norm": True, "hidden": (24, 16)},
    ],
    ids=str,
)
def test_it_learns_the_same(on_processor, option):
    found, expected = (small(device=name, **option).fit(X, TARGETS) for name in ("cuda", "cpu"))
    losses = [[record["loss"] for record in model.history_] for model in (found, expected)]
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-2)
    Z, scale = expected.predict(X), np.abs(expected.predict(X)).max()
    np.testing.assert_allclose(found.predict(X), Z, rtol=0, atol=0.05 * scale)
    if option.get("embedding_rate"):
        np.testing.assert_allclose(found.vectors_, expected.vectors_, rtol=0, atol=0.02)


@pytest.mark.parametrize("stop_at", [3, 7, 12])
def test_interrupted_and_resumed(on_processor, tmp_path, monkeypatch, stop_at):
    options = {"loss": "softmax", "embedding_rate": 0.5, "dropout": 0.1}
    whole = small(**options).fit(X, TARGETS)
    save = fitting.Fit._save

    def stopping(self, *, always=False):
        save(self, always=always)
        if self.training.done == stop_at:
            raise KeyboardInterrupt

    model = small(**options, checkpoint=tmp_path / "state", checkpoint_every_s=0.0)
    with monkeypatch.context() as patch:
        patch.setattr(fitting.Fit, "_save", stopping)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, TARGETS)
    model.fit(X, TARGETS)
    assert_same_bits(model.first_, whole.first_)
    assert_same_bits(model.layers_, whole.layers_)


def test_learning_more(on_processor):
    found, expected = (small(device=name).fit(X, TARGETS) for name in ("cuda", "cpu"))
    for model in (found, expected):
        model.partial_fit(X[:90], Targets(y[:90], Kerdock(40, dim=64)))
    np.testing.assert_allclose(found.predict(X), expected.predict(X), rtol=0, atol=0.05)


def test_memory_of_the_machine_does_not_count(on_processor, monkeypatch):
    monkeypatch.setattr(memory_needed, "available_bytes", lambda: 10)
    small().fit(X, TARGETS)
    with pytest.raises(LocoleError, match="GB are left"):
        small(device="cpu").fit(X, TARGETS)


@pytest.mark.parametrize("option", [{"first_layer": "float16"}, {"second_moment": "row"}], ids=str)
def test_options_of_the_processor_only(on_processor, option):
    with pytest.raises(LocoleError, match=r'for the processor only: take device="cpu"'):
        small(**option).fit(X, TARGETS)


# --- no number leaves the device: torch refuses to mix "meta" tensors with those of the processor ---


TRAININGS = {case: partial(fixed_training, EMBEDDINGS[0], FIXED[case]) for case in FIXED} | {
    f"vectors, {case}": partial(joint_training, JOINT[case]) for case in JOINT
}


@pytest.mark.parametrize("case", TRAININGS)
def test_a_step_stays_on_its_device(case):
    ours = TRAININGS[case]()
    ours._place(ours.layer.W, losses_of(ours.rows, ours.settings), False, "meta")
    network, rows = ours.network, np.arange(50)
    assert {tensor.device.type for tensor in network.tensors.values()} == {"meta"}
    batch = Grouper(ours.rows.X)(rows)
    A = network._leaf(ours.layer.product(batch, map))
    Z = network._points(A, np.random.default_rng(0), map)
    assert (A.device.type, Z.device.type) == ("meta", "meta")
    total, penalty = Z.square().sum(), 0.0
    if network.joint is not None:
        total, penalty = network._total(Z, rows, map)
    wanted = [A, *(network.tensors[name] for name in network.moments)]
    first, *dense = torch.autograd.grad(total + penalty, wanted, materialize_grads=True)
    assert {gradient.device.type for gradient in (first, *dense)} == {"meta"}
    pace = ours.layer.update(batch, first, map)
    network.update(dict(zip(network.moments, dense, strict=True)), pace, map)
