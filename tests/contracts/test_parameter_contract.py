"""Every estimator declares what its parameters may be, and refuses all else without any data."""

from __future__ import annotations

import math

import numpy as np
import pytest

import locole.baselines
import locole.models
from locole.exceptions import LocoleError, ModelFileError
from locole.io import SavedEstimator
from locole.parameters import COUNT, NOT_NEGATIVE, SEED, check_values


def leaves(kind=SavedEstimator):
    """Classes of the package that no other class of it stands on."""
    below = [found for found in kind.__subclasses__() if found.__module__.startswith("locole.")]
    return {leaf for found in below for leaf in leaves(found)} if below else {kind}


CLASSES = sorted(leaves(), key=lambda kind: kind.__name__)
PARAMETERS = [(kind, name) for kind in CLASSES for name in kind._get_param_names()]
# What other objects have to say is in no table: an estimator of scikit-learn's, for one.
NEEDED = {"RegressorAdapter": {"regressor": locole.baselines.Centroids()}}
# Dicts, whose contents are looked at when they are used.
FREE = {
    ("NetworkScorer", "regressors"),
    ("LocoleClassifier", "class_weight"),
    ("TextClassifier", "label_texts"),
}


def make(kind, **parameters):
    return kind(**{**NEEDED.get(kind.__name__, {}), **parameters})


def test_the_classes_are_found():
    names = {kind.__name__ for kind in CLASSES}
    assert {"LocoleClassifier", "MLPRegressor", "Parabel", "TextFeatures", "Ensemble"} <= names
    assert len(CLASSES) >= 20


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_all_parameters_are_declared_and_defaults_are_allowed(kind):
    assert set(kind._parameter_constraints) == set(kind._get_param_names())
    make(kind)._check_values()


@pytest.mark.parametrize(("kind", "name"), PARAMETERS, ids=lambda x: getattr(x, "__name__", x))
def test_what_is_not_declared_is_refused(kind, name):
    if (kind.__name__, name) in FREE:
        return
    for value in ({"no": "parameter"}, math.nan, b"no"):
        with pytest.raises(LocoleError, match=rf"^{name} must be [^\n]*, not [^\n]*\.$"):
            make(kind, **{name: value}).check_parameters()


@pytest.mark.parametrize(("kind", "name"), PARAMETERS, ids=lambda x: getattr(x, "__name__", x))
def test_a_file_cannot_give_it_either(kind, name):
    if (kind.__name__, name) in FREE or name in kind._unsaved:
        return
    params = {**make(kind).get_params(deep=False), name: {"no": "parameter"}}
    params = {key: value for key, value in params.items() if key not in kind._unsaved}
    with pytest.raises(ModelFileError, match=f"its parameter {name} must be"):
        kind._from_state({"params": params, "learnt": {}})


PASSES = [
    (kind, name) for kind, name in PARAMETERS if name.endswith(("epochs", "passes", "rounds"))
]


@pytest.mark.parametrize(("kind", "name"), PASSES, ids=lambda x: getattr(x, "__name__", x))
def test_no_file_decides_that_learning_never_ends(kind, name):
    with pytest.raises(LocoleError, match=rf"^{name} must be .* to 10000, not 1000000000\.$"):
        make(kind, **{name: 10**9}).check_parameters()
    params = {key: v for key, v in make(kind).get_params(deep=False).items()
              if key not in kind._unsaved}  # fmt: skip
    with pytest.raises(ModelFileError, match=f"its parameter {name} must be"):
        kind._from_state({"params": {**params, name: 10**9}, "learnt": {}})


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3), np.int32(3)])
def test_whole_numbers(value):
    check_values({"x": COUNT}, {"x": value})


@pytest.mark.parametrize("value", [True, np.True_, 0, 3.0, np.float32(3), "3", None, [3], math.nan])
def test_no_whole_numbers(value):
    with pytest.raises(LocoleError, match=r"^x must be a whole number of at least 1, not .*\.$"):
        check_values({"x": COUNT}, {"x": value})


@pytest.mark.parametrize("value", [0, 0.5, np.float32(0.5), np.int64(2), 1e300])
def test_numbers(value):
    check_values({"x": NOT_NEGATIVE}, {"x": value})


@pytest.mark.parametrize("value", [math.nan, np.nan, math.inf, -1e-9, False, "0.5", 1j, np.ones(1)])
def test_no_numbers(value):
    with pytest.raises(LocoleError, match=r"^x must be a number of at least 0, not "):
        check_values({"x": NOT_NEGATIVE}, {"x": value})


@pytest.mark.parametrize("value", [-1, 2**32, "x", None, 1.0])
def test_seeds(value):
    with pytest.raises(LocoleError, match=r"^x must be a whole number from 0 to 4294967295, not "):
        check_values({"x": SEED}, {"x": value})


def test_parameters_of_parts_are_checked():
    from locole import LocoleClassifier
    from locole.regressors import ElasticNetRegressor
    from locole.scoring import ProfileScorer
    from locole.text import TextClassifier

    bad = LocoleClassifier(regressor=ElasticNetRegressor(l2=-1.0))
    for model in (bad, TextClassifier(classifier=bad)):
        with pytest.raises(
            LocoleError, match=r"^l2 must be a number above 0, 'auto' or 'stream', not -1\.0\.$"
        ):
            model.check_parameters()
    with pytest.raises(LocoleError, match="tune must be True or False, not 'yes'"):
        LocoleClassifier(scorers=[ProfileScorer(tune="yes")]).check_parameters()


def test_what_cannot_be_made_is_refused_without_data():
    from locole import LocoleClassifier

    with pytest.raises(LocoleError, match="dim"):
        LocoleClassifier("gold", dim=100).check_parameters()
    with pytest.raises(LocoleError, match="decoder 'fft' cannot decode Gold"):
        LocoleClassifier("gold", decoder="fft").check_parameters()


def test_checking_draws_no_random_numbers():
    from locole import LocoleClassifier

    given, same = np.random.RandomState(0), np.random.RandomState(0)
    LocoleClassifier(random_state=given).check_parameters()
    assert given.randint(1000) == same.randint(1000)
