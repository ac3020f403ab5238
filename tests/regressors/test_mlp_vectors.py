"""Label vectors learnt with the network: against plain torch, what they become, who uses them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from problems import words
from same import assert_same_bits
from test_mlp_network import PlainNetwork

from locole import LocoleClassifier, load
from locole.embeddings import Explicit, Gaussian, Kerdock, Nelson
from locole.exceptions import LocoleError, ModelFileError
from locole.io import read_model, write_model
from locole.regressors import ElasticNetRegressor, MLPRegressor
from locole.regressors.mlp import fitting
from locole.regressors.mlp.device import DeviceNetwork
from locole.regressors.mlp.network import one_thread
from locole.regressors.mlp.recipes import Settings
from locole.regressors.mlp.shape import Shape, first_weights, initial
from locole.regressors.mlp.training import Training, losses_of
from locole.regressors.mlp.vectors import SHARPNESS, JointLoss
from locole.regressors.problem import Problem
from locole.samples import Samples
from locole.scoring import VectorScorer
from locole.targets import Targets

X_WORDS, Y_WORDS = words(n_samples=200)
X_WORDS = sp.csr_array(X_WORDS.astype(np.float32))
EMBEDDING = Kerdock(40, dim=16)
TARGETS = Targets(Y_WORDS, EMBEDDING)
BASE = Settings(
    hidden=(12,), batch_size=50, epochs=5, learning_rate=0.01, schedule="step", steps_at=(3,),
    embedding_rate=0.5, coherence_penalty=1.0,
)  # fmt: skip
CASES = {
    "squared": BASE,
    "squared, no penalty": dataclasses.replace(BASE, coherence_penalty=0.0),
    "free points": dataclasses.replace(BASE, normalise=False),
    "softmax": dataclasses.replace(BASE, loss="softmax", label_smoothing=0.1),
    "heavy penalty": dataclasses.replace(BASE, loss="softmax", coherence_penalty=20.0),
}


def small(**parameters):
    defaults = {"hidden": 24, "epochs": 3, "batch_size": 32, "learning_rate": 0.02}
    return MLPRegressor(
        **{**defaults, "start": "random", "skip": False, "embedding_rate": 0.5, **parameters}
    )


def make_training(settings, embedding=EMBEDDING, weight=None):
    rows = Problem(X_WORDS, Targets(Y_WORDS, embedding), weight)
    scaled = settings.normalise and settings.loss == "softmax"
    shape = Shape(
        X_WORDS.shape[1], settings.hidden, embedding.real_dim, normalise=settings.normalise,
        scaled=scaled, n_learnt=40,
    )  # fmt: skip
    W, arrays = first_weights(shape, 0), initial(shape, 0, scale=4.0)
    arrays["vectors"][:] = embedding.real_rows(np.arange(40))
    return Training(rows, settings, shape, W, arrays, seed=0)


def run(training, n_jobs=1):
    return [loss for loss in training.run(n_jobs=n_jobs) if loss is not None]


def closeness(G):
    """Inner products of different vectors."""
    return (G @ G.T)[~np.eye(len(G), dtype=bool)]


# --- losses, gradients, steps ---


def plain_loss(z, G, y, settings):
    """The formulas, pair by pair."""
    if settings.loss == "squared":
        loss = (z - G[y]).square().sum(dim=1) / 2
    else:
        loss = torch.nn.functional.cross_entropy(
            z @ G.T, y, reduction="none", label_smoothing=settings.label_smoothing
        )
    others = [torch.cat([G[:label], G[label + 1 :]]) @ G[label] for label in y]
    coherences = [torch.log(torch.exp(SHARPNESS * s).mean()) / SHARPNESS for s in others]
    return loss, settings.coherence_penalty * torch.stack(coherences).mean()


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("embedding", [EMBEDDING, Nelson(40, dim=7)], ids=repr)
def test_the_same_as_the_plain_program(case, embedding):
    """Double precision, dense rows, torch's Adamax for network and vectors, unit length after it."""
    settings = CASES[case]
    weight = np.random.default_rng(0).uniform(0.5, 1.5, 200).astype(np.float32)
    training = make_training(settings, embedding, weight)
    plain = PlainNetwork(training)
    G = torch.from_numpy(embedding.real_rows(np.arange(40), np.float64)).requires_grad_()
    groups = [{"params": plain.parameters()}, {"params": [G]}]
    optimiser = torch.optim.Adamax(groups, lr=1.0)
    X, y = torch.from_numpy(X_WORDS.toarray().astype(np.float64)), torch.from_numpy(Y_WORDS)
    step, history = 0, []
    for epoch in range(settings.epochs):
        total = 0.0
        for rows in training.orders.epoch(epoch):
            loss, penalty = plain_loss(plain(X[rows]), G, y[rows], settings)
            loss = loss * torch.from_numpy(weight[rows])
            rate = float(training.rates[step])
            optimiser.param_groups[0]["lr"] = rate
            optimiser.param_groups[1]["lr"] = rate * settings.embedding_rate
            optimiser.zero_grad()
            (loss.mean() + penalty).backward()
            optimiser.step()
            with torch.no_grad():
                G /= G.norm(dim=1, keepdim=True)
            step, total = step + 1, total + loss.detach().sum().item()
        history.append(total / 200)
    np.testing.assert_allclose(run(training), history, rtol=1e-3)
    np.testing.assert_allclose(training.arrays["vectors"], G.detach().numpy(), rtol=0, atol=2e-3)


@pytest.mark.parametrize("case", CASES)
def test_gradients_are_finite_differences(case):
    training, rng = make_training(CASES[case]), np.random.default_rng(0)
    rows = np.arange(60)
    A = rng.uniform(-1, 1, (60, training.shape.width)).astype(np.float32)
    with one_thread():
        outcome = training.network.learn(A, rows, rng, map)
    G = torch.from_numpy(training.arrays["vectors"].astype(np.float64))
    training.network._product = lambda H, V, apply, name=None: H @ V.T
    Z = training.network._points(torch.from_numpy(A), rng, map).detach().double()
    y = torch.from_numpy(Y_WORDS[rows])
    towards, values = torch.from_numpy(rng.standard_normal((40, 16))), []
    for step in (1e-6, -1e-6):
        loss, penalty = plain_loss(Z, G + step * towards, y, training.settings)
        values.append(float(loss.mean() + penalty))
    found = float((outcome.dense["vectors"].double() * towards).sum())
    assert found == pytest.approx((values[0] - values[1]) / 2e-6, rel=1e-3, abs=1e-6)


def test_the_penalty_is_between_the_mean_and_the_largest():
    G = Gaussian(40, dim=10).real_rows(np.arange(40))
    joint = JointLoss(BASE, Y_WORDS)
    found = float(joint.penalty(torch.from_numpy(G), np.arange(200), lambda a, b: a @ b.T))
    products = (G @ G.T)[~np.eye(40, dtype=bool)].reshape(40, 39)[Y_WORDS]
    assert products.mean() < found < products.max(axis=1).mean()
    one = torch.ones((40, 1))
    assert float(joint.penalty(one, np.arange(9), lambda a, b: a @ b.T)) == pytest.approx(1)


def test_the_penalty_that_is_taken():
    for loss, penalty in (("squared", 1.0), ("softmax", 0.0)):
        assert dataclasses.replace(BASE, loss=loss, coherence_penalty=None).penalty == penalty
        assert dataclasses.replace(BASE, loss=loss, coherence_penalty=0.5).penalty == 0.5


@pytest.mark.parametrize("case", ["squared", "softmax"])
def test_threads_change_no_bit(case):
    trainings = [make_training(CASES[case]) for _ in range(2)]
    losses = [run(training, n_jobs) for training, n_jobs in zip(trainings, (1, 3), strict=True)]
    assert losses[0] == losses[1]
    assert_same_bits(trainings[0].arrays, trainings[1].arrays)


@pytest.mark.parametrize("case", ["squared", "softmax"])
def test_the_device_network_takes_the_same_steps(case):
    ours, other = (make_training(CASES[case]) for _ in range(2))
    other._place(other.layer.W, losses_of(other.rows, other.settings), False, "cpu")
    assert isinstance(other.network, DeviceNetwork)
    np.testing.assert_allclose(run(other), run(ours), rtol=1e-3)
    np.testing.assert_allclose(other.arrays["vectors"], ours.arrays["vectors"], rtol=0, atol=2e-3)


# --- what vectors become ---


def learnt_vectors(**parameters):
    network = small(hidden=48, epochs=12, embedding_rate=1.0, **parameters)
    return network.fit(X_WORDS, TARGETS).vectors_


def one_of_five_rows(seed=0):
    """Rows that say nothing about their labels, of which there are many."""
    which = np.random.default_rng(seed).integers(0, 5, 400)
    return sp.csr_array(X_WORDS[:5][which]), np.arange(400) % 40


@pytest.mark.parametrize("penalty", [0.0, 3.0])
def test_where_labels_cannot_be_told_apart_the_squared_loss_makes_them_one(penalty):
    """Its loss is then smaller than with any other vectors. The penalty prevents it."""
    X, y = one_of_five_rows()
    network = small(loss="squared", epochs=40, embedding_rate=1.0, coherence_penalty=penalty)
    model = network.fit(X, Targets(y, EMBEDDING))
    if penalty:
        assert closeness(model.vectors_).mean() < 0.2
        assert model.history_[-1]["loss"] > 0.5
    else:
        assert closeness(model.vectors_).min() > 0.9
        assert model.history_[-1]["loss"] < 0.05


def test_where_they_can_vectors_stay_where_the_network_finds_them():
    """A network that soon hits all vectors leaves no reason to move them."""
    G = learnt_vectors(loss="squared", coherence_penalty=0.0)
    assert closeness(G).mean() < 0.3


@pytest.mark.parametrize("loss", ["squared", "softmax"])
def test_the_penalty_keeps_vectors_apart(loss):
    start = closeness(EMBEDDING.real_rows(np.arange(40)))
    spread = closeness(learnt_vectors(loss=loss, coherence_penalty=100.0))
    assert spread.max() < start.max() + 0.1
    assert np.abs(spread.mean()) < 0.1


def test_the_softmax_needs_no_penalty():
    assert closeness(learnt_vectors(loss="softmax", coherence_penalty=0.0)).mean() < 0.3


@pytest.mark.parametrize("embedding", [EMBEDDING, Nelson(40, dim=7), Gaussian(40, dim=5)], ids=repr)
def test_vectors_keep_unit_length(embedding):
    G = small(loss="softmax").fit(X_WORDS, Targets(Y_WORDS, embedding)).vectors_
    assert G.shape == (40, embedding.real_dim)
    assert G.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(G, axis=1), 1, rtol=1e-6)
    assert not np.allclose(G, embedding.real_rows(np.arange(40)), atol=1e-2)


def test_a_rate_of_zero_leaves_them_alone():
    model = small(embedding_rate=0.0, coherence_penalty=5.0).fit(X_WORDS, TARGETS)
    assert model.vectors_ is None
    assert not model.learns_embedding
    plain = small(embedding_rate=None, coherence_penalty=None).fit(X_WORDS, TARGETS)
    assert_same_bits(plain.layers_, model.layers_)
    assert not ElasticNetRegressor().learns_embedding


# --- in a classifier ---


@pytest.mark.parametrize("loss", ["squared", "softmax"])
@pytest.mark.parametrize("embedding", ["kerdock", "nelson", "gaussian"])
def test_the_classifier_decodes_by_what_was_learnt(loss, embedding, tmp_path):
    X, y = words(n_samples=800)
    names = np.array([f"label {code:02}" for code in range(40)])[y]
    network = small(loss=loss, hidden=64, epochs=7)
    classifier = LocoleClassifier(embedding, regressor=network).fit(X[:600], names[:600])
    assert classifier.score(X[600:], names[600:]) > 0.9
    assert isinstance(classifier.embedding_, Explicit)
    assert classifier.decoder_.name == "dense"
    assert_same_bits(classifier.embedding_.vectors, classifier.regressor_.vectors_)
    scores = classifier.regressor_.predict(X[600:]) @ classifier.regressor_.vectors_.T
    expected = classifier.classes_[scores.argmax(axis=1)]
    assert (classifier.predict(X[600:]) == expected).mean() > 0.99
    counts = np.bincount(np.searchsorted(classifier.classes_, names[:600]), minlength=40)
    prior = counts @ classifier.embedding_.vectors.astype(np.float64) / 600
    np.testing.assert_allclose(classifier.scorer_.prior_point_, prior, atol=1e-6)
    classifier.save(tmp_path / "model")
    back = load(tmp_path / "model")
    for ours, theirs in zip(
        back.predict_topk(X[600:], k=3), classifier.predict_topk(X[600:], k=3), strict=True
    ):
        assert_same_bits(ours, theirs)


def test_learning_more_goes_on_from_the_vectors_learnt():
    network = small(loss="softmax", epochs=4)
    classifier = LocoleClassifier("kerdock", regressor=network).fit(X_WORDS, Y_WORDS)
    before = classifier.embedding_.vectors.copy()
    classifier.partial_fit(X_WORDS[:100], Y_WORDS[:100])
    after = classifier.embedding_.vectors
    assert_same_bits(after, classifier.regressor_.vectors_)
    assert not np.array_equal(after, before)
    # Much nearer to where it was than to where all began.
    start = Kerdock(40, dim=before.shape[1]).real_rows(np.arange(40))
    assert np.abs(after - before).max() < 0.5 * np.abs(after - start).max()
    with pytest.raises(LocoleError, match="give a vector for every label"):
        classifier.partial_fit(X_WORDS[:5], np.arange(100, 105))
    assert_same_bits(classifier.embedding_.vectors, after)


def test_parameters_changed_after_a_fit_change_no_embedding():
    for before, after in ((0.5, 0.0), (0.0, 0.5)):
        network = small(loss="softmax", embedding_rate=before)
        classifier = LocoleClassifier("kerdock", regressor=network).fit(X_WORDS, Y_WORDS)
        kind = type(classifier.embedding_)
        classifier.regressor_.set_params(embedding_rate=after)
        classifier.partial_fit(X_WORDS[:50], Y_WORDS[:50])
        assert type(classifier.embedding_) is kind
        assert classifier.score(X_WORDS, Y_WORDS) > 0.8


def test_a_decoder_that_needs_structure_is_refused_before_learning(monkeypatch):
    monkeypatch.setattr(MLPRegressor, "fit", lambda *_: pytest.fail("it learnt"))
    with pytest.raises(LocoleError, match="fwht"):
        LocoleClassifier("kerdock", regressor=small(), decoder="fwht").fit(X_WORDS, Y_WORDS)


# --- early stopping, checkpoints, files, errors ---


@pytest.mark.parametrize("loss", ["squared", "softmax"])
def test_validation_rows_are_judged_by_the_vectors_of_the_moment(loss):
    model = small(loss=loss, validation=0.25, epochs=2, patience=9).fit(X_WORDS, TARGETS)
    held = np.sort(np.random.default_rng([0, 3]).permutation(200)[:50])
    best = min(record["validation_loss"] for record in model.history_)
    Z, y = model.predict(X_WORDS[held]).astype(np.float64), Y_WORDS[held]
    G = model.vectors_.astype(np.float64)
    expected = np.square(Z - G[y]).sum(axis=1) / 2
    if loss == "softmax":
        logits = Z @ G.T
        expected = np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(50), y]
    assert best == pytest.approx(expected.mean(), rel=1e-4)


@pytest.mark.parametrize("stop_at", [3, 7, 12])
def test_interrupted_anywhere_and_resumed(tmp_path, monkeypatch, stop_at):
    whole = small(dropout=0.1).fit(X_WORDS, TARGETS)
    save = fitting.Fit._save

    def stopping(self, *, always=False):
        save(self, always=always)
        if self.training.done == stop_at:
            raise KeyboardInterrupt

    model = small(dropout=0.1, checkpoint=tmp_path / "state", checkpoint_every_s=0.0)
    with monkeypatch.context() as patch:
        patch.setattr(fitting.Fit, "_save", stopping)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X_WORDS, TARGETS)
    assert_same_bits(model.fit(X_WORDS, TARGETS).layers_, whole.layers_)


def test_files_that_do_not_fit_are_refused(tmp_path):
    model = small().fit(X_WORDS, TARGETS)
    G = model.vectors_
    write_model(tmp_path / "m", model)
    assert_same_bits(read_model(tmp_path / "m").vectors_, G)
    for bad in (G[:, :-1].copy(), G.astype(np.float64), G[0].copy(), np.array(1.0), "x", 3):
        model.layers_ = {**model.layers_, "vectors": bad}
        write_model(tmp_path / "m", model)
        with pytest.raises(ModelFileError, match="do not fit together"):
            read_model(tmp_path / "m")


def test_an_array_of_targets_has_no_vectors():
    with pytest.raises(LocoleError, match="no label vectors to learn: take embedding_rate=0"):
        small().fit(X_WORDS, np.zeros((200, 3)))


def test_a_sum_of_regressors_has_one_embedding():
    both = VectorScorer({"elastic_net": ElasticNetRegressor(), "mlp": small()}, EMBEDDING)
    with pytest.raises(LocoleError, match="take embedding_rate=0 for each of them"):
        both.fit(Samples(X_WORDS, Y_WORDS, 40))


@pytest.mark.parametrize("name", ["embedding_rate", "coherence_penalty"])
@pytest.mark.parametrize("bad", [-1, "x", True, np.nan, np.inf])
def test_bad_numbers(name, bad):
    with pytest.raises(LocoleError, match=f"{name} must be None or a number of at least 0, not "):
        small(**{name: bad}).fit(X_WORDS, TARGETS)
