"""What every regressor promises: points of the right shape, the same for every way to ask."""

from __future__ import annotations

import copy
import inspect
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from problems import words
from same import assert_same_bits
from sklearn.base import clone
from sklearn.linear_model import Ridge, SGDRegressor
from sklearn.multioutput import MultiOutputRegressor
from untouched import FORMS as CALLERS_FORMS
from untouched import arrays_of, assert_untouched

from locole import regressors
from locole.embeddings import Kerdock, Nelson
from locole.exceptions import LocoleError
from locole.io import read_model, write_model
from locole.io.state import kind_of
from locole.regressors import (
    ElasticNetRegressor,
    KernelRegressor,
    MLPRegressor,
    RegressorAdapter,
    SoftmaxRegressor,
    TargetRegressor,
)
from locole.regressors.linear import LinearRegressor
from locole.targets import Targets

X, y = words(n_samples=300, n_features=280)
X = X.astype(np.float32)
X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
EMBEDDING = Kerdock(40, dim=64)
TARGETS = Targets(y, EMBEDDING)

REGRESSORS: dict[str, TargetRegressor] = {
    "ridge": ElasticNetRegressor(l2=1.0, max_passes=4),
    "sparse elastic net": ElasticNetRegressor(l1=0.05, l2=0.5, max_passes=4),
    "elastic net in int8": ElasticNetRegressor(l2=1.0, max_passes=4, storage="int8"),
    "elastic net in int4": ElasticNetRegressor(l2=1.0, max_passes=4, storage="int4"),
    "elastic net with auto l2": ElasticNetRegressor(max_passes=4),
    "kernel": KernelRegressor(l2=0.5, storage="float16"),
    "kernel with auto l2": KernelRegressor(),
    "kernel with drawn centres": KernelRegressor(l2=0.5, n_centres=100),
    "softmax": SoftmaxRegressor(epochs=2, batch_size=32),
    "softmax with penalty": SoftmaxRegressor(epochs=2, batch_size=100, l2=1e-3, fit_intercept=True),
    "softmax in float16": SoftmaxRegressor(epochs=1, batch_size=32, storage="float16"),
    "sparse softmax": SoftmaxRegressor(epochs=2, batch_size=32, l1=1e-4),
    "softmax with options": SoftmaxRegressor(
        epochs=2, batch_size=32, l2=1e-4, prior=0.3, validation_fraction=0.1
    ),
    "softmax of samples": SoftmaxRegressor(epochs=2, batch_size=32, n_sampled=20),
    "network": MLPRegressor(
        loss="softmax",
        hidden=48,
        epochs=6,
        batch_size=32,
        learning_rate=0.02,
        skip=False,
        start="random",
    ),
    "network with all options": MLPRegressor(
        loss="squared",
        hidden=(48, 32),
        epochs=8,
        batch_size=32,
        learning_rate=0.02,
        skip=True,
        batch_norm=True,
        normalise=True,
        dropout=0.1,
        feature_dropout=0.1,
        first_layer="float16",
        second_moment="row",
        schedule="step",
        steps_at=(6,),
        warm_up=0.5,
    ),
    "network with learnt vectors": MLPRegressor(
        loss="softmax",
        hidden=48,
        epochs=6,
        batch_size=32,
        learning_rate=0.02,
        skip=False,
        embedding_rate=0.1,
    ),
    "adapter": RegressorAdapter(Ridge()),
}
OURS = {name: regressor for name, regressor in REGRESSORS.items() if name != "adapter"}
# What a change of the rounding of X may change: rows are met in the same order, by the same rule.
ROUNDING = 2e-4


@pytest.fixture(params=REGRESSORS)
def regressor(request):
    return clone(REGRESSORS[request.param])


@pytest.fixture(params=OURS)
def ours(request):
    return clone(OURS[request.param])


def close(a, b):
    np.testing.assert_allclose(a, b, rtol=0, atol=ROUNDING * max(1.0, np.abs(b).max()))


def learnt_by(model):
    """Everything that fit has left, without the times that two fits never share."""
    learnt = {k: v for k, v in vars(model).items() if k not in model.get_params()}
    learnt["history_"] = [
        {k: v for k, v in record.items() if k in ("gap", "objective", "loss")}
        for record in learnt["history_"]
    ]
    return dict(sorted(learnt.items()))


def test_every_regressor_is_listed():
    public = {getattr(regressors, name) for name in regressors.__all__}
    classes = {c for c in public if inspect.isclass(c) and issubclass(c, TargetRegressor)}
    classes -= {TargetRegressor}
    assert classes == {type(model) for model in REGRESSORS.values()}


# --- points ---


@pytest.mark.parametrize("embedding", [EMBEDDING, Nelson(40, dim=37)], ids=repr)
def test_points_have_the_outputs_of_the_embedding(regressor, embedding):
    assert regressor.fit(X, Targets(y, embedding)) is regressor
    for n in (1, 17, 300):
        Z = regressor.predict(X[:n])
        assert Z.shape == (n, embedding.real_dim)
        assert Z.dtype in (np.float32, np.float64)
        assert np.isfinite(Z).all()
    assert regressor.n_outputs_ == embedding.real_dim
    assert regressor.n_features_in_ == 280


def test_rows_do_not_depend_on_their_neighbours(regressor):
    Z = regressor.fit(X, TARGETS).predict(X)
    for rows in ([5], [299, 0], np.arange(0, 300, 7)):
        close(regressor.predict(X[rows]), Z[rows])


def test_it_learns(regressor):
    """The right label's score is far above the mean of all."""
    Z = regressor.fit(X, TARGETS).predict(X)
    scores = Z @ EMBEDDING.real_rows(np.arange(40)).T
    right = scores[np.arange(300), y]
    assert (right > scores.mean(axis=1)).mean() > 0.95


# --- the same bits ---


def test_seeds_give_the_same_bits(ours):
    first = clone(ours).set_params(random_state=3).fit(X, TARGETS)
    again = clone(ours).set_params(random_state=3).fit(X, TARGETS)
    assert_same_bits(learnt_by(first), learnt_by(again))
    assert_same_bits(first.predict(X), again.predict(X))


@pytest.mark.parametrize("n_jobs", [2, 4, -1])
def test_threads_change_no_bit(ours, n_jobs):
    one = clone(ours).set_params(n_jobs=1).fit(X, TARGETS)
    many = clone(ours).set_params(n_jobs=n_jobs).fit(X, TARGETS)
    assert_same_bits(learnt_by(one), learnt_by(many))
    for model in (one, many):
        model.partial_fit(X[:70], Targets(y[:70], EMBEDDING))
    assert_same_bits(learnt_by(one), learnt_by(many))
    assert_same_bits(one.predict(X), many.predict(X))


def test_fitting_again_starts_anew(ours):
    expected = clone(ours).fit(X, TARGETS)
    ours.fit(X[:100, :50], Targets(y[:100], Kerdock(40, dim=16)))
    ours.fit(X, TARGETS)
    assert_same_bits(learnt_by(ours), learnt_by(expected))


# --- forms of X ---

WIDE = X.copy()
WIDE.indices, WIDE.indptr = WIDE.indices.astype(np.int64), WIDE.indptr.astype(np.int64)

FORMS = {
    "csc": sp.csc_array(X),
    "coo": sp.coo_array(X),
    "matrix": sp.csr_matrix(X),
    "dense": X.toarray(),
    "fortran": np.asfortranarray(X.toarray()),
    "int64 indices": WIDE,
    "float64": X.astype(np.float64),
    "whole numbers": X.toarray().astype(np.int64),
    "lists": X.toarray().tolist(),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_x_gives_the_same_answer(ours, form):
    expected = clone(ours).fit(X, TARGETS).predict(X)
    ours.fit(FORMS[form], TARGETS)
    close(ours.predict(X), expected)
    close(ours.predict(FORMS[form]), expected)


def read_only(matrix):
    matrix = matrix.copy()
    for array in (matrix.data, matrix.indices, matrix.indptr):
        array.flags.writeable = False
    return matrix


def test_read_only_arrays(regressor):
    expected = clone(regressor).fit(X, TARGETS).predict(X)
    codes, weight = y.copy(), np.ones(300)
    codes.flags.writeable = weight.flags.writeable = False
    frozen = read_only(X)
    regressor.fit(frozen, Targets(codes, EMBEDDING), sample_weight=weight)
    close(regressor.predict(frozen), expected)
    if hasattr(regressor, "storage"):
        regressor.partial_fit(frozen, Targets(codes, EMBEDDING), sample_weight=weight)


def test_arguments_are_left_as_they_were(regressor):
    kept, codes = X.copy(), y.copy()
    weight = np.random.default_rng(0).random(300)
    kept_weight = weight.copy()
    regressor.fit(X, TARGETS, sample_weight=weight)
    regressor.predict(X)
    assert_same_bits(X.data, kept.data)
    assert_same_bits(X.indices, kept.indices)
    assert_same_bits(y, codes)
    assert_same_bits(weight, kept_weight)


@pytest.mark.parametrize("form", CALLERS_FORMS)
def test_rows_of_the_caller_are_left_as_they_were(ours, form, tmp_path):
    tidy = X.copy()
    tidy.sum_duplicates()
    given = CALLERS_FORMS[form](tidy, tmp_path)
    before = arrays_of(given)
    ours.fit(given, TARGETS).predict(given)
    assert_untouched(given, before)
    close(ours.predict(given), clone(ours).fit(tidy, TARGETS).predict(tidy))
    ours.partial_fit(given, TARGETS)
    assert_untouched(given, before)


def test_rows_and_features_that_say_nothing(regressor):
    """Empty rows among the others, features that no row has, and rows of such features only."""
    some = X.toarray()
    some[::10] = 0
    wider = np.hstack([some, np.zeros((300, 5), dtype=np.float32)])
    regressor.fit(sp.csr_array(wider), TARGETS)
    new = np.zeros((3, 285), dtype=np.float32)
    new[1, 280:] = 1
    new[2, 280:] = 100
    Z = regressor.predict(sp.csr_array(new))
    assert np.isfinite(Z).all()
    close(Z, np.broadcast_to(Z[0], Z.shape))
    if isinstance(regressor, LinearRegressor):
        assert_same_bits(Z[0], regressor.intercept_)


# --- weights ---

WITHOUT_CHOICE = {name: m for name, m in REGRESSORS.items() if "auto" not in name}


@pytest.mark.parametrize("name", WITHOUT_CHOICE)
def test_a_row_of_weight_zero_is_absent(name):
    """Not for l2="auto", which is chosen on validation rows."""
    model = WITHOUT_CHOICE[name]
    weight = np.random.default_rng(0).integers(0, 3, 300).astype(float)
    there = np.flatnonzero(weight)
    whole = clone(model).fit(X, TARGETS, sample_weight=weight)
    part = clone(model).fit(X[there], Targets(y[there], EMBEDDING), sample_weight=weight[there])
    close(whole.predict(X), part.predict(X))


def test_equal_weights_are_no_weights(regressor):
    plain = clone(regressor).fit(X, TARGETS).predict(X)
    close(clone(regressor).fit(X, TARGETS, sample_weight=np.ones(300)).predict(X), plain)


def test_heavier_rows_count_more(regressor):
    """Two labels for the same rows: the heavier one wins."""
    twice = sp.csr_array(sp.vstack([X, X]))
    both = Targets(np.concatenate([y, (y + 1) % 40]), EMBEDDING)
    G = EMBEDDING.real_rows(np.arange(40))
    gains = []
    for weight in ([1.0, 9.0], [9.0, 1.0]):
        Z = clone(regressor).fit(twice, both, sample_weight=np.repeat(weight, 300)).predict(X)
        gains.append((Z * (G[y] - G[(y + 1) % 40])).sum(axis=1).mean())
    assert gains[0] < 0 < gains[1]


@pytest.mark.parametrize("bad", [np.full(300, -1.0), np.ones(299), np.full(300, np.nan)])
def test_bad_weights(ours, bad):
    with pytest.raises(ValueError, match=r"(?i)weight|NaN"):
        ours.fit(X, TARGETS, sample_weight=bad)


# --- scikit-learn's habits, copies, files ---


def test_constructors_only_store(regressor):
    parameters = regressor.get_params(deep=False)
    assert vars(regressor) == parameters
    strange = {name: object() for name in parameters}
    assert vars(type(regressor)(**strange)) == strange


def test_clones_are_unfitted_and_equal(regressor):
    regressor.fit(X, TARGETS)
    twin = clone(regressor)
    assert repr(twin) == repr(clone(twin))
    # scikit-learn knows by them whether it is fitted
    assert not [name for name in vars(twin) if name.endswith("_")]
    assert_same_bits(twin.fit(X, TARGETS).predict(X), regressor.predict(X))


@pytest.mark.parametrize("remake", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_answer_alike_and_learn_apart(regressor, remake):
    regressor.fit(X, TARGETS)
    expected = regressor.predict(X)
    twin = remake(regressor)
    assert_same_bits(twin.predict(X), expected)
    twin.fit(X[:50], Targets(y[:50], EMBEDDING))
    assert_same_bits(regressor.predict(X), expected)


def test_files_hold_the_model_to_the_bit(ours, tmp_path):
    ours.fit(X, TARGETS)
    write_model(tmp_path / "m", ours)
    back = read_model(tmp_path / "m")
    assert repr(back) == repr(ours)
    assert_same_bits(back.predict(X), ours.predict(X))
    assert_same_bits(learnt_by(back), learnt_by(ours))
    more = np.arange(0, 300, 3)
    for model in (ours, back):
        model.partial_fit(X[more], Targets(y[more], EMBEDDING))
    assert_same_bits(learnt_by(back), learnt_by(ours))
    assert_same_bits(back.predict(X), ours.predict(X))


def test_whatever_fit_leaves_is_listed(ours):
    ours.fit(X, TARGETS)
    known = {*type(ours)._learnt, *ours.get_params(deep=False), "n_features_in_"}
    assert set(vars(ours)) <= known
    assert kind_of(ours) is not None


# --- learning more ---


def test_partial_fit_first_is_fit(ours):
    fitted = clone(ours)
    if isinstance(ours, ElasticNetRegressor) and ours.l2 == "auto":
        fitted.set_params(
            l2="stream"
        )  # the first of many batches cannot tell what suits the others
    fitted.fit(X, TARGETS)
    started = clone(ours).partial_fit(X, TARGETS)
    assert_same_bits(learnt_by(fitted), learnt_by(started))


def test_partial_fit_learns_new_rows_and_labels(ours):
    old = y < 25
    ours.fit(X[old], Targets(y[old], EMBEDDING))
    G = EMBEDDING.real_rows(np.arange(40))

    def margin():
        scores = ours.predict(X[~old]) @ G.T
        return (scores[np.arange((~old).sum()), y[~old]] - scores.mean(axis=1)).mean()

    before = margin()
    ours.partial_fit(X[~old], Targets(y[~old], EMBEDDING))
    assert margin() > before + 0.05


def test_partial_fit_refuses_other_outputs_and_changes_nothing(ours):
    ours.fit(X, TARGETS)
    before, kept = ours.predict(X), learnt_by(ours)
    with pytest.raises(LocoleError, match="targets have 16 outputs, the model 64"):
        ours.partial_fit(X, Targets(y, Kerdock(40, dim=16)))
    assert_same_bits(learnt_by(ours), kept)
    assert_same_bits(ours.predict(X), before)


def test_an_adapter_hands_on_partial_fit():
    adapter = RegressorAdapter(MultiOutputRegressor(SGDRegressor(random_state=0)))
    adapter.partial_fit(X, TARGETS)
    before = adapter.predict(X)
    adapter.partial_fit(X, TARGETS)
    assert not np.array_equal(adapter.predict(X), before)
    with pytest.raises(LocoleError, match="Ridge cannot learn more rows"):
        RegressorAdapter(Ridge()).fit(X, TARGETS).partial_fit(X, TARGETS)


# --- failure ---


class Interrupting(Targets):
    """Targets that are asked for once too often."""

    def _stop(self, *args, **kwargs):
        raise KeyboardInterrupt

    rows = table = _stop

    def softmax(self, **kwargs):
        return self._stop


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupted_fit_leaves_the_old_model(ours, method, n_jobs):
    ours.set_params(n_jobs=n_jobs).fit(X, TARGETS)
    before, kept = ours.predict(X), learnt_by(ours)
    n_features = 280 if method == "partial_fit" else 100
    with pytest.raises(KeyboardInterrupt):
        getattr(ours, method)(X[:90, :n_features], Interrupting(y[:90], EMBEDDING))
    assert_same_bits(learnt_by(ours), kept)
    assert_same_bits(ours.predict(X), before)
    ours.partial_fit(X[:90], Targets(y[:90], EMBEDDING))


def test_a_failed_first_fit_leaves_nothing(ours):
    before = repr(vars(ours))
    with pytest.raises(LocoleError, match="300 rows but there are 299 targets"):
        ours.fit(X, Targets(y[:299], EMBEDDING))
    assert repr(vars(ours)) == before


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_that_are_none_are_refused(ours, bad):
    broken = X.toarray()
    broken[3, 4] = bad
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        ours.fit(broken, TARGETS)
    ours.fit(X, TARGETS)
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        ours.predict(broken)
    with pytest.raises(ValueError, match="features"):
        ours.predict(X[:, :7])


@pytest.mark.parametrize("scale", [1e16, 1e30, 1e-30])
def test_numbers_that_cannot_be_squared_are_refused(ours, scale):
    with pytest.raises(LocoleError, match=r"largest number in X is .*: scale the features first"):
        ours.fit(X * np.float32(scale), TARGETS)
    if scale > 1:
        ours.fit(X, TARGETS)
        for method in (lambda rows: ours.partial_fit(rows, TARGETS), ours.predict):
            with pytest.raises(LocoleError, match="scale the features first"):
                method(X * np.float32(scale))


@pytest.mark.parametrize("scale", [2.0**40, 2.0**-40])
def test_large_and_small_numbers_are_taken(scale):
    """By methods whose answers do not depend on the scale of X."""
    for model in (ElasticNetRegressor(max_passes=4), SoftmaxRegressor(epochs=2, batch_size=32)):
        expected = clone(model).fit(X, TARGETS).predict(X)
        close(clone(model).fit(X * scale, TARGETS).predict(X * scale), expected)
