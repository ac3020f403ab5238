"""LIBSVM lines read the slow and obvious way."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import scipy.sparse as sp


def nearest_float32(number: str) -> np.float32:
    """The float32 nearest to a decimal number by exact distances; of two, the even one."""
    exact = Fraction(number)
    with np.errstate(over="ignore"):
        guess = np.float32(float(exact))
        if np.isinf(guess):
            guess = np.copysign(np.finfo(np.float32).max, guess)
        around = {guess, *(np.nextafter(guess, np.float32(end)) for end in (-np.inf, np.inf))}

    def distance(candidate: np.float32) -> tuple[Fraction, int]:
        # Past the largest number the next one would be 2^128.
        value = (
            Fraction(float(candidate))
            if np.isfinite(candidate)
            else 2**128 * int(np.sign(candidate))
        )
        return abs(value - exact), int(candidate.view(np.uint32)) & 1

    return min(around, key=distance)


def parse(text: str, *, zero_based: bool) -> tuple[sp.csr_matrix, list[str]]:
    """Rows and label fields; the number of columns is what the largest index needs."""
    rows, labels = [], []
    for line in text.replace("\r", " ").split("\n"):
        tokens = line.split("#")[0].split()
        if not tokens:
            continue
        labels.append(tokens[0])
        row: dict[int, float] = {}
        for token in tokens[1:]:
            index, value = token.split(":")
            if index != "qid":
                column = int(index) - (0 if zero_based else 1)
                row[column] = row.get(column, 0.0) + float(nearest_float32(value))
        rows.append(row)
    n_features = max((max(row, default=-1) for row in rows), default=-1) + 1
    X = sp.lil_matrix((len(rows), n_features), dtype=np.float32)
    for i, row in enumerate(rows):
        for column, value in row.items():
            X[i, column] = value
    return X.tocsr(), labels
