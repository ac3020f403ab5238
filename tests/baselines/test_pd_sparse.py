"""PD-Sparse: its optimum against other solvers, its gap, its parts."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from problems import prototypes, words
from scipy.optimize import minimize
from sklearn.svm import LinearSVC

from locole.baselines import PDSparse
from locole.baselines.ascent import Ascent, sampled
from locole.baselines.pd_sparse import _parts, hold_out, one_pass
from locole.exceptions import LocoleError
from locole.kernels.pd_sparse import project_block

RNG = np.random.default_rng(0)
X_WORDS, Y_WORDS = words(n_classes=12, n_samples=150, n_features=60)
X_WORDS = sp.csr_array(X_WORDS / np.sqrt(7), dtype=np.float32)
EXACT = {"validation_fraction": 0, "tol": 1e-5, "max_passes": 1000, "refit_passes": 0}


def objective(W, X, y, l1, cost):
    """The primal, row by row as in the formula."""
    loss = 0.0
    for x, label in zip(np.asarray(X.todense() if sp.issparse(X) else X), y, strict=True):
        scores = x @ W
        rival = np.delete(scores, label).max()
        loss += max(0.0, 1 + rival - scores[label])
    return 0.5 * (W**2).sum() + l1 * np.abs(W).sum() + cost * loss


def smallest_objective(X, y, n_classes, l1, cost):
    """The same as a quadratic program: W = P − Q, and a slack for each row."""
    n, D = X.shape
    size = D * n_classes

    def split(z):
        return z[:size].reshape(D, n_classes), z[size : 2 * size].reshape(D, n_classes)

    def value(z):
        P, Q = split(z)
        slope = P - Q
        gradient = np.concatenate([(slope + l1).ravel(), (l1 - slope).ravel(), np.full(n, cost)])
        return 0.5 * (slope**2).sum() + l1 * (P + Q).sum() + cost * z[2 * size :].sum(), gradient

    A, b = [], []
    for i in range(n):
        for k in set(range(n_classes)) - {int(y[i])}:
            direction = np.zeros((D, n_classes))
            direction[:, y[i]], direction[:, k] = X[i], -X[i]
            slack = np.zeros(n)
            slack[i] = 1
            A.append(np.concatenate([direction.ravel(), -direction.ravel(), slack]))
            b.append(1.0)
    A, b = np.array(A), np.array(b)
    start = np.concatenate([np.zeros(2 * size), np.ones(n)])
    found = minimize(
        value,
        start,
        jac=True,
        bounds=[(0, None)] * start.size,
        constraints={"type": "ineq", "fun": lambda z: A @ z - b, "jac": lambda z: A},
        method="SLSQP",
        options={"maxiter": 300, "ftol": 1e-9},
    )
    assert found.success
    return found.fun


@pytest.mark.parametrize(("l1", "cost"), [(0.0, 1.0), (0.1, 1.0), (0.4, 0.3), (0.05, 3.0)])
def test_the_optimum_is_that_of_a_quadratic_program(l1, cost):
    X, y = RNG.normal(size=(12, 4)).astype(np.float32), np.arange(12) % 3
    model = PDSparse(l1=l1, cost=cost, **EXACT).fit(X, y)
    ours = objective(model.coef_.T.toarray().astype(float), X, y, l1, cost)
    assert ours == pytest.approx(smallest_objective(X, y, 3, l1, cost), rel=2e-4)


# scikit-learn 1.7 takes the number of iterations from memory that liblinear does not write here.
@pytest.mark.filterwarnings("ignore:Liblinear failed to converge")
def test_without_l1_it_is_the_machine_of_crammer_and_singer():
    other = LinearSVC(
        multi_class="crammer_singer", fit_intercept=False, C=0.5, tol=1e-8, max_iter=100_000
    ).fit(X_WORDS.toarray(), Y_WORDS)
    model = PDSparse(l1=0, cost=0.5, **EXACT).fit(X_WORDS, Y_WORDS)
    np.testing.assert_allclose(model.coef_.T.toarray(), other.coef_.T, atol=2e-3)


@pytest.mark.parametrize("n_candidates", [1, 4, 100])
def test_the_gap_is_none_and_the_dual_a_lower_bound(n_candidates):
    model = PDSparse(l1=0.05, n_candidates=n_candidates, **EXACT).fit(X_WORDS, Y_WORDS)
    gaps = np.array([record["gap"] for record in model.history_])
    values = np.array([record["objective"] for record in model.history_])
    assert (gaps >= -1e-7).all()
    assert gaps[-1] <= 1e-5
    assert gaps[0] > 100 * gaps[len(gaps) // 2] > 0
    assert (np.diff(values) >= -1e-6).all()
    primal = objective(model.coef_.T.toarray().astype(float), X_WORDS, Y_WORDS, 0.05, 1.0)
    assert values[-1] * 150 == pytest.approx(primal, rel=1e-4)
    assert values[-1] * 150 <= primal + 1e-4


def test_a_gap_that_was_met_bounds_the_distance_to_the_optimum():
    """It is met on the way, before most of a pass, so it is above the gap at the end."""
    best = PDSparse(**EXACT).fit(X_WORDS, Y_WORDS)
    lowest = objective(best.coef_.T.toarray().astype(float), X_WORDS, Y_WORDS, 0.1, 1.0)
    for max_passes in (2, 5, 10):
        settings = {**EXACT, "max_passes": max_passes, "n_candidates": 11}
        model = PDSparse(**settings).fit(X_WORDS, Y_WORDS)
        reached = objective(model.coef_.T.toarray().astype(float), X_WORDS, Y_WORDS, 0.1, 1.0)
        assert -1e-3 <= reached - lowest <= model.history_[-1]["gap"] * 150 + 1e-3


def test_a_refit_is_the_optimum_without_l1_over_the_same_weights():
    before = PDSparse(l1=0.2, **EXACT).fit(X_WORDS, Y_WORDS)
    after = PDSparse(l1=0.2, **{**EXACT, "refit_passes": 150}).fit(X_WORDS, Y_WORDS)
    old, new = (model.coef_.T.toarray().astype(float) for model in (before, after))
    assert not new[old == 0].any()
    reached = objective(new, X_WORDS, Y_WORDS, 0, 1.0)
    assert reached < 0.97 * objective(old, X_WORDS, Y_WORDS, 0, 1.0)
    # The dual of this problem, Σβ − ½‖V‖² over the same places, is a lower bound, and is met.
    assert after.history_[-1]["objective"] * 150 == pytest.approx(reached, rel=1e-3)
    everywhere = PDSparse(l1=0, **EXACT).fit(X_WORDS, Y_WORDS).coef_.T.toarray().astype(float)
    assert objective(everywhere, X_WORDS, Y_WORDS, 0, 1.0) <= reached


def test_larger_penalties_give_fewer_weights():
    counts = [
        PDSparse(l1=l1, max_passes=50).fit(X_WORDS, Y_WORDS).coef_.T.nnz for l1 in (0, 0.1, 0.3, 50)
    ]
    assert counts == sorted(counts, reverse=True)
    assert counts[1] < 0.8 * counts[0]
    assert counts[-1] == 0
    nothing = PDSparse(l1=50).fit(X_WORDS, Y_WORDS)
    assert (nothing.predict(X_WORDS) == nothing.classes_[0]).all()


def test_a_searched_part_of_the_features_leads_to_the_same_optimum():
    whole = PDSparse(**EXACT).fit(X_WORDS, Y_WORDS)
    part = PDSparse(search_fraction=0.3, **EXACT).fit(X_WORDS, Y_WORDS)
    np.testing.assert_allclose(part.coef_.T.toarray(), whole.coef_.T.toarray(), atol=5e-3)


def test_draws_of_features_have_the_row_as_their_mean():
    rows = np.array([[0, 3, -1, 0], [0, 0, 0, 0], [2, 0, 0, 0.5]], dtype=np.float32)
    X = sp.csr_array(np.tile(rows, (4000, 1)))
    draws = sampled(X, 0.5, np.random.default_rng(0))
    np.testing.assert_array_equal(draws.indptr[:4], [0, 1, 1, 2])
    means = draws.toarray().reshape(4000, 3, 4).mean(axis=0)
    np.testing.assert_allclose(means, rows, atol=0.1)


def test_weights_are_those_of_the_dual_variables():
    """Tables that grow and move hold what a product of matrices gives."""
    solver = Ascent(
        X_WORDS, Y_WORDS, 12, l1=0.05, cost=1.0, n_candidates=5, search_fraction=1.0, seed=0,
        n_jobs=None,
    )  # fmt: skip
    solver.tables[1] = 2
    solver.tables[0] = 4 * np.arange(12)
    solver.used[0], solver.pool = 48, np.full(2 * 48, -1, dtype=np.int32)
    rng = np.random.default_rng(0)
    for number in range(3):
        one_pass(solver, rng.permutation(150), rng, is_first=number == 0)
    alpha = np.zeros((150, 12))
    for i in range(150):
        part = slice(solver.heads[i], solver.heads[i] + solver.counts[i])
        assert (solver.betas[part] > 0).all()
        assert solver.betas[part].sum() <= 1 + 1e-12
        assert Y_WORDS[i] not in solver.rivals[part]
        alpha[i, solver.rivals[part]] = -solver.betas[part]
        alpha[i, Y_WORDS[i]] = solver.betas[part].sum()
    V = X_WORDS.T @ alpha
    expected = V - np.clip(V, -0.05, 0.05)
    weights = solver.weights()
    W = sp.csr_array(weights.by_feature[::-1], shape=(60, 12))
    np.testing.assert_allclose(W.toarray(), expected, atol=1e-6)
    assert weights.squares == pytest.approx((expected**2).sum(), rel=1e-5)
    assert solver.sums[1] == pytest.approx(alpha.max(axis=1).sum(), rel=1e-9)
    assert solver.tables[2].sum() <= (1 << solver.tables[1]).sum() <= solver.pool.size // 2


@settings(max_examples=60, deadline=None)
@given(
    arrays(np.float64, st.integers(1, 6), elements=st.floats(-3, 3)),
    st.floats(0, 2),
    st.floats(0.1, 2),
)
def test_a_block_is_projected(wished, held, budget):
    """No direction to a corner of the set leads nearer to what is wished for."""
    b = np.empty(wished.size)
    project_block(wished, held, budget, np.empty(wished.size, dtype=np.int64), b)
    assert (b >= 0).all()
    assert b.sum() <= budget * (1 + 1e-9) + 1e-9
    slope = 2 * (b - wished) + 2 * (b.sum() - held)
    corners = np.vstack([np.zeros(wished.size), budget * np.eye(wished.size)])
    # The first-order condition of a convex problem, which is also enough.
    assert (slope @ b <= corners @ slope + 1e-7).all()


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 99), st.integers(1, 500), st.floats(0, 0.99))
def test_rows_held_out_leave_every_label_one(seed, n_labels, fraction):
    rng = np.random.default_rng(seed)
    codes = np.unique(rng.integers(n_labels, size=400), return_inverse=True)[1]
    held = hold_out(codes, fraction, rng)
    assert held.size == 0 or 100 <= held.size <= fraction * codes.size
    assert (np.diff(held) > 0).all()
    left = np.delete(codes, held)
    assert np.unique(left).size == np.unique(codes).size


@given(st.integers(0, 5000), st.booleans())
def test_parts_of_a_pass_are_all_of_it(n_rows, is_first):
    parts = _parts(n_rows, is_first=is_first)
    assert [i for part in parts for i in range(part.start, part.stop)] == list(range(n_rows))
    assert len(parts) <= 25


def test_it_stops_when_accuracy_no_longer_rises():
    X, y = prototypes(n_classes=20, n_samples=1500)
    model = PDSparse(tol=0, patience=2, refit_passes=1).fit(X, y)
    seen = [record["accuracy"] for record in model.history_ if "accuracy" in record]
    assert seen[-1] <= max(seen[:-2])
    # Two passes with the validation rows, one without the penalty.
    assert len(model.history_) == len(seen) + 3
    assert np.diff([record["cpu_s"] for record in model.history_]).min() >= 0


def test_few_rows_are_not_held_out():
    model = PDSparse(max_passes=3, tol=0, refit_passes=0).fit(X_WORDS, Y_WORDS)
    assert len(model.history_) == 3
    assert not any("accuracy" in record for record in model.history_)


@pytest.mark.parametrize("scale", [1e-14, 1e-6, 1e6, 1e14])
def test_tiny_and_huge_rows(scale):
    X = sp.csr_array(X_WORDS * np.float32(scale))
    model = PDSparse(l1=0, max_passes=3).fit(X, Y_WORDS)
    _, scores = model.predict_topk(X, k=12)
    assert np.isfinite(scores).all()
    if scale > 1:
        assert model.score(X, Y_WORDS) > 0.9


def test_progress_when_verbose(monkeypatch, capsys):
    monkeypatch.setattr("locole.parallel.progress._PATIENCE_S", -1.0)
    PDSparse(max_passes=2, verbose=1).fit(X_WORDS, Y_WORDS)
    assert "PD-Sparse" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"l1": -1}, "l1 must be a number of at least 0, not -1"),
        ({"l1": "much"}, "l1 must be a number"),
        ({"l1": np.nan}, "l1 must be a number"),
        ({"cost": 0}, "cost must be a number above 0, not 0"),
        ({"cost": np.inf}, "cost must be a number"),
        ({"tol": True}, "tol must be a number"),
        ({"max_passes": 0}, "max_passes must be a whole number from 1 to 10000"),
        ({"n_candidates": 1.5}, "n_candidates must be a whole number"),
        ({"patience": None}, "patience must be a whole number"),
        ({"refit_passes": -1}, "refit_passes must be a whole number from 0 to 10000"),
        ({"random_state": -1}, "random_state must be a whole number from 0 to 4294967295"),
        ({"search_fraction": 0}, "search_fraction must be a number above 0 and at most 1, not 0"),
        (
            {"search_fraction": 1.1},
            "search_fraction must be a number above 0 and at most 1, not 1.1",
        ),
        (
            {"validation_fraction": 1},
            "validation_fraction must be a number of at least 0 and below 1, not 1",
        ),
    ],
)
def test_bad_parameters(bad, message):
    with pytest.raises(LocoleError, match=message):
        PDSparse(**bad).fit(X_WORDS, Y_WORDS)
