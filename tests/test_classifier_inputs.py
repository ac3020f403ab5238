"""What can be fed to the classifier, and what it works together with."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from problems import prototypes, words
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.class_weight import compute_sample_weight
from untouched import FORMS as CALLERS_FORMS
from untouched import arrays_of, assert_untouched

from locole import LocoleClassifier, load
from locole.embeddings import Explicit, Kerdock
from locole.exceptions import LocoleError, LocoleWarning, ModelFileError
from locole.regressors import ElasticNetRegressor

X, y = prototypes()
X_words, y_words = words(20, n_samples=150, n_features=90)


# --- features ---


def with_wide_indices(matrix: sp.csr_array) -> sp.csr_array:
    wide = matrix.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    return wide


FORMATS = {
    "dense": lambda m: m.toarray(),
    "fortran": lambda m: np.asfortranarray(m.toarray()),
    "lists": lambda m: m.toarray().tolist(),
    "csr_array": sp.csr_array,
    "csr_matrix": sp.csr_matrix,
    "csc_array": sp.csc_array,
    "csc_matrix": sp.csc_matrix,
    "coo_array": sp.coo_array,
    "coo_matrix": sp.coo_matrix,
    "int64 indices": with_wide_indices,
    "float32": lambda m: m.astype(np.float32),
    "whole numbers": lambda m: m.toarray().astype(np.int64),
    "frame": lambda m: pd.DataFrame(m.toarray()),
}


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize(
    "regressor",
    [ElasticNetRegressor(), ElasticNetRegressor(l1=0.01, max_passes=5), Ridge()],
    ids=["direct", "dual", "ridge"],
)
def test_every_format_gives_the_same_answer(regressor, kind):
    classifier = LocoleClassifier("kerdock", dim=64, regressor=regressor)
    expected = clone(classifier).fit(X_words, y_words)
    given = FORMATS[kind](X_words)
    fitted = classifier.fit(given, y_words)
    np.testing.assert_array_equal(fitted.predict(given), expected.predict(X_words))
    np.testing.assert_allclose(
        fitted.decision_function(given), expected.decision_function(X_words), atol=2e-4
    )


def test_single_precision_is_kept_and_enough():
    single, double = (LocoleClassifier("nelson").fit(X.astype(t), y) for t in ("f4", "f8"))
    np.testing.assert_array_equal(single.predict(X.astype("f4")), double.predict(X))
    np.testing.assert_allclose(single.decision_function(X), double.decision_function(X), atol=1e-4)


MANY, y_many = words(30, n_samples=1_100, n_features=300)
MANY.sum_duplicates()


@pytest.mark.parametrize("form", CALLERS_FORMS)
@pytest.mark.parametrize(
    "parameters",
    [{"nearest": True}, {"regressor": "softmax"}, {"regressor": "elastic_net"}],
    ids=["ensemble", "softmax", "elastic net"],
)
def test_rows_of_the_caller_are_left_as_they_were(parameters, form, tmp_path):
    classifier = LocoleClassifier(**parameters)
    given, labels, weight = CALLERS_FORMS[form](MANY, tmp_path), y_many.copy(), np.ones(1_100)
    before = arrays_of(given)
    found = classifier.fit(given, labels, sample_weight=weight).decision_function(given)
    expected = clone(classifier).fit(MANY, y_many, sample_weight=weight).decision_function(MANY)
    np.testing.assert_array_equal(found, expected)
    classifier.partial_fit(given, labels, sample_weight=weight)
    assert_untouched(given, before)
    np.testing.assert_array_equal(labels, y_many)
    np.testing.assert_array_equal(weight, np.ones(1_100))


# --- labels ---


@pytest.mark.parametrize(
    "labels",
    [
        y,
        -3 * y,
        y.astype(np.uint8),
        y.astype(np.float64),
        y.astype(str),
        np.array([f"label {i}" for i in y], dtype=object),
        y > 14,
    ],
    ids=lambda labels: f"{labels.dtype}",
)
def test_labels_of_every_kind(labels):
    classifier = LocoleClassifier("kerdock", dim=64).fit(X, labels)
    np.testing.assert_array_equal(classifier.classes_, np.unique(labels))
    predicted = classifier.predict(X)
    assert predicted.dtype == labels.dtype
    assert (predicted == labels).mean() > 0.9
    topk, _ = classifier.predict_topk(X, k=2)
    assert topk.dtype == labels.dtype


def test_labels_as_lists_and_series():
    expected = LocoleClassifier().fit(X, y).predict(X)
    for labels in (y.tolist(), pd.Series(y), pd.Categorical(y)):
        np.testing.assert_array_equal(LocoleClassifier().fit(X, labels).predict(X), expected)


@pytest.mark.parametrize("embedding", ["one_hot", "kerdock", "nelson"])
def test_labels_that_occur_once(embedding):
    X_own, _ = prototypes(50, n_samples=50)
    names = np.array([f"name {i:02}" for i in range(50)])
    regressor = ElasticNetRegressor(l2=1e-3)
    classifier = LocoleClassifier(embedding, regressor=regressor).fit(X_own, names)
    np.testing.assert_array_equal(classifier.predict(X_own), names)


# --- sample weights ---


@pytest.mark.parametrize(
    "regressor",
    ["auto", Ridge(), ElasticNetRegressor(l1=0.05, l2=20.0, max_passes=100, tol=0)],
    ids=repr,
)
def test_a_weight_is_a_number_of_copies(regressor):
    weight = np.random.default_rng(0).integers(0, 4, 300)
    weight[:30] = 1
    classifier = LocoleClassifier("kerdock", dim=64, regressor=regressor)
    weighted = clone(classifier).fit(X, y, sample_weight=weight)
    repeated = clone(classifier).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(
        weighted.decision_function(X), repeated.decision_function(X), atol=1e-3
    )
    priors = [model.scorer_.prior_point_ for model in (weighted, repeated)]
    np.testing.assert_allclose(*priors, atol=1e-7)
    np.testing.assert_array_equal(weighted.predict(X), repeated.predict(X))


@pytest.mark.parametrize("regressor", [KNeighborsRegressor(), make_pipeline(Ridge())])
def test_regressors_without_weights_say_so(regressor):
    classifier = LocoleClassifier(regressor=regressor)
    with pytest.raises(LocoleError, match="takes no sample_weight: leave it out"):
        classifier.fit(X, y, sample_weight=np.ones(300))


@pytest.mark.parametrize("kind", ["Int64", "UInt64", "object"])
def test_whole_numbers_of_pandas_stay_whole(kind):
    """scikit-learn makes floats of them, in which neighbours become one label."""
    labels = 2**60 + y.astype(np.int64)
    model = LocoleClassifier("kerdock", dim=64).fit(X, pd.Series(labels, dtype=kind))
    assert model.classes_.dtype == np.int64
    np.testing.assert_array_equal(model.classes_, np.unique(labels))
    expected = LocoleClassifier("kerdock", dim=64).fit(X, labels)
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))
    model.partial_fit(X[:9], pd.Series(labels[:9], dtype=kind))
    model.calibrate(X, pd.Series(labels, dtype=kind))
    bools = LocoleClassifier("kerdock", dim=64).fit(X, pd.Series(y < 20, dtype="boolean"))
    assert bools.classes_.dtype == bool


BY_LABEL = {0: 0.0, 3: 2.5, 7: 0.1}


@pytest.mark.parametrize("class_weight", [BY_LABEL, "balanced"])
@pytest.mark.parametrize("weight", [None, np.linspace(0.5, 2, 300)], ids=["alone", "with weights"])
def test_class_weights_multiply_sample_weights(class_weight, weight):
    labels = np.where(y < 20, y, 3)  # far more rows of label 3
    classifier = LocoleClassifier("kerdock", dim=64, class_weight=class_weight)
    found = classifier.fit(X, labels, sample_weight=weight)
    each = compute_sample_weight(class_weight, labels) * (1.0 if weight is None else weight)
    expected = LocoleClassifier("kerdock", dim=64).fit(X, labels, sample_weight=each)
    np.testing.assert_array_equal(found.decision_function(X), expected.decision_function(X))


def test_class_weights_of_more_rows():
    start = LocoleClassifier("kerdock", dim=64).fit(X, y)
    found = copy.copy(start).set_params(class_weight=BY_LABEL).partial_fit(X[:99], y[:99])
    each = compute_sample_weight(BY_LABEL, y[:99])
    expected = copy.copy(start).partial_fit(X[:99], y[:99], sample_weight=each)
    np.testing.assert_array_equal(found.decision_function(X), expected.decision_function(X))
    with pytest.raises(LocoleError, match="'balanced' needs all rows at once"):
        found.set_params(class_weight="balanced").partial_fit(X, y)


def test_class_weights_of_labels_that_a_batch_or_a_fold_lacks():
    """scikit-learn's function refuses them, and takes the label "7" for the number 7."""
    weights, some = {0: 3.0, 7: 0.1}, y != 7
    model = LocoleClassifier("kerdock", dim=64, class_weight=weights)
    with pytest.warns(LocoleWarning, match="class_weight names labels that no row has, such as 7"):
        found = model.fit(X[some], y[some])
    expected = LocoleClassifier("kerdock", dim=64)
    expected.fit(X[some], y[some], sample_weight=np.where(y[some] == 0, 3.0, 1.0))
    found.partial_fit(X[:99][some[:99]], y[:99][some[:99]])
    expected.partial_fit(
        X[:99][some[:99]],
        y[:99][some[:99]],
        sample_weight=np.where(y[:99][some[:99]] == 0, 3.0, 1.0),
    )
    np.testing.assert_array_equal(found.decision_function(X), expected.decision_function(X))
    digits = LocoleClassifier("kerdock", dim=64, class_weight={"0": 3.0}).fit(X, y.astype(str))
    expected.fit(X, y.astype(str), sample_weight=np.where(y == 0, 3.0, 1.0))
    np.testing.assert_array_equal(digits.decision_function(X), expected.decision_function(X))


@pytest.mark.parametrize("names", [False, True])
def test_class_weights_are_saved(tmp_path, names):
    labels = np.char.add("label ", y.astype(str)) if names else y
    weights = {f"label {label}" if names else label: w for label, w in BY_LABEL.items()}
    model = LocoleClassifier("kerdock", dim=64, class_weight=weights).fit(X, labels)
    model.save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    assert loaded.class_weight == weights
    for each in (model, loaded):
        each.partial_fit(X[:99], labels[:99])
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    model.set_params(class_weight="balanced").save(tmp_path / "m")
    assert load(tmp_path / "m").class_weight == "balanced"
    model.set_params(class_weight={0: 1.0, "a": 2.0})
    with pytest.raises(ModelFileError, match=r"class_weight\.labels cannot be saved"):
        model.save(tmp_path / "m")


@pytest.mark.parametrize(
    "forged", [{}, {"labels": np.arange(3), "weights": np.ones(2)}, {"labels": 1, "weights": 1}]
)
def test_class_weights_of_a_stranger(forged):
    state = LocoleClassifier()._state()
    with pytest.raises(ModelFileError, match="class_weight must be labels and a weight for each"):
        LocoleClassifier._from_state({**state, "params": {"class_weight": forged}})


@pytest.mark.parametrize("bad", ["even", 2.0, [1.0, 2.0], {0: -1.0}, {0: np.nan}, {0: "a"}])
def test_class_weights_that_cannot_be(bad):
    with pytest.raises(LocoleError, match="class_weight must be"):
        LocoleClassifier(class_weight=bad).fit(X, y)


# --- scikit-learn's tools ---


@pytest.mark.parametrize("name", ["regressor__l2", "embedding__dim", "decoder__k"])
def test_parameters_of_a_part_that_is_a_name(name):
    with pytest.raises(LocoleError, match=rf"{name} cannot be set: .*='auto' is a name"):
        LocoleClassifier().set_params(**{name: 1})
    changed = {"regressor": ElasticNetRegressor(), "regressor__l2": 2.0}
    assert LocoleClassifier().set_params(**changed).regressor.l2 == 2.0


def test_the_best_labels_of_a_pipeline():
    pipeline = make_pipeline(StandardScaler(), LocoleClassifier()).fit(X, y)
    labels, _ = pipeline[-1].predict_topk(pipeline[:-1].transform(X), k=3)
    np.testing.assert_array_equal(labels[:, 0], pipeline.predict(X))


def test_in_a_pipeline_with_cross_validation():
    pipeline = make_pipeline(StandardScaler(), LocoleClassifier("gold"))
    assert cross_val_score(pipeline, X, y, cv=3).min() > 0.9


def test_grid_search_over_embedding_and_dim():
    grid = [
        {"embedding": ["rademacher", "gaussian"], "dim": [4, 64]},
        {"embedding": [Kerdock(2, dim=64), "nelson"], "regressor": [Ridge()]},
        {"regressor": [ElasticNetRegressor()], "regressor__l2": [0.1, 1.0]},
    ]
    search = GridSearchCV(LocoleClassifier(), grid, cv=2, error_score="raise").fit(X, y)
    assert len(search.cv_results_["params"]) == 8
    assert search.best_score_ > 0.9
    by_dim = {
        p["dim"]: s
        for p, s in zip(
            search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
        )
        if p.get("embedding") == "gaussian"
    }
    assert by_dim[64] > by_dim[4]


@pytest.mark.parametrize("embedding", ["kerdock", Kerdock(5, dim=16), Explicit(np.eye(30))])
def test_clones_have_the_parameters_and_nothing_learnt(embedding):
    classifier = LocoleClassifier(embedding, regressor=Ridge(), n_jobs=2, random_state=3).fit(X, y)
    copied = clone(classifier)
    assert copied.get_params(deep=False).keys() == classifier.get_params(deep=False).keys()
    assert copied.embedding == embedding
    assert not hasattr(copied, "classes_")
    np.testing.assert_array_equal(copied.fit(X, y).predict(X), classifier.predict(X))


@pytest.mark.parametrize("embedding", ["rademacher", "kerdock", "nelson", "reed_solomon"])
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda c: pickle.loads(pickle.dumps(c))])
def test_copies_of_a_fitted_model_predict_the_same(embedding, copied):
    classifier = LocoleClassifier(embedding, n_jobs=2).fit(X, y)
    classifier.predict(X)
    again = copied(classifier)
    for a, b in zip(again.predict_topk(X, k=3), classifier.predict_topk(X, k=3), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_saved_model_holds_no_vectors():
    small, large = (
        len(pickle.dumps(LocoleClassifier(Kerdock(n, dim=64)).fit(X, y))) for n in (30, 2048)
    )
    assert abs(small - large) < 100
    assert small < 64 * 65 * 8 + 10_000  # coefficients, and little else


# --- data frames ---


def test_frames_give_names_to_features():
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(64)])
    classifier = LocoleClassifier().fit(frame, y)
    assert classifier.feature_names_in_.tolist() == frame.columns.tolist()
    assert classifier.n_features_in_ == 64
    np.testing.assert_array_equal(
        classifier.predict(frame), LocoleClassifier().fit(X, y).predict(X)
    )
    with pytest.raises(ValueError, match="feature names should match"):
        classifier.predict(frame[frame.columns[::-1]])


@pytest.mark.parametrize("regressor", ["auto", Ridge(), make_pipeline(StandardScaler(), Ridge())])
def test_a_pipeline_that_hands_on_frames(regressor):
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(64)])
    scaler = StandardScaler().set_output(transform="pandas")
    pipeline = make_pipeline(scaler, LocoleClassifier("kerdock", regressor=regressor))
    pipeline.fit(frame, pd.Series(y))
    assert pipeline.score(frame, y) > 0.9
    long = pd.concat([frame] * 5, ignore_index=True)
    np.testing.assert_array_equal(pipeline.predict(long), np.tile(pipeline.predict(frame), 5))
    learnt = pipeline[-1] if regressor == "auto" else pipeline[-1].regressor_.regressor_
    assert learnt.feature_names_in_.tolist() == frame.columns.tolist()
