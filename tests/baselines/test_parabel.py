"""Label trees: their shape, their classifiers against another solver, beam search against all paths."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from problems import words
from same import assert_same_bits
from scipy.optimize import minimize
from sklearn.svm import LinearSVC

from locole import load
from locole.baselines import Bonsai, Parabel
from locole.baselines.label_tree import (
    NodeSettings,
    Places,
    Shape,
    _balanced,
    grow_tree,
    label_centroids,
    learn_node,
)
from locole.exceptions import LocoleError, ModelFileError
from locole.io import write_model
from locole.kernels.label_tree import number_features

F32 = np.float32
X, Y = words(n_classes=40, n_samples=800, n_features=300)
X = sp.csr_array(X, dtype=F32)
X.sum_duplicates()
MODELS = {
    "parabel": Parabel(n_trees=2, max_leaf=6),
    "bonsai": Bonsai(n_trees=2, n_children=5, max_leaf=6),
    "one leaf": Parabel(n_trees=1),
    "leaves of one": Parabel(n_trees=1, max_leaf=1),
}


def prepared(rows):
    """Unit rows and a constant, by the plain formula."""
    dense = rows.toarray().astype(np.float64)
    lengths = np.linalg.norm(dense, axis=1, keepdims=True)
    dense /= np.where(lengths > 0, lengths, 1)
    return np.hstack([dense, np.ones((len(dense), 1))])


# --- the trees ---


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(2, 70),
    n_children=st.integers(2, 6),
    max_leaf=st.integers(1, 12),
    balanced=st.booleans(),
)
def test_every_label_is_in_one_leaf(seed, n, n_children, max_leaf, balanced):
    rng = np.random.default_rng(seed)
    points = rng.random((n, 9)) * (rng.random((n, 9)) < 0.5)  # some alike, some empty
    tree = grow_tree(
        label_centroids(sp.csr_array(points), np.arange(n), n),
        Shape(n_children, max_leaf, 64, balanced),
        rng,
    )
    leaves = [labels for labels, below in zip(*tree, strict=True) if not below.size]
    np.testing.assert_array_equal(np.sort(np.concatenate(leaves)), np.arange(n))
    for node, below in enumerate(tree.children):
        assert tree.labels[node].size
        if below.size:
            assert below.size <= n_children
            assert (below > node).all()
            parts = [tree.labels[child] for child in below]
            np.testing.assert_array_equal(
                np.sort(np.concatenate(parts)), np.sort(tree.labels[node])
            )
            if balanced:
                sizes = [part.size for part in parts]
                assert max(sizes) - min(sizes) <= 1
        elif balanced:
            assert tree.labels[node].size <= max_leaf
    if balanced and n_children == 2:
        sizes = [leaf.size for leaf in leaves]
        assert max(sizes) <= 2 * min(sizes) + 1


def test_labels_that_look_alike_stay_together():
    """Eight groups of eight labels with features of their own."""
    groups = np.repeat(np.arange(8), 8)
    rng = np.random.default_rng(0)
    points = np.eye(8)[groups] + 0.05 * rng.random((64, 8))
    centroids = label_centroids(sp.csr_array(points), np.arange(64), 64)
    tree = grow_tree(centroids, Shape(2, 8, 64, balanced=True), rng)
    leaves = [labels for labels, below in zip(*tree, strict=True) if not below.size]
    together = np.mean([np.bincount(groups[leaf]).max() / leaf.size for leaf in leaves])
    assert len(leaves) == 8
    assert together > 0.8


def test_trees_stop_at_their_depth():
    tree = grow_tree(
        label_centroids(X, Y, 40), Shape(2, 1, 3, balanced=False), np.random.default_rng(0)
    )
    below = {0: 1}
    for node, children in enumerate(tree.children):
        below.update(dict.fromkeys(children.tolist(), below[node] + 1))
    assert max(below.values()) == 3


@given(st.integers(0, 2**32 - 1), st.integers(2, 30), st.integers(2, 7))
def test_balanced_parts_have_equal_sizes_and_favour_the_nearest(seed, n, k):
    k = min(k, n)
    cosines = np.random.default_rng(seed).random((n, k)).astype(F32)
    part = _balanced(cosines)
    sizes = np.bincount(part, minlength=k)
    assert sizes.max() - sizes.min() <= 1
    if k == 2:  # no exchange of two rows makes the sum larger
        gain = cosines[:, 0] - cosines[:, 1]
        assert gain[part == 0].min() >= gain[part == 1].max()


def test_centroids_are_unit_means():
    centroids = label_centroids(X, Y, 41).toarray()
    for label in range(40):
        mean = X.toarray()[label == Y].mean(axis=0)
        np.testing.assert_allclose(centroids[label], mean / np.linalg.norm(mean), atol=1e-6)
    assert not centroids[40].any()


# --- the classifiers ---


def objective(w, rows, signs, C):
    gap = np.maximum(0, 1 - signs * (rows @ w))
    return 0.5 * w @ w + C * gap @ gap, w - 2 * C * rows.T @ (signs * gap)


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(2, 25),
    n_outputs=st.sampled_from([1, 2, 5, 17]),
    C=st.sampled_from([0.1, 1.0, 10.0]),
)
def test_classifiers_are_the_optimum(seed, n, n_outputs, C):
    rng = np.random.default_rng(seed)
    rows = rng.random((n, 8)) * (rng.random((n, 8)) < 0.6)
    rows[:, 7] = 1
    sparse = sp.csr_array(rows.astype(F32))
    rows = sparse.toarray().astype(np.float64)
    # Every row goes to a child, and some to several.
    member = rng.random((n, n_outputs)) < 0.2
    member[np.arange(n), rng.integers(0, n_outputs, n)] = True
    owners, child = np.nonzero(member)
    settings = NodeSettings(C=C, threshold=0.0, epochs=2000, tol=1e-6)
    places = Places.of(child, owners)
    features, weights = learn_node(sparse, places, n_outputs, settings, rng)
    W = np.zeros((8, n_outputs))
    W[features] = weights.toarray()
    for k in range(n_outputs):
        signs = np.where(member[:, k], 1.0, -1.0)
        best = minimize(objective, np.zeros(8), (rows, signs, C), jac=True, options={"gtol": 1e-9})
        value = objective(W[:, k], rows, signs, C)[0]
        assert value == pytest.approx(best.fun, rel=1e-4, abs=1e-5)
        np.testing.assert_allclose(W[:, k], best.x, atol=2e-2 * max(1, np.abs(best.x).max()))


def test_classifiers_are_those_of_liblinear():
    rows = prepared(X)
    settings = NodeSettings(C=1.0, threshold=0.0, epochs=1000, tol=1e-5)
    features, weights = learn_node(
        sp.csr_array(rows.astype(F32)),
        Places.of(Y, np.arange(800)),
        40,
        settings,
        np.random.default_rng(0),
    )
    W = np.zeros((301, 40))
    W[features] = weights.toarray()
    svc = LinearSVC(C=1.0, fit_intercept=False, tol=1e-8, max_iter=10000).fit(rows, Y)
    np.testing.assert_allclose(W.T, svc.coef_, atol=2e-3)


def test_small_weights_are_cleared():
    settings = NodeSettings(C=1.0, threshold=0.1, epochs=20, tol=0.1)
    some = np.arange(0, 800, 3)
    rng = np.random.default_rng(0)
    places = Places.of(np.where(np.arange(800) % 3 == 0, Y % 2, -1), np.arange(800))
    np.testing.assert_array_equal(places.rows, some)
    features, weights = learn_node(X, places, 2, settings, rng)
    assert (np.abs(weights.data) >= 0.1).all()
    assert np.unique(features).size == features.size
    assert (np.diff(weights.indptr) > 0).all()  # features without a weight are left out
    assert np.isin(features, X[some].indices).all()


@given(st.lists(st.integers(0, 9), min_size=1, max_size=40))
def test_numbers_of_features(indices):
    indices = np.array(indices, dtype=np.int32)
    numbers, features = np.full(10, -1, dtype=np.int32), np.empty(10, dtype=np.int32)
    local = np.empty_like(indices)
    n = number_features(indices, numbers, features, local)
    assert n == len(set(indices.tolist()))
    np.testing.assert_array_equal(features[:n][local], indices)
    assert (numbers == -1).all()


# --- the search ---


def weights_of(model, node):
    """Dense weights of a node's children."""
    features = np.repeat(np.arange(model._lists.size - 1), np.diff(model._lists))
    W = np.zeros((model._lists.size - 1, model._weights.shape[1]))
    mine = model._nodes == node
    W[features[mine]] = model._weights[np.flatnonzero(mine)].toarray()
    return W


def all_scores(model, rows):
    """Mean over trees of the product along each label's path, for every label."""
    rows = prepared(rows)
    scores = np.zeros((len(rows), model.classes_.size))
    for root in model._roots:
        paths = [(int(root), np.zeros(len(rows)))]
        while paths:
            node, log_p = paths.pop()
            margins = rows @ weights_of(model, node)
            targets = model._targets[slice(*model._children[node : node + 2])]
            for k, target in enumerate(targets):
                below = log_p - np.maximum(0, 1 - margins[:, k]) ** 2
                if target < model.n_nodes_:
                    paths.append((int(target), below))
                else:
                    scores[:, target - model.n_nodes_] += np.exp(below) / model._roots.size
    return scores


@pytest.mark.parametrize("name", MODELS)
def test_a_wide_beam_finds_what_all_paths_give(name):
    model = MODELS[name].fit(X[:600], Y[:600])
    wide = type(model)(**{**model.get_params(), "beam": 1000}).fit(X[:600], Y[:600])
    labels, scores = wide.predict_topk(X[600:], k=40)
    expected = all_scores(wide, X[600:])
    np.testing.assert_allclose(np.take_along_axis(expected, labels, axis=1), scores, atol=1e-5)
    narrow = model.predict(X[600:])
    assert (narrow == labels[:, 0]).mean() > 0.95
    assert (narrow == Y[600:]).mean() > 0.7


def test_a_beam_of_one_goes_down_greedily():
    model = Parabel(n_trees=1, max_leaf=3, beam=1).fit(X, Y)
    rows = prepared(X)
    for i in range(0, 800, 40):
        node = 0
        while True:
            margins = rows[i] @ weights_of(model, node)
            targets = model._targets[slice(*model._children[node : node + 2])]
            if targets[0] >= model.n_nodes_:
                break
            node = targets[np.argmin(np.maximum(0, 1 - margins[: targets.size]))]
        reached = np.sort(targets - model.n_nodes_)
        labels, scores = model.predict_topk(X[[i]], k=40)
        np.testing.assert_array_equal(np.sort(labels[0][scores[0] > 0]), reached)


@pytest.mark.parametrize("name", MODELS)
def test_trees_out_of_a_model_are_its_trees(name):
    model = MODELS[name].fit(X, Y)
    trees = model.trees()
    assert sum(len(tree.labels) for tree in trees) == model.n_nodes_
    for tree in trees:
        leaves = [labels for labels, below in zip(*tree, strict=True) if not below.size]
        np.testing.assert_array_equal(np.sort(np.concatenate(leaves)), np.arange(40))
        np.testing.assert_array_equal(tree.labels[0], np.arange(40))


# --- threads, files, settings ---


@pytest.mark.parametrize("name", ["parabel", "bonsai"])
def test_threads_change_no_bit_and_seeds_do(name):
    one = MODELS[name].fit(X, Y)
    params = one.get_params()
    many = type(one)(**{**params, "n_jobs": 3}).fit(X, Y)
    for attribute in one._learnt:
        assert_same_bits(getattr(many, attribute), getattr(one, attribute))
    other = type(one)(**{**params, "random_state": 5}).fit(X, Y)
    assert not np.array_equal(other._targets, one._targets)


def test_files_hold_trees(tmp_path):
    model = MODELS["bonsai"].fit(X, Y)
    model.save(tmp_path / "m")
    back = load(tmp_path / "m")
    for old, new in zip(model.predict_topk(X), back.predict_topk(X), strict=True):
        assert_same_bits(old, new)


DAMAGE = {
    "a label twice": ("_targets", lambda a: np.where(a == a.max(), a.max() - 1, a)),
    "a circle": ("_targets", lambda a: np.where(a == 1, 0, a)),
    "a label beside nodes": ("_targets", lambda a: np.where(a == 1, a.max(), a)),
    "roots at one place": ("_roots", lambda a: np.zeros_like(a)),
    "a root too late": ("_roots", lambda a: a + 1),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_trees_that_are_none_are_refused(what, tmp_path):
    model = Parabel(n_trees=2, max_leaf=6).fit(X, Y)
    attribute, change = DAMAGE[what]
    setattr(model, attribute, change(getattr(model, attribute)))
    write_model(tmp_path / "m", model)
    with pytest.raises(ModelFileError):
        load(tmp_path / "m")


def test_a_weight_for_a_child_that_a_node_does_not_have_is_refused(tmp_path):
    model = Parabel(n_trees=1, max_leaf=6).fit(X, Y)
    model._weights.indices[0] = 4  # leaves have five children, the root has two
    write_model(tmp_path / "m", model)
    with pytest.raises(ModelFileError, match="children that do not exist"):
        load(tmp_path / "m")


BAD = {
    "n_trees": [0, 1.5, True],
    "max_leaf": [0, "100"],
    "beam": [0, None],
    "epochs": [0],
    "random_state": [-1],
    "C": [0, -1.0, np.nan, "1"],
    "min_weight": [-0.1, np.inf],
    "tol": [-1],
}


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, values in BAD.items() for v in values])
def test_bad_settings(name, value):
    for model in (Parabel, Bonsai):
        with pytest.raises(LocoleError, match=f"{name} must be a"):
            model(**{name: value}).fit(X, Y)


@pytest.mark.parametrize(("name", "value"), [("n_children", 1), ("max_depth", 0)])
def test_bad_settings_of_bonsai(name, value):
    with pytest.raises(LocoleError, match=f"{name} must be a"):
        Bonsai(**{name: value}).fit(X, Y)


# --- omikuji ---


@pytest.mark.parametrize("model", [Parabel, Bonsai])
def test_omikuji_finds_much_the_same(model, tmp_path, capfd):
    small = {"max_leaf": 6} if model is Parabel else {"max_leaf": 6, "n_children": 5}
    ours = model(**small).fit(X[:600], Y[:600])
    theirs = model(**small, engine="omikuji").fit(X[:600], Y[:600])
    labels, scores = theirs.predict_topk(X[600:], k=40)
    assert (np.diff(scores, axis=1) <= 0).all()
    assert (np.sort(labels, axis=1) == np.arange(40)).all()
    accuracy = [m.score(X[600:], Y[600:]) for m in (ours, theirs)]
    assert accuracy[0] > accuracy[1] - 0.05
    with pytest.raises(ModelFileError, match="trees of omikuji cannot be saved"):
        theirs.save(tmp_path / "m")
    # The engine may be changed, and nothing of the other is left.
    theirs.set_params(engine="locole").fit(X[:600], Y[:600])
    assert_same_bits(theirs.predict_topk(X)[1], ours.predict_topk(X)[1])
    theirs.save(tmp_path / "m")


def test_omikuji_answers_as_its_binding_does(capfd):
    model = Parabel(n_trees=2, max_leaf=6, engine="omikuji", beam=3).fit(X, Y)
    labels, scores = model.predict_topk(X[:5], k=4)
    for i in range(5):
        row = X[[i]]
        pairs = list(zip(row.indices.tolist(), row.data.tolist(), strict=True))
        for (code, score), label, mine in zip(
            model._omikuji.predict(pairs, 3, 4), labels[i], scores[i], strict=False
        ):
            assert score == pytest.approx(mine)
            assert code == label or (np.diff(scores[i]) == 0).any()


def test_without_omikuji_the_error_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "omikuji", None)
    with pytest.raises(LocoleError, match=r"pip install 'locole\[baselines\]'"):
        Parabel(engine="omikuji").fit(X, Y)
    with pytest.raises(LocoleError, match="engine must be 'locole' or 'omikuji', not 'other'"):
        Parabel(engine="other").fit(X, Y)
