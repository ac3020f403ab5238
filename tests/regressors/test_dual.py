"""The dual solver: its gap, its stopping rule, its start from given weights."""

import numpy as np
import pytest
import scipy.sparse as sp

from locole.embeddings import Kerdock, Rademacher
from locole.exceptions import LocoleError
from locole.regressors import ElasticNetRegressor
from locole.regressors.elastic_net import RECIPES
from locole.targets import Targets

RNG = np.random.default_rng(0)
X = sp.random_array((700, 400), density=0.05, rng=RNG, format="csr").astype(np.float32)
Y = (X @ RNG.normal(size=(400, 70)) + 0.1 * RNG.normal(size=(700, 70))).astype(np.float32)


def objective(model: ElasticNetRegressor, l1: float, l2: float) -> float:
    W = model.coef_.T.toarray() if sp.issparse(model.coef_.T) else model.coef_.T
    return float(np.square(X @ W - Y).sum() + l1 * np.abs(W).sum() + l2 * np.square(W).sum())


@pytest.mark.parametrize(("l1", "l2"), [(0.0, 1.0), (0.0, 0.1), (0.3, 0.5)])
def test_the_gap_falls_and_bounds_the_distance_to_the_optimum(l1, l2):
    models = [
        ElasticNetRegressor(l1=l1, l2=l2, max_passes=p, tol=0).fit(X, Y) for p in (4, 16, 400)
    ]
    best = objective(models[-1], l1, l2)
    norm = float(np.square(Y).sum())
    gaps = [record["gap"] for record in models[1].history_]
    assert len(gaps) == 16
    assert all(gap >= 0 for gap in gaps)
    assert gaps == sorted(gaps, reverse=True)
    for model in models[:2]:
        # The gap is met on the way: before most of a pass, so above the gap at its end.
        assert objective(model, l1, l2) - best <= model.history_[-1]["gap"] * norm + 1e-3


def test_the_gap_is_the_fenchel_young_sum():
    """Σ r² at the start of the first pass is ‖Y‖²: the objective at zero minus a dual of zero."""
    tiny = sp.csr_array(np.zeros((700, 400), dtype=np.float32))
    model = ElasticNetRegressor(max_passes=1).fit(tiny, Y)
    assert model.history_[0]["gap"] == pytest.approx(1.0, rel=1e-5)


def test_it_stops_when_the_gap_is_small():
    model = ElasticNetRegressor(l2=1.0, tol=1e-2, max_passes=100).fit(X, Y)
    assert len(model.history_) < 100
    assert model.history_[-1]["gap"] <= 1e-2
    assert model.history_[-1]["cpu_s"] >= 0


def test_a_second_part_improves_on_the_first():
    first = ElasticNetRegressor(l2=0.5, max_passes=20).fit(X[:350], Y[:350])
    before = objective(first, 0, 0.5)
    both = first.partial_fit(X[350:], Y[350:])
    assert objective(both, 0, 0.5) < before
    whole = ElasticNetRegressor(l2=0.5, max_passes=200, tol=0).fit(X, Y)
    # Not nearer: the penalty on moves, which keeps new rows from undoing old ones, also slows them.
    assert objective(both, 0, 0.5) <= 2 * objective(whole, 0, 0.5)


@pytest.mark.parametrize("l1", [0.0, 0.05])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_nothing_new_changes_nothing(l1, fit_intercept):
    """Rows without features, whose targets are zero, leave all weights as they were."""
    model = ElasticNetRegressor(l1=l1, max_passes=5, fit_intercept=fit_intercept).fit(X, Y)
    before = model.predict(X)
    empty = sp.csr_array((3, 400), dtype=np.float32)
    model.partial_fit(empty, model.predict(empty))
    np.testing.assert_allclose(model.predict(X), before, atol=1e-4)


def test_partial_fit_first_is_fit():
    """But for the penalty, which the first rows of a stream do not choose."""
    for first, given in ((0.7, 0.7), ("stream", "auto"), ("stream", "stream")):
        a = ElasticNetRegressor(l2=first, max_passes=3).fit(X, Y)
        b = ElasticNetRegressor(l2=given, max_passes=3).partial_fit(X, Y)
        np.testing.assert_array_equal(a.coef_.T, b.coef_.T)
    assert a.l2_ == pytest.approx(0.2 * float(np.square(X.toarray()).sum(axis=1).mean()))
    assert a.l2_reason_ == "0.2 · mean ‖x‖² (first rows of a stream)"


def test_partial_fit_refuses_another_number_of_outputs():
    model = ElasticNetRegressor(max_passes=1).fit(X, Y)
    with pytest.raises(LocoleError, match="5 outputs, the model 70"):
        model.partial_fit(X, Y[:, :5])


@pytest.mark.parametrize("name", RECIPES)
def test_the_papers_recipes(name):
    y = RNG.integers(50, size=700)
    model = ElasticNetRegressor(recipe=name).fit(X, Targets(y, Rademacher(50, dim=64)))
    assert sp.issparse(model.coef_)
    assert len(model.history_) <= RECIPES[name]["max_passes"]
    by_hand = ElasticNetRegressor(**RECIPES[name]).fit(X, Targets(y, Rademacher(50, dim=64)))
    np.testing.assert_array_equal(model.coef_.T.toarray(), by_hand.coef_.T.toarray())


def test_sparse_weights_predict_what_dense_ones_do():
    model = ElasticNetRegressor(l1=2.0, l2=0.1, max_passes=5).fit(X, Y)
    assert model.coef_.T.nnz < 0.9 * 400 * 70
    np.testing.assert_allclose(model.predict(X), X @ model.coef_.T.toarray(), atol=1e-4)


def test_index_types_and_formats_give_the_same_bits():
    y = RNG.integers(50, size=700)
    targets = Targets(y, Kerdock(50, dim=64))
    wide = X.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    models = [
        ElasticNetRegressor(max_passes=3).fit(form, targets)
        for form in (X, wide, X.tocsc(), X.toarray())
    ]
    for other in models[1:]:
        np.testing.assert_array_equal(models[0].coef_.T, other.coef_.T)


def test_progress_when_verbose(monkeypatch, capsys):
    monkeypatch.setattr("locole.parallel.progress._PATIENCE_S", -1.0)
    ElasticNetRegressor(max_passes=1, verbose=1).fit(X, Y)
    assert "elastic net: 2/2 (100%)" in capsys.readouterr().err
    ElasticNetRegressor(max_passes=1).fit(X, Y)
    assert capsys.readouterr().err == ""


def test_the_chosen_penalty_is_near_the_best():
    """Among penalties from 1e-4 to 10 the chosen one is within a few percent of the best."""
    held, kept = slice(0, 200), slice(200, 700)
    model = ElasticNetRegressor(max_passes=50).fit(X[kept], Y[kept])
    assert "validation rows" in model.l2_reason_
    error = np.square(model.predict(X[held]) - Y[held]).mean()
    others = [
        np.square(
            ElasticNetRegressor(l2=l2, max_passes=50).fit(X[kept], Y[kept]).predict(X[held])
            - Y[held]
        ).mean()
        for l2 in np.geomspace(1e-4, 10, 11)
    ]
    assert error <= 1.1 * min(others)


def test_a_given_penalty_is_kept():
    model = ElasticNetRegressor(l2=0.7, max_passes=1).fit(X, Y)
    assert model.l2_ == 0.7
    assert model.l2_reason_ == "as given"


def test_the_dual_objective_is_a_lower_bound():
    model = ElasticNetRegressor(l2=0.5, max_passes=300, tol=1e-9).fit(X, Y)
    norm = float(np.square(Y).sum())
    values = [record["objective"] for record in model.history_]
    assert values == sorted(values)
    assert values[-1] * norm == pytest.approx(objective(model, 0, 0.5), rel=1e-3)
    assert all(record["examples_per_s"] > 0 for record in model.history_)


@pytest.mark.parametrize(("storage", "error"), [("float16", 1e-2), ("int8", 0.1), ("int4", 1.5)])
@pytest.mark.parametrize("n_features", [400, 20])
def test_weights_in_fewer_bits(storage, error, n_features):
    part = sp.csr_array(X[:, :n_features])
    full = ElasticNetRegressor(l2=0.5, max_passes=5).fit(part, Y)
    small = ElasticNetRegressor(l2=0.5, max_passes=5, storage=storage).fit(part, Y)
    scale = np.abs(full.predict(part)).max()
    np.testing.assert_allclose(small.predict(part), full.predict(part), atol=error * scale)
    np.testing.assert_allclose(small.predict(part), part @ small.coef_.T, atol=1e-4 * scale)
    small.partial_fit(part, Y)
    assert small.coef_.T.shape == (n_features, 70)


def test_unknown_storage():
    with pytest.raises(
        LocoleError, match="storage must be 'float16', 'float32', 'int4' or 'int8', not 'float8'"
    ):
        ElasticNetRegressor(storage="float8").fit(X, Y)
