"""The sparse first layer against dense torch: products, Adamax with idle rows, threads, devices."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from same import assert_same_bits

from locole.exceptions import LocoleError
from locole.parallel.blocks import workers
from locole.regressors.mlp.batches import Foresight, Grouper, Orders, ahead
from locole.regressors.mlp.device import DeviceLayer, choose_device
from locole.regressors.mlp.memory_needed import momenta
from locole.regressors.mlp.momentum import BETAS, EPS, IdleMomentum
from locole.regressors.mlp.schedule import rates
from locole.regressors.mlp.sparse_layer import SparseLayer

N, D, WIDTH, STEPS = 120, 90, 48, 50


def sparse_rows(seed=0, n=N, d=D, density=0.04):
    rng = np.random.default_rng(seed)
    return sp.csr_array(
        sp.random_array((n, d), density=density, rng=rng, format="csr", dtype=np.float32)
    )


def weights(seed=0, d=D, width=WIDTH):
    rng = np.random.default_rng(seed)
    return rng.uniform(-0.1, 0.1, (d, width)).astype(np.float32)


class Steps:
    """The same batches and gradients for whoever takes them; gradients of many sizes."""

    def __init__(self, X, width=WIDTH, seed=1, schedule=None, n_steps=STEPS):
        rng = np.random.default_rng(seed)
        self.X, self.grouper = X, Grouper(X)
        self.rows = [rng.permutation(X.shape[0])[:8] for _ in range(n_steps)]
        sizes = 10.0 ** rng.uniform(-7, 1, n_steps)
        self.slopes = [
            (size * rng.standard_normal((8, width))).astype(np.float32) for size in sizes
        ]
        self.rates = np.full(n_steps, 1e-2) if schedule is None else schedule
        self.met = []

    def run(self, layer, apply=map, *, foresight=False, horizon=None):
        """Take all steps; products on the way."""
        products = []
        for i, (rows, G) in enumerate(zip(self.rows, self.slopes, strict=True)):
            batch = self.grouper(rows)
            if foresight:
                batch = batch._replace(following=self.following(i, batch.features))
            products.append(np.asarray(layer.product(batch, apply)))
            given = torch.from_numpy(G) if isinstance(layer, DeviceLayer) else G
            layer.update(batch, given, apply, horizon=horizon)
        layer.settle(apply)
        return products

    def following(self, i, features):
        """Next step with each feature, from 1; one more than there are for never."""
        if not self.met:
            self.met = [set(self.X[rows].indices) for rows in self.rows]
        return np.array([first_after(i, self.met, f) + 1 for f in features], dtype=np.int64)


def first_after(i, met, feature):
    """First of the sets after the i-th that has the feature."""
    return next((j for j in range(i + 1, len(met)) if feature in met[j]), len(met))


def dense_torch(steps, W, betas=BETAS):
    """torch.nn.Linear and torch.optim.Adamax on dense input."""
    linear = torch.nn.Linear(*W.shape, bias=False)
    with torch.no_grad():
        linear.weight[:] = torch.from_numpy(W.T.copy())
    optimiser = torch.optim.Adamax(linear.parameters(), lr=1.0, betas=betas, eps=EPS)
    products = []
    for rows, G, rate in zip(steps.rows, steps.slopes, steps.rates, strict=True):
        out = linear(torch.from_numpy(steps.X[rows].toarray()))
        products.append(out.detach().numpy())
        optimiser.param_groups[0]["lr"] = float(rate)
        optimiser.zero_grad()
        out.backward(torch.from_numpy(G))
        optimiser.step()
    return linear.weight.detach().numpy().T, products


SCHEDULES = {
    "constant": rates("constant", 1e-2, n_epochs=5, n_batches=10),
    "step": rates("step", 1e-2, n_epochs=5, n_batches=10, steps_at=(2, 4)),
    "cosine": rates("cosine", 1e-2, n_epochs=5, n_batches=10),
    "warm-up": rates("linear", 1e-2, n_epochs=5, n_batches=10, warm_up=1.5),
    "wild": 10.0 ** np.random.default_rng(5).uniform(-5, -1, STEPS),
}


@pytest.mark.parametrize("foresight", [False, True])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_fifty_steps_equal_dense_adamax(schedule, foresight):
    steps = Steps(sparse_rows(), schedule=SCHEDULES[schedule])
    layer = SparseLayer(weights(), rates=steps.rates)
    products = steps.run(layer, foresight=foresight)
    expected, expected_products = dense_torch(steps, weights())
    np.testing.assert_allclose(layer.W, expected, rtol=0, atol=1e-6)
    np.testing.assert_allclose(products, expected_products, rtol=0, atol=1e-5)
    assert np.abs(expected - weights()).max() > 0.01


@settings(max_examples=10)
@given(
    seed=st.integers(0, 2**32 - 1),
    width=st.sampled_from([16, 32, 80, 528]),
    density=st.sampled_from([0.005, 0.1, 1.0]),
    size=st.sampled_from([1e-12, 1e-9, 1e-6, 1.0, 1e6]),
    foresight=st.booleans(),
)
def test_any_layer_equals_dense_adamax(seed, width, density, size, foresight):
    """Gradients far below eps as well: there the second moment stays at eps."""
    steps = Steps(sparse_rows(seed, n=20, d=12, density=density), width, seed, n_steps=30)
    steps.slopes = [np.float32(size) * G for G in steps.slopes]
    layer = SparseLayer(weights(seed, 12, width), rates=steps.rates)
    steps.run(layer, foresight=foresight)
    expected, _ = dense_torch(steps, weights(seed, 12, width))
    np.testing.assert_allclose(layer.W, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("foresight", [False, True])
def test_hundreds_of_idle_steps(foresight):
    """A feature that comes back when all momentum has long vanished; no number becomes tiny."""
    X = sp.csr_array(np.eye(2, dtype=np.float32))
    steps = Steps(X, 16, n_steps=900)
    steps.rows = [np.array([1])] * 900
    steps.rows[0] = steps.rows[-1] = np.array([0])
    steps.slopes = [G[:1] for G in steps.slopes]
    layer = SparseLayer(weights(0, 2, 16), rates=steps.rates)
    steps.run(layer, foresight=foresight)
    expected, _ = dense_torch(steps, weights(0, 2, 16))
    np.testing.assert_allclose(layer.W, expected, rtol=0, atol=2e-5)
    M = layer.state()["M"]
    assert not ((M != 0) & (np.abs(M) < 1e-30)).any()


def test_rows_without_gradient_never_move():
    X = sparse_rows(density=0.01)
    steps = Steps(X)
    layer = SparseLayer(weights(), rates=steps.rates)
    steps.run(layer)
    met = np.unique(np.concatenate([X[rows].indices for rows in steps.rows]))
    others = np.setdiff1d(np.arange(D), met)
    assert others.size > 0
    assert_same_bits(layer.W[others], weights()[others])
    assert (layer.places[others] == -1).all()
    assert (layer.stands[others] == 0).all()


def test_idle_sums_are_those_of_the_recurrence():
    beta1, beta2 = BETAS
    schedule = 10.0 ** np.random.default_rng(0).uniform(-4, 0, 900)
    idle = IdleMomentum(schedule)
    paces = np.array([idle.advance() for _ in schedule])
    for last in (0, 1, 450, 700, 898, 899, 900):
        k = np.arange(1, 900 - last + 1)
        S = (paces[last:] * (beta1 / beta2) ** k).sum()
        T = (paces[last:] * beta1**k).sum()
        found = idle.between(last, 900)[0]
        assert found[:2] == pytest.approx([S, T / EPS], rel=1e-6)
        assert found[3] == pytest.approx(beta2 ** (900 - last), rel=1e-6)
        assert found[2] == pytest.approx(beta1 ** (900 - last), rel=1e-6, abs=1e-18)


def test_momenta_that_fade_give_their_places_back():
    """Features that come back after a step or after hundreds, in a run of 400."""
    d, n_steps = 40, 400
    rng = np.random.default_rng(0)
    X = sp.csr_array(np.eye(d, dtype=np.float32))
    steps = Steps(X, 16, n_steps=n_steps)
    often = 1 / np.arange(1, d + 1) ** 2
    steps.rows = [rng.choice(d, 8, p=often / often.sum()) for _ in range(n_steps)]
    layer, lazy = (SparseLayer(weights(0, d, 16), rates=steps.rates) for _ in range(2))
    products, expected_products = steps.run(layer, foresight=True), steps.run(lazy)
    expected, _ = dense_torch(steps, weights(0, d, 16))
    np.testing.assert_allclose(layer.W, expected, rtol=0, atol=1e-5)
    np.testing.assert_allclose(layer.W, lazy.W, rtol=0, atol=2e-6)
    np.testing.assert_allclose(products, expected_products, rtol=0, atol=1e-5)
    # Nothing comes after the last step, so no momentum is left.
    assert (layer.places == -1).all()
    assert sorted(layer.state()["free"]) == list(range(d))


def test_few_places_are_taken():
    d, n_steps = 300, 600
    X = sp.csr_array(np.eye(d, dtype=np.float32))
    steps = Steps(X, 16, n_steps=n_steps)
    steps.rows = [np.array([i % d]) for i in range(n_steps)]  # each feature every 300 steps
    steps.slopes = [G[:1] for G in steps.slopes]
    layer = SparseLayer(weights(0, d, 16), rates=steps.rates)
    layer.M[:] = np.nan
    steps.run(layer, foresight=True)
    assert np.isnan(layer.M).all()
    expected, _ = dense_torch(steps, weights(0, d, 16))
    np.testing.assert_allclose(layer.W, expected, rtol=0, atol=2e-6)


@pytest.mark.parametrize("settles", [False, True])
def test_as_many_places_are_taken_as_foretold(settles):
    """Features as frequent as words, two epochs of 400 steps."""
    rng = np.random.default_rng(0)
    often = 1 / (np.arange(20_000) + 10)
    at = np.arange(4000).repeat(20), rng.choice(20_000, 80_000, p=often / often.sum())
    X = sp.csr_array((np.ones(80_000, dtype=np.float32), at), shape=(4000, 20_000))
    orders = Orders(4000, 10, seed=0)
    layer = SparseLayer(weights(0, 20_000, 16), rates=np.full(800, 1e-3))
    foresight, most = Foresight(X, orders, 2), 0
    for epoch in (0, 1):
        grouper = Grouper(X, foresight.epoch(epoch))
        for rows in orders.epoch(epoch):
            layer.update(
                grouper(rows), np.zeros((10, 16)), map,
                horizon=400 * (epoch + 1) if settles else None,
            )  # fmt: skip
            most = max(most, np.count_nonzero(layer.places >= 0))
    counts = np.bincount(X.indices, minlength=20_000)
    assert 0.8 < momenta(counts, 400, settles=settles) / most < 1.1
    assert len(layer.state()["M"]) <= most < 0.6 * np.count_nonzero(counts)


def test_weights_at_the_horizon_are_those_of_that_step():
    """As if nothing came after it, though rows are met again later."""
    steps = Steps(sparse_rows(), n_steps=STEPS)
    part = Steps(sparse_rows(), n_steps=STEPS)
    part.rows, part.slopes = part.rows[:30], part.slopes[:30]
    layer, short = (SparseLayer(weights(), rates=steps.rates) for _ in range(2))
    part.following = steps.following
    part.run(layer, foresight=True, horizon=30)
    part.run(short)
    np.testing.assert_allclose(layer.W, short.W, rtol=0, atol=1e-6)
    part.rates = part.rates[:30]
    expected, _ = dense_torch(part, weights())
    np.testing.assert_allclose(layer.W, expected, rtol=0, atol=1e-6)


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 30),
    d=st.integers(1, 8),
    batch_size=st.integers(1, 9),
    n_epochs=st.integers(1, 3),
)
def test_foresight_is_right(seed, n, d, batch_size, n_epochs):
    X = sparse_rows(seed, n, d, 0.3)
    orders = Orders(n, batch_size, seed=seed)
    batches = [rows for epoch in range(n_epochs) for rows in orders.epoch(epoch)]
    met = [set(X[rows].indices) for rows in batches]
    foresight = Foresight(X, orders, n_epochs)
    for i, rows in enumerate(batches):
        grouper = Grouper(X, foresight.epoch(i // orders.n_batches))
        batch = grouper(rows)
        assert batch.following is not None or X.nnz == 0
        for s, feature in enumerate(batch.features):
            assert batch.following[s] == first_after(i, met, feature) + 1


# --- the options ---


def test_one_moment_for_each_row():
    """Against the same rule in plain NumPy, all rows in each step."""
    X = sparse_rows()
    steps = Steps(X)
    layer = SparseLayer(weights(), rates=steps.rates, row_moment=True)
    steps.run(layer)
    W, M, U = weights().astype(np.float64), np.zeros((D, WIDTH)), np.zeros((D, 1))
    for t, (rows, G, rate) in enumerate(
        zip(steps.rows, steps.slopes, steps.rates, strict=True), start=1
    ):
        g = X[rows].toarray().T.astype(np.float64) @ G
        norm = np.sqrt(np.square(g).mean(axis=1, keepdims=True))
        M = BETAS[0] * M + (1 - BETAS[0]) * g
        U = np.maximum(BETAS[1] * U, norm + EPS)
        W -= rate / (1 - BETAS[0] ** t) * M / U
    np.testing.assert_allclose(layer.W, W, rtol=0, atol=1e-5)
    assert layer.U.shape == (D,)


def test_half_precision():
    steps = Steps(sparse_rows())
    half = SparseLayer(weights().astype(np.float16).view(np.uint16), rates=steps.rates)
    whole = SparseLayer(weights(), rates=steps.rates)
    steps.run(half)
    steps.run(whole)
    assert half.W.nbytes * 2 == whole.W.nbytes
    found = half.W.view(np.float16).astype(np.float32)
    np.testing.assert_allclose(found, whole.W, rtol=0, atol=2e-3)


@pytest.mark.parametrize("row_moment", [False, True])
@pytest.mark.parametrize("half", [False, True])
def test_threads_change_no_bit(row_moment, half):
    X = sparse_rows(3, n=200, d=2000)
    layers = []
    for n_jobs in (1, 3):
        W = weights(3, 2000, 544)
        W = W.astype(np.float16).view(np.uint16) if half else W
        steps = Steps(X, 544, n_steps=8)
        layers.append(SparseLayer(W, rates=steps.rates, row_moment=row_moment))
        with workers(n_jobs) as apply:
            steps.run(layers[-1], apply, foresight=True)
    assert_same_bits(layers[0].state(), layers[1].state())


def test_states_can_be_restored():
    first, second = Steps(sparse_rows(), seed=1), Steps(sparse_rows(), seed=2)
    both = np.concatenate([first.rates, second.rates])
    whole = SparseLayer(weights(), rates=both)
    first.run(whole)
    kept = deepcopy(whole.state())
    second.run(whole)
    other = SparseLayer(weights(9), rates=both)
    other.restore(kept)
    second.run(other)
    assert_same_bits(whole.state(), other.state())


# --- devices ---


@pytest.mark.parametrize("schedule", ["constant", "wild"])
def test_the_device_layer_takes_the_same_steps(schedule):
    """Its torch operations run on the processor here; there is no other device to try."""
    steps = Steps(sparse_rows(), schedule=SCHEDULES[schedule])
    ours = SparseLayer(weights(), rates=steps.rates)
    other = DeviceLayer(weights(), rates=steps.rates, row_moment=False, device="cpu")
    products, expected = steps.run(other), steps.run(ours)
    np.testing.assert_allclose(other.W, ours.W, rtol=0, atol=1e-5)
    np.testing.assert_allclose(products, expected, rtol=0, atol=1e-5)
    state = deepcopy(other.state())
    again = DeviceLayer(weights(4), rates=steps.rates, row_moment=False, device="cpu")
    again.restore(state)
    assert_same_bits(again.state(), state)


def test_devices_that_are_not_there():
    if not torch.cuda.is_available():
        with pytest.raises(LocoleError, match=r'no cuda device here: take device="cpu"'):
            choose_device("cuda")
        assert choose_device("auto") is None
    assert choose_device("cpu") is None
    with pytest.raises(LocoleError, match="for the processor only"):
        DeviceLayer(weights(), rates=[0.1], row_moment=True, device="cpu")


# --- batches ---


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 30),
    d=st.integers(1, 20),
    density=st.floats(0, 1),
    drop=st.sampled_from([0.0, 0.4]),
)
def test_entries_by_feature(seed, n, d, density, drop):
    rng = np.random.default_rng(seed)
    X = sparse_rows(seed, n, d, density)
    rows = rng.integers(0, n, rng.integers(0, n + 1))
    grouper = Grouper(X)
    for _ in range(2):
        batch = grouper(rows, drop=drop, rng=np.random.default_rng(1))
        found = np.zeros((rows.size, d), dtype=np.float64)
        for s, feature in enumerate(batch.features):
            part = slice(batch.entries.starts[s], batch.entries.starts[s + 1])
            assert part.start < part.stop
            np.add.at(found, (batch.entries.who[part], feature), batch.entries.values[part])
        expected = X[rows].toarray()
        assert np.unique(batch.features).size == batch.features.size
        if drop == 0:
            assert np.array_equal(found, expected)
        kept = found != 0
        np.testing.assert_allclose(found[kept], expected[kept] / (1 - drop), rtol=1e-6)


def test_entries_that_stand_twice_add_up():
    X = sp.csr_array(
        (np.array([1.0, 2.0, 4.0], np.float32), np.array([1, 1, 0]), np.array([0, 2, 3])),
        shape=(2, 3),
    )
    layer = SparseLayer(weights(0, 3, 16), rates=[0.1])
    A = layer.product(Grouper(X)(np.array([0, 1])), map)
    np.testing.assert_allclose(A, X.toarray() @ weights(0, 3, 16), rtol=1e-6)


def test_about_the_wanted_part_is_dropped():
    X = sp.csr_array(np.ones((100, 50), dtype=np.float32))
    batch = Grouper(X)(np.arange(100), drop=0.3, rng=np.random.default_rng(0))
    assert abs(batch.entries.starts[-1] / 5000 - 0.7) < 0.03


def test_every_row_once_in_each_epoch():
    orders = Orders(21, 5, seed=3)
    first, second = orders.epoch(0), orders.epoch(1)
    assert [len(rows) for rows in first] == [5, 5, 5, 6]  # no batch of one row
    assert sorted(np.concatenate(first)) == list(range(21))
    assert not np.array_equal(np.concatenate(first), np.concatenate(second))
    assert_same_bits(orders.epoch(0, start=2), first[2:])
    assert Orders(1, 5, seed=3).n_batches == 1


@pytest.mark.parametrize("threaded", [False, True])
def test_the_next_batch_is_made_ahead(threaded):
    assert list(ahead(lambda x: x * x, range(5), threaded=threaded)) == [0, 1, 4, 9, 16]
    assert list(ahead(abs, [], threaded=threaded)) == []

    def fail(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(ahead(fail, range(3), threaded=threaded))
