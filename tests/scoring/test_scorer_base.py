"""What scorers and baselines share: the best of dense scores."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from locole.scoring.base import best_of

# Few different numbers, so that there are ties; the infinite ones are what a method may call hopeless.
numbers = st.sampled_from([-np.inf, -1.5, -0.0, 0.0, 1.0, 2.0])


@given(
    hnp.arrays(
        st.sampled_from([np.float32, np.float64]), st.tuples(st.just(3), st.integers(1, 200)),
        elements=numbers,
    ),
    st.integers(1, 200),
)  # fmt: skip
def test_the_best_are_those_of_a_sort(scores, k):
    k = min(k, scores.shape[1])
    codes, best = best_of(scores, k)
    for row, found, values in zip(scores.tolist(), codes, best, strict=True):
        expected = sorted(range(len(row)), key=lambda i: (-row[i], i))[:k]
        assert found.tolist() == expected
        assert values.tolist() == [row[i] for i in expected]
    assert best.dtype == scores.dtype
    assert codes.dtype == np.int64


def test_the_memory_order_of_scores_does_not_matter():
    scores = np.random.default_rng(0).random((5, 300))
    for form in (np.asfortranarray(scores), np.repeat(scores, 2, axis=1)[:, ::2]):
        for ours, plain in zip(best_of(form, 4), best_of(scores, 4), strict=True):
            np.testing.assert_array_equal(ours, plain)
