"""Running lists of the best columns against sorting."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from locole.kernels.jit import kernel
from locole.kernels.topk import insert, push_rows

NO_LABELS = np.empty(0, dtype=np.int64)


@kernel
def insert_all(scores, columns, labels, best_scores, best_codes):
    for i in range(scores.size):
        insert(best_scores, best_codes, scores[i], columns[i], labels)


def empty_lists(rows: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    return (
        np.full((rows, k), -np.inf, dtype=np.float32),
        np.full((rows, k), -1, dtype=np.int64),
    )


def check_list(scores: np.ndarray, labels: np.ndarray, best_scores, best_codes) -> None:
    """The best scores in falling order, each with a label that has it; unused places (−inf, −1).

    Which of several equal scores comes last into the list is left to the caller to settle.
    """
    used = labels >= 0
    score_of = dict(zip(labels[used].tolist(), scores[used].tolist(), strict=True))
    count = min(len(score_of), best_scores.size)
    assert best_scores[:count].tolist() == sorted(score_of.values(), reverse=True)[:count]
    assert [score_of[c] for c in best_codes[:count].tolist()] == best_scores[:count].tolist()
    assert np.unique(best_codes[:count]).size == count
    assert (best_scores[count:] == -np.inf).all()
    assert (best_codes[count:] == -1).all()


# Few different scores: most of them tie.
few_scores = st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=40)


@given(few_scores, st.integers(1, 12), st.randoms(use_true_random=False))
def test_insertion_in_any_order(scores, k, random):
    scores = np.array(scores, dtype=np.float32)
    columns = list(range(scores.size))
    random.shuffle(columns)
    columns = np.array(columns)
    best_scores, best_codes = empty_lists(1, k)
    insert_all(scores[columns], columns, NO_LABELS, best_scores[0], best_codes[0])
    check_list(scores, np.arange(scores.size), best_scores[0], best_codes[0])


@st.composite
def placed_labels(draw):
    """Labels of some columns; others are unused."""
    n = draw(st.integers(1, 300))
    used = draw(st.integers(0, n))
    labels = np.full(n, -1, dtype=np.int64)
    order = np.random.default_rng(draw(st.integers(0, 2**32))).permutation(n)
    labels[order[:used]] = np.arange(used)
    return labels


@given(placed_labels(), st.integers(1, 9), st.integers(1, 300), st.integers(0, 2**32))
def test_pushing_blocks_of_columns(labels, k, block, seed):
    rng = np.random.default_rng(seed)
    scores = rng.integers(-4, 5, (3, labels.size)).astype(np.float32)
    best_scores, best_codes = empty_lists(3, k)
    for first in range(0, labels.size, block):
        part = np.ascontiguousarray(scores[:, first : first + block])
        push_rows(part, first, labels, best_scores, best_codes)
    for i in range(3):
        check_list(scores[i], labels, best_scores[i], best_codes[i])


@given(st.integers(1, 500), st.integers(1, 20), st.integers(0, 2**32))
def test_pushing_real_scores_where_columns_are_labels(n, k, seed):
    scores = np.random.default_rng(seed).standard_normal((2, n)).astype(np.float32)
    best_scores, best_codes = empty_lists(2, k)
    push_rows(scores, 0, NO_LABELS, best_scores, best_codes)
    for i in range(2):
        check_list(scores[i], np.arange(n), best_scores[i], best_codes[i])


def test_labels_continue_where_the_last_block_ended():
    best_scores, best_codes = empty_lists(1, 3)
    push_rows(np.array([[1, 5]], dtype=np.float32), 100, NO_LABELS, best_scores, best_codes)
    push_rows(np.array([[3, 4]], dtype=np.float32), 50, NO_LABELS, best_scores, best_codes)
    assert best_codes.tolist() == [[101, 51, 50]]
    assert best_scores.tolist() == [[5, 4, 3]]
