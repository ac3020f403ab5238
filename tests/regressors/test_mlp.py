"""MLPRegressor: recipes, options, checkpoints, overflow, files, errors, a classifier with it."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from problems import prototypes, words
from same import assert_same_bits
from sklearn.exceptions import NotFittedError

from locole import LocoleClassifier, load
from locole.decoders import decode
from locole.embeddings import Gaussian, Kerdock
from locole.exceptions import LocoleError, LocoleWarning, ModelFileError
from locole.io import read_model, write_model
from locole.regressors import ElasticNetRegressor, MLPRegressor, RegressorAdapter, checkpoint
from locole.regressors.base import ValidationRows
from locole.regressors.mlp import fitting, network
from locole.regressors.mlp.recipes import RECIPES, Settings, resolve
from locole.regressors.mlp.training import Training
from locole.targets import Targets

X_WORDS, Y_WORDS = words(n_samples=200)
EMBEDDING = Kerdock(40, dim=64)
TARGETS = Targets(Y_WORDS, EMBEDDING)


def small(**parameters):
    defaults = {"hidden": 24, "epochs": 3, "batch_size": 32, "learning_rate": 0.02}
    return MLPRegressor(**{**defaults, "start": "random", **parameters})


def learnt(model):
    losses = [record["loss"] for record in model.history_]
    return [model.first_, model.layers_, losses, model.rows_seen_]


# --- recipes ---


def test_recipes_are_the_papers():
    """Sizes, batches, epochs, rate and falls as the specification lists them."""
    table = {
        "lshtc1": ((4096,), 128, 5, (2,), False),
        "dmoz": ((2500,), 256, 5, (2, 4), False),
        "odp": ((1024, 16384, 8192), 2048, 20, (10,), True),
        "odp_code": ((2048, 32768, 16384), 2048, 20, (10,), True),
    }
    for name, (hidden, batch, epochs, steps_at, batch_norm) in table.items():
        recipe = RECIPES[name]
        assert (recipe.hidden, recipe.batch_size, recipe.epochs) == (hidden, batch, epochs)
        assert (recipe.schedule, recipe.steps_at) == ("step", steps_at)
        assert (recipe.batch_norm, recipe.normalise, recipe.loss) == (batch_norm, True, "squared")
        assert recipe.learning_rate == 1e-3
        assert not any([recipe.skip, recipe.dropout, recipe.feature_dropout, recipe.warm_up])
    assert set(RECIPES) == {*table, "default", "labels"}


def test_what_is_given_comes_before_the_recipe():
    model = MLPRegressor("lshtc1", hidden=16, epochs=2).fit(X_WORDS, TARGETS)
    expected = dataclasses.replace(RECIPES["lshtc1"], hidden=(16,), epochs=2)
    assert model.settings_ == dataclasses.asdict(expected)
    assert [record["learning_rate"] for record in model.history_] == [1e-3, 1e-3]
    np.testing.assert_allclose(np.linalg.norm(model.predict(X_WORDS), axis=1), 1, rtol=1e-5)


def test_every_recipe_is_valid_and_every_parameter_reaches_it():
    names = {field.name for field in dataclasses.fields(Settings)}
    assert names < set(MLPRegressor().get_params())
    for name in RECIPES:
        assert resolve(name, dict.fromkeys(names)) == RECIPES[name]


@pytest.mark.parametrize(
    ("n_rows", "epochs"), [(1, 500), (256, 500), (257, 250), (25_600, 5), (10**6, 4)]
)
def test_few_rows_are_met_more_often(n_rows, epochs):
    assert RECIPES["default"].for_rows(n_rows).epochs == epochs
    assert RECIPES["dmoz"].for_rows(n_rows) is RECIPES["dmoz"]


def test_a_network_without_a_linear_part_starts_at_random():
    assert resolve("default", {}).start == "linear"
    assert resolve("default", {"skip": False}).start == "random"


# --- what it learns ---


def test_learns_what_no_linear_model_can():
    """The label is whether two features are equal."""
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2, (600, 2))
    y = bits[:, 0] ^ bits[:, 1]
    X = np.hstack([bits, 1 - bits]).astype(np.float64)
    network = LocoleClassifier(regressor=small(loss="squared", epochs=20))
    assert network.fit(X, y).score(X, y) == 1.0
    assert LocoleClassifier(regressor="elastic_net").fit(X, y).score(X, y) < 0.8


@pytest.mark.parametrize("loss", ["squared", "softmax"])
@pytest.mark.parametrize("normalise", [True, False])
@pytest.mark.parametrize("skip", [True, False])
def test_classifies(loss, normalise, skip):
    X, y = words(n_samples=800)
    network = small(loss=loss, normalise=normalise, skip=skip, hidden=64, epochs=7)
    classifier = LocoleClassifier("kerdock", regressor=network).fit(X[:600], y[:600])
    assert classifier.score(X[600:], y[600:]) > 0.9
    losses = [record["loss"] for record in classifier.regressor_.history_]
    assert losses[-1] < 0.5 * losses[0]


def test_by_name():
    X, y = words(n_samples=600)
    classifier = LocoleClassifier("kerdock", regressor="mlp").fit(X[:500], y[:500])
    assert isinstance(classifier.regressor_, MLPRegressor)
    assert classifier.regressor_.settings_["loss"] == "softmax"
    assert classifier.score(X[500:], y[500:]) > 0.5


def test_ordinary_targets():
    """Squared loss takes any array of numbers."""
    X, _ = prototypes(n_samples=300, n_features=10)
    Y = np.stack([X[:, 0] + X[:, 1], np.abs(X[:, 2])], axis=1)
    model = small(loss="squared", normalise=False, epochs=40, hidden=64).fit(X, Y)
    assert np.square(model.predict(X) - Y).mean() < 0.05 * Y.var(axis=0).mean()


def test_the_factor_of_the_logits_is_learnt():
    model = small(loss="softmax", normalise=True).fit(X_WORDS, TARGETS)
    length = float(np.exp(model.layers_["log_scale"])[0])
    assert length != pytest.approx(16)
    np.testing.assert_allclose(np.linalg.norm(model.predict(X_WORDS), axis=1), length, rtol=1e-5)


@pytest.mark.parametrize("option", [{"first_layer": "float16"}, {"second_moment": "row"}], ids=str)
def test_options_that_save_memory_learn_as_well(option):
    X, y = words(n_samples=800)
    network = small(loss="squared", normalise=True, hidden=64, epochs=8, **option)
    classifier = LocoleClassifier("kerdock", regressor=network).fit(X[:600], y[:600])
    assert classifier.score(X[600:], y[600:]) > 0.9


def test_features_that_no_row_has_weigh_nothing():
    wider = sp.csr_array(sp.hstack([X_WORDS, sp.csr_array((200, 3))]))
    model = small().fit(wider, TARGETS)
    assert (model.first_[-3:] == 0).all()
    met = np.unique(X_WORDS.indices)
    assert (np.abs(model.first_[met]).max(axis=1) > 0).all()


def test_the_linear_start_is_the_elastic_net():
    """With a rate of zero nothing else is learnt; validation rows are not looked at."""
    model = small(start="linear", skip=True, normalise=False, loss="squared", learning_rate=0.0)
    linear = ElasticNetRegressor()
    for X, targets in ((X_WORDS, TARGETS), (prototypes()[0], prototypes()[0][:, :5] ** 2)):
        expected = linear.fit(X, targets).predict(X)
        found = model.fit(X, targets).predict(X)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * np.abs(expected).max())
    poisoned = np.where(np.arange(300) % 2, 1.0, 1e6)[:, None] * prototypes()[0][:, :2]
    model.set_params(validation=0.5).fit(prototypes()[0], poisoned)
    held = np.random.default_rng([0, 3]).permutation(300)[:150]
    kept = np.setdiff1d(np.arange(300), held)
    expected = linear.fit(prototypes()[0][kept], poisoned[kept]).predict(prototypes()[0])
    found = model.predict(prototypes()[0])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


# --- early stopping ---


def test_learning_stops_when_it_no_longer_pays():
    """Half of the labels at random: soon no more rows are right, and the best weights are kept."""
    rng = np.random.default_rng(0)
    labels = np.where(rng.random(200) < 0.5, Y_WORDS, rng.integers(0, 40, 200))
    targets = Targets(labels, EMBEDDING)
    model = small(epochs=40, validation=0.25, patience=3, loss="softmax", schedule="constant")
    model.fit(X_WORDS, targets)
    history = [(r["validation_error"], r["validation_loss"]) for r in model.history_]
    best = history.index(min(history))
    assert best > 0
    assert len(history) == best + 1 + 3 < 40
    assert model.rows_seen_ == 150
    shorter = small(epochs=best + 1, validation=0.25, patience=40, loss="softmax")
    shorter.set_params(schedule="constant").fit(X_WORDS, targets)
    assert_same_bits(shorter.first_, model.first_)
    assert_same_bits(shorter.layers_, model.layers_)


def test_a_network_is_not_worse_than_the_linear_model_that_it_starts_from():
    """Steps so large that every epoch is worse: the weights are the first ones."""
    X, y = words(n_samples=400)
    given = ValidationRows(X[300:], Targets(y[300:], EMBEDDING))
    options = {"start": "linear", "skip": True, "normalise": False, "loss": "softmax"}
    network = small(**options, learning_rate=1.0, epochs=2)
    network.fit(X[:300], Targets(y[:300], EMBEDDING), validation_rows=given)
    linear = ElasticNetRegressor().fit(X[:300], Targets(y[:300], EMBEDDING))
    expected = linear.predict(X)
    np.testing.assert_allclose(network.predict(X), expected, atol=1e-5 * np.abs(expected).max())
    wrong = decode(EMBEDDING, linear.predict(X[300:]))[0].ravel() != y[300:]
    assert all(record["validation_error"] >= wrong.mean() for record in network.history_)
    assert network.rows_seen_ == 300


# --- overflow ---


def test_overflow_keeps_the_last_good_weights(monkeypatch):
    """The loss becomes infinite in the third epoch."""
    step = Training._step

    def breaking(self, *step_of):
        if self.done >= 2 * self.orders.n_batches + 1:
            self.layer.W[:] = np.inf
        step(self, *step_of)

    good = small(epochs=2, schedule="constant").fit(X_WORDS, TARGETS)
    monkeypatch.setattr(Training, "_step", breaking)
    message = r"overflows in epoch 3: .*those of the end of epoch 2\. Take a smaller learning_rate"
    with pytest.warns(LocoleWarning, match=message):
        model = small(epochs=5, schedule="constant").fit(X_WORDS, TARGETS)
    assert_same_bits(learnt(model)[:2], learnt(good)[:2])
    assert len(model.history_) == 2


def test_overflow_without_room_for_a_copy(monkeypatch):
    """The step that would overflow is not taken, so all weights are numbers."""
    monkeypatch.setattr(fitting, "_SPARE_BYTES", 0)
    original, calls = network.Network.learn, []

    def breaking(self, *args):
        calls.append(1)
        outcome = original(self, *args)
        return outcome._replace(loss=np.inf) if len(calls) > 10 else outcome

    monkeypatch.setattr(network.Network, "learn", breaking)
    with pytest.warns(LocoleWarning, match="those of just before"):
        model = small(epochs=5).fit(X_WORDS, TARGETS)
    assert np.isfinite(model.predict(X_WORDS)).all()


@pytest.mark.parametrize("feature_dropout", [0.0, 0.3])
def test_rows_that_are_left_as_they_will_be_in_the_next_epoch(monkeypatch, feature_dropout):
    """Nobody asks for weights between epochs if no copy is kept; at the end they are the same."""
    option = {"feature_dropout": feature_dropout, "epochs": 4}
    settled = small(**option).fit(X_WORDS, TARGETS)
    monkeypatch.setattr(fitting, "_SPARE_BYTES", 0)
    ahead = small(**option).fit(X_WORDS, TARGETS)
    np.testing.assert_allclose(ahead.first_, settled.first_, rtol=0, atol=1e-4)
    assert np.abs(settled.first_).max() > 0.1
    losses = [[epoch["loss"] for epoch in model.history_] for model in (ahead, settled)]
    np.testing.assert_allclose(*losses, rtol=1e-4)


def test_overflow_at_once_is_an_error():
    with pytest.raises(LocoleError, match=r"overflows in the first epoch: take a smaller"):
        small(loss="squared", normalise=False, learning_rate=1e5).fit(X_WORDS * 1e14, TARGETS)


# --- checkpoints ---

SCRIPT = """
import sys
import numpy as np
sys.path.insert(0, sys.argv[1])
from problems import words
from locole.embeddings import Kerdock
from locole.regressors import MLPRegressor
from locole.targets import Targets
X, y = words(n_samples=200)
model = MLPRegressor(
    hidden=24, epochs=4000, batch_size=32, learning_rate=0.02, dropout=0.2, feature_dropout=0.1,
    loss="softmax", normalise=True, checkpoint=sys.argv[2], checkpoint_every_s=0.0,
)
model.fit(X, Targets(y, Kerdock(40, dim=64)))
"""


def steps_done(folder):
    """Steps of the checkpoint in a folder that another process replaces all the time."""
    try:
        return int(read_model(folder).state["layer"]["done"])
    except ModelFileError:
        return 0


def test_killed_and_resumed_with_the_same_weights(tmp_path):
    """SIGKILL in the middle of an epoch; the fit that goes on ends with the bits of a whole one."""
    folder = tmp_path / "checkpoint"
    command = [sys.executable, "-c", SCRIPT, str(Path(__file__).parents[1]), str(folder)]
    process = subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1"})
    try:
        end = time.monotonic() + 300
        while steps_done(folder) < 10:
            assert process.poll() is None, "the fit has ended by itself"
            assert time.monotonic() < end
            time.sleep(0.01)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert process.returncode == -signal.SIGKILL
    done = steps_done(folder)
    epochs = 4000
    assert 0 < done < epochs * 7
    # The rest of 4,000 epochs would take minutes: it stops after the same steps in both fits.
    last = done + 16
    parameters = {
        "hidden": 24, "epochs": epochs, "batch_size": 32, "learning_rate": 0.02, "dropout": 0.2,
        "feature_dropout": 0.1, "loss": "softmax", "normalise": True,
    }  # fmt: skip
    resumed = state_after(last, MLPRegressor(**parameters, checkpoint=folder))
    whole = state_after(last, MLPRegressor(**parameters))
    assert_same_bits(resumed["layer"], whole["layer"])
    assert_same_bits(resumed["arrays"], whole["arrays"])
    assert_same_bits(resumed["moments"], whole["moments"])


class Enough(Exception):  # noqa: N818
    """The fit has come far enough."""


def state_after(n_steps, model):
    """State of a fit after so many steps."""
    found = {}
    save = fitting.Fit._save

    def looking(self, *, always=False):
        if self.training.done == n_steps:
            found.update(fitting._copied(self.state()))
            raise Enough
        save(self, always=always)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fitting.Fit, "_save", looking)
        with pytest.raises(Enough):
            model.fit(X_WORDS, TARGETS)
    return found


@pytest.mark.parametrize("stop_at", [1, 7, 12])
@pytest.mark.parametrize(
    "option",
    [
        {},
        {"validation": 0.2},
        {"second_moment": "row", "first_layer": "float16"},
        {"start": "linear"},
    ],
    ids=str,
)
@pytest.mark.parametrize("copies", [True, False])
def test_interrupted_anywhere_and_resumed(tmp_path, monkeypatch, stop_at, option, copies):
    """Also with rows that are left as they will be in the next epoch."""
    if not copies:
        monkeypatch.setattr(fitting, "_SPARE_BYTES", 0)
    option = {"dropout": 0.1, "feature_dropout": 0.1, **option}
    whole = small(**option).fit(X_WORDS, TARGETS)
    save = fitting.Fit._save

    def stopping(self, *, always=False):
        save(self, always=always)
        if self.training.done == stop_at:
            raise KeyboardInterrupt

    folder = tmp_path / "checkpoint"
    model = small(**option, checkpoint=folder, checkpoint_every_s=0.0)
    with monkeypatch.context() as patch:
        patch.setattr(fitting.Fit, "_save", stopping)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X_WORDS, TARGETS)
    # What it once started from is not asked for again.
    monkeypatch.setattr(MLPRegressor, "_start_linear", None)
    model.fit(X_WORDS, TARGETS)
    assert_same_bits(learnt(model), learnt(whole))
    # A fit that is done is not done again.
    with monkeypatch.context() as patch:
        patch.setattr(Training, "_step", None)
        again = model.fit(X_WORDS, TARGETS)
    assert_same_bits(learnt(again), learnt(whole))


def test_a_checkpoint_belongs_to_its_data_and_settings(tmp_path):
    folder = tmp_path / "checkpoint"
    small(checkpoint=folder).fit(X_WORDS, TARGETS)
    message = r"belongs to other data or settings: take another folder, or remove it"
    others = [
        (small(epochs=4), X_WORDS, TARGETS, None),
        (small(random_state=1), X_WORDS, TARGETS, None),
        (small(), sp.csr_array(X_WORDS * 2), TARGETS, None),
        (small(), X_WORDS, Targets(Y_WORDS[::-1].copy(), EMBEDDING), None),
        (small(), X_WORDS, Targets(Y_WORDS, Gaussian(40, dim=64)), None),
        (small(), X_WORDS, TARGETS, np.arange(1.0, 201.0)),
    ]
    for model, X, targets, weight in others:
        with pytest.raises(LocoleError, match=message):
            model.set_params(checkpoint=folder).fit(X, targets, sample_weight=weight)
    small(checkpoint=folder, n_jobs=2, verbose=1).fit(X_WORDS, TARGETS)
    classifier = LocoleClassifier(regressor="elastic_net").fit(X_WORDS, Y_WORDS)
    classifier.save(tmp_path / "model")
    with pytest.raises(LocoleError, match=message):
        small(checkpoint=tmp_path / "model").fit(X_WORDS, TARGETS)


def test_more_rows_leave_the_checkpoint_to_its_fit(tmp_path, monkeypatch):
    folder = tmp_path / "checkpoint"
    model = small(checkpoint=folder).fit(X_WORDS, TARGETS)
    whole = learnt(model)
    model.partial_fit(X_WORDS[:50], Targets(Y_WORDS[:50], EMBEDDING))
    monkeypatch.setattr(Training, "_step", None)
    assert_same_bits(learnt(small(checkpoint=folder).fit(X_WORDS, TARGETS)), whole)


def test_checkpoints_are_written_now_and_then(tmp_path, monkeypatch):
    written = []
    monkeypatch.setattr(checkpoint, "write_model", lambda *args: written.append(args))
    small(checkpoint=tmp_path / "c", checkpoint_every_s=3600.0).fit(X_WORDS, TARGETS)
    assert len(written) == 1  # at the end
    small(checkpoint=tmp_path / "c", checkpoint_every_s=0.0).fit(X_WORDS, TARGETS)
    assert len(written) == 1 + 3 * 7 + 1


# --- files ---


def test_saved_and_loaded_within_a_classifier(tmp_path):
    network = small(skip=True, hidden=(24, 16), batch_norm=True, loss="squared")
    classifier = LocoleClassifier("kerdock", regressor=network).fit(X_WORDS, Y_WORDS)
    classifier.save(tmp_path / "m")
    back = load(tmp_path / "m")
    assert_same_bits(back.regressor_.predict(X_WORDS), classifier.regressor_.predict(X_WORDS))
    assert back.regressor_.settings_ == classifier.regressor_.settings_


@pytest.mark.parametrize(
    "damage",
    [
        {"first_": np.zeros((300, 8), np.float32)},
        {"first_": np.zeros((300, 32), np.float64)},
        {"layers_": {}},
        {"layers_": {"bias0": 3}},
        {"settings_": {"hidden": (10**6,)}},
        {"settings_": {"hidden": "many"}},
        {"settings_": {"unheard_of": 1}},
        {"n_outputs_": 63},
    ],
    ids=str,
)
def test_files_that_do_not_fit_together(tmp_path, damage):
    model = small().fit(X_WORDS, TARGETS)
    vars(model).update(damage)
    write_model(tmp_path / "m", model)
    with pytest.raises(ModelFileError):
        read_model(tmp_path / "m")


# --- without torch ---

WITHOUT_TORCH = """
import sys
from importlib import util
class NoTorch:
    def find_spec(self, name, *others):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, NoTorch())
util.find_spec = lambda name, find=util.find_spec: None if name == "torch" else find(name)
import numpy as np
from locole import LocoleClassifier, load
from locole.regressors import MLPRegressor
classifier = load(sys.argv[1])
np.save(sys.argv[2], classifier.predict_topk(np.eye(300), k=3)[1])
try:
    MLPRegressor().fit(np.eye(3), np.eye(3))
except ValueError as error:
    print(error)
LocoleClassifier(regressor="elastic_net").fit(np.eye(3), [0, 1, 2])
"""


def test_predicts_without_torch_and_says_what_to_install(tmp_path):
    classifier = LocoleClassifier("kerdock", regressor=small()).fit(X_WORDS, Y_WORDS)
    classifier.save(tmp_path / "m")
    scores = tmp_path / "scores.npy"
    command = [sys.executable, "-c", WITHOUT_TORCH, str(tmp_path / "m"), str(scores)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout == "networks need torch: pip install 'locole[mlp]'.\n"
    expected = classifier.predict_topk(np.eye(300), k=3)[1]
    assert_same_bits(np.load(scores), expected)


def test_importing_the_package_does_not_import_torch():
    code = "import sys, locole, locole.regressors; print('torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True
    )
    assert done.stdout == "False\n"


# --- errors ---


@pytest.mark.parametrize(
    ("parameters", "part"),
    [
        (
            {"recipe": "lshtc2"},
            "recipe must be 'default', 'dmoz', 'labels', 'lshtc1', 'odp' or 'odp_code', not 'lshtc2'",
        ),
        (
            {"recipe": None},
            "recipe must be 'default', 'dmoz', 'labels', 'lshtc1', 'odp' or 'odp_code', not None",
        ),
        (
            {"hidden": 0},
            "hidden must be None, a whole number of at least 1, a list or a tuple, not 0",
        ),
        ({"hidden": ()}, "hidden is empty"),
        (
            {"hidden": "64"},
            "hidden must be None, a whole number of at least 1, a list or a tuple, not '64'",
        ),
        (
            {"hidden": 2.5},
            "hidden must be None, a whole number of at least 1, a list or a tuple, not 2.5",
        ),
        ({"epochs": True}, "epochs must be None or a whole number from 1 to 10000, not True"),
        ({"batch_size": 1.5}, "batch_size must be None or a whole number of at least 1, not 1.5"),
        ({"learning_rate": -1}, "learning_rate must be None or a number of at least 0, not -1"),
        (
            {"learning_rate": np.nan},
            "learning_rate must be None or a number of at least 0, not nan",
        ),
        ({"warm_up": np.inf}, "warm_up must be None or a number of at least 0, not inf"),
        ({"dropout": 1.0}, "dropout must be None or a number of at least 0 and below 1, not 1.0"),
        (
            {"feature_dropout": -0.1},
            "feature_dropout must be None or a number of at least 0 and below 1, not -0.1",
        ),
        (
            {"label_smoothing": 1},
            "label_smoothing must be None or a number of at least 0 and below 1, not 1",
        ),
        ({"skip": 1}, "skip must be None, True or False, not 1"),
        ({"loss": "hinge"}, "loss must be None, 'softmax' or 'squared', not 'hinge'"),
        ({"start": "cold"}, "start must be None, 'linear' or 'random', not 'cold'"),
        ({"start": "linear", "skip": False}, 'start="linear" fills the linear part'),
        (
            {"schedule": "none"},
            "schedule must be None, 'constant', 'cosine', 'linear' or 'step', not 'none'",
        ),
        ({"steps_at": (0,)}, "steps_at must be a whole number of at least 1, not 0"),
        ({"validation": 1.0}, "validation must be a number of at least 0 and below 1, not 1.0"),
        ({"validation": 0.998}, "validation leaves none of the 200 rows"),
        ({"patience": 0}, "patience must be a whole number"),
        ({"first_layer": "int8"}, "first_layer must be 'float16' or 'float32', not 'int8'"),
        ({"second_moment": "all"}, "second_moment must be 'row' or 'weight', not 'all'"),
        (
            {"hidden": "64,32"},
            "hidden must be None, a whole number of at least 1, a list or a tuple, not '64,32'",
        ),
        ({"checkpoint": 3}, "checkpoint must be None, a str or a PathLike, not 3"),
        ({"learn_scale": 1}, "learn_scale must be None, True or False, not 1"),
        ({"device": "tpu"}, "device must be 'auto', 'cpu' or 'cuda', not 'tpu'"),
        ({"checkpoint_every_s": "often"}, "checkpoint_every_s must be a number"),
    ],
)
def test_bad_parameters(parameters, part):
    with pytest.raises(LocoleError, match=part):
        small(**parameters).fit(X_WORDS, TARGETS)


def test_bad_data():
    with pytest.raises(LocoleError, match=r'take loss="squared", or use the network as'):
        small(loss="softmax").fit(X_WORDS, np.ones((200, 3)))
    with pytest.raises(LocoleError, match="199 rows but there are 200 targets"):
        small().fit(X_WORDS[:199], TARGETS)
    with pytest.raises(ValueError, match=r"(?i)sample weights"):
        small().fit(X_WORDS, TARGETS, sample_weight=np.zeros(200))
    with pytest.raises(NotFittedError):
        small().predict(X_WORDS)
    with pytest.raises(LocoleError, match="NaN or infinity"):
        small(loss="squared").fit(X_WORDS, np.full((200, 2), np.nan))
    assert not isinstance(small(), RegressorAdapter)


def test_progress_is_shown_on_standard_error(capsys):
    small(verbose=1).fit(X_WORDS, TARGETS)
    assert capsys.readouterr().out == ""


# --- predictions ---


@pytest.mark.parametrize(
    "option",
    [{}, {"skip": True}, {"loss": "softmax"}, {"batch_norm": True}, {"first_layer": "float16"}],
    ids=str,
)
def test_a_row_gets_the_same_bits_whatever_its_neighbours(option):
    model = small(**{"skip": False, "hidden": (24, 17), **option}).fit(X_WORDS, TARGETS)
    Z = model.predict(X_WORDS)
    for rows in ([5], [199, 0], [7, 7, 7], np.arange(0, 200, 7), np.arange(200)[::-1]):
        assert_same_bits(model.predict(X_WORDS[rows]), Z[rows].copy())
    classifier = LocoleClassifier("kerdock", regressor=small(**option)).fit(X_WORDS, Y_WORDS)
    labels, scores = classifier.predict_topk(X_WORDS, k=40)
    for row in (0, 17, 199):
        alone = classifier.predict_topk(X_WORDS[row : row + 1], k=40)
        assert_same_bits([alone[0][0], alone[1][0]], [labels[row], scores[row]])
