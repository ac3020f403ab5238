"""Rows that random families keep for the dense decoder."""

from __future__ import annotations

import numpy as np
import pytest

from locole.embeddings import Rademacher


def test_resizing_keeps_the_limit_of_the_cache():
    assert Rademacher(10, dim=8, cache_bytes=0).resized(20).cache_bytes == 0


@pytest.mark.parametrize("cache_bytes", [0, 40_000, 1 << 28])
def test_the_cache_changes_no_row(cache_bytes):
    embedding = Rademacher(3000, dim=9, cache_bytes=cache_bytes, assignment="random")
    expected = embedding.real_rows(np.arange(3000))
    for start, stop in [(0, 3000), (1000, 1030), (1023, 2049), (2999, 3000), (5, 5)]:
        block = embedding.real_block(start, stop)
        np.testing.assert_array_equal(block, expected[start:stop])
        assert embedding.real_block(start, stop, np.float64).dtype == np.float64
    kept = sum(rows.nbytes for rows in embedding._cache.values())
    assert kept <= cache_bytes
