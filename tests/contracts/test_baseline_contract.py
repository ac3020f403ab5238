"""What every baseline promises: the same interface, the same answer for every way to ask."""

from __future__ import annotations

import copy
import inspect
import json
import os
import pickle
import re
import subprocess
import sys
from contextlib import suppress
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hostile import hostile
from problems import words
from same import assert_same_bits
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from sklearn.utils.estimator_checks import estimator_checks_generator
from untouched import FORMS as CALLERS_FORMS
from untouched import arrays_of, assert_untouched

import locole.baselines
from locole import load
from locole.baselines import Baseline
from locole.exceptions import LocoleError, ModelFileError
from locole.io import write_model
from locole.io.state import kind_of

ROOT = Path(__file__).parents[2]
CLASSES = {
    name: getattr(locole.baselines, name) for name in locole.baselines.__all__ if name != "Baseline"
}

#: Parameters that make a class quick on small data, by its name; defaults where there is no entry.
SMALL: dict[str, dict] = {
    "AnnexML": {"n_learners": 2},
    "MACH": {"n_repetitions": 10},
    "MLPCrossEntropy": {"hidden": 32, "batch_size": 16, "epochs": 3, "learning_rate": 0.1},
    "MLPSquaredError": {"hidden": 32, "batch_size": 16, "epochs": 3, "learning_rate": 0.03},
}
#: Numbers of a model that may be anything, such as seeds or counts of steps: (class, attribute).
ANY_NUMBER: set[tuple[str, str]] = set()
#: Parameters that are paths, so that any text is one.
PATHS = {("MLPCrossEntropy", "checkpoint"), ("MLPSquaredError", "checkpoint")}

X, y = words(n_classes=20, n_samples=320, n_features=150)
X = sp.csr_array(X, dtype=np.float32)
X.sum_duplicates()
TRAIN, TEST = slice(0, 240), slice(240, 320)
N_CLASSES = 20
K = 5


def make(name, **parameters):
    """An unfitted model; parameters that the class does not have are left out."""
    known = inspect.signature(CLASSES[name]).parameters
    given = {key: value for key, value in parameters.items() if key in known}
    return CLASSES[name](**{**SMALL.get(name, {}), **given})


@cache
def _fitted(name):
    return make(name).fit(X[TRAIN], y[TRAIN])


@pytest.fixture(params=CLASSES)
def name(request):
    return request.param


@pytest.fixture
def model(name):
    return make(name)


@pytest.fixture
def fitted(name):
    """A copy, so that a test can do what it likes to it."""
    return copy.deepcopy(_fitted(name))


def answers(model, X=X, k=K):
    return list(model.predict_topk(X, k=k))


def learnt_by(model):
    """Everything that makes up the model, without the times that two fits never share."""
    return {key: value for key, value in model._state()["learnt"].items() if key != "history_"}


# --- the interface ---


def test_the_table_names_classes_that_exist(name):
    assert issubclass(CLASSES[name], Baseline)
    assert set(SMALL) <= set(CLASSES)
    assert {owner for owner, _ in ANY_NUMBER} <= set(CLASSES)


def test_its_name_in_files_is_that_of_a_baseline(name):
    assert re.fullmatch(r"baseline\.[a-z0-9_]+", kind_of(make(name)) or "")


def test_it_is_described(name):
    text = (ROOT / "docs" / "guide" / "baselines.md").read_text(encoding="utf-8")
    assert f"`{name}`" in text
    words = inspect.getdoc(CLASSES[name])
    assert ">>>" in words
    assert "Parameters\n---" in words


@pytest.mark.parametrize("k", [1, 3, N_CLASSES])
def test_the_best_labels_come_first_and_once(fitted, k):
    labels, scores = fitted.predict_topk(X, k=k)
    assert labels.shape == scores.shape == (X.shape[0], k)
    assert scores.dtype.kind == "f"
    assert np.isfinite(scores).all()
    assert (np.diff(scores, axis=1) <= 0).all()
    assert (np.diff(np.sort(labels, axis=1), axis=1) > 0).all()
    assert np.isin(labels, fitted.classes_).all()


def test_fewer_labels_are_the_first_of_more(fitted):
    labels, scores = answers(fitted, k=N_CLASSES)
    for k in (1, 2, 7, N_CLASSES - 1):
        assert_same_bits(answers(fitted, k=k), [labels[:, :k].copy(), scores[:, :k].copy()])
    assert_same_bits(fitted.predict(X), labels[:, 0].copy())


@pytest.mark.parametrize("k", [N_CLASSES + 1, 0, -1, 2.0, True, "3"])
def test_a_k_that_cannot_be(fitted, k):
    with pytest.raises(LocoleError, match=r"k=21 is more than the 20 labels|k must be a whole"):
        fitted.predict_topk(X, k=k)


def test_ties_go_to_the_first_label(model):
    """Two labels with the same rows, and rows that say nothing, make ties for many methods."""
    twice = sp.csr_array(sp.vstack([X[TRAIN], X[TRAIN]]))
    labels = np.concatenate([y[TRAIN], y[TRAIN] + N_CLASSES])
    new = sp.csr_array(sp.vstack([X[TEST], sp.csr_array((2, X.shape[1]), dtype=np.float32)]))
    labels, scores = model.fit(twice, labels).predict_topk(new, k=2 * N_CLASSES)
    tied = np.diff(scores, axis=1) == 0
    assert (np.diff(labels, axis=1)[tied] > 0).all()


def test_it_learns(fitted):
    """Chance is 5 %."""
    assert fitted.score(X[TEST], y[TEST]) > 0.6
    labels, _ = fitted.predict_topk(X[TEST], k=K)
    assert (labels == y[TEST][:, None]).any(axis=1).mean() > 0.75


def test_rows_do_not_depend_on_their_neighbours(fitted):
    labels, scores = answers(fitted)
    for rows in ([5], [299, 0], np.arange(0, 320, 7)):
        assert_same_bits(answers(fitted, X[rows]), [labels[rows], scores[rows]])


# --- how sure it is ---


def test_probabilities_are_those_of_the_answers(fitted):
    p = fitted.predict_proba(X[TEST])
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-6)
    labels, best = fitted.predict_topk(X[TEST], k=K, proba=True)
    assert_same_bits(labels, fitted.predict_topk(X[TEST], k=K)[0])
    np.testing.assert_allclose(best, -np.sort(-p, axis=1)[:, :K], rtol=1e-9)
    np.testing.assert_array_equal(fitted.classes_[p.argmax(axis=1)], fitted.predict(X[TEST]))
    np.testing.assert_array_equal(fitted.predict_log_proba(X[TEST]), np.log(p))


def test_it_can_be_calibrated(fitted, tmp_path):
    with pytest.raises(LocoleError, match=r"no validation rows .*: call calibrate"):
        fitted.predict_set(X[TEST])
    scores = answers(fitted)
    assert fitted.calibrate(X[TEST], y[TEST]) is fitted
    assert_same_bits(answers(fitted), scores)
    right = fitted.predict(X[TEST]) == y[TEST]
    assert abs(fitted.predict_proba(X[TEST]).max(axis=1).mean() - right.mean()) < 0.05
    sets = fitted.predict_set(X[TEST], 0.8)
    assert np.mean([label in found for label, found in zip(y[TEST], sets, strict=True)]) > 0.7
    fitted.save(tmp_path / "m")
    back = load(tmp_path / "m")
    assert_same_bits(back.predict_proba(X[TEST]), fitted.predict_proba(X[TEST]))
    assert_same_bits(back.predict_set(X[TEST], 0.8), sets)


def test_explanations_add_up_to_the_score_or_are_refused(name, fitted):
    labels, scores = fitted.predict_topk(X[TEST], k=1)
    if name not in ("Centroids", "LinearOneVsRest", "PDSparse", "PPDSparse"):
        with pytest.raises(LocoleError, match=f"scores of {name} are not sums over features"):
            fitted.explain(X[TEST])
        return
    for found, label, score in zip(fitted.explain(X[TEST]), labels, scores, strict=True):
        assert found.label == label[0]
        total = sum(value for _, value in found.features) + sum(found.others.values())
        assert found.score == pytest.approx(total) == pytest.approx(score[0], abs=1e-5)


# --- the same bits ---


def test_seeds_give_the_same_bits(name):
    first, again = (make(name, random_state=3).fit(X[TRAIN], y[TRAIN]) for _ in range(2))
    assert_same_bits(learnt_by(first), learnt_by(again))
    assert_same_bits(answers(first), answers(again))


@pytest.mark.parametrize("n_jobs", [2, 4])
def test_threads_change_no_bit(name, fitted, n_jobs, monkeypatch):
    # Blocks of a few rows, so that there is something to share out.
    monkeypatch.setattr(CLASSES[name], "_block_rows", 16)
    many = make(name, n_jobs=n_jobs).fit(X[TRAIN], y[TRAIN])
    assert_same_bits(learnt_by(many), learnt_by(fitted))
    assert_same_bits(answers(many), answers(fitted))


def test_progress_changes_no_bit_and_silence_is_silent(name, fitted, capfd):
    shown = make(name, verbose=1).fit(X[TRAIN], y[TRAIN])
    assert_same_bits(learnt_by(shown), learnt_by(fitted))
    capfd.readouterr()
    make(name, verbose=0).fit(X[TRAIN], y[TRAIN])
    assert capfd.readouterr() == ("", "")


def test_fitting_again_starts_anew(model, fitted):
    model.fit(X[:100, :50], y[:100] % 7)
    model.fit(X[TRAIN], y[TRAIN])
    assert_same_bits(learnt_by(model), learnt_by(fitted))


# --- forms of X and y ---


def with_indices(dtype):
    some = X.copy()
    some.indices, some.indptr = some.indices.astype(dtype), some.indptr.astype(dtype)
    return some


def out_of_order():
    """Rows whose columns are not sorted, halves that add up, and zeros that are stored."""
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    parts = [(X.data / 2, rows, X.indices), (X.data / 2, rows, X.indices)]
    empty = np.arange(X.shape[0])
    parts.append((np.zeros(empty.size, np.float32), empty, empty % X.shape[1]))
    data, rows, columns = (np.concatenate(values)[::-1] for values in zip(*parts, strict=True))
    order = np.argsort(rows, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows))])
    return sp.csr_array((data[order], columns[order], indptr), shape=X.shape)


FORMS = {
    "csc": lambda: sp.csc_array(X),
    "coo": lambda: sp.coo_array(X),
    "matrix": lambda: sp.csr_matrix(X),
    "dense": X.toarray,
    "fortran": lambda: np.asfortranarray(X.toarray()),
    "int32 indices": lambda: with_indices(np.int32),
    "int64 indices": lambda: with_indices(np.int64),
    "float64": lambda: X.astype(np.float64),
    "whole numbers": lambda: X.toarray().astype(np.int64),
    "out of order": out_of_order,
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_x_gives_the_same_bits(model, fitted, form):
    given = FORMS[form]()
    expected = answers(fitted)
    assert_same_bits(answers(fitted, given), expected)
    sliceable = given.tocsr() if form == "coo" else given
    assert_same_bits(answers(model.fit(sliceable[TRAIN], y[TRAIN])), expected)


LABELS = {
    "negative": lambda y: y.astype(np.int64) - 7,
    "small": lambda y: y.astype(np.int8),
    "strings": lambda y: np.array([f"märz {code:02}" for code in y]),
    "objects": lambda y: np.array([f"label {code:02}" for code in y], dtype=object),
    "a list": lambda y: [f"{code:02}" for code in y],
    "floats": lambda y: y / 1.0,
}


@pytest.mark.parametrize("kind", LABELS)
def test_every_kind_of_label(model, fitted, kind, tmp_path):
    given = LABELS[kind](y[TRAIN])
    model.fit(X[TRAIN], given)
    labels, scores = answers(model)
    codes, expected = answers(fitted)
    assert_same_bits(scores, expected)
    assert labels.tolist() == model.classes_[codes].tolist()
    assert model.classes_.tolist() == np.unique(given).tolist()
    model.save(tmp_path / "m")
    back = load(tmp_path / "m").classes_
    assert back.dtype == model.classes_.dtype
    assert back.tolist() == model.classes_.tolist()


def test_read_only_arrays_are_taken_and_arguments_are_left_alone(model, fitted):
    frozen, codes = X[TRAIN].copy(), y[TRAIN].copy()
    for array in (frozen.data, frozen.indices, frozen.indptr, codes):
        array.flags.writeable = False
    model.fit(frozen, codes)
    assert_same_bits(answers(model, frozen), answers(fitted, X[TRAIN]))


@pytest.mark.parametrize("form", CALLERS_FORMS)
def test_rows_of_the_caller_are_left_as_they_were(model, fitted, form, tmp_path):
    given = CALLERS_FORMS[form](X[TRAIN], tmp_path)
    before = arrays_of(given)
    found = answers(model.fit(given, y[TRAIN]), given)
    assert_untouched(given, before)
    assert_same_bits(found, answers(fitted, X[TRAIN]))


def test_rows_and_features_that_say_nothing(model):
    """Empty rows among the others, a label of empty rows only, features that no training row has."""
    some = X[TRAIN].toarray()
    some[::10] = 0
    labels = np.where(np.arange(240) % 40 == 0, N_CLASSES, y[TRAIN])
    wider = np.hstack([some, np.zeros((240, 5), dtype=np.float32)])
    model.fit(sp.csr_array(wider), labels)
    new = np.zeros((3, 155), dtype=np.float32)
    new[1, 150:] = 1
    new[2, 154] = 100
    labels, scores = model.predict_topk(sp.csr_array(new), k=N_CLASSES)
    assert np.isfinite(scores).all()
    assert (np.diff(np.sort(labels, axis=1), axis=1) > 0).all()


def test_labels_of_one_row_each(model):
    labels, _ = model.fit(X[:30], np.arange(30)).predict_topk(X[:30], k=30)
    assert (labels[:, :5] == np.arange(30)[:, None]).any(axis=1).mean() > 0.5


def test_two_labels(model):
    y_two = y[TRAIN] % 2
    labels, _ = model.fit(X[TRAIN], y_two).predict_topk(X[TRAIN], k=2)
    assert (labels[:, 0] == y_two).mean() > 0.6
    assert (np.sort(labels, axis=1) == [0, 1]).all()


def test_bad_input(model, fitted):
    with pytest.raises(LocoleError, match="only one class, '4'"):
        model.fit(X[TRAIN], np.full(240, 4))
    broken = X.toarray()
    broken[3, 4] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        model.fit(broken, y)
    with pytest.raises(ValueError, match="NaN"):
        fitted.predict(broken)
    for scale in (1e16, 1e30, 1e200, 1e-30):
        with pytest.raises(LocoleError, match=r"largest number in X is .*: scale the features"):
            model.fit(X.astype(np.float64) * scale, y)
    with pytest.raises(LocoleError, match=r"largest number in X is 1e[+]20"):
        fitted.predict(X / X.max() * np.float64(1e20))
    with pytest.raises(ValueError, match="150 features"):
        fitted.predict(X[:, :7])
    with pytest.raises(ValueError, match="inconsistent"):
        model.fit(X, y[:-1])
    with pytest.raises(NotFittedError):
        model.predict(X)
    with pytest.raises(NotFittedError):
        model.save("nowhere")


# --- scikit-learn's habits ---

# Looks at the environment when scikit-learn is imported: run in a process of its own below.
ARRAY_API = "check_array_api_input"


def check_name(check: partial) -> str:
    return getattr(check, "func", check).__name__


CHECKS = [
    pytest.param(estimator, check, id=f"{name}-{check_name(check)}")
    for name in CLASSES
    for estimator, check in estimator_checks_generator(make(name))
    if check_name(check) != ARRAY_API
]


@pytest.mark.parametrize(("estimator", "check"), CHECKS)
def test_scikit_learns_check(estimator, check):
    check(estimator)


# A check that skips itself raises, so the process fails.
SCRIPT = f"""
import json, sys
from sklearn.utils.estimator_checks import estimator_checks_generator
import locole.baselines

for name, parameters in json.loads(sys.argv[1]).items():
    model = getattr(locole.baselines, name)(**parameters)
    for estimator, check in estimator_checks_generator(model):
        if getattr(check, "func", check).__name__ == "{ARRAY_API}":
            check(estimator)
            print(name)
"""
# scikit-learn 1.7 has that check only for estimators that say that they support all arrays.
HAS_ARRAY_API = any(
    check_name(check) == ARRAY_API for _, check in estimator_checks_generator(make("Centroids"))
)


def test_array_api_inputs():
    parameters = json.dumps({name: SMALL.get(name, {}) for name in CLASSES})
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, parameters],
        env={**os.environ, "SCIPY_ARRAY_API": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == (list(CLASSES) if HAS_ARRAY_API else [])


def test_constructors_only_store(name):
    parameters = make(name).get_params(deep=False)
    assert vars(make(name)) == parameters
    strange = {key: object() for key in parameters}
    assert vars(CLASSES[name](**strange)) == strange


def test_clones_are_unfitted_and_learn_the_same(fitted):
    twin = clone(fitted)
    assert not [key for key in vars(twin) if key.endswith("_")]
    assert_same_bits(answers(twin.fit(X[TRAIN], y[TRAIN])), answers(fitted))


def test_pickles_and_copies_answer_alike_and_learn_apart(fitted):
    expected = answers(fitted)
    twin = pickle.loads(pickle.dumps(fitted))
    assert_same_bits(answers(twin), expected)
    twin.fit(X[:60], y[:60])
    assert_same_bits(answers(fitted), expected)


def test_it_works_in_a_pipeline_and_a_search(model):
    step = type(model).__name__.lower()
    search = GridSearchCV(
        make_pipeline(Normalizer(), model), {"normalizer__norm": ["l1", "l2"]}, cv=2
    )
    search.fit(X[TRAIN], y[TRAIN])
    assert search.score(X[TEST], y[TEST]) > 0.5
    assert type(search.best_estimator_[step]) is type(model)


@pytest.mark.parametrize("n_jobs", [0, 1.5, "two"])
def test_a_number_of_threads_that_cannot_be(name, n_jobs):
    model = make(name, n_jobs=n_jobs)
    if hasattr(model, "n_jobs"):
        with pytest.raises(LocoleError, match="n_jobs must"):
            model.fit(X[TRAIN], y[TRAIN])


@pytest.mark.parametrize("bad", ["no such thing", object()], ids=["text", "object"])
def test_parameters_that_cannot_be_are_named(name, bad):
    """Random states may be left to scikit-learn, whose message is clear, too."""
    accepted = []
    for parameter in inspect.signature(CLASSES[name]).parameters:
        if parameter == "verbose" or (isinstance(bad, str) and (name, parameter) in PATHS):
            continue
        try:
            make(name, **{parameter: bad}).fit(X[TRAIN], y[TRAIN])
        except ValueError as error:
            if parameter in str(error) or parameter == "random_state":
                continue
        accepted.append(parameter)
    assert not accepted


def test_parameters_changed_after_a_fit_crash_nothing(fitted):
    expected = answers(fitted)
    for parameter in fitted.get_params(deep=False):
        for strange in ("no such thing", -1, 2**70, np.nan, None):
            twin = copy.copy(fitted).set_params(**{parameter: strange})
            with suppress(LocoleError):
                assert answers(twin)[0].shape == expected[0].shape


# --- interruption ---


class Interruption:
    """Raise KeyboardInterrupt when a function of a baseline is entered for the nth time."""

    def __init__(self, at=None):
        self.at, self.n_calls = at, 0

    def __enter__(self):
        sys.setprofile(self._called)
        return self

    def __exit__(self, *_):
        sys.setprofile(None)

    def _called(self, frame, event, _):
        if event == "call" and f"locole{os.sep}baselines" in frame.f_code.co_filename:
            self.n_calls += 1
            if self.n_calls == self.at:
                raise KeyboardInterrupt


def test_an_interrupted_fit_leaves_the_old_model(fitted):
    before, expected = dict(vars(fitted)), answers(fitted)
    twin = clone(fitted)
    with Interruption() as watched:
        twin.fit(X[:90, :100], y[:90])
    n_calls = watched.n_calls
    assert n_calls >= 3
    for at in sorted({2, 3, 1 + n_calls // 3, 1 + n_calls // 2, n_calls}):
        with pytest.raises(KeyboardInterrupt), Interruption(at):
            fitted.fit(X[:90, :100], y[:90])
        assert vars(fitted).keys() == before.keys()
        assert all(vars(fitted)[key] is value for key, value in before.items())
        assert_same_bits(answers(fitted), expected)


def test_an_interrupted_first_fit_leaves_nothing(model):
    with pytest.raises(KeyboardInterrupt), Interruption(3):
        model.fit(X[TRAIN], y[TRAIN])
    assert vars(model) == model.get_params(deep=False)


# --- files ---


def test_files_hold_the_model_to_the_bit(fitted, tmp_path):
    fitted.save(tmp_path / "m")
    back = load(tmp_path / "m")
    assert type(back) is type(fitted)
    assert repr(back) == repr(fitted)
    assert_same_bits(answers(back), answers(fitted))
    assert_same_bits(learnt_by(back), learnt_by(fitted))
    back.fit(X[TRAIN], y[TRAIN])
    assert_same_bits(answers(back), answers(fitted))


def test_whatever_fit_leaves_is_listed(fitted):
    known = {*type(fitted)._learnt, *fitted.get_params(deep=False), "n_features_in_"}
    assert set(vars(fitted)) <= known


def test_the_same_model_gives_the_same_files(fitted, tmp_path):
    for folder in ("a", "b"):
        fitted.save(tmp_path / folder)
    files = [sorted((tmp_path / folder).iterdir()) for folder in ("a", "b")]
    assert [f.name for f in files[0]] == [f.name for f in files[1]]
    assert [f.read_bytes() for f in files[0]] == [f.read_bytes() for f in files[1]]


def test_a_hostile_model_is_refused(name, fitted, tmp_path):
    """Kernels trust arrays: nothing that does not fit may come as far as them."""
    accepted = []
    for attribute, value in learnt_by(fitted).items():
        if attribute == "classes_":
            continue
        for what, bad in hostile(value, any_number=(name, attribute) in ANY_NUMBER):
            changed = copy.copy(fitted)
            vars(changed)[attribute] = bad
            write_model(tmp_path / "m", changed)
            try:
                load(tmp_path / "m")
            except ModelFileError:
                continue
            accepted.append(f"{attribute}: {what}")
    assert not accepted


@pytest.mark.parametrize("n_labels", [0, 1, N_CLASSES - 1, N_CLASSES + 1])
def test_labels_that_do_not_fit_are_refused(fitted, n_labels, tmp_path):
    fitted.classes_ = np.arange(n_labels)
    write_model(tmp_path / "m", fitted)
    with pytest.raises(ModelFileError):
        load(tmp_path / "m")


def test_a_lost_attribute_is_noticed(fitted, tmp_path):
    unknown_to_old_files = (
        "multilabel_",
        "marginals_",
        "calibration_",
        "row_codes_",
        "row_starts_",
    )
    for attribute in learnt_by(fitted):
        if attribute in unknown_to_old_files:
            continue
        changed = copy.copy(fitted)
        del vars(changed)[attribute]
        write_model(tmp_path / "m", changed)
        with pytest.raises(ModelFileError, match=r"missing|how many features"):
            load(tmp_path / "m")
