"""W-LTLS: losses of all labels by enumeration, learning, settings, files."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from problems import prototypes, words
from same import assert_same_bits

from locole import load
from locole.baselines import WLTLS
from locole.baselines.trellis import Trellis
from locole.exceptions import LocoleError, LocoleWarning

LOSSES = {
    "exponential": lambda z: np.exp(-z),
    "squared_hinge": lambda z: np.maximum(0, 1 - z) ** 2,
    "squared": lambda z: (1 - z) ** 2,
}
X, y = words()


def losses_of_all_labels(model, X):
    """The paper's formula: a loss for every edge, on the path or off it."""
    margins = X @ model.coef_.T.astype(float) + model.intercept_
    trellis = Trellis(model.classes_.size, width=model.width_)
    on = trellis.signs(model.paths_, 0, trellis.n_edges).astype(float)
    L = LOSSES[model.loss]
    return np.array([[L(sign * row).sum() for sign in on] for row in margins])


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("width", [2, 3, 7, 100])
def test_answers_have_the_least_loss(loss, width):
    model = WLTLS(width=width, loss=loss, epochs=2).fit(X[:300], y[:300])
    losses = losses_of_all_labels(model, X[300:])
    for k in (1, 2, 5, 40):
        labels, scores = model.predict_topk(X[300:], k=k)
        np.testing.assert_allclose(-scores, np.sort(losses, axis=1)[:, :k], rtol=2e-5, atol=1e-4)
        found = np.take_along_axis(losses, labels, axis=1)
        np.testing.assert_allclose(-scores, found, rtol=2e-5, atol=1e-4)


@given(
    n_classes=st.integers(2, 60),
    width=st.integers(2, 6),
    loss=st.sampled_from(sorted(LOSSES)),
    assignment=st.sampled_from(["random", "similar", "index"]),
    learner=st.sampled_from(["arow", "perceptron"]),
)
def test_any_settings_answer_with_the_least_loss(n_classes, width, loss, assignment, learner):
    some, labels = words(n_classes=n_classes, n_samples=n_classes + 30, n_features=60)
    model = WLTLS(width=width, loss=loss, assignment=assignment, learner=learner, epochs=1).fit(
        some, labels
    )
    assert sorted(model.paths_.tolist()) == list(range(n_classes))
    losses = losses_of_all_labels(model, some[:10])
    _, scores = model.predict_topk(some[:10], k=2)
    np.testing.assert_allclose(-scores, np.sort(losses, axis=1)[:, :2], rtol=1e-4, atol=1e-3)


def test_many_labels_take_few_edges():
    some, labels = words(n_classes=2000, n_samples=4000, n_features=3000)
    model = WLTLS().fit(some, labels)
    assert model.n_edges_ == 2 + 9 * 4 + 2 + 1 + 5  # 2,000 = 11111010000 in base 2
    assert model.coef_.T.shape == (3000, model.n_edges_)
    assert model.score(some, labels) > 0.8


def test_wider_slices_do_better_on_new_rows():
    some, labels = words(n_classes=200, n_samples=4000, n_features=1000)
    scores = [
        WLTLS(width=width).fit(some[:3000], labels[:3000]).score(some[3000:], labels[3000:])
        for width in (2, 12)
    ]
    assert scores[1] > scores[0] + 0.05


def test_the_widest_trellis_is_one_against_the_rest():
    """As many states as labels: one edge of each label, and one more that says the same."""
    model = WLTLS(width=100).fit(X, y)
    assert model.n_edges_ == 2 * 40
    np.testing.assert_array_equal(model.coef_.T[:, :40], model.coef_.T[:, 40:])
    assert model.score(X, y) > 0.9


def test_dense_rows_get_an_intercept():
    dense, labels = prototypes()
    shifted = dense + 5
    assert WLTLS(width=4).fit(shifted, labels).intercept_.any()
    assert not WLTLS(fit_intercept=False).fit(shifted, labels).intercept_.any()
    assert not WLTLS().fit(X, y).intercept_.any()
    assert WLTLS(fit_intercept=True).fit(X, y).intercept_.any()
    assert WLTLS(width=4).fit(dense, labels).score(dense, labels) > 0.95


def test_similar_labels_share_edges():
    rng = np.random.default_rng(0)
    centres = np.repeat(rng.standard_normal((16, 300)), 8, axis=0)
    some = centres + 0.3 * rng.standard_normal((128, 300))
    mixed = rng.permutation(128)

    def shared(assignment):
        with pytest.warns(LocoleWarning, match="every label has only one row"):
            model = WLTLS(assignment=assignment, epochs=1).fit(some[mixed], np.arange(128))
        signs = model.trellis_.signs(model.paths_, 0, model.n_edges_).astype(int)
        same = (mixed[:, None] // 8 == mixed // 8) & ~np.eye(128, dtype=bool)
        return (signs @ signs.T)[same].mean()

    assert shared("similar") > shared("random") + 5


def test_an_empty_row_ties_all_labels():
    model = WLTLS().fit(X, y)
    nothing = sp.csr_array((2, X.shape[1]))
    for k in (1, 3, 40):
        labels, scores = model.predict_topk(nothing, k=k)
        assert labels.tolist() == [list(range(k))] * 2
        assert (scores == -model.n_edges_).all()


def test_the_loss_can_be_changed_after_training():
    model = WLTLS(loss="squared").fit(X, y)
    twin = WLTLS(loss="exponential").fit(X, y)
    assert_same_bits(
        list(model.set_params(loss="exponential").predict_topk(X)), list(twin.predict_topk(X))
    )


def test_seeds_matter():
    one, two = (WLTLS(random_state=seed).fit(X, y) for seed in (0, 1))
    assert (one.paths_ != two.paths_).any()
    assert (one.coef_.T != two.coef_.T).any()


@pytest.mark.parametrize("n_jobs", [2, -1])
def test_threads_change_no_bit(n_jobs):
    plain, many = WLTLS(width=30).fit(X, y), WLTLS(width=30, n_jobs=n_jobs).fit(X, y)
    assert plain.n_edges_ > 64
    assert_same_bits(many.coef_.T, plain.coef_.T)
    assert_same_bits(list(many.predict_topk(X, k=7)), list(plain.predict_topk(X, k=7)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"width": 1}, "width must be a whole number of at least 2, not 1"),
        ({"width": 2.0}, "width must be a whole number"),
        ({"width": True}, "width must be a whole number"),
        ({"epochs": 0}, "epochs must be a whole number from 1 to 10000"),
        ({"random_state": -1}, "random_state must be a whole number from 0 to 4294967295"),
        ({"random_state": None}, "random_state must be a whole number"),
        ({"r": 0}, "r must be a number above 0, not 0"),
        ({"r": float("nan")}, "r must be a number"),
        ({"r": "1"}, "r must be a number"),
        ({"fit_intercept": "yes"}, "fit_intercept must be True, False or"),
        ({"learner": "svm"}, "learner must be 'arow' or 'perceptron', not 'svm'"),
        (
            {"loss": "hinge"},
            "loss must be 'exponential', 'squared' or 'squared_hinge', not 'hinge'",
        ),
        ({"loss": ["squared"]}, "loss must be 'exponential', 'squared' or 'squared_hinge', not"),
        (
            {"assignment": "sorted"},
            "assignment must be 'index', 'random' or 'similar', not 'sorted'",
        ),
    ],
)
def test_settings_that_cannot_be(changes, message):
    with pytest.raises(LocoleError, match=message):
        WLTLS(**changes).fit(X, y)


def test_a_loss_that_became_wrong_is_noticed():
    model = WLTLS().fit(X, y).set_params(loss="hinge")
    with pytest.raises(LocoleError, match=r"loss must be .*, not 'hinge'"):
        model.predict(X)


@pytest.mark.parametrize("scale", [1e-6, 1e6, 1e14])
@pytest.mark.parametrize("loss", LOSSES)
def test_tiny_and_huge_rows(scale, loss):
    model = WLTLS(loss=loss).fit(X * scale, y)
    labels, scores = model.predict_topk(sp.vstack([X * scale, X * 1e14]), k=3)
    assert np.isfinite(scores).all()
    assert np.isin(labels, y).all()


@pytest.mark.parametrize("loss", LOSSES)
def test_files_hold_the_model(loss, tmp_path):
    model = WLTLS(width=3, loss=loss, fit_intercept=True).fit(X, y)
    model.save(tmp_path / "m")
    back = load(tmp_path / "m")
    assert_same_bits(list(back.predict_topk(X, k=9)), list(model.predict_topk(X, k=9)))
    assert_same_bits(back.coef_.T.copy(), model.coef_.T.copy())
