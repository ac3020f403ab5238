"""Options of SoftmaxRegressor, each against the same steps in plain NumPy on all weights."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import words
from same import assert_same_bits
from sklearn.base import clone

from locole import LocoleClassifier, load
from locole.embeddings import Embedding, Gaussian, Kerdock, Nelson
from locole.exceptions import LocoleError, ModelFileError
from locole.io import read_model, write_model
from locole.regressors import SoftmaxRegressor
from locole.regressors.early_stopping import share_wrong
from locole.regressors.lazy_updates import Shrinkage
from locole.regressors.problem import Problem
from locole.targets import Targets

X_WORDS, Y_WORDS = words(n_samples=150, n_features=90)
KERDOCK = Kerdock(40, dim=64)


# --- the whole descent, dense ---


def row_losses(logits, codes, smoothing):
    """Cross-entropy of each row, and its slope in the logits."""
    logits = logits - logits.max(axis=1, keepdims=True)
    log_p = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    target = np.full(log_p.shape, smoothing / log_p.shape[1])
    target[np.arange(len(log_p)), codes] += 1 - smoothing
    return -(target * log_p).sum(axis=1), np.exp(log_p) - target


def log_frequencies(codes, n_classes, weight, earlier):
    counts = np.bincount(codes, weight, minlength=n_classes) + earlier + 1
    return np.log(counts / counts.sum())


class Dense:
    """What the docstrings say, in double precision: every step goes through all weights."""

    def __init__(self, model: SoftmaxRegressor, embedding: Embedding, weight=None) -> None:
        self.model, self.weight = model, weight
        self.G = embedding.real_rows(np.arange(embedding.n_classes), np.float64)
        self.earlier, self.history = 0, []

    def fit(self, X, codes, W=None):
        model, n, size = self.model, len(X), self.model.batch_size
        W = np.zeros((X.shape[1], self.G.shape[1])) if W is None else W
        weight = np.ones(n) if self.weight is None else self.weight / self.weight.mean()
        self.offsets = model.prior * log_frequencies(codes, len(self.G), weight, self.earlier)
        rng = np.random.default_rng([model.random_state, n])
        rng.permutation(n)  # the batch in which overlap is measured; ours overlap little
        rate = model.learning_rate / np.square(X).sum(axis=1).mean()
        steps, done = model.epochs * -(-n // size), 0
        for _ in range(model.epochs):
            order, total = rng.permutation(n), 0.0
            for start in range(0, n, size):
                batch = order[start : start + size]
                left = 1 - done / steps
                W, loss = self.step(W, X[batch], codes[batch], weight[batch], rate * left)
                total += loss
                done += 1
            self.history.append(total / n)
        return W

    def step(self, W, X, codes, weight, rate):
        model = self.model
        loss, slope = row_losses(X @ W @ self.G.T + self.offsets, codes, model.label_smoothing)
        slope = weight[:, None] * slope @ self.G
        W = max(1 - rate * model.l2 * len(X), 0) * W - rate * X.T @ slope
        W = np.sign(W) * np.maximum(np.abs(W) - rate * model.l1 * len(X), 0)
        return W, weight @ loss


def check(model, embedding=KERDOCK, X=X_WORDS, codes=Y_WORDS, weight=None, atol=3e-5):
    X = sp.csr_array(X).astype(np.float32)
    model.fit(X, Targets(codes, embedding), sample_weight=weight)
    dense = Dense(model, embedding, weight)
    expected = dense.fit(X.toarray().astype(np.float64), codes)
    found = model.coef_.T.toarray() if sp.issparse(model.coef_.T) else model.coef_.T
    np.testing.assert_allclose(found, expected, atol=atol * max(1e-3, np.abs(expected).max()))
    np.testing.assert_allclose([h["loss"] for h in model.history_], dense.history, rtol=2e-5)
    return dense


OPTIONS = [
    {"l1": 1e-3},
    {"l1": 1e-3, "l2": 3e-3},
    {"l2": 3e-3},
    {"prior": 1.0},
    {"prior": 0.3, "l1": 1e-3},
]
EMBEDDINGS = [KERDOCK, Nelson(40, dim=11), Gaussian(40, dim=20)]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("embedding", EMBEDDINGS, ids=repr)
def test_equals_the_dense_steps(options, embedding):
    model = SoftmaxRegressor(epochs=3, learning_rate=2.0, batch_size=16, **options)
    check(model, embedding)


@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 60),
    batch_size=st.integers(1, 40),
    l1=st.sampled_from([0.0, 1e-4, 0.02, 10.0]),
    l2=st.sampled_from([0.0, 1e-3, 0.3, 100.0]),
    prior=st.sampled_from([0.0, 1.0]),
    weighted=st.booleans(),
)
def test_any_options_equal_the_dense_steps(seed, n, batch_size, l1, l2, prior, weighted):
    """Idle rows, decays that leave no weight, and thresholds above all weights."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 12)) * (rng.random((n, 12)) < 0.3)
    X[0, 0] = 1.0
    model = SoftmaxRegressor(
        epochs=3, learning_rate=0.5, batch_size=batch_size, l1=l1, l2=l2, prior=prior,
        fit_intercept=False, random_state=seed % 1000,
    )  # fmt: skip
    weight = rng.random(n) + 0.1 if weighted else None
    check(model, Kerdock(30, dim=16), X, rng.integers(0, 30, n), weight, atol=1e-4)


def test_threads_change_no_bit():
    others = [{"n_sampled": 9}, {"validation_fraction": 0.2}]
    for options in (*OPTIONS, *others):
        found = []
        for n_jobs in (1, 2):
            model = SoftmaxRegressor(epochs=2, batch_size=130, n_jobs=n_jobs, **options)
            model.fit(X_WORDS, Targets(Y_WORDS, KERDOCK))
            found.append(model._weights.toarray() if sp.issparse(model._weights) else model.coef_.T)
        assert_same_bits(*found)


# --- lazy parts alone ---


def test_rows_pay_what_has_fallen_due():
    rng = np.random.default_rng(0)
    W = rng.standard_normal((600, 16)).astype(np.float32)
    expected, shrinkage = W.astype(np.float64), Shrinkage(W)
    for _ in range(40):
        amount = float(rng.random() * 0.05)
        shrinkage.add(amount)
        expected = np.sign(expected) * np.maximum(np.abs(expected) - amount, 0)
        some = rng.permutation(600)[:50]
        shrinkage.pay(some)
        np.testing.assert_allclose(W[some], expected[some], atol=1e-5)
    shrinkage.pay_all()
    np.testing.assert_allclose(W, expected, atol=1e-5)
    assert 0.1 < (W == 0).mean() < 0.9
    kept = W.copy()
    shrinkage.pay_all()
    np.testing.assert_array_equal(W, kept)


# --- ℓ1 ---


def test_l1_keeps_weights_sparse_and_reaches_the_stated_problem():
    """At the optimum the slope is below l1 in size where a weight is zero, and l1 elsewhere."""
    rng = np.random.default_rng(2)
    X, codes, l1 = rng.standard_normal((60, 8)), rng.integers(0, 12, 60), 0.01
    embedding = Kerdock(12, dim=16)
    model = SoftmaxRegressor(
        epochs=800, learning_rate=0.3, batch_size=60, l1=l1, label_smoothing=0.0,
        prior=0.0, fit_intercept=False,
    ).fit(X, Targets(codes, embedding))  # fmt: skip
    assert isinstance(model.coef_, sp.csr_array)
    W = model.coef_.T.toarray().astype(np.float64)
    assert 0.05 < (W == 0).mean() < 0.95
    G = embedding.real_rows(np.arange(12), np.float64)
    slope = X.T @ (row_losses(X @ W @ G.T, codes, 0.0)[1] @ G) / 60
    assert np.abs(slope[W == 0]).max() <= l1 * 1.01
    np.testing.assert_allclose(slope[W != 0], -l1 * np.sign(W[W != 0]), atol=l1 * 0.02)


def test_sparse_weights_learn_on_and_are_saved(tmp_path):
    targets = Targets(Y_WORDS, KERDOCK)
    model = SoftmaxRegressor(epochs=2, l1=1e-3).fit(X_WORDS, targets)
    model.partial_fit(X_WORDS[:30], Targets(Y_WORDS[:30], KERDOCK))
    assert sp.issparse(model._weights)
    write_model(tmp_path / "model", model)
    again = read_model(tmp_path / "model")
    assert_same_bits(again.predict(X_WORDS), model.predict(X_WORDS))


# --- prior ---


def test_a_prior_lets_rare_labels_win_more_often():
    rng = np.random.default_rng(3)
    y = rng.choice(20, 2000, p=np.r_[0.62, np.full(19, 0.02)])
    X = np.eye(20)[y] + 0.6 * rng.standard_normal((2000, 20))
    shares = []
    for prior in (0.0, 1.0):
        model = SoftmaxRegressor(prior=prior, label_smoothing=0.0, fit_intercept=True)
        classifier = LocoleClassifier("kerdock", dim=16, regressor=model)
        predicted = classifier.fit(X[:1500], y[:1500]).predict(X[1500:])
        shares.append((predicted == 0).mean())
    assert shares[1] < shares[0] - 0.03


def test_frequencies_are_those_of_all_rows_so_far():
    """In two calls as in one, with labels that come later."""
    model = SoftmaxRegressor(prior=1.0, epochs=1, batch_size=16, learning_rate=2.0, l1=1e-9)
    model.fit(X_WORDS[:100], Targets(Y_WORDS[:100] % 20, Kerdock(20, dim=64)))
    np.testing.assert_array_equal(model.label_counts_, np.bincount(Y_WORDS[:100] % 20))
    start, y = model.coef_.toarray().T.astype(np.float64), Y_WORDS[100:]
    model.partial_fit(X_WORDS[100:], Targets(y, KERDOCK))
    counts = np.bincount(Y_WORDS[:100] % 20, minlength=40) + np.bincount(y, minlength=40)
    np.testing.assert_array_equal(model.label_counts_, counts)
    dense = Dense(clone(model).set_params(learning_rate=2.0 / 3), KERDOCK)
    dense.earlier = np.bincount(Y_WORDS[:100] % 20, minlength=40)
    expected = dense.fit(X_WORDS[100:].toarray(), y, start)
    np.testing.assert_allclose(
        model.coef_.toarray().T, expected, atol=1e-4 * np.abs(expected).max()
    )


def test_labels_of_no_row_have_a_finite_prior():
    model = SoftmaxRegressor(prior=1.0, epochs=1)
    model.fit(X_WORDS, Targets(Y_WORDS, Kerdock(100, dim=64)))
    assert np.isfinite(model.coef_.T).all()


# --- rows to watch ---


def test_the_best_epoch_is_kept():
    """Many epochs, no smoothing, a third of the labels wrong: the loss of unseen rows rises again."""
    X, y = words(n_samples=300, n_features=200)
    y = np.where(np.arange(300) % 3 == 0, y[::-1], y)
    model = SoftmaxRegressor(
        epochs=40,
        batch_size=16,
        label_smoothing=0.0,
        prior=0.0,
        validation_fraction=0.3,
        patience=40,
    ).fit(X, Targets(y, KERDOCK))
    watched = [(r["validation_error"], r["validation_loss"]) for r in model.history_]
    assert len(watched) == 40
    assert min(watched) < watched[-1]
    n_watched = 90
    order = np.random.default_rng([0, 300, 2]).permutation(300)[:n_watched]
    logits = model.predict(X[order]) @ KERDOCK.real_rows(np.arange(40), np.float64).T
    error = (logits.argmax(axis=1) != y[order]).mean()
    loss = row_losses(logits, y[order], 0.0)[0].mean()
    assert (error, loss) == pytest.approx(min(watched), rel=1e-5)
    assert model.rows_seen_ == 300 - n_watched
    for patience in (1, 3):
        short = clone(model).set_params(patience=patience).fit(X, Targets(y, KERDOCK))
        since_best = [i - watched.index(min(watched[: i + 1])) for i in range(40)]
        assert len(short.history_) == next(i for i in range(40) if since_best[i] >= patience) + 1


@pytest.mark.parametrize("embedding", EMBEDDINGS, ids=repr)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_share_of_wrong_rows(embedding, weighted):
    rng = np.random.default_rng(6)
    X = sp.csr_array(rng.standard_normal((170, 9)).astype(np.float32))
    W = np.zeros((9, 64), dtype=np.float32)
    W[:, : embedding.real_dim] = rng.standard_normal((9, embedding.real_dim))
    G = embedding.real_rows(np.arange(40), np.float64)
    best = (X @ W[:, : embedding.real_dim] @ G.T).argmax(axis=1)
    codes = np.where(rng.random(170) < 0.6, best, rng.integers(0, 40, 170))
    weight = (rng.random(170) + 0.5).astype(np.float32) if weighted else None
    rows = Problem(X, Targets(codes, embedding), weight)
    expected = np.average(best != codes, weights=weight)
    assert share_wrong(rows, W) == pytest.approx(expected, rel=1e-6)
    assert share_wrong(rows, 0 * W) == 1.0


@pytest.mark.parametrize("options", [{"l2": 1e-3}, {"l1": 1e-3}], ids=str)
def test_watching_does_not_disturb_the_descent(options):
    """With patience the last epoch's weights are those of the rest of the rows alone."""
    model = SoftmaxRegressor(
        epochs=3, batch_size=16, validation_fraction=0.2, patience=9, **options
    ).fit(X_WORDS, Targets(Y_WORDS, KERDOCK))
    order = np.random.default_rng([0, 150, 2]).permutation(150)
    rest = np.sort(order[30:])
    alone = clone(model).set_params(validation_fraction=0.0)
    alone.fit(X_WORDS[rest], Targets(Y_WORDS[rest], KERDOCK))
    for record, other in zip(model.history_, alone.history_, strict=True):
        assert record["loss"] == pytest.approx(other["loss"], rel=1e-6)
    watched = [(r["validation_error"], r["validation_loss"]) for r in model.history_]
    if min(watched) == watched[-1]:
        np.testing.assert_allclose(model.predict(X_WORDS), alone.predict(X_WORDS), atol=1e-4)


@pytest.mark.parametrize("n", [2, 3])
def test_at_least_one_row_is_learnt_from_and_one_watched(n):
    for fraction in (0.01, 0.99):
        model = SoftmaxRegressor(validation_fraction=fraction)
        model.fit(X_WORDS[:n], Targets(Y_WORDS[:n], KERDOCK))
        assert 1 <= model.rows_seen_ < n
    with pytest.raises(LocoleError, match="a row alone cannot be split"):
        model.fit(X_WORDS[:1], Targets(Y_WORDS[:1], KERDOCK))


# --- samples ---


def test_samples_of_labels_learn_too():
    X, y = words(n_samples=800)
    targets = Targets(y[:600], Gaussian(40, dim=64))
    whole = SoftmaxRegressor(n_sampled=40).fit(X[:600], targets)
    assert_same_bits(whole.coef_.T, SoftmaxRegressor().fit(X[:600], targets).coef_.T)
    sampled = SoftmaxRegressor(n_sampled=20, batch_size=32).fit(X[:600], targets)
    assert_same_bits(sampled.coef_.T, clone(sampled).fit(X[:600], targets).coef_.T)
    G = targets.embedding.real_rows(np.arange(40))
    right = [(m.predict(X[600:]) @ G.T).argmax(axis=1) == y[600:] for m in (whole, sampled)]
    assert right[1].mean() > right[0].mean() - 0.1


# --- files and errors ---


def test_options_are_saved(tmp_path):
    X, y = words(n_samples=300)
    model = SoftmaxRegressor(prior=0.3, l2=1e-3, validation_fraction=0.1)
    classifier = LocoleClassifier("kerdock", regressor=model).fit(X, y)
    classifier.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.regressor_.get_params() == classifier.regressor_.get_params()
    assert again.regressor_.history_ == classifier.regressor_.history_
    assert_same_bits(again.decision_function(X), classifier.decision_function(X))


def test_files_of_other_times_still_load():
    """Those of the first version lack options and counts; later ones had options that are gone."""
    model = SoftmaxRegressor(epochs=1).fit(X_WORDS, Targets(Y_WORDS, KERDOCK))
    state = model._state()
    later = {"params": {"learn_tau": True}, "learnt": {**state["learnt"], "tau_": 2.0}}
    later["params"] |= {"averaging": 0.5, "start": "elastic_net"}
    assert_same_bits(SoftmaxRegressor._from_state(later).predict(X_WORDS), model.predict(X_WORDS))
    old = {"params": {"epochs": 1, "l2": 0.0}, "learnt": dict(state["learnt"])}
    del old["learnt"]["label_counts_"]
    again = SoftmaxRegressor._from_state(old)
    assert_same_bits(again.predict(X_WORDS), model.predict(X_WORDS))
    again.set_params(prior=1.0).partial_fit(X_WORDS, Targets(Y_WORDS, KERDOCK))
    assert again.label_counts_.sum() == 150


@pytest.mark.parametrize(
    "counts", [np.zeros((4, 1)), np.array([-1.0]), np.array([np.nan]), np.array([1, 2])], ids=str
)
def test_a_file_with_bad_counts_is_refused(counts):
    state = SoftmaxRegressor(epochs=1).fit(X_WORDS, Targets(Y_WORDS, KERDOCK))._state()
    state["learnt"]["label_counts_"] = counts
    with pytest.raises(ModelFileError, match="counts of labels"):
        SoftmaxRegressor._from_state(state)


def test_history_can_be_written_as_json():
    model = SoftmaxRegressor(epochs=1, validation_fraction=0.2)
    model.fit(X_WORDS, Targets(Y_WORDS, KERDOCK))
    assert set(json.loads(json.dumps(model.history_))[0]) == {
        "loss", "validation_loss", "validation_error", "wall_s", "examples_per_s",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("parameters", "part"),
    [
        ({"l1": -1e-3}, "l1 must be a number of at least 0, not -0.001"),
        ({"prior": np.nan}, "prior must be a number of at least 0, not nan"),
        ({"n_sampled": 1}, "n_sampled must be a whole number of at least 2, not 1"),
        (
            {"validation_fraction": 1.0},
            "validation_fraction must be a number of at least 0 and below 1, not 1.0",
        ),
        ({"validation_fraction": -0.1}, "validation_fraction must be a number of at least 0"),
        ({"patience": 0}, "patience must be a whole number of at least 1, not 0"),
    ],
)
def test_bad_options(parameters, part):
    with pytest.raises(LocoleError, match=part):
        SoftmaxRegressor(**parameters).fit(X_WORDS, Targets(Y_WORDS, Kerdock(40, dim=16)))
