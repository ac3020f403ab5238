"""scikit-learn's regressors behind our contract."""

from __future__ import annotations

import numpy as np
import pytest
from problems import prototypes
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import MultiTaskElasticNet, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from locole.embeddings import Kerdock, Nelson
from locole.exceptions import LocoleError
from locole.regressors import RegressorAdapter
from locole.regressors.base import ArrayTargets, as_targets
from locole.targets import Targets

X, y = prototypes()


@pytest.mark.parametrize(
    "regressor",
    [
        Ridge(),
        KNeighborsRegressor(),
        MultiTaskElasticNet(alpha=0.01),
        make_pipeline(StandardScaler(), Ridge()),
    ],
    ids=repr,
)
@pytest.mark.parametrize("embedding", [Kerdock(30, dim=64), Nelson(30, dim=31)], ids=repr)
def test_the_regressor_sees_the_targets(regressor, embedding):
    adapter = RegressorAdapter(regressor).fit(X, Targets(y, embedding))
    expected = clone(regressor).fit(X, embedding.real_rows(y)).predict(X)
    np.testing.assert_array_equal(adapter.predict(X), expected)
    assert adapter.predict(X).shape == (300, embedding.real_dim)


def test_the_regressor_given_is_not_the_one_fitted():
    regressor = Ridge()
    RegressorAdapter(regressor).fit(X, np.ones((300, 2)))
    with pytest.raises(NotFittedError):
        check_is_fitted(regressor)


def test_one_output_stays_two_dimensional():
    adapter = RegressorAdapter(Ridge()).fit(X, y)
    assert adapter.predict(X).shape == (300, 1)


def test_weights_reach_the_regressor():
    weight = np.random.default_rng(0).random(300)
    Y = Kerdock(30, dim=64).real_rows(y)
    adapter = RegressorAdapter(Ridge()).fit(X, Y, sample_weight=weight)
    expected = Ridge().fit(X, Y, sample_weight=weight)
    np.testing.assert_array_equal(adapter.predict(X), expected.predict(X))


def test_a_regressor_without_weights_is_named():
    with pytest.raises(LocoleError, match="KNeighborsRegressor takes no sample_weight: leave it"):
        RegressorAdapter(KNeighborsRegressor()).fit(X, y, sample_weight=np.ones(300))


class Listing(BaseEstimator):
    """A regressor that answers in plain lists."""

    def fit(self, X, Y):
        self.mean_ = Y.mean(axis=0).tolist()
        return self

    def predict(self, X):
        return [self.mean_ for _ in X]


def test_answers_in_lists_become_arrays():
    predicted = RegressorAdapter(Listing()).fit(X, np.eye(300)[:, :3]).predict(X[:4])
    np.testing.assert_allclose(predicted, np.full((4, 3), 1 / 300))


# --- what counts as targets ---


def test_arrays_become_targets():
    Y = np.arange(12.0).reshape(4, 3)
    targets = as_targets(Y)
    assert isinstance(targets, ArrayTargets)
    assert targets.shape == (4, 3)
    np.testing.assert_array_equal(targets.rows(slice(1, 3)), Y[1:3])
    np.testing.assert_array_equal(targets.table(1, 3)[targets.codes], Y[:, 1:3])
    assert as_targets(targets) is targets
    assert as_targets([1, 2, 3]).shape == (3, 1)
    assert as_targets([1, 2, 3]).rows(slice(None)).dtype == np.float64
    assert as_targets(Y.astype(np.float32)).rows(slice(None)).dtype == np.float32


@pytest.mark.parametrize("bad", [["a", "b"], np.ones((2, 2, 2)), [1j, 2j], np.array(3.0)])
def test_what_are_no_targets(bad):
    with pytest.raises(LocoleError, match="targets must be numbers: one row for each sample"):
        as_targets(bad)
