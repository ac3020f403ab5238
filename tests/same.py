"""Equality to the bit of what models hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp


def assert_same_bits(left: Any, right: Any) -> None:
    """Equal in type and to the bit: arrays, sparse arrays, parts of models, and containers of them."""
    assert type(left) is type(right)
    if isinstance(left, np.ndarray):
        assert (left.dtype, left.shape) == (right.dtype, right.shape)
        assert left.tobytes() == right.tobytes()
    elif sp.issparse(left):
        assert left.shape == right.shape
        for name in ("data", "indices", "indptr"):
            assert_same_bits(getattr(left, name), getattr(right, name))
    elif isinstance(left, dict):
        assert list(left) == list(right)
        assert_same_bits(list(left.values()), list(right.values()))
    elif isinstance(left, list | tuple):
        assert len(left) == len(right)
        for a, b in zip(left, right, strict=True):
            assert_same_bits(a, b)
    elif hasattr(left, "_state"):
        assert_same_bits(left._state(), right._state())
    else:
        assert left == right
