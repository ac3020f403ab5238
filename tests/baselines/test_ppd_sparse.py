"""PPD-Sparse: its optimum against other solvers, its gaps, its blocks of labels."""

import numpy as np
import pytest
import scipy.sparse as sp
from problems import prototypes, words
from same import assert_same_bits
from scipy.optimize import minimize
from sklearn.svm import LinearSVC

from locole.baselines import PPDSparse
from locole.baselines.ppd_sparse import _Shared, solve_block
from locole.exceptions import LocoleError, ModelFileError
from locole.io import read_model, write_model
from locole.samples import Samples

X_WORDS, Y_WORDS = words(n_classes=12, n_samples=150, n_features=60)
X_WORDS = sp.csr_array(X_WORDS / np.sqrt(7), dtype=np.float32)
EXACT = {"tol": 1e-4, "max_rounds": 1000}


def objective(w, b, X, y, label, l1, cost):
    """The primal of one label."""
    margins = np.where(y == label, 1, -1) * (X @ w + b)
    loss = (np.maximum(1 - margins, 0) ** 2).sum()
    return 0.5 * (w @ w) + 0.5 * b**2 + l1 * np.abs(w).sum() + cost * loss


def objectives(model, X, y):
    W, b = model.coef_.T.toarray().astype(float), model.intercept_.astype(float)
    X = X.toarray().astype(float)
    labels = range(b.size)
    return np.array([objective(W[:, k], b[k], X, y, k, model.l1, model.cost) for k in labels])


def smallest_objective(X, y, label, l1, cost):
    """The same by a quasi-Newton method: w = p − q with p, q ≥ 0 makes it smooth."""
    D = X.shape[1]
    signs = np.where(y == label, 1.0, -1.0)

    def value(z):
        w, b = z[:D] - z[D : 2 * D], z[-1]
        slack = np.maximum(1 - signs * (X @ w + b), 0)
        slope = w - 2 * cost * X.T @ (signs * slack)
        total = 0.5 * (w @ w) + 0.5 * b**2 + l1 * z[: 2 * D].sum() + cost * (slack**2).sum()
        at_b = b - 2 * cost * (signs * slack).sum()
        return total, np.concatenate([slope + l1, l1 - slope, [at_b]])

    bounds = [(0, None)] * (2 * D) + [(None, None)]
    options = {"maxiter": 5000, "maxfun": 50_000, "ftol": 1e-13, "gtol": 1e-8}
    found = minimize(
        value, np.zeros(2 * D + 1), jac=True, bounds=bounds, method="L-BFGS-B", options=options
    )
    return found.fun


@pytest.mark.parametrize(("l1", "cost"), [(0.0, 1.0), (0.1, 1.0), (0.5, 0.2), (0.05, 5.0)])
def test_the_optimum_is_that_of_a_quasi_newton_method(l1, cost):
    model = PPDSparse(l1=l1, cost=cost, **EXACT).fit(X_WORDS, Y_WORDS)
    ours = objectives(model, X_WORDS, Y_WORDS)
    X = X_WORDS.toarray().astype(float)
    best = [smallest_objective(X, Y_WORDS, k, l1, cost) for k in range(12)]
    np.testing.assert_allclose(ours, best, rtol=1e-4)


def test_without_l1_it_is_a_support_vector_machine():
    """scikit-learn's intercept is a feature that is 1 and is penalised like the others, as here."""
    other = LinearSVC(C=0.5, tol=1e-9, max_iter=100_000).fit(X_WORDS.toarray(), Y_WORDS)
    model = PPDSparse(l1=0, cost=0.5, **EXACT).fit(X_WORDS, Y_WORDS)
    np.testing.assert_allclose(model.coef_.T.toarray(), other.coef_.T, atol=2e-3)
    np.testing.assert_allclose(model.intercept_, other.intercept_, atol=2e-3)


def test_gaps_bound_the_distance_to_the_optimum_and_fall():
    best = objectives(PPDSparse(**EXACT).fit(X_WORDS, Y_WORDS), X_WORDS, Y_WORDS)
    before = np.inf
    for tol in (0.3, 0.1, 0.01, 1e-3):
        model = PPDSparse(tol=tol).fit(X_WORDS, Y_WORDS)
        distance = objectives(model, X_WORDS, Y_WORDS) - best
        assert (distance >= -1e-3).all()
        assert (distance <= model.gaps_ + 1e-3).all()
        assert 0 <= model.gaps_.sum() < before
        before = model.gaps_.sum()


def test_few_rounds_leave_a_gap():
    short, long = (PPDSparse(max_rounds=r, tol=1e-3).fit(X_WORDS, Y_WORDS) for r in (1, 50))
    assert (long.gaps_ <= short.gaps_ + 1e-6).all()
    assert short.gaps_.sum() > 10 * long.gaps_.sum()


def test_larger_penalties_give_fewer_weights():
    counts = [PPDSparse(l1=l1).fit(X_WORDS, Y_WORDS).coef_.T.nnz for l1 in (0, 0.1, 0.3, 500)]
    assert counts == sorted(counts, reverse=True)
    assert counts[1] < 0.8 * counts[0]
    assert counts[-1] == 0


def test_labels_do_not_depend_on_their_neighbours():
    problem = _Shared.of(Samples(X_WORDS, Y_WORDS, 12), PPDSparse())
    whole = solve_block(problem, slice(0, 12))
    again = solve_block(problem, slice(0, 12))
    assert_same_bits(list(whole), list(again))
    parts = [solve_block(problem, slice(a, b)) for a, b in ((0, 5), (5, 6), (6, 12))]
    joined = [np.concatenate(arrays) for arrays in zip(*parts, strict=True)]
    assert_same_bits(list(whole), joined)


def test_read_only_problems_are_solved():
    """Workers in other processes see shared memory that they may not write to."""
    problem = _Shared.of(Samples(X_WORDS.copy(), Y_WORDS.copy(), 12), PPDSparse())
    expected = solve_block(problem, slice(0, 3))
    for matrix in (problem.X, problem.by_feature):
        for array in (matrix.data, matrix.indices, matrix.indptr):
            array.flags.writeable = False
    for array in (problem.sizes, problem.rows, problem.heads):
        array.flags.writeable = False
    assert_same_bits(list(solve_block(problem, slice(0, 3))), list(expected))


def test_few_rows_are_active_where_labels_are_many():
    """A label with few rows has weights for the features of rows like them, not of all rows."""
    X, y = words(n_classes=300, n_samples=1500, n_features=2000)
    model = PPDSparse().fit(sp.csr_array(X / np.sqrt(7)), y)
    per_label = model.coef_.T.nnz / 300
    assert per_label < 80
    assert model.score(X, y) > 0.95


def test_dense_rows():
    X, y = prototypes(n_classes=15, n_samples=300)
    model = PPDSparse(n_jobs=2).fit(X[:200] / 8, y[:200])
    assert model.score(X[200:] / 8, y[200:]) > 0.9


@pytest.mark.parametrize("scale", [1e-14, 1e-6, 1e6, 1e14])
def test_tiny_and_huge_rows(scale):
    X = sp.csr_array(X_WORDS * np.float32(scale))
    model = PPDSparse(l1=0, max_rounds=3).fit(X, Y_WORDS)
    _, scores = model.predict_topk(X, k=12)
    assert np.isfinite(scores).all()
    if scale > 1:
        assert model.score(X, Y_WORDS) > 0.9


def test_progress_when_verbose(monkeypatch, capsys):
    monkeypatch.setattr("locole.parallel.progress._PATIENCE_S", -1.0)
    PPDSparse(verbose=1).fit(X_WORDS, Y_WORDS)
    assert "PPD-Sparse: 1/1 (100%)" in capsys.readouterr().err


def test_a_file_with_other_gaps_is_refused(tmp_path):
    model = PPDSparse().fit(X_WORDS, Y_WORDS)
    model.gaps_ = model.gaps_[:-1]
    write_model(tmp_path / "m", model)
    with pytest.raises(ModelFileError, match="intercepts or gaps"):
        read_model(tmp_path / "m")


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"l1": -1}, "l1 must be a number of at least 0, not -1"),
        ({"cost": 0}, "cost must be a number above 0, not 0"),
        ({"tol": np.nan}, "tol must be a number"),
        ({"max_rounds": 0}, "max_rounds must be a whole number from 1 to 10000"),
        ({"max_passes": True}, "max_passes must be a whole number"),
        ({"random_state": "seed"}, "random_state must be a whole number from 0 to 4294967295"),
    ],
)
def test_bad_parameters(bad, message):
    with pytest.raises(LocoleError, match=message):
        PPDSparse(**bad).fit(X_WORDS, Y_WORDS)
