"""Trellis graphs: as many paths as labels, all different, and the heaviest of them."""

from __future__ import annotations

import hashlib
import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from locole.baselines.similarity import similar_order
from locole.baselines.trellis import Trellis

widths = st.integers(2, 9)


def edge_sets(trellis):
    """Edges of every path as frozen sets."""
    return [frozenset(row[row >= 0].tolist()) for row in trellis.edges(range(trellis.n_paths))]


def walk(trellis):
    """Every path found by walking the graph from its definition, without the numbers of paths."""
    digits, rest = [], trellis.n_paths
    while rest:
        rest, digit = divmod(rest, trellis.width)
        digits.append(digit)
    sizes = [trellis.width] * (len(digits) - 1) + [digits[-1]]
    numbers = itertools.count()
    enter = [next(numbers) for _ in range(sizes[0])]
    onward = [
        [[next(numbers) for _ in range(sizes[t + 1])] for _ in range(sizes[t])]
        for t in range(len(sizes) - 1)
    ]
    leave = [[next(numbers) for _ in range(digits[t])] for t in range(len(sizes))]
    found, ways = [], [(s, [enter[s]]) for s in range(sizes[0])]
    for t in range(len(sizes)):
        found += [frozenset([*way, leave[t][s]]) for s, way in ways if s < digits[t]]
        if t + 1 < len(sizes):
            ways = [(v, [*way, onward[t][s][v]]) for s, way in ways for v in range(sizes[t + 1])]
    return found, next(numbers)


@given(st.integers(1, 700), widths)
def test_there_are_exactly_so_many_paths_and_all_differ(n_paths, width):
    trellis = Trellis(n_paths, width=width)
    expected, n_edges = walk(trellis)
    assert trellis.n_edges == n_edges
    assert len(expected) == n_paths
    paths = edge_sets(trellis)
    assert len(set(paths)) == n_paths
    assert set(paths) == set(expected)


@pytest.mark.parametrize("width", [2, 3, 4, 10])
def test_every_small_number_of_paths(width):
    for n_paths in range(1, 130):
        trellis = Trellis(n_paths, width=width)
        paths = edge_sets(trellis)
        assert len(set(paths)) == n_paths
        assert frozenset().union(*paths) == frozenset(range(trellis.n_edges))


@pytest.mark.parametrize(
    ("n_paths", "width", "n_edges"),
    # 61 learners for 10,106 labels and 55 for 105 labels of width 5 are the original program's.
    [(10_106, 2, 61), (105, 5, 55), (64, 2, 2 + 5 * 4 + 2 + 1), (2, 2, 5), (3, 7, 6)],
)
def test_the_number_of_edges(n_paths, width, n_edges):
    assert Trellis(n_paths, width=width).n_edges == n_edges


@pytest.mark.parametrize(
    ("n_paths", "width", "digest"), [(1000, 3, "517b09b27199e287"), (12_046, 2, "898f8f96781f444d")]
)
def test_numbers_of_edges_and_paths_never_change(n_paths, width, digest):
    """Model files hold numbers of paths and columns of edges: these hashes are a promise."""
    edges = Trellis(n_paths, width=width).edges(np.arange(n_paths))
    assert hashlib.sha256(edges.astype("<i8").tobytes()).hexdigest()[:16] == digest


def test_a_trellis_of_ten_billion_paths():
    trellis = Trellis(10**10, width=2)
    assert trellis.n_edges < 200
    some = trellis.edges([0, 1, 10**10 - 1])
    assert len({tuple(row) for row in some.tolist()}) == 3
    assert some.max() < trellis.n_edges


def test_neighbouring_numbers_are_similar_paths():
    paths = edge_sets(Trellis(4096, width=2))
    near = np.mean([len(paths[i] ^ paths[i + 1]) for i in range(0, 4096, 2)])
    far = np.mean([len(paths[i] ^ paths[(i * 1777 + 5) % 4096]) for i in range(4096)])
    assert near <= 4
    assert near < far / 3


@given(st.integers(2, 80), widths, st.integers(0, 10**6))
def test_signs_are_the_edges(n_paths, width, seed):
    trellis = Trellis(n_paths, width=width)
    order = np.random.default_rng(seed).permutation(n_paths)
    whole = trellis.signs(order, 0, trellis.n_edges)
    for path, signs in zip(order, whole, strict=True):
        row = trellis.edges([path])[0]
        assert set(np.flatnonzero(signs == 1)) == set(row[row >= 0].tolist())
    assert set(np.unique(whole)) <= {-1, 1}
    parts = [
        trellis.signs(order, a, min(a + 5, trellis.n_edges)) for a in range(0, trellis.n_edges, 5)
    ]
    assert (np.hstack(parts) == whole).all()


@given(
    n_paths=st.integers(2, 200),
    width=widths,
    share=st.floats(0, 1),
    seed=st.integers(0, 10**6),
    ties=st.booleans(),
)
def test_the_heaviest_paths_are_those_of_enumeration(n_paths, width, share, seed, ties):
    """Whole numbers make many ties; whole numbers and 24-bit fractions make exact sums."""
    rng = np.random.default_rng(seed)
    trellis = Trellis(n_paths, width=width)
    k = 1 + round(share * (n_paths - 1))
    gains = rng.integers(-2, 3, (4, trellis.n_edges)).astype(float)
    if not ties:
        gains += rng.integers(0, 2**24, gains.shape) / 2**24
    gains[0] = 0
    path_of_label = rng.permutation(n_paths)
    paths = edge_sets(trellis)
    weights = np.array([[sum(g[list(paths[p])]) for p in path_of_label] for g in gains])
    expected = np.argsort(-weights, axis=1, kind="stable")[:, :k]
    labels, scores = trellis.heaviest(gains, k, path_of_label)
    assert (labels == expected).all()
    assert (scores == np.take_along_axis(weights, expected, axis=1)).all()


@pytest.mark.parametrize("k", [1, 2, 5, 40])
@pytest.mark.parametrize(("n_paths", "width"), [(20_000, 2), (9_999, 5), (5_000, 70)])
def test_dynamic_programming_is_enumeration(n_paths, width, k):
    """Many labels and few answers: now the dynamic program does the work."""
    rng = np.random.default_rng(k)
    trellis = Trellis(n_paths, width=width)
    order = rng.permutation(n_paths)
    gains = rng.standard_normal((40, trellis.n_edges))
    gains[20:] = np.sign(gains[20:])
    expected = [trellis._by_all(row[None], k, order) for row in np.float32(gains).astype(float)]
    labels, scores = trellis.heaviest(np.float32(gains).astype(float), k, order)
    assert (labels == np.vstack([answer[0] for answer in expected])).all()
    np.testing.assert_allclose(scores, np.vstack([answer[1] for answer in expected]), rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1.0, 1e30, 1e200])
def test_scale_does_not_matter(scale):
    trellis = Trellis(3000, width=3)
    gains = np.random.default_rng(0).standard_normal((5, trellis.n_edges))
    order = np.arange(3000)
    plain, _ = trellis.heaviest(gains, 4, order)
    assert (trellis.heaviest(gains * scale, 4, order)[0] == plain).all()


def test_sums_that_are_equal_in_truth_tie():
    """0.1 + 0.1 + 0.1 − 0.1 depends on the order of summation in floating point; here it must not."""
    trellis = Trellis(4096, width=2)
    gains = np.random.default_rng(0).choice([-0.1, 0.0, 0.1], (20, trellis.n_edges))
    labels, _ = trellis.heaviest(gains, 30, np.arange(4096))
    paths = edge_sets(trellis)
    tenths = np.rint(10 * gains)
    for row, found in enumerate(labels):
        weights = [int(tenths[row, list(path)].sum()) for path in paths]
        assert found.tolist() == sorted(range(4096), key=lambda p: (-weights[p], p))[:30]


def test_similar_labels_become_neighbours():
    """Eight groups of eight labels: each group stands together in the order."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((8, 200))
    X = sp.csr_array(np.repeat(centres, 8, axis=0) + 0.3 * rng.standard_normal((64, 200)))
    mixed = rng.permutation(64)
    order = similar_order(X[mixed].astype(np.float32), np.arange(64), 64)
    assert sorted(order.tolist()) == list(range(64))
    groups = (mixed[order] // 8).reshape(8, 8)
    assert np.mean([np.bincount(group).max() for group in groups]) > 7


@pytest.mark.parametrize("n_features", [3, 500])
def test_an_order_of_labels_that_have_nothing(n_features):
    """Empty rows, equal labels, more labels than directions."""
    X = sp.csr_array(([1.0] * 40, (range(40), [0] * 40)), shape=(200, n_features), dtype=np.float32)
    order = similar_order(X, np.arange(200), 200)
    assert sorted(order.tolist()) == list(range(200))
    assert (similar_order(X, np.arange(200), 200) == order).all()
