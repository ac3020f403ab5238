"""SoftmaxRegressor against dense gradient descent in double precision, and against an optimiser."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import prototypes, words
from scipy.optimize import minimize
from sklearn.exceptions import NotFittedError

from locole import LocoleClassifier
from locole.embeddings import Embedding, Gaussian, Kerdock, Nelson, OneHot
from locole.exceptions import LocoleError
from locole.regressors import SoftmaxRegressor
from locole.regressors.descent import learning_unit
from locole.targets import Targets

X_WORDS, Y_WORDS = words(n_samples=150, n_features=90)


# --- the whole descent, dense ---


def losses(W, X, codes, G, smoothing, offsets=0.0):
    """Cross-entropy of each row, and the slope of each row's point."""
    logits = X @ W @ G.T + offsets
    logits -= logits.max(axis=1, keepdims=True)
    log_p = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    target = np.full(log_p.shape, smoothing / len(G))
    target[np.arange(len(X)), codes] += 1 - smoothing
    return -(target * log_p).sum(axis=1), (np.exp(log_p) - target) @ G


def shortened(rate, X, first, pace):
    """Steps in units of ‖x‖², shorter where the rows of a batch overlap more than 12 times that."""
    unit = np.square(X).sum(axis=1).mean()
    K = X[first] @ (pace * X[first]).T
    # Ten steps of power iteration, which need not have arrived.
    v = np.linalg.matrix_power(K, 9) @ np.ones(len(K))
    overlap = np.linalg.norm(K @ v) / max(np.linalg.norm(v), 1e-300)
    return rate / (unit * max(1.0, overlap / unit / 12)) if unit > 0 else rate


def dense_descent(X, codes, embedding: Embedding, W, model: SoftmaxRegressor, rate, weight=None, *,
                  pace=1.0, l2=None):  # fmt: skip
    """What the docstring says, in plain NumPy: every batch one step, all weights decayed."""
    l2 = model.l2 if l2 is None else l2
    pace = np.broadcast_to(pace, X.shape[1])
    G = embedding.real_rows(np.arange(embedding.n_classes), np.float64)
    n, size = len(X), model.batch_size
    weight = np.ones(n) if weight is None else weight / weight.mean()
    counts = np.bincount(codes, weight, minlength=len(G)) + 1
    offsets = model.prior * np.log(counts / counts.sum())
    rng = np.random.default_rng([model.random_state, n])
    rate = shortened(rate, X, rng.permutation(n)[:size], pace)
    steps, done, history = model.epochs * -(-n // size), 0, []
    for _ in range(model.epochs):
        order, total = rng.permutation(n), 0.0
        for start in range(0, n, size):
            batch = order[start : start + size]
            loss, slope = losses(W, X[batch], codes[batch], G, model.label_smoothing, offsets)
            gradient = pace[:, None] * X[batch].T @ (weight[batch, None] * slope)
            now = rate * (1 - done / steps)
            # the slope of 1/N Σ loss + λ/2 ‖W‖², times the rows of the batch
            W = max(1 - now * l2 * len(batch), 0) * W - now * gradient
            total += weight[batch] @ loss
            done += 1
        history.append(total / n)
    return W, history


EMBEDDINGS = [Kerdock(40, dim=64), Gaussian(40, dim=20), Nelson(40, dim=11), OneHot(40, dim=40)]
each = pytest.mark.parametrize("embedding", EMBEDDINGS, ids=repr)


def zero_weights(X, embedding):
    return np.zeros((X.shape[1], embedding.real_dim))


@each
@pytest.mark.parametrize("l2", [0.0, 1e-4, 3e-3])
@pytest.mark.parametrize("batch_size", [7, 64, 1000])
def test_equals_dense_gradient_descent(embedding, l2, batch_size):
    model = SoftmaxRegressor(
        epochs=2, learning_rate=1.0, batch_size=batch_size, l2=l2, label_smoothing=0.2
    )
    model.fit(X_WORDS, Targets(Y_WORDS, embedding))
    X = X_WORDS.toarray()
    expected, history = dense_descent(
        X, Y_WORDS, embedding, zero_weights(X, embedding), model, model.learning_rate
    )
    scale = np.abs(expected).max()
    np.testing.assert_allclose(model.coef_.T, expected, atol=2e-5 * scale)
    np.testing.assert_allclose([h["loss"] for h in model.history_], history, rtol=1e-5)
    assert (model.intercept_ == 0).all()


@settings(max_examples=15)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 60),
    batch_size=st.integers(1, 40),
    l2=st.sampled_from([0.0, 1e-3, 0.3, 100.0]),
    smoothing=st.sampled_from([0.0, 0.5]),
    weighted=st.booleans(),
)
def test_any_settings_equal_dense_gradient_descent(seed, n, batch_size, l2, smoothing, weighted):
    """A decay so strong that no weight is left must not divide by zero."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 6)) * (rng.random((n, 6)) < 0.5)
    X = X.astype(np.float32).astype(np.float64)
    codes = rng.integers(0, 30, n)
    weight = rng.random(n) + 0.1 if weighted else None
    model = SoftmaxRegressor(
        epochs=3, learning_rate=0.5, batch_size=batch_size, l2=l2, label_smoothing=smoothing,
        fit_intercept=False, random_state=seed % 1000,
    )  # fmt: skip
    embedding = Kerdock(30, dim=16)
    model.fit(sp.csr_array(X), Targets(codes, embedding), sample_weight=weight)
    expected, _ = dense_descent(X, codes, embedding, zero_weights(X, embedding), model, 0.5, weight)
    scale = max(1e-3, np.abs(expected).max())
    np.testing.assert_allclose(model.coef_.T, expected, atol=1e-4 * scale)


def test_partial_fit_goes_on_with_a_rate_for_each_feature():
    """Times the root of the new rows' share of its squares; the decay is by the rows' share."""
    embedding = Kerdock(40, dim=64)
    model = SoftmaxRegressor(epochs=2, learning_rate=2.0, batch_size=16, l2=1e-3, prior=0.0)
    model.fit(X_WORDS[:100], Targets(Y_WORDS[:100], embedding))
    start = model.coef_.T.astype(np.float64)
    assert model.rows_seen_ == 100
    model.partial_fit(X_WORDS[100:], Targets(Y_WORDS[100:], embedding))
    old, new = (np.square(part.toarray()).sum(axis=0) for part in (X_WORDS[:100], X_WORDS[100:]))
    pace = np.where(new > 0, np.sqrt(new / np.maximum(old + new, 1e-30)), 1)
    assert pace.max() == 1 > pace.min()
    expected, _ = dense_descent(
        X_WORDS[100:].toarray(), Y_WORDS[100:], embedding, start, model, 2.0,
        pace=pace, l2=1e-3 * 50 / 150,
    )  # fmt: skip
    np.testing.assert_allclose(model.feature_squares_, old + new, rtol=1e-6)
    np.testing.assert_allclose(model.coef_.T, expected, atol=1e-4 * np.abs(expected).max())
    assert model.rows_seen_ == 150
    assert len(model.history_) == 4


@pytest.mark.parametrize("options", [{}, {"l2": 1e-4}, {"validation_fraction": 0.2}])
def test_many_small_batches_teach_nearly_what_one_fit_does(options):
    X, y = words(n_samples=2_000)
    model = SoftmaxRegressor(**options)
    whole = LocoleClassifier("kerdock", dim=64, regressor=model).fit(X[:1500], y[:1500])
    stream = LocoleClassifier("kerdock", dim=64, regressor=model)
    for part in np.array_split(np.arange(1500), 100):
        stream.partial_fit(X[part], y[part], classes=np.arange(y.max() + 1))
    accuracy = stream.score(X[1500:], y[1500:])
    assert accuracy > whole.score(X[1500:], y[1500:]) - 0.05
    # A few rows of one label, again and again, do not undo it.
    one = np.flatnonzero(y[:1500] == 3)[:5]
    for _ in range(10):
        stream.partial_fit(X[one], y[one])
    assert stream.score(X[1500:], y[1500:]) > accuracy - 0.02


def test_a_model_of_before_takes_earlier_rows_for_alike(tmp_path):
    """Files had no squares of features: all of them then learn by the share of the rows."""
    embedding, model = Kerdock(40, dim=64), SoftmaxRegressor(epochs=1)
    model.fit(X_WORDS[:100], Targets(Y_WORDS[:100], embedding))
    state = model._state()
    del state["learnt"]["feature_squares_"]
    old = SoftmaxRegressor._from_state(state)
    old.partial_fit(X_WORDS[100:], Targets(Y_WORDS[100:], embedding))
    new = np.square(X_WORDS[100:].toarray()).sum(axis=0)
    np.testing.assert_allclose(old.feature_squares_, 3 * new, rtol=1e-6)


def test_an_intercept_is_a_feature_of_ones():
    X, y = prototypes(n_samples=80, n_features=10)
    embedding = Gaussian(30, dim=12)
    model = SoftmaxRegressor(epochs=2, learning_rate=0.5, batch_size=9).fit(
        X, Targets(y, embedding)
    )
    ones = np.hstack([X.astype(np.float32).astype(np.float64), np.ones((80, 1))])
    expected, _ = dense_descent(ones, y, embedding, zero_weights(ones, embedding), model, 0.5)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(model.coef_.T, expected[:-1], atol=1e-4 * scale)
    np.testing.assert_allclose(model.intercept_, expected[-1], atol=1e-4 * scale)


@pytest.mark.parametrize("batch_size", [10, 60])
def test_reaches_the_optimum_of_the_stated_problem(batch_size):
    """The penalty means the same whatever the size of a batch."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5))
    codes = rng.integers(0, 12, 60)
    embedding = Kerdock(12, dim=16)
    G = embedding.real_rows(np.arange(12), np.float64)
    l2, smoothing = 0.05, 0.1

    def objective(flat):
        W = flat.reshape(5, 16)
        loss, slope = losses(W, X, codes, G, smoothing)
        value = loss.mean() + l2 / 2 * np.square(W).sum()
        return value, (X.T @ slope / 60 + l2 * W).ravel()

    best = minimize(objective, np.zeros(80), jac=True, options={"gtol": 1e-9})
    model = SoftmaxRegressor(
        epochs=400, learning_rate=0.3, batch_size=batch_size, l2=l2, label_smoothing=smoothing,
        prior=0.0, fit_intercept=False,
    ).fit(X, Targets(codes, embedding))  # fmt: skip
    assert objective(model.coef_.T.astype(np.float64).ravel())[0] <= best.fun + 1e-4


# --- rates ---


def test_the_unit_of_the_rate_is_the_mean_square_of_the_rows():
    X = sp.csr_array(np.array([[3.0, 4.0], [0.0, 0.0]], dtype=np.float32))
    assert learning_unit(X) == 12.5
    assert learning_unit(sp.csr_array((3, 4), dtype=np.float32)) == 1.0


@pytest.mark.parametrize("scale", [1e-4, 1e4])
def test_features_in_another_unit_give_the_same_points(scale):
    targets = Targets(Y_WORDS, Kerdock(40, dim=64))
    model = SoftmaxRegressor(epochs=2)
    Z = model.fit(X_WORDS, targets).predict(X_WORDS)
    scaled = model.fit(X_WORDS * scale, targets).predict(X_WORDS * scale)
    np.testing.assert_allclose(scaled, Z, rtol=1e-3, atol=1e-3 * np.abs(Z).max())


def test_rows_that_overlap_much_keep_the_weights_in_range():
    """Dense rows with a large common part: the steps are shortened, so the weights stay in range."""
    X, y = prototypes(n_samples=600)
    model = SoftmaxRegressor(epochs=3).fit(X + 5, Targets(y, Kerdock(30, dim=64)))
    assert np.isfinite(model.coef_.T).all()
    assert np.abs(model.predict(X + 5)).max() < 1e4


# --- errors ---


@pytest.mark.parametrize(
    ("parameters", "part"),
    [
        ({"epochs": 0}, "epochs must be a whole number from 1 to 10000, not 0"),
        ({"epochs": 1.5}, "epochs must be a whole number"),
        ({"batch_size": True}, "batch_size must be a whole number of at least 1, not True"),
        ({"learning_rate": -1}, "learning_rate must be a number of at least 0, not -1"),
        ({"learning_rate": np.nan}, "learning_rate must be a number of at least 0, not nan"),
        ({"l2": np.inf}, "l2 must be a number of at least 0, not inf"),
        ({"l2": "auto"}, "l2 must be a number of at least 0, not 'auto'"),
        (
            {"label_smoothing": 1.0},
            "label_smoothing must be a number of at least 0 and below 1, not 1",
        ),
        ({"storage": "int4"}, "storage must be 'float16', 'float32' or 'int8', not 'int4'"),
    ],
)
def test_bad_parameters(parameters, part):
    with pytest.raises(LocoleError, match=part):
        SoftmaxRegressor(**parameters).fit(X_WORDS, Targets(Y_WORDS, Kerdock(40, dim=16)))


def test_bad_data():
    targets = Targets(Y_WORDS, Kerdock(40, dim=16))
    with pytest.raises(LocoleError, match=r"learns from labels.* LocoleClassifier\(regressor"):
        SoftmaxRegressor().fit(X_WORDS, np.ones((150, 3)))
    with pytest.raises(LocoleError, match="149 rows but there are 150 targets"):
        SoftmaxRegressor().fit(X_WORDS[:149], targets)
    with pytest.raises(ValueError, match=r"(?i)sample weights"):
        SoftmaxRegressor().fit(X_WORDS, targets, sample_weight=np.zeros(150))
    with pytest.raises(ValueError, match="NaN"):
        SoftmaxRegressor().fit(X_WORDS * np.nan, targets)
    with pytest.raises(NotFittedError):
        SoftmaxRegressor().predict(X_WORDS)
    model = SoftmaxRegressor(epochs=1).fit(X_WORDS, targets)
    with pytest.raises(LocoleError, match="targets have 64 outputs, the model 16"):
        model.partial_fit(X_WORDS, Targets(Y_WORDS, Kerdock(40, dim=64)))
    with pytest.raises(ValueError, match="7 features"):
        model.partial_fit(X_WORDS[:, :7], targets)


# --- in a classifier ---


@pytest.mark.parametrize("name", ["kerdock", "gold", "nelson", "rademacher", "one_hot"])
def test_classifies_by_name(name):
    X, y = words(n_samples=800)
    classifier = LocoleClassifier(name, regressor="softmax").fit(X[:600], y[:600])
    assert isinstance(classifier.regressor_, SoftmaxRegressor)
    assert classifier.score(X[600:], y[600:]) > 0.6
    assert classifier.choice_ == {}
    losses_ = [record["loss"] for record in classifier.regressor_.history_]
    assert losses_ == sorted(losses_, reverse=True)


@pytest.mark.parametrize("storage", ["float16", "int8"])
def test_weights_in_fewer_bits(storage):
    targets = Targets(Y_WORDS, Kerdock(40, dim=64))
    whole = SoftmaxRegressor(epochs=2).fit(X_WORDS, targets)
    small = SoftmaxRegressor(epochs=2, storage=storage).fit(X_WORDS, targets)
    bits = {"float16": 2, "int8": 1}[storage]
    assert small._weights.nbytes == bits * small._weights.size
    Z = whole.predict(X_WORDS)
    np.testing.assert_allclose(small.predict(X_WORDS), Z, atol=0.03 * np.abs(Z).max())
    small.partial_fit(X_WORDS, targets)
    assert small._weights.nbytes == bits * small._weights.size


def test_progress_is_shown_when_asked(capsys):
    targets = Targets(Y_WORDS, Kerdock(40, dim=64))
    SoftmaxRegressor(epochs=1, verbose=1).fit(X_WORDS, targets)
    SoftmaxRegressor(epochs=1).fit(X_WORDS, targets)
    assert capsys.readouterr().out == ""
