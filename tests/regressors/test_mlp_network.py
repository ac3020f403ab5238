"""The network against finite differences, and against the plain torch program that it stands for."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from problems import words
from same import assert_same_bits

from locole.embeddings import Gaussian, Kerdock, Nelson
from locole.regressors.mlp.device import DeviceLayer, DeviceNetwork
from locole.regressors.mlp.group import ALONE
from locole.regressors.mlp.network import _Product, _Share, one_thread
from locole.regressors.mlp.recipes import Settings
from locole.regressors.mlp.schedule import rates
from locole.regressors.mlp.shape import Shape, first_weights, forward, initial, product
from locole.regressors.mlp.training import Training, losses_of
from locole.regressors.problem import Problem
from locole.targets import Targets

X_WORDS, Y_WORDS = words(n_samples=120)
X_WORDS = sp.csr_array(X_WORDS.astype(np.float32))
EMBEDDINGS = [Kerdock(40, dim=16), Nelson(40, dim=7), Gaussian(40, dim=10)]


def make_training(embedding, settings, *, seed=0, weight=None, device="cpu"):
    rows = Problem(X_WORDS, Targets(Y_WORDS, embedding), weight)
    shape = Shape(
        X_WORDS.shape[1], settings.hidden, embedding.real_dim, settings.batch_norm, settings.skip,
        settings.normalise, settings.normalise and settings.loss == "softmax",
    )  # fmt: skip
    W, arrays = first_weights(shape, seed), initial(shape, seed, scale=4.0)
    return Training(rows, settings, shape, W, arrays, seed=seed, device=device)


class PlainNetwork(torch.nn.Module):
    """The obvious program in double precision, with the weights of ours."""

    def __init__(self, training):
        super().__init__()
        shape, arrays = training.shape, training.arrays
        sizes = (shape.n_features, *shape.hidden, shape.n_outputs)
        self.shape = shape
        self.linears = torch.nn.ModuleList(
            torch.nn.Linear(a, b) for a, b in itertools.pairwise(sizes)
        )
        self.norms = torch.nn.ModuleList(torch.nn.BatchNorm1d(n) for n in shape.hidden)
        self.straight = torch.nn.Linear(shape.n_features, shape.n_outputs, bias=False)
        self.log_scale = torch.nn.Parameter(torch.zeros(1))
        self.double()
        W = training.layer.W
        with torch.no_grad():
            self.linears[0].weight[:] = torch.from_numpy(W[:, : shape.hidden[0]].T.copy())
            self.straight.weight[:] = 0
            for i, linear in enumerate(self.linears):
                linear.bias[:] = torch.from_numpy(arrays[f"bias{i}"])
                if i:
                    linear.weight[:] = torch.from_numpy(arrays[f"weight{i}"])
            if shape.scaled:
                self.log_scale[:] = torch.from_numpy(arrays["log_scale"])

    def forward(self, x):
        h = x
        for linear, norm in zip(self.linears, self.norms, strict=False):
            h = linear(h)
            h = torch.relu(norm(h) if self.shape.batch_norm else h)
        z = self.linears[-1](h)
        z = z + self.straight(x) if self.shape.skip else z
        z = torch.nn.functional.normalize(z, dim=1) if self.shape.normalise else z
        return z * self.log_scale.exp() if self.shape.scaled else z


def plain_run(training, embedding, weight=None):
    """Train it on dense rows with torch.optim.Adamax; points of all rows, and the losses."""
    settings = training.settings
    plain = PlainNetwork(training)
    optimiser = torch.optim.Adamax(plain.parameters(), lr=1.0)
    G = torch.from_numpy(embedding.real_rows(np.arange(40), np.float64))
    X, y = torch.from_numpy(X_WORDS.toarray().astype(np.float64)), torch.from_numpy(Y_WORDS)
    weight = torch.ones(120) if weight is None else torch.from_numpy(weight)
    step, history = 0, []
    for epoch in range(settings.epochs):
        total = 0.0
        for rows in training.orders.epoch(epoch):
            rows = torch.from_numpy(rows)
            z = plain(X[rows])
            if settings.loss == "squared":
                loss = (z - G[y[rows]]).square().sum(dim=1) / 2
            else:
                loss = torch.nn.functional.cross_entropy(
                    z @ G.T, y[rows], reduction="none", label_smoothing=settings.label_smoothing
                )
            loss = loss * weight[rows]
            optimiser.param_groups[0]["lr"] = float(training.rates[step])
            optimiser.zero_grad()
            loss.mean().backward()
            optimiser.step()
            step, total = step + 1, total + loss.detach().sum().item()
        history.append(total / 120)
    plain.eval()
    with torch.no_grad():
        return plain(X).numpy(), history, plain


def run(training, n_jobs=1):
    return [loss for loss in training.run(n_jobs=n_jobs) if loss is not None]


def points(training):
    return forward(training.shape, training.arrays, product(X_WORDS, training.layer.W))


CASES = {
    "paper": Settings(
        hidden=(24,), batch_size=16, epochs=7, learning_rate=1e-3, schedule="step", steps_at=(2, 4),
        loss="squared", normalise=True,
    ),
    "free points": Settings(
        hidden=(24, 20), batch_size=16, epochs=7, loss="squared", normalise=False, warm_up=1.0
    ),
    "softmax": Settings(
        hidden=(30,), batch_size=16, epochs=7, loss="softmax", normalise=True, label_smoothing=0.1,
        skip=True,
    ),
    "batch norm": Settings(
        hidden=(24, 20), batch_size=30, epochs=7, loss="squared", normalise=True, batch_norm=True
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("embedding", EMBEDDINGS, ids=repr)
def test_equals_the_obvious_program(case, embedding):
    """Weights and points after 50 steps; complex families have 2n real outputs."""
    settings = CASES[case]
    training = make_training(embedding, settings)
    expected, history, plain = plain_run(training, embedding)
    found = run(training)
    assert training.done >= 28
    np.testing.assert_allclose(found, history, rtol=2e-5)
    n = training.shape.hidden[0]
    first = plain.linears[0].weight.detach().numpy().T
    np.testing.assert_allclose(training.layer.W[:, :n], first, rtol=0, atol=1e-5)
    for i, linear in enumerate(plain.linears):
        bias = linear.bias.detach().numpy()
        # Behind a batch norm the gradient of a bias is zero but for rounding.
        if not (settings.batch_norm and i < len(settings.hidden)):
            np.testing.assert_allclose(training.arrays[f"bias{i}"], bias, rtol=0, atol=1e-5)
        if i:
            weight = linear.weight.detach().numpy()
            np.testing.assert_allclose(training.arrays[f"weight{i}"], weight, rtol=0, atol=2e-5)
    # For the same reason running means are not the same numbers.
    off = 1e-2 if settings.batch_norm else 1e-4
    scale = np.abs(expected).max()
    np.testing.assert_allclose(points(training), expected, rtol=0, atol=off * scale)


def test_weights_of_rows():
    weight = np.random.default_rng(0).uniform(0.2, 2, 120).astype(np.float32)
    training = make_training(EMBEDDINGS[0], CASES["paper"], weight=weight)
    expected, history, _ = plain_run(training, EMBEDDINGS[0], weight)
    np.testing.assert_allclose(run(training), history, rtol=2e-5)
    np.testing.assert_allclose(points(training), expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("case", ["paper", "free points", "softmax"])
@pytest.mark.parametrize("embedding", EMBEDDINGS[:2], ids=repr)
def test_gradients_are_finite_differences(case, embedding):
    training = make_training(embedding, CASES[case])
    shape, rows = training.shape, np.arange(60)
    # Away from zero weights of the linear part, and far from the corners of the ReLU.
    rng = np.random.default_rng(0)
    W = rng.uniform(-1, 1, training.layer.W.shape)
    arrays = {
        name: array + rng.uniform(-0.1, 0.1, array.shape) for name, array in training.arrays.items()
    }
    for name, array in arrays.items():
        training.arrays[name][:] = array
    A = X_WORDS[rows].toarray().astype(np.float64) @ W
    G = embedding.real_rows(np.arange(40), np.float64)

    def mean_loss(arrays, A):
        Z = forward(shape, arrays, A)
        if training.settings.loss == "squared":
            return (np.square(Z - G[Y_WORDS[rows]]).sum(axis=1) / 2).mean()
        logits = Z @ G.T
        log_p = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        e = training.settings.label_smoothing
        return -((1 - e) * log_p[np.arange(60), Y_WORDS[rows]] + e * log_p.mean(axis=1)).mean()

    with one_thread():
        outcome = training.network.learn(A.astype(np.float32), rows, rng, map)
    assert outcome.loss / 60 == pytest.approx(mean_loss(arrays, A), rel=1e-4)
    gradients = {"A": np.asarray(outcome.first), **outcome.dense}
    for name, gradient in gradients.items():
        place = A if name == "A" else arrays[name]
        towards = rng.standard_normal(place.shape)
        step = 1e-6
        values = []
        for sign in (1, -1):
            moved = place + sign * step * towards
            changed = arrays if name == "A" else {**arrays, name: moved}
            values.append(mean_loss(changed, moved if name == "A" else A))
        slope = (values[0] - values[1]) / (2 * step)
        found = float((np.asarray(gradient, dtype=np.float64) * towards).sum())
        assert found == pytest.approx(slope, rel=2e-3, abs=1e-6), name


@pytest.mark.parametrize("case", CASES)
def test_threads_change_no_bit(case):
    settings = dataclasses.replace(
        CASES[case], dropout=0.3, feature_dropout=0.2, epochs=2, batch_size=100
    )
    trainings = [make_training(EMBEDDINGS[0], settings) for _ in range(2)]
    losses = [run(training, n_jobs) for training, n_jobs in zip(trainings, (1, 3), strict=True)]
    assert losses[0] == losses[1]
    assert_same_bits(trainings[0].arrays, trainings[1].arrays)
    assert_same_bits(trainings[0].layer.state(), trainings[1].layer.state())


def test_dropout_leaves_out_its_part_and_keeps_the_mean():
    settings = dataclasses.replace(CASES["free points"], hidden=(4000,), dropout=0.25)
    training = make_training(EMBEDDINGS[0], settings)
    seen = []
    training.network._product = lambda H, V, apply, name=None: seen.append(H) or H @ V.T
    A = np.ones((3, training.shape.width), dtype=np.float32)
    training.network.learn(A, np.arange(3), np.random.default_rng(0), map)
    H = seen[0].detach().numpy()
    assert abs((H == 0).mean() - 0.25) < 0.02
    assert abs(H.mean() - 1) < 0.02


@pytest.mark.parametrize("case", ["paper", "softmax", "batch norm"])
def test_the_device_network_takes_the_same_steps(case):
    """In torch operations on the processor; there is no other device to try."""
    ours, other = (make_training(EMBEDDINGS[0], CASES[case]) for _ in range(2))
    W = other.layer.W
    other._place(W, losses_of(other.rows, other.settings), False, "cpu")
    assert isinstance(other.layer, DeviceLayer)
    assert isinstance(other.network, DeviceNetwork)
    np.testing.assert_allclose(run(other), run(ours), rtol=1e-4)
    np.testing.assert_allclose(points(other), points(ours), rtol=0, atol=1e-2)
    other.network.push()
    before = {name: array.copy() for name, array in other.arrays.items()}
    other.network.pull()
    assert_same_bits(other.arrays, before)


def test_tiny_gradients_are_none():
    """Labels that are out of question have gradients that arithmetic is a hundred times slower with."""
    H, V = (torch.randn(4, 8, requires_grad=True) for _ in range(2))
    for size in (1e-40, 1e-6):
        slope = size * torch.rand(4, 4)
        out = _Product.apply(H, V, _Share(map, ALONE))
        found = torch.autograd.grad(out, (H, V), slope)
        expected = torch.autograd.grad(H @ V.T, (H, V), slope)
        for ours, theirs in zip(found, expected, strict=True):
            if size == 1e-40:
                assert (ours == 0).all()
                assert (theirs != 0).any()
            else:
                torch.testing.assert_close(ours, theirs)


# --- shapes and schedules ---


def test_shapes():
    shape = Shape(7, (20, 5), 9, batch_norm=True, skip=True, scaled=True)
    assert (shape.first_columns, shape.width) == (29, 32)
    arrays = initial(shape, 0, scale=8.0)
    assert {name: array.shape for name, array in arrays.items()} == shape.arrays()
    assert arrays["log_scale"][0] == pytest.approx(np.log(8))
    W = first_weights(shape, 0)
    assert W.shape == (7, 32)
    assert (W[:, 20:] == 0).all()
    assert 0.9 * 7**-0.5 < np.abs(W).max() <= 7**-0.5
    assert np.abs(arrays["weight1"]).max() <= 20**-0.5
    assert not np.array_equal(W, first_weights(shape, 1))


def test_schedules_equal_torch():
    parameter = torch.nn.Parameter(torch.zeros(1))
    for name, make in {
        "constant": lambda o: torch.optim.lr_scheduler.LambdaLR(o, lambda _: 1.0),
        "step": lambda o: torch.optim.lr_scheduler.MultiStepLR(o, [6, 12], gamma=0.1),
        "cosine": lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, T_max=15),
        "linear": lambda o: torch.optim.lr_scheduler.LinearLR(o, 1.0, 0.0, total_iters=15),
    }.items():
        optimiser = torch.optim.Adamax([parameter], lr=0.5)
        scheduler = make(optimiser)
        expected = []
        for _ in range(15):
            expected.append(optimiser.param_groups[0]["lr"])
            optimiser.step()
            scheduler.step()
        found = rates(name, 0.5, n_epochs=5, n_batches=3, steps_at=(2, 4))
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_warm_up_rises_to_the_schedule():
    plain = rates("cosine", 1.0, n_epochs=4, n_batches=10)
    warm = rates("cosine", 1.0, n_epochs=4, n_batches=10, warm_up=1.5)
    np.testing.assert_allclose(warm[:15], plain[:15] * np.arange(1, 16) / 15)
    assert_same_bits(warm[15:], plain[15:])
