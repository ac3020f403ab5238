"""Text files that some peers learn from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np


def feature_lines(X: Any) -> Iterator[str]:
    """``index:value`` pairs of each row, 0-based."""
    for indices, values in _rows(X):
        yield " ".join(map("%d:%.6g".__mod__, zip(indices.tolist(), values.tolist(), strict=True)))


def token_lines(X: Any) -> Iterator[str]:
    """Rows as words ``f<index>``, each as often as its weight asks: the mean weight is two words."""
    for indices, values in _rows(X):
        times = np.rint(2 * values / (values.mean() if values.size else 1)).clip(1, 8)
        yield " ".join(f"f{i}" for i in np.repeat(indices, times.astype(np.int64)).tolist())


def _rows(X: Any) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for start, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        yield X.indices[start:stop], X.data[start:stop]


def write_lines(path: Path, lines: Iterator[str]) -> None:
    """Write the lines one by one, each ended by a newline."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(line + "\n" for line in lines)
