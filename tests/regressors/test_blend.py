"""Sums of regressors' points."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp
from problems import words
from sklearn.base import clone
from sklearn.linear_model import Ridge

from locole import LocoleClassifier, load
from locole.embeddings import Kerdock
from locole.exceptions import LocoleError, ModelFileError
from locole.io import read_model, write_model
from locole.regressors import (
    BlendRegressor,
    ElasticNetRegressor,
    RegressorAdapter,
    SoftmaxRegressor,
)
from locole.targets import Targets

X, y = words()
TARGETS = Targets(y, Kerdock(40, dim=64))


def parts():
    return [ElasticNetRegressor(l2=1.0), SoftmaxRegressor(epochs=1)]


@pytest.fixture
def blend():
    return BlendRegressor(parts(), [2.0, 0.25]).fit(X, TARGETS)


def test_points_are_the_weighted_sum(blend):
    first, second = (part.fit(X, TARGETS).predict(X) for part in parts())
    np.testing.assert_allclose(blend.predict(X), 2 * first + second / 4, rtol=1e-6, atol=1e-6)
    assert blend.n_outputs_ == 64
    assert blend.n_features_in_ == 300


def test_one_part_of_weight_one_is_that_part():
    alone = ElasticNetRegressor(l2=1.0).fit(X, TARGETS)
    np.testing.assert_array_equal(BlendRegressor([alone], [1.0]).predict(X), alone.predict(X))


def test_parts_in_single_precision_stay_in_it():
    part = SoftmaxRegressor(epochs=1).fit(X, TARGETS)
    assert BlendRegressor([part, part], [0.3, 0.7]).predict(X).dtype == np.float32


def test_every_part_learns_more(blend):
    expected = [part.fit(X, TARGETS).partial_fit(X[:50], Targets(y[:50], TARGETS.embedding))
                for part in parts()]  # fmt: skip
    old = list(blend.parts)
    before = blend.predict(X)
    blend.partial_fit(X[:50], Targets(y[:50], TARGETS.embedding))
    for part, other in zip(blend.parts, expected, strict=True):
        np.testing.assert_array_equal(part.predict(X), other.predict(X))
    # the parts it had are as they were
    np.testing.assert_array_equal(BlendRegressor(old, [2.0, 0.25]).predict(X), before)


def test_a_part_that_cannot_learn_more_is_named():
    class Fixed(SoftmaxRegressor):
        partial_fit = property()  # as if there were none

    blend = BlendRegressor([ElasticNetRegressor(l2=1.0), Fixed(epochs=1)], [1.0, 1.0])
    blend.fit(X, TARGETS)
    before = blend.predict(X)
    with pytest.raises(LocoleError, match="Fixed cannot learn more rows: fit again"):
        blend.partial_fit(X, TARGETS)
    np.testing.assert_array_equal(blend.predict(X), before)
    adapted = BlendRegressor([RegressorAdapter(Ridge())], [1.0]).fit(X, TARGETS)
    with pytest.raises(LocoleError, match="Ridge cannot learn more rows"):
        adapted.partial_fit(X, TARGETS)


def test_the_parts_given_are_not_the_ones_fitted():
    given = parts()
    BlendRegressor(given, [1.0, 1.0]).fit(X, TARGETS)
    assert not any(hasattr(part, "n_outputs_") for part in given)


def test_in_a_classifier(tmp_path):
    """Adding points adds scores: the classifier needs to know nothing of it."""
    classifier = LocoleClassifier("kerdock", dim=64, regressor=BlendRegressor(parts(), [1.0, 0.1]))
    classifier.fit(X, y)
    scores = classifier.decision_function(X)
    by_part = [
        LocoleClassifier("kerdock", dim=64, regressor=part).fit(X, y).decision_function(X)
        for part in parts()
    ]
    np.testing.assert_allclose(scores, by_part[0] + by_part[1] / 10, atol=1e-5)
    assert repr(clone(classifier)) == repr(classifier)
    classifier.save(tmp_path / "m")
    np.testing.assert_array_equal(load(tmp_path / "m").decision_function(X), scores)


# --- features that count differently ---

FACTORS = np.linspace(0.1, 2, X.shape[1], dtype=np.float32)


def test_features_are_multiplied_before_the_parts_see_them(tmp_path):
    weighed = BlendRegressor(parts(), [2.0, 0.25], feature_weights=FACTORS).fit(X, TARGETS)
    scaled = X @ sp.dia_array((FACTORS[None], [0]), shape=(300, 300))
    plain = BlendRegressor(parts(), [2.0, 0.25]).fit(sp.csr_array(scaled), TARGETS)
    np.testing.assert_allclose(weighed.predict(X), plain.predict(scaled), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(weighed.predict(X.toarray()), weighed.predict(X))
    some = Targets(y[:50], TARGETS.embedding)
    weighed.partial_fit(X[:50], some)
    plain.partial_fit(scaled[:50], some)
    np.testing.assert_allclose(weighed.predict(X), plain.predict(scaled), rtol=1e-5, atol=1e-5)
    write_model(tmp_path / "m", weighed)
    np.testing.assert_array_equal(read_model(tmp_path / "m").predict(X), weighed.predict(X))


def test_x_of_another_width_gets_the_parts_own_message():
    weighed = BlendRegressor(parts(), [2.0, 0.25], feature_weights=FACTORS).fit(X, TARGETS)
    with pytest.raises(ValueError, match="200 features"):
        weighed.predict(X[:, :200])


@pytest.mark.parametrize(
    "factors",
    [FACTORS[:-1], FACTORS.astype(float), FACTORS * np.float32(np.nan), "ab", [1.0]],
    ids=["short", "double", "nan", "text", "list"],
)
def test_files_with_other_factors_are_refused(blend, factors, tmp_path):
    blend.feature_weights = factors
    write_model(tmp_path / "m", blend)
    with pytest.raises(ModelFileError, match="do not fit together"):
        read_model(tmp_path / "m")


# --- files that lie ---


@pytest.mark.parametrize(
    "change",
    [
        {"weights": [1.0]},
        {"weights": [1.0, np.nan]},
        {"weights": [1.0, np.inf]},
        {"weights": [1, 2]},
        {"weights": "ab"},
        {"weights": {"a": 1.0, "b": 2.0}},
        {"parts": []},
        {"parts": 3},
        {"parts": [1, 2]},
        {"parts": [], "weights": []},
    ],
    ids=json.dumps,
)
def test_parts_and_weights_that_do_not_fit_are_refused(blend, change, tmp_path):
    for name, value in change.items():
        setattr(blend, name, value)
    write_model(tmp_path / "m", blend)
    with pytest.raises(ModelFileError, match=r"do not fit together|cannot be made"):
        read_model(tmp_path / "m")


def test_parts_of_different_shapes_are_refused(tmp_path):
    one = ElasticNetRegressor(l2=1.0).fit(X, TARGETS)
    for other in (
        ElasticNetRegressor(l2=1.0).fit(X, Targets(y, Kerdock(40, dim=16))),
        ElasticNetRegressor(l2=1.0).fit(X[:, :200], TARGETS),
        ElasticNetRegressor(l2=1.0),
    ):
        write_model(tmp_path / "m", BlendRegressor([one, other], [1.0, 1.0]))
        with pytest.raises(ModelFileError):
            read_model(tmp_path / "m")
