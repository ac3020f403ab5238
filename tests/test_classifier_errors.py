"""Bad input to the classifier: the class of the error, and what to do about it."""

from __future__ import annotations

from datetime import date

import numpy as np
import pandas as pd
import pytest
from problems import prototypes
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge

from locole import LocoleClassifier
from locole.embeddings import Explicit, Kerdock, Nelson
from locole.exceptions import CapacityError, DimensionError, LocoleError, LocoleWarning
from locole.regressors import ElasticNetRegressor

X, y = prototypes()
each_regressor = pytest.mark.parametrize("regressor", ["auto", Ridge()], ids=["own", "ridge"])


def spoilt(value: float) -> np.ndarray:
    bad = X.copy()
    bad[3, 5] = value
    return bad


# --- data ---


@each_regressor
@pytest.mark.parametrize(
    ("bad_X", "bad_y", "part"),
    [
        (X, np.zeros(300), "only one class.*at least two"),
        (X, np.full(300, "a"), "only one class.*'a'.*at least two"),
        (X[:0], y[:0], "0 sample"),
        (X, y[:-1], "300|inconsistent"),
        (X, None, "y"),
        (spoilt(np.nan), y, "NaN"),
        (spoilt(np.inf), y, "infinity"),
        (X, np.where(y == 0, np.nan, y), "NaN"),
        (X, y + 0.5, "Unknown label type: continuous"),
        (X, np.stack([y, y], axis=1), "no indicator of several labels"),
    ],
    ids=["one", "one str", "empty", "length", "none", "nan", "inf", "nan y", "real y", "2-d y"],
)
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")
def test_bad_training_data(regressor, bad_X, bad_y, part):
    with pytest.raises(ValueError, match=part):
        LocoleClassifier(regressor=regressor).fit(bad_X, bad_y)


@pytest.mark.parametrize(
    ("labels", "part"),
    [
        (["a", 7, "b", "c"], "y has both texts and other labels: give labels of one type"),
        (["a", None, "b", "c"], "y has a missing label, None or NaN, in row 1: leave the row out"),
        ([0, 1, float("nan"), 2], "y has a missing label, None or NaN, in row 2"),
        (pd.Series(["a", None, "b", "c"], dtype="string"), "y has a missing label, .* in row 1"),
        (pd.Series([7, 8, None, 9], dtype="Int64"), "y has a missing label, .* in row 2"),
        (
            [date(2020, 1, day) for day in (1, 2, 3, 4)],
            r"labels of type date: .*such as str\(label",
        ),
        ([2**60, 2**60 + 1, 1.0, 2.0], r"labels of 2\^53 and more as floats"),
        ([2**63, -1, 1, 2], r"labels of 2\^53 and more as floats.*one integer type"),
    ],
    ids=[
        "mixed",
        "missing",
        "not a number",
        "text column",
        "number column",
        "dates",
        "floats",
        "wide",
    ],
)
def test_labels_that_numpy_would_change(labels, part):
    with pytest.raises(LocoleError, match=part):
        LocoleClassifier().fit(X[:4], labels)


@pytest.mark.parametrize(
    ("known", "new", "part"),
    [
        ([1, 2], ["7"], "the known labels are whole numbers but y has texts, such as '7': give"),
        (["a", "b"], [7], "the known labels are texts but y has whole numbers, such as 7: give"),
        ([2**60, 2**60 + 1], [1.0], "whole numbers but y has decimal numbers, such as 1.0"),
        ([-1, 1], np.array([2**63], np.uint64), "type int64, which cannot hold all of y"),
    ],
)
def test_labels_keep_their_type(known, new, part):
    classifier = LocoleClassifier().partial_fit(X[:2], known)
    with pytest.raises(LocoleError, match=part):
        classifier.partial_fit(X[2:3], new)
    with pytest.raises(LocoleError, match=part):
        LocoleClassifier().partial_fit(X[:1], new, classes=known)
    assert classifier.classes_.tolist() == known


def test_unsigned_labels_stand_beside_signed_ones():
    known = np.array([2**60, 2**60 + 1])
    classifier = LocoleClassifier().partial_fit(X[:2], known)
    classifier.partial_fit(X[1:3], np.array([2**60 + 1, 2**60 + 2], np.uint64))
    assert classifier.classes_.dtype == np.int64
    assert classifier.classes_.tolist() == [2**60, 2**60 + 1, 2**60 + 2]


def test_an_id_for_a_label_is_a_warning():
    with pytest.warns(LocoleWarning, match="every label has only one row: is y a column of ids"):
        LocoleClassifier(regressor="elastic_net").fit(X, np.arange(len(X)))


@each_regressor
@pytest.mark.parametrize(
    ("bad_X", "part"),
    [
        (X[:, :5], "5 features.*expecting 64"),
        (X[:0], "0 sample"),
        (spoilt(np.nan), "NaN"),
        (X[0], "2D array|1 dim"),
    ],
    ids=["features", "empty", "nan", "1-d"],
)
def test_bad_rows_to_predict(regressor, bad_X, part):
    classifier = LocoleClassifier(regressor=regressor).fit(X, y)
    for method in (classifier.predict, classifier.predict_topk, classifier.decision_function):
        with pytest.raises(ValueError, match=part):
            method(bad_X)


def test_names_that_no_vector_has():
    embedding = Explicit(np.eye(3), labels=["ape", "bee", "cow"])
    labels = np.array(["ape", "bee", "dog"])[y % 3]
    with pytest.raises(LocoleError, match=r"names no vector for class .*dog"):
        LocoleClassifier(embedding).fit(X, labels)
    with pytest.raises(LocoleError, match="names no vector for class"):
        LocoleClassifier(embedding).fit(X, y)


@each_regressor
@pytest.mark.parametrize(
    "weight",
    [-np.ones(300), np.ones(299), np.full(300, np.nan), np.zeros(300), "abc"],
    ids=["negative", "length", "nan", "zero", "text"],
)
def test_bad_weights(regressor, weight):
    with pytest.raises(ValueError, match=r"[Ww]eight|convert"):
        LocoleClassifier(regressor=regressor).fit(X, y, sample_weight=weight)


# --- use before fit ---


@pytest.mark.parametrize("method", ["predict", "predict_topk", "decision_function"])
@each_regressor
def test_unfitted_use(regressor, method):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        getattr(LocoleClassifier(regressor=regressor), method)(X)


@pytest.mark.parametrize("k", [31, 0, -1, True, 1.5, None])
def test_bad_k(k):
    classifier = LocoleClassifier().fit(X, y)
    with pytest.raises(LocoleError, match=r"k=31 is more than the 30 labels|k must be a whole"):
        classifier.predict_topk(X, k=k)


# --- parameters ---


@pytest.mark.parametrize(
    ("parameters", "error", "part"),
    [
        (
            {"embedding": "kerdok"},
            LocoleError,
            r"embedding must be 'auto', .*'kerdock', .* or an Embedding, not 'kerdok'",
        ),
        ({"embedding": 5}, LocoleError, "embedding must be .* or an Embedding, not 5"),
        ({"embedding": Kerdock}, LocoleError, "embedding must be .* or an Embedding"),
        ({"embedding": "nelson", "dim": 15}, DimensionError, "prime .* not 15: take 13 or 17"),
        ({"embedding": "kerdock", "dim": 32}, DimensionError, "not 32: take 16 or 64"),
        ({"embedding": "kerdock", "dim": 4}, CapacityError, "30 labels do not fit .* take dim="),
        ({"embedding": "one_hot", "dim": 29}, CapacityError, "take dim=30"),
        ({"embedding": "kerdock", "dim": 16.0}, LocoleError, "dim must be None or a whole number"),
        (
            {"embedding": "kerdock", "dim": 0},
            LocoleError,
            "dim must be None or a whole number of at least 1",
        ),
        ({"embedding": Kerdock(8, dim=4)}, CapacityError, "30 labels do not fit into Kerdock"),
        ({"embedding": Nelson(2, dim=5)}, CapacityError, "take dim=.* or r=3"),
        ({"embedding": Explicit(np.eye(9))}, CapacityError, "a vector for every label"),
        ({"embedding": Kerdock(8, dim=16), "dim": 64}, LocoleError, "dim is the embedding's own"),
        (
            {"regressor": "ridge"},
            LocoleError,
            "regressor must be 'auto', 'elastic_net', .* not 'ridge'",
        ),
        ({"regressor": 3}, LocoleError, "regressor must be .* or an object with fit and predict"),
        ({"decoder": "fast"}, LocoleError, "decoder must be 'argmax', .* not 'fast'"),
        ({"decoder": "fft"}, LocoleError, "cannot decode OneHot: take 'auto' or 'dense'"),
        (
            {"n_jobs": 0},
            LocoleError,
            "n_jobs must be None, a whole number of at least 1 or .* at most -1, not 0",
        ),
        (
            {"random_state": -1},
            LocoleError,
            "random_state must be None, a whole number from 0 to 4294967295",
        ),
        ({"random_state": "seed"}, LocoleError, "or a RandomState, not 'seed'"),
    ],
    ids=str,
)
def test_bad_parameters(parameters, error, part):
    with pytest.raises(error, match=part):
        LocoleClassifier(**parameters).fit(X, y)


def test_parameters_are_checked_at_fit_only():
    classifier = LocoleClassifier(embedding="kerdok", dim=-3, regressor=3, n_jobs=0)
    assert clone(classifier).get_params()["dim"] == -3


def test_a_regressor_that_returns_nonsense():
    class Nonsense(Ridge):
        def predict(self, X):
            return super().predict(X) * np.nan

    classifier = LocoleClassifier(regressor=Nonsense()).fit(X, y)
    with pytest.raises(LocoleError, match="NaN or infinity: look at the regressor"):
        classifier.predict(X)


# --- a failed fit leaves the model as it was ---

FAILURES = {
    "one class": lambda c: c.fit(X, np.zeros(300)),
    "one class, other features": lambda c: c.fit(X[:, :5], np.zeros(300)),
    "nan": lambda c: c.fit(spoilt(np.nan)[:, :9], y),
    "lengths": lambda c: c.fit(X[:, :5], y[:-1]),
    "labels": lambda c: c.fit(X[:, :5], y + 0.5),
    "weights": lambda c: c.fit(X[:, :5], y, sample_weight=-np.ones(300)),
    "embedding": lambda c: c.set_params(embedding="kerdok").fit(X[:, :5], y),
    "dim": lambda c: c.set_params(embedding="kerdock", dim=4).fit(X[:, :5], y),
    "decoder": lambda c: c.set_params(decoder="gather").fit(X[:, :5], y),
    "regressor": lambda c: c.set_params(regressor=ElasticNetRegressor(l2=-1)).fit(X[:, :5], y),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_a_failed_fit_leaves_the_model(failure):
    classifier = LocoleClassifier("simplex").fit(X, y % 7)
    before = classifier.predict(X), classifier.decision_function(X)
    with pytest.raises(ValueError):  # noqa: PT011 - which one is tested above
        FAILURES[failure](classifier)
    assert classifier.n_features_in_ == 64
    np.testing.assert_array_equal(classifier.predict(X), before[0])
    np.testing.assert_array_equal(classifier.decision_function(X), before[1])
