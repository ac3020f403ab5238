"""AnnexML against brute force: neighbours, votes, gradients; what its parts and maps are for."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from problems import words
from same import assert_same_bits

from locole import load
from locole.baselines import AnnexML
from locole.baselines.annexml import _halved, _in_lanes
from locole.baselines.neighborhoods import (
    MapSettings,
    cosine_softmax,
    draw_labels,
    draw_neighbors,
    learn_map,
    learn_partition,
)
from locole.exceptions import LocoleError
from locole.kernels.annexml import (
    LANES,
    AdaGrad,
    descend,
    fill_embeddings,
    fill_votes,
    find_nearest,
)
from locole.kernels.csr import Csr
from locole.samples import Samples

F32 = np.float32
X, Y = words(n_classes=40, n_samples=1200, n_features=300)
X = sp.csr_array(X, dtype=F32)
X.sum_duplicates()


def unit(Z):
    return Z / np.linalg.norm(Z, axis=1, keepdims=True)


def one_label(codes):
    """Samples of which only the labels matter."""
    return Samples(np.empty((codes.size, 0)), codes, int(codes.max()) + 1)


def lanes(points):
    return _in_lanes(points).reshape(-1, points.shape[1], LANES)


# --- the nearest points ---


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.sampled_from([1, 2, 63, 64, 65, 200, 400]),
    dim=st.integers(1, 60),
    k=st.integers(1, 12),
)
def test_the_search_finds_what_brute_force_finds(seed, n, dim, k):
    rng = np.random.default_rng(seed)
    points, queries = (unit(rng.standard_normal((m, dim))).astype(F32) for m in (n, 9))
    cosines = np.full((9, k), -np.inf, dtype=F32)
    places = np.full((9, k), -1)
    room = np.empty((1, LANES), dtype=F32)
    nothing = np.empty(0, dtype=np.int64)
    find_nearest(lanes(points), n, queries, room, nothing, cosines, places)
    exact = queries.astype(np.float64) @ points.T.astype(np.float64)
    there = min(k, n)
    np.testing.assert_allclose(cosines[:, :there], -np.sort(-exact, axis=1)[:, :there], atol=1e-6)
    np.testing.assert_allclose(
        np.take_along_axis(exact, places[:, :there], axis=1), cosines[:, :there], atol=1e-6
    )
    assert (places[:, there:] == -1).all()
    assert all(len(set(row[:there])) == there for row in places.tolist())


def test_equal_points_come_in_their_order():
    points = np.tile(unit(np.ones((1, 5))), (150, 1)).astype(F32)
    cosines, places = np.full((1, 7), -np.inf, dtype=F32), np.full((1, 7), -1)
    room = np.empty((1, LANES), dtype=F32)
    find_nearest(lanes(points), 150, points[:1], room, np.empty(0, np.int64), cosines, places)
    np.testing.assert_array_equal(places, [np.arange(7)])


def test_neighbours_of_a_model_are_those_of_all_points_of_the_part():
    """Recall 1, where a point is what the map makes of a training row, features unknown left out."""
    model = AnnexML(n_learners=2, n_parts=3, dim=20, epochs=3).fit(X[:900], Y[:900])
    new = X[900:]
    for learner in range(2):
        weights = model.partition_[:, 3 * learner : 3 * learner + 3]
        chosen = (new @ weights).argmax(axis=1)
        belongs = (X[:900] @ weights).argmax(axis=1)
        places, cosines = model._neighbors(new, learner, chosen)
        for part in range(3):
            rows, own = np.flatnonzero(chosen == part), np.flatnonzero(belongs == part)
            assert own.size == model.sizes_[learner, part]
            points = model._embed(X, own, learner, part).astype(np.float64)
            exact = model._embed(new, rows, learner, part).astype(np.float64) @ points.T
            best = -np.sort(-exact, axis=1)[:, :10]
            np.testing.assert_allclose(cosines[rows], best, atol=1e-6)
            labels = model.codes_[learner][places[rows]]
            local = places[rows] - model.sizes_[learner, :part].sum()
            np.testing.assert_array_equal(labels, Y[:900][own][local])


@given(st.integers(0, 2**32 - 1), st.integers(1, 40))
def test_embeddings_are_products_of_unit_length(seed, dim):
    rng = np.random.default_rng(seed)
    width = -(-dim // 16) * 16
    rows = sp.csr_array(rng.random((6, 12)) * (rng.random((6, 12)) < 0.4), dtype=F32)
    known = np.sort(rng.permutation(12)[:7]).astype(np.int32)
    maps = np.zeros((10, width), dtype=np.float16)  # those of another part come first
    maps[:, :dim] = rng.standard_normal((10, dim))
    features = np.concatenate([np.arange(3, dtype=np.int32), known])
    out = np.empty((6, width), dtype=F32)
    fill_embeddings(
        Csr.of(rows), np.arange(6), features, 3, 10,
        maps.view(np.uint16).reshape(-1), width, out.reshape(-1),
    )  # fmt: skip
    expected = rows.toarray().astype(np.float64)[:, known] @ maps[3:].astype(np.float64)
    lengths = np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(out * lengths, expected, atol=1e-4)
    np.testing.assert_allclose(np.linalg.norm(out, axis=1), lengths[:, 0] > 0, atol=1e-5)


# --- votes ---


@given(
    seed=st.integers(0, 2**32 - 1),
    n_votes=st.integers(1, 30),
    n_labels=st.integers(2, 12),
    data=st.data(),
)
def test_votes_are_sums_by_label(seed, n_votes, n_labels, data):
    rng = np.random.default_rng(seed)
    k = data.draw(st.integers(1, n_labels))
    codes = rng.integers(-1, n_labels, (4, n_votes))
    weights = rng.integers(1, 4, codes.shape).astype(F32)  # whole, so that ties are ties
    totals = np.zeros((4, n_labels))
    for i in range(4):
        for code, weight in zip(codes[i], weights[i], strict=True):
            if code >= 0:
                totals[i, code] += weight
    best, scores = np.empty((4, k), dtype=np.int64), np.empty((4, k), dtype=F32)
    fill_votes(codes, weights, best, scores)
    order = np.argsort(-totals, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(best, order)
    np.testing.assert_array_equal(scores, np.take_along_axis(totals, order, axis=1))


# --- the loss ---


def by_formula(A, B, codes, gamma):
    loss = 0.0
    for i in range(len(A)):
        cosines = {
            j: A[i] @ B[j] / np.linalg.norm(A[i]) / np.linalg.norm(B[j])
            for j in range(len(A))
            if j == i or codes[j] != codes[i]
        }
        loss -= gamma * cosines[i]
        loss += np.log(sum(np.exp(gamma * c) for c in cosines.values()))
    return loss


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 7),
    dim=st.integers(2, 6),
    gamma=st.sampled_from([0.5, 3.0, 10.0]),
)
def test_the_loss_is_the_formula_and_the_gradient_its_finite_differences(seed, n, dim, gamma):
    rng = np.random.default_rng(seed)
    A, B = rng.standard_normal((n, dim)), rng.standard_normal((n, dim))
    codes = rng.integers(0, 4, n)
    loss, slope_a, slope_b = cosine_softmax(A, B, codes[:, None] == codes, gamma)
    assert loss == pytest.approx(by_formula(A, B, codes, gamma), abs=1e-9)
    step = 1e-6
    for Z, slope in ((A, slope_a), (B, slope_b)):
        for at in np.ndindex(Z.shape):
            kept, values = Z[at], []
            for shift in (step, -step):
                Z[at] = kept + shift
                values.append(by_formula(A, B, codes, gamma))
            Z[at] = kept
            size = max(1.0, np.abs(slope).max())
            assert slope[at] == pytest.approx((values[0] - values[1]) / (2 * step), abs=1e-5 * size)


def test_points_that_are_zero_do_no_harm():
    A, B = np.zeros((3, 4)), np.ones((3, 4))
    loss, slope_a, slope_b = cosine_softmax(A, B, np.eye(3, dtype=bool), 10.0)
    assert loss == pytest.approx(3 * np.log(3))
    assert np.isfinite(slope_a).all()
    assert np.isfinite(slope_b).all()


@given(st.integers(0, 2**32 - 1))
def test_steps_are_adagrad_with_one_sum_for_each_feature(seed):
    rng = np.random.default_rng(seed)
    rows = sp.csr_array(rng.standard_normal((5, 8)) * (rng.random((5, 8)) < 0.5), dtype=F32)
    order, G = rng.integers(0, 5, 6), rng.standard_normal((6, 16)).astype(F32)
    W, squares = rng.standard_normal((8, 16)).astype(F32), np.zeros(8, dtype=F32)
    expected, sums = W.astype(np.float64), np.zeros(8)
    for i, row in enumerate(order):
        for f, x in zip(rows[[row]].indices, rows[[row]].data, strict=True):
            slope = float(x) * G[i].astype(np.float64)
            sums[f] += slope @ slope
            expected[f] -= 0.1 * slope / np.sqrt(sums[f])
    ada = AdaGrad(W.reshape(-1), squares, F32(0.1), 16)
    descend(Csr.of(rows), order, G.reshape(-1), ada)
    np.testing.assert_allclose(W, expected, atol=1e-5)
    np.testing.assert_allclose(squares, sums, rtol=1e-5)


@given(st.lists(st.integers(0, 6), min_size=1, max_size=40), st.integers(0, 2**32 - 1))
def test_neighbours_have_the_same_label_and_are_other_rows(labels, seed):
    codes = np.array(labels)
    every = np.arange(codes.size)
    found = draw_neighbors(one_label(codes), every, np.random.default_rng(seed))
    np.testing.assert_array_equal(codes[found], codes)
    alone = np.bincount(codes)[codes] == 1
    np.testing.assert_array_equal(found == np.arange(codes.size), alone)


def test_all_other_rows_of_a_label_are_drawn():
    rng = np.random.default_rng(0)
    codes = np.array([0, 1, 0, 0, 1, 0])
    samples = one_label(codes)
    drawn = np.array([draw_neighbors(samples, np.arange(6), rng) for _ in range(300)])
    assert set(drawn[:, 0]) == {2, 3, 5}
    assert np.bincount(drawn[:, 0])[[2, 3, 5]].min() > 70


@given(
    st.lists(st.sets(st.integers(0, 6), min_size=1), min_size=1, max_size=30), st.integers(0, 99)
)
def test_neighbours_share_the_drawn_one_of_several_labels(sets, seed):
    rng = np.random.default_rng(seed)
    codes = np.array([code for own in sets for code in sorted(own)])
    starts = np.append(0, np.cumsum([len(own) for own in sets]))
    samples = Samples(np.empty((len(sets), 0)), codes, 7, starts=starts)
    drawn = draw_labels(samples, rng)
    assert (samples.owners[drawn] == np.arange(len(sets))).all()
    for row, other in enumerate(draw_neighbors(samples, drawn, rng)):
        code = codes[drawn[row]]
        assert code in sets[other]
        assert (other == row) == (sum(code in own for own in sets) == 1)


# --- what training is for ---


def share_of_neighbours_with_the_label(points, codes, k=5):
    cosines = points @ points.T
    np.fill_diagonal(cosines, -np.inf)
    nearest = np.argsort(-cosines, axis=1)[:, :k]
    return (codes[nearest] == codes[:, None]).mean()


def test_training_brings_the_graph_of_labels_into_the_space():
    """Also for rows that it has not seen, and better than the features themselves do."""
    settings = MapSettings(dim=20, epochs=0, learning_rate=0.1, gamma=10.0, batch_size=64)
    seen, new = X[:800], X[800:]
    known = Samples(seen, Y[:800], 40)

    def shares(W):
        return [
            share_of_neighbours_with_the_label(unit(rows @ W), codes)
            for rows, codes in ((seen, Y[:800]), (new, Y[800:]))
        ]

    before = shares(learn_map(known, settings, np.random.default_rng(0)))
    settings = settings._replace(epochs=5)
    after = shares(learn_map(known, settings, np.random.default_rng(0)))
    plain = share_of_neighbours_with_the_label(unit(new.toarray()), Y[800:])
    assert after[0] > max(0.9, before[0] + 0.2)
    assert after[1] > max(before[1] + 0.2, plain + 0.05)


def test_parts_are_balanced_and_keep_labels_together():
    weights = learn_partition(
        Samples(X, Y, 40),
        4,
        epochs=10,
        learning_rate=0.1,
        balance=4.0,
        memory=10,
        rng=np.random.default_rng(0),
    )
    parts = (X @ weights).argmax(axis=1)
    sizes = np.bincount(parts, minlength=4)
    assert sizes.max() < 1.5 * 300
    assert sizes.min() > 300 / 1.5
    table = np.zeros((40, 4))
    np.add.at(table, (Y, parts), 1)
    assert (table.max(axis=1) / table.sum(axis=1)).mean() > 0.9  # 0.4 or so by chance


def test_without_balance_parts_may_be_anything_but_answers_are_right():
    model = AnnexML(n_learners=2, n_parts=4, balance=0, dim=16).fit(X[:900], Y[:900])
    assert model.score(X[900:], Y[900:]) > 0.7
    assert (model.sizes_.sum(axis=1) == 900).all()


def test_more_parts_than_rows_are_mostly_empty():
    model = AnnexML(n_learners=1, n_parts=50, dim=4, epochs=2).fit(X[:30], Y[:30])
    assert (model.sizes_ == 0).any()
    labels, scores = model.predict_topk(X, k=3)
    assert np.isin(labels, Y[:30]).all()
    assert np.isfinite(scores).all()


def test_scores_are_weighted_votes():
    model = AnnexML(n_learners=2, n_parts=2, dim=16, n_neighbors=4, gamma=5.0, epochs=2)
    model.fit(X[:900], Y[:900])
    labels, scores = model.predict_topk(X[900:950], k=40)
    totals = np.zeros((50, 40))
    for learner in range(2):
        parts = (X[900:950] @ model.partition_[:, 2 * learner : 2 * learner + 2]).argmax(axis=1)
        places, cosines = model._neighbors(X[900:950], learner, parts)
        votes = np.exp(20.0 * (cosines.astype(np.float64) - 1)) / 2
        for i in range(50):
            np.add.at(totals[i], model.codes_[learner][places[i]], votes[i])
    np.testing.assert_allclose(np.take_along_axis(totals, labels, 1), scores, atol=1e-5)
    assert (scores[:, 0] <= 4).all()


def test_learners_differ_and_agree_better_than_one():
    many = AnnexML(n_learners=4, dim=8, epochs=4).fit(X[:600], Y[:600])
    one = AnnexML(n_learners=1, dim=8, epochs=4).fit(X[:600], Y[:600])
    assert not np.array_equal(many._points[:1], many._points[-1:])
    assert many.score(X[600:], Y[600:]) >= one.score(X[600:], Y[600:])


def test_the_size_of_rows_does_not_matter():
    scale = np.random.default_rng(0).choice([0.25, 1.0, 1024.0], 1200)
    scaled = sp.csr_array(X * scale[:, None])
    plain, other = (
        AnnexML(n_learners=1, dim=8, epochs=2).fit(rows[:900], Y[:900]).predict_topk(rows[900:])
        for rows in (X, scaled)
    )
    np.testing.assert_array_equal(plain[0], other[0])


# --- threads, seeds, files, settings ---


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_threads_change_no_bit(n_jobs):
    settings = {"n_learners": 3, "n_parts": 2, "dim": 16, "epochs": 2}
    one = AnnexML(**settings).fit(X, Y)
    many = AnnexML(**settings, n_jobs=n_jobs).fit(X, Y)
    for name in AnnexML._learnt:
        assert_same_bits(getattr(many, name), getattr(one, name))
    other = AnnexML(**settings, random_state=1).fit(X, Y)
    assert not np.array_equal(other.partition_, one.partition_)


def test_files_hold_several_parts(tmp_path):
    model = AnnexML(n_learners=2, n_parts=3, dim=18, epochs=2).fit(X[:900], Y[:900])
    model.save(tmp_path / "m")
    back = load(tmp_path / "m")
    for old, new in zip(model.predict_topk(X[900:]), back.predict_topk(X[900:]), strict=True):
        assert_same_bits(old, new)


# --- several labels ---

# A row of label y, one of 40, also has the label of its group of five, and every tenth row has none.
GROUPS = sp.csr_array(
    np.hstack([np.eye(40)[Y], np.eye(8)[Y // 5]]) * (np.arange(Y.size) % 10 > 0)[:, None]
)


def test_several_labels_are_learnt_and_found():
    model = AnnexML(n_learners=2, n_parts=2, dim=20).fit(X[:900], GROUPS[:900])
    rows = np.flatnonzero(np.diff(GROUPS[900:].indptr))
    found = model.predict_topk(X[900:][rows], k=2)[0]
    right = np.take_along_axis(GROUPS[900:][rows].toarray(), found, 1)
    alone = AnnexML(n_learners=2, n_parts=2, dim=20).fit(X[:900], Y[:900])
    assert right.mean() > 0.95 * alone.score(X[900:][rows], Y[900:][rows])


def test_votes_of_rows_with_several_labels_are_those_of_brute_force():
    model = AnnexML(n_learners=1, n_parts=1, dim=16, n_neighbors=4, gamma=5.0, epochs=2)
    model.fit(X[:600], GROUPS[:600])
    labelled = np.flatnonzero(np.diff(GROUPS[:600].indptr))
    places, cosines = model._neighbors(X[600:620], 0, np.zeros(20, dtype=np.int64))
    weights = np.exp(20 * (cosines.astype(np.float64) - 1))
    votes = [
        w @ GROUPS[labelled[own]].toarray()
        for w, own in zip(weights, model.codes_[0][places], strict=True)
    ]
    found, scores = model.predict_topk(X[600:620], k=48)
    np.testing.assert_allclose(scores, np.take_along_axis(np.array(votes), found, 1), atol=1e-5)


def test_one_label_in_each_set_is_one_label():
    settings = {"n_learners": 2, "n_parts": 2, "dim": 8, "epochs": 2}
    plain = AnnexML(**settings).fit(X[:300], Y[:300])
    sets = AnnexML(**settings).fit(X[:300], [[label] for label in Y[:300].tolist()])
    for old, new in zip(plain.predict_topk(X[300:]), sets.predict_topk(X[300:]), strict=True):
        assert_same_bits(old, new)


def test_files_of_several_labels(tmp_path):
    few = GROUPS[:300].toarray()
    few[:, 3] = 0  # a label without rows
    model = AnnexML(n_learners=2, n_parts=2, dim=8, epochs=1).fit(X[:300], few)
    model.save(tmp_path / "m")
    back = load(tmp_path / "m")
    for old, new in zip(model.predict_topk(X[300:]), back.predict_topk(X[300:]), strict=True):
        assert_same_bits(old, new)
    model.row_codes_ = model.row_codes_ + 1
    model.save(tmp_path / "bad")
    with pytest.raises(LocoleError, match="labels of rows lie outside"):
        load(tmp_path / "bad")


BAD = {
    "n_learners": [0, 1.5, True],
    "dim": [0, "50"],
    "n_parts": [0, -1, 2.0],
    "n_neighbors": [0],
    "epochs": [0],
    "partition_epochs": [-1],
    "batch_size": [0],
    "random_state": [-1, None],
    "learning_rate": [0, -1.0, np.nan, np.inf, "0.1"],
    "gamma": [0.0, np.inf],
    "balance": [-1.0, np.nan],
}


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, values in BAD.items() for v in values])
def test_bad_settings(name, value):
    with pytest.raises(LocoleError, match=rf"{name} must be (None or )?a"):
        AnnexML(**{name: value}).fit(X[:50], Y[:50])


def test_settings_made_bad_after_the_fit():
    model = AnnexML(n_learners=1, epochs=1).fit(X[:50], Y[:50])
    with pytest.raises(LocoleError, match="n_neighbors must be"):
        model.set_params(n_neighbors=0).predict(X)
    assert model.set_params(n_neighbors=1).predict(X).shape == (1200,)


def test_maps_in_half_precision():
    halved = _halved(np.array([[3e38, -1e37], [0, 1.5e38]], dtype=F32))
    np.testing.assert_allclose(halved, [[1, -1 / 30], [0, 0.5]], rtol=1e-3)
    assert not _halved(np.zeros((2, 3), dtype=F32)).any()
    for bad in (np.inf, np.nan):
        with pytest.raises(LocoleError, match="smaller learning_rate"):
            _halved(np.array([[1.0, bad]], dtype=F32))
